#!/usr/bin/env python3
"""`thompson score`: what it exports, what it reports on draws that are made here in NumPy, from formulas and not by the program, and what it refuses.
"""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import netCDF4
import numpy as np
import scipy.optimize
import scipy.spatial
import scipy.special
import scipy.stats.qmc

import program
from program import SANITIZED, SOURCE, ProgramTest

ANALYSIS = os.path.join(SOURCE, "analysis")
DRAWS = 500
ATTRIBUTES = {"pack", "problem", "likelihood", "noise", "draws"}


class Problem:
    """A problem as read from its folder."""

    def __init__(self, folder):
        with netCDF4.Dataset(folder / "prior.nc") as file:
            self.weight, self.mean, self.covariance = (np.array(file[name][:]) for name in ("weight", "mean", "covariance"))
        with netCDF4.Dataset(folder / "histories.nc") as file:
            file.set_auto_mask(False)
            self.noise, self.likelihood = file.noise, file.likelihood
            self.observations = file["observations"][:]
            self.histories = [(x[:n], y[:n]) for x, y, n in zip(file["x"][:], file["y"][:], self.observations)]

    def draw(self, rng, x, y, draws=DRAWS):
        """Draw from the posterior given Gaussian rewards, in closed form; for components without covariance, by their weights."""
        precision, vector = x.T @ x / self.noise ** 2, x.T @ y / self.noise ** 2
        if not self.covariance.any():
            log_weight = np.log(self.weight) + self.mean @ vector - 0.5 * np.einsum("ci,ij,cj->c", self.mean, precision, self.mean)
            return self.mean[rng.choice(len(self.weight), draws, p=scipy.special.softmax(log_weight))]
        prior = np.linalg.inv(self.covariance)
        covariance = np.linalg.inv(prior + precision)
        mean = np.einsum("cij,cj->ci", covariance, np.einsum("cij,cj->ci", prior, self.mean) + vector)
        log_weight = (np.log(self.weight) + 0.5 * (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(self.covariance)[1])
                      + 0.5 * (np.einsum("ci,cij,cj->c", mean, prior + precision, mean) - np.einsum("ci,cij,cj->c", self.mean, prior, self.mean)))
        of = rng.choice(len(self.weight), draws, p=scipy.special.softmax(log_weight))
        return mean[of] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance)[of], rng.standard_normal((draws, self.mean.shape[1])))

    def exact(self, seed):
        rng = np.random.default_rng(seed)
        return np.array([self.draw(rng, x, y) for x, y in self.histories])

    def prior(self, seed):
        rng = np.random.default_rng(seed)
        return np.array([self.draw(rng, x[:0], y[:0]) for x, y in self.histories])


class Score(ProgramTest):
    shared = {}

    def write_draws(self, theta, axes=("history", "draw", "dim"), history=None, name="draws.nc"):
        with netCDF4.Dataset(self.path(name), "w") as file:
            for axis, length in zip(axes, theta.shape):
                file.createDimension(axis, length)
            file.createVariable("theta", "f8", axes)[:] = theta
            if history is not None:
                file.createVariable("history", "i4", ("history",))[:] = history
        return self.path(name)

    def score(self, name, theta):
        return json.loads(self.succeed("score", "--problem", name, "--draws", self.write_draws(theta), "--json").stdout)

    def export(self, name, folder="export", **options):
        self.succeed("score", "--export", self.path(folder), "--problem", name, **options)
        return pathlib.Path(self.path(folder), pathlib.Path(name).stem if not name.endswith(".nc") else "own")

    def exact(self):
        """Exact draws of sphere5, and their score: computed once for all tests, as a score takes seconds."""
        if not self.shared:
            theta = Problem(self.export("sphere5", "shared")).exact(1)
            self.shared.update(theta=theta, scored=self.score("sphere5", theta))
        return self.shared["theta"], self.shared["scored"]

    # ---- the problems

    def test_list(self):
        listed = json.loads(self.succeed("score", "--list", "--json").stdout)
        text = self.succeed("score", "--list").stdout
        self.assertEqual({entry["dimension"] for entry in listed}, {2, 5, 8, 16})
        for entry in listed:
            self.assertIn(entry["name"], text)
            self.assertEqual(entry["metric"], "emd" if entry["dimension"] == 2 else "sliced_wasserstein")
            self.assertEqual((entry["histories"], entry["draws"], entry["pack"]), (96, DRAWS, "thompson-1"))

    def test_export(self):
        """NetCDF and CSV contain the same numbers and nothing else, and the number of ranks does not change a byte."""
        folder = self.export("rays")
        problem = Problem(folder)
        with netCDF4.Dataset(folder / "histories.nc") as file:
            self.assertEqual(set(file.variables), {"x", "y", "observations"})
            self.assertLessEqual(ATTRIBUTES, set(file.ncattrs()))
        with netCDF4.Dataset(folder / "prior.nc") as file:
            self.assertEqual((set(file.variables), file.prior), ({"weight", "mean", "covariance"}, "mixture"))
        self.assertEqual(len(list(folder.iterdir())), 96 + 3)
        for number, (x, y) in enumerate(problem.histories):
            with open(folder / f"history_{number:03d}.csv", newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            self.assertEqual(header, ["x1", "x2", "y"])
            np.testing.assert_array_equal(np.array(rows, float), np.column_stack([x, y]))
        rows = np.loadtxt(folder / "prior.csv", delimiter=",", skiprows=1)
        np.testing.assert_array_equal(rows, np.column_stack([problem.mean, problem.covariance.reshape(-1, 4), problem.weight]))
        np.testing.assert_array_equal(problem.observations, np.repeat([1, 4, 16, 64], 24))
        other = self.export("rays", "by_two", ranks=2)
        for file in folder.glob("*.csv"):
            self.assertEqual(file.read_bytes(), (other / file.name).read_bytes())
        self.assert_same_results(folder / "histories.nc", other / "histories.nc")
        self.succeed("sample", "--prior", folder / "prior.nc", "--data", folder / "history_095.csv", "--sampler", "exact", "-o", self.path("one.nc"))

    def test_export_of_all(self):
        self.succeed("score", "--export", self.path("all"))
        names = {entry["name"] for entry in json.loads(self.succeed("score", "--list", "--json").stdout)}
        self.assertEqual(set(os.listdir(self.path("all"))), names | {"README.md"})
        self.assertTrue(all(f"| {name} |" in pathlib.Path(self.path("all"), "README.md").read_text(encoding="utf-8") for name in names))

    def test_never_overwrites(self):
        os.mkdir(self.path("mine"))
        self.write("mine/notes.txt", "mine")
        self.fail_with(4, "is not empty", "score", "--export", self.path("mine"), "--problem", "cross")
        self.assertEqual(os.listdir(self.path("mine")), ["notes.txt"])
        self.fail_with(4, "Not a directory", "score", "--export", self.path("mine/notes.txt"), "--problem", "cross")
        os.mkdir(self.path("empty"))
        self.export("cross", "empty")

    # ---- scores of draws

    def test_even_draws(self):
        """Sobol points in each component, in proportion to its weight: closer to exact draws than these are to each other, which is reported; for
        exact draws, with rounded shares or not, it is not reported (except for one in a thousand seeds)."""
        problem = Problem(self.export("sphere5"))

        def balanced(x, y, rng, points):
            precision, vector = x.T @ x / problem.noise ** 2, x.T @ y / problem.noise ** 2
            prior = np.linalg.inv(problem.covariance)
            covariance = np.linalg.inv(prior + precision)
            mean = np.einsum("cij,cj->ci", covariance, np.einsum("cij,cj->ci", prior, problem.mean) + vector)
            log_weight = (np.log(problem.weight) + 0.5 * (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(problem.covariance)[1])
                          + 0.5 * (np.einsum("ci,cij,cj->c", mean, prior + precision, mean)
                                   - np.einsum("ci,cij,cj->c", problem.mean, prior, problem.mean)))
            end = np.rint(DRAWS * np.cumsum(scipy.special.softmax(log_weight))).astype(int)
            of = np.searchsorted(end, np.arange(DRAWS), side="right").clip(max=len(end) - 1)
            z = np.concatenate([points(count, rng) for count in np.bincount(of, minlength=len(end))])
            return mean[of] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance)[of], z)

        def sobol(count, rng):
            d = problem.mean.shape[1]
            unit = scipy.stats.qmc.Sobol(d, seed=rng).random(512)[:count]
            return scipy.special.ndtri(unit.clip(1e-9, 1 - 1e-9))

        rng = np.random.default_rng(7)
        theta = np.array([balanced(x, y, rng, sobol) for x, y in problem.histories])
        scored = self.score("sphere5", theta)
        self.assertTrue(scored["too_even"], scored)
        self.assertLess(scored["even_p_value"], 1e-9)
        self.assertLess(scored["ratio"]["mean"], 0.95)
        text = self.succeed("score", "--problem", "sphere5", "--draws", self.path("draws.nc")).stdout
        self.assertIn("more even than independent draws (p = ", text)
        exact = self.exact()[1]
        self.assertFalse(exact["too_even"])
        self.assertGreater(exact["even_p_value"], 1e-3)

    def test_exact_draws(self):
        """At the floor within 4 standard errors, calibrated at the level of 1 in 1000, on the right modes."""
        cube = self.score("ising8", Problem(self.export("ising8")).exact(1))
        for name, scored in (("sphere5", self.exact()[1]), ("ising8", cube)):
            self.assertLess(abs(scored["ratio"]["mean"] - 1), 4 * scored["ratio"]["se"], scored)
            self.assertLess(scored["ratio"]["se"], 0.03)
            for rank in ("rank", "rank_norm", "rank_log_likelihood"):
                self.assertGreater(scored[f"{rank}_p_value"], 1e-3)
            for row in scored["by_observations"]:
                self.assertLess(abs(row["ratio"]["mean"] - 1), 4 * row["ratio"]["se"], row)
                if name == "ising8":
                    self.assertIsNone(row["mode_weight_error"]["mean"])
                else:
                    se = np.hypot(row["mode_weight_error"]["se"], row["mode_weight_floor"]["se"])
                    self.assertLess(abs(row["mode_weight_error"]["mean"] - row["mode_weight_floor"]["mean"]), 4 * se)

    def test_wrong_draws(self):
        """Draws of half the width, which are detected by their ranks too."""
        exact, scored = self.exact()
        center = exact.mean(axis=1, keepdims=True)
        narrow = self.score("sphere5", center + 0.5 * (exact - center))
        self.assertGreater(narrow["ratio"]["mean"], 1 + 4 * narrow["ratio"]["se"])
        self.assertLess(narrow["rank_p_value"], 1e-4)
        self.assertEqual(narrow["rank_p_value_exact"], scored["rank_p_value_exact"])

    def test_distance_is_that_of_scipy(self):
        """The distance of prior draws to exact ones, by SciPy's assignment and the exact draws of this file. Other exact draws change the distance
        for a history by less than the floor, and independently of each other. The prior ignores the history."""
        problem = Problem(self.export("cross"))
        theta, exact = problem.prior(4), problem.exact(5)
        rows = self.score("cross", theta)["by_observations"]
        ratios = [row["ratio"]["mean"] for row in rows]
        self.assertEqual(ratios, sorted(ratios))
        self.assertGreater(ratios[0], 2)
        row = rows[2]
        group = range(48, 72)
        distances = []
        for history in group:
            cost = scipy.spatial.distance.cdist(theta[history], exact[history])
            distances.append(cost[scipy.optimize.linear_sum_assignment(cost)].mean())
        self.assertEqual(row["observations"], 16)
        self.assertLess(abs(np.mean(distances) - row["distance"]["mean"]), 4 * row["floor"]["mean"] / np.sqrt(len(group)))
        self.assertLess(abs(np.std(distances, ddof=1) / np.sqrt(len(group)) / row["distance"]["se"] - 1), 0.05)

    def test_own_prior(self):
        """A user's prior file defines a problem with Gaussian rewards."""
        mean = np.array([[0.0, 0, 0], [2, 1, 0]])
        path = self.path("it's a prior.nc")
        with netCDF4.Dataset(path, "w") as file:
            for axis, length in (("component", 2), ("dim", 3), ("dim2", 3)):
                file.createDimension(axis, length)
            file.prior = "mixture"
            file.createVariable("weight", "f8", ("component",))[:] = [0.3, 0.7]
            file.createVariable("mean", "f8", ("component", "dim"))[:] = mean
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.array([np.eye(3), 0.2 * np.eye(3)])
        problem = Problem(self.export(path))
        np.testing.assert_array_equal(problem.mean, mean)
        scored = self.score(path, problem.exact(6))
        self.assertEqual(scored["problem"], "own")
        self.assertLess(abs(scored["ratio"]["mean"] - 1), 4 * scored["ratio"]["se"])

    def test_table(self):
        theta, scored = self.exact()
        draws = self.write_draws(theta)
        text = self.succeed("score", "--problem", "sphere5", "--draws", draws).stdout
        self.assertIn(f"mean of the rows: {scored['ratio']['mean']:.3f}, se {scored['ratio']['se']:.3f}", text)
        self.assertEqual(self.succeed("score", "--problem", "sphere5", "--draws", draws, ranks=2).stdout, text)

    # ---- who uses it

    def python(self, *arguments):
        library = os.path.join(os.environ["THOMPSON_BUILD"], "src/library/libthompson.so.0")
        environment = {**os.environ, "PYTHONPATH": ANALYSIS, "THOMPSON_LIBRARY": library}
        done = subprocess.run([sys.executable, "-B", *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_page(self):
        """The sampler on docs/score.md, as given there, has the score given there."""
        page = pathlib.Path(SOURCE, "docs/score.md").read_text(encoding="utf-8")
        code = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1)
        ratio = float(re.search(r"^\| SMC of this page \| (\d\.\d+) ±", page, re.MULTILINE).group(1))
        self.python(self.write("smc.py", code), self.export("cross"), self.path("draws.nc"))
        scored = json.loads(self.succeed("score", "--problem", "cross", "--draws", self.path("draws.nc"), "--json").stdout)
        self.assertLess(abs(scored["ratio"]["mean"] - ratio), 4 * scored["ratio"]["se"])

    @unittest.skipIf(SANITIZED, "Python cannot load a library with the sanitizers")
    def test_script(self):
        """Among our own samplers exact draws are at the floor, and N(0, I) is not a prior of modes far apart."""
        text = self.python(os.path.join(ANALYSIS, "tools/score_samplers.py"), "--samplers", "exact", "ts", "--problems", "sphere5")
        (exact, exact_se), (ts, _) = [map(float, cell) for cell in re.findall(r"\| (\S+) ± (\S+) \|", text)]
        self.assertLess(abs(exact - 1), 4 * exact_se + 0.005)  # as printed
        self.assertGreater(ts, 5)

    # ---- what it refuses

    def test_bad_draws(self):
        good = np.zeros((96, DRAWS, 2))

        def refused(part, theta, **options):
            self.fail_with(3, part, "score", "--problem", "cross", "--draws", self.write_draws(theta, **options))

        refused("'theta' has 95 histories; problem cross has 96", good[1:])
        refused("'theta' has 499 draws per history; 500 are needed", good[:, 1:])
        refused("'theta' has 3 dimensions; problem cross has 2", np.zeros((96, DRAWS, 3)))
        refused("history", np.zeros((DRAWS, 96, 2)), axes=("draw", "history", "dim"))
        refused("'theta' has shape", np.zeros((96, DRAWS)), axes=("history", "draw"))
        refused("draws must be in the order of the export", good, history=np.arange(96)[::-1])
        wrong = good.copy()
        wrong[3, 7, 1] = np.nan
        refused("history 3, draw 7: theta[1] is nan, which is not finite", wrong)
        wrong[3, 7, 1] = np.inf
        refused("history 3, draw 7: theta[1] is inf, which is not finite", wrong)
        self.fail_with(3, "NetCDF", "score", "--problem", "cross", "--draws", self.write("text.nc", "text"))
        self.fail_with(4, "nothing.nc", "score", "--problem", "cross", "--draws", self.path("nothing.nc"))
        self.fail_with(3, "did you mean 'cross'?", "score", "--problem", "croos", "--draws", self.path("nothing.nc"))

    def test_usage(self):
        self.fail_with_usage("give one of --list, --export DIR, --problem NAME --draws FILE, or --reference FILE --draws FILE", "score")
        self.fail_with_usage("one of --list", "score", "--list", "--export", self.path("x"))
        self.fail_with_usage("--draws needs either --problem", "score", "--draws", "x.nc")
        self.fail_with_usage("--json is for", "score", "--export", self.path("x"), "--json")
        self.fail_with_usage("--export: the name is empty", "score", "--export", "")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_more_draws(self):
        """If there are more draws, the first ones are scored; a coordinate of histories is accepted if it is in order."""
        theta, one = self.exact()
        theta = np.concatenate([theta, theta[:, :7] + 1], axis=1)
        other = json.loads(self.succeed("score", "--problem", "sphere5", "--draws", self.write_draws(theta, history=np.arange(96)), "--json").stdout)
        one, other = ({key: value for key, value in scored.items() if key != "draws"} for scored in (one, other))
        self.assertEqual(one, other)


def write_draws(path, theta):
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip(("draw", "dim"), theta.shape):
            file.createDimension(name, size)
        file.createVariable("theta", "f8", ("draw", "dim"))[:] = theta


class Reference(ProgramTest):
    """`thompson score --reference`: one set of draws compared with another."""

    def compare(self, draws, reference):
        write_draws(self.path("draws.nc"), draws)
        write_draws(self.path("reference.nc"), reference)
        return json.loads(self.succeed("score", "--reference", self.path("reference.nc"), "--draws", self.path("draws.nc"), "--json").stdout)

    def normal(self, n, seed=1, d=3):
        return np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1, d + 1)

    def test_same_law(self):
        """Draws from the reference's own distribution are about as far from it as its halves are from each other; the seeds are fixed."""
        for n, m in ((1000, 4000), (4000, 2000)):
            scored = self.compare(self.normal(n), self.normal(m, 2))
            self.assertEqual(scored["sliced_wasserstein"]["points"], min(n, m // 2))
            self.assertEqual(scored["emd"]["points"], 1000)
            self.assertAlmostEqual(scored["sliced_wasserstein"]["ratio"], 1, delta=0.25)
            self.assertAlmostEqual(scored["emd"]["ratio"], 1, delta=0.05)
            self.assertLess(scored["mean_error"], 4 * np.sqrt(1 / n + 1 / m))
            self.assertEqual((scored["distinct"], scored["reference_distinct"]), (1, 1))

    def test_wrong_draws(self):
        """A shift of coordinate 2 by half its standard deviation, a third coordinate of half the width, copies: checked against NumPy's numbers."""
        draws, reference = self.normal(1000), self.normal(4000, 2)
        draws[:, 1] += 1
        draws[:, 2] /= 2
        draws[500:] = draws[:500]
        scored = self.compare(draws, reference)
        error = np.abs(draws.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0, ddof=1)
        ratio = draws.std(axis=0, ddof=1) / reference.std(axis=0, ddof=1)
        self.assertAlmostEqual(scored["mean_error"], error.max(), delta=1e-3 * error.max())
        self.assertEqual(scored["mean_error_dimension"], 2)
        self.assertAlmostEqual(scored["sd_ratio_low"], ratio.min(), delta=1e-3)
        self.assertAlmostEqual(scored["sd_ratio_high"], ratio.max(), delta=2e-3)
        self.assertEqual(scored["distinct"], 0.5)
        self.assertGreater(scored["sliced_wasserstein"]["ratio"], 3)

    def test_distance_is_that_of_numpy(self):
        """In one dimension, and with all points in every partition, the earth mover's distance is the mean difference of the sorted points."""
        draws, reference = self.normal(400, 3, 1) + 3, self.normal(800, 4, 1)
        scored = self.compare(draws, reference)
        whole = np.abs(np.sort(draws[:, 0])[:, None] - np.sort(reference[:, 0]).reshape(400, 2)).mean()
        for name in ("emd", "sliced_wasserstein"):
            self.assertAlmostEqual(scored[name]["distance"] / whole, 1, delta=0.05)

    def test_clicks(self):
        """Long chains of mala with clicks are draws from the posterior: compared with exact ones, by rejection, in the plane."""
        rng = np.random.default_rng(5)
        x = rng.standard_normal((12, 2))
        y = rng.random(12) < 1 / (1 + np.exp(-x @ [2.0, -1.0]))
        self.write("history.csv", "x1,x2,y\n" + "".join(f"{a},{b},{int(c)}\n" for (a, b), c in zip(x, y)))
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            for name, size in (("component", 2), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.prior = "mixture"
            file.createVariable("weight", "f8", ("component",))[:] = [0.5, 0.5]
            file.createVariable("mean", "f8", ("component", "dim"))[:] = [[2, 0], [0, -2]]
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = 9 * np.eye(2)
        for name, options in (("exact", ("-n", "8000")), ("mala", ("-n", "4000", "--option", "steps=500"))):
            self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", name,
                         "--likelihood", "logistic", "-o", self.path(f"{name}.nc"), *options)
        scored = json.loads(self.succeed("score", "--reference", self.path("exact.nc"), "--draws", self.path("mala.nc"), "--json").stdout)
        self.assertLess(scored["sliced_wasserstein"]["ratio"], 1.5)
        self.assertLess(scored["mean_error"], 4 * np.sqrt(1 / 4000 + 1 / 8000))
        self.assertAlmostEqual(scored["sd_ratio_low"], 1, delta=0.06)
        self.assertAlmostEqual(scored["sd_ratio_high"], 1, delta=0.06)

    def test_refusals(self):
        write_draws(self.path("plane.nc"), self.normal(10, d=2))
        write_draws(self.path("space.nc"), self.normal(10))
        flat = self.normal(10)
        flat[:, 1] = 4
        write_draws(self.path("flat.nc"), flat)
        write_draws(self.path("few.nc"), self.normal(3))
        for draws, reference, part in (("plane", "space", "in 2 dimensions"), ("space", "flat", "is the same in all draws"), ("space", "few", "at least 2 and 4")):
            self.fail_with(3, part, "score", "--reference", self.path(f"{reference}.nc"), "--draws", self.path(f"{draws}.nc"))
        self.fail_with_usage("needs --draws", "score", "--reference", self.path("space.nc"), "--list")
        self.fail_with_usage("not both", "score", "--reference", self.path("space.nc"), "--draws", self.path("space.nc"), "--problem", "cross")


if __name__ == "__main__":
    program.main()
