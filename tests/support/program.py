"""What the tests of the built program share: run it, alone or under mpiexec; compare results files byte for byte."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import netCDF4

import journals
import summary
import values

PROGRAM = os.environ["THOMPSON_PROGRAM"]
SOURCE = os.environ["THOMPSON_SOURCE"]
MPIEXEC = os.environ.get("THOMPSON_MPIEXEC", "mpiexec")
SANITIZED = os.environ.get("THOMPSON_SANITIZED") == "1"  # slow, and with memory of its own
# Wall-clock seconds after which a process that has to end counts as hanging: far more than anything takes, as twenty others may run on two cores.
PATIENCE = 6000 if SANITIZED else 600

# Attributes that say where a file came from; they may differ between files that are otherwise equal.
PROVENANCE = {"history", "source", "hostname", "mpi_ranks", "mpi_library", "compiler", "compiler_flags", "blas"}

SMALL_STUDY = """
name: small
study: bandit
seed: 7
runs: 40
block: 8
problem: {theta: cross, arms: 10, rounds: 20}
policies: [ts, tuned_ts, mixts, diffts, dps, linucb, egreedy, random, oracle]
prior: {train_samples: 500, replicates: 2, stages: 8, training_steps: 60, hidden: [8, 8]}
sweep:
  problem.theta: [cross, rays]
"""

QUICK_STUDY = """
name: small
study: bandit
seed: 7
runs: 16
block: 4
problem: {theta: cross, arms: 5, rounds: 20}
policies: [ts, mixts]
prior: {mixture_starts: 1}
"""


def thompson(*arguments, ranks=0, environment=None, cwd=None):
    """Run the program; `ranks` 0 means without mpiexec. Returns the finished process (text output)."""
    command = [PROGRAM, *map(str, arguments)]
    if ranks:
        command = [MPIEXEC, "-n", str(ranks), *command]
    env = dict(os.environ, **(environment or {}))
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env, cwd=cwd, check=False)


def children(process):
    """The processes of the program that a process has started: ranks of mpiexec, the task of a rank. MPICH's ranks are its grandchildren."""
    def started(*pattern):
        command = ["pgrep", "-P", str(process), *pattern]
        return [int(p) for p in subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()]

    return started("-f", f"^{PROGRAM}") or [rank for proxy in started("-f", "hydra_pmi_proxy") for rank in children(proxy)]


class ProgramTest(unittest.TestCase):
    """A test with its own folder, and the small study in it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="thompson-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.study = self.write("small.yaml", SMALL_STUDY)

    @classmethod
    def run_once(cls, study, *arguments, **options):
        """Run a study for all tests of a class, each of which takes a copy of the folder returned."""
        folder = tempfile.mkdtemp(prefix="thompson-test-")
        cls.addClassCleanup(shutil.rmtree, folder)
        path, out = os.path.join(folder, "study.yaml"), os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as file:
            file.write(study)
        process = thompson("run", path, "-o", out, *arguments, **options)
        assert process.returncode == 0, process.stderr
        return out

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def write_bytes(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def succeed(self, *arguments, **options):
        process = thompson(*arguments, **options)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process

    def fail_with(self, code, part, *arguments, **options):
        """Check that the program ends with this exit status and one sentence on stderr that contains `part`."""
        process = thompson(*arguments, **options)
        self.assertEqual(process.returncode, code, f"stdout: {process.stdout}\nstderr: {process.stderr}")
        sentences = [line for line in process.stderr.splitlines() if line.startswith("thompson:")]
        self.assertEqual(len(sentences), 1, process.stderr)
        self.assertIn(part, sentences[0])
        return sentences[0]

    def fail_with_usage(self, part, *arguments):
        """Check that the command line itself is refused, with a sentence that contains `part`."""
        process = thompson(*arguments)
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn(part, process.stderr.splitlines()[0])

    def start(self, *arguments, records, ranks=0, environment=None, stderr=subprocess.PIPE):
        """Start the program in the background. Each of its processes waits after so many records until `open_gate`, so that the job is not over before
        the test has done something to it."""
        command = [MPIEXEC, "-n", str(ranks)] if ranks else []
        job = subprocess.Popen([*command, PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=stderr, text=True,
                               env=dict(os.environ, **self.close_gate(records), **(environment or {})))
        self.addCleanup(lambda: job.poll() is None and job.kill())
        return job

    def close_gate(self, records):
        """Close the gate; returns the environment of a job that waits in front of it (support/gate.c)."""
        return {"LD_PRELOAD": os.environ["THOMPSON_GATE_LIBRARY"], "THOMPSON_GATE": self.write("gate", ""), "THOMPSON_GATE_RECORDS": str(records),
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def open_gate(self):
        os.remove(self.path("gate"))

    def wait_until(self, job, condition):
        """Wait for something that a job does before it ends."""
        deadline = time.time() + PATIENCE
        while not condition():
            self.assertIsNone(job.poll(), "the job ended before that")
            self.assertLess(time.time(), deadline)
            time.sleep(0.001)

    def kill_a_rank(self, out, chance, *arguments, ranks):
        """Start a job, wait until a few more tasks or priors are finished, and kill -9 one rank. The gate stays closed until the launcher has ended the
        others, so that they do not finish the work meanwhile."""
        def finished():
            return len(journals.records(out)) + len(glob.glob(os.path.join(out, "priors", "*")))

        more, start = 3 + chance.randrange(6), finished()
        job = self.start(*arguments, "-o", out, records=more, ranks=ranks, stderr=subprocess.DEVNULL)
        self.wait_until(job, lambda: finished() >= start + more)
        os.kill(chance.choice(children(job.pid)), signal.SIGKILL)
        self.assertNotEqual(job.wait(timeout=PATIENCE), 0)
        self.open_gate()

    def assert_same_results(self, first, second):
        """Every variable but seconds*, every dimension and every attribute but provenance: equal to the byte."""
        with netCDF4.Dataset(first) as one, netCDF4.Dataset(second) as two:
            one.set_auto_maskandscale(False)
            two.set_auto_maskandscale(False)
            self.assertEqual({k: len(v) for k, v in one.dimensions.items()}, {k: len(v) for k, v in two.dimensions.items()})
            self.assertEqual(list(one.variables), list(two.variables))
            self.assertGreater(len(one.variables), 0)
            for name, variable in one.variables.items():
                other = two.variables[name]
                self.assertEqual(variable.dimensions, other.dimensions, name)
                self.assertEqual(variable.ncattrs(), other.ncattrs(), name)
                if not name.startswith("seconds"):
                    self.assertEqual(values.values_of(variable), values.values_of(other), f"variable {name} differs")
            for attribute in set(one.ncattrs()) | set(two.ncattrs()):
                if attribute not in PROVENANCE:
                    self.assertEqual(one.getncattr(attribute), two.getncattr(attribute), attribute)


def main():
    """Run the tests of the calling file."""
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]), verbosity=2)
