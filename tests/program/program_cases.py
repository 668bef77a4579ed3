"""Files of cases: draws against closed forms, references and shares of clicks, any ranks and dimensions; damaged files are refused, and the message says where."""

import importlib.util
import pathlib

import netCDF4
import numpy as np

import program

STUDY = """
name: cases
study: posterior
problem: {family: cases, file: %s}
runs: auto
draws: 400
projections: 20
metrics: [sliced_wasserstein]
policies: [exact, mixts, localised]
"""
SHAPES = {"weight": ("component",), "mean": ("component", "dim"), "variance": ("component",), "covariance": ("component", "dim", "dim2"), "x": ("observation", "dim"),
          "y": ("observation",), "noise": (), "exposure": (), "theta": ("dim",), "reference": ("draw", "dim")}


def make_cases():
    """data/make_cases.py as a module."""
    path = pathlib.Path(program.SOURCE, "data", "make_cases.py")
    spec = importlib.util.spec_from_file_location("make_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gaussian_case(rng, d, rows, padded):
    """One Gaussian and one observation less than `padded`, which exact posteriors are known of."""
    x, y = np.full((padded, d), np.nan), np.full(padded, np.nan)
    x[:rows], y[:rows] = rng.normal(size=(rows, d)), rng.normal(size=rows)
    return {"weight": [1, 0], "mean": np.stack([rng.normal(size=d), np.full(d, np.nan)]), "variance": [0.5, np.nan], "x": x, "y": y, "noise": 0.4}


class Cases(program.ProgramTest):
    def write_cases(self, name, cases, likelihood="gaussian", **changes):
        """A file of cases; changes replace variables, or leave them out (None)."""
        with netCDF4.Dataset(self.path(name), "w") as file:
            file.likelihood = likelihood
            file.createDimension("case", len(cases))
            variables = {key: np.stack([np.asarray(case[key], float) for case in cases]) for key in cases[0]}
            for key, value in {**variables, **changes}.items():
                if value is None:
                    continue
                for dimension, size in zip(SHAPES[key], value.shape[1:]):
                    if dimension not in file.dimensions:
                        file.createDimension(dimension, size)
                file.createVariable(key, "f8", ("case", *SHAPES[key]))[:] = value
        return self.path(name)

    def results(self, folder, path, *changes, **options):
        self.succeed("run", self.write("study.yaml", STUDY % path), "-o", self.path(folder), "--progress", "none", *changes, **options)
        with netCDF4.Dataset(self.path(f"{folder}/results.nc")) as file:
            self.assertTrue((file["status"][...] == 1).all())
            return {name: np.ma.filled(variable[...], np.nan) for name, variable in file.variables.items() if variable.dtype.kind in "fi" and "seconds" not in name}

    def test_closed_forms(self):
        """Mean error and ratio of deviations against a reference that NumPy draws from the closed form; padding and numbers of observations differ."""
        rng = np.random.default_rng(5)
        cases = [gaussian_case(rng, 3, rows, 4) for rows in (4, 2, 1)]
        for case in cases:
            rows = int(np.isfinite(case["y"]).sum())
            x, y = case["x"][:rows] / 0.4, case["y"][:rows] / 0.4
            covariance = np.linalg.inv(x.T @ x + np.eye(3) / 0.5)
            case["reference"] = rng.multivariate_normal(covariance @ (x.T @ y + case["mean"][0] / 0.5), covariance, size=4000)
        found = self.results("closed", self.write_cases("closed.nc", cases), "--set", "draws=2000", "--set", "metrics=[moments,sd_ratio,sliced_wasserstein]",
                             "--set", "policies=[exact,mixts,ts,localised]")
        self.assertEqual(list(found["sample_size"]), [4])
        # Means of 2 000 and 2 000 draws in 3 dimensions of deviation below 0.71: three standard errors of their distance are 0.071 sqrt(3).
        self.assertLess(found["mean_error"].max(), 0.12)
        np.testing.assert_allclose(found["sd_ratio"], 1, atol=0.06)
        self.assertLess((found["sliced_wasserstein"] / found["sliced_wasserstein_floor"]).mean(), 1.5)

    def test_dimensions_and_ranks(self):
        """A sweep over files of different dimensions, one of which is too large for matrices, gives the same bytes on one and on three ranks; `exact` is at the floor."""
        module = make_cases()
        files = []
        for d in (8, 300):
            files.append(self.path(f"mcgdiff_{d}.nc"))
            module.main(["mcgdiff", "--dimension", str(d), "--observed", "1", "--cases", "3", "-o", files[-1]])
        changes = ("--set", f"problem.file=[{files[0]},{files[1]}]", "--set", "policies=[exact,localised,twisted]", "--set", "prior.stages=40",
                   "--set", "prior.schedule=log_snr", "--set", "prior.first_snr=1e5", "--set", "prior.last_snr=1e-3")
        one, three = (self.results(f"ranks{ranks}", files[0], *changes, ranks=ranks) for ranks in (1, 3))
        for name, values in one.items():
            self.assertEqual(values.tobytes(), three[name].tobytes(), name)
        self.assertEqual(one["sliced_wasserstein"].shape, (2, 3, 3, 1))
        # 400 and 400 draws: the ratio of two distances scatters by about a third in a case, and by a seventh in the mean of six.
        ratio = one["sliced_wasserstein"] / one["sliced_wasserstein_floor"]
        self.assertLess(ratio[:, :2].mean(axis=(0, 2)).max(), 1.6)
        # Twisted particles get the weights of modes right to a few percent; samplers that guide one path each are twenty times above the floor here.
        self.assertLess(ratio[:, 2].mean(axis=(1, 2)).max(), 3)
        self.assertTrue((one["distinct"][:, 2] > 0.2).all() and (one["distinct"][:, 2] <= 1).all())
        self.assertTrue(np.isfinite(one["log_evidence"][:, 2]).all())

    def test_evidence(self):
        """The cloud's log evidence against the closed form, within five of its standard errors."""
        module = make_cases()
        path = self.path("evidence.nc")
        module.main(["mcgdiff", "--dimension", "6", "--observed", "2", "--cases", "3", "-o", path])
        found = self.results("evidence", path, "--set", "policies=[twisted,diffts,mala]", "--set", "prior.stages=100", "--set", "prior.schedule=log_snr",
                             "--set", "prior.first_snr=1e5", "--set", "prior.last_snr=1e-4", "--set", "prior.standardise=true")
        # Per particle and stage D and a product for each of two observed and one random direction, 2 000 particles for 400 draws; at the end a Jacobian in
        # the four coordinates that are left, those and two in which the means differ. LaplaceDPS: one noise prediction in each stage. MALA: its steps, and the start.
        self.assertEqual([found["oracle_calls"][0, policy, 0, 0] for policy in range(3)], [100 * 5 * 4 + 1 + 4, 100, 201])
        with netCDF4.Dataset(path) as file:
            for case in range(3):
                weight, mean, x, y, noise = (np.asarray(file[name][case]) for name in ("weight", "mean", "x", "y", "noise"))
                covariance = x @ x.T + noise**2 * np.eye(2)
                off = y - mean @ x.T
                log_density = -0.5 * np.einsum("ki,ij,kj->k", off, np.linalg.inv(covariance), off) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
                truth = np.logaddexp.reduce(np.log(weight) + log_density)
                error = found["log_evidence"][0, 0, case, 0] - truth
                self.assertLess(abs(error), 5 * found["log_evidence_se"][0, 0, case, 0] + 0.02)

    def test_sample(self):
        """`thompson sample` draws from one cloud from 100 draws on, says how many draws are distinct, and has the log evidence of the closed form."""
        weight, mean, noise = np.array([0.3, 0.7]), np.array([[2.0, 0.0], [-1.0, 1.0]]), 0.5
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "mixture"
            for name in ("component", "dim", "dim2"):
                file.createDimension(name, 2)
            for name, dimensions, value in (("weight", 1, weight), ("mean", 2, mean), ("covariance", 3, np.stack([0.3 * np.eye(2), [[0.5, 0.2], [0.2, 0.4]]]))):
                file.createVariable(name, "f8", ("component", "dim", "dim2")[:dimensions])[:] = value
            covariance = np.asarray(file["covariance"][:])
        x, y = np.array([[1.0, 0.5], [0.2, -1.0]]), np.array([0.3, -0.4])
        self.write("history.csv", "x1,x2,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y)))
        for draws, cloud in ((3000, True), (99, False)):
            printed = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--noise", str(noise), "--sampler", "twisted",
                                   "-n", str(draws), "-o", self.path("draws.nc")).stdout
            self.assertEqual("of the draws are distinct" in printed, cloud, printed)
            self.assertEqual("log marginal likelihood" in printed, cloud, printed)
            if not cloud:
                continue
            spread = x @ covariance @ x.T + noise**2 * np.eye(2)
            off = y - mean @ x.T
            log_density = -0.5 * np.einsum("ki,kij,kj->k", off, np.linalg.inv(spread), off) - 0.5 * np.linalg.slogdet(2 * np.pi * spread)[1]
            with netCDF4.Dataset(self.path("draws.nc")) as file:
                self.assertAlmostEqual(file.log_marginal_likelihood, np.logaddexp.reduce(np.log(weight) + log_density), delta=5 * file.log_marginal_likelihood_error + 0.05)

    def test_shares_of_clicks(self):
        """Clicks and shares of clicks with the same sums x' y have the same posterior: draws of both are as close as two sets of draws."""
        rng = np.random.default_rng(7)
        x = np.repeat(rng.normal(size=(12, 2)), 4, axis=0)
        y = (rng.uniform(size=48) < 0.5).astype(float)
        case = {"weight": [1], "mean": np.zeros((1, 2)), "variance": [2], "x": x, "y": y, "reference": rng.normal(size=(800, 2))}
        shared = {**case, "y": np.repeat(y.reshape(12, 4).mean(axis=1), 4)}
        found = self.results("shares", self.write_cases("shares.nc", [case, shared], "logistic"), "--set", "policies=[mixts,localised,smc]", "--set", "metrics=[moments,sd_ratio]",
                             "--set", "draws=400", "--set", "reference_draws=400")
        for name in ("mean_error", "sd_ratio"):  # both against the same, arbitrary, reference
            np.testing.assert_allclose(found[name][0, :, 0], found[name][0, :, 1], atol=0.12)

    def test_refused(self):
        rng = np.random.default_rng(9)
        cases = [gaussian_case(rng, 2, rows, 3) for rows in (3, 2)]
        good = {key: np.stack([np.asarray(case[key], float) for case in cases]) for key in cases[0]}

        def changed(key, place, value):
            array = good[key].copy()
            array[place] = value
            return {key: array}

        covariance = np.broadcast_to(np.eye(2), (2, 2, 2, 2)).copy()
        covariance[1, 0] = [[1, 2], [2, 1]]
        skew = covariance.copy()
        skew[1, 0] = [[1, 0.5], [0.1, 1]]
        for number, (changes, sentence) in enumerate([
                (changed("weight", (1, 0), 0.5), "weights of case 1 (counted from 0) sum to 0.5"),
                (changed("weight", (0, 0), -0.1), "weight[0, 0] (counted from 0) is -0.1; it must be from 0 to 1"),
                (changed("mean", (1, 0, 1), np.nan), "mean[1, 0, 1] (counted from 0) is nan"),
                (changed("mean", (1, 0, 1), 1e50), "at most 1e+45 in size"),
                (changed("variance", (1, 0), 0), "variance[1, 0] (counted from 0) is 0; it must be above 0"),
                (changed("x", (0, 1, 0), np.inf), "x[0, 1, 0] (counted from 0) is inf"),
                (changed("y", (0, 1), np.nan), "y[0, 1] (counted from 0) is nan"),
                (changed("y", (1, slice(None)), np.nan) | changed("x", (1, slice(None)), np.nan), "case 1 (counted from 0) has no observations"),
                (changed("noise", 1, -1), "noise[1] (counted from 0) is -1; it must be above 0"),
                ({"exposure": np.ones(2)}, "exposure(case) has no meaning with likelihood gaussian"),
                ({"exposure": np.array([1.0, 0.0])}, "exposure[1] (counted from 0) is 0; it must be above 0"),
                ({"noise": None}, "noise(case) is needed with likelihood gaussian"),
                ({"variance": None}, "exactly one of variance(case, component)"),
                ({"covariance": covariance}, "exactly one of variance(case, component)"),
                ({"variance": None, "covariance": covariance}, "the covariance of case 1, component 0"),
                ({"variance": None, "covariance": skew}, "covariances are symmetric"),
                ({"weight": None}, "weight")]):
            path = self.write_cases(f"wrong{number}.nc", cases, **changes)
            refused = program.thompson("run", self.write("study.yaml", STUDY % path), "-o", self.path("no"))
            self.assertEqual(refused.returncode, 3, sentence)
            self.assertIn(f"wrong{number}.nc", refused.stderr)
            self.assertIn(sentence, refused.stderr)
        path = self.write_cases("good.nc", cases)
        study = self.write("study.yaml", STUDY % path)
        for change, sentence in (("runs=3", "runs: 3, but"), ("study=bandit", "is for study posterior"), ("prior.family=gaussian", "its own prior"), ("problem.noise=1", "leave it out"),
                                 ("likelihood=logistic", "leave the key out"), ("problem.dimension=3", "problem.dimension: 3"), ("metrics=[rank]", "has no theta(case, dim)"),
                                 ("problem.family=[cases,synthetic]", "studies of their own")):
            self.fail_with(3, sentence, "run", study, "-o", self.path("no"), "--set", change)
        clicks = self.write_cases("clicks.nc", cases, "logistic", noise=None, **changed("y", (0, 1), 1.5))
        self.fail_with(3, "with likelihood logistic it must be from 0 to 1", "run", study, "-o", self.path("no"), "--set", f"problem.file={clicks}")


if __name__ == "__main__":
    program.main()
