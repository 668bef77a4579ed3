"""The entropy of the best arm: known values, it changes nothing else, and policies without a posterior have none."""

import math

import netCDF4
import numpy as np

from thompson import Error, store
import figure_entropy
import program

STUDY = """
name: entropy
study: bandit
seed: 3
runs: 64
block: 64
problem: {theta: gaussian, dimension: 2, arms: 2, rounds: 40}
policies: [ts, {name: mixts, prior: exact}, lints, linucb]
draws: 400
metrics: [%s]
"""


class Entropy(program.ProgramTest):
    def curves(self, name, metric):
        study = self.write(f"{name}.yaml", STUDY % metric)
        self.succeed("run", study, "-o", self.path(name), "--progress", "none")
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return {key: np.ma.filled(data[key][...], np.nan)[0] for key in ("regret", "optimal_arm_entropy") if key in data.variables}

    def test_known_values(self):
        """Each of two arms is best with probability 1/2 under N(0, I), so H is log 2, minus about 1 / (2 M); the mean of 64 runs has an
        error of 0.0002. Over the rounds the agent learns which is best, and H falls."""
        asked, plain = self.curves("asked", "optimal_arm_entropy"), self.curves("plain", "emd")
        self.assertNotIn("optimal_arm_entropy", plain)
        self.assertEqual(asked["regret"].tobytes(), plain["regret"].tobytes())
        entropy = asked["optimal_arm_entropy"]
        for policy in entropy[:2]:
            self.assertAlmostEqual(policy[:, 0].mean(), math.log(2) - 1 / 800, delta=0.001)
            self.assertLess(policy[:, -1].mean(), 0.8 * policy[:, 0].mean())
        self.assertTrue(np.isfinite(entropy[:3]).all() and (entropy[:3] >= 0).all())
        self.assertTrue(np.isnan(entropy[3]).all())
        self.check_figure(entropy)

    def check_figure(self, entropy):
        """A policy without a posterior has no line; the bound is the formula, with the highest entropy before the first round."""
        shown, regret = figure_entropy.panels(store.results(self.path("asked")), 2.0, 2)
        self.assertEqual(list(shown.names), ["ts", "mixts", "lints"])
        np.testing.assert_allclose(shown.means[:, 0], entropy[:3, :, 0].mean(axis=1))
        highest = entropy[:3, :, 0].mean(axis=1).max()
        np.testing.assert_allclose(regret.means[-1] ** 2, 2 * 2.0**2 * 2 * highest * regret.x)
        with self.assertRaises(Error):
            figure_entropy.panels(store.results(self.path("plain")), 2.0, 2)


if __name__ == "__main__":
    program.main()
