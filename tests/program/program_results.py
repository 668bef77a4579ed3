"""The results file keeps its contract: dimensions, names, CF attributes, and statistics as recomputed with NumPy; draws, priors and training from files."""

import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

import netCDF4
import numpy as np
import xarray as xr

import journals
import program


def write_prior(path, kind, weight, mean, covariance):
    """A prior file as a user would write it."""
    mean = np.asarray(mean, float)
    xr.Dataset({"weight": ("component", np.asarray(weight, float)), "mean": (("component", "dim"), mean),
                "covariance": (("component", "dim", "dim2"), np.asarray(covariance, float))}, attrs={"prior": kind}).to_netcdf(path)


# CF-1.10, Appendix E (the methods without further arguments), and the standard names and units that our files use.
CF_METHODS = {"point", "sum", "maximum", "maximum_absolute_value", "median", "mid_range", "minimum", "minimum_absolute_value", "mean",
              "mean_absolute_value", "mean_of_upper_decile", "mode", "range", "root_mean_square", "standard_deviation", "sum_of_squares", "variance"}
STANDARD_NAMES, UNITS = {"realization"}, {"1", "s"}


def cf_violations(file):
    """The violations of the CF conventions (1.10) in a netCDF4 dataset, as sentences; the rules that a file of our kind can break."""
    found = []

    def rule(holds, name, words):
        if not holds:
            found.append(f"{name}: {words}")

    known = {variable.standard_name for variable in file.variables.values() if "standard_name" in variable.ncattrs()}
    rule(getattr(file, "Conventions", "").startswith("CF-"), "file", "2.6.1: Conventions")
    for name in [*file.dimensions, *file.variables]:
        rule(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name), name, "2.3: letters, digits and underscores")
    rule(len({name.lower() for name in file.variables}) == len(file.variables), "file", "2.3: names that differ by case only")
    labels = {name for name, variable in file.variables.items() if variable.dtype.kind == "S"}
    coordinates = {name for variable in file.variables.values() for name in getattr(variable, "coordinates", "").split()}
    for name, variable in file.variables.items():
        has = variable.ncattrs()
        if name not in coordinates | set(file.dimensions):
            missing = {label for label in labels if file[label].dimensions[0] in variable.dimensions} - set(getattr(variable, "coordinates", "").split())
            rule(not missing, name, f"6.1: coordinates does not name {missing}")
        rule({"long_name", "standard_name"} & set(has), name, "3.2, 3.3: no long_name or standard_name")
        rule(getattr(variable, "standard_name", "realization") in STANDARD_NAMES, name, "3.3: no such standard name")
        rule(variable.dtype.kind == "S" or "flag_values" in has or getattr(variable, "units", None) in UNITS, name, "3.1: units")
        if "_FillValue" in has:
            rule(np.asarray(variable._FillValue).dtype == variable.dtype, name, "2.5.1: type of _FillValue")
        if variable.dimensions == (name,):
            values = np.diff(variable[:].astype(float))
            rule("_FillValue" not in has and (np.all(values > 0) or np.all(values < 0)), name, "5: a coordinate is monotonic without gaps")
        for of, methods in re.findall(r"(\w+): ([\w ]+?)(?= \w+:|$)", getattr(variable, "cell_methods", "")):
            rule(of in (*variable.dimensions, *known, "area"), name, f"7.3: {of} is no dimension, standard name or area")
            rule(methods.split()[0] in CF_METHODS, name, f"7.3: {methods} is no cell method")
        for other in f"{getattr(variable, 'ancillary_variables', '')} {getattr(variable, 'coordinates', '')}".split():
            rule(other in file.variables and set(file[other].dimensions[:1]) <= set(variable.dimensions), name, f"3.4, 5: {other}")
        if "flag_values" in has:
            values = np.atleast_1d(variable.flag_values)
            rule(values.dtype == variable.dtype and len(values) == len(set(values)) == len(variable.flag_meanings.split()), name, "3.5: flags")
            rule(np.isin(variable[:], values).all(), name, "3.5: a value without a meaning")
    return found


class ResultsFile(program.ProgramTest):
    """The small study is run once for all tests, which only read its folder `out`."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="thompson-test-")))
        (folder / "small.yaml").write_text(program.SMALL_STUDY)
        cls.out, start = folder / "out", time.monotonic()
        cls.ran = program.thompson("run", folder / "small.yaml", "-o", cls.out)
        cls.waited = time.monotonic() - start
        assert cls.ran.returncode == 0, cls.ran.stderr

    def test_contract(self):
        with xr.open_dataset(f"{self.out}/results.nc") as data:
            self.assertEqual(data["regret"].dims, ("setting", "policy", "run", "round"))
            self.assertEqual(list(data["policy"].values.astype(str)), "ts tuned_ts mixts diffts dps linucb egreedy random oracle".split())
            self.assertEqual(list(data["problem_theta"].values.astype(str)), ["cross", "rays"])
            self.assertEqual(data["regret"].sel(policy="diffts").shape, (2, 40, 20))
            np.testing.assert_array_equal(data["run"], np.arange(40))
            np.testing.assert_array_equal(data["round"], np.arange(1, 21))
            np.testing.assert_array_equal(data["replicate"], np.repeat([0, 1], 20))
            regret = data["regret"].values
            self.assertTrue(np.all(np.diff(regret, axis=-1) >= 0))
            np.testing.assert_array_equal(regret[:, -1], 0)  # the oracle
            np.testing.assert_allclose(data["regret_mean"], regret.mean(2), rtol=1e-12)
            np.testing.assert_allclose(data["regret_se"], regret.std(2, ddof=1) / np.sqrt(40), rtol=1e-9, atol=1e-13)
            difference = regret - regret[:, :1]
            np.testing.assert_allclose(data["regret_diff_mean"], difference.mean(2), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(data["regret_diff_se"], difference.std(2, ddof=1) / np.sqrt(40), rtol=1e-9, atol=1e-13)
            parts = regret.reshape(2, 9, 2, 20, 20).mean(3)
            np.testing.assert_allclose(data["regret_se_replicate"], parts.std(2, ddof=1) / np.sqrt(2), rtol=1e-9, atol=1e-13)
            parts = difference.reshape(2, 9, 2, 20, 20).mean(3)
            np.testing.assert_allclose(data["regret_diff_se_replicate"], parts.std(2, ddof=1) / np.sqrt(2), rtol=1e-9, atol=1e-13)
            np.testing.assert_array_equal(data["quantile"], [0.5, 0.9, 0.95, 0.99, 1])
            self.assertEqual(data["regret_quantile"].dims, ("setting", "policy", "quantile", "round"))
            np.testing.assert_allclose(data["regret_quantile"], np.moveaxis(np.quantile(regret, data["quantile"], axis=2), 0, 2), rtol=1e-12, atol=1e-12)
            self.assertTrue((data["regret_n"] == 40).all() and (data["status"] == 1).all())
            self.assertTrue((data["seconds"] > 0).all())
            self.assertTrue(np.isfinite(data["seconds_train"].sel(policy="diffts")).all())
            self.assertTrue(np.isnan(data["seconds_train"].sel(policy="linucb")).all())

    def test_conventions(self):
        """CF, and our own requirements: every attribute of provenance, NaN as fill value, char variables that xarray can read."""
        for name in ("results.nc", "prior_samples.nc"):
            with netCDF4.Dataset(f"{self.out}/{name}") as file:
                self.assertEqual(cf_violations(file), [])
        with netCDF4.Dataset(f"{self.out}/results.nc") as file:
            for attribute in ("Conventions", "title", "source", "history", "references", "config", "config_sha256", "seed", "hostname", "mpi_ranks",
                              "mpi_library", "compiler", "compiler_flags", "blas"):
                self.assertIn(attribute, file.ncattrs())
            self.assertEqual(file.Conventions, "CF-1.10")
            for part in ("diffts: ", "Kveton, Oreshkin", "linucb: "):
                self.assertIn(part, file.references)
            for paper in ("Bruna, Han", "Clavier, Huix"):  # none of their methods ran
                self.assertNotIn(paper, file.references)
            self.assertEqual(file["status"].flag_meanings, "not_run ok failed")
            self.assertNotIn("_FillValue", file["status"].ncattrs())
            for name, variable in file.variables.items():
                self.assertIn("long_name", variable.ncattrs(), name)
                if variable.dtype.kind == "f" and variable.dimensions != (name,):
                    self.assertTrue(np.isnan(variable._FillValue), name)
                if variable.dtype.kind == "S":
                    self.assertEqual(variable._Encoding, "utf-8")
            for curve in ("regret_mean", "regret_diff_mean"):
                self.assertTrue(file[curve].cell_methods and file[curve].ancillary_variables)

    def test_swept_keys_are_coordinates(self):
        """xarray shows them as such, keeps them in a selection, and selects by them."""
        with xr.open_dataset(f"{self.out}/results.nc") as data:
            self.assertEqual(set(data.coords), {"setting", "policy", "run", "round", "quantile", "replicate", "problem_theta"})
            one = data["regret_mean"].sel(policy="diffts").swap_dims(setting="problem_theta").sel(problem_theta="rays")
            np.testing.assert_array_equal(one, data["regret_mean"].values[1, 3])
            self.assertEqual(str(one["setting"].values), "problem.theta=rays")
            self.assertEqual(data["regret"].groupby("replicate").mean("run").sizes["replicate"], 2)
            data.to_netcdf(self.path("again.nc"))
        with netCDF4.Dataset(self.path("again.nc")) as file:
            self.assertEqual(set(file["regret"].coordinates.split()), {"setting", "policy", "replicate", "problem_theta"})

    def test_rules_can_be_broken(self):
        """The checker of the test above finds what it looks for."""
        with netCDF4.Dataset(self.path("broken.nc"), "w") as file:
            file.createDimension("run", 3)
            file.createVariable("run", "f8", ("run",))[:] = [1, 3, 2]
            file["run"].setncatts({"long_name": "run", "units": "furlong"})
            bad = file.createVariable("a-b", "f8", (), fill_value=np.nan)
            bad.setncatts({"standard_name": "regret", "cell_methods": "run: standard_error", "ancillary_variables": "nobody"})
            flags = file.createVariable("status", "i1", ("run",))
            flags.setncatts({"flag_values": np.arange(2, dtype="i2"), "flag_meanings": "one"})
            flags[:] = [0, 1, 7]
            file.createDimension("letter", 1)
            file.createVariable("label", "S1", ("run", "letter")).long_name = "label"
            text = " ".join(cf_violations(file))
        for part in ("2.6.1", "2.3", "no long_name", "no such standard name", "run: 3.1", "a-b: 3.1", "monotonic", "run is no dimension",
                     "standard_error is no cell method", "nobody", "3.5: flags", "3.5: a value", "status: 6.1"):
            self.assertIn(part, text)

    def test_wall_clock_time(self):
        """seconds_wall is the time of the whole job: at least the time of the runs on one rank, at most the time that this test waited."""
        with xr.open_dataset(f"{self.out}/results.nc") as data:
            self.assertTrue(float(data["seconds"].sum()) < float(data["seconds_wall"]) < self.waited)

    def test_where_to_look_next(self):
        """The end of a run: the table, and the commands that draw the figure and the report, with the script that the study names."""
        out, lines = self.out, self.ran.stdout.splitlines()
        self.assertIn("difference: paired with the first policy, same theta*, arms and noise", lines)
        self.assertIn("se: standard error over runs, or over the means of replicates where that is larger", lines)
        with xr.open_dataset(f"{out}/results.nc") as data:
            printed = [float(line.split()[2]) for line in lines if line.startswith("  tuned_ts")]
            larger = np.fmax(data["regret_se"], data["regret_se_replicate"]).sel(policy="tuned_ts")[:, -1]
            np.testing.assert_allclose(printed, larger, rtol=0.051)   # two digits
        self.assertEqual(lines[-3:], [f"results: {out}/results.nc", f"figure:  analysis/figures/figure_diffts_2.py {out}", f"report:  analysis/tools/report.py {out}"])
        named = self.write("named.yaml", program.SMALL_STUDY + "figure: ablation.py --metric seconds\n")
        out = self.path("named")
        lines = self.succeed("run", named, "-o", out, "--set", "policies=[oracle, random]").stdout.splitlines()
        self.assertEqual(lines[-2], f"figure:  analysis/figures/ablation.py --metric seconds {out}")

    def test_figure_suits_the_study(self):
        """A panel for each of nine settings is too many, settings of a zip or a design are no panels, and one sample size is no curve."""
        swept = self.write("swept.yaml", f"{{name: swept, study: bandit, runs: 2, problem: {{arms: 3, rounds: 2}}, policies: [ts], sweep: {{problem.noise: {list(range(1, 10))}}}}}")
        inverse = self.write("inverse.yaml", "{name: inverse, study: posterior, runs: 2, draws: 20, problem: {family: inverse, theta: gm_four, arms: 2, sample_sizes: arms}, "
                             "policies: [mixts], prior: {train_samples: 100}, metrics: [emd]}")
        both = "{name: both, study: posterior, runs: 2, draws: 20, problem: {theta: gm_four, sample_sizes: [2, 5]}, policies: [mixts], prior: {train_samples: 100}}"
        few = "{name: few, study: bandit, runs: 2, problem: {arms: 3, rounds: 2}, policies: [random], sweep: {%s}}"
        grid = few % "problem.noise: [1, 2], problem.arms: [2, 3]"
        zipped = few % "zip: true, problem.noise: [1, 2], problem.arms: [2, 3]"
        points = few % "problem.noise: {from: 1, to: 2}"
        for study, figure in ((swept, "figures/ablation.py"), (self.write("grid.yaml", grid), "figures/figure_diffts_2.py"), (self.write("zip.yaml", zipped), "figures/ablation.py"),
                              (self.write("design.yaml", points.replace("runs: 2", "runs: 2, design: {kind: sobol, points: 4}")), "figures/ablation.py"), (inverse, "tools/table.py"), (self.write("both.yaml", both), "figures/figure_diffts_7.py")):
            out = self.path(f"drawn-{os.path.basename(study)}")
            lines = self.succeed("run", study, "-o", out).stdout.splitlines()
            self.assertIn(f"figure:  analysis/{figure} {out}", lines)

    def test_noise_of_rewards(self):
        """What problem.noise: auto stands for is in the results: 0.05 on the wheel, and nothing for clicks."""
        study = self.write("noise.yaml", "{name: noise, study: bandit, runs: 2, problem: {arms: 5, rounds: 2}, policies: [random]}")
        for sets, expected in ((["problem.family=wheel", "problem.noise=[auto, 2]"], [0.05, 2]), (["likelihood=logistic"], [np.nan]), ([], [1])):
            out = self.path("noise")
            self.succeed("run", study, "-o", out, "--overwrite", *(word for one in sets for word in ("--set", one)))
            with xr.open_dataset(f"{out}/results.nc") as data:
                np.testing.assert_array_equal(data["reward_noise"], expected)

    def test_fallbacks_are_shown(self):
        """A line for each policy and setting that has any, with the numbers of the file, and where they are explained; otherwise nothing."""
        study = self.write("precise.yaml", "name: precise\nstudy: bandit\nruns: 8\nproblem: {arms: 10, rounds: 30}\npolicies: [ts, localised]\n"
                           "prior: {train_samples: 500, training_steps: 60}\nsweep:\n  problem.noise: [0.02, 2]\n")
        shown = self.succeed("run", study, "-o", self.path("precise")).stdout
        self.assertEqual(self.succeed("reduce", self.path("precise")).stdout.count("numerical fallbacks"), 1)
        with xr.open_dataset(self.path("precise/results.nc")) as data:
            counts = data["fallbacks"].values
        self.assertGreater(counts[0, 1].sum(), 0)
        self.assertEqual(counts.sum(), counts[0, 1].sum())
        hit = (counts[0, 1] > 0).sum()
        self.assertIn(f"problem.noise=0.02, localised: {counts[0, 1].sum()} in {hit} of 8 runs ({100 * hit / 8:.2g}%)", shown)
        self.assertEqual(shown.count(" of 8 runs ("), 1)
        with open(os.path.join(program.SOURCE, "docs", "guide.md"), encoding="utf-8") as page:
            self.assertIn("\n## Numerical fallbacks\n", page.read())

    def test_resolved_configuration_is_a_study(self):
        with netCDF4.Dataset(f"{self.out}/results.nc") as file:
            resolved, digest = file.config, file.config_sha256
        plan = json.loads(self.succeed("plan", self.write("again.yaml", resolved), "--json").stdout)
        self.assertEqual(plan["config_sha256"], digest)
        self.assertEqual(plan["tasks"], 2 * 9 * 6)  # two replicates of 20 runs in blocks of 8

    def test_status_before_the_first_task(self):
        """A setting that has not begun does not count as ended, whatever the others did."""
        sets = ("--set", "policies=[oracle, random]", "--set", "runs=16")
        self.succeed("run", self.study, "-o", self.path("begun"), *sets)
        journals.remove(self.path("begun"), 2, *range(4, 8))  # tasks from 4 on belong to the second setting
        first, second = json.loads(self.succeed("status", self.path("begun"), "--json").stdout)["settings"]
        counts = ("tasks", "done", "failed", "left", "ended", "runs")
        self.assertEqual([first[name] for name in counts], [4, 3, 0, 1, False, {"oracle": 16, "random": 8}])
        self.assertEqual([second[name] for name in counts], [4, 0, 0, 4, False, {"oracle": 0, "random": 0}])
        self.assertEqual(second["se"], {"oracle": None, "random": None})
        self.assertIn("problem.theta=rays: not started", self.succeed("status", self.path("begun")).stdout)
        self.succeed("run", self.study, "-o", self.path("begun"), *sets, "--resume")
        self.assertTrue(all(setting["ended"] for setting in json.loads(self.succeed("status", self.path("begun"), "--json").stdout)["settings"]))

    def test_status_and_list(self):
        status = json.loads(self.succeed("status", self.out, "--json").stdout)
        self.assertEqual((status["tasks"], status["done"], status["failed"], status["left"]), (108, 108, 0, 0))
        policies = json.loads(self.succeed("list", "policies", "--json").stdout)
        self.assertLessEqual({"ts", "tuned_ts", "mixts", "diffts", "dps", "linucb", "egreedy", "random", "oracle"}, {p["name"] for p in policies})
        for family in ("policies", "samplers", "rules", "priors", "likelihoods", "problems", "studies"):
            for entry in json.loads(self.succeed("list", family, "--json").stdout):
                self.assertTrue(entry["name"] and entry["summary"] and entry["reference"])


class TimeLimit(program.ProgramTest):
    def test_stops_and_resumes(self):
        for ranks in (0, 2):
            process = program.thompson("run", self.study, "-o", self.path(f"out{ranks}"), "--time-limit", "0.001", ranks=ranks)
            self.assertEqual(process.returncode, 75, process.stderr)
            self.assertIn("--resume", process.stderr)
        self.succeed("run", self.study, "-o", self.path("out2"), "--resume")


SLOW_STUDY = """
name: slow
study: bandit
seed: 7
runs: 8
block: 4
problem: {theta: cross, arms: 10, rounds: 20}
policies: [ts, {name: python, module: slow, callable: sample, label: slow}, linucb]
"""


# Each task takes 2 s, on a machine of any speed, while the other policies take a thousandth of that.
SLOW_SAMPLER = """
import time
import numpy as np


def sample(x, y, rng, about):
    time.sleep(0.1)
    return np.ones((len(x), 2))
"""


class FailingTask(program.ProgramTest):
    def test_recorded_and_tried_again(self):
        """Only tasks that do not end within their time fail: status 5, the others are in the results, and --resume completes them."""
        study = self.write("slow.yaml", SLOW_STUDY)
        self.write("slow.py", SLOW_SAMPLER)
        environment = {"PYTHONPATH": self.folder, "THOMPSON_PYTHON": sys.executable}
        self.succeed("run", study, "-o", self.path("good"), environment=environment)
        for ranks in (0, 2):
            sentence = self.fail_with(5, "tasks failed", "run", study, "-o", self.path(f"out{ranks}"), "--task-timeout", "0.5",
                                      ranks=ranks, environment=environment)
            self.assertIn("--resume", sentence)
        with xr.open_dataset(self.path("out0/results.nc")) as data:
            for policy, status in (("ts", 1), ("slow", 2), ("linucb", 1)):
                self.assertTrue((data["status"].sel(policy=policy) == status).all())
                self.assertEqual(int(data["regret_n"].sel(policy=policy)[0, -1]), 8 if status == 1 else 0)
            self.assertTrue(np.isnan(data["regret"].sel(policy="slow")).all())
        self.assert_same_results(self.path("out0/results.nc"), self.path("out2/results.nc"))
        status = json.loads(self.succeed("status", self.path("out0"), "--json").stdout)
        self.assertEqual((status["done"], status["failed"]), (4, 2))
        self.fail_with(5, "failed, the rest were not started", "run", study, "-o", self.path("out0"), "--resume", "--fail-fast", "--task-timeout", "0.5", environment=environment)
        self.succeed("run", study, "-o", self.path("out0"), "--resume", environment=environment)
        self.assert_same_results(self.path("good/results.nc"), self.path("out0/results.nc"))


class OwnData(program.ProgramTest):
    """The user's own arrays: a prior and a history for `sample`; samples of theta for `train` and for a study."""

    def test_sample_against_the_closed_form(self):
        """Gaussian prior, Gaussian likelihood: mean and covariance of 40 000 draws compared with dense algebra (5 standard errors)."""
        chance = np.random.default_rng(3)
        mean, covariance, noise, n = np.array([1.0, -2.0, 0.5]), np.diag([1.0, 4.0, 0.25]) + 0.1, 0.7, 40000
        write_prior(self.path("prior.nc"), "gaussian", [1], [mean], [covariance])
        x = chance.normal(size=(12, 3))
        y = x @ [0.5, -1, 1] + noise * chance.normal(size=12)
        self.write("history.csv", "x1,x2,x3,y\n" + "".join(",".join(map(repr, map(float, [*row, value]))) + "\n" for row, value in zip(x, y)))
        xr.Dataset({"x": (("observation", "dim"), x), "y": ("observation", y)}).to_netcdf(self.path("history.nc"))
        precision = np.linalg.inv(covariance) + x.T @ x / noise**2
        exact = np.linalg.solve(precision, np.linalg.solve(covariance, mean) + x.T @ y / noise**2)
        sd = np.sqrt(np.diag(np.linalg.inv(precision)))
        draws = {}
        for history in ("history.csv", "history.nc"):
            self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path(history), "--sampler", "ts", "-n", n, "--noise", noise,
                         "--seed", 5, "-o", self.path("draws.nc"))
            with xr.open_dataset(self.path("draws.nc")) as data:
                self.assertEqual(data["theta"].dims, ("draw", "dim"))
                self.assertEqual(data.attrs["sampler"], "ts")
                draws[history] = data["theta"].values
        np.testing.assert_array_equal(draws["history.csv"], draws["history.nc"])
        np.testing.assert_array_less(abs(draws["history.csv"].mean(0) - exact), 5 * sd / np.sqrt(n))
        np.testing.assert_allclose(np.cov(draws["history.csv"].T), np.linalg.inv(precision), atol=5 * np.sqrt(2) * sd.max() ** 2 / np.sqrt(n))

    def test_empty_history_gives_the_prior(self):
        write_prior(self.path("prior.nc"), "mixture", [0.25, 0.75], [[-4, 0], [4, 0]], [np.eye(2), np.eye(2)])
        self.write("history.csv", "x1,x2,y\n")
        self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "mixts", "-n", 20000, "-o",
                     self.path("draws.nc"))
        with xr.open_dataset(self.path("draws.nc")) as data:
            share = float((data["theta"][:, 0] > 0).mean())
        self.assertLess(abs(share - 0.75), 5 * np.sqrt(0.75 * 0.25 / 20000))

    def test_draws_that_cannot_have_reached_their_target(self):
        """A prior with correlation 1 - 1e-6 alone is not a problem; together with evidence of 1e8 it is more than ten steps of Langevin can follow, which
        the program reports, with a correct number, and counts."""
        correlation = 1 - 1e-6
        covariance = np.array([[1, correlation], [correlation, 1]])
        phi, y = np.array([[1, 0.5], [-0.3, 1], [0.5, 0.1]]), [0.7, 0.2, 0.4]
        write_prior(self.path("prior.nc"), "gaussian", [1], [[0, 0]], [covariance])
        self.write("history.csv", "x1,x2,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(phi, y)))
        for sampler, noise, reached in ("lmc", 1, True), ("lmc", 1e-4, False), ("mala", 1e-4, True), ("vits1", 1e-4, False), ("ts", 1e-4, True):
            text = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", sampler, "--noise",
                                noise, "-n", 2000, "-o", self.path("draws.nc")).stdout
            with netCDF4.Dataset(self.path("draws.nc")) as file:
                draws, fallbacks = np.asarray(file["theta"][:]), file.fallbacks
            root = np.linalg.cholesky(np.linalg.inv(covariance) + phi.T @ phi / noise**2)
            widest = np.linalg.svd((draws - draws.mean(axis=0)) @ root, compute_uv=False)[0] / np.sqrt(2000)
            self.assertEqual(fallbacks == 0, reached, sampler)
            complaint = re.search("the draws cannot have reached the target: in one direction .* (\\S+) times that of the posterior", text)
            self.assertEqual(complaint is None, reached, text)
            if not reached:
                self.assertLess(abs(float(complaint[1]) / widest - 1), 0.01)

    def test_evidence_beyond_the_digits(self):
        """Noise of 1e-9: draws of `localised` are those of the Gaussian, from formulas, and the program says so."""
        write_prior(self.path("prior.nc"), "gaussian", [1], [[1, 0]], [0.1 * np.eye(2)])
        self.write("history.csv", "x1,x2,y\n" + "1,2,1\n" * 2)
        text = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "localised", "--noise", 1e-9,
                            "-n", 2000, "-o", self.path("draws.nc")).stdout
        self.assertIn("beyond the precision of this sampler: the draws are exact ones", text)
        with netCDF4.Dataset(self.path("draws.nc")) as file:
            spread = np.asarray(file["theta"][:]).std(axis=0)
        np.testing.assert_allclose(spread, [0.2 ** 0.5 * 2 / 10 ** 0.5, 0.2 ** 0.5 / 10 ** 0.5], rtol=0.08)  # 5 standard errors

    def test_train_and_sample(self):
        """A diffusion prior from the user's samples: the same bytes on 1, 2 and 3 ranks, and unconditional draws with their mean."""
        chance = np.random.default_rng(1)
        theta = np.concatenate([chance.normal([5, 0, 0], 0.5, (300, 3)), chance.normal([-5, 0, 1], 0.5, (300, 3))])
        np.savetxt(self.path("theta.csv"), theta, delimiter=",")
        options = ["--option", "stages=40", "--option", "alpha=0.92", "--option", "training_steps=300"]
        for ranks in (0, 1, 2, 3):
            self.succeed("train", "--theta", self.path("theta.csv"), "-o", self.path(f"prior{ranks}.nc"), "--seed", 4, *options, ranks=ranks)
        with netCDF4.Dataset(self.path("prior0.nc")) as one:
            self.assertEqual(one.prior, "diffusion")
            for ranks in (1, 2, 3):
                with netCDF4.Dataset(self.path(f"prior{ranks}.nc")) as other:
                    self.assertEqual(list(one.variables), list(other.variables))
                    for name in one.variables:
                        self.assertEqual(one[name][...].tobytes(), other[name][...].tobytes(), name)
        self.write("history.csv", "x1,x2,x3,y\n")
        self.succeed("sample", "--prior", self.path("prior0.nc"), "--data", self.path("history.csv"), "--sampler", "diffts", "-n", 4000, "-o",
                     self.path("draws.nc"))
        with xr.open_dataset(self.path("draws.nc")) as data:
            draws = data["theta"].values
        self.assertLess(abs((draws[:, 0] > 0).mean() - 0.5), 0.1)       # both modes, as far as 300 steps of training allow
        self.assertGreater((abs(abs(draws[:, 0]) - 5) < 2.5).mean(), 0.9)

    def test_denoiser(self):
        """A denoiser from the user's samples: the same bytes on 1 and 2 ranks, draws from both modes, from one of them after an observation, and a
        sentence if the prior has no denoiser."""
        chance = np.random.default_rng(3)
        theta = np.concatenate([chance.normal([5, 0], 0.5, (300, 2)), chance.normal([-5, 0], 0.5, (300, 2))])
        np.savetxt(self.path("theta.csv"), theta, delimiter=",")
        for family, steps in (("denoiser", 300), ("diffusion", 10)):
            for ranks in (0, 2):
                result = self.succeed("train", "--theta", self.path("theta.csv"), "--family", family, "-o", self.path(f"{family}{ranks}.nc"),
                                      "--seed", 4, "--option", f"training_steps={steps}", ranks=ranks)
                self.assertIn(f"{family} prior in 2 dimensions from 600 samples", result.stdout)
        with netCDF4.Dataset(self.path("denoiser0.nc")) as one, netCDF4.Dataset(self.path("denoiser2.nc")) as other:
            self.assertEqual(one.prior, "denoiser")
            self.assertEqual(one["check_count"][...].sum(), 32768)
            for name in one.variables:
                self.assertEqual(one[name][...].tobytes(), other[name][...].tobytes(), name)
        for observation, share in (("", 0.5), ("1,0,5\n", 1)):
            self.write("history.csv", "x1,x2,y\n" + observation)
            self.succeed("sample", "--prior", self.path("denoiser0.nc"), "--data", self.path("history.csv"), "--sampler", "localised", "-n", 4000,
                         "-o", self.path("draws.nc"))
            with xr.open_dataset(self.path("draws.nc")) as data:
                draws = data["theta"].values
            self.assertLess(abs((draws[:, 0] > 0).mean() - share), 0.06)
            self.assertGreater((abs(abs(draws[:, 0]) - 5) < 2).mean(), 0.97)
        self.fail_with(3, "needs a prior with a denoiser", "sample", "--prior", self.path("diffusion0.nc"), "--data", self.path("history.csv"),
                       "--sampler", "localised")

    def test_theta_from_a_file(self):
        chance = np.random.default_rng(2)
        xr.Dataset({"theta": (("sample", "dim"), chance.normal(size=(400, 5)))}).to_netcdf(self.path("theta.nc"))
        self.succeed("run", self.study, "-o", self.path("out"), "--set", "problem.theta=file", "--set", f"problem.file={self.path('theta.nc')}",
                     "--set", "prior.train_samples=all", ranks=2)
        with xr.open_dataset(self.path("out/results.nc")) as data:
            self.assertTrue((data["status"] == 1).all())
        with xr.open_dataset(self.path("out/prior_samples.nc")) as data:
            self.assertEqual(data.sizes["dim"], 5)


class Memory(program.ProgramTest):
    def peak_of(self, *arguments):
        """Peak memory of the program in MB."""
        pid = os.fork()
        if pid == 0:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.execv(program.PROGRAM, [program.PROGRAM, *arguments])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(status, 0)
        return usage.ru_maxrss / 1024

    def peak(self, *settings):
        """Peak memory of a run in MB."""
        return self.peak_of("run", self.study, "-o", self.path("out"), "--overwrite", "--progress", "none", "--set", "prior.replicates=1",
                            "--set", "problem.theta=cross", "--set", "policies=[diffts]", *sum((["--set", s] for s in settings), []))

    @unittest.skipIf(program.SANITIZED, "sanitizers keep freed memory")
    def test_one_set_of_matrices_for_all_draws(self):
        """A posterior in 256 dimensions: matrices, of half a megabyte each, exist once and not for each of 100 draws or 999 simulated histories."""
        d = 256
        write_prior(self.path("prior.nc"), "gaussian", [1], np.zeros((1, d)), [np.eye(d) + 0.5])
        chance = np.random.default_rng(1)
        np.savetxt(self.path("history.csv"), chance.normal(size=(20, d + 1)), delimiter=",", header=",".join(f"x{i + 1}" for i in range(d)) + ",y", comments="")
        peak = self.peak_of("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "mixts", "-n", "100", "-o", self.path("draws.nc"))
        self.assertLess(peak, 100)

    @unittest.skipIf(program.SANITIZED, "sanitizers keep freed memory")
    def test_flat_in_rounds_and_runs(self):
        """Apart from the stored curves (8 bytes per round and run, for two policies at once in the reducer) memory does not grow: 3 MB of slack for the
        allocator and NetCDF's buffers."""
        small = self.peak("runs=64", "problem.rounds=50")
        longer = self.peak("runs=64", "problem.rounds=2000")
        more = self.peak("runs=2048", "problem.rounds=50")
        curves = 2 * 8 * 64 * 1950 / 2**20
        self.assertLess(longer - small, 2 * curves + 3)
        self.assertLess(more - small, 2 * 2 * 8 * 1984 * 50 / 2**20 + 3)


if __name__ == "__main__":
    program.main()
