#!/usr/bin/env python3
"""Bernoulli arms: the dynamic program of two arms has the published digits, and Gittins indices are the published ones, those of bisection, and optimal.
Ends with one line "N passed, N failed"."""
import sys
import unittest

import bernoulli_optimum
import gittins
import published
import summary


class Optimum(unittest.TestCase):
    def test_published_digits(self):
        for row in published.rows("bernoulli"):
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
        for row in published.rows("gittins"):
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


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
