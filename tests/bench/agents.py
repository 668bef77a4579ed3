#!/usr/bin/env python3
"""Agents by the thousand compared with NumPy: CPU time of a choice and an observation, and memory, for the exact posterior under a mixture of Gaussians.

    tests/bench/agents.py [--agents 10000] [--clicks OPTION=VALUE,...]

`loop` serves one agent after the other in NumPy, `batched` all of them in one array of matrices; both keep the evidence and draw by Cholesky factors, as
the library does. With --clicks only the library is measured, with logistic rewards and these options of the sampler."""

import argparse
import os
import resource
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"      # one core for both; set before NumPy reads it

import numpy as np  # noqa: E402

import thompson  # noqa: E402

D, COMPONENTS, ARMS, NOISE = 10, 8, 10, 0.5


def peak():
    """The peak memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Numpy:
    """n agents; evidence as arrays, draws for any number of them at once."""

    def __init__(self, n, weight, mean, covariance):
        self.inverse = np.linalg.inv(covariance)
        self.shift = np.einsum("cij,cj->ci", self.inverse, mean)
        self.constant = np.log(weight) - 0.5 * (np.linalg.slogdet(covariance)[1] + np.einsum("ci,ci->c", mean, self.shift))
        self.precision, self.vector = np.zeros((n, D, D)), np.zeros((n, D))
        self.rng = np.random.default_rng(1)

    def choose(self, ids, arms):
        precision = self.inverse + self.precision[ids, None]                      # [m, c, d, d]
        vector = self.shift + self.vector[ids, None]
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, vector[..., None])[..., 0]
        log_weight = self.constant + 0.5 * (half ** 2).sum(-1) - np.log(np.einsum("mcii->mci", root)).sum(-1)
        component = (log_weight + self.rng.gumbel(size=log_weight.shape)).argmax(-1)
        at = np.arange(len(ids)), component
        noise = half[at] + self.rng.standard_normal((len(ids), D))
        theta = np.linalg.solve(np.swapaxes(root[at], -1, -2), noise[..., None])[..., 0]
        return (theta @ arms.T).argmax(-1)

    def observe(self, ids, x, y):
        self.precision[ids] += x[:, :, None] * x[:, None] / NOISE ** 2
        self.vector[ids] += x * y[:, None] / NOISE ** 2


def measure(agents, ids, arms, rounds, each=None):
    """Microseconds of CPU time for an agent's choice and observation, the minimum over some rounds; `each`: agents per call."""
    rng, best = np.random.default_rng(2), np.inf
    for _ in range(rounds):
        begin = time.process_time()
        for part in np.split(ids, range(each, len(ids), each)) if each else [ids]:
            arm = agents.choose(part, arms)
            agents.observe(part, arms[arm], rng.integers(2, size=len(part)).astype(float))
        best = min(best, time.process_time() - begin)
    return best / len(ids) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--clicks", metavar="OPTIONS", help="options of mixts: memory=filtered")
    arguments = parser.parse_args()
    rng, ids = np.random.default_rng(3), np.arange(arguments.agents)
    mixture = np.full(COMPONENTS, 1 / COMPONENTS), rng.standard_normal((COMPONENTS, D)), np.stack([np.eye(D)] * COMPONENTS)
    prior, arms = thompson.Prior.from_mixture(*mixture), rng.standard_normal((ARMS, D))
    made = {"likelihood": "gaussian", "noise": NOISE} if arguments.clicks is None else {
        "likelihood": "logistic", **dict(pair.split("=") for pair in arguments.clicks.split(",") if pair)}
    thompson.Agents(prior, 100, **made).choose(range(100), arms)  # memory that is allocated once
    before = peak()
    agents = thompson.Agents(prior, arguments.agents, seed=1, **made)
    spent = measure(agents, ids, arms, arguments.rounds)
    print(f"library: {spent:.2f} us, {peak() - before:.1f} MB for {arguments.agents} agents after {arguments.rounds} rounds")
    if arguments.clicks is None:
        some = ids[:1000]
        print(f"NumPy, batched: {measure(Numpy(len(some), *mixture), some, arms, 3):.0f} us; NumPy, loop: {measure(Numpy(len(some), *mixture), some[:200], arms, 3, each=1):.0f} us")


if __name__ == "__main__":
    main()
