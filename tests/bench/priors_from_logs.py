#!/usr/bin/env python3
"""How near a prior that was learned from logs of past tasks is to the true one (docs/results/logs.md): earth mover's distance of 2 000 samples of
it to 2 000 theta of the problem, for logs of 1 000 tasks, random arms in the unit ball, noise 1.

    PYTHONPATH=analysis tests/bench/priors_from_logs.py --observations 5 20 100 --components auto 10
    PYTHONPATH=analysis tests/bench/priors_from_logs.py --observations 20 --family diffusion
"""
import argparse

import numpy as np
import thompson
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

TASKS, SAMPLES = 1000, 2000


def cross(n, rng):
    roots = np.linalg.cholesky([[[1, 0.99], [0.99, 1]], [[1, -0.9], [-0.9, 1]]])
    return np.einsum("nij,nj->ni", roots[rng.integers(2, size=n)], rng.standard_normal((n, 2)))


def rays(n, rng):
    u = rng.uniform(-3, 3, (40 * n, 2))
    length = np.hypot(*u.T)
    return u[(length < 3) & (abs(u).max(axis=1) > 0.95 * length)][:n]


def logs(theta, observations, likelihood, rng):
    """task, x, y: `observations` of each theta."""
    x = rng.standard_normal((len(theta), observations, 2))
    x *= np.sqrt(rng.uniform(size=x.shape[:2])[..., None]) / np.linalg.norm(x, axis=-1, keepdims=True)
    u = np.einsum("mnd,md->mn", x, theta)
    y = u + rng.standard_normal(u.shape) if likelihood == "gaussian" else rng.uniform(size=u.shape) < 1 / (1 + np.exp(-u))
    return np.repeat(np.arange(len(theta)), observations), x.reshape(-1, 2), y.ravel().astype(float)


def distance(first, second):
    cost = cdist(first, second)
    return cost[linear_sum_assignment(cost)].mean()


def measure(problem, observations, components, arguments):
    """The distance of each seed, and the number of components where that is left to the program."""
    out = []
    for seed in range(1, arguments.seeds + 1):
        data = logs(problem(TASKS, np.random.default_rng([seed, 1])), observations, arguments.likelihood, np.random.default_rng([seed, 2]))
        prior = thompson.train(logs=data, family=arguments.family, likelihood=arguments.likelihood, seed=seed, components=components,
                               noise=1 if arguments.likelihood == "gaussian" else None)
        out.append(distance(prior.sample(SAMPLES, seed=seed), problem(SAMPLES, np.random.default_rng([seed, 3]))))
    return np.array(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, nargs="+", default=[20])
    parser.add_argument("--components", nargs="+", default=["auto"])
    parser.add_argument("--family", default="mixture")
    parser.add_argument("--likelihood", choices=("gaussian", "logistic"), default="gaussian")
    parser.add_argument("--seeds", type=int, default=4)
    arguments = parser.parse_args()
    for problem in (rays, cross):
        for observations in arguments.observations:
            first = None
            for components in arguments.components:
                got = measure(problem, observations, components, arguments)
                first = got if first is None else first
                gap = got - first
                print(f"{problem.__name__}, n = {observations}, {arguments.family}, {components} components: {got.mean():.3f}, "
                      f"minus the first {gap.mean():+.3f} +- {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}", flush=True)


if __name__ == "__main__":
    main()
