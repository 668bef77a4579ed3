#!/usr/bin/env python3
"""The figure of guards, and the chart of a metric that is measured only at a few rounds, on artificial results."""
import pathlib
import tempfile
import unittest
import unittest.mock

import numpy as np
import xarray as xr

from study_fixture import call, main

import chart
import figure_guard
import figure_guard_tasks

WORLDS, WEIGHTS = ["cross", "rays"], [0.0, 0.2]
SPREAD = 0.5


def study(regret):
    """regret[weight, world, prior] of the second policy; the first has 10 everywhere. There are two runs, in which the first policy is off its mean by
    -SPREAD and SPREAD, and the second by the opposite times the ratio, so that the second is 2 SPREAD times the ratio off what the first predicts."""
    settings = [(world, file, weight) for world in range(2) for file in range(2) for weight in range(2)]
    mean = np.array([[[10.0], [regret[w, i, j]]] for i, j, w in settings])
    runs = mean[:, :, None] + SPREAD * np.array([-1, 1])[:, None] * np.array([np.ones_like(mean[:, 0]), -mean[:, 1] / 10]).transpose(1, 0, 2)[:, :, None]
    return xr.Dataset({"regret": (("setting", "policy", "run", "round"), runs), "regret_mean": (("setting", "policy", "round"), mean), "regret_se": (("setting", "policy", "round"), 0 * mean),
                       "problem_theta": ("setting", [WORLDS[i] for i, _, _ in settings]),
                       "prior_file": ("setting", [f"priors/diffusion-{WORLDS[j]}.nc" for _, j, _ in settings]),
                       "prior_guard": ("setting", [WEIGHTS[w] for _, _, w in settings])}, coords={"round": [1], "policy": ["ts", "diffts"]})


class Guard(unittest.TestCase):
    REGRET = np.array([[[5.0, 40], [30, 8]], [[6, 12], [11, 8.4]]])

    def test_numbers(self):
        """Rows are worlds, columns the priors; losses are those on the diagonal, relative to no guard."""
        with unittest.mock.patch.object(figure_guard.averages, "at_end", lambda dataset, values: np.asarray(values)[..., -1]), \
             unittest.mock.patch.object(figure_guard.averages, "moments", lambda dataset, curve: (dataset["regret_mean"].values, None)):
            worlds, weights, ratio, error, regret = figure_guard.ratios(study(self.REGRET))
        self.assertEqual(worlds, WORLDS)
        self.assertEqual(list(weights), WEIGHTS)
        np.testing.assert_allclose(ratio, self.REGRET / 10)
        # Runs differ by -2 and 2 SPREAD times the ratio from what is expected, so that their mean has an error of 2 SPREAD times the ratio.
        np.testing.assert_allclose(error, 2 * SPREAD * self.REGRET / 10 / 10)
        loss, worst = figure_guard.frontier(ratio, regret)
        np.testing.assert_allclose(loss, [0, 20])
        np.testing.assert_allclose(worst, [4, 1.2])

    def test_tasks(self):
        """For other worlds the largest and the median, for the world itself the largest and the mean."""
        ratio = np.array([[[0.7, 2.0, 1.2], [3.0, 0.8, 1.0], [1.5, 1.1, 0.6]]])
        wrong, right = figure_guard_tasks.summaries(ratio, 0.1 * ratio)
        np.testing.assert_allclose(wrong, [[[3.0], [0.3]], [[1.35], [0.15]]])      # 1.35 lies between 1.2 and 1.5
        np.testing.assert_allclose(right, [[[0.8], [0.08]], [[0.7], [0.1 * np.sqrt(0.7 ** 2 + 0.8 ** 2 + 0.6 ** 2) / 3]]])

    def test_other_studies(self):
        with tempfile.TemporaryDirectory() as folder:
            for script in (figure_guard, figure_guard_tasks):
                status, _, err = call(script, pathlib.Path(folder) / "none")
                self.assertEqual(status, 3)
                self.assertIn("none", err)

    def test_chart_of_few_rounds(self):
        """The rounds at which it is not measured are left out, so the others are joined."""
        means = np.array([[[0.5, np.nan, np.nan, 0.25], [np.nan] * 4]])
        dataset = xr.Dataset(coords={"round": [1, 2, 3, 4]})
        with unittest.mock.patch.multiple(chart.averages, last_rounds=lambda dataset: [3], moments=lambda dataset, metric: (means, 0 * means),
                                          floor=lambda dataset, metric: None), \
             unittest.mock.patch.multiple(chart, along=lambda dataset: "round"), \
             unittest.mock.patch.object(chart.store, "axis", lambda dataset: "round"), \
             unittest.mock.patch.object(chart.metrics, "words", lambda dataset, metric: metric):
            shown = chart.of_curve(dataset, "prior_p_value", 0, "cross")
        self.assertEqual(shown["x"], [1, 4])
        self.assertEqual(shown["mean"][0], [0.5, 0.25])


if __name__ == "__main__":
    main(Guard)
