#!/usr/bin/env python3
"""Write public benchmarks of posterior sampling as files of cases, for `problem.family: cases`.

    data/make_cases.py mcgdiff --dimension 8 --observed 1 -o mcgdiff_8_1.nc      # 25 Gaussians, 20 problems (MCGDiff, ICLR 2024)
    data/make_cases.py bipsda_inpainting --noise 5 -o bipsda_inpainting_5.nc     # 3 Gaussians, 8 of 10 coordinates seen, 100 trials (BIPSDA)
    data/make_cases.py bernoulli_glm -o bernoulli_glm.nc                         # the ten observations of sbibm, logistic regression

The first two are drawn from their published laws, differently for each seed. `bernoulli_glm` has the published observations; its reference draws are
made here by importance sampling. `data/published/` has the published results."""

import argparse
import csv
import pathlib

import netCDF4
import numpy as np

PUBLISHED = pathlib.Path(__file__).resolve().parent / "published"
REFERENCES, PROPOSALS = 20_000, 400_000  # draws kept of each case, from so many


def mixture_draw(rng, weight, mean, root):
    """One draw of a mixture; root[c] is a square root of the covariance of component c."""
    component = rng.choice(len(weight), p=weight)
    return mean[component] + root[component] @ rng.normal(size=mean.shape[1])


def mcgdiff(rng, arguments):
    """Cardoso, Janati El Idrissi, Le Corff, Moulines, arXiv:2308.07983v2, Appendix on mixtures: means (8 i, 8 j, 8 i, 8 j, ..), unit
    covariances, weights chi-squared(1) over their sum; y = A x + sigma e, A = U diag(s) V' with the singular vectors of a Gaussian matrix, s
    uniform on [0, 1] in falling order, sigma = u max(s)."""
    d, rows = arguments.dimension, arguments.observed
    grid = np.arange(-2, 3)
    mean = np.stack([np.tile([8.0 * i, 8.0 * j], (d + 1) // 2)[:d] for i in grid for j in grid])
    for _ in range(arguments.cases or 20):
        weight = rng.chisquare(1, size=len(mean))
        weight /= weight.sum()
        left, _, right = np.linalg.svd(rng.normal(size=(rows, d)), full_matrices=False)
        singular = np.sort(rng.uniform(size=rows))[::-1]
        x = left * singular @ right
        noise = rng.uniform() * singular[0]
        theta = mean[rng.choice(len(mean), p=weight)] + rng.normal(size=d)
        yield {"weight": weight, "mean": mean, "variance": np.ones(len(mean)), "x": x, "y": x @ theta + noise * rng.normal(size=rows), "noise": noise, "theta": theta}


def bipsda_inpainting(rng, arguments):
    """arXiv:2503.03007 (IEEE OJSP 2025) and its code: 0.4 N(-5, I) + 0.3 N(0, D) + 0.3 N(5, Q' D Q), D = diag(1 .. 2), Q orthogonal; coordinates
    0, 1, 2, 4, 5, 6, 7, 9 are seen with noise 5 or 0.1."""
    d, seen = 10, [0, 1, 2, 4, 5, 6, 7, 9]
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.diag(np.linspace(1, 2, d))
    weight, mean = np.array([0.4, 0.3, 0.3]), np.array([-5.0, 0.0, 5.0])[:, None] * np.ones(d)
    covariance = np.stack([np.eye(d), spread, rotation.T @ spread @ rotation])
    root = np.linalg.cholesky(covariance)
    for _ in range(arguments.cases or 100):
        x, theta = np.eye(d)[seen], mixture_draw(rng, weight, mean, root)
        y = theta[seen] + arguments.noise * rng.normal(size=len(seen))
        yield {"weight": weight, "mean": mean, "covariance": covariance, "x": x, "y": y, "noise": arguments.noise, "theta": theta}


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def mode(x, sums, precision):
    """The mode of the posterior, by Newton's method, and its curvature; precision 0: the maximum of the likelihood. Only sums = x' y matter."""
    theta = np.zeros(x.shape[1])
    for _ in range(200):
        p = sigmoid(x @ theta)
        curvature = x.T * (p * (1 - p)) @ x + precision
        step = np.linalg.solve(curvature, sums - x.T @ p - precision @ theta)
        theta += step / max(1, np.abs(step).max())
        if np.abs(step).max() < 1e-13:
            break
    return theta, curvature


def importance_draws(rng, x, sums, precision):
    """Draws of the posterior of a logistic regression under N(0, precision^-1): importance resampling from Student's t with 8 degrees of freedom
    at the mode, 1.2 times as wide."""
    d, freedom = x.shape[1], 8
    centre, curvature = mode(x, sums, precision)
    root = 1.2 * np.linalg.cholesky(np.linalg.inv(curvature))
    z = rng.normal(size=(PROPOSALS, d)) / np.sqrt(rng.chisquare(freedom, size=(PROPOSALS, 1)) / freedom)
    theta = centre + z @ root.T
    log_weight = 0.5 * (freedom + d) * np.log1p((z * z).sum(axis=1) / freedom) + theta @ sums - 0.5 * ((theta @ precision) * theta).sum(axis=1)
    for first in range(0, PROPOSALS, 10_000):
        log_weight[first:first + 10_000] -= np.logaddexp(0, theta[first:first + 10_000] @ x.T).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return theta[rng.choice(PROPOSALS, size=REFERENCES, p=weight / weight.sum())]


def bernoulli_glm(rng, arguments):
    """sbi-benchmark/sbibm (Lueckmann et al. 2021, arXiv:2101.04653): 100 clicks on a constant and the last nine values of one stimulus. Only
    the sums x' y of the clicks y are published, and only these matter: y here are the shares of clicks that have the same sums at the maximum
    of the likelihood."""
    stimulus = np.random.RandomState(42).randn(100).astype(np.float32).astype(float)  # the generator of the benchmark
    x = np.stack([np.ones(100)] + [np.concatenate([np.zeros(lag), stimulus[:100 - lag]]) for lag in range(9)], axis=1)
    differences = np.eye(9) - np.eye(9, k=-1)
    smooth = differences @ differences + np.diag(np.sqrt(np.arange(9) / 9))
    precision = np.zeros((10, 10))
    precision[0, 0], precision[1:, 1:] = 0.5, smooth.T @ smooth
    with open(PUBLISHED / "bernoulli_glm_observations.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows[:arguments.cases or len(rows)]:
        sums, theta = (np.array([float(row[f"{name}{i + 1}"]) for i in range(10)]) for name in ("sum", "theta"))
        y = sigmoid(x @ mode(x, sums, np.zeros((10, 10)))[0])
        yield {"weight": np.ones(1), "mean": np.zeros((1, 10)), "covariance": np.linalg.inv(precision)[None], "x": x, "y": y, "theta": theta,
               "reference": importance_draws(rng, x, sums, precision)}


BENCHMARKS = {  # construction, likelihood, title, references
    "mcgdiff": (mcgdiff, "gaussian", "25 Gaussians of MCGDiff", "arXiv:2308.07983v2"),
    "bipsda_inpainting": (bipsda_inpainting, "gaussian", "inpainting of BIPSDA", "arXiv:2503.03007"),
    "bernoulli_glm": (bernoulli_glm, "logistic", "bernoulli_glm of sbibm", "arXiv:2101.04653"),
}
DIMENSIONS = {"weight": ("component",), "mean": ("component", "dim"), "variance": ("component",), "covariance": ("component", "dim", "dim2"),
              "x": ("observation", "dim"), "y": ("observation",), "noise": (), "theta": ("dim",), "reference": ("draw", "dim")}


def write(path, cases, **attributes):
    with netCDF4.Dataset(path, "w") as file:
        file.setncatts(attributes)
        file.createDimension("case", len(cases))
        for name, value in cases[0].items():
            for dimension, size in zip(DIMENSIONS[name], np.shape(value)):
                if dimension not in file.dimensions:
                    file.createDimension(dimension, size)
            file.createVariable(name, "f8", ("case", *DIMENSIONS[name]))[:] = np.stack([case[name] for case in cases])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(BENCHMARKS))
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="how many; default: as published")
    parser.add_argument("--dimension", type=int, default=8, help="of mcgdiff: published are 8, 80 and 800")
    parser.add_argument("--observed", type=int, default=1, help="numbers observed in mcgdiff: published are 1, 2 and 4")
    parser.add_argument("--noise", type=float, default=5, help="of bipsda_inpainting: published are 5 and 0.1")
    arguments = parser.parse_args(arguments)
    construct, likelihood, title, references = BENCHMARKS[arguments.name]
    cases = list(construct(np.random.default_rng(arguments.seed), arguments))
    write(arguments.output, cases, likelihood=likelihood, title=f"{title}, seed {arguments.seed}", references=references)


if __name__ == "__main__":
    main()
