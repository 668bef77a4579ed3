#!/usr/bin/env python3
"""Policy `python`: a user's own samplers, in Python, as policies of a study: compared with policies of the program that are the same method, on any
number of ranks, and with everything that such code can do wrong."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import netCDF4
import numpy as np
import program

STUDY = """
name: python
study: bandit
seed: 5
runs: {runs}
block: 32
problem: {{theta: gaussian, arms: 10, rounds: {rounds}, noise: 0.7}}
policies: [{policies}]
"""

SAMPLERS = '''
import os, socket, time
import numpy as np

def ridge(x, y, rng, about):
    """The estimate of egreedy: I + Lambda, b."""
    weight = 1 / about.noise ** 2
    precision = np.eye(x.shape[2]) + weight * np.einsum("rti,rtj->rij", x, x)
    return np.linalg.solve(precision, weight * np.einsum("rti,rt->ri", x, y)[..., None])[..., 0]

class Stateful:
    """The same from sums that are kept from round to round."""
    def __init__(self):
        self.precision = self.vector = None

    def __call__(self, x, y, rng, about):
        if x.shape[1] == 0:
            self.precision, self.vector = np.tile(np.eye(2), (len(x), 1, 1)), np.zeros((len(x), 2))
        else:
            last = x[:, -1]
            self.precision += last[:, :, None] * last[:, None, :] / about.noise ** 2
            self.vector += last * y[:, -1:] / about.noise ** 2
        return np.linalg.solve(self.precision, self.vector[..., None])[..., 0]

stateful = Stateful()

def checked(x, y, rng, about):
    """Nothing of the rank comes with the process: descriptors, several threads."""
    links = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
    others = {fd: to for fd, to in links.items() if int(fd) > 2 and to != links["0"]}
    assert not others, others
    assert os.environ["OMP_NUM_THREADS"] == "1" and "mpi4py" not in os.sys.modules
    assert about.likelihood == "logistic" and set(np.unique(y)) <= {0, 1} and about.round == x.shape[1] + 1
    return rng.standard_normal((len(x), 2))

def broken(what):
    def sampler(x, y, rng, about):
        if about.round == 3:
            what()
        return np.ones((len(x), 2))
    return sampler

raises = broken(lambda: 1 / 0)
leaves = broken(lambda: os._exit(9))
complains = broken(lambda: (print("x" * 10 ** 6, "no such device"), os._exit(8)))

def hides():
    """Leaves behind a process that holds all descriptors."""
    if os.fork():
        os._exit(7)
    time.sleep(100000)

hides = broken(hides)
exits = broken(lambda: exit("enough"))
killed = broken(lambda: os.kill(os.getpid(), 9))
writes = lambda x, y, rng, about: y.__setitem__(0, 1) if about.round == 3 else np.ones((len(x), 2))
shape = lambda x, y, rng, about: np.ones((len(x), 2 + about.round // 3))
nan = lambda x, y, rng, about: np.where(np.arange(2 * len(x)).reshape(-1, 2) == 5, np.nan if about.round == 3 else 1, 1)
words = lambda x, y, rng, about: "theta" if about.round == 3 else np.ones((len(x), 2))

closes = broken(lambda: (os.close(0), time.sleep(100000)))
garbage = broken(lambda: os.write(0, b"x" * 100))
imaginary = lambda x, y, rng, about: np.ones((len(x), 2)) + (1j if about.round == 3 else 0)

def conjugate(x, y, rng, about):
    """Draws from N(m, P^-1), P = I + Lambda: exact where theta* is Gaussian with unit variance."""
    weight = 1 / about.noise ** 2
    precision = np.eye(x.shape[2]) + weight * np.einsum("rti,rtj->rij", x, x)
    mean = np.linalg.solve(precision, weight * np.einsum("rti,rt->ri", x, y)[..., None])[..., 0]
    root = np.linalg.cholesky(np.linalg.inv(precision))
    return mean[:, None] + np.einsum("rij,rmj->rmi", root, rng.standard_normal((len(x), about.draws, x.shape[2])))

first = lambda x, y, rng, about: conjugate(x, y, rng, about)[:, 0]

def sleeps(x, y, rng, about):
    """Lets wait for longer than any test does."""
    open(os.path.join(os.path.dirname(__file__), "began"), "w").close()
    time.sleep(100000)

def slow(x, y, rng, about):
    """Tells that its module has been imported and it is at work."""
    with open(os.path.join(os.path.dirname(__file__), "began"), "w"):
        time.sleep(0.05)
    return np.ones((len(x), 2))

number = 3
class outer:
    inner = staticmethod(ridge)
'''


class Python(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("samplers.py", SAMPLERS)
        os.environ["THOMPSON_PYTHON"] = sys.executable

    def run_study(self, *policies, rounds=20, runs=64, out="out", ranks=0, extra=(), code=0):
        study = self.write("study.yaml", STUDY.format(runs=runs, rounds=rounds, policies=", ".join(policies)))
        environment = {"PYTHONPATH": os.pathsep.join((self.folder, os.path.join(program.SOURCE, "docs")))}
        process = program.thompson("run", study, "-o", self.path(out), *extra, ranks=ranks, environment=environment)
        self.assertEqual(process.returncode, code, process.stderr)
        return process

    def own(self, name, label=None):
        return f"{{name: python, module: samplers, callable: {name}, label: {label or name}}}"

    def results(self, out="out"):
        file = netCDF4.Dataset(self.path(f"{out}/results.nc"))
        file.set_auto_mask(False)
        return file

    def test_same_method_same_arms(self):
        """The greedy rule in Python chooses the arms of `egreedy` without exploration, in every round of every run."""
        for likelihood in ("problem.resample_arms=true", "problem.resample_arms=false"):
            self.run_study("{name: egreedy, epsilon: 0}", self.own("ridge"), self.own("stateful"), self.own("outer.inner", "inner"), runs=32,
                           extra=("--set", likelihood, "--overwrite"))
            with self.results() as results:
                regret = results["regret"][0]
                self.assertTrue((regret[:, :, -1] > 0).any())
                for policy in range(1, 4):
                    self.assertEqual(regret[0].tobytes(), regret[policy].tobytes())
                self.assertTrue((results["status"][...] == 1).all())
                self.assertTrue((results["seconds"][...] > 0).all())

    def test_example_has_the_regret_of_thompson_sampling(self):
        """The LinTS of docs/lints.py is `ts`: the same distribution, with other random numbers. The paired difference over 1024 runs is within four
        standard errors of 0 at the end, and a standard error is at most a twentieth of the regret: a sampler with twice the noise is detected."""
        self.run_study("ts", "{name: python, module: lints, callable: sample}", rounds=50, runs=1024, extra=("--set", "block=512"))
        with self.results() as results:
            mean = results["regret_mean"][0, :, -1]
            difference, error = (results[f"regret_diff_{what}"][0, 1, -1] for what in ("mean", "se"))
        print(f"\n    regret of ts {mean[0]:.3f}, of docs/lints.py {mean[1]:.3f}; difference {difference:.3f} +- {error:.3f}", file=sys.stderr)
        self.assertLess(abs(difference), 4 * error)
        self.assertLess(error, mean[0] / 20)

    def test_ranks_and_isolation(self):
        """The same bytes alone, on several ranks, and with every task in its own process."""
        policies = ("ts", "{name: python, module: lints, callable: sample}")
        self.run_study(*policies, out="alone")
        for out, options in (("two", {"ranks": 2}), ("three", {"ranks": 3}), ("apart", {"extra": ("--task-timeout", "100")})):
            self.run_study(*policies, out=out, **options)
            self.assert_same_results(self.path("alone/results.nc"), self.path(f"{out}/results.nc"))
        self.succeed("verify", self.path("alone"), environment={"PYTHONPATH": os.path.join(program.SOURCE, "docs")})

    def test_posterior_study(self):
        """Draws in Python from the exact posterior: their distances to exact draws are distributed as those of `ts`. Means over 256 runs of the earth mover's
        distance at two sizes differ by at most four standard errors of the paired difference;
        a callable may return theta[runs, 1, d] in a bandit, the same as theta[runs, d]. The bytes do not depend on ranks."""
        study = self.write("posterior.yaml", """
name: quality
study: posterior
seed: 5
runs: 256
block: 128
draws: 50
metrics: [emd, moments]
problem: {theta: gaussian, arms: 10, sample_sizes: [2, 20], noise: 0.7}
policies: [ts, {name: python, module: samplers, callable: conjugate}]
""")
        environment = {"PYTHONPATH": self.folder}
        for out, ranks in (("one", 0), ("two", 2)):
            self.succeed("run", study, "-o", self.path(out), ranks=ranks, environment=environment)
        self.assert_same_results(self.path("one/results.nc"), self.path("two/results.nc"))
        with self.results("one") as results:
            distance = results["emd"][0]
            self.assertEqual(distance.shape, (2, 256, 2))
            difference = distance[1] - distance[0]
            self.assertTrue((abs(difference.mean(axis=0)) < 4 * difference.std(axis=0) / 16).all(), difference.mean(axis=0))
            self.assertTrue((difference != 0).any())
        self.run_study(self.own("conjugate"), self.own("first"), rounds=5, runs=32)
        with self.results() as results:
            self.assertEqual(*(regret.tobytes() for regret in results["regret"][0]))

    def test_a_clean_process(self):
        self.run_study(self.own("checked"), extra=("--set", "likelihood=logistic"), ranks=2)

    def test_failures(self):
        """A sampler that fails makes only its own tasks fail: exit status 5, and a sentence that names module, callable and round."""
        cases = {"raises": "round 3: ZeroDivisionError: division by zero (samplers.py, line", "leaves": "round 3: its process ended with status 9",
                 "hides": "round 3: its process ended with status 7", "complains": "round 3: its process ended with status 8; its output ends with: xxx",
                 "exits": "round 3: SystemExit: enough (", "killed": "round 3: its process ended by signal 9 (Killed)",
                 "writes": "round 3: ValueError: assignment destination is read-only (samplers.py, line",
                 "shape": "round 3: returned an array of shape (32, 3) where (32, 2) is needed",
                 "closes": "round 3: its process closed its connection", "garbage": "round 3: its process sent an invalid answer",
                 "imaginary": "round 3: TypeError: complex numbers where real ones are needed",
                 "nan": "round 3: returned a theta that is not finite, for run 2", "words": "round 3: ValueError: could not convert string"}
        process = self.run_study("ts", *map(self.own, cases), runs=32, code=5)
        for name, sentence in cases.items():
            self.assertIn(f"policy python: module samplers, callable {name}, {sentence}", process.stderr)
        with self.results() as results:
            self.assertEqual(results["status"][0, :, 0].tolist(), [1] + [2] * len(cases))

    def test_refusals(self):
        """What cannot run is refused before a folder is created."""
        self.write("unfinished.py", "import samplers\nfrom samplers import nothing\n")
        empty = self.path("no python")
        for policy, sentence, environment in (
                ("{name: python, module: absent, callable: f}", "module absent, callable f: ModuleNotFoundError: No module named 'absent'", {}),
                ("{name: python, module: unfinished, callable: f}", "module unfinished, callable f: ImportError: cannot import name 'nothing'", {}),
                (self.own("absent"), "module samplers, callable absent: AttributeError: module 'samplers' has no attribute 'absent'", {}),
                (self.own("number"), "module samplers, callable number: it cannot be called", {}),
                (self.own("ridge"), f"policy python: {empty}, from the environment variable THOMPSON_PYTHON, is not a Python with NumPy",
                 {"THOMPSON_PYTHON": empty}),
                ("{name: python, callable: f}", "key 'policies.python.module': must be given", {}),
                ("python", "key 'policies.python.module': must be given", {})):
            study = self.write("study.yaml", STUDY.format(runs=32, rounds=20, policies=policy))
            for ranks in (0, 2):
                self.fail_with(3, sentence, "run", study, "-o", self.path("refused"), environment={"PYTHONPATH": self.folder, **environment}, ranks=ranks)
            self.assertFalse(os.path.exists(self.path("refused")))
        study = self.write("study.yaml", STUDY.format(runs=32, rounds=20, policies="{name: python, module: absent, callable: f}"))
        self.succeed("plan", study)  # where the module is missing

    def test_finds_a_python(self):
        """A python3 that comes first in the path but has no NumPy is skipped."""
        other = pathlib.Path(self.path("bin"), "python3")
        other.parent.mkdir()
        other.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        other.chmod(0o755)
        study = self.write("study.yaml", STUDY.format(runs=32, rounds=5, policies=self.own("ridge")))
        environment = {"PYTHONPATH": self.folder, "PATH": f"{other.parent}:{os.environ['PATH']}"}
        self.fail_with(3, f"{other}, from the environment", "run", study, "-o", self.path("out"), environment={**environment, "THOMPSON_PYTHON": str(other)})
        del os.environ["THOMPSON_PYTHON"]
        self.succeed("run", study, "-o", self.path("out"), environment=environment)

    def test_a_stop_does_not_wait(self):
        """SIGTERM to the program alone, while the callable, or the import of its module, makes it wait for a day: exit status 75, and the callable does
        not count as failed."""
        self.write("sleeper.py", "import samplers\nsamplers.sleeps(0, 0, 0, 0)\n")
        for policy in (self.own("sleeps"), "{name: python, module: sleeper, callable: f}"):
            study = self.write("study.yaml", STUDY.format(runs=32, rounds=5, policies=policy))
            with subprocess.Popen([program.PROGRAM, "run", study, "-o", self.path("stopped")], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env=dict(os.environ, PYTHONPATH=self.folder)) as job:
                began, deadline = pathlib.Path(self.path("began")), time.time() + program.PATIENCE
                while not began.exists() and time.time() < deadline:
                    time.sleep(0.05)
                job.send_signal(signal.SIGTERM)
                said = job.communicate(timeout=program.PATIENCE)[1]
            self.assertEqual(job.returncode, 75, said)
            self.assertNotIn("failed", said)
            began.unlink()

    def test_a_stop_is_no_failure(self):
        """A signal to all processes of the job ends it early, with nothing failed; and no process is left."""
        study = self.write("study.yaml", STUDY.format(runs=32, rounds=1000, policies=self.own("slow")))
        for number, code in ((signal.SIGTERM, 75), (signal.SIGKILL, -signal.SIGKILL)):
            with subprocess.Popen([program.PROGRAM, "run", study, "-o", self.path("out"), "--resume"], start_new_session=True, text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=self.folder)) as job:
                began, deadline = pathlib.Path(self.path("began")), time.time() + program.PATIENCE
                while not began.exists() and time.time() < deadline:
                    time.sleep(0.05)
                children = [int(pid) for pid in pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
                self.assertTrue(children)
                if number == signal.SIGTERM:
                    os.killpg(job.pid, number)
                else:
                    job.kill()
                said = job.communicate(timeout=program.PATIENCE)[1]
            self.assertEqual(job.returncode, code, said)
            self.assertNotIn("failed", said)
            deadline = time.time() + program.PATIENCE
            while any(os.path.exists(f"/proc/{child}") for child in children) and time.time() < deadline:
                time.sleep(0.05)
            self.assertFalse([child for child in children if os.path.exists(f"/proc/{child}")])
            began.unlink()


if __name__ == "__main__":
    program.main()
