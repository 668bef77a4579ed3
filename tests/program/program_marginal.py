#!/usr/bin/env python3
"""thompson sample writes the marginal likelihood of the history if the sampler has one: with all constants, compared with NumPy."""
import netCDF4
import numpy as np

import program

WEIGHT, MEAN = np.array([0.3, 0.7]), np.array([[1.0, -1.0], [-0.5, 2.0]])
COVARIANCE = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.3, 0.0], [0.0, 2.0]]])
FEATURES = np.array([[1.0, 0.5], [-0.3, 1.2], [0.8, -0.9], [0.1, 0.4], [-1.1, 0.2]])
NOISE = 0.6


def normal(y, mean, covariance):
    error = y - mean
    return np.exp(-0.5 * np.sum(error * np.linalg.solve(covariance, error.T).T, -1)) / np.sqrt(np.linalg.det(2 * np.pi * covariance))


class Marginal(program.ProgramTest):
    def marginal(self, likelihood, rewards, *options, sigma=NOISE):
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "mixture"
            for name, size in (("component", 2), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = WEIGHT
            file.createVariable("mean", "f8", ("component", "dim"))[:] = MEAN
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = COVARIANCE
        rows = "\n".join(f"{x[0]},{x[1]},{y}" for x, y in zip(FEATURES, rewards))
        self.write("history.csv", f"x1,x2,y\n{rows}\n")
        noise = ["--noise", str(sigma)] if likelihood == "gaussian" else []
        out = self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--likelihood", likelihood, *noise,
                           "-o", self.path("draws.nc"), *options).stdout
        with netCDF4.Dataset(self.path("draws.nc")) as file:
            if "log_marginal_likelihood" not in file.ncattrs():
                self.assertNotIn("marginal", out)
                return None
            self.assertIn("log marginal likelihood", out)
            return file.log_marginal_likelihood, file.log_marginal_likelihood_error

    def test_gaussian_rewards(self):
        rewards = np.array([0.2, 1.4, -2.0, 0.9, 0.3])
        exact = sum(w * normal(rewards, FEATURES @ m, FEATURES @ c @ FEATURES.T + NOISE**2 * np.eye(5)) for w, m, c in zip(WEIGHT, MEAN, COVARIANCE))
        value, error = self.marginal("gaussian", rewards, "--sampler", "localised")
        self.assertLess(error, 1e-3)
        self.assertAlmostEqual(value, np.log(exact), delta=2 * error + 1e-9)
        value, error = self.marginal("gaussian", rewards, "--sampler", "mixts")
        self.assertLess(error, 1e-12)
        self.assertAlmostEqual(value, np.log(exact), delta=1e-9)

    def test_other_rewards(self):
        """Compared with a grid in the plane, whose error is far below the claimed standard error."""
        side = np.linspace(-9, 9, 1001)
        theta = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
        prior = sum(w * normal(theta, m, c) for w, m, c in zip(WEIGHT, MEAN, COVARIANCE)) * (side[1] - side[0])**2
        u = theta @ FEATURES.T
        for likelihood, rewards, log_p in (("logistic", np.array([0, 1, 0, 1, 1]), lambda y: y * u - np.logaddexp(0, u)),
                                           ("poisson", np.array([0, 3, 1, 2, 0]), lambda y: y * u - np.exp(u) - np.log([1, 6, 1, 2, 1]))):
            value, error = self.marginal(likelihood, rewards, "--sampler", "localised", "--option", "particles=4")
            self.assertLess(error, 0.1)
            self.assertAlmostEqual(value, np.log(np.sum(prior * np.exp(log_p(rewards).sum(1)))), delta=5 * error)

    def test_precise_evidence(self):
        """Sums of 1e18 cancel: only the remaining digits are claimed. As the noise goes to zero, the integral over theta is the prior at the solution."""
        theta, sigma = np.array([0.4, 1.1]), 1e-9
        prior = sum(w * normal(theta, m, c) for w, m, c in zip(WEIGHT, MEAN, COVARIANCE))
        exact = np.log(prior) - 1.5 * np.log(2 * np.pi * sigma**2) - 0.5 * np.log(np.linalg.det(FEATURES.T @ FEATURES))
        value, error = self.marginal("gaussian", FEATURES @ theta, "--sampler", "localised", sigma=sigma)
        self.assertLess(abs(value - exact), error)

    def test_a_sampler_without_one(self):
        self.assertIsNone(self.marginal("gaussian", np.zeros(5), "--sampler", "diffts"))


if __name__ == "__main__":
    program.main()
