#!/usr/bin/env python3
"""Tests of analysis/figures/figure_frontier.py, with results files made here. Ends with one line "N passed, N failed"."""

import netCDF4
import numpy as np

from study_fixture import SIZES, StudyTest, call, main, write_posterior

from thompson import significance, store
import figure_frontier


class Frontier(StudyTest):
    POLICIES = {"ts": ("ts", 3.0), "mixture of 10": ("mixts", 1.1), "twisted 4": ("twisted", 1.5), "known prior twisted 4": ("twisted", 1.2)}
    SETTINGS = [{"problem.theta": theta, "prior.stages": stages} for theta in ("cross", "rays") for stages in (16, 100)]

    def setUp(self):
        super().setUp()
        self.curves = write_posterior(self.folder, self.SETTINGS, self.POLICIES)
        listed = "".join(f'  - {{name: {name}, label: "{label}"{", prior: exact" if "known" in label else ""}}}\n'
                         for label, (name, _) in self.POLICIES.items())
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.setncattr("config", f"draws: 20\npolicies:\n{listed}")
        self.dataset = store.results(self.folder, "posterior")

    def test_points(self):
        """A sampler without a chain appears once; the rest appear at every number of stages. Distances are geometric means over sizes."""
        panels = figure_frontier.points(self.dataset)
        self.assertEqual(list(panels), ["cross", "rays"])
        self.assertEqual([(one.name, one.size, one.exact) for one in panels["rays"]],
                         [("ts", "", False), ("mixts", "10", False), ("twisted", "4 / 16", False), ("twisted", "4 / 16", True),
                          ("twisted", "4 / 100", False), ("twisted", "4 / 100", True)])
        for (s, p), one in zip(((2, 0), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3)), panels["rays"]):
            ratio = self.curves["emd"][s, p].mean(axis=0) / self.curves["emd_floor"][s, p].mean(axis=0)
            self.assertAlmostEqual(one.value, np.prod(ratio) ** (1 / len(SIZES)))
            parts = [self.curves[name][s, p] / self.curves[name][s, p].mean(axis=0) for name in ("emd", "emd_floor")]
            of_runs = (parts[0] - parts[1]).mean(axis=1)
            groups = [of_runs[learned == one].mean() for learned in [significance.of_runs(self.dataset)] for one in np.unique(learned)]
            over = [np.std(found, ddof=1) / np.sqrt(len(found)) for found in (of_runs, groups) if len(found) > 1]
            self.assertAlmostEqual(one.error / one.value, max(over))
            seconds = self.dataset["seconds"].values[s, p].mean()
            self.assertAlmostEqual(one.cost, 1e6 * seconds / (20 * len(SIZES)))

    def test_front(self):
        """Only learned priors, and only those that no other one beats in both."""
        here = [figure_frontier.Point("twisted", "", exact, cost, value, 0.1)
                for exact, cost, value in ((False, 3, 1.5), (False, 1, 4), (True, 0.5, 1), (False, 2, 5), (False, 4, 1.5), (False, 5, 1.2))]
        self.assertEqual([one.cost for one in figure_frontier.front(here)], [1, 3, 5])

    def test_drawn(self):
        status, out, err = call(figure_frontier, self.folder, self.folder, "-o", self.folder / "front.png")
        self.assertFalse(status, err)
        self.assertIn("front", out)

    def test_unknown_draws(self):
        self.dataset.close()
        write_posterior(self.folder)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.setncattr("config", "policies: [{name: ts}]")
        self.refused(figure_frontier, "how many draws")


if __name__ == "__main__":
    main(Frontier)
