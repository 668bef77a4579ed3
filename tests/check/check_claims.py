#!/usr/bin/env python3
"""Tests of the judgements on the papers' claims: each judgement on results whose verdict is known, and that each claim can be judged
on what its study in jobs/ writes.

Results are made here from the study files, with every metric that they ask for. Ends with one line "N passed, N failed".
"""
import itertools
import re
import sys
import unittest.mock
import warnings

import netCDF4
import numpy as np
import yaml

from study_fixture import ANALYSIS, ROOT, Parser, StudyTest, call, main, write_priors, write_study

from thompson import Error, store
import claims
import claims_diffts
import claims_tilted
import judge
import judge_cost

sys.path.insert(0, str(ROOT / "docs"))
import write_papers  # noqa: E402

MAP = 48        # settings of jobs/papers/tilted_map.yaml
REPORTED = ("a constant ratio of two costs depends on the implementations", "times of programs are reported")
CLAIMS = [claim for paper in claims.PAPERS.values() for claim in paper.CLAIMS]
# Curves for each metric of a posterior study.
CURVES = {"emd": ["emd"], "sd_ratio": ["sd_ratio"], "mode_weight": ["mode_weight_error", "largest_mode"],
          "moments": ["mean_error", "covariance_error"], "distance": ["distance"], "rank": ["rank"],
          "log_concavity": ["log_concavity", "log_concavity_bound", "log_concavity_sharp"]}


def settings_of(study):
    """[{swept key: value}] for a study file, with numbers and words in the form in which results have them."""
    keys = {key: [str(value).lower() if isinstance(value, bool) else float(value) if isinstance(value, (int, float)) else value
                  for value in values] for key, values in study.get("sweep", {}).items() if key != "zip"}
    combine = zip if study.get("sweep", {}).get("zip") else itertools.product
    return [dict(zip(keys, values)) for values in combine(*keys.values())] or [{}]


def policies_of(study):
    """{label: registered name}."""
    listed = [{"name": one} if isinstance(one, str) else one for one in study["policies"]]
    return {one.get("label", one["name"]): one["name"] for one in listed}


def from_study(folder, study, values, runs=16, replicates=1):
    """folder/results.nc for a study, given as it is written; `values` {curve: {label: number}} are the level of a policy in each run
    (a number, or one for each setting, or [setting, point])."""
    rng = np.random.default_rng(11)
    axis = {"bandit": "round", "posterior": "sample_size", "convergence": "step"}[study["study"]]
    points = {"round": [1, 50, 100], "sample_size": study["problem"].get("sample_sizes"), "step": [1, 100, 1000]}[axis]
    names = {"round": ["regret"], "step": ["kl", "steps_to_target"],
             "sample_size": [curve for metric in study.get("metrics", []) for curve in CURVES[metric]]}[axis]
    settings, policies = settings_of(study), policies_of(study)
    world = rng.normal(0, 0.05, (len(settings), 1, runs, 1))  # the same for all policies
    curves = {}
    for name in names:
        level = np.ones((len(settings), len(policies), 1, len(points)))
        for p, label in enumerate(policies):
            given = np.asarray(values.get(name, {}).get(label, 1.0), float)
            level[:, p, 0] = given.reshape(given.shape + (1,) * (2 - given.ndim))
        noise = world + rng.normal(0, 0.01, (len(settings), len(policies), runs, 1))
        curves[name] = level * (1 if name.startswith(("log_concavity", "largest_mode")) else np.exp(noise))
        if axis == "sample_size" and not name.startswith(("log", "largest", "rank")):
            curves[f"{name}_floor"] = np.exp(noise) * values.get("floor", 0.5)
    seconds = np.ones((len(settings), len(policies), runs))
    for p, label in enumerate(policies):
        seconds[:, p] *= np.reshape(values.get("seconds", {}).get(label, 1.0), (-1, 1))
    write_study(folder, axis, points, curves, settings, {label: (name, {}) for label, name in policies.items()}, replicates, seconds=seconds)
    listed = "".join(f'  - {{name: {name}, label: "{label}"}}\n' for label, name in policies.items())
    rest = {key: value for key, value in study.items() if key not in ("policies", "sweep")}
    with netCDF4.Dataset(folder / "results.nc", "a") as file:
        file.config = yaml.safe_dump(rest, sort_keys=False) + f"policies:\n{listed}"


def job(name):
    return next((ROOT / "jobs").rglob(f"{name}.yaml"))


def study_file(name):
    return yaml.safe_load(job(name).read_text())


class Claims(StudyTest):
    def dataset(self, study, values, **more):
        from_study(self.folder, study, values, **more)
        return store.results(self.folder, kind=None)

    def bandit(self, values, policies=("a", "b", "c"), **more):
        study = {"study": "bandit", "problem": {"theta": "x"}, "policies": list(policies), **more}
        return self.dataset(study, values)

    def verdict(self, one, dataset):
        return judge.verdict(one(dataset))

    # ---- verdicts

    def test_verdict_of_cells(self):
        for truths, expected in (([True, True], judge.HOLDS), ([True, False], judge.PARTLY), ([True, None], judge.SO_FAR),
                                 ([True, False, None], judge.PARTLY),
                                 ([False, None], judge.FAILS), ([None, None], judge.OPEN), ([], judge.OPEN)):
            self.assertEqual(judge.verdict([judge.Cell(truth, "") for truth in truths]), expected, truths)

    def test_no_verdict_hides_a_contrary_mean(self):
        """One cell is significant, the other is not: its mean may support the claim, contradict it or be missing."""
        for truth, expected in ((True, judge.SO_FAR), (False, judge.PARTLY), (None, judge.SO_FAR)):
            cells = [judge.Cell(True, "", 0.001), judge.Cell(truth, "", np.nan if truth is None else 0.4)]
            self.assertEqual(judge.verdict(cells), expected, truth)
        self.assertEqual(judge.verdict([judge.Cell(False, "", 0.001), judge.Cell(True, "", 0.4)]), judge.FAILS)

    def test_several_cells_are_corrected_alike(self):
        """Holm by hand: of p = 0.001, 0.02, 0.03, 0.04 the second is compared with 0.05 / 3, so one of four is significant, for a claim as
        well as against it; cells that are not tests do not count."""
        p = [0.02, 0.001, 0.03, 0.04]
        for truth, expected in ((True, judge.SO_FAR), (False, judge.FAILS)):
            cells = [judge.Cell(truth, "", one) for one in p]
            self.assertEqual([cell.truth for cell in judge.decided(cells)], [None, truth, None, None])
            self.assertEqual(judge.verdict(cells), expected)
            self.assertEqual(judge.verdict(cells[:1]), judge.HOLDS if truth else judge.FAILS)   # alone it is significant
            self.assertEqual(judge.verdict([cells[0], cells[2]]), judge.HOLDS if truth else judge.FAILS)   # 0.04 and 0.04
            self.assertEqual([cell.truth for cell in judge.decided([cells[0], judge.Cell(truth, "")])], [truth, truth])
        self.assertEqual([cell.truth for cell in judge.decided([judge.Cell(True, "", np.nan), judge.Cell(False, "", 0.04)])], [None, False])

    def test_chance_alone_gives_no_verdict(self):
        """In 200 studies of 20 cells without any difference, at most 5% may speak for or against the claim (40 cells per study; without
        correction nearly all would): 10 expected at most, 20 allowed."""
        rng, spoke = np.random.default_rng(5), 0
        for _ in range(200):
            cells = [judge.positive(judge.significance.unequal(rng.standard_normal(30), np.zeros(30)), "") for _ in range(20)]
            spoke += judge.verdict(cells) != judge.OPEN
        self.assertLess(spoke, 20)

    def test_lower(self):
        dataset = self.bandit({"regret": {"a": 1, "b": 2, "c": 0.5}})
        self.assertEqual(self.verdict(judge.lower("a", ["b"]), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.lower("b", ["a"]), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.lower("a", ["b", "c"]), dataset), judge.PARTLY)
        self.assertEqual(self.verdict(judge.lower("a", ["b"], share=0.4), dataset), judge.HOLDS)   # by a half
        self.assertEqual(self.verdict(judge.lower("a", ["b"], share=0.6), dataset), judge.FAILS)
        with self.assertRaisesRegex(Error, "no policy d; it has a, b, c"):
            judge.lower("a", ["d"])(dataset)
        with self.assertRaisesRegex(Error, "no metric emd"):
            judge.lower("a", ["b"], "emd")(dataset)

    def test_two_runs_that_disagree_leave_it_open(self):
        from_study(self.folder, {"study": "bandit", "problem": {"theta": "x"}, "policies": ["a", "b"]}, {})
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            file["status"][:, :, 2:] = 0
            file["regret"][0, 0, :2] = np.full((2, 3), [[3.0], [1.0]])
            file["regret"][0, 1, :2] = np.full((2, 3), [[1.0], [3.1]])
        dataset = store.results(self.folder)
        self.assertEqual(self.verdict(judge.lower("a", ["b"]), dataset), judge.OPEN)
        self.assertEqual(self.verdict(judge.level("a", ["b"], 0.1), dataset), judge.OPEN)

    def test_level(self):
        dataset = self.bandit({"regret": {"a": 1.02, "b": 1, "c": 1.5}})
        self.assertEqual(self.verdict(judge.level("a", ["b"], 0.1), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.level("a", ["c"], 0.1), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.level("c", ["a"], 0.1), dataset), judge.FAILS)

    def test_diverges(self):
        line, flat = [[1, 50, 100]], [[1, 8, 10]]
        dataset = self.bandit({"regret": {"a": line, "b": flat, "c": [[1, 90, 100]]}})
        self.assertEqual(self.verdict(judge.diverges("a", "b"), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.diverges("c", "b"), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.diverges("a", "c"), dataset), judge.FAILS)

    def test_over_settings(self):
        sweep = {"prior.stages": [1, 10, 100]}
        dataset = self.bandit({"regret": {"a": [3, 2, 1], "b": [1, 2, 3], "c": [4, 4, 4]}, "seconds": {"a": [1, 10, 100], "b": 1}}, sweep=sweep)
        self.assertEqual(self.verdict(judge.falls("a"), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.falls("b"), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.falls("a", share=0.6), dataset), judge.HOLDS)   # by two thirds
        self.assertEqual(self.verdict(judge.falls("a", share=0.7), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.falls("b", rival="c"), dataset), judge.HOLDS)   # an excess of 3, 2, 1
        self.assertEqual(self.verdict(judge.falls("a", rival="c"), dataset), judge.FAILS)
        slope = dict(key="prior.stages", metric="seconds", low=0.8, high=1.2)
        self.assertEqual(self.verdict(judge.exponent("a", **slope), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.exponent("b", **slope), dataset), judge.FAILS)
        with self.assertRaisesRegex(Error, "fewer than two values of prior.stages from 100 on"):
            judge.exponent("a", start=100, **slope)(dataset)
        self.assertEqual(self.verdict(judge.settles("b", "prior.stages", 10, 0.1), dataset), judge.FAILS)  # 2, 3
        self.assertEqual(self.verdict(judge.settles("c", "prior.stages", 10, 0.1), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.not_so(judge.falls("b")), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.where("prior.stages", "1", judge.lower("b", ["a"])), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.where("prior.stages", "100", judge.lower("b", ["a"])), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.lower("b", ["a"]), dataset), judge.PARTLY)
        self.assertEqual(self.verdict(judge.near("b", 2.1, 0.2), dataset), judge.PARTLY)   # 1, 2, 3 against 1.68 to 2.52
        with self.assertRaisesRegex(Error, "no such setting of prior.stages; it has 1, 10, 100"):
            judge.where("prior.stages", "7", judge.falls("a"))(dataset)

    def test_straight_line(self):
        """20 + 17 x is straight though its exponent is below 1; adding x^2 / 4 bends it by 23 out of 460 between 1 and 20, adding x^2 by 90 out of 760."""
        x = np.array([1, 5, 10, 15, 20])
        values = {"a": 20 + 17 * x, "b": 20 + 17 * x + x ** 2 / 4, "c": 20 + 17 * x + x ** 2}
        dataset = self.bandit({"regret": values}, sweep={"prior.stages": x.tolist()})
        self.assertEqual(self.verdict(judge.exponent("a", "prior.stages", "regret", 0.95, 1.05), dataset), judge.FAILS)
        for name, expected in (("a", judge.HOLDS), ("b", judge.HOLDS), ("c", judge.FAILS)):
            self.assertEqual(self.verdict(judge.straight(name, "prior.stages", "regret", 0.1), dataset), expected, name)
        bend, error = re.search(r"bent by ([\d.]+) ± ([\d.]+)", judge.straight("c", "prior.stages", "regret", 0.1)(dataset)[0].sentence).groups()
        self.assertLess(abs(float(bend) - 19 ** 2 / 4), 4 * float(error))
        with self.assertRaisesRegex(Error, "fewer than three values"):
            judge.straight("a", "prior.stages", "regret", 0.1)(dataset.isel(setting=[0, 1]))

    def test_constants_of_cost_are_reported(self):
        """A constant ratio between the costs of two methods gives no verdict, however large; how the cost of a step grows with the dimension does."""
        dataset = self.bandit({"seconds": {"a": 0.3, "b": 0.01, "c": 10}})
        with self.assertRaisesRegex(judge.Untestable, "here a costs 30.00 times as much as b; c costs 33.33 times as much as a; in the paper, 120"):
            judge_cost.reported([("a", "b"), ("c", "a")], "120")(dataset)
        study = {"study": "convergence", "max_steps": 1000, "problem": {}, "policies": ["a", "b"], "sweep": {"problem.dimension": [1, 5, 10, 20]}}
        of_steps = np.array([400.0, 5, 10, 20])
        dataset = self.dataset(study, {"seconds": {"a": of_steps ** 2, "b": of_steps ** 3}, "steps_to_target": {"a": 50, "b": 50}})
        for name, expected in (("a", judge.HOLDS), ("b", judge.FAILS)):
            self.assertEqual(self.verdict(judge_cost.step_grows_at_most(name, 2.2, 5), dataset), expected, name)

    def test_tuned_on_the_other_half(self):
        """Each half of the runs uses the eta that is best on the other half, checked run by run with NumPy."""
        rng = np.random.default_rng(8)
        labels = ["lints eta=1", "lmc 50 eta=1", "lints eta=10", "lmc 50 eta=10"]
        dataset = self.bandit({}, policies=labels, sweep={"problem.zeta": [0.1, 1]})
        dataset["regret"].values[:] = regret = rng.normal(10, 1, (2, 4, 16, 3))
        regret[0, 2, :8], regret[0, 0, 8:] = 0, 5         # the two halves prefer different eta for lints
        dataset["regret"].values[:] = regret
        expected = np.empty((2, 2, 16))
        for s in range(2):
            for m, pair in enumerate(([0, 2], [1, 3])):
                for mine, other in ((slice(0, 8), slice(8, 16)), (slice(8, 16), slice(0, 8))):
                    expected[s, m, mine] = regret[s, min(pair, key=lambda p: regret[s, p, other, -1].mean()), mine, -1]
        seen = []
        judge.tuned(lambda found: seen.append([judge.numbers(found, name) for name in ("lints", "lmc 50")]) or [])(dataset)
        np.testing.assert_allclose(np.array(seen[0]).swapaxes(0, 1), expected)
        self.assertEqual(expected[0, 0, :8].min(), regret[0, 0, :8, -1].min())    # so it does not report the regret of 0 on which it was tuned

    def test_along_points(self):
        study = {"study": "posterior", "metrics": ["distance"], "problem": {"theta": "x", "sample_sizes": [10, 100, 1000]},
                 "policies": ["a", "b"]}
        dataset = self.dataset(study, {"distance": {"a": [[1, 10 ** -0.5, 0.1]], "b": [[1, 1.5, 1.6]]}})
        self.assertEqual(self.verdict(judge.rate("a", "distance", -0.6, -0.4), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.rate("b", "distance", -0.6, -0.4), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.rises_along("b", "distance"), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.rises_along("a", "distance"), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.falls_along("a", "distance"), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.falls_along("b", "distance"), dataset), judge.FAILS)
        self.assertEqual(self.verdict(judge.lower("a", ["b"], "distance"), dataset), judge.HOLDS)
        rising = self.dataset(study, {"distance": {"a": [[1, 0.5, 0.3]], "b": [[1, 0.2, 0.1]]}})
        rising["distance_floor_mean"].values[..., 0], rising["distance_floor_mean"].values[..., -1] = 1, 0.2     # exact draws: from 1 to 0.2
        for name, expected in (("a", judge.HOLDS), ("b", judge.FAILS)):
            self.assertEqual(self.verdict(judge.rises_along(name, "distance", over_floor=True), rising), expected)
            self.assertEqual(self.verdict(judge.rises_along(name, "distance"), rising), judge.FAILS)
        at_each = judge.at_each(lambda at: judge.level("a", ["b"], 0.1, "distance", at))(dataset)
        self.assertEqual([cell.truth for cell in at_each], [True, False, False])
        self.assertTrue(at_each[2].sentence.startswith("sample size 1000, x: a minus b"))

    def test_growth(self):
        """Regret that grows, between rounds 50 and 100, slower or faster than the square root of the rounds."""
        dataset = self.bandit({"regret": {"a": [[1, 50 ** 0.45, 100 ** 0.45]], "b": [[1, 50 ** 0.55, 100 ** 0.55]], "c": 1}})
        self.assertEqual(self.verdict(judge.grows_at_most(("a", "c"), 0.5), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(judge.grows_at_most(("a", "b"), 0.5), dataset), judge.PARTLY)
        self.assertIn("power 0.45", judge.grows_at_most(("a",), 0.5)(dataset)[0].sentence)

    def test_resemblance(self):
        """Samples from the same distribution are as far from the true ones as these are from each other; others with the same mean and covariance are not."""
        rng = np.random.default_rng(1)
        dataset = self.bandit({}, sweep={"problem.theta": ["cross", "rays"]})
        theta = write_priors(self.folder, ["cross", "rays"], n=1000)
        theta[1, 1] = rng.multivariate_normal(theta[1, 0].mean(axis=0), np.cov(theta[1, 0].T), 1000)
        with netCDF4.Dataset(self.folder / "prior_samples.nc", "a") as file:
            file["theta"][:] = theta
        same, other = claims_diffts.resembles(1.5)(dataset)
        self.assertEqual((same.truth, other.truth), (True, False), (same, other))

    def test_never_arrived_counts_as_all_steps(self):
        study = {"study": "convergence", "max_steps": 1000, "problem": {"dimension": 5}, "policies": ["lmc", "vits2"]}
        dataset = self.dataset(study, {"steps_to_target": {"lmc": np.nan, "vits2": 50}})
        np.testing.assert_array_equal(judge.numbers(dataset, "lmc", "steps_to_target"), 1000)
        runs = dataset.sizes["run"]
        with self.assertRaisesRegex(judge.Untestable, rf": vits2 \S+ ms, lmc over \S+ ms \({runs} never arrived\)$"):
            judge_cost.arrivals(["vits2", "lmc"])(dataset)

    # ---- tilted transport

    def tilted(self, name, inside, excess, bound=None):
        """Results of a study in which `inside` [setting] have a log-concave start, with `tilted` this much `excess` above the floor of 0.5."""
        study = study_file(name)
        labels = policies_of(study)
        curvature = np.where(inside, 1.0, -1.0)
        promised = np.where(inside if bound is None else bound, 1.0, -1.0)
        level = {"tilted": 0.5 + np.asarray(excess, float)}
        return self.dataset(study, {"mode_weight_error": level, "mean_error": level, "floor": 0.5,
                                    "log_concavity": dict.fromkeys(labels, curvature),
                                    "log_concavity_bound": dict.fromkeys(labels, promised)})

    def test_floor_inside_and_outside(self):
        inside = np.arange(MAP) < 15
        dataset = self.tilted("tilted_map", inside, np.where(inside, 0, 0.3))
        self.assertEqual(self.verdict(claims_tilted.at_floor("tilted", "mode_weight_error", 0.05, True), dataset), judge.HOLDS)
        self.assertEqual(self.verdict(claims_tilted.at_floor("tilted", "mode_weight_error", 0.05, False), dataset), judge.FAILS)
        dataset = self.tilted("tilted_map", np.zeros(MAP, bool), 0)
        self.assertEqual(self.verdict(claims_tilted.at_floor("tilted", "mode_weight_error", 0.05, True), dataset), judge.OPEN)

    def test_bound_and_threshold(self):
        inside = np.arange(MAP) < 15
        self.assertEqual(self.verdict(claims_tilted.bound, self.tilted("tilted_map", inside, 0, np.arange(MAP) < 10)), judge.HOLDS)
        self.assertEqual(self.verdict(claims_tilted.bound, self.tilted("tilted_map", inside, 0, np.arange(MAP) < 20)), judge.FAILS)
        snr = np.array(study_file("tilted_ising")["sweep"]["problem.snr"])
        for edge, below, above in ((1, judge.HOLDS, judge.HOLDS), (2, judge.HOLDS, judge.PARTLY), (0.6, judge.PARTLY, judge.HOLDS)):
            dataset = self.tilted("tilted_ising", snr < edge, 0)
            self.assertEqual(self.verdict(claims_tilted.threshold(below=True), dataset), below)
            self.assertEqual(self.verdict(claims_tilted.threshold(below=False), dataset), above)

    def test_beats_leaves_out_dominant_modes(self):
        study = study_file("tilted_inverse")
        snr = np.array(study["sweep"]["problem.snr"])
        worse = np.where(snr > 0.2, 2.0, 0.5)  # worse where one mode dominates, in the problems that are left out
        dominant = dict.fromkeys(policies_of(study), np.where(snr > 0.2, 0.99, 0.3))
        dataset = self.dataset(study, {"mode_weight_error": {"tilted": worse}, "largest_mode": dominant})
        cells = claims_tilted.beats("tilted", "mala")(dataset)
        self.assertEqual([cell.truth for cell in judge.decided(cells)], [True, True, None, None, True])
        self.assertEqual(judge.verdict(cells), judge.SO_FAR)

    # ---- the claims of the papers

    def test_every_claim_can_be_judged(self):
        """Every claim can be judged on results in the form that its study writes, whatever the numbers, except those that say why they cannot."""
        for name in dict.fromkeys(claim.study for claim in CLAIMS if claim.study):
            place = self.folder / name
            place.mkdir()
            from_study(place, study_file(name), {"largest_mode": dict.fromkeys(policies_of(study_file(name)), 0.3)})
            write_priors(place, [one.get("problem.theta") for one in settings_of(study_file(name))], n=100)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            datasets = claims.opened(self.folder, CLAIMS, [])
            for claim in CLAIMS:
                verdict, evidence = claims.judged(claim, datasets)
                self.assertTrue(evidence, claim.says)
                self.assertNotEqual(verdict, judge.NOT_RUN, claim.says)
                # A claim that can't be tested has no study that would have to run for it, except for costs, which are reported.
                self.assertEqual(verdict == judge.UNTESTED, not claim.study or evidence[0].startswith(REPORTED), claim.says)

    def test_reasons_have_their_study(self):
        """A reason names the study that shows it, which jobs/reproduce_all.sh runs, or says that there is no explanation."""
        studies = {claim.study for claim in CLAIMS}
        for claim in CLAIMS:
            if claim.reason:
                self.assertEqual(not claim.shown, "no explanation" in claim.reason.lower(), claim.says)
            self.assertIn(claim.shown or claim.study, studies)

    def test_script_runs_every_study_that_a_claim_needs(self):
        table = (ROOT / "jobs" / "reproduce_all.sh").read_text().split("studies='")[1].split("'\n")[0].strip().splitlines()
        rows = [[cell.strip() for cell in line.split("|")] for line in table]
        self.assertEqual({row[0] for row in rows}, {claim.study for claim in CLAIMS if claim.study})
        for study, figure, data, quick in rows:
            text = job(study).read_text()
            drawn = figure.split()[0]
            self.assertTrue((ANALYSIS / (drawn if "/" in drawn else f"figures/{drawn}")).exists(), figure)
            self.assertEqual(data, (re.findall(r"^  file: (\S+)", text, re.MULTILINE) or [""])[0], study)
            self.assertTrue(all(re.fullmatch(r"[a-z_.]+=\S+", change) for change in quick.split()), quick)

    # ---- the page

    def test_page(self):
        """Well formed, with the evidence and the figure in it, and no external address; missing studies were not run, and the page says so."""
        place = self.folder / "figure2"
        place.mkdir()
        from_study(place, study_file("figure2"), {"regret": {"diffts": 0.5}})
        write_priors(place, ["cross", "rays", "triangles"], n=100)
        (place / "figure_diffts_2.png").write_bytes(b"\x89PNG")
        status, out, err = call(claims, self.folder, "--paper", "diffts", "--note", "a < b")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len(out.splitlines()), len(claims.PAPERS["diffts"].CLAIMS) + 1)
        self.assertTrue(out.startswith("holds  "), out)
        page = (self.folder / "diffts.html").read_text()
        parser = Parser()
        parser.feed(page.replace("<img ", "<input "))  # these have no end tag either
        self.assertEqual((parser.open, parser.wrong), ([], []))
        self.assertEqual([address for address in parser.addresses if not address.startswith(("#", "data:"))], [])
        self.assertEqual(page.count("data:image/png;base64,iVBORw=="), 1)
        for words in ("a &lt; b", "cross: ts minus diffts", "figure4/results.nc does not exist", "not run", "Holm", "can&#x27;t be tested here"):
            self.assertIn(words, page)

    def test_results_of_a_study_that_failed_are_left_out(self):
        for study in ("figure2", "figure4"):
            (self.folder / study).mkdir()
            from_study(self.folder / study, study_file(study), {"regret": {"diffts": 0.5}})
        status, out, err = call(claims, self.folder, "--paper", "diffts", "--failed", "figure2", "--failed", "vits_cost")
        self.assertEqual((status, err), (0, ""))
        verdicts = {line[32:].strip(): line[:32].strip() for line in out.splitlines()}
        told = {part: {verdict for claim, verdict in verdicts.items() if part in claim} for part in ("Figure 2:", "DiffTS has the lowest")}
        self.assertEqual(told, {"Figure 2:": {judge.NOT_RUN}, "DiffTS has the lowest": {judge.HOLDS, judge.NOT_RUN}})
        self.assertIn("the study figure2 failed", (self.folder / "diffts.html").read_text())

    def test_no_study_at_all(self):
        for folder in (self.folder, self.folder / "nowhere"):
            status, out, err = call(claims, folder, "--paper", "vits")
            self.assertEqual((status, out), (3, ""))
            self.assertIn("contains no study of this paper", err)

    def test_pages_of_the_reproduction(self):
        """Every claim is on the page of its paper, a claim that does not hold is given with its reason, and a missing reason is an error."""
        studies = {"figure2": {"regret": {"diffts": 2.0}}, "vits_figure1": {"regret": {"lmc": 2.0}}, "tilted_bandit": {}}
        for study, values in studies.items():
            (self.folder / study).mkdir()
            from_study(self.folder / study, study_file(study), values)
            with netCDF4.Dataset(self.folder / study / "results.nc", "a") as file:
                file.setncatts({"title": study, "source": "thompson", "history": "2026-01-01T00:00:00Z: run", "mpi_library": "MPI"})
        status, _, err = call(write_papers, self.folder, "--note", "one core", "-o", self.folder / "pages")
        self.assertEqual(status, 3)
        self.assertIn("Section 6.2, Figure 2: DiffTS has a lower regret than Thompson sampling", err)    # holds in reality, so it has no reason
        lowest = claims_diffts.CLAIMS[1]
        with unittest.mock.patch.multiple(lowest, reason="It is above.", shown="figure4"):     # which did not run
            self.assertIn("reasons are shown by studies that did not run: figure4", call(write_papers, self.folder, "--note", "", "-o", self.folder / "pages")[2])
        with unittest.mock.patch.multiple(lowest, reason="It is above.", shown="figure2"):
            self.assertNotIn(lowest.says, call(write_papers, self.folder, "--note", "one core", "-o", self.folder / "pages")[2])
        overview = (self.folder / "pages" / "README.md").read_text()
        for words in ("one core", "does not hold | It is above. (`figure2`)", "| [VITS](vits.md) |"):
            self.assertIn(words, overview)
        for name, paper in claims.PAPERS.items():
            page = (self.folder / "pages" / f"{name}.md").read_text()
            self.assertTrue(all(claim.says in page for claim in paper.CLAIMS), name)


if __name__ == "__main__":
    main(Claims)
