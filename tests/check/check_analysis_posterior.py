#!/usr/bin/env python3
"""Tests of analysis/ on posterior studies, ablations and calibration, with results files made here.

The expected numbers are computed here from the per-run values with plain NumPy. Ends with one line "N passed, N failed".
"""
import csv
import io
import math

import netCDF4
import numpy as np
import pandas as pd
from scipy import stats

from study_fixture import (
    DRAWS, SAMPLERS, SIZES, THETAS, StudyTest, call, main, write_posterior, write_priors, write_results,
    write_study)

from thompson import averages, design, ecdf, metrics, significance, store, wording
import ablation
import calibration
import figure_diffts_2
import figure_diffts_6
import figure_diffts_7
import figure_tilted_table
import inverse
import panel
import report
import table


def bars(axis):
    """The error bars of a panel: [(x, y, half length)]."""
    found = []
    for container in axis.containers:
        line, _, spans = container.lines
        ends = np.array([segment[:, 1] for segment in spans[0].get_segments()]) if spans else None
        found.append((line.get_xdata(), line.get_ydata(), None if ends is None else (ends[:, 1] - ends[:, 0]) / 2))
    return found


class Posterior(StudyTest):
    def test_kinds(self):
        write_posterior(self.folder)
        self.refused(figure_diffts_2, "is of a posterior study; this needs the results of a bandit study")
        dataset = store.results(self.folder, None)
        self.assertEqual(store.axis(dataset), "sample_size")
        self.assertEqual(store.curves(dataset), ["emd", "sd_ratio", "mode_weight_error", "rank"])
        self.assertEqual({key: list(values) for key, values in design.swept(dataset).items()},
                         {"problem.theta": ["gm_cross", "gm_rays"]})
        write_results(self.folder, ["cross"], runs=4, rounds=5)
        self.refused(figure_diffts_7, "is of a bandit study; this needs the results of a posterior study")
        self.refused(calibration, "posterior study")
        self.assertEqual(store.curves(store.results(self.folder, None)), ["regret"])

    def test_nothing_measured(self):
        with netCDF4.Dataset(self.folder / "results.nc", "w") as file:
            file.createDimension("run", 2)
        self.refused(table, "has none of the dimensions round, sample_size, step")
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.createDimension("estimator", 3)
            file.createVariable("value", "f8", ("estimator",))[:] = 0
        for script in (table, report):
            self.refused(script, "is of a replay study: figure_replay.py draws it")
        with netCDF4.Dataset(self.folder / "results.nc", "w") as file:
            file.createDimension("run", 2)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.createDimension("sample_size", 2)
            file.createVariable("sample_size", "f8", ("sample_size",))[:] = [1, 2]
        self.refused(table, "has no measured curve")

    def test_convergence_study(self):
        """One row for each policy, at the last step."""
        kl = np.random.default_rng(1).random((1, 5, 4, 30))
        write_study(self.folder, "step", np.arange(30), {"kl": kl}, [{}], SAMPLERS)
        rows = table.frame(store.results(self.folder, "convergence"))
        self.assertEqual(list(rows.step), [29] * 5)
        self.assert_close(rows.kl, kl[0, :, :, -1].mean(axis=1))

    def test_errors_are_the_larger_of_two(self):
        """Over runs or over learned priors; and the captions say which. What tests are taken over depends on the number of priors."""
        for replicates, words, tests in ((1, "over runs;", "over runs"),
                                         (3, "over runs or over the 3 learned priors, whichever is larger;",
                                          "over runs, given the 3 priors that were learned"),
                                         (6, "over runs or over the 6 learned priors, whichever is larger;", "over the 6 learned priors")):
            curves = write_posterior(self.folder, replicates=replicates)
            dataset = store.results(self.folder, None)
            mean, error = averages.moments(dataset, "emd")
            self.assert_close(mean, curves["emd"].mean(axis=2))
            parts = curves["emd"].reshape(2, 5, replicates, 24 // replicates, 4).mean(axis=3)
            over = [sample.std(axis=2, ddof=1) / np.sqrt(sample.shape[2]) for sample in (curves["emd"], parts) if sample.shape[2] > 1]
            self.assert_close(error, np.max(over, axis=0))
            if replicates > 1:
                self.assertTrue(0 < (over[0] > over[1]).sum() < error.size)   # each is the larger one somewhere
            self.assertIn(f"one standard error {words}", panel.reading([], [dataset]))
            self.assertEqual(significance.over([dataset]), tests)

    def test_floor_is_of_the_policy_with_most_runs(self):
        curves = write_posterior(self.folder, not_run=[(0, p, r) for p in range(4) for r in range(9)])
        mean, error = averages.floor(store.results(self.folder, None), "emd")
        whole = curves["emd_floor"][:, 4]
        self.assert_close(mean, whole.mean(axis=1))
        self.assert_close(error, whole.std(axis=1, ddof=1) / np.sqrt(24))
        self.assertIsNone(averages.floor(store.results(self.folder, None), "rank"))

    def test_table(self):
        curves = write_posterior(self.folder, not_run=[(1, 2, 0)])
        status, out, err = call(table, self.folder, "--format", "csv")
        self.assertEqual(status, 0, err)
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(len(rows), 2 * len(SIZES) * len(SAMPLERS))
        for index, row in enumerate(rows):
            s, rest = divmod(index, len(SIZES) * len(SAMPLERS))
            k, p = divmod(rest, len(SAMPLERS))
            self.assertEqual((row["setting"], row["policy"], int(row["sample_size"])),
                             (THETAS[s]["problem.theta"], list(SAMPLERS)[p], SIZES[k]))
            values, floor, first = curves["emd"][s, p, :, k], curves["emd_floor"][s, p, :, k], curves["emd"][s, 0, :, k]
            self.assert_close(float(row["emd"]), np.nanmean(values))
            self.assert_close(float(row["se"]), np.nanstd(values, ddof=1) / np.sqrt(np.isfinite(values).sum()))
            self.assert_close(float(row["floor"]), np.nanmean(floor))
            self.assertAlmostEqual(float(row["difference"]), np.nanmean(values - first), places=12)
            self.assertEqual(int(row["runs"]), 23 if (s, p) == (1, 2) else 24)
        text = call(table, self.folder, "--metric", "sd_ratio")[1].splitlines()
        self.assertIn("sd_ratio", text[0])
        self.assertNotIn("**", call(table, self.folder, "--metric", "rank")[1])
        self.assertNotIn("floor", call(table, self.folder, "--metric", "rank")[1])
        self.refused(table, "has no metric kl; it has emd, sd_ratio, mode_weight_error, rank", "--metric", "kl")

    def test_figure_7_draws_the_numbers(self):
        curves = write_posterior(self.folder, not_run=[(1, 2, 0)])
        write_priors(self.folder, ["gm_cross", "gm_rays"], n=50)
        dataset = store.results(self.folder, "posterior")
        figure = self.figure(figure_diffts_7.draw(dataset, store.prior_samples(self.folder)))
        upper, lower = figure.axes[:2], figure.axes[2:]
        for s, (top, axis) in enumerate(zip(upper, lower)):
            self.assertEqual(top.get_title(), THETAS[s]["problem.theta"])
            self.assertEqual(len(top.collections[0].get_offsets()), 100)
            self.assertEqual((axis.get_xscale(), axis.get_yscale()), ("log", "log"))
            drawn = bars(axis)
            kept = [0, 1, 2, 4]  # dps leaves the axis
            self.assertEqual(len(drawn), len(kept))
            for p, (x, y, half) in zip(kept, drawn):
                # Policies are shifted by at most half of DODGE of an axis of 2.3 decades and room.
                np.testing.assert_allclose(x, SIZES, rtol=10 ** (0.5 * panel.DODGE * 2.6) - 1)
                self.assert_close(y, np.nanmean(curves["emd"][s, p], axis=0))
                groups = [np.nanmean(curves["emd"][s, p, r * 4:(r + 1) * 4], axis=0) for r in range(6)]
                runs = curves["emd"][s, p]
                over_runs = np.nanstd(runs, axis=0, ddof=1) / np.sqrt(np.isfinite(runs).sum(axis=0))
                larger = np.maximum(over_runs, np.std(groups, axis=0, ddof=1) / np.sqrt(6))
                np.testing.assert_allclose(half, larger, rtol=1e-6)
            peaks = np.nanmean(curves["emd"][s], axis=1)
            notes = " ".join(text.get_text() for text in axis.texts)
            self.assertIn(f"off axis: dps, {peaks[3].min():.3g} to {peaks[3].max():.3g}", notes)
            self.assertEqual("diffts exact chain: 23 of 24 runs are in" in notes, s == 1)
            self.assertTrue(peaks[0].max() < axis.get_ylim()[1] < peaks[3].max())
            band = axis.collections[1].get_paths()[0].vertices
            floor = curves["emd_floor"][s, 0]
            error = floor.std(axis=0, ddof=1) / np.sqrt(24)
            for k, size in enumerate(SIZES):
                here = band[np.isclose(band[:, 0], size), 1]
                np.testing.assert_allclose([here.min(), here.max()], floor[:, k].mean() + error[k] * np.array([-1, 1]))
        learned, exact_chain = lower[0].containers[1].lines[0], lower[0].containers[2].lines[0]
        self.assertEqual((learned.get_linestyle(), exact_chain.get_linestyle()), ("-", "--"))
        self.assertEqual(learned.get_marker(), exact_chain.get_marker())
        caption = figure.texts[-1].get_text().replace("\n", " ")
        for part in ("23 to 24 of 24 runs are in", "priors learned 6 times", "149 draws", "over the 6 learned priors", "seed 2024"):
            self.assertIn(part, caption)

    def test_figure_7_writes_files(self):
        """Without prior samples."""
        write_posterior(self.folder)
        status, _, err = call(figure_diffts_7, self.folder)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual((self.folder / "figure_diffts_7.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((self.folder / "figure_diffts_7.pdf").read_bytes()[:5], b"%PDF-")

    def test_figure_7_of_a_study_that_has_just_begun(self):
        write_posterior(self.folder, not_run=[(s, p, r) for s in range(2) for p in range(5) for r in range(24)])
        figure = self.figure(figure_diffts_7.draw(store.results(self.folder, "posterior"), None))
        self.assertIn("5 policies: 0 to 0 of 24 runs are in", [text.get_text() for text in figure.axes[0].texts])

    def condition_study(self):
        """Settings out of order, times another key."""
        settings = [{"problem.condition_number": c, "problem.noise": s} for s in (1.0, 0.5) for c in (100.0, 1.0, 10.0)]
        return settings, write_posterior(self.folder, settings, sizes=[5, 40])

    def test_ablation(self):
        settings, curves = self.condition_study()
        dataset = store.results(self.folder, None)
        for at, k in ((None, 1), (5, 0)):
            panels = ablation.panels(dataset, "sd_ratio", at=at)
            self.assertEqual([one.title for one in panels], ["noise = 1", "noise = 0.5"])
            self.assertEqual(panels[0].ylabel, f"SD of draws / SD of exact draws after {[5, 40][k]} observations")
            for half, one in enumerate(panels):
                order = 3 * half + np.array([1, 2, 0])
                self.assertEqual(list(one.x), [1, 10, 100])
                self.assert_close(one.means, curves["sd_ratio"][order, :, :, k].mean(axis=2).T)
                self.assert_close(one.floor[0], curves["sd_ratio_floor"][order, 0, :, k].mean(axis=1))
        self.assertEqual([list(one.x) for one in ablation.panels(dataset, against="problem.noise")], [[0.5, 1]] * 3)
        self.refused(ablation, "has no sample_size 7; it has 5, 40", "--at", 7)
        self.refused(ablation, "has no metric kl; it has emd,", "--metric", "kl")
        self.refused(ablation, "does not sweep problem.arms; it sweeps problem.condition_number, problem.noise",
                     "--against", "problem.arms")
        figure = self.figure(panel.page(ablation.panels(dataset), [dataset]))
        self.assertEqual([axis.get_xscale() for axis in figure.axes], ["log", "log"])
        self.assertEqual(figure.axes[0].get_ylim(), figure.axes[1].get_ylim())
        self.assertEqual([wording.plain(tick) for tick in figure.axes[0].get_xticks()], ["1", "10", "100"])
        status, out, err = call(ablation, self.folder, "--metric", "seconds", "-o", self.folder / "a.svg")
        self.assertEqual((status, out, err), (0, f"{self.folder / 'a.svg'}\n", ""))

    def test_ablation_of_a_design(self):
        """A panel for each key: means over the points of a design in bins of it, against pandas. Two of Saltelli's points that share the value of a
        key differ in one other key only, so they count as one."""
        rng = np.random.default_rng(4)
        first, second = ([(float(rng.uniform(0.1, 3)), int(rng.choice([5, 9, 20]))) for _ in range(16)] for _ in range(2))
        points = [point for a, b in zip(first, second) for point in (a, (b[0], a[1]), (a[0], b[1]), b)]
        curves = write_posterior(self.folder, [{"problem.noise": noise, "problem.arms": arms} for noise, arms in points], sizes=[5, 40])
        values = pd.DataFrame(points, columns=["noise", "arms"])
        values["emd"] = curves["emd"][:, 0, :, -1].mean(axis=1)
        values["floor"] = curves["emd_floor"][:, 0, :, -1].mean(axis=1)
        for kind, group in (("saltelli", np.arange(64) // 4), ("sobol", np.arange(64))):
            with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
                file.setncattr("config", f"design: {{kind: {kind}, points: 16}}")
            with store.results(self.folder, None) as dataset:
                noise, arms = ablation.panels(dataset, "emd")
            of_noise = values.groupby([values["noise"], group]).mean().sort_index()
            of_arms = values.groupby([values["arms"], group]).mean().groupby(level=0)
            bins = [(part["emd"].mean(), part["emd"].sem()) for part in np.array_split(of_noise, len(of_noise) // 8)]
            self.assert_close([noise.means[0], noise.errors[0]], np.transpose(bins))
            self.assertEqual(list(arms.x), [5, 9, 20])
            self.assert_close([arms.means[0], arms.errors[0]], [of_arms["emd"].mean(), of_arms["emd"].sem()])
            self.assert_close(arms.floor, [of_arms["floor"].mean(), of_arms["floor"].sem()])
        dataset = store.results(self.folder, None)
        self.assertEqual([one.xlabel for one in ablation.panels(dataset, "emd", against="noise")], ["reward noise"])
        figure = self.figure(panel.page([noise, arms], [dataset]))
        self.assertIn("mean over the points of the design", figure.texts[-1].get_text().replace("\n", " "))

    def test_ablation_of_keys_that_change_together(self):
        """Where no two settings share the other keys, one panel has a point for each setting, unconnected; panels without a run are left out."""
        settings = [{"problem.condition_number": c, "problem.noise": s} for c, s in ((100.0, 1.0), (1.0, 0.5), (10.0, 2.0))]
        curves = write_posterior(self.folder, settings, sizes=[5, 40])
        dataset = store.results(self.folder, None)
        one, = ablation.panels(dataset, "emd", against="problem.noise")
        self.assertEqual((one.title, list(one.x)), ("together with condition_number", [0.5, 1, 2]))
        self.assert_close(one.means, curves["emd"][[1, 0, 2], :, :, -1].mean(axis=2).T)
        axis = self.figure(panel.page([one], [dataset])).axes[0]
        self.assertEqual({container.lines[0].get_linestyle() for container in axis.containers}, {"None"})
        self.condition_study()
        dataset = store.results(self.folder, None)
        for name in [name for name in dataset.data_vars if name.startswith("emd") and "setting" in dataset[name].dims]:
            dataset[name] = dataset[name].where(dataset["setting"].isin(dataset["setting"][:3]))
        self.assertEqual([one.title for one in ablation.panels(dataset, "emd")], ["noise = 1"])

    def test_ablation_against_words(self):
        """A swept key with words as values: the values side by side, in the order of the study, with the means of the runs."""
        curves = write_posterior(self.folder)
        dataset = store.results(self.folder, None)
        for metric in ("emd", "rank", "seconds", "seconds_train", "fallbacks"):
            one, = ablation.panels(dataset, metric)
            self.assertEqual((one.ticks, list(one.x)), (["gm_cross", "gm_rays"], [0, 1]))
            if metric in curves:
                self.assert_close(one.means, curves[metric][..., -1].mean(axis=2).T)
        figure = self.figure(panel.page(ablation.panels(dataset), [dataset]))
        self.assertEqual([label.get_text() for label in figure.axes[0].get_xticklabels()], ["gm_cross", "gm_rays"])
        write_posterior(self.folder, settings=[{}])
        self.refused(ablation, "sweeps no key")

    def test_seconds(self):
        rng = np.random.default_rng(8)
        values, seconds = rng.random((1, 5, 12, 3)), rng.random((1, 5, 12))
        write_study(self.folder, "round", [1, 2, 3], {"regret": values}, [{"prior.stages": 3.0}], SAMPLERS, 6, [(0, 1, 11)],
                    seconds=seconds)
        dataset = store.results(self.folder)
        mean, error, floor = metrics.measured(dataset, "seconds", None)
        self.assertIsNone(floor)
        for p in range(5):
            own = seconds[0, p, :11 if p == 1 else 12]
            groups = [own[r:r + 2].mean() for r in range(0, 12, 2)]
            self.assert_close([mean[0, p], error[0, p]], [own.mean(), np.std(groups, ddof=1) / np.sqrt(6)])
        self.assert_close(metrics.measured(dataset, "seconds_train", None)[0], np.full((1, 5), 1.0))  # 6 s for 6 priors

    def test_any_column(self):
        """A number of each run that no script knows (src/study/columns.h) is a metric like the others, in the words of the file."""
        write_posterior(self.folder)
        dataset = store.results(self.folder, None)
        values = np.random.default_rng(9).random(dataset["seconds"].shape)
        dataset["waits"] = dataset["seconds"].dims, values, {"long_name": "how often a run waited"}
        one, = ablation.panels(dataset, "waits")
        self.assert_close(one.means, averages.mean_and_error(averages.of_completed(dataset, "waits"))[0].T)
        self.assertEqual(metrics.label(dataset, "waits"), "how often a run waited")

    def regret_study(self, name, settings, policies):
        folder = self.folder / name
        folder.mkdir()
        values = np.random.default_rng(len(settings)).random((len(settings), len(policies), 8, 4)) + 1
        write_study(folder, "round", [1, 2, 3, 4], {"regret": values}, settings, policies, replicates=2)
        return folder, values[..., -1].mean(axis=2)

    def test_figure_6(self):
        two = {label: SAMPLERS[label] for label in ("ts", "diffts")}
        samples, final = self.regret_study("a", [{"prior.train_samples": n} for n in (100.0, 1000.0, 10000.0)], two)
        stages, final_b = self.regret_study("b", [{"prior.keep_signal": keep, "prior.stages": t}
                                                  for keep in ("false", "true") for t in (1.0, 300.0)], SAMPLERS)
        figure = self.figure(figure_diffts_6.draw([store.results(stages), store.results(samples)]))
        shown = [axis for axis in figure.axes if axis.get_visible()]
        self.assertEqual([axis.get_title() for axis in shown],
                         ["(a) training set", "(b) keep_signal = false", "(b) keep_signal = true", "(c) one run", "(c) learning"])
        for axis, expected in zip(shown, (final, final_b[:2], final_b[2:])):
            self.assert_close([y for _, y, _ in bars(axis)], expected.T)
        self.assert_close([y for _, y, _ in bars(shown[3])], np.full((5, 2), 0.5))
        self.assert_close([y for _, y, _ in bars(shown[4])], np.full((5, 2), 3.0))
        self.assertEqual(shown[0].containers[1].lines[0].get_color(), shown[1].containers[1].lines[0].get_color())
        status, out, err = call(figure_diffts_6, samples, "-o", self.folder / "x.png")
        self.assertEqual((status, err), (0, ""))
        write_results(self.folder, ["cross"], runs=4, rounds=5)
        self.refused(figure_diffts_6, "no study sweeps prior.train_samples or prior.stages")

    def test_tilted_table(self):
        """Two cells in two dimensions each, settings out of order; a history with one mode and one that was not run are left out."""
        settings = [{"problem.dimension": d, "problem.condition_number": kappa, "problem.snr": 0.1}
                    for d, kappa in ((20.0, 10.0), (2.0, 10.0), (2.0, 2.0), (20.0, 2.0))]
        rng = np.random.default_rng(11)
        shape = (4, 5, 6, 1)
        error, floor = rng.random(shape), np.broadcast_to(rng.random((4, 1, 6, 1)), shape)
        largest = np.array(np.broadcast_to(0.9 * rng.random((4, 1, 6, 1)), shape))
        largest[1, :, 2] = 0.97
        write_study(self.folder, "sample_size", [80], {"mode_weight_error": error, "mode_weight_error_floor": floor,
                                                       "largest_mode": largest}, settings, SAMPLERS, not_run=[(3, 4, 5)])
        dataset = store.results(self.folder, "posterior")
        values = inverse.excess(dataset)
        lines = figure_tilted_table.printed(dataset, values)
        self.assertEqual(lines[0], "| condition number, SNR | 10, 0.1 | 2, 0.1 |")
        self.assertEqual(lines[2], "| histories | 11 of 12 | 11 of 12 |")
        difference = (error - floor)[..., 0]
        for p, label in enumerate(SAMPLERS):
            hard = np.delete(np.concatenate([difference[0, p], difference[1, p]]), 8)
            easy = np.concatenate([difference[2, p], difference[3, p, :5]])
            self.assertEqual(lines[3 + p], f"| {label} | " + " | ".join(
                f"{part.mean():.3f} ± {part.std(ddof=1) / np.sqrt(11):.3f}" for part in (hard, easy)) + " |")
        first, second = figure_tilted_table.panels(dataset, values)
        self.assertEqual([list(first.x), first.title], [[2, 20], "condition number 10, SNR 0.1"])
        self.assert_close(first.means, np.stack([np.delete(difference[1], 2, axis=1).mean(axis=1), difference[0].mean(axis=1)], axis=1))
        self.assert_close(second.means[:, 1], difference[3, :, :5].mean(axis=1))
        status, out, err = call(figure_tilted_table, self.folder, "-o", self.folder / "t.png")
        self.assertEqual((status, err, out.splitlines()[:-1]), (0, "", lines))
        write_posterior(self.folder)
        self.refused(figure_tilted_table, "has no metric largest_mode")

    def test_chi_squared(self):
        """Two bins of 75 ranks each: the p-value of x is erfc(sqrt(x / 2))."""
        found = calibration.ranks(np.repeat([0.0, 74.0, 75.0, 149.0], [4, 8, 1, 3]), DRAWS)
        self.assertEqual([list(found.counts), list(found.expected)], [[12, 4], [8, 8]])
        self.assert_close([found.statistic, found.p], [4.0, math.erfc(math.sqrt(2))])
        self.assertTrue(math.isnan(calibration.ranks(np.arange(7.0), DRAWS).p))
        self.assertTrue(math.isnan(calibration.ranks(np.arange(7.0), DRAWS).p_ecdf))
        self.assertTrue(math.isnan(calibration.ranks(np.full(20, np.nan), DRAWS).p))

    def test_bins_of_unequal_width(self):
        """501 ranks in 8 bins: every rank is in one bin, and the expected counts follow the widths."""
        found = calibration.ranks(np.arange(501.0), 500)
        self.assertEqual(len(found.counts), 20)
        self.assert_close(found.counts, found.expected)
        self.assertAlmostEqual(found.statistic, 0)

    def test_p_values_of_uniform_ranks(self):
        """400 sets of 80 uniform ranks: each p-value is below 0.1 in a tenth of them (binomial, 4 standard deviations: 0.06)."""
        rng = np.random.default_rng(9)
        found = [calibration.ranks(rng.integers(0, DRAWS + 1, 80).astype(float), DRAWS) for _ in range(400)]
        for p in ("p", "p_ecdf"):
            self.assertLess(abs(np.mean([getattr(one, p) < 0.1 for one in found]) - 0.1), 0.06)
        narrow = calibration.ranks(np.clip(75 + 75 * np.sign(rng.standard_normal(80)), 0, DRAWS), DRAWS)
        self.assertLess(max(narrow.p, narrow.p_ecdf), 1e-9)

    def test_band(self):
        """20 000 samples of uniform ranks: the share inside the band is as stated (binomial, 4 standard deviations: 0.006), which is 95% or hardly
        more; a sample leaves it when its p-value is below the band's complement; for one point the band is the binomial interval."""
        rng, runs = np.random.default_rng(11), 64
        ends = calibration.edges(DRAWS, 64)[1:-1].astype(int)
        points = tuple(ends / (DRAWS + 1))
        low, high = ecdf.band(runs, points)
        coverage = ecdf.inside(runs, points, low, high)
        self.assertTrue(0.95 <= coverage < 0.955)
        below = rng.multinomial(runs, np.full(DRAWS + 1, 1 / (DRAWS + 1)), 20000).cumsum(axis=1)[:, ends - 1]
        left = ((below < low) | (below > high)).any(axis=1)
        self.assertLess(abs(left.mean() - (1 - coverage)), 0.006)
        p = np.array([ecdf.p_value(runs, points, row) for row in below[:300]])
        np.testing.assert_array_equal(p <= 1 - coverage + 1e-12, left[:300])
        (low,), (high,) = ecdf.band(runs, (0.5,))
        inside = stats.binom.cdf(high, runs, 0.5) - stats.binom.cdf(low - 1, runs, 0.5)
        self.assertGreaterEqual(inside, 0.95)
        self.assertLess(inside - stats.binom.pmf(low, runs, 0.5) - stats.binom.pmf(high, runs, 0.5), 0.95)
        self.assert_close(ecdf.inside(runs, (0.5,), [low], [high]), inside)

    def test_calibration(self):
        rng = np.random.default_rng(10)
        ranks = rng.integers(0, DRAWS + 1, (2, 5, 64, 4)).astype(float)
        ranks[0, 3, :, 2] = np.repeat([0, DRAWS], 32)  # dps at n = 50: far too narrow
        curves = write_posterior(self.folder, runs=64, replicates=1, ranks=ranks)
        dataset = store.results(self.folder, "posterior")
        tests = calibration.table(dataset)
        self.assertEqual([len(tests), *set(tests.runs)], [10, 64])
        for row, (s, p) in zip(tests.itertuples(), np.ndindex(2, 5)):
            # A bin has 18.75 ranks, rounded.
            counts = np.bincount(np.searchsorted([19, 38, 56, 75, 94, 112, 131], ranks[s, p, :, 2], "right"), minlength=8)
            expected = 64 * np.diff([0, 19, 38, 56, 75, 94, 112, 131, 150]) / 150
            self.assert_close(row.chi2, ((counts - expected) ** 2 / expected).sum())
        self.assertEqual([(row.setting, row.policy) for row in tests.itertuples() if row.p < 0.005], [("gm_cross", "dps")])
        figure = self.figure(calibration.draw(dataset))
        upper, small = figure.axes[:4], [axis for axis in figure.axes[4:] if axis.get_visible()]
        for s in range(2):
            for curve, axis in zip(("sd_ratio", "mode_weight_error"), (upper[s], upper[2 + s])):
                self.assert_close([y for _, y, _ in bars(axis)], curves[curve][s].mean(axis=1))
        self.assertEqual([axis.get_title() for axis in small], 2 * list(SAMPLERS))
        self.assertEqual([axis.texts[0].get_fontweight() for axis in small], ["normal"] * 3 + ["bold"] + ["normal"] * 6)
        self.assertEqual(small[3].texts[0].get_text(), "p < 0.001")
        self.assertIn("0.05 / 10 tests", figure.texts[-1].get_text().replace("\n", " "))
        self.refused(calibration, "has no sample_size 3", "--at", 3)
        status, out, err = call(calibration, self.folder, "--at", 10, "-o", self.folder / "c.png")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len(out.splitlines()), 12)

    def test_calibration_of_what_was_measured(self):
        emd = np.ones((1, 5, 8, 2))
        write_study(self.folder, "sample_size", [1, 2], {"emd": emd}, [{}], SAMPLERS)
        self.refused(calibration, "did not measure sd_ratio, mode_weight or rank")
        write_study(self.folder, "sample_size", [1, 2], {"rank": emd}, [{}], SAMPLERS)
        figure = self.figure(calibration.draw(store.results(self.folder, "posterior")))
        self.assertEqual(sum(axis.get_visible() for axis in figure.axes), 5)
        self.assertEqual({axis.texts[0].get_text() for axis in figure.axes if axis.get_visible()}, {"too few runs"})


if __name__ == "__main__":
    main(Posterior)
