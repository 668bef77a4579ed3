"""CONTRIBUTING.md works: following all its steps in one copy of the tree gives members that are listed, pass the conformance tests and the
checks of the tree, and can be studied."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import netCDF4
import numpy as np

import summary
import tools

SOURCE = pathlib.Path(os.environ["THOMPSON_SOURCE"])
BUILD = pathlib.Path(os.environ["THOMPSON_BUILD"])
TEMPLATES = "docs/templates"
COPY = re.compile(rf"Copy `({TEMPLATES}/\w+\.c)` to `(src/[\w/]+/)`")
LINE = re.compile(r"Add the line `(.+?)` to `(\w+)` in `(src/[\w/]+\.h)`")
MEMBER = re.compile(r"^const (\w+)Ops \w+?_(\w+) = ", re.MULTILINE)
CONFORMANCE = ["test_sampler", "test_policy", "test_prior", "test_likelihood", "test_problem", "test_metrics", "test_rule"]
CHECKS = ["check_format", "check_layers", "check_docs", "check_prose"]

BANDIT = """
name: bandit
runs: 8
block: 4
likelihood: {likelihood}
problem: {{family: {problem}, arms: 8, rounds: 12}}
policies: [random, {policies}]
prior: {{train_samples: 200}}
metrics: [{metrics}]
"""
KIND = """
name: kind
study: {kind}
runs: 8
block: 4
problem: {{arms: 8, rounds: 12}}
policies: [random, ts]
sweep: {{problem.noise: [0.5, 1]}}
"""
POSTERIOR = """
name: posterior
study: posterior
runs: 4
block: 4
draws: 40
metrics: [{metrics}]
problem: {{family: {problem}, arms: 8, sample_sizes: [1, 5]}}
policies: [{policies}]
prior: {{train_samples: 200}}
"""


class Contributing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guide = (SOURCE / "CONTRIBUTING.md").read_text(encoding="utf-8")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="thompson-contributing-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.tree, cls.build = cls.folder / "tree", cls.folder / "tree/build/copy"
        cls.program = cls.build / "thompson"
        cls.environment = dict(os.environ, THOMPSON_SOURCE=str(cls.tree), THOMPSON_PROGRAM=str(cls.program))
        shutil.copytree(SOURCE, cls.tree, ignore=lambda folder, names: {"build", "results", ".git"} & set(names) if pathlib.Path(folder) == SOURCE else ())
        cls.members = {}
        touched = [cls.copy_template(*step) for step in COPY.findall(cls.guide)] + [cls.add_line(*step) for step in LINE.findall(cls.guide)]
        formatter, cls.unformatted = tools.find("clang-format")
        if formatter:
            cls.call(formatter, "-i", *touched)
        cls.call("/usr/bin/python3", cls.tree / "docs/draw_architecture.py")
        cls.copy_build()
        cls.call("cmake", "-S", cls.tree, "-B", cls.build, "-DTHOMPSON_WERROR=ON")
        cls.call("cmake", "--build", cls.build, "-j", "2", "--target", "thompson", *CONFORMANCE)

    @classmethod
    def copy_build(cls):
        """Copy the build as if it had been made from the copy: what CMake wrote names the new folders, and no file is newer than before, so that
        only what the steps change is compiled."""
        def others(folder, names):  # folders of other tests that are running
            made = {"CMakeFiles", "Makefile", "cmake_install.cmake", "CTestTestfile.cmake"}
            return {"Testing"} | (set(names) - made if pathlib.Path(folder) == BUILD / "tests" else set())

        shutil.copytree(BUILD, cls.build, symlinks=True, ignore=others)
        for path in filter(pathlib.Path.is_file, cls.build.rglob("*")):
            old, stat = path.read_bytes(), path.stat()
            new = old.replace(bytes(BUILD), bytes(cls.build)).replace(bytes(SOURCE), bytes(cls.tree))
            if new != old and b"\0" not in old:
                path.write_bytes(new)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    @classmethod
    def call(cls, *command, cwd=None):
        process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=cls.environment)
        if process.returncode:
            raise AssertionError(f"{' '.join(map(str, command))} ended with {process.returncode}\n{process.stdout[-3000:]}{process.stderr[-3000:]}")
        return process.stdout

    @classmethod
    def copy_template(cls, template, folder):
        for family, name in MEMBER.findall((SOURCE / template).read_text(encoding="utf-8")):
            cls.members.setdefault(family, []).append(name)
        return shutil.copy(SOURCE / template, cls.tree / folder)

    @classmethod
    def add_line(cls, line, name, header):
        path = cls.tree / header
        text, found = re.subn(rf"(#define {name}\(.*\)\s*\\\n)", lambda head: f"{head[1]}  {line} \\\n", path.read_text(encoding="utf-8"))
        if found != 1:
            raise AssertionError(f"CONTRIBUTING.md names the list {name} of {header}, which is not there")
        path.write_text(text, encoding="utf-8")
        if name == "METRIC_LIST":
            cls.members["Metric"] = [re.search(r"\((\w+)", line)[1]]
        return path

    def test_every_family_has_its_steps(self):
        self.assertEqual(sorted(pathlib.Path(template).name for template, _ in COPY.findall(self.guide)),
                         sorted(path.name for path in (SOURCE / TEMPLATES).iterdir()))
        self.assertEqual(set(self.members), {"Sampler", "Prior", "Likelihood", "Problem", "Policy", "Metric", "Probe", "Study", "Rule"})

    def test_paths_exist(self):
        for name in re.findall(r"`((?:src|tests|docs|jobs)/[\w./]+)`", self.guide):
            self.assertTrue((SOURCE / name).exists(), name)

    def test_members_are_listed(self):
        for family, verb in (("Sampler", "samplers"), ("Prior", "priors"), ("Likelihood", "likelihoods"), ("Problem", "problems"), ("Policy", "policies"), ("Study", "studies"),
                             ("Rule", "rules")):
            listed = self.call(self.program, "list", verb)
            for name in self.members[family]:
                self.assertIn(name, listed)
        self.assertIn(f"{self.members['Probe'][0]}: ", self.call(self.program, "list", "metrics"))

    def test_conformance(self):
        """The new members combined with all others; the others are tested with each other in the tree itself."""
        self.environment["THOMPSON_MEMBERS"] = ",".join(itertools.chain(*self.members.values()))
        for name in CONFORMANCE:
            with self.subTest(name):
                self.call(self.build / "tests" / name, cwd=self.build / "tests")

    def test_checks_of_the_tree(self):
        for name in CHECKS:
            with self.subTest(name):
                if name == "check_format" and self.unformatted:
                    continue  # skipped in the tree itself, with the reason
                self.call("/usr/bin/python3", self.tree / "tests" / "check" / f"{name}.py", cwd=self.tree)

    def run_study(self, name, text, **words):
        study = self.folder / f"{name}.yaml"
        study.write_text(text.format(**words), encoding="utf-8")
        planned = subprocess.run([self.program, "plan", study], capture_output=True, text=True, check=True, env=self.environment)
        self.assertNotIn("does not use it", planned.stderr)
        self.call(self.program, "run", study, "-o", self.folder / name)

    def test_a_chain_reaches_the_posterior(self):
        """Mean and covariance of its draws against quadrature in the plane, within 5 standard errors, for every likelihood."""
        rng = np.random.default_rng(5)
        np.savetxt(self.folder / "theta.csv", rng.standard_normal((300, 2)) @ [[1, 0.6], [0, 0.5]] + [0.5, -0.2], delimiter=",")
        self.call(self.program, "train", "--theta", self.folder / "theta.csv", "--family", "gaussian", "-o", self.folder / "prior.nc")
        with netCDF4.Dataset(self.folder / "prior.nc") as file:
            mean, precision = np.asarray(file["mean"]).reshape(2), np.linalg.inv(np.asarray(file["covariance"]).reshape(2, 2))
        x = rng.standard_normal((12, 2))
        grid = np.stack(np.meshgrid(np.linspace(-4, 5, 600), np.linspace(-4, 4, 600)), -1).reshape(-1, 2)
        log_prior = -0.5 * np.einsum("ni,ij,nj->n", grid - mean, precision, grid - mean)
        u = grid @ x.T
        rewards = {"gaussian": x @ [1, -0.5] + 0.5 * rng.standard_normal(12), "logistic": rng.integers(0, 2, 12), "poisson": rng.integers(0, 3, 12)}
        log_likelihoods = {"gaussian": lambda y: -2 * (y - u) ** 2, "logistic": lambda y: y * u - np.logaddexp(0, u), "poisson": lambda y: y * u - np.exp(u)}
        for name, y in rewards.items():
            with self.subTest(name):
                np.savetxt(self.folder / "history.csv", np.column_stack([x, y]), delimiter=",", header="x1,x2,y", comments="")
                self.call(self.program, "sample", "--prior", self.folder / "prior.nc", "--data", self.folder / "history.csv", "--sampler", self.members["Sampler"][1],
                          "--likelihood", name, *(["--noise", "0.5"] if name == "gaussian" else []), "-n", "4000", "-o", self.folder / "draws.nc")
                (self.folder / "history.csv").unlink()
                with netCDF4.Dataset(self.folder / "draws.nc") as file:
                    theta = np.asarray(file["theta"]).reshape(-1, 2)
                (self.folder / "draws.nc").unlink()
                log_density = log_prior + log_likelihoods[name](y).sum(1)
                weight = np.exp(log_density - log_density.max())
                expected = weight @ grid / weight.sum()
                covariance = ((grid - expected).T * weight) @ (grid - expected) / weight.sum()
                products = np.einsum("ni,nj->nij", theta - expected, theta - expected)
                self.assertTrue((abs(theta.mean(0) - expected) < 5 * theta.std(0) / 4000**0.5).all())
                self.assertTrue((abs(products.mean(0) - covariance) < 5 * products.std(0) / 4000**0.5).all())

    def test_studies(self):
        (prior,), (problem,), (policy,), (likelihood,), (rule,), (probe,), (metric,), (kind,) = (
            self.members[family] for family in ("Prior", "Problem", "Policy", "Likelihood", "Rule", "Probe", "Metric", "Study"))
        samplers = self.members["Sampler"]  # the second takes any likelihood
        self.run_study("gaussian", BANDIT, likelihood="gaussian", problem=problem, metrics=probe,
                       policies=f"{policy}, {', '.join(samplers)}, {{name: lmc, prior: {prior}}}")
        self.run_study("other", BANDIT, likelihood=likelihood, problem=problem, metrics=probe, policies=f"{policy}, {samplers[1]}, {{name: ts, rule: {rule}}}")
        self.run_study("posterior", POSTERIOR, metrics=metric, problem=problem, policies=f"{', '.join(samplers)}, {{name: lmc, prior: {prior}}}")
        table = self.call("/usr/bin/python3", self.tree / "analysis/tools/table.py", self.folder / "posterior", "-f", "csv")
        for sampler in samplers:
            self.assertIn(sampler, table)
        with netCDF4.Dataset(self.folder / "gaussian/results.nc") as data:
            curve = np.asarray(data[probe][...])
            rises = np.diff(curve, axis=-1)
            self.assertTrue(((rises == 0) | (rises == 1)).all() and (curve[..., 0] == 0).all())
            self.assertGreater(curve[:, list(data["policy"][:]).index("random"), :, -1].mean(), 8)  # 11 x 7/8, and 8 runs
            self.assertIn(f"{probe}_diff_mean", data.variables)
        self.run_study("kind", KIND, kind=kind)
        table = self.call("/usr/bin/python3", self.tree / "analysis/tools/table.py", self.folder / "kind", "-f", "csv")
        self.assertIn("ts", table)
        self.call("/usr/bin/python3", self.tree / "analysis/figures/ablation.py", self.folder / "kind")


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromTestCase(Contributing))
