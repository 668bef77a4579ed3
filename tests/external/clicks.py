#!/usr/bin/env python3
"""Regret of rules with rare and late clicks beside a second program in NumPy, whose posteriors are exact up to a grid or particles.

    tests/external/clicks.py PROGRAM [--quick]

Two worlds with a click rate of about 2%: ten ads whose log odds are N(-4, 0.5^2) each, 2 000 rounds; and users of three segments who see 20 of 200 ads with
six features, 300 rounds (data/make_clicks.py). The posterior of the first is a product of densities on a grid, that of the second is 6 000 draws from the
prior with weights. The rules follow docs/decisions.md; theta*, ads and clicks are drawn here from separate random numbers. Prints both regrets, ± one
standard error, and ends with one line "N passed, N failed": a cell passes if they differ by at most two standard errors and `greedy` has at most 1.1 times
the regret of the oracle, two standard errors granted; with --quick, fewer runs and only the longest delay, by at most four, so that chance fails one test in
2 000. --quick takes 12 CPU seconds."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np
from scipy.special import expit
from scipy.stats import norm

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = "thompson", "bayes_ucb", "greedy"
ALPHA = 0.03
GRID = np.linspace(-6.75, -1.25, 177)
PARTICLES = 6000


class Apart:
    """Ten ads, each with a density on a grid of log odds."""

    rounds, delays, arms = 2000, (0, 67, 333, 500), 10
    program = """
name: apart
study: bandit
runs: %d
likelihood: logistic
problem: {theta: mixture, file: %s, features: basis, rounds: 2000}
policies:
  - {name: mixts, prior: exact, label: thompson}
  - {name: mixts, prior: exact, rule: bayes_ucb, label: bayes_ucb}
  - {name: mixts, prior: exact, rule: greedy, label: greedy}
sweep: {feedback.delay: %s}
"""

    def __init__(self, folder):
        self.file = folder / "prior.nc"
        make("make_priors.py", "rates", "--mean=-4", "--sd=0.5", f"--arms={self.arms}", "-o", self.file)
        self.click, self.none = np.log(expit(GRID)), np.log(expit(-GRID))

    def begin(self, rng, runs):
        self.rate = expit(-4 + 0.5 * rng.standard_normal((runs, self.arms)))
        self.log_weight = np.tile(norm.logpdf(GRID, -4, 0.5), (runs, self.arms, 1))
        self.weight = np.empty_like(self.log_weight)
        self.mean, self.sd, self.reward = (np.empty((runs, self.arms)) for _ in range(3))
        for arm in range(self.arms):
            self.summarise(np.arange(runs), np.full(runs, arm))

    def summarise(self, run, arm):
        log_weight = self.log_weight[run, arm]
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        self.weight[run, arm] = weight.cumsum(axis=1)
        self.mean[run, arm] = mean = weight @ GRID
        self.sd[run, arm] = np.sqrt(weight @ GRID**2 - mean**2)
        self.reward[run, arm] = weight @ expit(GRID)

    def learn(self, arm, click):
        run = np.arange(len(arm))
        self.log_weight[run, arm] += np.where(click[:, None], self.click, self.none)
        self.summarise(run, arm)

    def draw(self, rng):
        place = (self.weight < rng.random(self.mean.shape)[..., None]).sum(axis=2)
        return GRID[np.minimum(place, len(GRID) - 1)] + (GRID[1] - GRID[0]) * (rng.random(self.mean.shape) - 0.5)

    def moments(self):
        return self.mean, self.sd

    def rewards(self):
        return self.reward


class Segments:
    """20 of 200 ads for each user; the posterior is weights of draws from the prior, which all users share."""

    rounds, delays, arms = 300, (0, 10, 50, 75), 20
    program = """
name: segments
study: bandit
runs: %d
likelihood: logistic
problem: {family: embedding, file: %s, arms: 20, rounds: 300}
policies:
  - {name: mixts, components: 3, label: thompson}
  - {name: mixts, components: 3, rule: bayes_ucb, label: bayes_ucb}
  - {name: mixts, components: 3, rule: greedy, label: greedy}
prior: {train_samples: all}
sweep: {feedback.delay: %s}
"""

    def __init__(self, folder):
        self.file = folder / "world.nc"
        make("make_clicks.py", "--rate", "0.02", "-o", self.file, "--prior", folder / "segments.nc")
        with netCDF4.Dataset(self.file) as data, netCDF4.Dataset(folder / "segments.nc") as prior:
            self.features = data["features"][:].data
            self.prior = [prior[name][:].data for name in ("weight", "mean", "covariance")]

    def theta(self, rng, n):
        weight, mean, covariance = self.prior
        c = rng.choice(len(weight), n, p=weight)
        return mean[c] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance)[c], rng.standard_normal((n, mean.shape[1])))

    def begin(self, rng, runs):
        self.ads = np.argsort(rng.random((runs, len(self.features))), axis=1)[:, :self.arms]
        self.rate = expit(np.einsum("rki,ri->rk", self.features[self.ads], self.theta(rng, runs)))
        self.u = self.theta(rng, PARTICLES) @ self.features.T
        self.click, self.none = (np.log(expit(sign * self.u)).T.copy() for sign in (1, -1))
        self.log_weight = np.zeros((runs, PARTICLES))
        self.weight = np.full((runs, PARTICLES), 1 / PARTICLES)

    def learn(self, arm, click):
        ad = self.ads[np.arange(len(arm)), arm]
        self.log_weight += np.where(click[:, None], self.click[ad], self.none[ad])
        self.weight = np.exp(self.log_weight - self.log_weight.max(axis=1, keepdims=True))
        self.weight /= self.weight.sum(axis=1, keepdims=True)

    def draw(self, rng):
        place = (self.weight.cumsum(axis=1) < rng.random((len(self.weight), 1))).sum(axis=1)
        return self.u[np.minimum(place, PARTICLES - 1)[:, None], self.ads]

    def of_ads(self, value):
        return np.take_along_axis(self.weight @ value, self.ads, axis=1)

    def moments(self):
        mean = self.of_ads(self.u)
        return mean, np.sqrt(np.maximum(self.of_ads(self.u**2) - mean**2, 0))

    def rewards(self):
        return self.of_ads(expit(self.u))


def make(script, *arguments):
    subprocess.run([sys.executable, ROOT / "data" / script, *map(str, arguments)], check=True)


def oracle(world, rule, delay, runs, rng):
    """Regret of each run after the last round."""
    world.begin(rng, runs)
    run, waiting, regret = np.arange(runs), [], np.zeros(runs)
    for t in range(world.rounds):
        if rule == "thompson":
            index = world.draw(rng)
        elif rule == "greedy":
            index = world.rewards()
        else:
            mean, sd = world.moments()
            index = mean + norm.isf(0.5 / (1 + ALPHA * (world.rounds - t))) * sd
        tie = 1e-12 * rng.random(index.shape)      # equally good ads at random
        arm = (index + tie).argmax(axis=1)
        regret += world.rate.max(axis=1) - world.rate[run, arm]
        waiting.append((arm, rng.random(runs) < world.rate[run, arm]))
        if t >= delay:
            world.learn(*waiting[t - delay])
    return regret


def of_program(program, world, delays, runs, folder):
    """{(rule, delay): regret of each run} of the program."""
    study, out = folder / "study.yaml", folder / "out"
    study.write_text(world.program % (runs, world.file, list(delays)), encoding="utf-8")
    subprocess.run([program, "run", study, "-o", out, "--overwrite", "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    with netCDF4.Dataset(out / "results.nc") as file:
        regret = file["regret"][:].data[..., -1]
    return {(rule, delay): regret[s, p] for s, delay in enumerate(delays) for p, rule in enumerate(RULES)}


def error(x):
    return x.std(ddof=1) / np.sqrt(len(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    runs, granted = (24, 4) if arguments.quick else (256, 2)
    passed = failed = 0
    for kind in (Apart, Segments):
        with tempfile.TemporaryDirectory() as name:
            world = kind(pathlib.Path(name))
            delays = kind.delays[-1:] if arguments.quick else kind.delays
            ours = of_program(arguments.program, world, delays, runs, pathlib.Path(name))
            for (rule, delay), regret in ours.items():
                exact = oracle(world, rule, delay, runs, np.random.default_rng([2, delay, RULES.index(rule)]))
                apart, se = regret.mean() - exact.mean(), np.hypot(error(regret), error(exact))
                good = abs(apart) <= granted * se and (rule != "greedy" or regret.mean() <= 1.1 * exact.mean() + 2 * se)
                print(f"{kind.__name__.lower()}, {rule}, delay {delay}: {regret.mean():.2f} ± {error(regret):.2f}, oracle {exact.mean():.2f} ± "
                      f"{error(exact):.2f}, {apart / se:+.1f} standard errors{'' if good else ': FAILED'}", flush=True)
                passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
