"""Arms that come and go in event logs: the replay study equal to its estimators in NumPy, and to a log without the arms that are never there, for every policy;
propensities are judged among the events that have an arm; damaged logs are refused."""

import netCDF4
import numpy as np

import program
import replay

N, ARMS = 400, 3
ALL = ("--set", "estimators=[ips, snips, dr, replay]")


class Available(program.ProgramTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(21)
        self.available = rng.random((N, ARMS)) < 0.6
        self.available[np.arange(N), rng.integers(ARMS, size=N)] = True
        self.log = replay.World().log(rng, N, self.available)
        self.study = self.write("replay.yaml", replay.STUDY % "null")

    def results(self, log, *changes):
        """The results of the first setting, by name, from a log or from a file; and the table."""
        file = log if isinstance(log, str) else self.path("log.nc")
        if log is not file:
            replay.write(file, log)
        printed = self.succeed("run", self.study, "-o", self.path("out"), "--overwrite", "--progress", "none", "--set", f"problem.file={file}", *changes).stdout
        with netCDF4.Dataset(self.path("out/results.nc")) as data:
            return {name: np.ma.filled(data[name][0], np.nan) for name in ("value", "value_low", "value_high", "effective_sample_size", "mean_weight", "doubt", "doubtful_arm")}, printed

    def write_csv(self, log, names=("arm", "reward", "propensity")):
        columns = [*log["context"].T, *(log[name] for name in names), *log["available"].T.astype(int)]
        header = [*(f"x{i + 1}" for i in range(log["context"].shape[1])), *names, *(f"available{k}" for k in range(log["available"].shape[1]))]
        return self.write("log.csv", "\n".join([",".join(header), *(",".join(map(repr, row)) for row in zip(*(column.tolist() for column in columns)))]) + "\n")

    def test_numpy(self):
        """The greedy policy of a posterior for each arm: to 1e-10, since sums are taken in a different order. CSV and NetCDF give the same bytes."""
        got, _ = self.results(self.log, *ALL)
        (frozen, _), (met, events) = replay.values(self.log), replay.replayed(self.log)
        np.testing.assert_allclose(got["value"][0], [*(frozen[name] for name in ("ips", "snips", "dr")), met], rtol=0, atol=1e-10)
        np.testing.assert_allclose(got["effective_sample_size"][0], [frozen["size"]] * 3 + [events], rtol=1e-10)
        np.testing.assert_allclose(got["mean_weight"][0, :3], frozen["weight"], rtol=1e-10)
        csv, _ = self.results(self.write_csv(self.log), *ALL)
        self.assertEqual(*(each["value_low"].tobytes() for each in (got, csv)))

    def test_target(self):
        """Another policy by its probabilities, against NumPy; and against its true value, within five standard errors: sums of 4 000 events, whose weights are at
        most 1 / 0.1."""
        rng, n, world = np.random.default_rng(22), 4000, replay.World()
        available = rng.random((n, ARMS)) < 0.7
        available[:, 1] |= ~available.any(axis=1)
        log = world.log(rng, n, available)
        pi = np.where(available, rng.random((n, ARMS)), 0)
        pi /= pi.sum(axis=1, keepdims=True)
        each, x, arm, reward = np.arange(n), log["context"], log["arm"], log["reward"]
        learned, rest = np.split(replay.order(n, 1, 0), [n // 4])
        q = x @ replay.ridge(x[learned], arm[learned], reward[learned], ARMS).T
        w = pi[each, arm] / log["propensity"]
        terms = w * reward, (pi * q).sum(axis=1) + w * (reward - q[each, arm])
        got, _ = self.results({**log, "target": pi}, "--set", "policies=[target]", "--set", "train_fraction=0.25", *ALL[:1], "estimators=[ips, snips, dr]")
        np.testing.assert_allclose(got["value"][0], [terms[0][rest].mean(), (w * reward)[rest].sum() / w[rest].sum(), terms[1][rest].mean()], rtol=0, atol=1e-10)
        truth = (pi * (x @ world.theta.T)).sum(axis=1)[rest].mean()
        for value, term in zip(got["value"][0, ::2], terms):
            self.assertLess(abs(value - truth), 5 * term[rest].std() / np.sqrt(len(rest)))

    def equal(self, wide, *changes):
        """Check that a log with three of five arms in each event, others in each if it is `wide`, has the same values as one with three arms, bit for bit."""
        rng = np.random.default_rng(23)
        places = np.sort(rng.permuted(np.tile(np.arange(5), (N, 1)), axis=1)[:, :ARMS], axis=1) if wide else np.tile([0, 2, 4], (N, 1))
        each = np.arange(N)[:, None]
        available = np.zeros((N, 5), bool)
        available[each, places] = True
        log = {"arm": rng.integers(ARMS, size=N), "reward": (rng.random(N) < 0.4).astype(float), "propensity": np.full(N, 1 / 3)}
        features = rng.normal(size=(N, ARMS, 2))
        padded = np.full((N, 5, 2), np.nan)
        padded[each, places] = features
        short = {"features": features} if wide else {"context": features[:, 0]}
        long = {"features": padded} if wide else short
        want, _ = self.results({**log, **short}, *changes)
        got, _ = self.results({**log, **long, "available": available, "arm": places[each[:, 0], log["arm"]]}, *changes)
        for name in ("value", "value_low", "value_high", "mean_weight", "doubt"):
            np.testing.assert_array_equal(got[name], want[name], name)

    def test_as_if_absent(self):
        """A log in which each event lists five arms, and has three, is one of three arms, whatever the features of the others are: NaN here. Features of each arm,
        with Gaussian rewards and with clicks; and a context, where a posterior's draws are named by its arm, so that only rules without draws are the same. Which of
        equal arms is taken depends on their numbers; so epsilon-greedy takes random ones for 100 events, and the prior of the greedy rule has arms that differ. Narrow bounds can be below 0, that of features 0."""
        with netCDF4.Dataset(self.path("prior.nc"), "w") as prior:
            prior.prior = "gaussian"
            for name, size in (("component", 1), ("dim", 2), ("dim2", 2)):
                prior.createDimension(name, size)
            for name, value in (("weight", [1]), ("mean", [[0.3, -0.2]]), ("covariance", [np.eye(2)])):
                prior.createVariable(name, "f8", ("component", "dim", "dim2")[:np.ndim(value)])[:] = value
        for likelihood, bound in (("gaussian", "linucb"), ("logistic", "glm_ucb")):
            policies = (f"{{name: {bound}, width: 0.01}}, random, {{name: egreedy, epsilon: 1}}, {{name: ts, floor: 0.1, propensity_draws: 200}}, {{name: ts, rule: bayes_ucb, floor: 0.05, label: b}}, "
                        f"{{name: mixts, prior: {self.path('prior.nc')}, rule: greedy}}")
            self.equal(True, *ALL, "--set", f"likelihood={likelihood}", "--set", f"policies=[{policies}]")
            self.equal(False, "--set", f"likelihood={likelihood}", "--set", "policies=[random, {name: ts, rule: bayes_ucb, floor: 0.1}, {name: ts, rule: greedy, label: g}]")

    def test_two_arms(self):
        """One of two arms is sometimes alone: it then has probability 1, though two have a closed form. With propensities of 1 where it is alone and 1/2 elsewhere
        the weights of a policy that follows from the log are known: here its prior, under which both arms are alike, and the mean weight is 1."""
        rng = np.random.default_rng(24)
        available = rng.random((N, 2)) < 0.7
        available[:, 0] |= ~available[:, 1]
        arm = np.where(available.all(axis=1), rng.integers(2, size=N), available[:, 1])
        features = np.where(available[:, :, None], rng.normal(size=(N, 1, 2)), np.nan)
        log = {"features": features, "arm": arm, "reward": rng.normal(size=N), "propensity": 1 / available.sum(axis=1), "available": available}
        got, _ = self.results(log, "--set", "policies=[{name: ts, propensity_draws: 1}]", "--set", "train_fraction=0")
        np.testing.assert_allclose(got["value"][0, :2], log["reward"].mean(), rtol=1e-10)

    def test_propensities(self):
        """An arm that came in the second half only is doubted in a log that does not say so, and in one that does it is not; there, wrong propensities of an arm
        that is there in a tenth of the events are seen, on both sides."""
        rng = np.random.default_rng(25)
        late = np.ones((N, 4), bool)
        late[:N // 2, 3] = False
        rare = np.ones((4 * N, 3), bool)
        rare[:, 2] = np.arange(4 * N) % 10 == 0
        for available, factor, words in ((late, 1, None), (rare, 1, None), (rare, 0.5, "the propensities of arm 2 are too small"), (rare, 2, "log: for arm 2 the mean of 1 / propensity is 0.")):
            n, own = len(available), available.sum(axis=1)
            arm = (rng.random((n, available.shape[1])) * available).argmax(axis=1)
            log = {"context": np.ones((n, 1)), "arm": arm, "reward": rng.random(n), "propensity": np.where(arm == 2, factor, 1) / own}
            got, printed = self.results({**log, "available": available}, "--set", "policies=[random]")
            self.assertEqual(("log: for arm" in printed, "are too small" in printed), (factor == 2, factor == 0.5), printed)
            if words:
                self.assertIn(words, printed)
                self.assertEqual(got["doubtful_arm"][0, 0], 2)
            else:
                self.assertTrue((got["doubt"] == 0).all())
                np.testing.assert_allclose(got["mean_weight"], 1, rtol=1e-12)
        silent = {"context": np.ones((N, 1)), "arm": (rng.random((N, 4)) * late).argmax(axis=1), "reward": rng.random(N), "propensity": 1 / late.sum(axis=1)}
        _, printed = self.results(silent, "--set", "policies=[{name: ts, rule: greedy}]")
        self.assertIn("for arm 3 the mean of 1 / propensity is 0.", printed)
        self.assertIn("it was not possible in every event (a log can say so: available)", printed)

    def test_refused(self):
        def refused(log, part, *changes):
            replay.write(self.path("bad.nc"), log)
            return self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.nc')}", *changes)

        def changed(name, index, value):
            array = np.array(self.log[name], float)
            array[index] = value
            return {**self.log, name: array}

        def refused_csv(log, part):
            self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.write_csv(log)}")

        absent = int(np.flatnonzero(~self.available[7])[0])
        for name, index, value, part in (("available", (7, 1), 2, "available of arm 1 is 2; allowed: 0 or 1"), ("available", 7, 0, "the number of available arms is 0; allowed: 1 at least"),
                                         ("arm", 7, absent, f"arm is {absent}; allowed: an arm that is available in this event")):
            refused(changed(name, index, value), f"bad.nc, event (from 0) 7: {part}")
            refused_csv(changed(name, index, int(value)), f"log.csv, line 9: {part}")
        refused(changed("available", (7, 1), np.nan), "bad.nc, event (from 0) 7: available of arm 1 is nan; allowed: 0 or 1")
        target = np.where(self.available, 1 / self.available.sum(axis=1, keepdims=True), 0)
        target[7, absent] = 0.5
        refused({**self.log, "target": target}, f"event (from 0) 7: target of arm {absent} is 0.5; allowed: 0, since this arm is not available", "--set", "policies=[target]")
        refused(self.log, "problem.arms: 4, but", "--set", "problem.arms=4")
        refused({**self.log, "arm": np.full(N, 3)}, "arm is 3; allowed: a whole number from 0 to 2")
        features = np.where(self.available[:, :, None], np.ones((N, ARMS, 2)), np.nan)
        features[7, ~self.available[7].argmin()] = np.nan
        log = {name: value for name, value in self.log.items() if name != "context"}
        features[7, self.log["arm"][7], 1] = np.nan
        refused({**log, "features": features}, f"features[7, {2 * self.log['arm'][7] + 1}] is nan")
        for header, part in (("arm,reward,propensity,available1", "'available1' where 'target' is expected"), ("arm,reward,propensity,available0,target", "'target' where 'available1' is expected"),
                             ("arm,reward,available0,propensity", "'available0' where 'propensity' is expected"), ("arm,reward,propensity,target,available0,available0", "'available0' where 'available1'")):
            self.write("bad.csv", f"x1,{header}\n")
            self.fail_with(3, part, "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.csv')}")
        self.write("bad.csv", "x1,arm,reward,propensity,available0,available1\n1,0,1,0.5,1,\n")
        self.fail_with(3, "bad.csv, line 2, column 6: the value is missing", "run", self.study, "-o", self.path("no"), "--set", f"problem.file={self.path('bad.csv')}")


if __name__ == "__main__":
    program.main()
