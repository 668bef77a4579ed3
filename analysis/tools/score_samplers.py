#!/usr/bin/env python3
"""The samplers of this program on its frozen problems, judged only by their draws, which `thompson score` accepts from any sampler.

Every sampler is given the problem's own prior, except `ts`, which has N(0, I), and `mixts auto`, which has a mixture fitted to 10 000 samples
of the prior, its number of components chosen by held-out likelihood. Prints two Markdown tables: distance over floor (mean over numbers of
observations, with its standard error), and the p-value that ranks of theta* are uniform; and the CPU seconds for all draws.
"""
import needs
import argparse
import dataclasses
import time

import numpy as np

import script
import thompson

SAMPLES = 10000     # samples of the prior to which `mixts auto` is fitted
LEFT_OUT = "-"


def own(problem):
    return thompson.Prior.from_mixture(problem.weight, problem.mean, problem.covariance)


def standard(problem):
    d = problem.mean.shape[1]
    return thompson.Prior.from_mixture([1.0], np.zeros((1, d)), np.eye(d)[None])


def fitted(problem):
    return thompson.train(theta=own(problem).sample(SAMPLES), family="mixture", components="auto")


# Row of the table: sampler, its prior.
SAMPLERS = {
    "ts": ("ts", standard),
    "mixts auto": ("mixts", fitted),
    "diffts": ("diffts", own),
    "localised": ("localised", own),
    "smc_tempered": ("smc_tempered", own),
    "twisted": ("twisted", own),
    "exact": ("exact", own),
}


@dataclasses.dataclass
class Row:
    ratio: str = LEFT_OUT
    p: str = LEFT_OUT
    seconds: float = 0.0


def draw(problem, sampler, prior):
    """theta[history, draw, d]; every history has its own random numbers."""
    def of(number, x, y):
        posterior = thompson.Posterior(prior, sampler, problem.likelihood, problem.noise, seed=number + 1)
        if len(y):
            posterior.observe(x, y)
        return posterior.draw(problem.draws)

    return np.array([of(number, x, y) for number, (x, y) in enumerate(problem.histories)])


def measure(name, problem, label):
    sampler, make_prior = SAMPLERS[label]
    if not problem.covariance.any():  # the library has no prior of points
        return Row()
    prior = make_prior(problem)
    start = time.process_time()
    theta = draw(problem, sampler, prior)
    seconds = time.process_time() - start
    scored = thompson.score(name, theta)
    return Row(f"{scored['ratio']['mean']:.2f} ± {scored['ratio']['se']:.2f}", f"{scored['rank_p_value']:.2g}", seconds)


def table(title, rows, column):
    names = list(next(iter(rows.values())))
    lines = [f"| {title} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {label} | {' | '.join(column(row) for row in of.values())} |" for label, of in rows.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS), metavar="NAME", help="rows of the tables")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="columns of the tables; default: the whole pack")
    arguments = parser.parse_args()
    pack = {found: problem for name in arguments.problems or [None] for found, problem in thompson.problems(name).items()}
    rows = {label: {name: measure(name, problem, label) for name, problem in pack.items()} for label in arguments.samplers}
    print(table("distance over floor", rows, lambda row: row.ratio), end="\n\n")
    print(table("p of ranks", rows, lambda row: row.p), end="\n\n")
    print(table("CPU seconds", rows, lambda row: f"{row.seconds:.1f}"))


if __name__ == "__main__":
    script.run(main)
