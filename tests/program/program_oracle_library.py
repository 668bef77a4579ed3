#!/usr/bin/env python3
"""Prior.from_oracle and Prior.from_velocity: closed forms of a mixture of Gaussians as if they were a user's networks, against its exact posterior."""

import importlib.util
import os
import pathlib
import pickle
import unittest

os.environ.setdefault("THOMPSON_LIBRARY", os.path.join(os.environ["THOMPSON_BUILD"], "src", "library", "libthompson.so"))

import numpy as np
import program
import thompson


class Mixture:
    """Three Gaussians with covariances VARIANCE I, whose means lie on a circle in a plane: its oracle, velocity, and posterior."""

    WEIGHT, VARIANCE = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.5, 0.2])

    def __init__(self, d):
        self.d = d
        plane = np.linalg.qr(np.random.default_rng(d).standard_normal((d, 2)))[0].T
        angle = np.array([0.0, 2.0, 4.5])
        self.mean = 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ plane

    def parts(self, x, sigma):
        total = self.VARIANCE + sigma ** 2
        square = (x ** 2).sum(axis=1, keepdims=True) - 2 * x @ self.mean.T + (self.mean ** 2).sum(axis=1)
        log = np.log(self.WEIGHT) - 0.5 * self.d * np.log(total) - 0.5 * square / total
        share = np.exp(log - log.max(axis=1, keepdims=True))
        return share / share.sum(axis=1, keepdims=True), self.VARIANCE / total

    def __call__(self, x, sigma):
        share, slope = self.parts(x, sigma)
        return (share * (1 - slope)) @ self.mean + (share @ slope)[:, None] * x

    def velocity(self, x, t):
        """E[z - theta | (1 - t) theta + t z = x]: the oracle at x / (1 - t)."""
        return (x - self(x / (1 - t), t / (1 - t))) / t

    def posterior(self, a, y, noise, draws, rng):
        """Exact draws given y = a theta + noise."""
        gain = [v * a.T @ np.linalg.inv(v * a @ a.T + noise ** 2 * np.eye(len(y))) for v in self.VARIANCE]
        miss = [y - a @ m for m in self.mean]
        spread = [v * a @ a.T + noise ** 2 * np.eye(len(y)) for v in self.VARIANCE]
        log = np.log(self.WEIGHT) - 0.5 * np.array([np.linalg.slogdet(s)[1] + e @ np.linalg.solve(s, e) for s, e in zip(spread, miss)])
        component = rng.choice(3, draws, p=np.exp(log - log.max()) / np.exp(log - log.max()).sum())
        theta = self.mean[component] + np.sqrt(self.VARIANCE[component])[:, None] * rng.standard_normal((draws, self.d))
        wrong = y + noise * rng.standard_normal((draws, len(y))) - theta @ a.T  # of what each prior draw would have shown
        return theta + np.einsum("kim,km->ki", np.stack(gain)[component], wrong)


class WithProduct(Mixture):
    """The same with the product of its Jacobian, Cov[theta | x] / sigma^2."""

    def jvp(self, x, sigma, v):
        share, slope = self.parts(x, sigma)
        centre = self.mean * (1 - slope)[:, None] + slope[:, None] * x[:, None]
        apart = centre - np.einsum("mc,mci->mi", share, centre)[:, None]
        return (share @ slope)[:, None] * v + np.einsum("mc,mci->mi", share * np.einsum("mci,mi->mc", apart, v), apart) / sigma ** 2


def distances(one, others):
    """Sliced Wasserstein distances of a set of draws from others of as many, from their sorted projections."""
    return [np.abs(one - other).mean() for other in others]


class Closed(unittest.TestCase):
    def compare(self, prior, d, draws=500, sets=12, **options):
        """The distance of draws of `twisted` from exact ones over that of exact ones from each other, and the standard deviation of the latter."""
        rng = np.random.default_rng(100 + d)
        a, noise = rng.standard_normal((2, d)) / np.sqrt(d), 0.3
        y = a @ Mixture(d).posterior(np.zeros((1, d)), np.zeros(1), 1, 1, rng)[0] + noise * rng.standard_normal(2)
        agent = thompson.Posterior(prior, noise=noise, seed=d, **options)
        self.assertEqual(agent.sampler, "twisted")
        agent.observe(a, y)
        directions = rng.standard_normal((d, 50))
        directions /= np.linalg.norm(directions, axis=0)
        mine, *exact = [np.sort(theta @ directions, axis=0) for theta in (agent.draw(draws), *[Mixture(d).posterior(a, y, noise, draws, rng) for _ in range(sets)])]
        self.assertEqual(agent.fallbacks, 0)
        among = np.array([np.mean(distances(one, [other for other in exact if other is not one])) for one in exact])
        return np.mean(distances(mine, exact)) / among.mean(), among.std(ddof=1) / among.mean()

    def test_velocity(self):
        """Draws of `twisted` from the velocity of a mixture are as far from exact draws as these are from each other, within 10% and three standard deviations of
        one set's distance, in 2, 8 and 80 dimensions, where smaller clouds than usual save time."""
        for d, options in ((2, {}), (8, {"cloud_particles": 1000}), (80, {"cloud_particles": 500})):
            with self.subTest(d):
                ratio, deviation = self.compare(thompson.Prior.from_velocity(Mixture(d).velocity, d), d, **options)
                self.assertLess(ratio, 1.1 + 3 * deviation)

    def test_products(self):
        """The Jacobian's own products and differences give the same draws, also through a velocity: the error of a difference over 0.3% of the noise is of the third
        derivative, 1e-5, and a hundred stages carry it on, some a hundredfold."""
        mixture = WithProduct(3)

        def velocity(x, t):
            return mixture.velocity(x, t)

        def product(x, t, v):
            return (v - mixture.jvp(x / (1 - t), t / (1 - t), v) / (1 - t)) / t

        velocity.jvp = product
        draws = []
        for prior in (thompson.Prior.from_oracle(mixture, 3, 0.01, 100), thompson.Prior.from_oracle(mixture.__call__, 3, 0.01, 100),
                      thompson.Prior.from_velocity(velocity, 3), thompson.Prior.from_velocity(mixture.velocity, 3)):
            agent = thompson.Posterior(prior, "joint", noise=0.5, seed=4)
            agent.observe([[1.0, 0.0, 1.0]], [1.5])
            draws.append(agent.draw(20))
        for other in draws[1:]:
            np.testing.assert_allclose(other, draws[0], atol=0.01)

    def test_jacobian_that_is_no_covariance(self):
        """A linear denoiser whose matrix is off by 30%, as a network's is, so that between observed directions the covariance has negative eigenvalues: draws of one cloud
        have the posterior's mean and spread, within five standard errors of 500 draws, and what was far from a covariance is counted."""
        d, noise, rng = 6, 0.05, np.random.default_rng(1)
        variance, error = np.linspace(0.2, 2, d), 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)

        def matrix(sigma):
            return np.diag(variance / (variance + sigma ** 2)) + error * sigma / (1 + sigma ** 2)

        def denoise(x, sigma):
            return x @ matrix(sigma).T

        denoise.jvp = lambda x, sigma, v: v @ matrix(sigma).T
        a = rng.standard_normal((d, d))
        y = a @ (np.sqrt(variance) * rng.standard_normal(d)) + noise * rng.standard_normal(d)
        covariance = np.linalg.inv(np.diag(1 / variance) + a.T @ a / noise ** 2)
        deviation = np.sqrt(np.diag(covariance))
        agent = thompson.Posterior(thompson.Prior.from_oracle(denoise, d, 0.02, 20), noise=noise, seed=1)
        agent.observe(a, y)
        theta = agent.draw(500)
        np.testing.assert_array_less(np.abs(theta.mean(axis=0) - covariance @ a.T @ y / noise ** 2) / deviation, 5 / np.sqrt(500))
        np.testing.assert_allclose(theta.std(axis=0) / deviation, 1, atol=5 / np.sqrt(1000))
        self.assertGreater(agent.fallbacks, 0)

    def test_flow(self):
        """docs/flow.py, with a tenth of its training: its products are derivatives, and draws given the first coordinate lie near the circle on both sides of the axis."""
        spec = importlib.util.spec_from_file_location("flow", pathlib.Path(program.SOURCE, "docs", "flow.py"))
        flow = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(flow)
        rng = np.random.default_rng(5)
        network, x, v = flow.Network(2, 8, rng), rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
        np.testing.assert_allclose(network.jvp(x, 0.3, v), (network(x + 1e-5 * v, 0.3) - network(x - 1e-5 * v, 0.3)) / 2e-5, atol=1e-8)
        theta = flow.main(800)
        self.assertLess(abs(np.hypot(*theta.T).mean() - 1.487), 0.15)  # a standard deviation and a half of the ring
        self.assertTrue(0.25 < (theta[:, 1] > 0).mean() < 0.75)

    def test_sample(self):
        """Samples of the prior have the mixture's mean, and its spread within 10%: a reverse chain of a hundred stages makes samples narrower. 4 000 samples: five standard errors."""
        mixture = Mixture(3)
        theta, exact = thompson.Prior.from_oracle(mixture, 3, 0.01, 100).sample(4000), mixture.posterior(np.zeros((1, 3)), np.zeros(1), 1, 4000, np.random.default_rng(1))
        np.testing.assert_allclose(theta.mean(axis=0), exact.mean(axis=0), atol=5 * np.sqrt(2 / 4000) * exact.std(axis=0).max())
        np.testing.assert_allclose(theta.std(axis=0), exact.std(axis=0), rtol=0.1)

    def test_what_goes_wrong(self):
        """What a function raises reaches the caller, and it is not called again; wrong shapes and ranges are refused; values that are not finite are counted; no file."""
        calls, answers = [], [lambda x, s: x / (1 + s ** 2)]

        def sometimes(x, sigma):
            calls.append(sigma)
            return answers[0](x, sigma)

        for create in (lambda f: thompson.Prior.from_oracle(f, 2, 0.02, 50), lambda f: thompson.Prior.from_velocity(lambda x, t: (x - f(x / (1 - t), t / (1 - t))) / t, 2)):
            given = create(sometimes)
            self.assertEqual((given.family, given.dimension), ("oracle", 2))
            agent = thompson.Posterior(given, "diffts", noise=0.5, seed=1)
            agent.observe([[1.0, 0.0]], [1.0])
            good = answers[0]
            for bad, error in ((lambda x, s: 1 / 0, ZeroDivisionError), (lambda x, s: np.ones(3), ValueError)):
                answers[0] = bad
                for call in (lambda: agent.draw(3), lambda: given.sample(3), lambda: create(sometimes)):
                    calls.clear()
                    self.assertRaises(error, call)
                    self.assertEqual(len(calls), 1)
            answers[0] = lambda x, s: x * np.nan
            before = agent.fallbacks
            self.assertTrue(np.isfinite(agent.draw(3)).all())
            self.assertGreater(agent.fallbacks, before)
            with self.assertRaisesRegex(thompson.Error, "the oracle failed, or gave values that are not finite"):
                create(sometimes)
            answers[0] = good
            for thing in (agent, given):
                with self.assertRaisesRegex(thompson.Error, "cannot be saved to a file"):
                    pickle.dumps(thing)
            self.assertRaises(thompson.Error, thompson.Posterior, given, "mala")
            self.assertRaises(thompson.Error, agent.p_value)
        self.assertTrue(all(0.01 <= sigma <= 100 for sigma in calls))
        for least, most in ((1, 1), (2, 1), (0, 1), (-1, 1), (np.nan, 1), (1, np.inf)):
            self.assertRaises(thompson.Error, thompson.Prior.from_oracle, sometimes, 2, least, most)
        for function in (thompson.Prior.from_oracle, thompson.Prior.from_velocity):
            self.assertRaises(TypeError, function, 3, 2, 0.1, 10)


if __name__ == "__main__":
    program.main()
