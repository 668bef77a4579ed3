#!/usr/bin/python3
"""Our earth mover's distance compared with POT's ot.emd2: CPU time and values, in one run.

Usage: emd_vs_pot.py PATH_OF_bench_emd [--json FILE]

Clouds are draws from the posterior of the cross (two crossing Gaussians, twenty observations with unit noise), against other draws of the same posterior,
as in the posterior study; the same with one of them shifted by half a standard deviation (shifted); and standard normal points in more dimensions. Our time
includes the costs and the certificate; POT's is for emd2 alone, with the costs given. Medians over the pairs of the best of three, and the median ratio; for
2000 points and more there are two pairs or one, and each is solved once. About 45 CPU s.
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

PAIRS, REPEATS, LARGE = 6, 3, 2000
CASES = [("posterior", 2, 500, 500), ("posterior", 2, 1000, 1000), ("posterior", 2, 500, 1000), ("posterior", 2, 1000, 1500), ("posterior", 2, 2000, 2000),
         ("posterior", 2, 5000, 5000), ("shifted", 2, 500, 500), ("shifted", 2, 2000, 2000), ("shifted", 2, 5000, 5000), ("normal", 5, 500, 500),
         ("normal", 5, 2000, 2000), ("normal", 8, 500, 500), ("normal", 8, 2000, 2000)]
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


def pair(rng, shape, d, n, m):
    if shape == "normal":
        return rng.standard_normal((n, d)), rng.standard_normal((m, d))
    target = posterior(rng)
    x, y = draws(rng, target, n), draws(rng, target, m)
    return x + (0.5 * x.std(axis=0) if shape == "shifted" else 0), y


def ours(program, pairs, d, n, m, repeats):
    with tempfile.NamedTemporaryFile() as file:
        for x, y in pairs:
            file.write(np.ascontiguousarray(x.T).tobytes() + np.ascontiguousarray(y.T).tobytes())
        file.flush()
        command = [program, file.name, str(d), str(n), str(m), str(repeats)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return np.array([line.split() for line in lines], float).T


def pot(x, y, repeats):
    cost = cdist(x, y)
    weights = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    best = np.inf
    for _ in range(repeats):
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
    print("shape      d    n x    m    ours: CPU ms   POT: CPU ms   ours / POT   largest difference")
    for shape, d, n, m in CASES:
        repeats, count = (REPEATS, PAIRS) if n < LARGE else (1, 2 if n == LARGE else 1)
        pairs = [pair(rng, shape, d, n, m) for _ in range(count)]
        distance, seconds = ours(options.program, pairs, d, n, m, repeats)
        pot_distance, pot_seconds = np.array([pot(x, y, repeats) for x, y in pairs]).T
        print(f"{shape:9} {d:2d} {n:4d} x {m:4d} {1e3 * np.median(seconds):13.2f} {1e3 * np.median(pot_seconds):13.2f}"
              f" {np.median(seconds / pot_seconds):12.2f} {np.abs(distance - pot_distance).max():16.1e}", flush=True)
        rows.append({"shape": shape, "d": d, "n": n, "m": m, "our_seconds": np.median(seconds), "pot_seconds": np.median(pot_seconds),
                     "ratio": np.median(seconds / pot_seconds), "largest_difference": np.abs(distance - pot_distance).max()})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


main()
