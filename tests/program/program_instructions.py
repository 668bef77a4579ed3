"""Instructions of one block of each policy, and of training, counted by callgrind and compared with tests/program/instructions.json: a slower program is
detected without a clock. Counts are repeatable to a hundredth of a percent for one compiler and one instruction level (callgrind knows AVX2, not AVX-512).

After a change that is meant to add or save work: tests/program/program_instructions.py --record, with the environment of the tests, in a Release build.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import unittest

import program

RECORD = os.path.join(program.SOURCE, "tests", "program", "instructions.json")
TOLERANCE = 0.02    # well above what counts differ by (addresses of memory, the length of paths), well below a regression worth a look
SEEDED = "runs: 16, block: 16, seed: 1, prior: {stages: 10, train_samples: 500, training_steps: 2, hidden: %s}"
STUDIES = {
    # name: (study, policies), one block of 16 runs each
    "plane": ("problem: {theta: cross, arms: 100, rounds: 5}, " + SEEDED % "[100, 100]", ["ts", "mixts", "diffts", "dps", "linucb", "exact"]),
    "narrow": ("problem: {theta: cross, arms: 100, rounds: 5}, " + SEEDED % "[20, 20]",
               ["diffts", "{name: twisted, particles: 4}", "{name: smc, particles: 40}", "{name: smc_tempered, particles: 40}", "{name: mala, steps: 10}",
                "{name: tilted, steps: 10}"]),
    "logistic": ("likelihood: logistic, problem: {theta: cross, arms: 100, rounds: 3}, " + SEEDED % "[20, 20]", ["ts", "diffts", "glm_ucb", "exact"]),
    "pool": ("problem: {family: pool, dimension: 20, arms: 50, rounds: 3}, " + SEEDED % "[20, 20]",
             ["lints", "{name: vits1, steps: 3}", "{name: vits2, steps: 3}", "lmc", "fgts", "{name: vits2_hf, steps: 3, samples: 4}",
              "{name: lmc, label: network, model: network, hidden: [10], steps: 2}"]),
}
OBJECTS = {}    # names of the numbers, from this profile or an earlier one of the same run
TRAINING = ("name: training, study: bandit, runs: 2, policies: [diffts], problem: {rounds: 1, arms: 2}, "
            "prior: {stages: 1, train_samples: 100, mixture_starts: 1, training_steps: 2, hidden: [100, 100]}")
TASK = re.compile(r"^task (\d+) .*: same$", re.MULTILINE)


def label(policy):
    return re.sub(r"\{name: (\w+).*", r"\1", re.sub(r"\{.*label: (\w+).*", r"\1", policy))


def own_instructions(text):
    """Counts the program's own code in a callgrind profile: what libraries execute depends on the processor's features (memcpy) and on library versions."""
    total, own, skip = 0, False, False
    for line in text.splitlines():
        if line.startswith("ob="):
            found = re.match(r"ob=\((\d+)\)(?: (.*))?", line)
            if found[2]:
                OBJECTS[found[1]] = found[2]
            own = OBJECTS[found[1]] == os.path.realpath(program.PROGRAM)
        elif line.startswith("cob="):
            found = re.match(r"cob=\((\d+)\)(?: (.*))?", line)
            if found[2]:
                OBJECTS[found[1]] = found[2]
        elif line.startswith("calls="):
            skip = True     # the next line is for the called function, which has its own lines
        elif re.match(r"[0-9+*-]", line):
            total += int(line.split()[1]) if own and not skip else 0
            skip = False
    return total


def counts_of(function, folder, *arguments):
    """What the program prints, and the instructions of each call of `function`, in order."""
    OBJECTS.clear()
    out = os.path.join(folder, "callgrind.out")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={function}", f"--dump-after={function}"]
    process = subprocess.run([*command, program.PROGRAM, *arguments], capture_output=True, text=True, timeout=program.PATIENCE, check=False)
    if process.returncode != 0:
        raise RuntimeError(process.stderr[-2000:])
    counts, number = [], 1
    while os.path.exists(f"{out}.{number}"):
        with open(f"{out}.{number}", encoding="utf-8") as file:
            text = file.read()
        if f"Trigger: --dump-after={function}" in text:
            counts.append(own_instructions(text))
        os.remove(f"{out}.{number}")
        number += 1
    return process.stdout, counts


def measure_study(name, folder):
    """Run the study at full speed, then its tasks again under callgrind, with one task per policy: `verify` needs neither MPI nor the reducer."""
    settings, policies = STUDIES[name]
    study, out = os.path.join(folder, f"{name}.yaml"), os.path.join(folder, name)
    with open(study, "w", encoding="utf-8") as file:
        file.write(f"{{name: {name}, study: bandit, policies: [{', '.join(policies)}], {settings}}}\n")
    process = program.thompson("run", study, "-o", out, "--progress", "none")
    if process.returncode != 0:
        raise RuntimeError(process.stderr)
    text, counts = counts_of("study_run_task", folder, "verify", out, "--tasks", str(len(policies)))
    tasks = [int(task) for task in TASK.findall(text)]
    assert sorted(tasks) == list(range(len(policies))) and len(counts) == len(tasks), (name, text, counts)
    return {f"{name} {label(policies[task])}": count for task, count in sorted(zip(tasks, counts))}


def fit_to_clicks(folder):
    """Arguments that learn a Gaussian prior from eight clicks of each of 64 tasks."""
    rng, logs = random.Random(1), os.path.join(folder, "clicks.csv")
    with open(logs, "w", encoding="utf-8") as file:
        file.write("task,x1,x2,y\n")
        for task in range(64):
            theta = rng.gauss(1, 1), rng.gauss(0, 1)
            for _ in range(8):
                x = rng.gauss(0, 1), rng.gauss(0, 1)
                file.write(f"{task},{x[0]:.6f},{x[1]:.6f},{int(theta[0] * x[0] + theta[1] * x[1] + rng.gauss(0, 1.8) > 0)}\n")
    return "train", "--logs", logs, "--likelihood", "logistic", "--family", "gaussian", "-o", os.path.join(folder, "clicks.nc")


def measure(folder):
    counts = {}
    for name in STUDIES:
        counts.update(measure_study(name, folder))
    study = os.path.join(folder, "training.yaml")
    with open(study, "w", encoding="utf-8") as file:
        file.write(f"{{{TRAINING}}}\n")
    counts["training of a stage"] = sum(counts_of("training_group", folder, "train", study, "-o", os.path.join(folder, "training.nc"))[1])
    counts["a prior from clicks"] = sum(counts_of("logs_fit", folder, *fit_to_clicks(folder))[1])
    return counts


def compiler():
    """The compiler and its flags, as the program records them in its results."""
    with open(os.path.join(os.path.dirname(program.PROGRAM), "CMakeCache.txt"), encoding="utf-8") as file:
        kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(.*)", file.read(), re.MULTILINE).group(1)
    version = subprocess.run(["cc", "-dumpfullversion", "-dumpmachine"], capture_output=True, text=True, check=True).stdout.split()
    return " ".join([kind, *version])


def levels():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return file.read()


class Instructions(program.ProgramTest):
    @unittest.skipIf(program.SANITIZED, "sanitizers have instructions of their own")
    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    @unittest.skipUnless(" avx2 " in levels(), "counts are of a processor with AVX2")
    def test_no_more_than_recorded(self):
        with open(RECORD, encoding="utf-8") as file:
            recorded = json.load(file)
        if recorded["compiler"] != compiler():
            self.skipTest(f"counts are of {recorded['compiler']}, this is {compiler()}")
        counts = measure(self.folder)
        self.assertEqual(sorted(counts), sorted(recorded["counts"]))
        for name, count in counts.items():
            ratio = count / recorded["counts"][name]
            print(f"{name:24s} {count:14,d} {100 * (ratio - 1):+7.2f}%")
            with self.subTest(name):
                self.assertLess(ratio, 1 + TOLERANCE, "more instructions than recorded")
                self.assertGreater(ratio, 1 - 5 * TOLERANCE, "fewer: record them (--record), so that the gain is kept")


if __name__ == "__main__":
    if "--record" in sys.argv:
        test = Instructions("test_no_more_than_recorded")
        test.setUp()
        found = {"compiler": compiler(), "counts": measure(test.folder)}
        test.doCleanups()
        with open(RECORD, "w", encoding="utf-8") as record:
            json.dump(found, record, indent=1)
            record.write("\n")
    else:
        program.main()
