"""Adaptive numbers of runs: the target is reached, the waves are those of the rule, and nothing depends on ranks or interruptions."""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess

import netCDF4
import numpy as np

import journals
import program

STUDY = """
name: adaptive
study: bandit
seed: 11
runs: {min: 12, max: 120, target_se: 1.4, of: regret_diff}
block: 6
problem: {theta: cross, arms: 10, rounds: 30}
policies: [ts, tuned_ts, mixts, linucb, egreedy]
prior: {train_samples: 500, replicates: 2, mixture_starts: 1}
sweep:
  problem.theta: [cross, rays, H]
"""


def se(values):
    return values.std(ddof=1) / math.sqrt(len(values))


class Adaptive(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.study = self.write("adaptive.yaml", STUDY)

    def run_study(self, name, *arguments, ranks=0):
        self.succeed("run", self.study, "-o", self.path(name), "--progress", "none", *arguments, ranks=ranks)
        return self.path(f"{name}/results.nc")

    def load(self, path):
        with netCDF4.Dataset(path) as data:
            return {name: np.ma.filled(data[name][...], np.nan) if data[name].dtype.kind == "f" else np.asarray(data[name][...]) for name in data.variables}

    def expected_runs(self, regret, block, least, most, target):
        """The rule implemented again, from regret[policy, run] at the last round: waves of whole blocks until the largest standard error is small enough."""
        runs = math.ceil(least / block) * block
        while True:
            largest = max(se(policy[:runs] - regret[0, :runs]) for policy in regret[1:])
            if largest <= target or runs == most:
                return runs
            growth = min(4, max(1.1, (largest / target) ** 2))
            runs = min(most, math.ceil(runs // block * growth) * block)

    def test_waves_and_target(self):
        data = self.load(self.run_study("one"))
        status, regret = data["status"], data["regret"]
        used = (status == 1).sum(-1)
        self.assertTrue((used == used[:, :1]).all(), "all policies of a setting have the same runs")
        self.assertEqual(status.shape[-1], used.max(), "the dimension run is the largest used")
        self.assertGreater(len(set(used[:, 0])), 1, "settings end at different numbers of runs")
        for s, runs in enumerate(used[:, 0]):
            self.assertTrue((status[s, :, :runs] == 1).all() and (status[s, :, runs:] == 0).all())
            self.assertTrue(np.isfinite(regret[s, :, :runs]).all() and np.isnan(regret[s, :, runs:]).all())
            self.assertTrue((data["regret_n"][s] == runs).all())
            self.assertTrue((data["regret_diff_se"][s, 1:, -1] <= 1.4).all())
            self.assertEqual(runs, self.expected_runs(regret[s, :, :, -1], 6, 12, 120, 1.4))
            np.testing.assert_allclose(data["regret_diff_se"][s, 1:, -1], [se(policy[:runs, -1] - regret[s, 0, :runs, -1]) for policy in regret[s, 1:]])
        np.testing.assert_array_equal(data["replicate"], np.arange(used.max()) // 6 % 2)
        means = [[regret[0, :, :used[0, 0]][:, data["replicate"][:used[0, 0]] == r].mean(1)] for r in (0, 1)]
        np.testing.assert_allclose(data["regret_se_replicate"][0], np.std(means, axis=0, ddof=1)[0] / math.sqrt(2), rtol=1e-9)

    def test_most_runs(self):
        data = self.load(self.run_study("one", "--set", "runs.target_se=0.001", "--set", "runs.max=50"))
        self.assertTrue((data["status"] == 1).all())
        self.assertEqual(data["status"].shape[-1], 50)

    def test_runs_are_those_of_a_fixed_study(self):
        """With one replicate, a run has the same world and the same prior however many runs there are."""
        adaptive = self.load(self.run_study("one", "--set", "prior.replicates=1"))
        fixed = self.load(self.run_study("two", "--set", "prior.replicates=1", "--set", "runs=60"))
        runs = min(60, (adaptive["status"][0, 0] == 1).sum())
        self.assertEqual(adaptive["regret"][0, :, :runs].tobytes(), fixed["regret"][0, :, :runs].tobytes())

    def test_any_number_of_ranks(self):
        reference = self.run_study("one")
        for ranks in (1, 2, 3, 4):
            self.assert_same_results(reference, self.run_study(f"ranks{ranks}", ranks=ranks))
        self.succeed("reduce", self.path("ranks3"))
        self.assert_same_results(reference, self.path("ranks3/results.nc"))
        self.assertIn("same", self.succeed("verify", self.path("ranks3")).stdout)

    def test_killed_and_resumed(self):
        """kill -9 of a rank, three times, on different numbers of ranks; then resumed to the end on yet another."""
        reference = self.run_study("one")
        chance = random.Random(2)
        for ranks, mode in ((2, []), (3, ["--resume"]), (2, ["--resume"])):
            self.kill_a_rank(self.path("killed"), chance, "run", self.study, *mode, ranks=ranks)
        self.assert_same_results(reference, self.run_study("killed", "--resume", ranks=4))

    def test_tasks_that_are_damaged_between_jobs(self):
        """Records of the first wave and of later ones, of several policies and settings: one job repairs all of them, and runs nothing else."""
        reference = self.run_study("one")
        for ranks in (1, 3):
            out = self.run_study(f"torn{ranks}").removesuffix("results.nc")
            names = sorted(journals.done(out))
            torn = {names[0], names[1], names[3], names[len(names) // 2], names[-1]}
            journals.damage(out, *torn)
            process = self.succeed("run", self.study, "-o", out, "--resume", "--progress", "plain", ranks=ranks)
            self.assertEqual(process.stderr.count("it runs again"), len(torn), process.stderr)
            self.assertEqual(sum(int(n) for n in re.findall(r"running tasks: (\d+)/\1 in", process.stderr)), len(torn), process.stderr)
            self.assert_same_results(reference, out + "results.nc")

    def test_failure_before_what_an_earlier_job_did(self):
        """A job that stops at a failure in the first wave, while tasks of later waves exist, does not count as one with damaged records."""
        more = ("--set", "problem.rounds=4000", "--set", "policies=[ts, linucb]", "--set", "runs.target_se=0.1", "--set", "problem.theta=cross")
        reference = self.run_study("one", *more)
        shutil.copytree(self.path("one"), self.path("out"))
        journals.remove(self.path("out"), 0, 1, 20, 21, 5, 25)  # all of the first wave, some of the last
        self.fail_with(5, "1 task failed, the rest were not started", "run", self.study, "-o", self.path("out"), *more, "--resume", "--fail-fast",
                       "--task-timeout", "0.001")
        self.assertEqual(sum(record.status == 2 for record in journals.records(self.path("out"))), 1)
        self.assert_same_results(reference, self.run_study("out", *more, "--resume"))

    def test_first_policy_that_always_fails(self):
        """If the first policy always fails, nothing can be compared with it: the setting ends after its first runs and says so; its failed tasks
        determine the exit status."""
        first = "policies=[{name: vits1, steps: 100000}, linucb, random]"
        process = program.thompson("run", self.study, "-o", self.path("out"), "--set", first, "--set", "problem.dimension=30",
                                   "--set", "problem.theta=gaussian", "--task-timeout", "0.5")
        self.assertEqual(process.returncode, 5, process.stderr)
        lines = [line for line in process.stderr.splitlines() if "without reaching its target" in line]
        self.assertEqual(len(lines), 1, process.stderr)
        for part in ("after 12 runs", "regret_diff", "vits1"):
            self.assertIn(part, lines[0])
        data = self.load(self.path("out/results.nc"))
        self.assertEqual(data["run"].size, 12)
        self.assertTrue((data["status"][0, 0] == 2).all() and (data["status"][0, 1:] == 1).all())

    def test_partial_results(self):
        """An early stop between waves: `status` and `reduce` report what is there, --resume continues."""
        reference = self.run_study("one")
        job = self.start("run", self.study, "-o", self.path("part"), records=1, stderr=subprocess.DEVNULL)
        self.wait_until(job, lambda: journals.done(self.path("part")))
        job.send_signal(signal.SIGUSR1)
        self.open_gate()
        self.assertEqual(job.wait(timeout=program.PATIENCE), 75)
        status = json.loads(self.succeed("status", self.path("part"), "--json").stdout)
        self.assertFalse(status["settings"][0]["ended"] and status["settings"][2]["ended"])
        self.succeed("reduce", self.path("part"))
        self.assert_same_results(reference, self.run_study("part", "--resume", ranks=2))

    def test_status_tells_standard_errors(self):
        for name, settings in (("adaptive", []), ("fixed", ["--set", "runs=20"])):
            data = self.load(self.run_study(name, *settings))
            status = json.loads(self.succeed("status", self.path(name), "--json").stdout)
            self.assertEqual(status["se_of"], "regret_diff")
            self.assertEqual(status["target_se"], 1.4 if name == "adaptive" else None)
            self.assertEqual(status["left"], 0)
            for s, setting in enumerate(status["settings"]):
                self.assertTrue(setting["ended"])
                self.assertEqual(setting["runs_asked"], (data["status"][s, 0] == 1).sum())
                np.testing.assert_allclose([*setting["se"].values()][1:], data["regret_diff_se"][s, 1:, -1], rtol=1e-5)
                np.testing.assert_allclose([*setting["se"].values()][0], data["regret_se"][s, 0, -1], rtol=1e-5)
            self.assertIn("egreedy", self.succeed("status", self.path(name)).stdout)

    def test_posterior_study(self):
        text = """
name: posterior
study: posterior
runs: {min: 4, max: 60, target_se: 0.02, of: emd}
block: 4
problem: {theta: gm_cross, sample_sizes: [1, 5]}
draws: 40
policies: [exact, {name: ts, prior: gaussian}]
prior: {train_samples: 200}
"""
        study = self.write("posterior.yaml", text)
        for ranks in (1, 3):
            self.succeed("run", study, "-o", self.path(f"p{ranks}"), ranks=ranks)
        self.assert_same_results(self.path("p1/results.nc"), self.path("p3/results.nc"))
        data = self.load(self.path("p1/results.nc"))
        self.assertTrue((data["emd_se"][..., -1] <= 0.02).all() or data["run"].size == 60)
        self.assertGreater(data["run"].size, 4)

    def test_refusals(self):
        self.fail_with(2, "runs=512", "run", self.study, "-o", self.path("out"), "--shard", "0/2")
        fixed = self.write("fixed.yaml", STUDY.replace("runs: {min: 12, max: 120, target_se: 1.4, of: regret_diff}", "runs: 12"))
        sentence = self.fail_with(3, "--set runs.max=70: key 'runs.max': needs 'runs.target_se'", "plan", fixed, "--set", "runs=64", "--set", "runs.max=70")
        self.assertIn("to give 'runs' as one value, leave out 'runs.max'", sentence)
        self.assertFalse(os.path.exists(self.path("out")))
        self.run_study("one")
        self.fail_with(6, "name: adaptive -> other", "run", self.study, "-o", self.path("one"), "--resume", "--set", "name=other", ranks=2)


if __name__ == "__main__":
    program.main()
