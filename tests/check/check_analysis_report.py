#!/usr/bin/env python3
"""Tests of the parts of analysis/ that compare policies and studies: significance, table, compare, scaling, and the page of report.

The expected numbers are computed here: Holm's correction by its definition as a closed test, t-tests by SciPy, means by NumPy. What a
browser makes of the page is tested in browser_report.py. Ends with one line "N passed, N failed".
"""
import csv
import io
import itertools
import json
import pathlib
import re
import shutil

import netCDF4
import numpy as np
import xarray as xr
from scipy import stats

from study_fixture import (
    ANALYSIS, POLICIES, PRIORS, ROOT, Parser, StudyTest, call, convergence, main, write_posterior, write_results, write_study)

import thompson
from thompson import averages, design, significance, store
import chart
import compare
import report
import scaling
import table


def closed_test(p):
    """Holm's adjusted p-values by definition: the largest Bonferroni p-value of all sets of hypotheses with this one among them."""
    sets = [subset for size in range(1, len(p) + 1) for subset in itertools.combinations(range(len(p)), size)]
    return [max(min(1, len(subset) * min(p[j] for j in subset)) for subset in sets if i in subset) for i in range(len(p))]


class Report(StudyTest):
    def beside(self, name):
        """Another folder, for a second study."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def attributes(self, folder, **attributes):
        with netCDF4.Dataset(folder / "results.nc", "a") as file:
            file.setncatts(attributes)

    # ---- significance

    def test_holm(self):
        rng = np.random.default_rng(1)
        for _ in range(20):
            p = rng.random(5) ** 3
            np.testing.assert_allclose(significance.holm(p), closed_test(list(p)), rtol=1e-12)
        found = significance.holm([0.01, np.nan, 0.04, 0.01])
        np.testing.assert_allclose(found, [0.03, np.nan, 0.04, 0.03])
        self.assertEqual(significance.holm([]).size, 0)

    # ---- several folders

    def two_studies(self):
        """A study of two priors, and one of other policies with another noise, in the order in which they are shown."""
        one, two = self.beside("one"), self.beside("two")
        few = {name: POLICIES[name] for name in ("ts", "linucb", "dps")}
        regret = write_results(one, ["cross", "rays"], runs=16), write_results(two, ["cross"], few, runs=24, seed=5)
        config = store.results(two).attrs["config"]
        self.attributes(two, config=config.replace("noise: 1", "noise: 2"))
        return (one, two), regret

    def test_results_of_several_folders(self):
        """Every key of a study is a coordinate over its settings, so that studies combine."""
        folders, regret = self.two_studies()
        found = thompson.results(folders)
        self.assertEqual(list(found), ["one", "two"])
        self.assertEqual([data["problem_noise"].values.tolist() for data in found.values()], [[1, 1], [2]])
        self.assertEqual([data["problem_arms"].dims for data in found.values()], [("setting",)] * 2)
        self.assertEqual(found["one"]["problem_theta"].astype(str).values.tolist(), ["cross", "rays"])
        joined = xr.concat(found.values(), "setting").swap_dims(setting="problem_noise")
        there = joined["regret"].sel(problem_noise=2, policy="linucb").values
        np.testing.assert_array_equal(there[~np.isnan(there).all(axis=1)], regret[1][0, 1])
        nested = self.beside("deep") / "one"
        shutil.copytree(folders[0], nested)
        self.assertEqual(list(thompson.results([folders[0], nested])), [str(folders[0]), str(nested)])
        with self.assertRaisesRegex(thompson.Error, "one is given 2 times"):
            thompson.results([folders[0], nested, folders[0] / "results.nc"])

    def test_results_with_automatic_noise(self):
        """problem.noise: auto is the number that the results have for it, in a pool 1; without one, the key is text in all studies."""
        folders, _ = self.two_studies()
        self.attributes(folders[0], config=store.results(folders[0]).attrs["config"].replace("noise: 1", "noise: auto"))
        values = [data["problem_noise"].values.tolist() for data in thompson.results(folders).values()]
        self.assertEqual(values, [["auto", "auto"], ["2"]])
        with netCDF4.Dataset(folders[0] / "results.nc", "a") as file:
            file.createVariable("reward_noise", "f8", ("setting",))[:] = 0.5
        found = thompson.results(folders)
        self.assertEqual([data["problem_noise"].values.tolist() for data in found.values()], [[0.5, 0.5], [2]])
        self.assertEqual(xr.concat(found.values(), "setting")["problem_noise"].dtype, float)
        data = design.together({name: store.results(folder) for name, folder in zip(("one", "two"), folders)})
        self.assertEqual(design.swept(data)["problem.noise"].tolist(), [0.5, 0.5, 2])
        self.attributes(folders[0], config=store.results(folders[0]).attrs["config"].replace("family: synthetic", "family: pool"))
        self.assertEqual(thompson.results(folders[0])["problem_noise"].values.tolist(), [1, 1])

    def test_together(self):
        """The settings of all folders, and the policies of all in their order; keys in which they differ count as swept; a page shows them."""
        folders, regret = self.two_studies()
        data = design.together({name: store.results(folder) for name, folder in zip(("one", "two"), folders)})
        self.assertEqual(design.labels(data), list(POLICIES))
        self.assertEqual(data["setting"].values.tolist(), ["one: problem.theta=cross", "one: problem.theta=rays", "two: problem.theta=cross"])
        swept = design.swept(data)
        self.assertEqual(sorted(swept), ["folder", "problem.noise", "problem.theta", "runs"])
        self.assertEqual(swept["problem.noise"].tolist(), [1, 1, 2])
        self.assertTrue((data["status"].sel(policy="mixts")[2] == 0).all())
        there = data["regret_mean"].sel(policy="dps").values
        self.assert_close(there, [regret[0][0, 5].mean(axis=0), regret[0][1, 5].mean(axis=0), regret[1][0, 2].mean(axis=0)])
        self.assertEqual(call(report, *folders)[0], 0)
        page = (folders[0] / "report.html").read_text()
        for part in ("folder = two", "noise = 2", "3 settings"):
            self.assertIn(part, page)
        self.assertIn("(reference)</small></th>", page)

    def test_together_with_other_references(self):
        """Studies whose first policies differ: each setting has its differences to the first policy of its own study, with SciPy's p-values and Holm's correction."""
        folders, regret = self.two_studies()
        ends = [regret[0][0, :, :, -1], regret[0][1, :, :, -1], write_results(folders[1], ["cross"], {name: POLICIES[name] for name in ("dps", "linucb")}, runs=24)[0, :, :, -1]]
        data = design.together({name: store.results(folder) for name, folder in zip(("one", "two"), folders)})
        labels, at = list(POLICIES), list(POLICIES).index
        self.assertEqual(design.references(data), [0, 0, at("dps")])
        frame = table.frame(data, "regret")
        found = frame.set_index(["setting", "policy"])
        setting = design.titles(data)[2]
        self.assert_close([found.difference[setting, "linucb"]], [(ends[2][1] - ends[2][0]).mean()])
        raw = [stats.ttest_rel(end[p], end[0]).pvalue for end in ends for p in range(1, len(end))]
        adjusted = significance.holm(raw)
        self.assert_close([found.p[design.titles(data)[0], labels[2]], found.p[setting, "linucb"]], [adjusted[1], adjusted[-1]])
        self.assertTrue(np.isnan(found.p[setting, "dps"]) and np.isnan(found.p[setting, labels[1]]))
        self.assertEqual(call(report, *folders)[0], 0)
        page = (folders[0] / "report.html").read_text()
        self.assertIn("the paired difference from the first policy of its folder", page)
        self.assertEqual(page.count("<small>(reference)</small>"), 3)

    def test_paired_t_test(self):
        rng = np.random.default_rng(2)
        x, y = rng.normal(0, 1, 30), rng.normal(0.4, 1, 30)
        found = significance.unequal(y - x, np.zeros(30, int))
        self.assertAlmostEqual(found.p, stats.ttest_rel(y, x).pvalue, places=12)
        self.assertAlmostEqual(found.se, (y - x).std(ddof=1) / np.sqrt(30), places=12)
        x[3] = np.nan
        self.assertAlmostEqual(significance.unequal(y - x, np.zeros(30, int)).p, stats.ttest_rel(y, x, nan_policy="omit").pvalue, places=12)
        self.assertTrue(np.isnan(significance.unequal(np.array([1.0]), np.zeros(1, int)).p))
        self.assertEqual(significance.unequal(np.zeros(5), np.zeros(5, int)).p, 1)
        self.assertEqual(significance.unequal(np.ones(5), np.zeros(5, int)).p, 0)

    def test_runs_of_a_replicate_count_once(self):
        """Runs that share a learned prior are not independent: from LEARNED replicates on, their means are the sample."""
        rng = np.random.default_rng(3)
        replicate = np.repeat(np.arange(8), 16)
        values = 0.3 + rng.normal(0, 1, 8)[replicate] + 0.1 * rng.normal(size=128)
        means = values.reshape(8, 16).mean(axis=1)
        self.assertAlmostEqual(significance.unequal(values, replicate).p, stats.ttest_1samp(means, 0).pvalue, places=12)
        few = np.repeat(np.arange(2), 64)
        self.assertAlmostEqual(significance.unequal(values, few).p, stats.ttest_1samp(values, 0).pvalue, places=12)
        # Replicates whose means agree by chance: the error is that over runs, with the degrees of freedom of the replicates.
        agree = values - means[replicate] + 0.1
        found = significance.unequal(agree, replicate)
        self.assertAlmostEqual(found.se, stats.sem(agree), places=12)
        self.assertAlmostEqual(found.p, 2 * stats.t.sf(0.1 / stats.sem(agree), len(means) - 1), places=12)

    # ---- table

    def test_bold_only_beyond_doubt(self):
        """The best is bold if it beats every other policy, with p-values of all settings corrected together; oracle does not take part."""
        policies = {"ts": (50, 4), "diffts": (20, 4), "mixts": (48, 4), "oracle": (0, 0)}
        regret = write_results(self.folder, ["a", "b"], policies, runs=40)
        ends = regret[..., -1]
        raw = [stats.ttest_rel(ends[s, p], ends[s, 1]).pvalue for s in range(2) for p in (0, 2)]
        self.assertLess(max(closed_test(raw)), 0.05)
        rows = table.frame(store.results(self.folder))
        self.assertEqual(list(rows.best), [False, True, False, False] * 2)
        self.assertEqual(call(table, self.folder)[1].count("**"), 4)
        self.assertEqual(call(table, self.folder, "-f", "latex")[1].count("\\textbf"), 2)
        first = [stats.ttest_rel(ends[s, p], ends[s, 0]).pvalue for s in range(2) for p in (1, 2, 3)]
        np.testing.assert_allclose(rows.p[rows.policy != "ts"], closed_test(first), rtol=1e-9)
        self.assertTrue(rows.p[rows.policy == "ts"].isna().all())

    def test_no_bold_when_two_are_level(self):
        write_results(self.folder, ["a"], {"ts": (50, 4), "diffts": (20, 4), "joint": (20.2, 4)}, runs=40)
        self.assertFalse(table.frame(store.results(self.folder)).best.any())
        text = call(table, self.folder, "-f", "csv")[1]
        self.assertEqual({row["best"] for row in csv.DictReader(io.StringIO(text))}, {"False"})

    def test_formulas(self):
        """In CSV no label is a formula of a spreadsheet; numbers and other labels are as they are."""
        labels = ["=1+2", "+a", "-cmd", "@SUM(A1)", "\t=1", "a=b", "1-2", "ε"]
        write_results(self.folder, ["=A1"], {label: (50 + k, 4) for k, label in enumerate(labels)}, runs=8)
        rows = list(csv.DictReader(io.StringIO(call(table, self.folder, "-f", "csv")[1])))
        self.assertEqual([row["policy"] for row in rows], [f"'{label}" if label[0] in "=+-@\t" else label for label in labels])
        self.assertTrue(all(row["setting"] == "'=A1" for row in rows))
        self.assertLess(min(float(row["difference"]) for row in rows[1:]), 100)

    def test_best_is_nearest_to_one_where_that_is_right(self):
        """For ratios the best is the one closest to 1 run by run, for effective sample sizes the largest."""
        rng = np.random.default_rng(4)
        ratio = np.array([0.7, 1.0, 1.3])[:, None, None] + 0.02 * rng.normal(size=(1, 3, 30, 2))
        policies = {name: (name, 0) for name in ("dps", "exact", "smc")}
        write_study(self.folder, "sample_size", [1, 10], {"sd_ratio": ratio, "ess": 100 * ratio}, [{}], policies)
        for metric, best in (("sd_ratio", 1), ("ess", 2)):
            rows = table.frame(store.results(self.folder, None), metric)
            self.assertEqual(list(np.flatnonzero(rows.best)), [best, 3 + best])

    def test_latex_is_escaped(self):
        write_results(self.folder, ["a"], {"50% & more_{x}": (5, 1), "b^~\\<": (6, 1)}, runs=8)
        text = call(table, self.folder, "-f", "latex")[1]
        self.assertIn(r"50\% \& more\_\{x\}", text)
        self.assertIn(r"b\textasciicircum{}\textasciitilde{}\textbackslash{}\textless{}", text)

    def test_adaptive_study(self):
        """A setting that stopped early is finished; a run that is missing below its last run is not."""
        gone = [("a", p, r) for p in range(3) for r in range(20, 40)]
        policies = {"ts": (50, 4), "diffts": (20, 4), "linucb": (30, 4)}
        write_results(self.folder, ["a", "b"], policies, runs=40, rounds=10, not_run=[(0, p, r) for _, p, r in gone] + [(1, 2, 7)])
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.config = file.config.replace("runs: 40\n", "runs:\n  min: 20\n  max: 40\n  target_se: 1\n")
        dataset = store.results(self.folder)
        self.assertEqual(list(averages.asked(dataset)), [20, 40])
        rows = table.frame(dataset)
        self.assertEqual(list(rows.runs), [20, 20, 20, 40, 40, 39])
        self.assertEqual(list(rows.wanted), [20] * 3 + [40] * 3)
        self.assertIn("20 to 40 of 20 to 40 runs are in", rows.attrs["caption"])
        self.assertIn("slightly optimistic", rows.attrs["caption"])
        self.assertIn("slightly optimistic", self.compare(0, self.folder, self.folder))
        page = self.page()
        self.has(page, "slightly optimistic")
        self.has(page, "Unfinished: 179 of 180 runs are in")
        self.has(page, "linucb, b</th><td>0</td><td>1</td>")  # none failed, one is not run

    # ---- compare

    def compare(self, status, *folders):
        code, out, err = call(compare, *folders)
        self.assertEqual((code or 0, err), (status, ""), out + err)
        return out

    def test_a_study_is_the_same_as_itself(self):
        write_results(self.folder, PRIORS, runs=16, rounds=20)
        out = self.compare(0, self.folder, self.folder / "results.nc")
        self.assertIn(f"same: all runs of {len(PRIORS) * len(POLICIES)} means are equal to the last bit", out)

    def test_another_seed_is_the_same_within_errors(self):
        other = self.beside("other")
        mine, theirs = (write_results(folder, PRIORS, runs=64, rounds=20, seed=seed) for folder, seed in ((self.folder, 1), (other, 2)))
        self.attributes(other, seed=np.int64(2))
        out = self.compare(0, self.folder, other)
        self.assertIn("none by more than chance explains", out)
        rows = compare.frame(store.results(self.folder), store.results(other))
        self.assertEqual(len(rows), len(PRIORS) * len(POLICIES))
        row = rows[(rows.setting == "rays") & (rows.policy == "ts")].iloc[0]
        x, y = mine[1, 0, :, -1], theirs[1, 0, :, -1]
        self.assertAlmostEqual(row.change, y.mean() - x.mean(), places=9)
        self.assertAlmostEqual(row.se, np.sqrt(x.var(ddof=1) / 64 + y.var(ddof=1) / 64), places=9)

    def test_a_change_is_found_run_by_run(self):
        """The same worlds, one policy better by a tenth of the spread of its runs: in a paired test that is far beyond chance."""
        other = self.beside("other")
        regret = write_results(self.folder, PRIORS, runs=64, rounds=20)
        shutil.copy(self.folder / "results.nc", other)
        with netCDF4.Dataset(other / "results.nc", "a") as file:
            file["regret"][2, 4] = regret[2, 4] - 0.8 - 0.1 * np.random.default_rng(5).normal(size=(64, 1))
            file.config = file.config.replace("noise: 1", "noise: 2").replace("stages: 100", "stages: 50")
            file.source = "thompson 0.2"
        out = self.compare(1, self.folder, other)
        self.assertIn("configuration: problem.noise = 1 in A, 2 in B", out)
        self.assertIn("configuration: prior.stages = 100 in A, 50 in B", out)
        self.assertIn("origin: source", out)
        self.assertIn("different: 1 of 24 means moved", out)
        rows = compare.frame(store.results(self.folder), store.results(other))
        self.assertEqual([tuple(row) for row in rows[~rows.equal][["setting", "policy"]].values], [("triangles", "diffts")])

    def test_more_runs_of_the_same_are_the_same(self):
        """Only the runs that both have are compared."""
        other = self.beside("other")
        write_study(self.folder, "round", [1, 2], {"regret": np.arange(80.0).reshape(1, 2, 20, 2)}, [{}], {"ts": ("ts", {}), "b": ("b", {})})
        values = np.concatenate([np.arange(80.0).reshape(1, 2, 20, 2), np.full((1, 2, 5, 2), 900.0)], axis=2)
        write_study(other, "round", [1, 2], {"regret": values}, [{}], {"ts": ("ts", {}), "b": ("b", {})})
        out = self.compare(0, self.folder, other)
        self.assertIn("compared: the first 20 runs", out)
        self.assertIn("same: all runs of 2 means are equal to the last bit", out)

    def test_rounding_is_no_change(self):
        other = self.beside("other")
        regret = write_results(self.folder, PRIORS, runs=16, rounds=20)
        shutil.copy(self.folder / "results.nc", other)
        with netCDF4.Dataset(other / "results.nc", "a") as file:
            file["regret"][:] = regret * (1 + 1e-13)
        self.compare(0, self.folder, other)

    def test_what_only_one_has(self):
        other = self.beside("other")
        write_results(self.folder, PRIORS, runs=8, rounds=20)
        write_results(other, PRIORS[:2], {name: POLICIES[name] for name in ("ts", "diffts")}, runs=8, rounds=20)
        out = self.compare(1, self.folder, other)
        self.assertIn("only A has setting problem.theta=triangles", out)
        self.assertIn("only A has policy linucb", out)
        convergence(other)
        self.assertIn("A is of a bandit study and B of a convergence study", self.compare(1, self.folder, other))

    # ---- scaling

    def job(self, name, ranks, wall, runs=16, cpu=None, **attributes):
        """Results of a job on `ranks` ranks."""
        folder = self.beside(name)
        write_results(folder, ["a"], {"ts": (10, 1), "mixts": (9, 1)}, runs=runs, rounds=5)
        with netCDF4.Dataset(folder / "results.nc", "a") as file:
            file.createVariable("seconds_wall", "f8", ())[...] = wall
            if cpu:
                file["seconds"][:] = cpu / (2 * runs)
            file.setncatts({"mpi_ranks": np.int64(ranks), "history": "2026: thompson run x.yaml", **attributes})
        return folder

    def test_efficiency(self):
        folders = [self.job("one", 1, 40.0), self.job("two", 2, 25.0), self.job("four", 4, 16.0), self.job("again", 4, 18.0),
                   self.job("weak", 4, 50.0, runs=64)]
        rows = scaling.frame(folders)
        strong, weak = (rows[rows.line == line] for line in ("strong", "weak"))
        np.testing.assert_allclose(strong.efficiency, [1, 40 / 25 / 2, 40 / 16 / 4, 40 / 18 / 4], rtol=1e-12)
        np.testing.assert_allclose(strong.speedup, [1, 40 / 25, 40 / 16, 40 / 18], rtol=1e-12)
        np.testing.assert_allclose(weak.efficiency, [1, 40 / 50], rtol=1e-12)
        status, out, err = call(scaling, *folders, "-o", self.folder / "s.svg")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("efficiency", out)
        self.assertTrue((self.folder / "s.svg").exists())

    def refused(self, part, *folders):
        status, out, err = call(scaling, *folders)
        self.assertEqual((status, out, err.count("\n")), (3, "", 1))
        self.assertIn(part, err)

    def test_what_scaling_refuses(self):
        one = self.job("one", 1, 40.0)
        self.refused("no two folders differ", one)
        self.refused("was resumed", one, self.job("two", 2, 1.0, cpu=3.0))
        self.refused("written by `thompson reduce`", one, self.job("two", 2, 20.0, history="2026: thompson reduce two"))
        self.refused("not the same study as", one, self.job("two", 2, 20.0, config="seed: 3\n"))
        write_results(self.beside("old"), ["a"], runs=4, rounds=5)
        self.refused("no wall-clock time", one, self.folder / "old")
        unfinished = self.job("three", 2, 30.0)
        with netCDF4.Dataset(unfinished / "results.nc", "a") as file:
            file["status"][0, 0, 0] = 0
        self.refused("15 to 16 of 16 runs are in", one, unfinished)

    # ---- the page

    def page(self, *arguments):
        status, out, err = call(report, self.folder, *arguments)
        self.assertEqual((status, err), (0, ""), err)
        return pathlib.Path(out.strip()).read_text(encoding="utf-8")

    def has(self, page, part):
        self.assertTrue(part in page, part)

    def data(self, page):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])

    def test_the_file_in_place_of_its_folder(self):
        write_results(self.folder, ["a"], runs=4, rounds=5)
        status, out, err = call(report, self.folder / "results.nc")
        self.assertEqual((status, out, err), (0, f"{self.folder / 'report.html'}\n", ""))

    def test_page_is_whole_and_alone(self):
        """Well formed, and no address outside of it."""
        write_results(self.folder, PRIORS, runs=16, rounds=300, failed=[(0, 4, 3)])
        page = self.page()
        parser = Parser()
        parser.feed(page)
        self.assertEqual((parser.open, parser.wrong), ([], []))
        self.assertEqual([address for address in parser.addresses if not address.startswith(("#", "data:"))], [])
        self.assertIsNone(re.search(r"url\(|@import|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/2000/svg)", page))
        self.assertLess(len(page), 300_000)
        for words in ("The question", "Settings", "Leaderboard", "Time and cost", "Failures and numerical fallbacks", "Provenance", "Reproduce it"):
            self.has(page, f">{words}</h2>")
        self.assertFalse("Posterior quality" in page)
        self.has(page, "Unfinished: 383 of 384 runs are in, 1 failed")

    def test_labels_do_not_touch_the_script(self):
        """In a script, "<!--" with "<script" after it makes the browser skip the closing tag; U+2028 ends a line there."""
        labels = ["<!--<script>", "</script>", "]]>", "a\u2028b\u2029c", "\u00e9"]
        write_results(self.folder, ["a"], {label: (10 + i, 1) for i, label in enumerate(labels)}, runs=4, rounds=5)
        page = self.page()
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
        self.assertFalse(set(data) & set("<\u2028\u2029"))
        self.assertEqual([policy["label"] for policy in json.loads(data)["policies"]], labels)
        self.assertEqual(page.lower().count("<script"), 2)
        self.assertFalse("<!--" in page)

    def test_page_has_the_numbers(self):
        regret = write_results(self.folder, PRIORS, runs=16, rounds=300)
        page = self.page("-o", self.folder / "other.html")
        data = self.data(page)
        self.assertEqual([policy["label"] for policy in data["policies"]], list(POLICIES))
        curves = [one for one in data["charts"] if one["kind"] == "curves"]
        self.assertEqual([one["title"] for one in curves], PRIORS)
        self.assertEqual((curves[0]["x"][0], curves[0]["x"][-1], len(curves[0]["x"])), (1, 300, chart.POINTS))
        use = np.array(curves[1]["x"], int) - 1
        np.testing.assert_allclose(curves[1]["mean"], regret[1][..., use].mean(axis=1), rtol=1e-3)  # four digits
        ends = regret[..., -1].mean(axis=2)
        for p, row in re.findall(r'<tr data-row="(\d)">(.*?)</tr>', page.split('id="leaderboard"')[1].split("</section>")[0]):
            cells = [float(number) for number in re.findall(r"<td[^>]*>(?:<b>)?([\d.]+) ±", row)]
            np.testing.assert_allclose(cells, ends[:, int(p)], rtol=0.02)  # two digits of the standard error
        ranks = ends.argsort(axis=1).argsort(axis=1).mean(axis=0)
        self.assertTrue((np.diff(ranks[data["order"]]) >= 0).all())
        self.assertFalse(data["policies"][list(POLICIES).index("dps")]["on"])

    def test_page_of_a_posterior_study(self):
        curves = write_posterior(self.folder)
        page = self.page()
        self.has(page, ">Posterior quality</h2>")
        self.has(page, "The same at n = 10")
        self.has(page, "Simulation-based calibration")
        drawn = [one for one in self.data(page)["charts"] if one["kind"] == "curves"]
        self.assertEqual(len(drawn), 3 * 2)  # without the ranks
        np.testing.assert_allclose(drawn[0]["mean"], curves["emd"][0].mean(axis=1), rtol=1e-3)
        np.testing.assert_allclose(drawn[0]["floor"], curves["emd_floor"][0, 0].mean(axis=0), rtol=1e-3)

    def test_no_paths_of_the_maker(self):
        """Absolute paths of provenance, commands and study lose their folders; other words with slashes stay."""
        write_results(self.folder, ["cross"], runs=8, rounds=20)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file.history = "2026: /opt/made here/bin/thompson run jobs/x.yaml -o /home/somebody/out --set problem.file=/data/set/one.nc"
            file.compiler_flags = "-O2 -I/usr/include/x a/b"
            file.config = file.config + "prior:\n  file: /home/somebody/prior.nc\n"
        status, out, err = call(report, self.folder)
        self.assertEqual((status, err), (0, ""))
        page = (self.folder / "report.html").read_text()
        for part in ("/home", "/data/set", str(self.folder)):
            self.assertNotIn(part, page)
        for part in ("run jobs/x.yaml -o out --set problem.file=one.nc", "a/b", "file: prior.nc", "Absolute paths are shortened"):
            self.assertIn(part, page)

    def test_switches_once_where_only_ranks_are_measured(self):
        """A part without charts between others: one set of switches, whose ids appear once in the page."""
        write_posterior(self.folder)
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            for name in ("sd_ratio", "mode_weight_error"):
                file.renameVariable(name, f"{name}_of_floor")  # a floor does not count as a curve
        page = self.page()
        self.assertEqual(page.count('class="switches"'), 1)
        self.has(page, "Are the ranks of theta* uniform?")
        ids = re.findall(r' id="([^"]+)"', page)
        self.assertEqual(len(ids), len(set(ids)))

    def test_page_of_a_convergence_study(self):
        """The curve is the divergence; the number of steps to the target is one number per run, and the page says how many runs arrived."""
        convergence(self.folder)
        page = self.page()
        self.assertEqual({one["ylabel"] for one in self.data(page)["charts"] if one["kind"] == "curves"}, {"kl"})
        self.has(page, "7 of 12 runs")

    def test_front(self):
        """Against the definition: no other point is cheaper and at least as good, or equally cheap and better."""
        rng = np.random.default_rng(6)
        for _ in range(30):
            cost, value = rng.integers(1, 6, (2, 12)).astype(float)
            value[rng.random(12) < 0.1] = np.nan
            beaten = [any((cost[q] <= cost[p] and value[q] < value[p]) or (cost[q] < cost[p] and value[q] <= value[p]) for q in range(12))
                      or np.isnan(value[p]) for p in range(12)]
            there = {(cost[p], value[p]) for p in range(12) if not beaten[p]}
            found = chart.front(cost, value)
            self.assertEqual({(cost[p], value[p]) for p in found}, there)
            self.assertEqual(len(found), len(there))

    def test_colours_are_seen_on_both_grounds(self):
        """Contrast of at least 2 to 1 with white and with the dark page (WCAG's measure; lines also have labels and dashes)."""
        def luminance(colour):
            channels = np.array([int(colour[i:i + 2], 16) for i in (1, 3, 5)]) / 255
            return np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

        def contrast(a, b):
            low, high = sorted((luminance(a), luminance(b)))
            return (high + 0.05) / (low + 0.05)

        write_results(self.folder, ["a"], {name: (10, 1) for name in chart.style.POLICIES}, runs=4, rounds=5)
        ground = re.search(r"dark\).*?--paper: (#\w+)", (ANALYSIS / "tools/report.css").read_text(), re.DOTALL)[1]
        for policy in [*chart.policies(store.results(self.folder), "regret"),
                       *({"colour": colour, "dark": chart.on_dark(colour)} for colour in chart.style.COLOURS),
                       *({"colour": colour, "dark": chart.on_dark(colour)} for colour, _ in chart.style.POLICIES.values() if colour != "#BBBBBB")]:
            self.assertGreater(contrast(policy["colour"], "#ffffff"), 2)
            self.assertGreater(contrast(policy["dark"], ground), 2)

    def test_figures_of_studies_exist(self):
        """The script that a study names (key figure) exists, and has the options."""
        named = {path.name: match[1] for path in (ROOT / "jobs").rglob("*.yaml")
                 for match in re.finditer(r"^figure: (.*)$", path.read_text(), re.MULTILINE)}
        self.assertIn("vits_figure1.yaml", named)
        kinds = re.findall(r'\.figure = "([^"]*)"', "".join(path.read_text() for path in (ROOT / "src" / "study").glob("*.c")))
        self.assertEqual(len(kinds), 5)
        for command in [*named.values(), *kinds]:
            script, *rest = command.split()
            path = ANALYSIS / (script if "/" in script else f"figures/{script}")
            self.assertTrue(path.exists(), command)
            text = path.read_text()
            self.assertTrue(all(f'"{word}"' in text for word in rest if word.startswith("--")), command)


if __name__ == "__main__":
    main(Report)
