"""The replay study: equal to its estimators in NumPy, intervals that contain the truth, logs of bandit studies, any ranks, kill and resume; damaged logs and
policies without probabilities are refused."""

import signal

import netCDF4
import numpy as np

import journals
import program
import replay

BANDIT = """
name: log
runs: %d
block: 3
event_log: true
problem: {theta: cross, arms: 3, rounds: 40}
policies: [random, {name: ts, floor: 0.1, label: a/b}, {name: ts, rule: greedy, posterior: per_arm, floor: 0.05, label: arms}, egreedy]
"""
ALL = ("--set", "estimators=[ips, snips, dr, replay]")


class Replay(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.log = replay.World().log(np.random.default_rng(2), 400)
        replay.write(self.path("log.nc"), self.log)
        self.study = self.write("replay.yaml", replay.STUDY % self.path("log.nc"))

    def results(self, name, *arguments, **options):
        self.succeed("run", self.study, "-o", self.path(name), "--progress", "none", *arguments, **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return {key: np.ma.filled(data[key][0], np.nan) for key in ("value", "value_se", "value_low", "value_high", "effective_sample_size", "mean_weight")}

    def write_csv(self, name, log):
        rows = [",".join(map(repr, [*x, int(arm), y, p])) for x, arm, y, p in zip(log["context"].tolist(), log["arm"], log["reward"].tolist(), log["propensity"].tolist())]
        return self.write(name, "x1,x2,x3,arm,reward,propensity\n" + "\n".join(rows) + "\n")

    def test_numpy(self):
        """Each run has its own split, and the value is the mean over runs; to 1e-10, since sums of 400 terms are taken in a different order. The bootstrap has
        1 000 samples, so its standard error has an error of 2.2%; that of ips is known (one run, 200 events)."""
        for runs in (1, 3):
            got = self.results(f"runs{runs}", *ALL, "--set", f"runs={runs}", "--set", "block=2")
            frozen = [replay.values(self.log, run=run)[0] for run in range(runs)]
            met = [replay.replayed(self.log, run=run) for run in range(runs)]
            wanted = [np.mean([f[name] for f in frozen]) for name in ("ips", "snips", "dr")] + [np.mean([value for value, _ in met])]
            np.testing.assert_allclose(got["value"][0], wanted, rtol=0, atol=1e-10)
            np.testing.assert_allclose(got["effective_sample_size"][0], [np.mean([f["size"] for f in frozen])] * 3 + [np.mean([n for _, n in met])], rtol=1e-10)
            np.testing.assert_allclose(got["mean_weight"][0, :3], np.mean([f["weight"] for f in frozen]), rtol=1e-10)
            self.assertTrue(((got["value_low"] < got["value"]) & (got["value"] < got["value_high"])).all())
            np.testing.assert_allclose(got["value_high"] - got["value_low"], 2 * 1.96 * got["value_se"], rtol=0.15)
        rest = replay.order(400, 1, 0)[200:]
        theta = replay.values(self.log)[1]
        term = ((self.log["context"] @ theta.T).argmax(axis=1) == self.log["arm"]) / self.log["propensity"] * self.log["reward"]
        self.assertAlmostEqual(self.results("one", "--set", "estimators=[ips]")["value_se"][0, 0] / (term[rest].std() / np.sqrt(200)), 1, delta=0.1)
        self.write_csv("log.csv", self.log)
        csv = self.results("csv", *ALL, "--set", f"problem.file={self.path('log.csv')}")
        self.assertEqual(csv["value_low"].tobytes(), self.results("netcdf", *ALL)["value_low"].tobytes())

    def test_coverage(self):
        """100 logs: four standard errors of a share of 95% are 9%. tests/bench/replay_coverage.py uses 1 000."""
        for name, share in replay.coverage(lambda *arguments: self.succeed("run", *arguments), self.folder, 100).items():
            self.assertGreater(share, 0.86, name)

    def test_bandit_logs(self):
        """Logs of a bandit study: the same on any ranks and after an interruption; rewards of random arms have the value that replay finds."""
        study = self.write("log.yaml", BANDIT % 7)
        for name, ranks in (("one", 0), ("three", 3)):
            self.succeed("run", study, "-o", self.path(name), "--progress", "none", ranks=ranks)
        self.succeed("run", study, "-o", self.path("parts"), "--progress", "none", "--shard", "0/2")
        self.succeed("run", study, "-o", self.path("parts"), "--resume", "--progress", "none", ranks=4)
        for name in ("default-random", "default-a%2Fb", "default-arms", "default-egreedy"):
            self.assert_same_results(self.path(f"one/events/{name}.nc"), self.path(f"three/events/{name}.nc"))
            self.assert_same_results(self.path(f"one/events/{name}.nc"), self.path(f"parts/events/{name}.nc"))
        with netCDF4.Dataset(self.path("one/events/default-a%2Fb.nc")) as data:
            log = {name: np.ma.filled(data[name][...]) for name in data.variables}
        self.assertEqual(log["features"].shape, (280, 3, 2))
        self.assertEqual(log["run"].tolist(), np.repeat(np.arange(7), 40).tolist())
        self.assertEqual(log["round"].tolist(), np.tile(np.arange(1, 41), 7).tolist())
        self.assertGreaterEqual(log["propensity"].min(), 0.1 - 1e-12)
        with netCDF4.Dataset(self.path("one/results.nc")) as data:
            self.assertNotIn("event_arm", data.variables)
            regret = np.diff(np.ma.filled(data["regret"][0, 1], np.nan), axis=1, prepend=0)
        with netCDF4.Dataset(self.path("one/events/default-random.nc")) as data:
            uniform = np.ma.filled(data["arm"][:])
            self.assertTrue((data["propensity"][:] == 1 / 3).all())
            # All policies get the same arms and noise: the same choices have the same rewards.
            same = uniform == log["arm"]
            self.assertEqual(np.ma.filled(data["reward"][:])[same].tobytes(), log["reward"][same].tobytes())
        self.assertTrue((regret >= 0).all() and (regret == 0).any())
        got = self.results("value", *ALL, "--set", f"problem.file={self.path('one/events/default-random.nc')}", "--set", "policies=[random, ts, linucb]")
        self.assertAlmostEqual(got["mean_weight"][0, 0], 1, delta=1e-12)
        with netCDF4.Dataset(self.path("one/events/default-random.nc")) as data:
            rewards = np.ma.filled(data["reward"][:])
        self.assertAlmostEqual(got["value"][0, 0], rewards[replay.order(280, 1, 0)[140:]].mean(), delta=1e-12)

    def test_killed(self):
        """kill -9 while policies are valued, then while logs are made: after resuming, the same bytes."""
        log = self.write("log.yaml", BANDIT % 12)
        cases = ((self.study, ("--set", "runs=3", "--set", "policies=[ts, {name: ts, label: again}]", *ALL), ["results.nc"]),
                 (log, (), ["results.nc", "events/default-random.nc", "events/default-arms.nc"]))
        for name, (study, changes, names) in zip(("values", "logs"), cases):
            killed = self.path(name)
            self.succeed("run", study, "-o", self.path("whole"), "--overwrite", "--progress", "none", *changes)
            job = self.start("run", study, "-o", killed, "--progress", "none", *changes, records=1)
            self.wait_until(job, lambda folder=killed: journals.done(folder))
            job.kill()
            self.assertEqual(job.wait(), -signal.SIGKILL)
            self.succeed("run", study, "-o", killed, "--resume", "--progress", "none", *changes, ranks=3)
            for name in names:
                self.assert_same_results(self.path(f"whole/{name}"), f"{killed}/{name}")

    def test_ranks(self):
        many = ("--set", "runs=2", "--set", "policies=[ts, {name: ts, rule: greedy, label: greedy}, random]", *ALL)
        self.results("one", *many)
        for ranks in (2, 3, 4):
            self.results(str(ranks), *many, ranks=ranks)
            self.assert_same_results(self.path("one/results.nc"), self.path(f"{ranks}/results.nc"))

    def test_overlap(self):
        """A log of only one arm says nothing about a policy that chooses others; the table says so in one sentence."""
        log = dict(self.log, arm=np.where(np.arange(400) == 0, 2, 0), propensity=np.ones(400))
        replay.write(self.path("one_arm.nc"), log)
        for change, there in ((f"problem.file={self.path('one_arm.nc')}", True), (f"problem.file={self.path('log.nc')}", False)):
            printed = self.succeed("run", self.study, "-o", self.path(f"overlap{there}"), "--set", "policies=[random]", "--progress", "none", "--set", change).stdout
            self.assertEqual("do not trust the value" in printed, there, printed)

    def test_refused(self):
        def refused(log, part, *changes):
            replay.write(self.path("bad.nc"), log)
            self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.nc')}", *changes)

        odd = {name: value.copy() for name, value in self.log.items()}
        for name, value, part in (("propensity", 0.0, "bad.nc, event (from 0) 7: propensity is 0; allowed: above 0 and at most 1"), ("propensity", np.nan, "propensity[7] is nan"),
                                  ("arm", -1, "bad.nc, event (from 0) 7: arm is -1; allowed: a whole number from 0"), ("reward", np.inf, "reward[7] is inf")):
            damaged = dict(odd, **{name: odd[name].copy()})
            damaged[name][7] = value
            refused(damaged, part)
            if np.isfinite(value):
                self.write_csv("bad.csv", damaged)
                self.fail_with(3, f"bad.csv, line 9: {name}", "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.csv')}")
        refused({name: odd[name] for name in ("context", "arm", "reward")}, "propensity")
        refused(odd, "with likelihood logistic it must be 0 or 1", "--set", "likelihood=logistic")
        refused(odd, "problem.arms: 2, but", "--set", "problem.arms=2")
        refused(odd, "oracle knows theta*", "--set", "policies=[oracle]")
        refused(odd, "no theta*", "--set", "policies=[mixts]")
        refused(odd, "needs a fixed number", "--set", "runs={target_se: 0.1}")
        refused(odd, "needs problem.family: logged", "--set", "problem.family=synthetic")
        refused(odd, "is for study replay", "--set", "study=bandit")
        self.write("bad.csv", "x1,arm,reward\n1,0,1\n")
        self.fail_with(3, "must end with the column 'propensity' (x1,...,xd,arm,reward,propensity)", "run", self.study, "-o", self.path("no"), "--set",
                       f"problem.file={self.path('bad.csv')}")
        log = self.write("log.yaml", BANDIT % 2)
        self.fail_with(3, "does not give the probability", "run", log, "-o", self.path("no"), "--set", "policies=[{name: vits2, model: network}]")
        self.fail_with(3, "too long for a file name", "run", log, "-o", self.path("no"), "--set", f"policies=[{{name: random, label: {'/' * 100}}}]")


if __name__ == "__main__":
    program.main()
