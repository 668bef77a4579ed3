"""Studies of more than 1 024 tasks, whose finished tasks are kept in bundles: the results are those of the same runs in few tasks, whatever happened,
files are few, and damage is noticed."""

import glob
import os
import random
import shutil
import signal
import subprocess
import time

import netCDF4

import program

STUDY = """
name: bundles
study: bandit
seed: 7
runs: 600
block: 1
problem: {theta: cross, arms: 5, rounds: 20}
policies: [ts, random]
"""
TASKS = 1200
LONGER = ("--set", "problem.rounds=1000")  # a second or more
SEAL = 72  # bytes of the checksum at the end of a file


def zeros(data):
    return data[:-100] + bytes(100)


def zero(data):
    """The last byte of the checksum is gone, the rest is whole."""
    return data[:-1] + b"\0"


def cut(data):
    return data[: len(data) // 2]


def flipped(data):
    """One byte of a curve."""
    return data[: -SEAL - 40] + bytes([data[-SEAL - 40] ^ 1]) + data[-SEAL - 39 :]


class BundleTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.study = self.write("s.yaml", STUDY)
        self.out, self.results = self.path("out"), self.path("out/results.nc")

    def files(self, pattern="*", out=None):
        return sorted(glob.glob(os.path.join(out or self.out, "tasks", pattern)))

    def kept(self):
        """Tasks that are in files, as anybody reads them."""
        found = set()
        for path in self.files("*-*.nc"):
            with netCDF4.Dataset(path) as file:
                found |= set(file["task"][:].tolist())
        return found

    def assert_same_values(self, first, second):
        """All variables but the seconds, to the byte."""
        with netCDF4.Dataset(first) as one, netCDF4.Dataset(second) as two:
            self.assertEqual(set(one.variables), set(two.variables))
            for name in one.variables:
                if not name.startswith("seconds"):
                    self.assertEqual(one[name][...].tobytes(), two[name][...].tobytes(), name)


class Whole(BundleTest):
    def test_same_results_on_any_number_of_ranks(self):
        """And the same as of 20 tasks in a file each; one file for each rank that had a task."""
        self.succeed("run", self.study, "-o", self.path("few"), "--set", "block=60")
        self.assertEqual(len(self.files(out=self.path("few"))), 20)
        for ranks in (0, 2, 3, 4):
            with self.subTest(ranks=ranks):
                shutil.rmtree(self.out, ignore_errors=True)
                process = self.succeed("run", self.study, "-o", self.out, ranks=ranks)
                self.assertIn(f"running tasks: {TASKS}/{TASKS} in", process.stderr)
                self.assertLessEqual(len(self.files()), max(1, ranks))
                self.assertEqual(self.kept(), set(range(TASKS)))
                self.assert_same_values(self.results, self.path("few/results.nc"))
        self.assertIn("same", self.succeed("verify", self.out).stdout)
        self.assertIn(f"{TASKS} done, 0 failed, 0 left", self.succeed("status", self.out).stdout)
        os.remove(self.results)
        self.succeed("reduce", self.out, ranks=3)
        self.assert_same_values(self.results, self.path("few/results.nc"))

    def test_shards(self):
        """At once, into one folder."""
        jobs = [subprocess.Popen([program.PROGRAM, "run", self.study, "-o", self.out, "--shard", f"{shard}/2", "--progress", "none"]) for shard in range(2)]
        self.assertEqual([job.wait(timeout=program.PATIENCE) for job in jobs], [0, 0])
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(self.kept(), set(range(TASKS)))
        self.succeed("reduce", self.out)
        self.succeed("run", self.study, "-o", self.path("one"))
        self.assert_same_results(self.results, self.path("one/results.nc"))

    def test_overwrite(self):
        """The study's own bundles go; one of others under such a name is refused."""
        self.succeed("run", self.study, "-o", self.out)
        mine = os.path.join(self.out, "tasks", "000000-000009-0123456789abcdef.nc")
        with open(mine, "w", encoding="utf-8") as file:
            file.write("mine")
        before = self.files()
        self.fail_with(4, "000000-000009-0123456789abcdef.nc", "run", self.study, "-o", self.out, "--overwrite")
        self.assertEqual(self.files(), before)
        os.rename(mine, mine + ".orig")
        self.succeed("run", self.study, "-o", self.out, "--overwrite", "--set", "block=600")
        self.assertEqual([os.path.basename(path) for path in self.files()], ["000000-000009-0123456789abcdef.nc.orig", "000000.nc", "000001.nc"])


class Adaptive(BundleTest):
    ARGUMENTS = ("--set", "runs={min: 300, max: 1200, target_se: 0.3}", "--set", "policies=[ts, egreedy]")

    def test_waves(self):
        """Every rank reads what the others wrote in the wave; damage of one wave is repaired before the next."""
        self.succeed("run", self.study, "-o", self.path("one"), *self.ARGUMENTS)
        self.succeed("run", self.study, "-o", self.out, *self.ARGUMENTS, ranks=3)
        self.assert_same_results(self.results, self.path("one/results.nc"))
        waves = len(self.kept())
        self.assertGreater(waves, 600, "more than the first wave")
        for path in self.files()[:2]:
            rewrite(path, flipped)
        process = self.succeed("run", self.study, "-o", self.out, *self.ARGUMENTS, "--resume", ranks=2)
        self.assertIn("set aside", process.stderr)
        self.assertEqual(len(self.kept()), waves)
        self.assertEqual(len(self.files("*.bad")), 2)
        self.assert_same_results(self.results, self.path("one/results.nc"))


def rewrite(path, how):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(how(data))


class Damage(BundleTest):
    def test_damage(self):
        """`verify` names it; `reduce` writes the results of the others and ends with 5; `run --resume` keeps all tasks that are whole, if
        the file is as long as it was, and computes the others."""
        whole = self.path("whole")
        self.succeed("run", self.study, "-o", whole, ranks=3)
        for how, damaged in ((zeros, 1), (zero, 0), (cut, TASKS), (flipped, 1)):
            with self.subTest(how=how.__name__):
                shutil.rmtree(self.out, ignore_errors=True)
                shutil.copytree(whole, self.out)
                path = self.files()[1]
                with netCDF4.Dataset(path) as file:
                    lost = len(file.dimensions["task"])
                rewrite(path, how)
                name = os.path.basename(path)
                answer = program.thompson("verify", self.out, "--tasks", 1)
                self.assertEqual(answer.returncode, 7, answer.stderr)
                self.assertIn(f"tasks/{name}: UNUSABLE: ", answer.stdout)
                self.fail_with(6, "finished runs", "reduce", self.out)
                os.remove(self.results)
                for ranks in (0, 3):
                    answer = program.thompson("reduce", self.out, ranks=ranks)
                    self.assertEqual(answer.returncode, 5, answer.stderr)
                    self.assertIn(name, answer.stderr)
                with netCDF4.Dataset(self.results) as file:
                    self.assertEqual(int((file["status"][:] != 1).sum()), 1 if how is flipped else lost)
                self.assertEqual(len(self.files("*.bad")), 0, "reduce sets nothing aside")
                answer = self.succeed("run", self.study, "-o", self.out, "--resume", ranks=2)
                again = min(damaged, lost)
                self.assertIn(f"{lost - again} of its tasks are whole", answer.stderr)
                self.assertEqual(f"running tasks: {again}/{again} in" in answer.stderr, again > 0)
                self.assertEqual(self.files("*.bad"), [path + ".bad"])
                self.assertEqual(self.kept(), set(range(TASKS)))
                self.assert_same_results(self.results, os.path.join(whole, "results.nc"))


class Kills(BundleTest):
    def test_kills_and_stops(self):
        """What counted as done is there after kill -9; what was drained too, and nothing is left over."""
        self.succeed("run", self.study, "-o", self.path("whole"), *LONGER)
        chance = random.Random(3)
        for sign in (signal.SIGKILL, signal.SIGUSR1):
            before, files = self.kept(), self.files()
            job = subprocess.Popen([program.MPIEXEC, "-n", "2", program.PROGRAM, "run", self.study, "-o", self.out, *LONGER, "--resume", "--progress", "none"],
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            while job.poll() is None and set(self.files("*-*.nc")) <= set(files):
                time.sleep(0.02)
            time.sleep(0.2 * chance.random())
            done = self.status()
            for rank in program.children(job.pid):
                os.kill(rank, sign)
            self.assertNotEqual(job.wait(timeout=program.PATIENCE), 0)
            self.assertGreaterEqual(self.status(), done)
            self.assertTrue(before <= self.kept())
        left = TASKS - len(self.kept())
        process = self.succeed("run", self.study, "-o", self.out, *LONGER, "--resume", ranks=2)
        self.assertIn(f"running tasks: {left}/{left} in", process.stderr)
        self.assertEqual([name for _, _, names in os.walk(self.out) for name in names if name.endswith((".tmp", ".bad"))], [])
        self.assert_same_results(self.results, self.path("whole/results.nc"))

    def status(self):
        return int(self.succeed("status", self.out).stdout.split(":")[1].split()[0])


if __name__ == "__main__":
    program.main()
