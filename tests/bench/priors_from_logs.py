#!/usr/bin/env python3
"""How close a prior learned from logs of past tasks is to the true one (docs/results/logs.md): earth mover's distance between 2 000 samples of
it and 2 000 theta of the problem, for logs of 1 000 tasks, random arms in the unit ball, noise 1.

    PYTHONPATH=analysis tests/bench/priors_from_logs.py --observations 5 20 100 --components auto 10
    PYTHONPATH=analysis tests/bench/priors_from_logs.py --observations 20 --family diffusion [--theta]
    PYTHONPATH=analysis tests/bench/priors_from_logs.py --problems rays rays_and_cross --observations 50 --components 10 --family diffusion --rounds 3

--rounds sets the rounds of Monte-Carlo EM: DRAWS of the posterior of each task under the prior, by `twisted`, and a new prior fitted to them.
"""
import argparse

import numpy as np
import thompson
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

TASKS, SAMPLES, DRAWS = 1000, 2000, 4


def cross(n, rng):
    roots = np.linalg.cholesky([[[1, 0.99], [0.99, 1]], [[1, -0.9], [-0.9, 1]]])
    return np.einsum("nij,nj->ni", roots[rng.integers(2, size=n)], rng.standard_normal((n, 2)))


def rays(n, rng):
    u = rng.uniform(-3, 3, (40 * n, 2))
    length = np.hypot(*u.T)
    return u[(length < 3) & (abs(u).max(axis=1) > 0.95 * length)][:n]


def rays_and_cross(n, rng):
    return np.hstack([rays(n, rng), cross(n, rng)])


PROBLEMS = {problem.__name__: problem for problem in (rays, cross, rays_and_cross)}


def logs(theta, observations, likelihood, rng):
    """task, x, y: `observations` for each theta."""
    tasks, d = theta.shape
    x = rng.standard_normal((tasks, observations, d))
    x *= rng.uniform(size=x.shape[:2])[..., None] ** (1 / d) / np.linalg.norm(x, axis=-1, keepdims=True)
    u = np.einsum("mnd,md->mn", x, theta)
    y = u + rng.standard_normal(u.shape) if likelihood == "gaussian" else rng.uniform(size=u.shape) < 1 / (1 + np.exp(-u))
    return np.repeat(np.arange(tasks), observations), x.reshape(-1, d), y.ravel().astype(float)


def posterior_draws(prior, data, observations, likelihood, seed):
    """theta[task, draw], the tasks' posteriors one below the other; every task has its own random numbers."""
    _, x, y = data
    out = []
    for task in range(len(y) // observations):
        rows = slice(task * observations, (task + 1) * observations)
        posterior = thompson.Posterior(prior, "twisted", likelihood, 1.0, seed=seed * len(y) + task + 1, particles=4)
        posterior.observe(x[rows], y[rows])
        out.append(posterior.draw(DRAWS))
    return np.concatenate(out)


def distance(first, second):
    cost = cdist(first, second)
    return cost[linear_sum_assignment(cost)].mean()


def learned(theta, data, components, seed, arguments):
    """A prior from the logs of all tasks or, with --theta, from their true theta."""
    if arguments.theta:
        return thompson.train(theta=theta, family=arguments.family, seed=seed)
    return thompson.train(logs=data, family=arguments.family, likelihood=arguments.likelihood, seed=seed, components=components,
                          noise=1 if arguments.likelihood == "gaussian" else None)


def measure(problem, observations, components, arguments):
    """The distances after each round of Monte-Carlo EM, [seed, round]."""
    out = []
    for seed in range(1, arguments.seeds + 1):
        theta = problem(TASKS, np.random.default_rng([seed, 1]))
        data = logs(theta, observations, arguments.likelihood, np.random.default_rng([seed, 2]))
        prior = learned(theta, data, components, seed, arguments)
        true = problem(SAMPLES, np.random.default_rng([seed, 3]))
        rounds = [distance(prior.sample(SAMPLES, seed=seed), true)]
        for k in range(arguments.rounds):
            theta = posterior_draws(prior, data, observations, arguments.likelihood, seed=seed * (arguments.rounds + 1) + k)
            prior = thompson.train(theta=theta, family=arguments.family, seed=seed)
            rounds.append(distance(prior.sample(SAMPLES, seed=seed), true))
        out.append(rounds)
    return np.array(out)


def said(gap):
    return f"{gap.mean():+.3f} +- {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, nargs="+", default=[20])
    parser.add_argument("--components", nargs="+", default=["auto"])
    parser.add_argument("--family", default="mixture")
    parser.add_argument("--likelihood", choices=("gaussian", "logistic"), default="gaussian")
    parser.add_argument("--theta", action="store_true", help="learn from the true theta of the tasks instead of their logs")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=["rays", "cross"])
    arguments = parser.parse_args()
    for problem in (PROBLEMS[name] for name in arguments.problems):
        for observations in arguments.observations:
            first = None
            for components in arguments.components:
                got = measure(problem, observations, components, arguments)
                first = got if first is None else first
                print(f"{problem.__name__}, n = {observations}, {arguments.family}, {components} components: {got[:, 0].mean():.3f}, "
                      f"minus the first {said(got[:, 0] - first[:, 0])}", flush=True)
                for k in range(1, arguments.rounds + 1):
                    print(f"  after round {k}: {got[:, k].mean():.3f}, minus before {said(got[:, k] - got[:, 0])}", flush=True)


if __name__ == "__main__":
    main()
