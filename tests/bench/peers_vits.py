#!/usr/bin/python3
"""Thompson sampling, VITS and Langevin compared with the same methods in batched NumPy: CPU seconds and regret, in one run.

Usage: peers_vits.py PATH_OF_thompson [--json FILE] [--runs N] [--rounds N] [--repeats N]

Two worlds: `plane`, d = 2, 100 fixed arms in the unit disc, 200 rounds (DiffTS paper, Section 6.2); and `pool`, d = 20, 50 arms from a pool redrawn in each
round (VITS paper, Section 4.1), whose methods run with the settings of jobs/papers/vits_figure1.yaml. The NumPy versions follow the same equations for a batch of
runs at once, with einsum and matmul and one thread, and with the same step, number of updates and refreshed inverse as ours; TS and LinTS maintain the
inverse of the precision by rank-one updates. CPU seconds of both are those of the whole simulation: arms, rewards, updates, draws, choices. The two take turns;
the figures are medians, and the speeds are medians of ratios: ours over NumPy with its runs in batches, and over the same NumPy code with one run at a time, as
in published implementations. Our regret must agree with NumPy's within three standard errors, otherwise the exit status is 1.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import netCDF4
import numpy as np

STUDY = """name: peers
study: bandit
seed: {seed}
runs: {runs}
block: {block}
problem: {problem}
policies: [{policy}]
"""


class Plane:
    """Fixed arms, uniform in the unit disc; theta* ~ N(0, I)."""

    d, arms, batch, block = 2, 100, 256, 128  # runs at a time in NumPy and in ours: the best of a few values tried
    prior = 1.0
    problem = "{{theta: gaussian, dimension: 2, arms: 100, rounds: {rounds}, noise: 1}}"

    def __init__(self, rng, runs):
        self.rng, self.theta = rng, rng.standard_normal((runs, 2))
        direction = rng.standard_normal((runs, self.arms, 2))
        direction *= (np.sqrt(rng.random((runs, self.arms))) / np.linalg.norm(direction, axis=2))[:, :, None]
        self.phi, self.noise = direction, 1.0
        self.mean = np.matmul(direction, self.theta[:, :, None])[:, :, 0]
        self.best = self.mean.max(1)

    def advance(self):
        pass


class Pool:
    """Arms are members of a pool plus zeta times N(0, I), redrawn in each round; theta* ~ N(0, I / d)."""

    d, arms, batch, block = 20, 50, 64, 64
    zeta = 0.1
    problem = "{{family: pool, dimension: 20, arms: 50, zeta: 0.1, rounds: {rounds}, noise: 1}}"

    def __init__(self, rng, runs):
        self.rng, self.theta = rng, rng.standard_normal((runs, self.d)) / np.sqrt(self.d)
        self.pool = rng.standard_normal((runs, self.arms, self.d))
        self.run, self.noise = np.arange(runs)[:, None], np.sqrt(1 + self.zeta**2)

    def advance(self):
        self.phi = self.rng.standard_normal(self.pool.shape)
        self.phi *= self.zeta
        self.phi += self.pool[self.run, self.rng.integers(self.arms, size=self.pool.shape[:2])]
        self.mean = np.matmul(self.phi, self.theta[:, :, None])[:, :, 0]
        self.best = self.mean.max(1)


class Linear:
    """Draws from N(V^-1 b, V^-1 / eta), V = I + X'X, b = X'y; with eta = 1 the posterior under unit noise. V^-1 by the Sherman-Morrison formula."""

    def __init__(self, rng, runs, d, eta=1.0):
        self.rng, self.eta = rng, eta
        self.covariance, self.mean = np.tile(np.eye(d), (runs, 1, 1)), np.zeros((runs, d))

    def draw(self):
        root = np.linalg.cholesky(self.covariance)
        z = self.rng.standard_normal(self.mean.shape) / np.sqrt(self.eta)
        return self.mean + np.matmul(root, z[:, :, None])[:, :, 0]

    def observe(self, phi, y):
        gain = np.matmul(self.covariance, phi[:, :, None])[:, :, 0]
        spread = 1 + np.einsum("ni,ni->n", phi, gain)
        self.mean += gain * ((y - np.einsum("ni,ni->n", phi, self.mean)) / spread)[:, None]
        self.covariance -= (gain / spread[:, None])[:, :, None] * gain[:, None, :]


class Potential:
    """grad U(theta) = H theta - eta b, H = eta (I + X'X)."""

    def __init__(self, rng, runs, d, eta, updates=10, h=0.01):
        self.rng, self.eta, self.updates, self.h = rng, eta, updates, h
        self.hessian, self.vector, self.t = np.tile(eta * np.eye(d), (runs, 1, 1)), np.zeros((runs, d)), 0

    def gradient(self, theta):
        return np.matmul(self.hessian, theta[:, :, None])[:, :, 0] - self.vector

    def observe(self, phi, y):
        self.t += 1
        scaled = self.eta * phi
        self.hessian += scaled[:, :, None] * phi[:, None, :]
        self.vector += scaled * y[:, None]
        self.update(self.h / (self.eta * self.t))


class Langevin(Potential):
    def __init__(self, rng, runs, d, **settings):
        super().__init__(rng, runs, d, **settings)
        self.theta = rng.standard_normal((runs, d)) / np.sqrt(self.eta)

    def draw(self):
        return self.theta

    def update(self, h):
        for _ in range(self.updates):
            self.theta += np.sqrt(2 * h) * self.rng.standard_normal(self.theta.shape) - h * self.gradient(self.theta)


class Vits(Potential):
    """q = N(mean, root root'); inverse is close to root^-1 (VITS-II), or equal to it (VITS-I)."""

    def __init__(self, rng, runs, d, carry, **settings):
        super().__init__(rng, runs, d, **settings)
        self.carry, self.mean = carry, np.zeros((runs, d))
        self.root, self.inverse = (np.tile(np.eye(d) * scale, (runs, 1, 1)) for scale in (self.eta**-0.5, self.eta**0.5))

    def draw(self):
        z = self.rng.standard_normal(self.mean.shape)
        return self.mean + np.matmul(self.root, z[:, :, None])[:, :, 0]

    def update(self, h):
        if self.carry:
            self.inverse -= np.matmul(self.inverse, np.matmul(self.root, self.inverse) - np.eye(self.mean.shape[1]))
        for _ in range(self.updates):
            if not self.carry:
                self.inverse = np.linalg.inv(self.root)
            transposed = self.inverse.transpose(0, 2, 1)
            self.mean -= h * self.gradient(self.draw())
            self.root += h * (transposed - np.matmul(self.hessian, self.root))
            if self.carry:
                self.inverse -= h * np.matmul(self.inverse, np.matmul(transposed, self.inverse) - self.hessian)


STEP = "eta: 10, step_rule: eta_t, step_size: 0.01"
CASES = [  # name, world, ours, NumPy's
    ("ts", Plane, "ts", lambda rng, runs: Linear(rng, runs, 2)),
    ("lints", Pool, "{name: lints, eta: 10}", lambda rng, runs: Linear(rng, runs, 20, eta=10)),
    ("lmc", Pool, "{name: lmc, steps: 10, %s}" % STEP, lambda rng, runs: Langevin(rng, runs, 20, eta=10)),
    ("lmc 50", Pool, "{name: lmc, steps: 50, %s}" % STEP, lambda rng, runs: Langevin(rng, runs, 20, eta=10, updates=50)),
    ("vits1", Pool, "{name: vits1, %s}" % STEP, lambda rng, runs: Vits(rng, runs, 20, carry=False, eta=10)),
    ("vits2", Pool, "{name: vits2, %s}" % STEP, lambda rng, runs: Vits(rng, runs, 20, carry=True, eta=10)),
]


def simulate(world, policy, rounds, runs):
    """The regret of each run."""
    regret, every = np.zeros(runs), np.arange(runs)
    for _ in range(rounds):
        world.advance()
        arm = np.matmul(world.phi, policy.draw()[:, :, None])[:, :, 0].argmax(1)
        mean = world.mean[every, arm]
        policy.observe(world.phi[every, arm], mean + world.noise * world.rng.standard_normal(runs))
        regret += world.best - mean
    return regret


def theirs(case, seed, runs, rounds, batch):
    """CPU seconds and the regret of each run."""
    _, world, _, policy = case
    rng, seconds, regret = np.random.Generator(np.random.SFC64(seed)), 0, []
    for first in range(0, runs, batch):
        count = min(batch, runs - first)
        place, player = world(rng, count), policy(rng, count)
        start = time.process_time()
        regret.append(simulate(place, player, rounds, count))
        seconds += time.process_time() - start
    return seconds, np.concatenate(regret)


def ours(program, case, seed, runs, rounds):
    _, world, policy, _ = case
    with tempfile.TemporaryDirectory() as folder:
        study, output = pathlib.Path(folder, "study.yaml"), pathlib.Path(folder, "results")
        problem = world.problem.format(rounds=rounds)
        study.write_text(STUDY.format(seed=seed, runs=runs, block=world.block, problem=problem, policy=policy))
        subprocess.run([program, "run", study, "-o", output, "--progress", "none"], check=True, capture_output=True)
        with netCDF4.Dataset(output / "results.nc") as data:
            return float(data["seconds"][0, 0].sum()), np.array(data["regret"][0, 0, :, -1])


SINGLE_RUNS = 4


def mean_and_error(regret):
    return float(regret.mean()), float(regret.std(ddof=1) / np.sqrt(regret.size))


def compare(program, case, runs, rounds, repeats):
    name, world = case[0], case[1]
    batched, single, mine = [], [], []
    for seed in range(repeats):
        batched.append(theirs(case, seed, runs, rounds, world.batch))
        mine.append(ours(program, case, seed, runs, rounds))
        single.append(theirs(case, seed, SINGLE_RUNS, rounds, 1))
    (numpy_mean, numpy_se), (mean, se) = (mean_and_error(np.concatenate([turn[1] for turn in side])) for side in (batched, mine))
    numpy_seconds, single_seconds, seconds = (np.array([turn[0] for turn in side]) / count for side, count in ((batched, runs), (single, SINGLE_RUNS), (mine, runs)))
    return {"policy": name, "world": world.__name__.lower(), "d": world.d, "arms": world.arms, "rounds": rounds, "runs": runs * repeats,
            "seconds_a_run": float(np.median(seconds)), "numpy_seconds_a_run": float(np.median(numpy_seconds)),
            "rounds_per_second": rounds / float(np.median(seconds)), "speed": float(np.median(numpy_seconds / seconds)),
            "speed_over_single_runs": float(np.median(single_seconds / seconds)), "regret": mean, "regret_se": se, "numpy_regret": numpy_mean,
            "numpy_regret_se": numpy_se, "agree": bool(abs(mean - numpy_mean) <= 3 * np.hypot(se, numpy_se))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--runs", type=int, default=128, help="of each method in a turn; of ts, 16 times as many")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3, help="turns")
    arguments = parser.parse_args()
    figures = []
    print(f"{'policy':8}{'world':7}{'ours: us a run':>15}{'rounds/s':>10}{'over NumPy':>12}{'one at a time':>15}{'our regret':>16}{'of NumPy':>16}")
    for case in CASES:
        runs = arguments.runs * (16 if case[1] is Plane else 1)
        row = compare(arguments.program, case, runs, arguments.rounds, arguments.repeats)
        figures.append(row)
        print(f"{row['policy']:8}{row['world']:7}{1e6 * row['seconds_a_run']:15.1f}{row['rounds_per_second']:10.2g}{row['speed']:11.1f}x"
              f"{row['speed_over_single_runs']:14.0f}x{row['regret']:9.2f} ± {row['regret_se']:4.2f}{row['numpy_regret']:9.2f} ± {row['numpy_regret_se']:4.2f}"
              + ("" if row["agree"] else "  DIFFERENT"), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(row["agree"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
