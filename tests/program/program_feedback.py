"""Rewards that come in batches, late, or never: nothing changes with the defaults; every policy and likelihood; the same bytes for any ranks and blocks;
and rules that count choices."""

import signal
import statistics

import netCDF4
import numpy as np

import journals
import program

POLICIES = ("[ts, mixts, diffts, dps, joint, twisted, localised, exact, smc, smc_tempered, mala, lints, vits1, vits2, vits2_hf, lmc, fgts, vts, rvga, glm_ucb, egreedy,"
            " {name: ts, rule: bayes_ucb, label: ucb}, {name: ts, posterior: per_arm, label: ts arms}, {name: vits2, posterior: per_arm, label: vits2 arms},"
            " {name: rvga, posterior: per_arm, label: rvga arms}%s]")
NETWORK = ", {name: lmc, model: network, hidden: [4], label: network}, tilted, linucb"
STUDY = """
name: late
seed: 5
runs: 10
block: 5
problem: {theta: gm_cross, arms: 6, rounds: 8}
prior: {train_samples: 40, stages: 4, training_steps: 5, hidden: [8, 8], components: 2, mixture_starts: 1}
policies: %s
"""
LATE = ("--set", "feedback.delay=2", "--set", "feedback.delay_distribution=geometric", "--set", "feedback.drop=0.3", "--set", "feedback.batch=2")
# Policies whose draws depend only on the history: without a reward they play from the prior, however many rounds have passed. With clicks and
# counts `ts` and `mixts` draw candidates once a round has passed.
STATELESS = {"gaussian": [0, 1, 2, 3, 4, 5, 6, 7, 11, 19, 20, 21, 22], "logistic": [2, 3, 4, 5, 6, 7, 11, 19, 20], "poisson": [2, 3, 4, 5, 6, 7, 11, 19, 20]}


class Feedback(program.ProgramTest):
    def regret(self, name, *changes, likelihood="gaussian", policies=None, **options):
        policies = policies or POLICIES % (NETWORK if likelihood == "gaussian" else "")
        self.succeed("run", self.write("late.yaml", STUDY % policies), "-o", self.path(name), "--progress", "none", "--set", f"likelihood={likelihood}", *changes, **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            self.assertTrue((data["status"][...] == 1).all())
            return np.ma.filled(data["regret"][0], np.nan)

    def test_defaults(self):
        """One round per batch, no delay, no losses."""
        self.regret("plain")
        self.regret("given", "--set", "feedback.batch=1", "--set", "feedback.delay=0", "--set", "feedback.drop=0", "--set", "feedback.delay_distribution=constant")
        self.regret("no_wait", "--set", "feedback.delay_distribution=geometric")
        self.assert_same_results(self.path("plain/results.nc"), self.path("given/results.nc"))
        with netCDF4.Dataset(self.path("plain/results.nc")) as one, netCDF4.Dataset(self.path("no_wait/results.nc")) as other:
            self.assertEqual(one["regret"][...].tobytes(), other["regret"][...].tobytes())

    def test_every_policy(self):
        """Blocks of another size give the same regret to the bit, although runs learn at different times; a delay or a batch as long as the study means no feedback at all."""
        for likelihood in ("gaussian", "logistic", "poisson"):
            late = self.regret(f"late_{likelihood}", *LATE, likelihood=likelihood)
            blocks = self.regret(f"blocks_{likelihood}", *LATE, "--set", "block=3", likelihood=likelihood)
            self.assertEqual(late.tobytes(), blocks.tobytes())
            never, delayed, gathered = (self.regret(f"{key}_{likelihood}", "--set", f"feedback.{key}={value}", likelihood=likelihood)
                                        for key, value in (("drop", 1), ("delay", 8), ("batch", 9)))
            self.assertEqual(never.tobytes(), delayed.tobytes())
            self.assertEqual(never[STATELESS[likelihood]].tobytes(), gathered[STATELESS[likelihood]].tobytes())
            self.assertTrue((late != never).any(axis=(1, 2)).all())

    def test_constant_delay(self):
        """With a delay D the first D + 1 choices are those without any reward, and the next is not; with batches of m this holds for the first m."""
        never, delayed, gathered = (self.regret(key, "--set", f"feedback.{key}={value}", policies="[ts, linucb]") for key, value in (("drop", 1), ("delay", 4), ("batch", 5)))
        for late in (delayed, gathered):
            self.assertEqual(never[:, :, :5].tobytes(), late[:, :, :5].tobytes())
            self.assertFalse((never[:, :, 5] == late[:, :, 5]).all())

    def test_ranks_and_resume(self):
        small = "[ts, vits2, smc, {name: ts, posterior: per_arm, label: arms}]"
        self.regret("one", *LATE, policies=small)
        for ranks in (2, 3):
            self.regret(str(ranks), *LATE, policies=small, ranks=ranks)
            self.assert_same_results(self.path("one/results.nc"), self.path(f"{ranks}/results.nc"))
        study = self.path("late.yaml")
        for shard in ("0/2", "1/2"):
            self.succeed("run", study, "-o", self.path("shards"), "--progress", "none", "--shard", shard, *LATE)
        self.succeed("reduce", self.path("shards"))
        self.assert_same_results(self.path("one/results.nc"), self.path("shards/results.nc"))

    def test_killed(self):
        """kill -9 once the first task is in, with rewards late, in batches and lost: resumed on 1, 2 and 3 ranks, with the same bytes."""
        more = (*LATE, "--set", "runs=24", "--set", "block=4")
        small = "[ts, vits2, {name: ts, posterior: per_arm, label: arms}]"
        self.regret("whole", *more, policies=small)
        for ranks in (0, 2, 3):
            killed = self.path(f"killed{ranks}")
            job = self.start("run", self.path("late.yaml"), "-o", killed, "--progress", "none", "--set", "likelihood=gaussian", *more, records=1)
            self.wait_until(job, lambda folder=killed: journals.done(folder))
            job.kill()
            self.assertEqual(job.wait(), -signal.SIGKILL)
            self.regret(f"killed{ranks}", "--resume", *more, policies=small, ranks=ranks)
            self.assert_same_results(self.path("whole/results.nc"), f"{killed}/results.nc")

    def test_rounds_are_choices(self):
        """Arm 0 has mean 0 and standard deviation 1, arm 1 mean 0.7 and 0.01: without rewards Bayes-UCB plays arm 0 as long as
        Phi^-1(1 - 1 / (2 (1 + 0.1 (n - t)))) (1 - 0.01) > 0.7, t rounds after the first."""
        with netCDF4.Dataset(self.path("two.nc"), "w") as data:
            data.prior = "gaussian"
            for name, size in (("component", 1), ("dim", 2), ("dim2", 2)):
                data.createDimension(name, size)
            data.createVariable("weight", "f8", ("component",))[:] = 1
            data.createVariable("mean", "f8", ("component", "dim"))[:] = [[0, 0.7]]
            data.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = [np.diag([1, 1e-4])]
        study = (f"name: two\nruns: 8\nproblem: {{theta: mixture, file: {self.path('two.nc')}, features: basis, rounds: 40}}\nfeedback: {{drop: 1}}\n"
                 f"policies: [{{name: ts, prior: {self.path('two.nc')}, rule: bayes_ucb}}]\n")
        self.succeed("run", self.write("two.yaml", study), "-o", self.path("two"), "--progress", "none")
        with netCDF4.Dataset(self.path("two/results.nc")) as data:
            steps = np.diff(data["regret"][0, 0], axis=1, prepend=0) > 1e-9
        z = np.array([statistics.NormalDist().inv_cdf(1 - 1 / (2 * (1 + 0.1 * (40 - t)))) for t in range(40)])
        first = z * 0.99 > 0.7
        self.assertTrue(first[0] and not first[-1])
        # A run has regret either in the rounds of arm 0 or in those of arm 1.
        for run in steps:
            self.assertTrue((run == first).all() or (run == ~first).all())

    def test_filtered(self):
        """Clicks in constant memory: a round without a reward changes nothing, so half of the rewards at d = 2 still teach, also with a posterior for each arm."""
        policies = ("[{name: mixts, prior: exact, memory: filtered}, {name: mixts, prior: exact, memory: {keep: 3}, label: keep},"
                    " {name: ts, posterior: per_arm, memory: filtered}]")
        late = self.regret("late", *LATE, policies=policies, likelihood="logistic")
        blocks = self.regret("blocks", *LATE, "--set", "block=3", policies=policies, likelihood="logistic")
        never = self.regret("never", "--set", "feedback.drop=1", policies=policies, likelihood="logistic")
        self.assertEqual(late.tobytes(), blocks.tobytes())
        self.assertTrue((late != never).any())
        self.fail_with(3, "memory", "run", self.path("late.yaml"), "-o", self.path("no"), "--set", "likelihood=logistic",
                       "--set", "policies=[{name: ts, posterior: per_arm, memory: {keep: 3}}]")

    def test_refused(self):
        for change, part in (("feedback.drop=1.5", "feedback.drop"), ("feedback.batch=0", "feedback.batch"), ("feedback.delay_distribution=gamma", "geometric")):
            self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", change)


if __name__ == "__main__":
    program.main()
