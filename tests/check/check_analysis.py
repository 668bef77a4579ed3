#!/usr/bin/env python3
"""Tests of analysis/: every script on results files made here with netCDF4, in the form that the program writes.

The expected numbers are computed here from the per-run values with plain NumPy. Ends with one line "N passed, N failed".
"""
import csv
import importlib
import io
import sys
import unittest
import unittest.mock

import netCDF4
import numpy as np

from study_fixture import (
    POLICIES, PRIORS, SCRIPTS, StudyTest, call, main, run, write_priors, write_results)

from thompson import Error, design, store, wording
import caption
import figure_diffts_2
import figure_diffts_3
import glm_cost
import panel
import prior
import style
import table


class Analysis(StudyTest):
    def test_help(self):
        self.assertIn("figure_diffts_2", SCRIPTS)
        for name in SCRIPTS:
            status, out, _ = call(importlib.import_module(name), "--help")
            self.assertEqual(status, 0)
            self.assertRegex(out, r"(positional arguments:\n +[A-Z]+|options:\n +-h, --help) +\w")

    def test_table_csv(self):
        regret = write_results(self.folder, PRIORS, failed=[(0, 4, 3)], not_run=[(1, 0, r) for r in range(40, 64)])
        done = run("table.py", self.folder, "--format", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(len(rows), len(PRIORS) * len(POLICIES))
        for index, row in enumerate(rows):
            s, p = divmod(index, len(POLICIES))
            self.assertEqual((row["setting"], row["policy"]), (PRIORS[s], list(POLICIES)[p]))
            final = regret[s, p, :, -1]
            good = final[~np.isnan(final)]
            self.assertAlmostEqual(float(row["regret"]), good.mean(), places=9)
            self.assertAlmostEqual(float(row["se"]), good.std(ddof=1) / np.sqrt(len(good)), places=9)
            halves = [half[~np.isnan(half)].mean() for half in np.split(final, 2)]
            self.assertAlmostEqual(float(row["se_replicate"]), abs(halves[0] - halves[1]) / 2, places=9)
            paired = (final - regret[s, 0, :, -1])[~np.isnan(final + regret[s, 0, :, -1])]
            self.assertAlmostEqual(float(row["difference"]), paired.mean(), places=9)
            self.assertAlmostEqual(float(row["difference_se"]), paired.std(ddof=1) / np.sqrt(len(paired)), places=9)
            both = [half[~np.isnan(half)].mean() for half in np.split(final - regret[s, 0, :, -1], 2) if not np.isnan(half).all()]
            self.assertEqual(row["difference_se_replicate"] == "", len(both) < 2)
            if len(both) == 2:
                self.assertAlmostEqual(float(row["difference_se_replicate"]), abs(both[0] - both[1]) / 2, places=9)
            self.assertAlmostEqual(float(row["seconds"]), 0.001 * (1 + p), places=12)
            self.assertEqual(int(row["runs"]), len(good))
            self.assertEqual(int(row["fallbacks"]), len(good) * (p % 2))
            self.assertEqual(int(row["failed"]), 1 if (s, p) == (0, 4) else 0)

    def test_table_markdown_and_latex(self):
        write_results(self.folder, PRIORS, failed=[(0, 4, 3)])
        text = call(table, self.folder)[1]
        *lines, blank, caption = text.splitlines()
        self.assertEqual(blank, "")
        self.assertIn("Holm", caption)
        self.assertEqual(len(lines), 2 + len(PRIORS) * len(POLICIES))
        self.assertEqual({line.count("|") for line in lines}, {12})
        self.assertIn("minus ts", lines[0])
        self.assertIn("63 of 64 (1 failed)", text)
        self.assertIn("(SE) over runs or over the 2 learned priors, whichever is larger;", caption)
        for line, row in zip(lines[2:], table.frame(store.results(self.folder)).itertuples()):
            cells = [cell.strip() for cell in line.split("|")]
            self.assertEqual(cells[4], f"{max(row.se, row.se_replicate):.2f}")
            if cells[6]:
                self.assertEqual(cells[6], f"{max(row.difference_se, row.difference_se_replicate):.2f}")
        out = self.folder / "table.tex"
        self.assertEqual(call(table, self.folder, "-f", "latex", "-o", out), (0, "", ""))
        text = out.read_text()
        self.assertIn("tuned\\_ts", text)
        self.assertEqual(text.count("\\midrule"), len(PRIORS))
        self.assertEqual({line.count("&") for line in text.splitlines() if "&" in line}, {10})
        self.assertIn("\\caption{figure2: cumulative expected regret", text)

    def test_figure_writes_files(self):
        write_results(self.folder, PRIORS[:1], runs=8, rounds=20)
        write_priors(self.folder, PRIORS[:1], n=50)
        done = run("figure_diffts_2.py", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertEqual((self.folder / "figure_diffts_2.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((self.folder / "figure_diffts_2.pdf").read_bytes()[:5], b"%PDF-")

    def test_figure_draws_the_numbers(self):
        """Every line and dot of the figure, read from its artists."""
        write_results(self.folder, PRIORS, failed=[(2, 3, 0)])
        theta = write_priors(self.folder, PRIORS)
        dataset = store.results(self.folder)
        figure = figure_diffts_2.draw(dataset, store.prior_samples(self.folder))
        self.addCleanup(style.plt.close, figure)
        upper, lower = figure.axes[:3], figure.axes[3:]
        for s, (top, bottom) in enumerate(zip(upper, lower)):
            self.assertEqual(top.get_title(), PRIORS[s])
            dots = np.asarray(top.collections[0].get_offsets())
            expected = theta[s].reshape(-1, 2)
            self.assertTrue(np.array_equal(dots[np.lexsort(dots.T)], expected[np.lexsort(expected.T)]))
            self.assertEqual(len(bottom.lines), len(POLICIES))
            for p, line in enumerate(bottom.lines):
                self.assertTrue(np.array_equal(line.get_ydata(), dataset["regret_mean"].values[s, p]))
            notes = " ".join(text.get_text() for text in bottom.texts)
            ends = (dataset[f"regret_{part}"].values[s, 5, -1] for part in ("mean", "se"))
            self.assertIn(f"off axis: dps, {wording.value(*ends)} ", notes)
            finals = dataset["regret_mean"].values[s, :, -1]
            self.assertLess(bottom.get_ylim()[1], finals.max())
            self.assertGreater(bottom.get_ylim()[1], np.sort(finals)[-2])
            self.assertEqual("mixts10: 63 of 64 runs are in" in notes, s == 2)

    def test_caption(self):
        write_results(self.folder, PRIORS, failed=[(2, 3, 0)])
        dataset = store.results(self.folder)
        text = " ".join([*caption.facts([dataset]), caption.curves([dataset])])
        for part in ("63 to 64 of 64 runs are in", "1 failed", "2 times", "seed 2024", "reward noise 1", "one standard error"):
            self.assertIn(part, text)

    def test_figure_with_any_number_of_settings_and_dimensions(self):
        settings = ["cross", "rays", "triangles", "a", "b", "c", "d"]
        write_results(self.folder, settings, runs=8, rounds=20)
        write_priors(self.folder, settings, n=200, dimensions=[2, 3, 5, 1, 2, 2, 2])
        figure = figure_diffts_2.draw(store.results(self.folder), store.prior_samples(self.folder))
        self.addCleanup(style.plt.close, figure)
        shown = [axis for axis in figure.axes if axis.get_visible()]
        self.assertEqual(len(shown), 2 * len(settings))
        self.assertIn("1st principal component of 3", " ".join(axis.get_xlabel() for axis in shown))

    def test_figure_without_a_learned_prior_or_a_finished_policy(self):
        write_results(self.folder, ["cross"], runs=8, rounds=20, not_run=[(0, 4, r) for r in range(8)])
        write_priors(self.folder, ["cross"], n=100, learned=False)
        figure = figure_diffts_2.draw(store.results(self.folder), store.prior_samples(self.folder))
        self.addCleanup(style.plt.close, figure)
        self.assertEqual([text.get_text() for text in figure.legends[0].get_texts()], ["sample of the true prior"])
        self.assertEqual(len(figure.axes[0].texts), 0)
        self.assertIn("diffts: no run is in", " ".join(text.get_text() for text in figure.axes[1].texts))

    def test_figures_without_samples_of_a_prior(self):
        """A panel without samples is not drawn: no row of them if no setting has any, and no legend. Where some settings have samples, the others have their
        titles above the curves."""
        write_results(self.folder, PRIORS, runs=4, rounds=5)
        write_priors(self.folder, PRIORS, n=50)
        dataset, priors = store.results(self.folder).load(), store.prior_samples(self.folder).load()
        for kept in (0, 2):
            priors["theta"][kept:] = np.nan
            figure = figure_diffts_2.draw(dataset, priors)
            self.addCleanup(style.plt.close, figure)
            self.assertEqual([axis.get_title() for axis in figure.axes if axis.get_visible() and axis.get_title()], PRIORS)
            self.assertEqual(sum(axis.get_visible() for axis in figure.axes), kept + len(PRIORS))
            self.assertEqual(len(figure.legends), min(kept, 1))
            priors = store.prior_samples(self.folder).load()
        study, priors = self.real_study("gaussian", ["diffts", "ts"], 1)
        figure = figure_diffts_3.draw([(study, priors.assign(theta=np.nan * priors["theta"]))])
        self.addCleanup(style.plt.close, figure)
        self.assertEqual([axis.get_title() for axis in figure.axes], ["linear bandit, movielens"])

    def test_figure_of_a_study_that_has_just_begun(self):
        write_results(self.folder, ["cross"], runs=8, rounds=20, not_run=[(0, p, r) for p in range(8) for r in range(p + 1)])
        write_priors(self.folder, ["cross"], n=100)
        figure = figure_diffts_2.draw(store.results(self.folder), store.prior_samples(self.folder))
        self.addCleanup(style.plt.close, figure)
        self.assertIn("8 policies: 0 to 7 of 8 runs are in", [text.get_text() for text in figure.axes[1].texts])

    def test_principal_components(self):
        rng = np.random.default_rng(3)
        scale = np.array([1.0, 5.0, 0.1, 2.0])
        drawn, names = prior.plane({"true": rng.standard_normal((20000, 4)) * scale})
        spread = drawn["true"].std(axis=0)
        # 20 000 samples: relative error of a standard deviation is 1 / sqrt(40 000) = 0.005; 4 of these.
        np.testing.assert_allclose(spread, [5, 2], rtol=0.02)
        self.assertIn("(83%)", names[0])  # 25 / 30.01

    def real_study(self, likelihood, policies, seed):
        """Results in the form of a study on an embedding file, with their prior samples."""
        write_results(self.folder, ["x"], policies={name: POLICIES[name] for name in policies}, runs=16, rounds=30, seed=seed)
        write_priors(self.folder, ["x"], n=60, dimensions=[5])
        dataset, priors = store.results(self.folder).load(), store.prior_samples(self.folder).load()
        dataset.attrs["config"] += (f"problem:\n  family: embedding\n  file: data/movielens.nc\n  noise: auto\n"
                                    f"likelihood: {likelihood}\n")
        return dataset.drop_vars("problem_theta").assign_coords(setting=["default"]), priors.assign_coords(setting=["default"])

    def test_figure_of_real_data(self):
        """The linear and the logistic study side by side, with different policies."""
        studies = [self.real_study("gaussian", ["diffts", "ts", "linucb"], 1), self.real_study("logistic", ["diffts", "dps"], 2)]
        with unittest.mock.patch.object(figure_diffts_3, "embed", lambda points: (2 * points[:, :2], "MAP")):
            figure = figure_diffts_3.draw(studies)
        self.addCleanup(style.plt.close, figure)
        components, mapped, *regrets = figure.axes
        self.assertEqual([axis.get_title() for axis in regrets], ["linear bandit, movielens", "logistic bandit, movielens"])
        self.assertIn("principal component of 5", components.get_xlabel())
        self.assertEqual(mapped.get_xlabel(), "MAP 1")
        dots, drawn = 2 * studies[0][1]["theta"].values.reshape(-1, 5)[:, :2], np.asarray(mapped.collections[0].get_offsets())
        np.testing.assert_array_equal(drawn[np.lexsort(drawn.T)], dots[np.lexsort(dots.T)])
        for axis, (dataset, _) in zip(regrets, studies):
            self.assertEqual(len(axis.lines), dataset.sizes["policy"])
            for line, mean in zip(axis.lines, dataset["regret_mean"].values[0]):
                np.testing.assert_array_equal(line.get_ydata(), mean)
        self.assertEqual(regrets[0].lines[0].get_color(), regrets[1].lines[0].get_color())
        self.assertIn("reward noise as in the data file", figure.texts[-1].get_text())
        self.assertIn("logistic rewards", figure.texts[-1].get_text())

    def test_figure_of_real_data_refuses_a_sweep(self):
        write_results(self.folder, PRIORS, runs=4, rounds=5)
        self.refused(figure_diffts_3, "3 settings; this figure is for studies with one")

    def test_map_keeps_neighbours(self):
        """Three clusters in five dimensions, two sources: on the map, too, the nearest point belongs to the same cluster."""
        rng = np.random.default_rng(4)
        centres = 20 * np.eye(5)[:3]
        points = {source: np.repeat(centres, 20, axis=0) + rng.standard_normal((60, 5)) for source in ("true", "diffusion")}
        points["true"] = np.concatenate([points["true"], points["true"][:7]])  # drawn twice
        with unittest.mock.patch.dict(sys.modules, {"umap": None}):
            drawn, names = figure_diffts_3.neighbours(points)
        self.assertEqual(names, ("t-SNE 1", "t-SNE 2"))
        self.assertEqual([len(rows) for rows in drawn.values()], [60, 60])
        original = np.concatenate([np.unique(rows, axis=0) for rows in points.values()])
        cluster = original[:, :3].argmax(axis=1)
        mapped = np.concatenate(list(drawn.values()))
        distance = np.linalg.norm(mapped[:, None] - mapped, axis=2) + 1e9 * np.eye(len(mapped))
        np.testing.assert_array_equal(cluster[distance.argmin(axis=1)], cluster)

    def test_axis_is_cut_only_for_the_one_that_diverges(self):
        self.assertIsNone(panel.ceiling(np.array([19, 19, 16, 14, 13, 24, 40.0])))
        self.assertLess(panel.ceiling(np.array([19, 19, 16, 14, 13, 200, 24, 40.0])), 60)
        self.assertIsNone(panel.ceiling(np.array([19, np.nan])))
        self.assertIsNone(panel.ceiling(np.array([1.0, 9.0])))

    def test_bad_input(self):
        self.refused(figure_diffts_2, "does not exist")
        self.refused(table, "does not exist")
        (self.folder / "results.nc").write_text("not a NetCDF file")
        self.refused(table, "cannot be read as NetCDF")
        write_results(self.folder, PRIORS, runs=4, rounds=5)
        self.refused(figure_diffts_2, "prior_samples.nc does not exist")
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.renameVariable("regret_diff_se", "other")
        self.refused(table, "has no variable regret_diff_se")

    def test_cost_of_a_logistic_round(self):
        """The lines are the file's numbers, in milliseconds; the guide has slope 1."""
        rows = [(name, n, (1e-3 + 1e-5 * n) if name == "logistic" else 1e-3, 1.5) for n in (100, 10, 1000)
                for name in ("gaussian", "logistic", "logistic_arms")]
        lines = "\n".join(",".join(map(str, row)) for row in rows)
        table_file = self.folder / "cost.csv"
        table_file.write_text("likelihood,observations,seconds,passes\n" + lines)
        figure = glm_cost.draw(glm_cost.read(table_file))
        self.addCleanup(style.plt.close, figure)
        gaussian, logistic, by_arm, guide = figure.axes[0].lines
        np.testing.assert_allclose(by_arm.get_ydata(), [1, 1, 1])
        np.testing.assert_allclose(gaussian.get_ydata(), [1, 1, 1])
        np.testing.assert_array_equal(logistic.get_xdata(), [10, 100, 1000])
        np.testing.assert_allclose(logistic.get_ydata(), [1.1, 2, 11])
        np.testing.assert_allclose(guide.get_ydata(), [0.11, 1.1, 11])
        table_file.write_text("likelihood,seconds\nlogistic,1\n")
        status, _, err = call(glm_cost, table_file)
        self.assertEqual((status, err.count("\n")), (3, 1))
        self.assertIn("does not have the columns", err)

    def test_output_that_cannot_be_written(self):
        write_results(self.folder, ["cross"], runs=4, rounds=5)
        status, _, err = call(table, self.folder, "-o", self.folder / "absent" / "table.md")
        self.assertEqual(status, 4)
        self.assertIn("No such file", err)
        self.assertEqual(call(figure_diffts_2, self.folder, "-o", "figure.xyz")[0], 2)

    def test_truncated_file(self):
        write_results(self.folder, PRIORS)
        path = self.folder / "results.nc"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.refused(table, "cannot be read as NetCDF")

    def test_config(self):
        write_results(self.folder, ["cross"], runs=4, rounds=5)
        dataset = store.results(self.folder)
        dataset.attrs["config"] = ("a: 1e-3 # a comment\ntitle: \"x: y # z\"\nproblem:\n  noise: 0.50\n  deep:\n    x: 'y'\n    f: null\n"
                                   "prior:\npolicies:\n  - {name: ts}\nsweep:\n  b.c: [1, true]\n")
        self.assertEqual(design.keys(dataset), {"a": "1e-3", "title": "x: y # z", "problem.noise": "0.50", "problem.deep.x": "y",
                                              "problem.deep.f": "null", "sweep.b.c": "[1, true]"})
        self.assertEqual(design.config(dataset, "problem.theta"), "cross")  # a swept key
        dataset.attrs["config"] = "a: [1"
        with self.assertRaisesRegex(Error, "results.nc: attribute config is not YAML"):
            design.config(dataset, "a")

    def test_looks_are_distinct(self):
        names = {label: "mixts" if label == "mixts10" else label for label in POLICIES}
        styles = style.lines(names)
        self.assertEqual(len({(str(k["color"]), str(k["linestyle"])) for k in styles.values()}), len(POLICIES))
        self.assertEqual(len(set(style.POLICIES.values())), len(style.POLICIES))
        # The same name always looks the same, whatever else is drawn.
        self.assertEqual(style.lines({"diffts": "diffts"})["diffts"], styles["diffts"])
        self.assertEqual(style.lines({"EM": "mixts", "mixts": "mixts"})["mixts"], styles["mixts"])
        self.assertEqual(styles["mixts10"]["marker"], styles["mixts"]["marker"])
        variants = style.lines({f"mixts {i}": "mixts" for i in range(12)}).values()
        self.assertEqual(len({(str(one["color"]), str(one["linestyle"]), one["marker"]) for one in variants}), 12)

    def test_policies_without_an_entry(self):
        """Colour and marker follow from the name, in every process and whatever else is drawn; no colour is one of the chosen ones."""
        names = [f"sampler{i}" for i in range(200)]
        styles = style.lines({name: name for name in names})
        self.assertEqual({name: style.lines({name: name})[name] for name in reversed(names)}, styles)
        pairs = {(str(one["color"]), one["marker"]) for one in styles.values()}
        # Of 200 names in 120 pairs, 120 (1 - (1 - 1/120)^200) = 97 are expected, with a standard deviation of 4.
        self.assertGreater(len(pairs), 80)
        chosen = {style.darker(colour, 0) for colour, _ in style.POLICIES.values()}
        self.assertEqual(chosen & {one["color"] for one in styles.values()}, set())
        self.assertEqual(style.colour_and_marker("sampler0"), ("#F91AF9", "d"))  # as in another process
        variant = style.lines({"sampler0": "sampler0", "sampler0 h=1": "sampler0"})
        self.assertEqual(variant["sampler0"], styles["sampler0"])
        self.assertNotEqual(variant["sampler0 h=1"]["linestyle"], styles["sampler0"]["linestyle"])

    def test_policy_names(self):
        write_results(self.folder, ["cross"], runs=4, rounds=5)
        dataset = store.results(self.folder)
        self.assertEqual(design.policy_names(dataset), {label: "mixts" if label == "mixts10" else label for label in POLICIES})
        dataset.attrs["config"] = 'policies:\n  - {name: vits2, label: "VITS, II", steps: 10}\n  - {name: ts, label: ts}\n'
        dataset = dataset.isel(policy=[0, 1]).assign_coords(policy=["VITS, II", "ts"])
        self.assertEqual(design.policy_names(dataset), {"VITS, II": "vits2", "ts": "ts"})

    def test_settings_with_different_numbers_of_rounds(self):
        regret = write_results(self.folder, ["cross", "rays"], runs=8, rounds=20, rounds_of=[20, 12])
        write_priors(self.folder, ["cross", "rays"], n=50)
        dataset = store.results(self.folder)
        rows = table.frame(dataset)
        self.assertEqual(sorted(set(zip(rows["setting"], rows["round"]))), [("cross", 20), ("rays", 12)])
        self.assertAlmostEqual(rows.regret.iloc[-1], regret[1, -1, :, 11].mean(), places=9)
        figure = figure_diffts_2.draw(dataset, store.prior_samples(self.folder))
        self.addCleanup(style.plt.close, figure)
        self.assertEqual([axis.get_xlim()[1] for axis in figure.axes[2:]], [20, 12])


if __name__ == "__main__":
    main(Analysis)
