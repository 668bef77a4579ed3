#!/usr/bin/env python3
"""Tests of analysis/tools/sensitivity.py: its estimators on functions whose indices are known, and what it says of studies. Ends with one line
"N passed, N failed"."""

import numpy as np
from scipy.stats import qmc

from study_fixture import PRIORS, StudyTest, main, write_results

import sensitivity

# The function of Ishigami and Homma (1990), a = 7, b = 0.1.
A, B = 7, 0.1
VARIANCES = 0.5 * (1 + B * np.pi**4 / 5)**2, A**2 / 8, 8 * B**2 * np.pi**8 / 225
FIRST = np.array([VARIANCES[0], VARIANCES[1], 0]) / sum(VARIANCES)
TOTAL = np.array([VARIANCES[0] + VARIANCES[2], VARIANCES[1], VARIANCES[2]]) / sum(VARIANCES)


def ishigami(u):
    x = np.pi * (2 * u - 1)
    return np.sin(x[..., 0]) + A * np.sin(x[..., 1])**2 + B * x[..., 2]**4 * np.sin(x[..., 0])


def groups(points, seed, keys=3):
    """The settings of a design of kind saltelli, [group, D + 2, key], made by SciPy."""
    pairs = qmc.Sobol(2 * keys, seed=seed).random(points)
    a, b = pairs[:, :keys], pairs[:, keys:]
    return np.stack([a, *(np.where(np.arange(keys) == j, b, a) for j in range(keys)), b], axis=1)


class Sensitivity(StudyTest):
    def within(self, found, truth):
        self.assertTrue((np.abs(found.value - truth) <= found.half).all(), f"{found} {truth}")

    def test_ishigami(self):
        """With 1 024 groups each index is within its interval; over 20 designs of 256, intervals of 95% hold at least 90% of the 120 indices."""
        truth = np.array([FIRST, TOTAL])
        self.within(sensitivity.bootstrapped(sensitivity.saltelli(ishigami(groups(1024, 0))[..., None]), 1024), truth)
        held = []
        for seed in range(20):
            found = sensitivity.bootstrapped(sensitivity.saltelli(ishigami(groups(256, seed))[..., None]), 256)
            held.append(np.abs(found.value - truth) <= found.half)
        self.assertGreaterEqual(np.mean(held), 0.9)

    def test_noise(self):
        """Runs whose noise has four times the variance of the function: with 16 of them a total index would be 1/4 too large, were it not for the
        correction; the mean over 30 designs is within 4 of its standard errors of the truth."""
        rng, totals = np.random.default_rng(2), []
        for seed in range(30):
            values = ishigami(groups(256, seed))[..., None] + 2 * np.sqrt(sum(VARIANCES)) * rng.standard_normal((256, 5, 16))
            totals.append(sensitivity.saltelli(values)(np.ones(256)))
        error = np.std(totals, axis=0, ddof=1) / np.sqrt(30)
        self.assertTrue((np.abs(np.mean(totals, axis=0) - [FIRST, TOTAL]) < 4 * error + 0.01).all(), f"{np.mean(totals, axis=0)} {error}")
        self.assertLess(4 * error.max(), 0.2)

    def test_common_noise(self):
        """Noise that the settings of a group share is no part of the total index: without an effect it is 0."""
        rng = np.random.default_rng(3)
        values = groups(64, 1)[..., :1] + 5 * rng.standard_normal((64, 1, 8))
        np.testing.assert_allclose(sensitivity.saltelli(values)(np.ones(64))[1, 1:], 0, atol=1e-12)

    def test_additive(self):
        """First order from Sobol points and from a Latin hypercube, with a key that has no effect."""
        for points in (qmc.Sobol(4, seed=1).random(512), qmc.LatinHypercube(4, seed=1).random(500)):
            found = sensitivity.bootstrapped(sensitivity.additive(ishigami(points)[:, None], list(points.T)), len(points))
            self.within(found, np.array([*FIRST, 0]))
            self.assertLess(found.half.max(), 0.15)

    def test_additive_has_little_bias(self):
        """Over independent points the mean of 100 estimates is that of a linear function and words within 4 standard errors, 0.2% of truncation aside."""
        rng, found = np.random.default_rng(4), []
        for _ in range(100):
            x, word = rng.random((80, 2)), rng.integers(0, 3, 80)
            values = 3 * x[:, 0] + word + rng.standard_normal(80)
            found.append(sensitivity.additive(values[:, None], [*x.T, np.array(["a", "b", "c"])[word]])(np.ones(80))[0])
        parts = np.array([9 / 12, 0, 2 / 3]) / (9 / 12 + 2 / 3 + 1)
        self.assertTrue((np.abs(np.mean(found, axis=0) - parts) < 4 * np.std(found, axis=0) / 10 + 0.002).all(), f"{np.mean(found, axis=0)} {parts}")

    def test_logarithms(self):
        """Parts of a logarithm have the logarithm as their mean, to the second order, and its variance."""
        rng = np.random.default_rng(5)
        parts = sensitivity.logarithms(rng.gamma(4, 1, (2000, 50)))
        self.assertLess(abs(parts.mean() - np.log(4)), 5 * parts.std() / np.sqrt(parts.size) + 1e-3)
        self.assertAlmostEqual(parts.var() / 50 / parts.mean(axis=1).var(), 1, delta=0.15)

    def test_one_value(self):
        """A policy whose values are all the same has no indices."""
        with np.errstate(invalid="ignore"):
            found = sensitivity.bootstrapped(sensitivity.saltelli(np.ones((16, 4, 3))), 16)
        self.assertTrue(np.isnan(found.value).all())

    def test_refused(self):
        write_results(self.folder, PRIORS, runs=4, rounds=5)
        self.refused(sensitivity, "the settings of the study are no design")


if __name__ == "__main__":
    main(Sensitivity)
