#!/usr/bin/env python3
"""Nonlinear worlds, exponential tomography and phase retrieval: samplers against quadrature at d = 2 and against importance sampling in NumPy on cases of
BIPSDA; the worlds themselves by ranks of theta*, on any ranks; who is refused.
"""

import importlib.util
import pathlib

import netCDF4
import numpy as np
from scipy import stats

import program

SOURCE = pathlib.Path(program.SOURCE)
WEIGHT, COVARIANCE = np.array([0.6, 0.4]), np.array([[[1.0, 0.3], [0.3, 0.8]], [[0.6, -0.2], [-0.2, 1.0]]])
DRAWS = 2000
PROBLEMS = 3


def make_cases():
    """data/make_cases.py as a module."""
    spec = importlib.util.spec_from_file_location("make_cases", SOURCE / "data/make_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_grid(mean, rng, log_likelihood):
    """Draws of the posterior of two Gaussians in the plane, and the log evidence, from a grid of 400 x 400 points."""
    axis, step = np.linspace(-7, 8, 400, retstep=True)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    off = points[:, None] - mean
    prior = (WEIGHT * np.exp(-0.5 * np.einsum("nci,cij,ncj->nc", off, np.linalg.inv(COVARIANCE), off)) / (2 * np.pi * np.sqrt(np.linalg.det(COVARIANCE)))).sum(axis=1)
    value = log_likelihood(points) + np.log(prior)
    density = np.exp(value - value.max())
    within = step * rng.uniform(-0.5, 0.5, size=(2 * DRAWS, 2))
    return points[rng.choice(len(points), size=2 * DRAWS, p=density / density.sum())] + within, value.max() + np.log(density.sum() * step**2)


class Nonlinear(program.ProgramTest):
    """What both have in common. FAMILY: name of the world; WORLD: its keys and exact policy; EXACT: policies that reach the posterior in the plane, with the
    bounds of means and deviations there; OF_CASES: likewise on the cases; PROPOSALS, EFFECTIVE: of the cases' references, and the least effective number.
    """

    def results(self, folder, file, policies):
        self.succeed("run", SOURCE / f"jobs/external/bipsda_{self.FAMILY}.yaml", "-o", self.path(folder), "--progress", "none", "--set", f"draws={DRAWS}",
                     "--set", "prior.stages=60", "--set", f"problem.file={self.path(file)}", "--set", f"policies={policies}")
        with netCDF4.Dataset(self.path(f"{folder}/results.nc")) as data:
            return {name: np.ma.filled(data[name][0, :, :, 0], np.nan) for name in ("marginal_mean_error", "marginal_sd_error", "log_evidence", "log_evidence_se")}

    def check_quadrature(self):
        """Differences of means of 2 000 and 2 000 draws scatter by 0.032, of deviations by 0.022, and the particles of two samplers are not all different."""
        rng = np.random.default_rng(3)
        made = [self.planar_case(rng) for _ in range(PROBLEMS)]
        make_cases().write(self.path("planar.nc"), [case for case, _ in made], likelihood=self.LIKELIHOOD, title="planar", references="")
        policies, of_means, of_deviations = self.EXACT
        found = self.results("planar", "planar.nc", policies)
        self.assertLess(found["marginal_mean_error"].max(), of_means)
        self.assertLess(found["marginal_sd_error"].max(), of_deviations)
        off = np.abs(found["log_evidence"] - [log_evidence for _, log_evidence in made])
        known = np.isfinite(off)
        self.assertEqual(known.sum(), 2 * PROBLEMS)  # of two samplers
        self.assertTrue((off < 5 * found["log_evidence_se"] + 0.02)[known].all(), off)

    def check_cases(self):
        """Four standard errors of such differences in the worst of 20 coordinates, and the bias that candidates leave."""
        module = make_cases()
        module.REFERENCES, module.PROPOSALS = 2 * DRAWS, self.PROPOSALS
        module.main([f"bipsda_{self.FAMILY}", "--cases", "2", "-o", self.path("cases.nc")])
        self.assertGreater(min(module.EFFECTIVE), self.EFFECTIVE)
        found = self.results("out", "cases.nc", self.OF_CASES)
        self.assertLess(found["marginal_mean_error"].max(), 0.13)
        self.assertLess(found["marginal_sd_error"].max(), 0.1)

    def world(self):
        return self.write("world.yaml", f"""
name: world
study: posterior
problem: {{family: {self.FAMILY}, theta: gaussian, sample_sizes: arms, {self.WORLD[0]}}}
runs: 300
block: 100
draws: 19
metrics: [rank]
prior: {{standardise: false}}
policies: [{{name: {self.WORLD[1]}, prior: exact}}]
""")

    def check_world(self):
        results = {}
        for ranks in (1, 2):
            self.succeed("run", self.world(), "-o", self.path(f"world{ranks}"), "--progress", "none", ranks=ranks)
            with netCDF4.Dataset(self.path(f"world{ranks}/results.nc")) as file:
                results[ranks] = np.asarray(file["rank"][0, 0, :, 0])
        self.assertEqual(results[1].tobytes(), results[2].tobytes())
        counts = np.histogram(results[1], bins=5, range=(-0.5, 19.5))[0]
        # Ranks of exact draws are uniform: chi-squared with 4 degrees of freedom is above 23.5 once in 10 000 times.
        self.assertLess((((counts - 60) ** 2) / 60).sum(), 23.5)

    def check_refused(self, *refusals):
        for change, message in (("metrics=[emd]", "need the exact posterior"), *refusals):
            self.fail_with(3, message, "run", self.world(), "-o", self.path("no"), "--set", change)


class Tomography(Nonlinear):
    FAMILY, LIKELIHOOD, WORLD = "tomography", "poisson", ("dimension: 3", "mixts")
    EXACT = "[mixts,mala,twisted,smc_tempered]", 0.17, 0.12  # five and a half standard errors in the worst of 24 numbers
    OF_CASES, PROPOSALS, EFFECTIVE = "[mixts,localised]", 40_000, 20_000

    @staticmethod
    def planar_case(rng):
        mean, exposure = np.array([[0.0, 0.0], [2.0, 1.0]]), 20.0
        x = -rng.uniform(0.1, 0.6, size=(4, 2))
        y = rng.poisson(exposure * np.exp(x @ rng.multivariate_normal(mean[0], COVARIANCE[0]))).astype(float)
        reference, evidence = on_grid(mean, rng, lambda points: stats.poisson.logpmf(y, exposure * np.exp(points @ x.T)).sum(axis=1))
        return {"weight": WEIGHT, "mean": mean, "covariance": COVARIANCE, "x": x, "y": y, "exposure": exposure, "theta": np.zeros(2), "reference": reference}, evidence

    def test_quadrature(self):
        self.check_quadrature()

    def test_cases(self):
        self.check_cases()

    def test_world(self):
        self.check_world()

    def test_refused(self):
        self.check_refused(("likelihood=logistic", "problem.family: tomography has likelihood poisson"))


class PhaseRetrieval(Nonlinear):
    FAMILY, LIKELIHOOD, WORLD = "phase_retrieval", "squared", ("dimension: 2, noise: 1", "smc_tempered")
    EXACT = "[{name: smc_tempered, particles: 20000, steps: 20}, twisted]", 0.13, 0.09  # four standard errors in the worst of 12 numbers
    OF_CASES, PROPOSALS, EFFECTIVE = "[{name: smc_tempered, particles: 20000, steps: 20}]", 80_000, 4_000

    @staticmethod
    def planar_case(rng):
        mean, noise = np.array([[-1.0, 0.0], [1.5, 1.0]]), 1.5
        x = rng.normal(size=(3, 2))
        y = (x @ rng.multivariate_normal(mean[0], COVARIANCE[0])) ** 2 + noise * rng.normal(size=3)
        reference, evidence = on_grid(mean, rng, lambda points: stats.norm.logpdf(y, (points @ x.T) ** 2, noise).sum(axis=1))
        return {"weight": WEIGHT, "mean": mean, "covariance": COVARIANCE, "x": x, "y": y, "noise": noise, "theta": np.zeros(2), "reference": reference}, evidence

    def test_quadrature(self):
        self.check_quadrature()

    def test_cases(self):
        self.check_cases()

    def test_world(self):
        self.check_world()

    def test_refused(self):
        self.check_refused(("likelihood=logistic", "problem.family: phase_retrieval has likelihood squared"),
                           ("policies=[{name: mixts, prior: exact}]", "sampler mixts needs a likelihood that is log-concave in phi' theta; likelihood squared needs one of dps, twisted, smc_tempered, mala"),
                           ("study=bandit", "problem.family: phase_retrieval is for study posterior"))


if __name__ == "__main__":
    program.main()
