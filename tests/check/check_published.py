#!/usr/bin/env python3
"""Published results: every row of the bandit tables stands on its page as it is printed, the dynamic program of two Bernoulli arms has the published
digits, and the priors of click rates are what they say. Ends with one line "N passed, N failed"."""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import netCDF4
import numpy as np
from scipy.special import ndtr
from scipy.stats import logistic

import bernoulli_optimum
import gittins
import summary

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(name):
    with open(ROOT / "data" / "published" / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def page_part(name):
    text = (ROOT / "docs" / "results" / "bandits.md").read_text(encoding="utf-8")
    return re.search(rf"from {name} -->(.*)<!-- [^>]*to {name} -->", text, re.DOTALL)[1]


class Page(unittest.TestCase):
    def test_cells(self):
        """The line of a method has the printed number in the column of its setting."""
        for name, table, setting, label in (
                ("wheel", lambda row: "wheel" if row["rounds"] == "2000" else "wheel_long", "delta", lambda row: f"{row['method']} ({row['source']}), {row['kind']}"),
                ("linear_showdown", lambda row: "linear_showdown", "problem",
                 lambda row: f"{row['method']}, {'as published' if row['source'] == 'showdown' else 'recomputed in NumPy'}")):
            for row in rows(name):
                lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page_part(table(row)).splitlines() if line.startswith("|")]
                cells = {line[0]: dict(zip(lines[0], line)) for line in lines[2:]}
                self.assertEqual(cells[label(row)][row[setting]], f"{row['regret']} ± {row['spread']}", row)

    def test_optimum(self):
        for row in rows("bernoulli"):
            if row["policy"] == "optimal":
                self.assertIn(f"{row['rounds']} rounds: {row['successes']}", page_part("bernoulli"))


class Delays(unittest.TestCase):
    def test_verdict(self):
        """What README and docs/results/delays.md say: bayes_ucb is nowhere worse by two standard errors at 2%, nor elsewhere up to a thirtieth."""
        text = (ROOT / "docs" / "results" / "delays.md").read_text(encoding="utf-8")
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| \d+%", line)]
        self.assertEqual(len(cells), 24)
        for rate, delay, *_, difference in cells:
            mean, se = map(float, difference.split(" ± "))
            if rate == "2%" or delay in ("at once", "1/30"):
                self.assertLess(mean, 2 * se, (rate, delay))
        self.assertGreater(float(cells[-1][-1].split()[0]), 0)  # at 50% and a quarter it is worse


class Bernoulli(unittest.TestCase):
    def test_published_digits(self):
        for row in rows("bernoulli"):
            policy, rounds = row["policy"], int(row["rounds"])
            if policy != "optimal" and rounds > 60:
                continue  # two seconds each
            digits = max(12, len(row["successes"].replace(".", ""))) if row["source"] == "BinaryBandit" else len(row["successes"].replace(".", ""))
            self.assertAlmostEqual(bernoulli_optimum.successes(policy, rounds) / float(row["successes"]), 1, delta=5 * 10.0 ** -min(digits, 13))

    def test_best_mean(self):
        """E max of two uniform numbers is 2/3; of two Beta(2, 1), whose distribution function is x^2, 1 - 1/5."""
        self.assertAlmostEqual(bernoulli_optimum.best_mean(1, 1), 2 / 3, places=14)
        self.assertAlmostEqual(bernoulli_optimum.best_mean(2, 1), 4 / 5, places=14)

    def test_one_round(self):
        """After one round with Beta(2, 1): the mean of an arm, whatever is played."""
        for policy in bernoulli_optimum.POLICIES:
            self.assertAlmostEqual(bernoulli_optimum.successes(policy, 1, 2, 1), 2 / 3, places=14)


class Gittins(unittest.TestCase):
    def test_published(self):
        for row in rows("gittins"):
            if row["discount"] == "0.9":
                found = gittins.index(1 + int(row["successes"]), 1 + int(row["failures"]), 0.9)
                self.assertAlmostEqual(found, float(row["index"]), delta=5.1e-5)
        # Bisection would take five seconds.
        for reward, better in ((0.8698, True), (0.87, False)):
            self.assertEqual(gittins.advantages(1, 0.99, reward, 1, 1, 2000)[0][0] > 0, better)

    def test_table(self):
        """Indices found on straight lines between certain rewards are those of bisection."""
        table = gittins.indices(6, 0.8)
        for n, s in ((0, 0), (1, 0), (4, 1), (5, 5)):
            self.assertAlmostEqual(table[n][s], gittins.index(1 + s, 1 + n - s, 0.8), delta=1e-5)

    def test_optimal(self):
        """The theorem: with discounted rewards, playing the larger index earns what the dynamic program of two arms does."""
        discount, rounds = 0.6, 45     # what is left after them is 1e-10 of the whole
        table = gittins.indices(rounds, discount)
        earned = [bernoulli_optimum.successes(policy, rounds, discount=discount) for policy in ("optimal", table)]
        self.assertAlmostEqual(*earned, delta=1e-7)
        self.assertGreater(earned[0] - bernoulli_optimum.successes("greedy", rounds, discount=discount), 1e-3)


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

    def test_clicks(self):
        """The tastes have mean 0, and variances of 0.3^2 and, on the circle, 0.8^2 / 2 more; 20 000 users, five standard errors."""
        theta, features = self.made("--rate", "0.02", script="make_clicks.py", names=("theta", "features"))
        variance = 0.3**2 + 0.8**2 / 2 * np.array([0, 1, 1, 0, 0, 0])
        np.testing.assert_allclose(theta.mean(0) - [np.log(0.02 / 0.98), 0, 0, 0, 0, 0], 0, atol=5 * np.sqrt(variance.max() / 20_000))
        np.testing.assert_allclose(theta.var(0) / variance, 1, atol=5 * np.sqrt(2 / 20_000))
        self.assertTrue((features[:, 0] == 1).all() and features.shape == (200, 6))


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
