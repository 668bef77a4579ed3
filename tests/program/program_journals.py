"""The journals of finished tasks: results do not depend on how runs are split into tasks, whatever happened; there are few files, and damage is noticed."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time

import journals
import netCDF4

import program

STUDY = """
name: journals
study: bandit
seed: 7
runs: 200
block: 1
problem: {theta: cross, arms: 5, rounds: 20}
policies: [ts, random]
"""
TASKS = 400


def zeros(data):
    return data[:-100] + bytes(100)


def cut(data):
    """Cut within a record."""
    return data[:-100]


def flipped(data):
    """Change one byte of a curve."""
    return data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]


def header(data):
    """Change one byte of the first header."""
    return data[:80] + bytes([data[80] ^ 1]) + data[81:]


def rewrite(path, how):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(how(data))


class JournalTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.study = self.write("s.yaml", STUDY)
        self.out, self.results = self.path("out"), self.path("out/results.nc")

    def assert_same_values(self, first, second):
        """Check that all variables except the seconds are equal to the byte."""
        with netCDF4.Dataset(first) as one, netCDF4.Dataset(second) as two:
            self.assertEqual(set(one.variables), set(two.variables))
            for name in one.variables:
                if not name.startswith("seconds"):
                    self.assertEqual(one[name][...].tobytes(), two[name][...].tobytes(), name)


class Whole(JournalTest):
    def test_same_results_on_any_number_of_ranks(self):
        """Results are also the same as with 20 tasks; there is one journal for each rank that had a task, in which a separate reader finds each task once."""
        self.succeed("run", self.study, "-o", self.path("few"), "--set", "block=20")
        for ranks in (0, 2, 4):
            with self.subTest(ranks=ranks):
                shutil.rmtree(self.out, ignore_errors=True)
                process = self.succeed("run", self.study, "-o", self.out, ranks=ranks)
                self.assertIn(f"running tasks: {TASKS}/{TASKS} in", process.stderr)
                self.assertLessEqual(len(journals.files(self.out)), max(1, ranks))
                self.assertTrue(all(re.fullmatch(journals.NAME, name) for name in os.listdir(os.path.join(self.out, "tasks"))))
                self.assertEqual(sorted(record.task for record in journals.records(self.out)), list(range(TASKS)))
                self.assert_same_values(self.results, self.path("few/results.nc"))
        self.assertIn("same", self.succeed("verify", self.out).stdout)
        self.assertIn(f"{TASKS} done, 0 failed, 0 left", self.succeed("status", self.out).stdout)
        os.remove(self.results)
        self.succeed("reduce", self.out, ranks=3)
        self.assert_same_values(self.results, self.path("few/results.nc"))

    def test_shards(self):
        """Two shards at once, into one folder."""
        jobs = [subprocess.Popen([program.PROGRAM, "run", self.study, "-o", self.out, "--shard", f"{shard}/2", "--progress", "none"]) for shard in range(2)]
        self.assertEqual([job.wait(timeout=program.PATIENCE) for job in jobs], [0, 0])
        self.assertEqual(len(journals.files(self.out)), 2)
        self.assertEqual(journals.done(self.out), set(range(TASKS)))
        self.succeed("reduce", self.out)
        self.succeed("run", self.study, "-o", self.path("one"))
        self.assert_same_results(self.results, self.path("one/results.nc"))


class Adaptive(JournalTest):
    ARGUMENTS = ("--set", "runs={min: 300, max: 1200, target_se: 0.3}", "--set", "policies=[ts, egreedy]")

    def test_waves(self):
        """Every rank reads what the others wrote in a wave; damage is repaired before the next one."""
        self.succeed("run", self.study, "-o", self.path("one"), *self.ARGUMENTS)
        self.succeed("run", self.study, "-o", self.out, *self.ARGUMENTS, ranks=3)
        self.assert_same_results(self.results, self.path("one/results.nc"))
        waves = len(journals.done(self.out))
        self.assertGreater(waves, 600, "more than the first wave")
        for path, how in zip(journals.files(self.out), (flipped, header)):
            rewrite(path, how)
        process = self.succeed("run", self.study, "-o", self.out, *self.ARGUMENTS, "--resume", ranks=2)
        self.assertIn("runs again", process.stderr)
        self.assertIn("damaged records are dropped", process.stderr)
        self.assertEqual(len(journals.done(self.out)), waves)
        self.assert_same_results(self.results, self.path("one/results.nc"))


class Damage(JournalTest):
    def test_damage(self):
        """`verify` names the damage; `reduce` writes the results of the others and ends with 5; `run --resume` computes what cannot be read, after which
        nothing is damaged any more."""
        whole = self.path("whole")
        self.succeed("run", self.study, "-o", whole, ranks=3)
        for how, known in ((zeros, True), (flipped, True), (header, False), (cut, False)):
            with self.subTest(how=how.__name__):
                shutil.rmtree(self.out, ignore_errors=True)
                shutil.copytree(whole, self.out)
                path = journals.files(self.out)[-1]
                rewrite(path, how)
                lost = TASKS - len(journals.done(self.out))
                self.assertGreaterEqual(lost, 1)
                answer = program.thompson("verify", self.out, "--tasks", 1)
                self.assertEqual(answer.returncode, 7, answer.stderr)
                self.assertIn("UNUSABLE: " if known else f"tasks/{os.path.basename(path)}: UNUSABLE: ", answer.stdout)
                self.fail_with(6, "finished runs", "reduce", self.out)
                os.remove(self.results)
                before = os.stat(path)
                for ranks in (0, 3):
                    answer = program.thompson("reduce", self.out, ranks=ranks)
                    self.assertEqual(answer.returncode, 5, answer.stderr)
                    self.assertIn(os.path.basename(path), answer.stderr)
                with netCDF4.Dataset(self.results) as file:
                    self.assertEqual(int((file["status"][:] != 1).sum()), lost)
                self.assertEqual((os.stat(path).st_size, os.stat(path).st_mtime_ns), (before.st_size, before.st_mtime_ns), "reduce changes no journal")
                answer = self.succeed("run", self.study, "-o", self.out, "--resume", ranks=2)
                self.assertIn("run again" if not known else "runs again", answer.stderr)
                self.assertIn(f"running tasks: {lost}/{lost} in", answer.stderr)
                self.assertEqual(journals.done(self.out), set(range(TASKS)))
                self.assert_same_results(self.results, os.path.join(whole, "results.nc"))
                self.succeed("verify", self.out)
                self.succeed("reduce", self.out)


class Kills(JournalTest):
    def test_kills_and_stops(self):
        """What counted as done is there after kill -9, and so is what a stopped job still wrote; nothing is left over."""
        self.succeed("run", self.study, "-o", self.path("whole"))
        chance = random.Random(3)
        for sign in (signal.SIGKILL, signal.SIGUSR1):
            before = journals.done(self.out)
            job = self.start("run", self.study, "-o", self.out, "--resume", "--progress", "none", records=50, ranks=2, stderr=subprocess.DEVNULL)
            self.wait_until(job, lambda before=before: journals.done(self.out) > before)
            time.sleep(0.05 * chance.random())
            ranks = program.children(job.pid)
            for rank in ranks:
                os.kill(rank, signal.SIGSTOP)
            done = self.status()
            for rank in ranks:
                with contextlib.suppress(ProcessLookupError):  # once one is killed, mpiexec kills the others
                    os.kill(rank, sign)
                    os.kill(rank, signal.SIGCONT)
            self.open_gate()
            self.assertNotEqual(job.wait(timeout=program.PATIENCE), 0)
            self.assertGreaterEqual(self.status(), done)
            self.assertTrue(before <= journals.done(self.out))
        left = TASKS - len(journals.done(self.out))
        process = self.succeed("run", self.study, "-o", self.out, "--resume", ranks=2)
        self.assertIn(f"running tasks: {left}/{left} in", process.stderr)
        self.assertEqual([name for _, _, names in os.walk(self.out) for name in names if name.endswith((".tmp", ".bad"))], [])
        self.assert_same_results(self.results, self.path("whole/results.nc"))

    def status(self):
        return int(self.succeed("status", self.out).stdout.split(":")[1].split()[0])


if __name__ == "__main__":
    program.main()
