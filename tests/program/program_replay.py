"""The replay study: equal to its estimators in NumPy, intervals that contain the truth, logs of bandit studies, any ranks, kill and resume; damaged logs and
policies without probabilities are refused."""

import json
import os
import signal
import subprocess
import unittest

import netCDF4
import numpy as np
import scipy.stats

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
RESULTS = ("value", "value_se", "value_low", "value_high", "effective_sample_size", "mean_weight", "doubt", "logged_value", "logged_value_se", "logged_value_low",
           "logged_value_high")
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
            return {key: np.ma.filled(data[key][0], np.nan) for key in RESULTS}

    def write_csv(self, name, log):
        names = [name for name in ("arm", "reward", "propensity", "target") if name in log]
        arms = log.get("available", np.empty((len(log["arm"]), 0)))
        rows = [",".join(map(repr, [*x, *rest, *own])) for x, own, *rest in zip(log["context"].tolist(), arms.astype(int).tolist(), *(log[name].tolist() for name in names))]
        return self.write(name, ",".join(["x1,x2,x3", *names, *(f"available{k}" for k in range(arms.shape[1]))]) + "\n" + "\n".join(rows) + "\n")

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
            self.assertEqual(got["doubt"][0, :3].tolist(), [0, 0, 0])
            self.assertTrue(((got["value_low"] < got["value"]) & (got["value"] < got["value_high"])).all())
            np.testing.assert_allclose(got["value_high"] - got["value_low"], 2 * 1.96 * got["value_se"], rtol=0.15)
        rest = replay.order(400, 1, 0)[200:]
        theta = replay.values(self.log)[1]
        term = ((self.log["context"] @ theta.T).argmax(axis=1) == self.log["arm"]) / self.log["propensity"] * self.log["reward"]
        self.assertAlmostEqual(self.results("one", "--set", "estimators=[ips]")["value_se"][0, 0] / (term[rest].std() / np.sqrt(200)), 1, delta=0.1)
        self.write_csv("log.csv", self.log)
        csv = self.results("csv", *ALL, "--set", f"problem.file={self.path('log.csv')}")
        self.assertEqual(csv["value_low"].tobytes(), self.results("netcdf", *ALL)["value_low"].tobytes())

    def test_many_events(self):
        """A frozen policy draws once, not for each of 1 500 events, so that this takes two CPU seconds instead of minutes. The value is within four standard
        errors of that of another seed, and CSV and NetCDF give the same bytes."""
        log = replay.World().log(np.random.default_rng(3), 3000)
        log["reward"] = (log["reward"] > 0.5).astype(float)
        replay.write(self.path("clicks.nc"), log)
        self.write_csv("clicks.csv", log)
        policies = "policies=[random, ts, {name: ts, rule: bayes_ucb, label: ucb}, {name: ts, rule: greedy, label: greedy}, {name: mixts, prior: standard}]"
        clicks = ("--set", "likelihood=logistic", "--set", policies)
        nc = self.results("nc", *clicks, "--set", f"problem.file={self.path('clicks.nc')}")
        csv = self.results("csv", *clicks, "--set", f"problem.file={self.path('clicks.csv')}")
        other = self.results("other", *clicks, "--set", f"problem.file={self.path('clicks.nc')}", "--set", "seed=2")
        self.assertEqual(nc["value"].tobytes(), csv["value"].tobytes())
        self.assertTrue((np.abs(nc["value"] - other["value"]) < 4 * np.hypot(nc["value_se"], other["value_se"])).all())

    def test_coverage(self):
        """60 logs: four standard errors of a share of 95% are 11%. tests/bench/replay_coverage.py uses 1 000."""
        for name, share in replay.coverage(lambda *arguments: self.succeed("run", *arguments), self.folder, 60).items():
            self.assertGreater(share, 0.84, name)

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

    def write_simple(self, name, arm, reward, propensity):
        """A log without contexts."""
        rows = "".join(f"1,{a},{float(r)!r},{float(p)!r}\n" for a, r, p in zip(arm, reward, propensity))
        return self.write(name, "x1,arm,reward,propensity\n" + rows)

    def test_propensities(self):
        """A mean weight that is not 1 is marked on both sides, unless it is so by chance or by rounding, and the table names the arm. Chance: four standard
        errors, and 16 estimates of right logs."""
        rng, p = np.random.default_rng(6), np.array([0.5, 0.3, 0.2])
        arm = rng.choice(3, 1000, p=p)
        reward, right = rng.random(1000) < 0.3, p[arm]
        eleven = rng.integers(10, size=1000) + 1
        none, low, high, of_arm, absent = 0, 2, 3, 4, 5
        cases = (("right", arm, right, (), [none] * 4, None), ("rounded", arm, np.round(right * 1.01, 3), (), [none] * 4, None),
                 ("small", arm, np.where(arm == 0, 0.05, right), (), [of_arm] * 4, "the propensities of arm 0 are too small"),
                 ("large", arm, np.minimum(2 * right, 1), (), [low] * 4, "propensities are too large"),
                 ("third", arm, right / 3, (), [of_arm] * 4, "are too small"),
                 ("swapped", arm, p[::-1][arm], (), [of_arm] * 4, "the propensities of arm 0 are too small"),
                 ("tenth", eleven - 1, np.full(1000, 0.09), (), [high] * 3 + [none], "the mean weight is 1.111, and not 1 +- 0.015: propensities are too small"),
                 ("from_1", eleven, np.full(1000, 0.1), (), [absent] * 4, "arm 0 is never played; arms are counted from 0"),
                 ("of_11", eleven, np.full(1000, 0.1), ("--set", "problem.arms=11"), [low] * 3 + [none], "the mean weight is 0.9091, and not 1 +- 0: propensities are "
                  "too large, or the log lacks arms that the policy takes: arm 0 is never played"))
        for name, arms, propensity, changes, doubt, words in cases:
            with self.subTest(name):
                file = self.write_simple(f"{name}.csv", arms, reward, propensity)
                printed = self.succeed("run", self.study, "-o", self.path(name), "--progress", "none", *ALL, "--set", f"problem.file={file}", "--set", "policies=[random]",
                                       *changes).stdout
                with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
                    self.assertEqual(data["doubt"][0, 0].tolist(), doubt)
                self.assertEqual("do not trust the value" in printed, words is not None)
                self.assertIn(words or "", printed)
                self.assertEqual("  log: for arm" in printed, name in ("large", "of_11"), printed)

    def test_arms_that_come_later(self):
        """An arm that was possible in the second half only is named whatever the policy does, also if no value of it is marked."""
        rng = np.random.default_rng(7)
        arm = np.concatenate([rng.integers(3, size=2000), rng.integers(4, size=2000)])
        file = self.write_simple("late.csv", arm, rng.random(4000) < 0.3 + 0.1 * (arm == 0), np.repeat([1 / 3, 1 / 4], 2000))
        printed = self.succeed("run", self.study, "-o", self.path("late"), "--progress", "none", "--set", f"problem.file={file}", "--set", "policies=[{name: ts, rule: greedy}]").stdout
        weight = 4 * (arm == 3).sum() / 4000
        self.assertIn(f"  log: for arm 3 the mean of 1 / propensity is {weight:.4g}, and not 1: it was not possible in every event", printed)

    def test_intervals(self):
        """No interval is a point: Wilson's where the bootstrap sees no clicks, nothing else, or one value only; nothing wider for rewards of many values."""
        rng = np.random.default_rng(7)
        arm, z = rng.integers(2, size=400), 1.959963984540054
        for name, reward, low, high in (("none", np.zeros(400), 0, z**2 / (200 + z**2)), ("all", np.ones(400), 200 / (200 + z**2), 1), ("seven", np.full(400, 7), 7 * 200 / (200 + z**2), 7),
                                        ("minus", np.full(400, -2), -2, -2 * 200 / (200 + z**2))):
            file = self.write_simple(f"{name}.csv", arm, reward, np.full(400, 0.5))
            got = self.results(name, *ALL, "--set", f"problem.file={file}", "--set", "policies=[random]")
            np.testing.assert_allclose(got["value_low"][0, :2], low, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(got["value_high"][0, :2], high, rtol=1e-12)
            self.assertTrue((got["value_low"] < got["value_high"]).all())
        file = self.write_simple("half.csv", arm, np.full(400, 0.5), np.full(400, 0.5))
        got = self.results("half", *ALL, "--set", f"problem.file={file}", "--set", "policies=[random]")
        self.assertTrue(((got["value_low"] < 0.5) & (got["value_high"] > 0.5) & (got["value_high"] - got["value_low"] < 0.05)).all())

    def test_rare_clicks(self):
        """60 logs with a click in 200 events: 150 events have none in half of the logs. At least 90% of the intervals must hold the truth; a share of 90% of 60
        has a standard error of 4%."""
        rng, names = np.random.default_rng(8), []
        for i in range(60):
            names.append(self.write_simple(f"{i}.csv", rng.integers(2, size=300), rng.random(300) < 0.005, np.full(300, 0.5)))
        self.succeed("run", self.study, "-o", self.path("rare"), "--progress", "none", *ALL, "--set", f"problem.file=[{', '.join(names)}]", "--set", "policies=[random]")
        with netCDF4.Dataset(self.path("rare/results.nc")) as data:
            inside = (data["value_low"][:, 0] <= 0.005) & (data["value_high"][:, 0] >= 0.005)
        self.assertGreaterEqual(inside.mean(axis=0).min(), 0.9)

    def test_logged_value(self):
        """The value of the policy that left the log: the mean of all rewards, with its standard error. Wilson's interval is SciPy's for clicks; for other rewards
        it is shifted towards the middle of their range, by a tenth of the standard error at most with 400 events. The table shows it."""
        clicks = (np.random.default_rng(10).random(400) < 0.03).astype(float)
        for name, reward in (("rewards", self.log["reward"]), ("clicks", clicks)):
            replay.write(self.path(f"{name}.nc"), dict(self.log, reward=reward))
            printed = self.succeed("run", self.study, "-o", self.path(name), "--progress", "none", "--set", f"problem.file={self.path(name)}.nc", "--set", "runs=3", *ALL).stdout
            with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
                value, se, low, high = (data[f"logged_value{end}"][0] for end in ("", "_se", "_low", "_high"))
            np.testing.assert_allclose(value, reward.mean(), rtol=1e-12)
            np.testing.assert_allclose(se, reward.std(ddof=1) / 20, rtol=1e-12)
            wilson = scipy.stats.binomtest(int(clicks.sum()), 400).proportion_ci(method="wilson")
            wanted = (wilson.low, wilson.high) if name == "clicks" else reward.mean() + 1.96 * se.flat[0] * np.array([-1, 1])
            np.testing.assert_allclose([low.flat[0], high.flat[0]], wanted, rtol=1e-12, atol=0 if name == "clicks" else 0.1 * se.flat[0])
            self.assertRegex(printed, rf"\(log\)  mean +{reward.mean():.4g} +{se.flat[0]:.2g} ")

    def test_target(self):
        """A policy that is known by its probabilities, against NumPy: ips and snips from those of the arms that were played, in CSV and NetCDF, dr from those of
        all arms. `replay` meets its arm with the smallest propensity of the log, an event's contribution is a random number of variance below 1, so its number of
        events is within five standard deviations; with the probabilities of the logging policy itself all weights are 1. It is the same policy under any label."""
        rng = np.random.default_rng(11)
        pi = rng.dirichlet(np.ones(3), 400)
        x, arm, reward, propensity = (self.log[name] for name in ("context", "arm", "reward", "propensity"))
        played = pi[np.arange(400), arm]
        learned, rest = np.split(replay.order(400, 1, 0), [100])
        q = x @ replay.ridge(x[learned], arm[learned], reward[learned], 3).T
        w = played / propensity
        own = w * (reward - q[np.arange(400), arm])
        wanted = {"ips": (w * reward)[rest].mean(), "snips": (w * reward)[rest].sum() / w[rest].sum(), "dr": ((pi * q).sum(axis=1) + own)[rest].mean()}
        replay.write(self.path("all.nc"), dict(self.log, target=pi))
        replay.write(self.path("one.nc"), dict(self.log, target=played))
        self.write_csv("one.csv", dict(self.log, target=played))
        for file, estimators in (("all.nc", ["ips", "snips", "dr"]), ("one.nc", ["ips", "snips"]), ("one.csv", ["ips", "snips"])):
            got = self.results(f"of-{file}", "--set", f"problem.file={self.path(file)}", "--set", f"estimators=[{', '.join([*estimators, 'replay'])}]",
                               "--set", "policies=[{name: target, label: mine}, random]", "--set", "train_fraction=0.25")
            np.testing.assert_allclose(got["value"][0, :-1], [wanted[name] for name in estimators], rtol=0, atol=1e-10)
            np.testing.assert_allclose(got["effective_sample_size"][0, 0], w[rest].sum() ** 2 / (w[rest] ** 2).sum(), rtol=1e-10)
            self.assertAlmostEqual(got["effective_sample_size"][0, -1], (played * propensity.min() / propensity).sum(), delta=5 * np.sqrt(400 / 4))
        replay.write(self.path("same.nc"), dict(self.log, target=propensity))
        got = self.results("same", "--set", f"problem.file={self.path('same.nc')}", "--set", "estimators=[ips, snips]", "--set", "policies=[target]", "--set", "train_fraction=0")
        np.testing.assert_allclose(got["value"], reward.mean(), rtol=1e-12)

    def test_target_refused(self):
        def refused(log, part, *changes):
            replay.write(self.path("bad.nc"), log)
            self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.nc')}", "--set", "policies=[target]", *changes)

        two, half, third = ("--set", "estimators=[ips, snips]"), np.full(400, 0.5), np.full((400, 3), 1 / 3)
        refused(self.log, "which a log has as column or variable 'target'", *two)
        refused(dict(self.log, target=half), "dr needs its probabilities of all arms")
        for value, part in ((-0.25, "target is -0.25"), (1.5, "target is 1.5"), (np.nan, "target[7] is nan")):
            damaged = half.copy()
            damaged[7] = value
            refused(dict(self.log, target=damaged), part if np.isnan(value) else f"bad.nc, event (from 0) 7: {part}; allowed: a probability, from 0 to 1", *two)
            self.write_csv("bad.csv", dict(self.log, target=damaged))
            self.fail_with(3, "bad.csv, line 9, column 7: 'nan'" if np.isnan(value) else f"bad.csv, line 9: {part}", "run", self.study, "-o", self.path("no"), "--set",
                           f"problem.file={self.path('bad.csv')}")
        self.write("bad.csv", "x1,arm,reward,propensity,target\n1,0,1,0.5,0.5\n1,0,1,0.5,\n")
        self.fail_with(3, "bad.csv, line 3, column 5", "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.csv')}")
        self.write("bad.csv", "x1,arm,reward,propensity,aim\n1,0,1,0.5,0.5\n")
        self.fail_with(3, "'aim' where 'target' is expected (it must read x1,...,xd,arm,reward,propensity[,target][,available0,available1,...])", "run", self.study, "-o", self.path("no"), "--set",
                       f"problem.file={self.path('bad.csv')}")
        damaged = third.copy()
        damaged[7, 1] = 2
        refused(dict(self.log, target=damaged), "event (from 0) 7: target of arm 1 is 2;")
        damaged[7, 1] = 0.5
        refused(dict(self.log, target=damaged), "event (from 0) 7: the sum of target over all arms is 1.1666666666666665; allowed: 1, to within 0.001")
        damaged[7, 1] = np.nan
        refused(dict(self.log, target=damaged), "target[7, 1] is nan")
        refused(dict(self.log, target=third[:, :2] * 1.5), "allowed: a whole number from 0 to 1")
        refused(dict(self.log, target=third), "policy target is known by", "--set", "problem={family: synthetic}", "--set", "study=bandit")

    def wide(self, arms=50):
        """A log of 60 clicks with 100 features."""
        rng = np.random.default_rng(12)
        arm = rng.integers(arms, size=60)
        replay.write(self.path("wide.nc"), {"context": rng.normal(size=(60, 100)), "arm": arm, "reward": (rng.random(60) < 0.5).astype(float), "propensity": np.full(60, 1 / arms)})
        return ("--set", f"problem.file={self.path('wide.nc')}", "--set", f"problem.arms={arms}", "--set", "likelihood=logistic", "--set", "policies=[ts]")

    def test_memory(self):
        """A frozen policy keeps 1 000 draws of each of 50 posteriors in each of 64 runs, 2.56 GB; `plan` counts them, and refuses 512 runs at once. Rules that need
        moments keep 100 x 100 numbers instead, `replay` alone nothing."""
        def planned(*changes):
            return json.loads(self.succeed("plan", self.study, "--json", *self.wide(), "--set", "runs=512", *changes).stdout)["memory_bytes_per_rank"]

        self.assertTrue(2.56e9 < planned("--set", "block=64") < 3.5e9)
        self.assertLess(planned("--set", "block=64", "--set", "estimators=[replay]"), 1e9)
        self.assertLess(planned("--set", "block=64", "--set", "policies=[{name: ts, rule: greedy}]"), 1.3e9)
        for verb in (("plan",), ("run", "-o", self.path("no"))):
            self.fail_with(3, "a policy keeps 1000 draws of 100 numbers from each of 25600 posteriors, 23 GB; allowed: 16 GB. Reduce block", *verb, self.study, *self.wide(),
                           "--set", "runs=512", "--set", "block=512")

    @unittest.skipIf(program.SANITIZED, "the sanitizers have memory of their own")
    def test_memory_as_planned(self):
        """The peak of a run is within a factor of two of what `plan` says: 128 MB of draws, and 40 MB that every study takes."""
        changes = (*self.wide(arms=5), "--set", "likelihood=gaussian", "--set", "policies=[{name: ts, propensity_draws: 4000}]", "--set", "runs=8")
        said = json.loads(self.succeed("plan", self.study, "--json", *changes).stdout)["memory_bytes_per_rank"]
        with subprocess.Popen([program.PROGRAM, "run", self.study, "-o", self.path("out"), *changes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(0.5 < usage.ru_maxrss * 1024 / said < 2, f"{usage.ru_maxrss / 1e3} MB, and plan says {said / 1e6}")

    def test_advice(self):
        """`plan` and `run` say which policies are fitted again after each event, and what spares that."""
        clicks = dict(self.log, reward=(self.log["reward"] > 0).astype(float))
        replay.write(self.path("clicks.nc"), clicks)
        changes = ("--set", f"problem.file={self.path('clicks.nc')}", "--set", "likelihood=logistic", "--set", "policies=[ts, {name: ts, memory: filtered, label: filtered}, random]")
        for verb in (("plan",), ("run", "-o", self.path("out"), "--progress", "none")):
            said = self.succeed(*verb, self.study, *changes, "--set", "estimators=[snips, replay]").stderr
            self.assertEqual(said.count("note: policy"), 1, said)
            self.assertIn("note: policy ts: estimator replay fits its posterior again after each event that it uses", said)
            self.assertIn("memory: filtered", said)
        self.assertNotIn("note: policy", self.succeed("plan", self.study, *changes).stderr)

    def test_not_uniform(self):
        """The value of replay from a log that is not uniform: rewards 0, 1, 2 of arms 0, 1, 2 give random arms 1, and an adaptive policy nearly 2. Without making up
        for the log it would be 0.4 for random arms. Five standard errors of about 400 events."""
        rng, p = np.random.default_rng(9), np.array([0.7, 0.2, 0.1])
        arm = rng.choice(3, 4000, p=p)
        file = self.write_simple("uneven.csv", arm, arm, p[arm])
        got = self.results("uneven", "--set", "estimators=[replay]", "--set", f"problem.file={file}", "--set", "policies=[random, {name: ts, label: ts}]")
        self.assertAlmostEqual(got["value"][0, 0], 1, delta=5 * np.sqrt(2 / 3 / 400))
        self.assertGreater(got["value"][1, 0], 1.9)
        for events in got["effective_sample_size"][:, 0]:
            self.assertAlmostEqual(events, 400, delta=5 * np.sqrt(400))
        self.assertEqual(got["doubt"].tolist(), [[0], [0]])

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
        damaged = dict(odd, propensity=odd["propensity"].copy())
        damaged["propensity"][7] = 1 + 1e-9
        refused(damaged, "propensity is 1.0000000010000001; allowed: above 0 and at most 1")
        refused({name: odd[name] for name in ("context", "arm", "reward")}, "propensity")
        with netCDF4.Dataset(self.path("no_arms.nc"), "w") as data:
            for name, size in (("event", 3), ("arm", 0), ("dim", 2)):
                data.createDimension(name, size or None)
            data.createVariable("features", "f8", ("event", "arm", "dim"))
            for name in ("reward", "propensity"):
                data.createVariable(name, "f8", ("event",))[:] = 1
        self.fail_with(3, "'features' has no arms", "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('no_arms.nc')}")
        refused(odd, "with likelihood logistic it must be 0 or 1", "--set", "likelihood=logistic")
        refused(odd, "problem.arms: 2, but", "--set", "problem.arms=2")
        refused(odd, "oracle knows theta*", "--set", "policies=[oracle]")
        refused(odd, "no theta*", "--set", "policies=[mixts]")
        refused(odd, "needs a fixed number", "--set", "runs={target_se: 0.1}")
        refused(odd, "needs problem.family: logged", "--set", "problem.family=synthetic")
        refused(odd, "is for study replay", "--set", "study=bandit")
        self.write("bad.csv", "x1,arm,reward\n1,0,1\n")
        self.fail_with(3, "must end with the column 'propensity' (x1,...,xd,arm,reward,propensity[,target][", "run", self.study, "-o", self.path("no"), "--set",
                       f"problem.file={self.path('bad.csv')}")
        log = self.write("log.yaml", BANDIT % 2)
        self.fail_with(3, "does not give the probability", "run", log, "-o", self.path("no"), "--set", "policies=[{name: vits2, model: network}]")
        self.fail_with(3, "too long for a file name", "run", log, "-o", self.path("no"), "--set", f"policies=[{{name: random, label: {'/' * 100}}}]")


if __name__ == "__main__":
    program.main()
