"""CONTRIBUTING.md works: its steps for a sampler, followed in a copy of the tree, give a policy that is listed, checked and tested."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("THOMPSON_SOURCE", os.getcwd())

# The posterior of a Gaussian prior by its mean: Thompson sampling without sampling.
SAMPLER = r"""
/* The posterior mean under a Gaussian prior: greedy. Written by a test that follows CONTRIBUTING.md. */
#include "core/arena.h"
#include "core/linalg.h"
#include "sampler/cost.h"
#include "sampler/methods.h"

static Status create(Sampler *self, const SamplerSetup *setup) {
  double *scratch;
  ALLOCATE(self->memory, scratch, (self->d + 1) * self->d * setup->runs);
  self->state = scratch;
  return STATUS_OK;
}

static void sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta, int64_t *fallbacks) {
  (void)rng, (void)fallbacks;
  int d = self->d, runs = history->runs;
  double *precision = self->state, *mean = precision + d * d * runs;
  const Mixture *prior = self->setup.prior->mixture;
  history_evidence(&(HistoryView){history, 1, 0, runs, NULL, NULL}, precision, mean);
  for (int i = 0; i < d * d; i++)
    for (int b = 0; b < runs; b++) precision[i * runs + b] += prior->precision[i];
  for (int i = 0; i < d; i++)
    for (int b = 0; b < runs; b++) mean[i * runs + b] += prior->information[i];
  linalg_cholesky_lanes(d, runs, precision, NULL);
  linalg_solve_lanes(d, runs, precision, mean);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < runs * draws; n++) theta[i * runs * draws + n] = mean[i * runs + n / draws];
}

static double cost(const SamplerWork *work) { return work->drawn * work->draws * cost_gaussian(work); }

const SamplerOps sampler_greedy_mean = {.name = "greedy_mean",
                                        .summary = "the posterior mean of a Gaussian prior",
                                        .reference = "a test of CONTRIBUTING.md",
                                        .default_prior = "standard",
                                        .needs = NEEDS_GAUSSIAN | NEEDS_CONJUGATE,
                                        .create = create,
                                        .sample = sample,
                                        .cost = cost};
"""


def run(*command, **options):
    process = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if process.returncode:
        print(process.stdout[-3000:], process.stderr[-3000:])
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}\n0 passed, 1 failed")
    return process.stdout


def main():
    with open(os.path.join(SOURCE, "CONTRIBUTING.md"), encoding="utf-8") as file:
        guide = file.read()
    for name in ("src/sampler/KIND/NAME.c", "const SamplerOps sampler_NAME", "ENTRY(NAME)", "src/sampler/methods.h"):
        if name not in guide:
            raise SystemExit(f"CONTRIBUTING.md no longer says {name}; write this test anew\n0 passed, 1 failed")
    # Every path that the guide names exists.
    missing = [path for path in re.findall(r"`((?:src|tests|docs|jobs)/[\w./]+)`", guide) if not os.path.exists(os.path.join(SOURCE, path)) and "NAME" not in path and "KIND" not in path]
    if missing:
        raise SystemExit(f"CONTRIBUTING.md names files that do not exist: {missing}\n0 passed, 1 failed")
    folder = tempfile.mkdtemp(prefix="thompson-contributing-")
    try:
        tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("build", "results", ".git"))
        with open(os.path.join(tree, "src/sampler/exact/greedy_mean.c"), "w", encoding="utf-8") as file:  # step 1
            file.write(SAMPLER)
        path = os.path.join(tree, "src/sampler/methods.h")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:  # step 2
            file.write(re.sub(r"(#define SAMPLER_LIST\(ENTRY\)\s*\\\n)", r"\1  ENTRY(greedy_mean) \\\n", text))
        # This checks that the steps lead there, not how fast. (Without any optimisation the tests last longer than it saves.)
        run("cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Plain", "-DTHOMPSON_WERROR=ON", "-DCMAKE_C_FLAGS=-O1 -DSIMD_ONE_VERSION")
        run("cmake", "--build", build, "-j", "2", "--target", "thompson", "test_sampler", "test_policy")
        program = os.path.join(build, "thompson")
        assert "greedy_mean" in run(program, "list", "policies")
        run(os.path.join(build, "tests/test_sampler"))
        run(os.path.join(build, "tests/test_policy"))
        study = os.path.join(folder, "study.yaml")
        with open(study, "w", encoding="utf-8") as file:
            file.write("name: t\nruns: 8\nproblem: {rounds: 10, arms: 5}\npolicies: [ts, greedy_mean]\n")
        assert "greedy_mean" in run(program, "run", study, "-o", os.path.join(folder, "out"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
