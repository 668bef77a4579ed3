#!/usr/bin/env python3
"""What a service asks of agents besides choices: what they believe of each arm, how surprised they are, slates, arms that come and go, names."""

import copy
import os
import pickle
import subprocess
import tempfile
import unittest
import warnings

os.environ.setdefault("THOMPSON_LIBRARY", os.path.join(os.environ["THOMPSON_BUILD"], "src", "library", "libthompson.so"))

import netCDF4
import numpy as np
from scipy.special import expit

import program
import replay
import thompson

D = 3
RNG = np.random.default_rng(1)
X, Y, ARMS = RNG.standard_normal((6, D)), RNG.standard_normal(6), RNG.standard_normal((7, D))
GAUSSIAN = thompson.Prior.from_mixture([1.0], np.ones((1, D)), [np.eye(D)])
MIXTURE = thompson.Prior.from_mixture([0.5, 0.5], [[1, 0, 0], [-1, 1, 0]], [np.eye(D), 0.5 * np.eye(D)])


def taught(n=3, prior=GAUSSIAN, **options):
    agents = thompson.Agents(prior, n, **{"seed": 3, "noise": 0.5, **options})
    agents.observe([1] * len(X), X, Y)
    return agents


class Score(unittest.TestCase):
    def test_closed_form(self):
        """Gaussian rewards: within five standard errors of the mean and the standard deviation of phi' theta, from 20 000 draws."""
        covariance = np.linalg.inv(np.eye(D) + X.T @ X / 0.25)
        center = covariance @ (np.ones(D) + X.T @ Y / 0.25)
        sd = np.sqrt(np.einsum("ki,ij,kj->k", ARMS, covariance, ARMS))
        mean, got = taught(propensity_draws=20000).score([1, 0], ARMS)
        self.assertLess((abs(mean[0] - ARMS @ center) / sd).max(), 5 / np.sqrt(20000))
        self.assertLess(abs(got[0] / sd - 1).max(), 5 / np.sqrt(40000))
        self.assertLess((abs(mean[1] - ARMS.sum(axis=1)) / np.linalg.norm(ARMS, axis=1)).max(), 5 / np.sqrt(20000))

    def test_clicks(self):
        """Clicks: the mean and the spread of the chance of a click under draws of another seed."""
        options = {"likelihood": "logistic", "noise": None, "propensity_draws": 20000}
        agents = thompson.Agents(MIXTURE, 2, seed=3, **options)
        other = thompson.Posterior(MIXTURE, seed=8, likelihood="logistic")
        for x, y in zip(X, (0, 1, 1, 0, 1, 0)):
            agents.observe([0], x[None], [y])
            other.observe(x, y)
        chance = expit(other.draw(20000) @ ARMS.T)
        (mean,), (sd,) = agents.score([0], ARMS)
        self.assertLess((abs(mean - chance.mean(axis=0)) / sd).max(), 5 * np.sqrt(2 / 20000))
        self.assertLess(abs(sd / chance.std(axis=0) - 1).max(), 0.05)

    def test_changes_nothing(self):
        """Agents that were asked choose as others do, agent 0 is the posterior, and each agent may have arms of its own."""
        asked, other = taught(prior=MIXTURE), taught(prior=MIXTURE)
        one = thompson.Posterior(MIXTURE, seed=3, noise=0.5)
        mean, sd = asked.score([0, 1, 2], ARMS)
        np.testing.assert_array_equal(one.score(ARMS), (mean[0], sd[0]))
        own = asked.score([2, 1], np.stack([ARMS[::-1], ARMS]))
        np.testing.assert_array_equal(own, [[mean[2][::-1], mean[1]], [sd[2][::-1], sd[1]]])
        some = np.arange(len(ARMS)) % 2 == 0
        masked = np.array(asked.score([0, 1, 2], ARMS, available=some))
        np.testing.assert_array_equal(masked[..., some], np.array([mean, sd])[..., some])
        self.assertTrue(np.isnan(masked[..., ~some]).all())
        np.testing.assert_array_equal(asked.choose(range(3), ARMS), other.choose(range(3), ARMS))


class PValues(unittest.TestCase):
    def test_of_posteriors(self):
        """The p-value of agent 0 is that of the posterior of the same seed; agents with different numbers of observations; clicks too."""
        for options in ({"noise": 0.5}, {"likelihood": "logistic"}):
            agents, one = (kind(MIXTURE, *n, seed=4, **options) for kind, n in ((thompson.Agents, [2]), (thompson.Posterior, [])))
            for l, x in enumerate(X):
                agents.observe([0, 1][: 1 + (l < 2)], [x, x][: 1 + (l < 2)], [l % 2] * (1 + (l < 2)))
                one.observe(x, l % 2)
            p = agents.p_value([0, 1])
            self.assertEqual(p[0], one.p_value())
            self.assertEqual(agents.p_value([1]), p[1])

    def test_surprise(self):
        """Rewards of a theta twenty standard deviations away are as surprising as p-values get; nothing observed and discounted agents are refused."""
        agents = thompson.Agents(GAUSSIAN, 2, seed=1, noise=0.5)
        agents.observe([1] * len(X), X, X @ np.full(D, 20.0))
        self.assertEqual(agents.p_value([1]), 0.001)
        self.assertEqual(agents.p_value([]).shape, (0,))
        self.assertRaisesRegex(thompson.Error, "agent 0 has none", agents.p_value, [1, 0])
        self.assertRaisesRegex(thompson.Error, "discount", taught(discount=0.9).p_value, [1])
        self.assertRaisesRegex(thompson.Error, "memory", filtered().p_value, [0])


def filtered():
    agents = thompson.Agents(MIXTURE, 1, seed=1, likelihood="logistic", memory="filtered")
    agents.observe([0], X[:1], [1])
    return agents


class Available(unittest.TestCase):
    def test_as_a_shorter_list(self):
        """A choice among some of the arms is that from a list of only these, one after another and all together, whatever the features of the others are."""
        for options in ({}, {"floor": 0.1}, {"rule": "bayes_ucb", "horizon": 50}, {"sampler": "localised"}):
            masks = RNG.random((30, len(ARMS))) < 0.5
            masks[np.arange(30), RNG.integers(len(ARMS), size=30)] = True
            together, apart = (thompson.Agents(MIXTURE, 30, seed=5, noise=0.5, propensity_draws=60, **options) for _ in range(2))
            hidden = np.where(masks[:, :, None], ARMS, np.nan)
            for propensity in (False, True, False):
                p = together.probabilities(range(30), hidden, available=masks)
                got = together.choose(range(30), hidden, propensity=propensity, available=masks)
                arm = got[0] if propensity else got
                for n, mask in enumerate(masks):
                    (listed,) = np.nonzero(mask)
                    np.testing.assert_array_equal(p[n, listed], apart.probabilities([n], ARMS[listed])[0])
                    self.assertEqual(p[n, ~mask].sum(), 0)
                    one = apart.choose([n], ARMS[listed], propensity=propensity)
                    self.assertEqual(arm[n], listed[(one[0] if propensity else one)[0]])
                    if propensity:
                        self.assertEqual((got[1][n], one[1][0]), (p[n, arm[n]],) * 2)

    def test_log(self):
        """A log of such choices is what `study: replay` reads, with NaN as features of arms that are not there. By ips a `target` with the agents' probabilities
        has the mean of their rewards as its value, and random arms have the one that NumPy finds; of all other policies values are finite."""
        n, agents = 300, thompson.Agents(GAUSSIAN, 300, seed=4, noise=0.5, propensity_draws=50, floor=0.05)
        mask = RNG.random((n, len(ARMS))) < 0.5
        mask[:, 0] |= ~mask.any(axis=1)
        features = np.where(mask[:, :, None], ARMS, np.nan)
        target = agents.probabilities(range(n), features, available=mask)
        arm, p = agents.choose(range(n), features, propensity=True, available=mask)
        log = {"features": features, "arm": arm, "reward": RNG.random(n), "propensity": p, "available": mask, "target": target}
        with tempfile.TemporaryDirectory() as folder:
            replay.write(os.path.join(folder, "log.nc"), log)
            with open(os.path.join(folder, "value.yaml"), "w", encoding="utf-8") as study:
                study.write("name: value\nstudy: replay\nruns: 1\ntrain_fraction: 0\nestimators: [ips, snips, dr, replay]\nproblem: {family: logged, file: log.nc}\n"
                            "policies: [target, random, linucb, egreedy, ts, {name: ts, rule: greedy, label: greedy}]\n")
            subprocess.run([program.PROGRAM, "run", "value.yaml", "-o", "value", "--progress", "none"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with netCDF4.Dataset(os.path.join(folder, "value", "results.nc")) as results:
                value, weight = (np.ma.filled(results[name][0], np.nan) for name in ("value", "mean_weight"))
        self.assertTrue(np.isfinite(value).all())
        np.testing.assert_allclose(value[0, :2], log["reward"].mean(), rtol=1e-12)
        uniform = mask[range(n), arm] / mask.sum(axis=1) / p
        np.testing.assert_allclose((value[1, 0], weight[1, 0]), ((uniform * log["reward"]).mean(), uniform.mean()), rtol=1e-12)

    def test_all(self):
        one, other = taught(), taught()
        np.testing.assert_array_equal(one.choose(range(3), ARMS), other.choose(range(3), ARMS, available=np.ones(len(ARMS), bool)))

    def test_refused(self):
        agents, none = taught(), np.ones((2, len(ARMS)), bool)
        none[1] = False
        self.assertRaisesRegex(thompson.Error, r"available: row 1 \(from 0\) has no arm", agents.choose, [0, 1], ARMS, available=none)
        self.assertRaisesRegex(thompson.Error, "arm 2 of row 0", agents.choose, [0], np.where(np.arange(7)[:, None] == 2, np.inf, ARMS), available=none[0])
        self.assertRaisesRegex(TypeError, r"shape \(3, 7\)", agents.choose, [0, 1], ARMS, available=np.ones((3, 7), bool))
        self.assertRaisesRegex(TypeError, "of type int", agents.choose, [0, 1], ARMS, available=[1] * 7)


class TopK(unittest.TestCase):
    def test_positions(self):
        """Different arms; the first position is the choice without top_k; the next ones are choices among what is left, with their probabilities."""
        many, one = taught(prior=MIXTURE, propensity_draws=100), taught(prior=MIXTURE, propensity_draws=100)
        arm, p = many.choose(range(3), ARMS, propensity=True, top_k=4)
        left = np.ones((3, len(ARMS)), bool)
        for j in range(4):
            chosen, propensity = one.choose(range(3), ARMS, propensity=True, available=left)
            np.testing.assert_array_equal((arm[:, j], p[:, j]), (chosen, propensity))
            left[range(3), chosen] = False
        self.assertEqual([len(set(row)) for row in arm.tolist()], [4] * 3)
        self.assertEqual(many.choose([], ARMS, top_k=2).shape, (0, 2))

    def test_frequencies(self):
        """8 000 agents with the same knowledge: given the first arm, the second is taken as often as the mean of its probabilities says, by a chi-squared
        test (30: the quantile 1 - 5e-6 of four degrees of freedom)."""
        n = 8000
        agents = thompson.Agents(MIXTURE, n, seed=2, noise=0.5, propensity_draws=10)
        arm, p = agents.choose(range(n), ARMS[:5], propensity=True, top_k=2)
        for first in range(5):
            of_first = arm[:, 0] == first
            left = np.arange(5) != first
            other = thompson.Agents(MIXTURE, 1, seed=9, noise=0.5, propensity_draws=100000).probabilities([0], ARMS[:5], available=left)[0]
            count, expected = np.bincount(arm[of_first, 1], minlength=5), other * of_first.sum()
            self.assertLess(((count - expected)[left] ** 2 / expected[left]).sum(), 30)

    def test_refused(self):
        self.assertRaisesRegex(ValueError, "top_k", taught().choose, [0], ARMS, top_k=8)
        self.assertRaisesRegex(ValueError, "top_k", taught().choose, [0], ARMS, top_k=2, available=np.arange(7) == 1)


class Names(unittest.TestCase):
    def test_as_numbers(self):
        """Names are another way to write numbers, also after a file, a copy and a pickle; ten thousand of them."""
        names = [f"user é{i}" for i in range(10000)]
        named, numbered = thompson.Agents(GAUSSIAN, names, seed=3), thompson.Agents(GAUSSIAN, 10000, seed=3)
        for agents, ids in ((named, ["user é7", "user é9999"]), (numbered, [7, 9999])):
            agents.observe(ids, X[:2], Y[:2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "agents.nc")
            named.save(path)
            again = thompson.Agents.open(path)
        others = again, copy.copy(named), pickle.loads(pickle.dumps(named))
        want = numbered.draw([9999, 7])
        for each in (named, *others):
            self.assertEqual(each.names, names)
            np.testing.assert_array_equal(each.draw(["user é9999", "user é7"]), want)

    def test_prior_of_other_rewards(self):
        """A prior that was learned from clicks is not used for Gaussian rewards in silence."""
        rng = np.random.default_rng(1)
        clicks = thompson.Agents(GAUSSIAN, 60, likelihood="logistic", seed=3)
        for _ in range(20):
            clicks.observe(np.arange(60), rng.standard_normal((60, D)), rng.integers(2, size=60))
        learned = clicks.learn_prior()
        for make in (lambda: thompson.Posterior(learned), lambda: thompson.Agents(learned, 3)):
            with self.assertWarnsRegex(UserWarning, "rewards with likelihood='logistic', and here it is 'gaussian'"):
                make()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            thompson.Agents(learned, 3, likelihood="logistic")

    def test_added(self):
        agents = thompson.Agents(GAUSSIAN, [], seed=3)
        self.assertEqual((agents.add(["ann", "bob"]), agents.add(["eve"]), agents.names), (0, 2, ["ann", "bob", "eve"]))
        self.assertRaisesRegex(KeyError, r"agents.add\(\['tim'\]\)", agents.draw, ["ann", "tim"])
        self.assertRaisesRegex(ValueError, "already an agent 'bob'", agents.add, ["bob"])
        self.assertRaisesRegex(ValueError, "'a' names two agents", agents.add, ["a", "b", "a"])
        self.assertRaisesRegex(ValueError, "have names", agents.add, 2)
        self.assertRaisesRegex(ValueError, "have numbers only", taught().add, ["ann"])
        self.assertRaisesRegex(TypeError, "7 is no name", thompson.Agents, GAUSSIAN, ["a", 7])
        self.assertRaises(TypeError, taught().draw, ["ann"])
        for column in (np.array(["eve", "ann"], dtype=object), np.array([2, 0], dtype=object)):  # as tables have them
            np.testing.assert_array_equal(agents.score(column, np.eye(D)), agents.score([2, 0], np.eye(D)))
        for column in (np.array(["eve", 0], dtype=object), np.array([0.5, 1.5], dtype=object)):
            self.assertRaisesRegex(TypeError, "a list of names of agents is needed", agents.draw, column)
        self.assertEqual(len(agents), 3)
        np.testing.assert_array_equal(agents.draw([1]), thompson.Agents(GAUSSIAN, 3, seed=3).draw([1]))


if __name__ == "__main__":
    program.main()
