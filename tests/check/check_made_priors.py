#!/usr/bin/env python3
"""Priors that data/make_priors.py and data/make_clicks.py write: click rates have the distribution that the scripts say.
Ends with one line "N passed, N failed"."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import netCDF4
import numpy as np
from scipy.special import logit, ndtr
from scipy.stats import logistic

import summary

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Priors(unittest.TestCase):
    def made(self, *arguments, script="make_priors.py", names=("weight", "mean", "covariance")):
        """Variables of the file that a script writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "prior.nc"
            subprocess.run([sys.executable, ROOT / "data" / script, *arguments, "-o", path], check=True)
            with netCDF4.Dataset(path) as file:
                return tuple(file[name][:].data for name in names)

    def test_uniform(self):
        """Each coordinate has the logistic distribution to 5e-5, and the two are independent: weights are products."""
        weight, mean, covariance = self.made("uniform", "--arms", "2")
        self.assertAlmostEqual(weight.sum(), 1, places=12)
        self.assertTrue((mean == 0).all() and (covariance[:, 0, 1] == 0).all())
        x = np.linspace(-20, 20, 2001)
        for i in range(2):
            below = ndtr(x[:, None] / np.sqrt(covariance[:, i, i])) @ weight
            self.assertLess(np.abs(below - logistic.cdf(x)).max(), 5e-5)
        square = weight.reshape(3, 3)
        np.testing.assert_allclose(square, np.outer(square.sum(1), square.sum(0)), atol=1e-12)

    def test_rates(self):
        weight, mean, covariance = self.made("rates", "--mean", "-3.9", "--sd", "0.5", "--arms", "3")
        np.testing.assert_array_equal(weight, [1])
        np.testing.assert_array_equal(mean, [[-3.9] * 3])
        np.testing.assert_array_equal(covariance, [0.25 * np.eye(3)])
        by_rate = self.made("rates", "--rate", "0.02", "--sd", "0.5", "--arms", "3")
        np.testing.assert_allclose(by_rate[1], [[logit(0.02)] * 3], rtol=1e-14)
        np.testing.assert_array_equal(by_rate[2], covariance)

    def test_rate_refused(self):
        """A rate is a probability, and replaces a mean."""
        for words, message in (("--rate=1", "--rate 1: between 0 and 1"), ("--rate=0.1 --mean=0", "not allowed with argument")):
            command = [sys.executable, ROOT / "data" / "make_priors.py", "rates", "--arms", "3", "-o", "none.nc", *words.split()]
            refused = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(message, refused.stderr)

    def test_clicks(self):
        """The tastes have mean 0, and variances of 0.3^2 and, on the circle, 0.8^2 / 2 more; 20 000 users, five standard errors."""
        theta, features = self.made("--rate", "0.02", script="make_clicks.py", names=("theta", "features"))
        variance = 0.3**2 + 0.8**2 / 2 * np.array([0, 1, 1, 0, 0, 0])
        np.testing.assert_allclose(theta.mean(0) - [np.log(0.02 / 0.98), 0, 0, 0, 0, 0], 0, atol=5 * np.sqrt(variance.max() / 20_000))
        np.testing.assert_allclose(theta.var(0) / variance, 1, atol=5 * np.sqrt(2 / 20_000))
        self.assertTrue((features[:, 0] == 1).all() and features.shape == (200, 6))


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
