"""Priors from samples that do not vary in every direction, or vary at very different scales: constants and linear combinations are named and kept,
far clusters and outliers do not widen the others."""

import netCDF4
import numpy as np

import program
from program import ProgramTest

N = 300


class Degenerate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(1)
        self.z = self.rng.normal(size=(N, 3))

    def fit(self, theta, components="auto"):
        """Returns weights, means, covariances and what the program said."""
        np.savetxt(self.path("theta.csv"), theta, delimiter=",", fmt="%.17g")
        done = self.succeed("train", "--theta", self.path("theta.csv"), "--family", "mixture", "--option", f"components={components}",
                            "--option", "mixture_starts=4", "-o", self.path("prior.nc"))
        with netCDF4.Dataset(self.path("prior.nc")) as file:
            return (*(file[v][:].data for v in ("weight", "mean", "covariance")), done.stderr)

    def deviations(self, covariance):
        return np.sqrt(np.einsum("cii->ci", covariance))

    def test_fixed(self):
        """A constant, and a sum of other coordinates, take one component, have a width of 0 up to rounding, and are named; the others have
        the moments of the samples."""
        z = self.z
        for name, theta, width, said in (("seven", np.c_[z[:, 0], np.full(N, 7.0)], 1e-11, "coordinate 2 is constantly 7:"),
                                         ("zero", np.c_[np.zeros(N), z[:, 0]], 1e-11, "coordinate 1 is constantly 0:"),
                                         ("line", np.c_[z[:, 0], 2 * z[:, 0] + 1], 2e-6, "coordinate 2 is 2 times coordinate 1 plus 1:"),
                                         ("floats", np.c_[z[:, :2], z[:, 0] - z[:, 1]].astype("f4"), 2e-6,
                                          "coordinate 3 is 1 times coordinate 1 plus -1 times coordinate 2:"),
                                         ("equal", np.tile([7.0, -2e-5], (50, 1)), 1e-11, "coordinate 1 is constantly 7; coordinate 2 is constantly -2e-05:")):
            with self.subTest(name):
                weight, mean, covariance, stderr = self.fit(theta)
                self.assertEqual(len(weight), 1)
                self.assertIn(said, stderr)
                self.assertLess(np.linalg.eigvalsh(covariance[0])[0] ** 0.5, width)
                np.testing.assert_allclose(covariance[0], np.cov(theta.T, bias=True), rtol=0, atol=0.03)  # the prior counts as one of 300 samples
                np.testing.assert_allclose(mean[0], theta.mean(axis=0), atol=1e-6)
        self.fit(np.c_[z[:, 0], np.full(N, 7.0)])  # posterior: y - 7 x2 is a regression on x1
        x, y = self.rng.normal(size=(20, 2)), self.rng.normal(size=20)
        np.savetxt(self.path("data.csv"), np.c_[x, y], delimiter=",", header="x1,x2,y", comments="")
        variance = 1 / (1 / z[:, 0].var() + x[:, 0] @ x[:, 0])
        expected = variance * (z[:, 0].mean() / z[:, 0].var() + x[:, 0] @ (y - 7 * x[:, 1]))
        for sampler in ("ts", "exact", "localised", "twisted"):
            done = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("data.csv"), "--sampler", sampler, "-n", "1000", "-o", self.path("draws.nc"))
            self.assertIn("coordinate 2 is constantly 7", done.stderr)
            with netCDF4.Dataset(self.path("draws.nc")) as file:
                draws = file["theta"][:].data
            self.assertLess(abs(draws[:, 1] - 7).max(), 1e-10)
            self.assertLess(abs(draws[:, 0].mean() - expected), 6 * (variance / 1000) ** 0.5)  # weighted draws have larger errors than 1 000 independent ones

    def test_discrete(self):
        """Each value of a 0/1 column is one component, without a width."""
        theta = np.c_[self.z[:, 0], self.rng.random(N) < 0.4]
        weight, mean, covariance, _ = self.fit(theta)
        self.assertEqual(len(weight), 2)
        np.testing.assert_allclose(sorted(mean[:, 1]), [0, 1], atol=1e-6)
        self.assertLess(self.deviations(covariance)[:, 1].max(), 2e-6)
        self.assertAlmostEqual(weight[np.argmax(mean[:, 1])], theta[:, 1].mean(), delta=0.01)

    def test_samplers(self):
        """With a prior of a 0/1 column every sampler is right, compared with the two regressions in closed form, or says that it is not: mean within 0.4
        deviations, deviations within a factor of 1.4 (1 000 draws, and methods that are biased by design), values of 0 and 1 within 1e-3."""
        weight, mean, covariance, _ = self.fit(np.c_[self.z[:, 0], self.rng.random(N) < 0.4])
        x = self.rng.normal(size=(20, 2)) * 0.5
        y = x @ [0.5, 1] + self.rng.normal(size=20)
        np.savetxt(self.path("data.csv"), np.c_[x, y], delimiter=",", header="x1,x2,y", comments="")
        logs, means, variances = [], [], []
        for w, m, v in zip(weight, mean, covariance):
            spread, residual = x @ v @ x.T + np.eye(20), y - x @ m
            gain = v @ x.T @ np.linalg.inv(spread)
            logs.append(np.log(w) - 0.5 * (residual @ np.linalg.solve(spread, residual) + np.linalg.slogdet(spread)[1]))
            means.append(m + gain @ residual)
            variances.append(np.diag(v - gain @ x @ v))
        share, means = np.exp(logs - np.logaddexp.reduce(logs)), np.array(means)
        expected = share @ means
        deviation = np.sqrt(share @ (np.array(variances) + means**2) - expected**2)
        right = set()
        for sampler in ("mixts", "exact", "localised", "smc_tempered", "vts", "twisted", "joint", "diffts", "smc", "mala", "lmc", "rvga", "vits1", "vits2"):
            with self.subTest(sampler):
                done = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("data.csv"), "--sampler", sampler, "--noise", "1", "-n", "1000",
                                    "-o", self.path("draws.nc"))
                with netCDF4.Dataset(self.path("draws.nc")) as file:
                    draws = file["theta"][:].data
                ratio = draws.std(axis=0) / deviation
                fits = (abs(draws.mean(axis=0) - expected) < 0.4 * deviation).all() and (ratio < 1.4).all() and (ratio > 1 / 1.4).all()
                if fits and abs(draws[:, 1] - draws[:, 1].round()).max() < 1e-3:
                    right.add(sampler)
                self.assertTrue(sampler in right or "cannot have reached the target" in done.stdout)
        self.assertLessEqual({"mixts", "exact", "localised", "smc_tempered"}, right)

    def test_scales(self):
        """Clusters keep the deviations of their own samples, to a hundredth: far apart, of different widths, beside an outlier; so does a
        direction of width 1e-4."""
        first = self.rng.random(N) < 0.5
        outlier = self.z[:, :1].copy()
        outlier[0] = 9999
        for name, theta, part in (("far", self.z[:, :2] + 1e4 * first[:, None], first), ("outlier", outlier, np.arange(N) == 0),
                                  ("widths", self.z[:, :1] * np.where(first, 1, 0.1)[:, None] + 1e4 * first[:, None], first)):
            with self.subTest(name):
                weight, mean, covariance, _ = self.fit(theta, components=2)
                order = np.argsort(mean[:, 0])
                found = self.deviations(covariance)[order]
                np.testing.assert_allclose(found[0], theta[~part].std(axis=0), rtol=0.01)
                if name != "outlier":
                    np.testing.assert_allclose(found[1], theta[part].std(axis=0), rtol=0.01)
        said = "of 2 components have, in some coordinate, a standard deviation of only 1e-06 times that of all samples"
        for distance, narrow in ((1e4, False), (1e8, True)):
            stderr = self.fit(self.z[:, :1] + distance * first[:, None], components=2)[3]
            self.assertEqual(f"2 {said}" in stderr, narrow, stderr)
        theta = np.c_[self.z[:, 0], self.z[:, 0] + 1e-4 * self.z[:, 1]]
        covariance = self.fit(theta, components=1)[2][0]
        along = np.array([-1, 1])
        self.assertAlmostEqual((along @ covariance @ along) ** 0.5 / (theta @ along).std(), 1, delta=0.01)


if __name__ == "__main__":
    program.main()
