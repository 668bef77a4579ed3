"""`thompson rerun`: just the tasks that are selected run again, ends with the results of a fresh run, and loses nothing if it is interrupted."""

import os
import shutil
import signal
import struct

import netCDF4

import journals
import program

# 2 settings x 3 policies x 3 blocks of 4 runs. The prior concerns mixts alone: ts and index are the same tasks in both settings.
STUDY = """name: again
runs: 12
block: 4
problem: {theta: gaussian, dimension: 2, arms: 4, rounds: 6, noise: 1}
metrics: [regret_floor]
prior: {train_samples: 60, mixture_starts: 1}
policies: [ts, mixts, {name: linucb, label: index}]
sweep: {prior.components: [1, 2]}
"""
TASKS = 6 + 3 + 3    # that differ
ADAPTIVE = ("--set", "runs.target_se=0.3", "--set", "runs.min=8", "--set", "runs.max=40", "--set", "runs.of=regret")
SPREAD = """name: spread
study: posterior
runs: 4
block: 2
draws: 10
metrics: [moments]
problem: {family: inverse, theta: gm_sphere, dimension: 6, arms: 3, snr: 0.7, condition_number: 1, sample_sizes: [3]}
policies: [{name: tilted, prior: exact}, {name: mixts, prior: exact}]
prior: {stages: 8, alpha: 0.8, standardise: false}
linear_algebra: {distributed_from: 2}
"""
MOODY = """import os
def sample(x, y, rng, about):
    if os.environ["MOOD"] == "bad":
        raise ValueError("not today")
    return rng.standard_normal((len(x), 2))
"""


class Rerun(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(STUDY)

    def setUp(self):
        super().setUp()
        self.out = self.path("out")
        shutil.copytree(self.finished, self.out)

    def spoil(self):
        """Other curves in all finished tasks, whose journals come first in the folder; the results say so."""
        def change(payload):
            middle = len(payload) // 16 * 8    # curves are most of a record
            return payload[:middle] + struct.pack("<d", 1e6) + payload[middle + 8 :]

        journals.rewrite(self.out, change)
        for i, path in enumerate(journals.files(self.out)):
            os.rename(path, os.path.join(os.path.dirname(path), f"{i:016x}.journal"))

    def rerun(self, count, *words, ranks=0, out=None, **options):
        out = out or self.out
        before = len(journals.records(out))
        self.assertIn(f"{count} task{'s' * (count != 1)} would run again\n", self.succeed("rerun", out, *words, "--dry-run", **options).stdout)
        self.assertEqual(len(journals.records(out)), before)
        process = self.succeed("rerun", out, *words, ranks=ranks, **options)
        self.assertEqual(len(journals.records(out)) - before, count)
        self.assertIn(f"results: {out}/results.nc\n", process.stdout)

    def same(self):
        self.assert_same_results(f"{self.out}/results.nc", f"{self.finished}/results.nc")

    def test_all(self):
        """What the folder held does not matter: not the curves of the old records, nor those that policies share, nor the names of the files."""
        for ranks in (0, 3):
            self.spoil()
            self.succeed("reduce", self.out)
            with netCDF4.Dataset(f"{self.out}/results.nc") as file:
                self.assertTrue((file["regret"][...] == 1e6).any() or (file["regret_floor"][...] == 1e6).any())
            self.rerun(TASKS, ranks=ranks)
            self.same()
        self.succeed("verify", self.out, "--tasks", "3")

    def test_selected(self):
        for count, words in ((3, ("--policy", "mixts", "--setting", "prior.components=2")), (3, ("--policy", "ts")), (9, ("--setting", "prior.components=1"))):
            shown = self.succeed("rerun", self.out, *words, "--dry-run").stdout
            self.assertEqual(shown.count("): done\n"), count)
            for policy in {"ts", "mixts", "index"} & set(words):
                self.assertEqual(shown.count(f"policy {policy}, "), count)
            self.rerun(count, *words)
            self.same()
        self.assertIn("0 tasks would run again", self.succeed("rerun", self.out, "--failed", "--dry-run").stdout)
        self.assertIn("no such task has ended", self.succeed("rerun", self.out, "--failed").stdout)

    def test_refused(self):
        self.assertIn("allowed: prior.components=1 | prior.components=2", self.fail_with(2, "'prior.components=3' is not a setting", "rerun", self.out, "--setting",
                                                                                      "prior.components=3"))
        self.assertIn("allowed: ts | mixts | index", self.fail_with(2, "'lints' is not a policy", "rerun", self.out, "--policy", "lints", "--dry-run"))
        self.fail_with(3, "no study.yaml", "rerun", self.folder)

    def test_edited(self):
        """The study is the last one that the folder took: unused tasks do not run."""
        study = self.write("again.yaml", STUDY)
        self.succeed("run", study, "-o", self.out, "--resume", "--set", "policies=[mixts]")
        self.rerun(6)

    def test_adaptive_and_unfinished(self):
        """All waves at once; where tasks are missing they stay so."""
        study, out = self.write("again.yaml", STUDY), self.path("waves")
        self.succeed("run", study, "-o", out, *ADAPTIVE, "--set", "policies=[mixts]")
        before = shutil.copy(f"{out}/results.nc", self.path("before.nc"))
        self.rerun(len(journals.records(out)), out=out, ranks=2)
        self.assert_same_results(f"{out}/results.nc", before)
        journals.remove(self.out, 1, 2)
        os.remove(f"{self.out}/results.nc")
        self.rerun(1, "--policy", "ts")
        with netCDF4.Dataset(f"{self.out}/results.nc") as file:
            self.assertEqual(file["status"][0, 0].tolist(), [1] * 4 + [0] * 8)

    def test_spread(self):
        """Settings whose matrices are spread over ranks, on one."""
        out = self.path("spread")
        self.succeed("run", self.write("spread.yaml", SPREAD), "-o", out)
        before = shutil.copy(f"{out}/results.nc", self.path("before.nc"))
        self.rerun(2, "--policy", "mixts", out=out)
        self.assert_same_results(f"{out}/results.nc", before)

    def test_failed(self):
        """Tasks that failed run again when their cause is gone; one that fails now keeps what it had."""
        self.write("moody.py", MOODY)
        policies = "policies=[ts, {name: python, module: moody, callable: sample, label: moody}]"
        study, out = self.write("again.yaml", STUDY), self.path("moody")
        words = ("-o", out, "--set", policies, "--set", "prior.components=1")
        good, bad = ({"PYTHONPATH": self.folder, "MOOD": mood} for mood in ("good", "bad"))
        self.succeed("run", study, *words, environment=good)
        fresh = shutil.copy(f"{out}/results.nc", self.path("fresh.nc"))
        self.fail_with(5, "3 tasks failed; what they had before is kept", "rerun", out, "--policy", "moody", environment=bad)
        self.assert_same_results(f"{out}/results.nc", fresh)
        shutil.rmtree(out)
        self.assertEqual(program.thompson("run", study, *words, environment=bad).returncode, 5)
        listed = self.succeed("rerun", out, "--failed", "--dry-run").stdout
        self.assertEqual(listed.count("policy moody"), 3)
        self.assertEqual(listed.count("not today"), 3)
        self.rerun(3, "--failed", environment=good, ranks=2, out=out)
        self.assert_same_results(f"{out}/results.nc", fresh)

    def test_interrupted(self):
        """By kill -9 and by SIGTERM: every task still has one of its records."""
        for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 75)):
            before = len(journals.records(self.out))
            job = self.start("rerun", self.out, records=3)
            self.wait_until(job, lambda before=before: len(journals.records(self.out)) == before + 3)
            job.send_signal(number)
            if number == signal.SIGTERM:
                self.open_gate()
            error = job.communicate(timeout=program.PATIENCE)[1]
            self.assertEqual(job.returncode, code)
            if number == signal.SIGTERM:
                self.assertRegex(error, rf"\d+ of {TASKS} tasks in {self.out} were not run again, and have what they had before")
            self.assertIn("18 tasks: 18 done, 0 failed, 0 left", self.succeed("status", self.out).stdout)
            self.succeed("reduce", self.out)
            self.same()
        self.rerun(TASKS)
        self.same()


if __name__ == "__main__":
    program.main()
