#!/usr/bin/env python3
"""Selection as a control, the figures of regret against temper, over its floor and by rule, and the two errors of a sampler, on artificial results."""
import pathlib
import tempfile
import unittest

import netCDF4
import numpy as np

from study_fixture import bandit, call, main

from thompson import selection, store
import errors
import figure_decisions
import figure_rules
import figure_temper
import selection as selection_script

TEMPERS = {f"{name} x{temper}": (name, {"temper": temper}) for name in ("ts", "mixts") for temper in (1, 2, 4)}
RULES = {f"{name} {rule}": (name, {"rule": rule}) for name in ("ts", "exact") for rule in ("thompson", "bayes_ucb", "greedy")}
SAMPLERS = {"exact": ("exact", {}), "diffts": ("diffts", {}), "diffts exact chain": ("diffts", {"prior": "exact"}),
            "twisted": ("twisted", {"particles": 16}), "mixts": ("mixts", {"components": 10})}


class Temper(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def test_control(self):
        """A half reports the point that was chosen on the other half; the fixed point is that of temper 1."""
        regret = bandit(self.folder, policies=TEMPERS)[..., -1]
        table = selection.control(store.results(self.folder), "temper", "1", minus="mixts")
        self.assertEqual(list(table.method), 2 * ["ts", "mixts"])
        halves = slice(0, 10), slice(10, 20)
        for s in range(2):
            reported = {}
            for method, members in (("ts", [0, 1, 2]), ("mixts", [3, 4, 5])):
                chosen = [members[regret[s, members, half].mean(axis=1).argmin()] for half in halves]
                reported[method] = np.concatenate([regret[s, chosen[1], halves[0]], regret[s, chosen[0], halves[1]]])
                row = table[table.method == method].iloc[s]
                np.testing.assert_allclose([row.fixed, row.reported], [regret[s, members[0]].mean(), reported[method].mean()])
            row, gap = table[table.method == "ts"].iloc[s], reported["ts"] - reported["mixts"]
            np.testing.assert_allclose([row.difference, row.difference_se, row.fixed_difference],
                                       [gap.mean(), gap.std(ddof=1) / np.sqrt(20), (regret[s, 0] - regret[s, 3]).mean()])

    def test_control_refuses(self):
        bandit(self.folder, policies=TEMPERS)
        for arguments, sentence in ((["--control", "temper=3"], "has no point at the value of --control"),
                                    (["--control", "temper=1", "--minus", "dps"], "the methods are ts, mixts")):
            status, _, err = call(selection_script, self.folder, *arguments)
            self.assertEqual(status, 3)
            self.assertIn(sentence, err)

    def test_figure(self):
        """A panel for each setting, with a line for each method over the tempers."""
        regret = bandit(self.folder, policies=TEMPERS)[..., -1].mean(axis=2)
        panels = figure_temper.panels(store.results(self.folder))
        self.assertEqual(len(panels), 2)
        self.assertEqual(list(panels[0].names), ["ts", "mixts"])
        self.assertEqual(list(panels[0].x), [1, 2, 4])
        np.testing.assert_allclose(panels[1].means, regret[1].reshape(2, 3))
        self.assertEqual(call(figure_temper, self.folder, "-o", self.folder / "x.svg")[0] or 0, 0)

    def test_decisions(self):
        """A row for each setting, named by how it differs from the first; regret of Thompson sampling and of the rule that the other half
        chose, and the floor, at the last round. A study without a floor is refused."""
        settings = [{"problem.theta": "gm_cross", "problem.noise": 1}, {"problem.theta": "gm_cross", "problem.noise": 2}]
        regret = bandit(self.folder, settings, RULES)[..., -1]
        status, _, err = call(figure_decisions, self.folder)
        self.assertEqual(status, 3)
        self.assertIn("no floor of regret", err)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            for name, scale in (("regret_floor_mean", 1), ("regret_floor_se", 0.1)):
                file.createVariable(name, "f8", ("setting", "round"))[:] = scale * (1 + np.arange(60).reshape(2, 30))
        table = figure_decisions.table(store.results(self.folder))
        self.assertEqual(list(table.name), 2 * ["gm_cross"] + 2 * ["gm_cross, noise 2"])
        self.assertEqual(list(table.floor), [30, 30, 60, 60])
        np.testing.assert_allclose(table.floor_se, 0.1 * table.floor)
        np.testing.assert_allclose(table.fixed, regret[:, [0, 3]].mean(axis=2).ravel())
        self.assertEqual(call(figure_decisions, self.folder, "-o", self.folder / "x.svg")[0] or 0, 0)

    def test_rules(self):
        """The colour shows the prior, the dashes the rule; the marks of each rule are side by side, with two standard errors."""
        regret = bandit(self.folder, [{"problem.noise": 1}], {**RULES, "learned": ("exact", {"rule": "greedy", "prior": "x/gaussian.nc"})})[0, ..., -1]
        dataset = store.results(self.folder)
        found = figure_rules.kinds(dataset)
        self.assertEqual(found["learned"], ("exact", "gaussian", "greedy"))
        styles = figure_rules.styles_of(found)
        self.assertEqual(styles["ts greedy"]["color"], styles["ts thompson"]["color"])
        self.assertEqual(styles["ts greedy"]["linestyle"], styles["exact greedy"]["linestyle"])
        self.assertEqual(len({str(styles[f"ts {rule}"]["linestyle"]) for rule in figure_rules.DASHES}), 3)
        self.assertNotEqual(styles["learned"]["color"], styles["exact greedy"]["color"])
        axis = figure_rules.draw(dataset).axes[1]
        bars = [bar for container in axis.containers for bar in container[2][0].get_segments()]
        order = [0, 3, 1, 4, 2, 5, 6]
        np.testing.assert_allclose([bar.mean(axis=0)[1] for bar in bars], regret[order].mean(axis=1))
        np.testing.assert_allclose([np.ptp(bar[:, 1]) for bar in bars], 4 * regret[order].std(axis=1, ddof=1) / np.sqrt(regret.shape[1]))
        self.assertEqual(call(figure_rules, self.folder, "-o", self.folder / "x.svg")[0] or 0, 0)

    def test_errors(self):
        """whole = learning + approximation + rest; the right sampler is twisted for a chain, and the mixture's own for a mixture."""
        regret = bandit(self.folder, policies=SAMPLERS)[..., -1]
        table = errors.frame(store.results(self.folder))
        self.assertEqual(list(table.sampler), 2 * ["diffts", "twisted", "mixts"])
        for s in range(2):
            diffts, twisted, mixts = (table.iloc[3 * s + k] for k in range(3))
            gap = (regret[s] - regret[s, 0]).mean(axis=1)
            np.testing.assert_allclose([diffts.whole, diffts.learning, diffts.approximation], gap[[1, 3, 2]])
            np.testing.assert_allclose(diffts["rest"], gap[1] - gap[3] - gap[2])
            np.testing.assert_allclose([twisted.whole, twisted.learning, mixts.whole, mixts.learning], gap[[3, 3, 4, 4]])
            self.assertTrue(np.isnan(mixts.approximation))

    def test_errors_need_exact_draws(self):
        bandit(self.folder, policies=TEMPERS)
        status, _, err = call(errors, self.folder)
        self.assertEqual(status, 3)
        self.assertIn("no policy exact", err)


if __name__ == "__main__":
    main(Temper)
