#!/usr/bin/python3
"""Our earth mover's distance beside POT's ot.emd2: CPU time and values, in one run.

Usage: emd_vs_pot.py PATH_OF_bench_emd [--json FILE]

Clouds are draws from the posterior of the cross (two crossing Gaussians, twenty observations of unit noise), other draws of the same posterior against
them, as in the posterior study. Ours includes the costs and the certificate; POT's is emd2 alone, with the costs given. Medians over the pairs of the
best of three, and the median ratio.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded

import argparse
import json
import subprocess
import tempfile
import time

import numpy as np
import ot
from scipy.spatial.distance import cdist

PAIRS, REPEATS = 6, 3
SIZES = [(500, 500), (1000, 1000), (500, 1000), (1000, 1500)]
PRIOR = [np.array([[1, c], [c, 1]]) for c in (0.99, -0.9)]


def posterior(rng):
    """Weights, means and covariances of the two components after twenty observations with arms in the unit disc."""
    arms = rng.uniform(-0.7, 0.7, (20, 2))
    theta = rng.multivariate_normal([0, 0], PRIOR[rng.integers(2)])
    reward = arms @ theta + rng.standard_normal(20)
    evidence, vector = arms.T @ arms, arms.T @ reward
    covariance = [np.linalg.inv(np.linalg.inv(s) + evidence) for s in PRIOR]
    log_weight = np.array([0.5 * (np.linalg.slogdet(v)[1] - np.linalg.slogdet(s)[1] + vector @ v @ vector)
                           for s, v in zip(PRIOR, covariance)])
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), [v @ vector for v in covariance], covariance


def draws(rng, target, n):
    weight, mean, covariance = target
    count = rng.multinomial(n, weight)
    return np.vstack([rng.multivariate_normal(*part) for part in zip(mean, covariance, count)])


def ours(program, pairs, n, m):
    with tempfile.NamedTemporaryFile() as file:
        for x, y in pairs:
            file.write(np.ascontiguousarray(x.T).tobytes() + np.ascontiguousarray(y.T).tobytes())
        file.flush()
        command = [program, file.name, "2", str(n), str(m), str(REPEATS)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return np.array([line.split() for line in lines], float).T


def pot(x, y):
    cost = cdist(x, y)
    weights = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    best = np.inf
    for _ in range(REPEATS):
        start = time.process_time()
        distance = ot.emd2(*weights, cost, numItermax=10_000_000)
        best = min(best, time.process_time() - start)
    return distance, best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="tests/bench_emd of the build")
    parser.add_argument("--json", help="also write what was measured to this file")
    options = parser.parse_args()
    rows = []
    rng = np.random.default_rng(1)
    print("   n x    m    ours: CPU ms   POT: CPU ms   ours / POT   largest difference")
    for n, m in SIZES:
        pairs = []
        for _ in range(PAIRS):
            target = posterior(rng)
            pairs.append((draws(rng, target, n), draws(rng, target, m)))
        distance, seconds = ours(options.program, pairs, n, m)
        pot_distance, pot_seconds = np.array([pot(x, y) for x, y in pairs]).T
        print(f"{n:4d} x {m:4d} {1e3 * np.median(seconds):13.2f} {1e3 * np.median(pot_seconds):13.2f}"
              f" {np.median(seconds / pot_seconds):12.2f} {np.abs(distance - pot_distance).max():16.1e}")
        rows.append({"n": n, "m": m, "our_seconds": np.median(seconds), "pot_seconds": np.median(pot_seconds), "ratio": np.median(seconds / pot_seconds),
                     "largest_difference": np.abs(distance - pot_distance).max()})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


main()
