#!/usr/bin/env python3
"""Tests of analysis/figures/figure_logs.py, with results files made here. Ends with one line "N passed, N failed"."""

import netCDF4
import numpy as np

from study_fixture import StudyTest, call, main, write_priors, write_results, write_study

from thompson import store
import figure_logs


class Logs(StudyTest):
    SETTINGS = [{"problem.theta": theta, "prior.learned_from": source, "prior.past_observations": count}
                for theta in ("rays", "cross") for source in ("theta", "logs") for count in (20, 5)]
    POLICIES = {"diffts": ("diffts", {}), "mixts": ("mixts", {})}

    def setUp(self):
        super().setUp()
        self.regret = np.random.default_rng(3).uniform(10, 20, (len(self.SETTINGS), len(self.POLICIES), 6, 4))
        write_study(self.folder, "round", [1, 2, 3, 4], {"regret": self.regret}, self.SETTINGS, self.POLICIES, not_run=[(1, 0, 5)])
        write_priors(self.folder, [f"{one['problem.theta']}, prior.learned_from={one['prior.learned_from']}, "
                                   f"prior.past_observations={one['prior.past_observations']}" for one in self.SETTINGS], n=60)
        with netCDF4.Dataset(self.folder / "prior_samples.nc", "a") as file:
            for s in range(len(self.SETTINGS)):
                file["theta"][s, 1] = file["theta"][s, 0] + [0.3 * s, 0.4 * s]
        self.dataset = store.results(self.folder, "bandit")

    def test_panels(self):
        """A panel for each policy and problem, a line for each source, observations ascending; missing runs are reported."""
        made = figure_logs.panels(self.dataset)
        self.assertEqual([one.title for one in made], [f"{what} {theta}" for what in ("diffts", "mixts", "diffusion") for theta in ("rays", "cross")])
        self.assertEqual(list(made[3].names), ["theta", "logs"])
        self.assertEqual(list(made[3].x), [5, 20])
        final = self.regret[4:, 1, :, -1].mean(axis=-1)
        np.testing.assert_allclose(made[3].means, [final[[1, 0]], final[[3, 2]]])
        self.assertEqual(list(made[0].done), [5, 6])

    def test_distances(self):
        """A prior that is the true one shifted by v is at distance |v|: every matching moves the mean by v."""
        made = figure_logs.panels(self.dataset)
        np.testing.assert_allclose(made[4].means, [[0.5, 0], [1.5, 1]], atol=1e-9)
        np.testing.assert_allclose(made[5].means, [[2.5, 2], [3.5, 3]], atol=1e-9)

    def test_drawn(self):
        status, out, err = call(figure_logs, self.folder, "-o", self.folder / "logs.png")
        self.assertFalse(status, err)
        self.assertIn("logs", out)

    def test_other_study(self):
        self.dataset.close()
        write_results(self.folder, ["cross"])
        self.refused(figure_logs, "does not sweep prior.learned_from")


if __name__ == "__main__":
    main(Logs)
