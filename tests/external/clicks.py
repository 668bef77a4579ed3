#!/usr/bin/env python3
"""Regret of rules with rare and late clicks beside a second program in NumPy, whose posteriors are exact up to a grid or particles.

    tests/external/clicks.py PROGRAM [--quick] [--csv FILE]

Worlds with a click rate of about 2%: ten ads whose log odds are N(-4, 0.5^2) each, 2 000 rounds; and users of three segments who see 20 of 200 ads with
six features, 300 rounds (data/make_clicks.py), the same ads in all rounds or, at once only, others in each. The posterior of the first is a product of
densities on a grid, that of the others is 4 000 draws from the prior with weights. The rules follow docs/decisions.md; theta*, ads and clicks are drawn here
from separate random numbers. Prints both regrets, ± one standard error, and ends with one line "N passed, N failed": a cell passes if they differ by at most
two standard errors and `greedy` has at most 1.1 times the regret of the oracle, two standard errors granted; with --quick, fewer runs and only the longest
delay, by at most four, so that chance fails one test in 2 000. --csv writes the regrets for docs/write_delays.py. --quick takes 12 CPU seconds, the whole
about 15 minutes."""
import argparse
import csv
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
PARTICLES = 4000


class Apart:
    """Ten ads, each with a density on a grid of log odds."""

    rounds, delays, arms, runs = 2000, (0, 67, 333, 500), 10, 256
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

    def meet(self, rng):
        """Ads that are the same in all rounds."""

    def number(self, arm):
        return arm

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
    """20 of 200 ads for each user; the posterior is weights of draws from the prior, which all users share. Numbers of 32 bits halve the time; log odds u are
    counted from their mean, so that a variance keeps its digits."""

    rounds, delays, arms, runs, fresh = 300, (0, 10, 50, 75), 20, 1000, False
    program = """
name: segments
study: bandit
runs: %d
likelihood: logistic
problem: {family: embedding, file: %s, arms: 20, rounds: 300, resample_arms: FRESH}
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
        self.chance = expit(self.theta(rng, runs) @ self.features.T)
        u = self.theta(rng, PARTICLES) @ self.features.T
        self.likelihood = np.stack([expit(-u), expit(u)]).transpose(0, 2, 1).astype(np.float32)  # [click, ad, particle]
        self.mean_reward = expit(u).astype(np.float32)
        self.u = (u - u.mean()).astype(np.float32)
        self.weight = np.full((runs, PARTICLES), 1 / PARTICLES, np.float32)
        self.ads = None

    def meet(self, rng):
        if self.ads is None or self.fresh:
            self.ads = np.argsort(rng.random(self.chance.shape), axis=1)[:, :self.arms]
            self.rate = np.take_along_axis(self.chance, self.ads, axis=1)

    def number(self, arm):
        return self.ads[np.arange(len(arm)), arm]

    def learn(self, ad, click):
        self.weight *= self.likelihood[click.astype(int), ad]
        self.weight /= self.weight.sum(axis=1, keepdims=True)

    def draw(self, rng):
        below = rng.random(len(self.weight))
        place = [sums.searchsorted(share * sums[-1]) for sums, share in zip(self.weight.cumsum(axis=1), below)]
        return self.u[np.minimum(place, PARTICLES - 1)[:, None], self.ads]

    def of_ads(self, value):
        return np.take_along_axis(self.weight @ value, self.ads, axis=1)

    def moments(self):
        mean = self.of_ads(self.u)
        return mean, np.sqrt(np.maximum(self.of_ads(self.u**2) - mean**2, 0))

    def rewards(self):
        return self.of_ads(self.mean_reward)


class Fresh(Segments):
    """20 other ads of the 200 in each round."""

    delays, runs, fresh = (0,), 500, True


def make(script, *arguments):
    subprocess.run([sys.executable, ROOT / "data" / script, *map(str, arguments)], check=True)


def oracle(world, rule, delay, runs, rng):
    """Regret of each run after the last round."""
    world.begin(rng, runs)
    run, waiting, regret = np.arange(runs), [], np.zeros(runs)
    for t in range(world.rounds):
        world.meet(rng)
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
        waiting.append((world.number(arm), rng.random(runs) < world.rate[run, arm]))
        if t >= delay:
            world.learn(*waiting[t - delay])
    return regret


def of_program(program, world, delays, runs, folder):
    """{(rule, delay): regret of each run} of the program."""
    study, out = folder / "study.yaml", folder / "out"
    fresh = str(getattr(world, "fresh", False)).lower()
    study.write_text(world.program.replace("FRESH", fresh) % (runs, world.file, list(delays)), encoding="utf-8")
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
    parser.add_argument("--csv", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    rows, failed = [], 0
    for kind in (Apart, Segments) if arguments.quick else (Apart, Segments, Fresh):
        with tempfile.TemporaryDirectory() as name:
            world = kind(pathlib.Path(name))
            runs, granted, delays = (24, 4, kind.delays[-1:]) if arguments.quick else (kind.runs, 2, kind.delays)
            ours = of_program(arguments.program, world, delays, runs, pathlib.Path(name))
            for (rule, delay), regret in ours.items():
                exact = oracle(world, rule, delay, runs, np.random.default_rng([2, delay, RULES.index(rule)]))
                apart, se = regret.mean() - exact.mean(), np.hypot(error(regret), error(exact))
                good = abs(apart) <= granted * se and (rule != "greedy" or regret.mean() <= 1.1 * exact.mean() + 2 * se)
                print(f"{kind.__name__.lower()}, {rule}, delay {delay}: {regret.mean():.2f} ± {error(regret):.2f}, oracle {exact.mean():.2f} ± "
                      f"{error(exact):.2f}, {apart / se:+.1f} standard errors{'' if good else ': FAILED'}", flush=True)
                failed += not good
                rows.append({"world": kind.__name__.lower(), "runs": runs, "rounds": world.rounds, "delay": delay, "rule": rule, "regret": regret.mean(),
                             "se": error(regret), "oracle": exact.mean(), "oracle_se": error(exact)})
    if arguments.csv:
        with open(arguments.csv, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
