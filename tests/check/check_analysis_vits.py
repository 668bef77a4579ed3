#!/usr/bin/env python3
"""Tests of analysis/ on the studies of the VITS paper, with results files made here.

The expected numbers are computed here from the per-run values with plain NumPy. Ends with one line "N passed, N failed".
"""
import csv
import io
import pathlib
import re
import runpy

import netCDF4
import numpy as np

from study_fixture import GRID, LIMIT, ROOT, StudyTest, bandit, call, convergence, main

from thompson import design, selection, store
import convergence as speed
import figure_vits
import figure_vits_4
import figure_vits_cost
import selection as selection_script


class Vits(StudyTest):
    def printed(self, module, *arguments):
        """What the script prints."""
        status, out, err = call(module, *arguments)
        self.assertEqual((status, err), (0, ""))
        return out

    # ---- options of policies

    def test_options(self):
        bandit(self.folder)
        found = design.options(store.results(self.folder))
        self.assertEqual(list(found), list(GRID))
        self.assertEqual(found["lmc h=0.1 long"], {"name": "lmc", "label": "lmc h=0.1 long", "prior": "default", "steps": "50",
                                                   "step_size": "0.1"})

    def test_options_with_quotes_commas_and_lists(self):
        bandit(self.folder, policies={'a, "b" {c}': ("lmc", {"hidden": "[10, 20]", "file": '"x, y: z"'})}, settings=[{}])
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.config = file.config.replace('label: "a, "b" {c}"', 'label: "a, \\"b\\" {c}"')
        found = design.options(store.results(self.folder))['a, "b" {c}']
        self.assertEqual((found["hidden"], found["file"]), ("[10, 20]", "x, y: z"))

    def test_options_not_recorded(self):
        bandit(self.folder)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.config = "study: bandit\n"
        self.refused(selection_script, "do not say what the options of policy vits2 h=0.01 were")

    # ---- Figures 1, 2, 3, 5, 6

    def test_regret_curves(self):
        regret = bandit(self.folder)
        figure = self.figure(figure_vits.draw([store.results(self.folder)]))
        axes = [axis for axis in figure.axes if axis.get_visible()]
        self.assertEqual([axis.get_title() for axis in axes], ["zeta = 0.1", "zeta = 1"])
        for s, axis in enumerate(axes):
            for p, line in enumerate(axis.lines):
                self.assert_close(line.get_ydata(), regret[s, p].mean(axis=0))
            error = regret[s, 2].std(axis=0, ddof=1) / np.sqrt(20)
            band = axis.collections[2].get_paths()[0].vertices[:, 1]
            self.assertAlmostEqual(band.max(), (regret[s, 2].mean(axis=0) + error)[-1], places=6)

    def test_regret_of_two_studies(self):
        names = {"lmc": ("lmc", {}), "vits2": ("vits2", {})}
        folders = []
        for likelihood in ("gaussian", "logistic"):
            folder = self.folder / likelihood
            folder.mkdir()
            bandit(folder, [{}], names, family="twin", likelihood=likelihood)
            folders.append(store.results(folder))
        figure = self.figure(figure_vits.draw(folders))
        self.assertEqual([axis.get_title() for axis in figure.axes], ["linear bandit, twin arm", "logistic bandit, twin arm"])

    def test_without(self):
        regret = bandit(self.folder)
        figure = self.figure(figure_vits.draw([*design.selected([store.results(self.folder)], without=["vits2 h=0.01"])]))
        self.assert_close(figure.axes[0].lines[0].get_ydata(), regret[0, 1].mean(axis=0))
        self.assertEqual(len(figure.axes[0].lines), 5)
        self.refused(figure_vits, "no study has a policy vits3; there are vits2 h=0.01, vits2 h=0.1, lmc h=0.01", "--without", "vits3")
        self.refused(figure_vits, "no policy is left", *(part for label in GRID for part in ("--without", label)))

    def test_pool_noise_is_explained(self):
        bandit(self.folder)
        self.assertIn("signal to noise ratio", " ".join(figure_vits.sentences([store.results(self.folder)])))
        bandit(self.folder, family="twin")
        self.assertNotIn("signal to noise ratio", " ".join(figure_vits.sentences([store.results(self.folder)])))

    def test_files_of_regret(self):
        bandit(self.folder)
        out = self.printed(figure_vits, self.folder)
        self.assertEqual(out.split(), [f"{self.folder}/figure_vits.{ending}" for ending in ("png", "pdf")])
        for path in out.split():
            self.assertGreater(pathlib.Path(path).stat().st_size, 5000)

    def test_wrong_kind(self):
        convergence(self.folder)
        self.refused(figure_vits, "is of a convergence study")
        self.refused(selection_script, "is of a convergence study")
        bandit(self.folder)
        self.refused(figure_vits_4, "is of a bandit study")
        self.refused(figure_vits_cost, "that sweeps problem.rounds")

    # ---- Figure 4

    def test_steps(self):
        reached, _ = convergence(self.folder)
        dataset = store.results(self.folder, "convergence")
        mean, error, late = speed.steps(dataset)
        counted = np.where(np.isfinite(reached), reached, LIMIT)
        self.assert_close(mean, counted.mean(axis=2))
        self.assert_close(error, counted.std(axis=2, ddof=1) / np.sqrt(12))
        self.assertEqual(late.tolist(), [[0] * 4] * 3 + [[5, 0, 0, 0]])

    def test_panels_by_step_size(self):
        reached, _ = convergence(self.folder)
        figure = self.figure(figure_vits_4.draw(store.results(self.folder, "convergence")))
        self.assertEqual([axis.get_title() for axis in figure.axes], ["step size 0.01", "step size 0.1"])
        for axis, policies in zip(figure.axes, ((2, 3), (0, 1))):
            self.assertEqual(axis.get_yscale(), "log")
            for container, p in zip(axis.containers, policies):
                self.assert_close(container.lines[0].get_ydata(),
                                  np.where(np.isfinite(reached[:, p]), reached[:, p], LIMIT).mean(axis=1))
            dashed = [line for line in axis.lines if line.get_color() == figure_vits_4.LIMIT]
            self.assertEqual([list(line.get_ydata()) for line in dashed], [[LIMIT, LIMIT]])

    def test_slope(self):
        """For a power law the slope is its exponent, whatever its factor; otherwise it is NumPy's least squares."""
        x = np.array([1.0, 3.0, 7.0, 20.0])
        self.assertAlmostEqual(speed.slope(x, 5 * x ** 1.3)[0], 1.3, places=12)
        y = np.array([2.0, 9.0, 11.0, 70.0])
        fitted, covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
        value, error = speed.slope(x, y)
        self.assertAlmostEqual(value, fitted[0], places=12)
        self.assertAlmostEqual(error, np.sqrt(covariance[0, 0]), places=12)
        self.assertTrue(np.isnan(speed.slope(x[:1], y[:1])).all())

    def test_slopes_leave_out_what_did_not_arrive(self):
        reached, _ = convergence(self.folder)
        table = figure_vits_4.slopes(store.results(self.folder, "convergence")).set_index("policy")
        self.assertEqual(list(table["points"]), [3, 4, 4, 4])
        self.assertEqual(list(table["runs at max_steps"]), [5, 0, 0, 0])
        kappa = np.array([1, 5, 10, 20])
        for label, use in (("lmc h=0.1", slice(3)), ("vits2 h=0.1", slice(4))):
            p = list(table.index).index(label)
            self.assertAlmostEqual(table.slope[label], np.polyfit(np.log(kappa[use]), np.log(reached[use, p].mean(axis=1)), 1)[0],
                                   places=12)

    def test_figure_4_prints_slopes(self):
        convergence(self.folder)
        out = self.printed(figure_vits_4, self.folder)
        self.assertIn("slope", out)
        self.assertTrue((self.folder / "figure_vits_4.pdf").exists())

    def test_figure_4_needs_condition_numbers(self):
        convergence(self.folder, "problem.dimension")
        self.refused(figure_vits_4, "sweeps problem.condition_number alone; this one sweeps problem.dimension")

    # ---- cost

    def test_cost_of_a_step(self):
        """The chain pays for its burn-in."""
        seconds = np.random.default_rng(0).uniform(1, 2, (4, 4, 12))
        _, kl = convergence(self.folder, "problem.dimension", (2, 5, 10, 20), seconds=seconds)
        dataset = store.results(self.folder, None)
        made = figure_vits_cost.panels(dataset)
        self.assertEqual([one.title for one in made], [f"dimension = {d}" for d in (2, 5, 10, 20)] + ["one step"])
        each = seconds.mean(axis=2) / np.array([LIMIT + 1000, LIMIT, LIMIT + 1000, LIMIT])
        x, y, error = made[1].lines["vits2 h=0.1"]
        self.assert_close(x, 1e3 * each[1, 1] * np.array([1, 10, 100, 1000, LIMIT]))
        self.assert_close(y, kl[1, 1].mean(axis=0))
        self.assert_close(error, kl[1, 1].std(axis=0, ddof=1) / np.sqrt(12))
        self.assert_close(made[1].lines["lmc h=0.1"][0][1:], 1e3 * each[1, 0] * (1000 + np.array([10, 100, 1000, LIMIT])))
        for p, (x, y, _) in enumerate(made[4].lines.values()):
            self.assert_close(x, [2, 5, 10, 20])
            self.assert_close(y, 1e6 * each[:, p])

    def test_cost_of_a_round(self):
        """If time is quadratic in the rounds, the cost of a round is proportional to the observations."""
        settings = [{"problem.dimension": d, "problem.rounds": n} for d in (5, 20) for n in (100, 50, 200)]
        n, d = (np.array([one[f"problem.{key}"] for one in settings], float) for key in ("rounds", "dimension"))
        seconds = np.repeat((d * (3e-6 * n ** 2 + 1))[:, None, None] * np.ones((6, 6, 1)), 20, axis=2)
        bandit(self.folder, settings, seconds=seconds)
        made = figure_vits_cost.panels(store.results(self.folder, None))
        self.assertEqual([one.title for one in made],
                         ["one round, dimension = 5", "one round, dimension = 20", "one round, 150 observations"])
        for one, dimension in zip(made, (5, 20)):
            x, y, _ = one.lines["lmc h=0.1"]
            self.assert_close(x, [75, 150])
            self.assert_close(y, 1e6 * dimension * 6e-6 * x)
        self.assert_close(made[2].lines["lmc h=0.1"][1], 1e6 * np.array([5, 20]) * 6e-6 * 150)
        self.assert_close(figure_vits_cost.slopes(made).slope, np.ones(18))

    def test_cost_needs_two_numbers_of_rounds(self):
        bandit(self.folder, [{"problem.rounds": 50.0}])
        self.refused(figure_vits_cost, "needs at least two values of problem.rounds")

    def test_cost_figure(self):
        other = self.folder / "rounds"
        other.mkdir()
        convergence(self.folder, "problem.dimension")
        seconds = np.linspace(1, 2, 2 * 6 * 20).reshape(2, 6, 20)
        bandit(other, [{"problem.rounds": 50.0}, {"problem.rounds": 100.0}], seconds=seconds)
        out = self.printed(figure_vits_cost, self.folder, other, "-o", self.folder / "x.svg")
        self.assertIn("x.svg", out)
        self.assertIn("one round", out)

    # ---- selection

    def test_methods(self):
        bandit(self.folder)
        dataset = store.results(self.folder)
        self.assertEqual(selection.methods(dataset), {"vits2": [0, 1], "lmc": [2, 3, 4, 5]})
        self.assertEqual(selection.methods(dataset, ["steps"]),
                         {"vits2 steps=10": [0, 1], "lmc steps=10": [2, 3], "lmc steps=50": [4, 5]})

    def test_chosen_on_one_half_and_reported_on_the_other(self):
        final = bandit(self.folder)[..., -1]
        table = selection.frame(store.results(self.folder))
        self.assertEqual(len(table), 2 * 2 * 2)
        labels, groups = list(GRID), {"vits2": [0, 1], "lmc": [2, 3, 4, 5]}
        for (s, zeta), (half, tuning) in ((pair, end) for pair in enumerate(("zeta = 0.1", "zeta = 1"))
                                          for end in (("first", slice(0, 10)), ("second", slice(10, 20)))):
            rest = slice(10, 20) if half == "first" else slice(0, 10)
            chosen = {}
            for method, members in groups.items():
                row = table[(table.setting == zeta) & (table.half == half) & (table.method == method)].iloc[0]
                best = members[np.argmin(final[s, members, tuning].mean(axis=1))]
                chosen[method] = best
                self.assertEqual(row.chosen, labels[best])
                others = final[s, members, rest].mean(axis=1)
                self.assert_close(
                    [row.tuned, row.reported, row.reported_se, row.best, row["median"], row.worst],
                    [final[s, best, tuning].mean(), final[s, best, rest].mean(), final[s, best, rest].std(ddof=1) / np.sqrt(10),
                     others.min(), np.median(others), others.max()])
            gap = final[s, chosen["lmc"], rest] - final[s, chosen["vits2"], rest]
            self.assert_close([row.difference, row.difference_se], [gap.mean(), gap.std(ddof=1) / np.sqrt(10)])

    def test_tuning_is_too_low_on_the_runs_it_saw(self):
        """All points are alike, so the one that looks best was lucky: reported is higher than tuned on average."""
        policies = {f"lmc {i}": ("lmc", {"steps": i}) for i in range(40)}
        bandit(self.folder, [{"problem.zeta": float(s)} for s in range(10)], policies)
        table = selection.frame(store.results(self.folder))
        self.assertGreater((table.reported - table.tuned).mean(), 5 * (table.reported - table.tuned).std() / np.sqrt(20))

    def test_tune_on_fewer_runs(self):
        final = bandit(self.folder)[..., -1]
        table = selection.frame(store.results(self.folder), tune=2)
        self.assertEqual(table.chosen[1], list(GRID)[2 + np.argmin(final[0, 2:, :2].mean(axis=1))])
        self.assert_close(table.reported[1], final[0, list(GRID).index(table.chosen[1]), 10:].mean())
        self.refused(selection_script, "a half has 10 runs", "--tune", "11")

    def test_failed_points_cannot_be_chosen(self):
        regret = bandit(self.folder)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file["status"][0, 0, 3] = 2
            file["status"][:, 3, 4] = 0
        table = selection.frame(store.results(self.folder))
        row = table.iloc[0]
        self.assertEqual((row.chosen, row.points, row.failed), ("vits2 h=0.1", 2, 1))
        runs = [r for r in range(20) if r != 4]  # a run that one policy has not completed is not compared
        self.assert_close(row.reported, regret[0, 1, runs[10:], -1].mean())
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file["status"][0, 1, 0] = 2
        row = selection.frame(store.results(self.folder)).iloc[0]
        self.assertEqual((row.chosen, row.failed), (None, 2))
        self.assertTrue(np.isnan(row.reported))

    def test_too_few_runs(self):
        bandit(self.folder, runs=3)
        self.refused(selection_script, "choosing on one half needs 4")

    def test_selection_prints(self):
        bandit(self.folder)
        out = self.printed(selection_script, self.folder, "--by", "steps")
        self.assertIn("minus vits2 steps=10", out)
        rows = list(csv.DictReader(io.StringIO(self.printed(selection_script, self.folder, "-f", "csv"))))
        self.assertEqual(list(rows[0]), selection.COLUMNS)
        self.assertEqual(len(rows), 8)

    # ---- jobs

    def test_grid_is_what_its_script_makes(self):
        made = runpy.run_path(str(ROOT / "jobs/papers/make_vits_grid.py"))["study"]()
        self.assertEqual((ROOT / "jobs/papers/vits_grid.yaml").read_text(encoding="utf-8"), made)
        labels = re.findall(r"label: ([^,]+),", made)
        self.assertEqual(len(labels), 12 + 72 + 36 + 36)
        self.assertEqual(len(set(labels)), len(labels))


if __name__ == "__main__":
    main(Vits)
