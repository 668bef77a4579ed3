#!/usr/bin/env python3
"""Priors that are denoising oracles in Python: compared with the chain of the same prior in closed form and with exact draws, on any number of ranks,
in studies and in `thompson sample`. What such code can do wrong is in program_oracle_faults.py."""

import os
import pathlib
import sys

import netCDF4
import numpy as np
import program

ORACLES = '''
import os, pathlib
import numpy as np

WEIGHT, MEAN, VARIANCE = np.array([0.3, 0.7]), np.array([[2.0, -1.0], [-1.0, 0.5]]), np.array([0.3, 0.6])
TRAP = pathlib.Path(__file__).with_name("trap")

def normal(x, sigma):
    """D for N(0, I)."""
    return x / (1 + sigma ** 2)

def parts(x, sigma):
    total = VARIANCE + sigma ** 2
    log = np.log(WEIGHT) - np.log(total) - 0.5 * ((x[:, None] - MEAN) ** 2).sum(axis=2) / total
    share = np.exp(log - log.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return share, MEAN + (VARIANCE / total)[:, None] * (x[:, None] - MEAN), VARIANCE / total

def mixture(x, sigma):
    """D for two Gaussians."""
    share, mean, _ = parts(x, sigma)
    return np.einsum("mc,mci->mi", share, mean)

class Mixture:
    """The same with its Jacobian, which is Cov[x0 | x] / sigma^2."""
    def __call__(self, x, sigma):
        assert x.dtype == np.float64 and x.flags.c_contiguous and isinstance(sigma, float) and 0.01 <= sigma <= 30 and len(x) <= 300
        assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["THOMPSON_LOCAL_RANK"] in "01" and not os.path.exists("/proc/self/fd/3")
        return mixture(x, sigma)

    def jvp(self, x, sigma, v):
        share, mean, slope = parts(x, sigma)
        apart = mean - np.einsum("mc,mci->mi", share, mean)[:, None]
        return v * (share @ slope)[:, None] + np.einsum("mc,mci,mcj,mj->mi", share, apart, apart, v) / sigma ** 2

with_jvp = Mixture()

def stateful(x, sigma, calls=[]):
    """Differs from call to call, as one that draws random numbers does: what it returns depends on the calls of its own process alone. Where there is a
    trap, the second process of this folder kills the program that started it."""
    calls.append(0)
    if len(calls) == 1 and TRAP.exists():
        if TRAP.read_text() == "armed":
            os.kill(os.getppid(), 9)
        TRAP.write_text("armed")
    return normal(x, sigma) * (1 + 1e-3 * np.sin(len(calls)))

def counted(x, sigma):
    """Counts its calls and their rows."""
    with open(pathlib.Path(__file__).with_name("rows"), "a") as file:
        file.write(f"{len(x)}\\n")
    return mixture(x, sigma)

number = 3
'''

STUDY = """
name: oracle
study: posterior
seed: 5
runs: {runs}
block: {block}
draws: {draws}
metrics: [{metrics}]
problem: {{theta: mixture, file: {prior}, arms: 10, sample_sizes: [4], noise: 0.7}}
prior: {{family: oracle, module: oracles, callable: {callable}, sigma_min: 0.01, sigma_max: 30, {more}}}
policies: [{policies}]
"""


class Oracle(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("oracles.py", ORACLES)
        os.environ["THOMPSON_PYTHON"] = sys.executable
        self.environment = {"PYTHONPATH": self.folder}
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "mixture"
            for name in ("component", "dim", "dim2"):
                file.createDimension(name, 2)
            file.createVariable("weight", "f8", ("component",))[:] = [0.3, 0.7]
            file.createVariable("mean", "f8", ("component", "dim"))[:] = [[2, -1], [-1, 0.5]]
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.multiply.outer([0.3, 0.6], np.eye(2))

    def make(self, policies, oracle="mixture", more="stages: 10", runs=4, block=2, draws=20, metrics="moments"):
        return self.write("study.yaml", STUDY.format(runs=runs, block=block, draws=draws, metrics=metrics, prior=self.path("prior.nc"), callable=oracle,
                                                     more=more, policies=policies))

    def run_study(self, *arguments, out="out", code=0, **options):
        process = program.thompson("run", self.path("study.yaml"), "-o", self.path(out), *arguments, environment=self.environment, **options)
        self.assertEqual(process.returncode, code, process.stderr)
        return process

    def results(self, out="out"):
        file = netCDF4.Dataset(self.path(f"{out}/results.nc"))
        file.set_auto_mask(False)
        return file

    def test_closed_form(self):
        """Draws are as far from exact ones as those of the same samplers with the mixture's own chain, which has the same noises: the means of 16 runs
        differ by at most four standard errors of the paired difference. Products are counted as calls, whether they are the oracle's own or differences."""
        samplers = {"twisted": "cloud_particles: 200", "joint": "{}", "diffts": "{}", "dps": "{}"}
        policies = ", ".join(f"{{name: {name}, prior: oracle, {option}}}, {{name: {name}, label: {name}_closed, prior: exact, {option}}}".replace(", {}", "")
                             for name, option in samplers.items())
        chain = "stages: 20, schedule: log_snr, first_snr: 10000, last_snr: 0.001111111, batch: 300"
        calls = {}
        for oracle in ("mixture", "with_jvp"):
            self.make(policies, oracle, chain, runs=16, block=8, draws=100, metrics="sliced_wasserstein")
            self.run_study(out=oracle, ranks=2)
            with self.results(oracle) as results:
                distance, calls[oracle] = results["sliced_wasserstein"][0, :, :, 0], results["oracle_calls"][0, :, :, 0]
                difference = distance[::2] - distance[1::2]
                error = difference.std(axis=1) / np.sqrt(16)
                self.assertTrue((np.abs(difference.mean(axis=1)) < 4 * error).all(), (difference.mean(axis=1), error))
                self.assertTrue((results["seconds"][...] > 0).all())
        np.testing.assert_array_equal(calls["mixture"], calls["with_jvp"])
        np.testing.assert_array_equal(calls["mixture"][4], 20)  # diffts: one call for each stage

    def test_same_bytes(self):
        """The same results alone, on several ranks, with every task in its own process, and of a bandit and a study of posteriors that were killed and resumed,
        of an oracle whose answers depend on earlier ones."""
        bandit = "name: bandit\nruns: 4\nblock: 2\nproblem: {theta: gaussian, arms: 5, rounds: 3}\n" \
                 "prior: {family: oracle, module: oracles, callable: stateful, sigma_min: 0.02, sigma_max: 20, stages: 10}\npolicies: [ts, {name: dps, prior: oracle}]\n"
        trap = pathlib.Path(self.path("trap"))
        for name in ("bandit", "posterior"):
            self.make("diffts", "stateful")
            if name == "bandit":
                self.write("study.yaml", bandit)
            self.run_study(out=name)
            for out, arguments, ranks in (("three", (), 3), ("apart", ("--task-timeout", "100"), 0)) if name == "bandit" else ():
                self.run_study(*arguments, out=out, ranks=ranks)
                self.assert_same_results(self.path(f"{name}/results.nc"), self.path(f"{out}/results.nc"))
            trap.write_text("open", encoding="utf-8")
            self.run_study(out=f"{name}_killed", code=-9)
            trap.unlink()
            self.run_study("--resume", out=f"{name}_killed")
            self.assert_same_results(self.path(f"{name}/results.nc"), self.path(f"{name}_killed/results.nc"))
        self.succeed("verify", self.path("bandit"), "--tasks", "2", environment=self.environment)

    def test_rows(self):
        """A call has all draws of a history, as far as `batch` allows: 200 where the program's own chunks have 64. What is drawn does not depend on how many
        histories a block has, nor on the batch, as this oracle computes each row alone; products of matrices round by their size, to 1e-9 of theta after the chain."""
        samplers = ("twisted", "joint", "diffts", "dps", "tilted")
        for sampler in samplers:
            self.make(f"{{name: {sampler}, prior: oracle}}", "counted", "stages: 10", runs=1, draws=200)
            self.run_study(out=sampler)
            rows = np.loadtxt(self.path("rows"))
            os.unlink(self.path("rows"))
            self.assertGreater(np.median(rows), 199, sampler)
        found = []
        for name, block, batch in (("all", 2, 4096), ("one", 1, 4096), ("small", 2, 100)):
            self.make(", ".join(f"{{name: {sampler}, prior: oracle}}" for sampler in samplers), "mixture", f"stages: 10, batch: {batch}", runs=2, block=block, draws=150)
            self.run_study(out=name)
            with self.results(name) as results:
                found.append({variable: results[variable][...] for variable in ("mean_error", "covariance_error", "ess", "oracle_calls")})
        for variable, values in found[0].items():
            np.testing.assert_array_equal(found[1][variable], values)
            np.testing.assert_allclose(found[2][variable], values, rtol=1e-9)

    def test_sample(self):
        """Draws of `thompson sample` have the posterior's mean and spread, by conjugacy; the file says from which oracle they are. 2 000 draws: 5 standard errors."""
        x, y = np.array([[1.0, 0.0], [0.5, -1.0], [1.0, 1.0]]), np.array([0.8, -0.3, 1.1])
        data = self.write("data.csv", "x1,x2,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y)))
        covariance = np.linalg.inv(np.eye(2) + x.T @ x / 0.25)
        mean = covariance @ x.T @ y / 0.25
        arguments = ("sample", "--oracle", "oracles:normal", "--dimension", 2, "--sigma-range", "0.01,30", "--data", data, "--noise", 0.5, "-n", 2000)
        said = self.succeed(*arguments, "--sampler", "joint", "-o", self.path("draws.nc"), environment=self.environment)
        self.assertNotIn("p-value", str(said))
        with netCDF4.Dataset(self.path("draws.nc")) as file:
            theta = np.asarray(file["theta"][...])
            self.assertEqual((file.oracle, file.sigma_range), ("oracles:normal", "0.01,30"))
            self.assertFalse(hasattr(file, "prior_sha256"))
        self.assertLess((np.abs(theta.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / 2000)).max(), 5)
        np.testing.assert_allclose(theta.var(axis=0) / np.diag(covariance), 1, atol=5 * np.sqrt(2 / 2000))
        for changed, code, sentence in ((("--sampler", "mala"), 3, "sampler mala needs a Gaussian mixture prior in closed form; prior oracle is not one"),
                                        (("--sampler", "localised"), 3, "sampler localised needs a prior with a denoiser for any precision"),
                                        (("--sampler", "joint", "--option", "guard=0.1"), 3, "guard: prior oracle has no companion mixture"),
                                        (("--sampler", "joint", "--recent", data, "--option", "guard=0.1"), 3, "prior oracle has no companion mixture"),
                                        (("--sampler", "joint", "--sigma-range", "3,2"), 2, "--sigma-range: '3,2' is not A,B with 0 < A < B"),
                                        (("--sampler", "joint", "--oracle", "oracles"), 2, "--oracle: 'oracles' is not MODULE:CALLABLE"),
                                        (("--sampler", "joint", "--oracle", "oracles:number"), 3, "callable number: it cannot be called"),
                                        (("--sampler", "joint", "--dimension", "3"), 3, "2 dimensions")):
            self.fail_with(code, sentence, *arguments, *changed, environment=self.environment)

    def test_refused(self):
        """What cannot run is refused before a folder is created; `plan` works where the module is missing."""
        for policy, arguments, sentence in (
                ("mala, prior: oracle", (), "sampler mala needs a Gaussian mixture prior in closed form; prior oracle is not one"),
                ("joint, guard: 0.2", (), "guard: prior oracle has no companion mixture"),
                ("joint", ("--set", "prior.dimension=3"), "key 'prior.dimension': 3, but theta* has 2 dimensions"),
                ("joint", ("--set", "prior.sigma_max=0.001"), "key 'prior.sigma_min': 0.01; it must be below prior.sigma_max = 0.001"),
                ("joint", ("--set", "prior.module=absent"), "prior oracle: module absent, callable mixture: ModuleNotFoundError: No module named 'absent'"),
                ("joint", ("--set", "prior.callable=absent"), "AttributeError: module 'oracles' has no attribute 'absent'"),
                ("joint", ("--set", "prior.module=null"), "prior 'oracle' needs the keys prior.module, prior.callable, prior.sigma_min and prior.sigma_max")):
            with self.subTest(sentence):
                study = self.make(f"{{name: {policy}}}")
                self.fail_with(3, sentence, "run", study, "-o", self.path("refused"), *arguments, environment=self.environment)
                self.assertFalse(os.path.exists(self.path("refused")))
        self.succeed("plan", self.make("joint"), "--set", "prior.module=absent")


if __name__ == "__main__":
    program.main()
