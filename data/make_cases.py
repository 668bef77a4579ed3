#!/usr/bin/env python3
"""Write public benchmarks of posterior sampling as files of cases, for `problem.family: cases`.

    data/make_cases.py mcgdiff --dimension 8 --observed 1 -o mcgdiff_8_1.nc      # 25 Gaussians, 20 problems (MCGDiff, ICLR 2024)
    data/make_cases.py bipsda_inpainting --noise 5 -o bipsda_inpainting_5.nc     # 3 Gaussians, 8 of 10 coordinates seen, 100 trials (BIPSDA)
    data/make_cases.py bipsda_tomography -o bipsda_tomography.nc                 # the same prior, counts of photons on 15 paths
    data/make_cases.py bipsda_phase_retrieval -o bipsda_phase_retrieval.nc       # the same prior, squares of 5 combinations
    data/make_cases.py bernoulli_glm -o bernoulli_glm.nc                         # the ten observations of sbibm, logistic regression

All but the last are drawn from their published laws, differently for each seed. `bernoulli_glm` has the published observations. Where no closed form
gives the posterior, reference draws are made here by importance sampling, and the smallest effective size is printed. `data/published/` has the published results."""

import argparse
import csv
import itertools
import pathlib

import netCDF4
import numpy as np

PUBLISHED = pathlib.Path(__file__).resolve().parent / "published"
REFERENCES, PROPOSALS = 20_000, 400_000  # draws kept of each case, from so many
EFFECTIVE = []  # the effective sizes of these, case by case


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


def bipsda_prior(rng):
    """arXiv:2503.03007 (IEEE OJSP 2025) and its code: 0.4 N(-5, I) + 0.3 N(0, D) + 0.3 N(5, Q' D Q), D = diag(1 .. 2), Q orthogonal, d = 10."""
    rotation = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    spread = np.diag(np.linspace(1, 2, 10))
    return np.array([0.4, 0.3, 0.3]), np.array([-5.0, 0.0, 5.0])[:, None] * np.ones(10), np.stack([np.eye(10), spread, rotation.T @ spread @ rotation])


def bipsda_inpainting(rng, arguments):
    """Coordinates 0, 1, 2, 4, 5, 6, 7, 9 are seen with noise 5 or 0.1."""
    seen = [0, 1, 2, 4, 5, 6, 7, 9]
    weight, mean, covariance = bipsda_prior(rng)
    root = np.linalg.cholesky(covariance)
    for _ in range(arguments.cases or 100):
        x, theta = np.eye(10)[seen], mixture_draw(rng, weight, mean, root)
        y = theta[seen] + arguments.noise * rng.normal(size=len(seen))
        yield {"weight": weight, "mean": mean, "covariance": covariance, "x": x, "y": y, "noise": arguments.noise, "theta": theta}


def bipsda_tomography(rng, arguments):
    """Counts of mean 1 000 exp(-A (x + 10)) on 15 paths, A uniform on [0.01, 0.05]. Here theta = x + 10, and rows are those of -A. Proposals are
    t-distributed around the mode of each component, with weights from Laplace's approximation."""
    weight, mean, covariance = bipsda_prior(rng)
    mean, root, precision, exposure = mean + 10, np.linalg.cholesky(covariance), np.linalg.inv(covariance), 1000.0
    for _ in range(arguments.cases or 100):
        x, theta = -rng.uniform(0.01, 0.05, size=(15, 10)), mixture_draw(rng, weight, mean, root)
        y = rng.poisson(exposure * np.exp(x @ theta)).astype(float)

        def log_likelihood(points):
            u = points @ x.T
            return u @ y - exposure * np.exp(u).sum(axis=1)

        modes, roots, heights = [], [], []
        for c in range(3):
            centre = mean[c]
            for _ in range(100):
                rate = exposure * np.exp(x @ centre)
                curvature = x.T * rate @ x + precision[c]
                step = np.linalg.solve(curvature, x.T @ (y - rate) - precision[c] @ (centre - mean[c]))
                centre = centre + step / max(1, np.abs(step).max())
            modes.append(centre)
            roots.append(np.linalg.cholesky(np.linalg.inv(curvature)))
            off = centre - mean[c]
            heights.append(np.log(weight[c]) + log_likelihood(centre[None])[0] - 0.5 * off @ precision[c] @ off + 0.5 * np.linalg.slogdet(precision[c])[1] + np.log(np.diag(roots[c])).sum())
        share = np.exp(heights - np.max(heights))
        share = np.maximum(share / share.sum(), 1e-3)
        target = Target(lambda points: log_likelihood(points) + mixture_log_density(points, weight, mean, precision), share / share.sum(), np.array(modes), 1.1 * np.array(roots))
        yield {"weight": weight, "mean": mean, "covariance": covariance, "x": x, "y": y, "exposure": exposure, "theta": theta, "reference": target.draws(rng)}


def bipsda_phase_retrieval(rng, arguments):
    """y = (A x)^2 + 25 e, A standard normal, 5 rows. Rewards depend on h = A x alone, whose prior is a mixture in five dimensions: proposals are
    t-distributed around the modes of h for every component and all 32 signs, and x is drawn given h."""
    weight, mean, covariance = bipsda_prior(rng)
    prior_root, noise, signs = np.linalg.cholesky(covariance), 25.0, np.array(list(itertools.product((-1, 1), repeat=5)))
    for _ in range(arguments.cases or 100):
        x, theta = rng.normal(size=(5, 10)), mixture_draw(rng, weight, mean, prior_root)
        y = (x @ theta) ** 2 + noise * rng.normal(size=5)
        seen_mean, seen_covariance = mean @ x.T, x @ covariance @ x.T
        precision = np.linalg.inv(seen_covariance)

        def log_likelihood(h):
            return -0.5 * (((y - h**2) / noise) ** 2).sum(axis=-1)

        found = {}  # modes, without those that several signs lead to
        for c in range(3):
            for h in signs * np.sqrt(np.maximum(y, noise)):
                for _ in range(200):
                    curvature = np.diag((2 * h / noise) ** 2) + precision[c]
                    step = np.linalg.solve(curvature, 2 * h * (y - h**2) / noise**2 - precision[c] @ (h - seen_mean[c]))
                    h = h + 0.5 * step / max(1, np.abs(step).max())
                root, off = np.linalg.cholesky(np.linalg.inv(curvature)), h - seen_mean[c]
                height = np.log(weight[c]) + log_likelihood(h) - 0.5 * off @ precision[c] @ off + 0.5 * np.linalg.slogdet(precision[c])[1] + np.log(np.diag(root)).sum()
                found[c, *np.round(h, 2)] = height, h, root
        heights, centres, roots = (np.array(part) for part in zip(*found.values()))
        share = np.exp(heights - heights.max())
        kept = share > 1e-4
        share = np.maximum(share[kept] / share.sum(), 1e-2)
        target = Target(lambda h: log_likelihood(h) + mixture_log_density(h, weight, seen_mean, precision), share / share.sum(), centres[kept], 1.3 * roots[kept])
        yield {"weight": weight, "mean": mean, "covariance": covariance, "x": x, "y": y, "noise": noise, "theta": theta,
               "reference": given_products(rng, x, target.draws(rng), weight, mean, covariance)}


def given_products(rng, x, h, weight, mean, covariance):
    """Draws of theta from a mixture, each given x theta = one row of h: draws without that, moved by what they miss."""
    seen_mean, precision = mean @ x.T, np.linalg.inv(x @ covariance @ x.T)
    terms = np.stack([np.log(w) + 0.5 * np.linalg.slogdet(p)[1] - 0.5 * np.einsum("ni,ij,nj->n", h - m, p, h - m) for w, m, p in zip(weight, seen_mean, precision)])
    share = np.exp(terms - np.logaddexp.reduce(terms))
    component = (rng.uniform(size=len(h)) > np.cumsum(share, axis=0)[:-1]).sum(axis=0)
    theta = np.empty((len(h), mean.shape[1]))
    for c in range(len(weight)):
        own = component == c
        free = mean[c] + rng.normal(size=(own.sum(), mean.shape[1])) @ np.linalg.cholesky(covariance[c]).T
        theta[own] = free + (h[own] - free @ x.T) @ precision[c] @ x @ covariance[c]
    return theta


def mixture_log_density(points, weight, mean, precision):
    """The log density of a mixture, up to a constant."""
    terms = [np.log(w) + 0.5 * np.linalg.slogdet(p)[1] - 0.5 * np.einsum("ni,ij,nj->n", points - m, p, points - m) for w, m, p in zip(weight, mean, precision)]
    return np.logaddexp.reduce(terms)


class Target:
    """A density known up to a constant, and a mixture of Student's t with 8 degrees of freedom from which it is sampled: shares, centres, roots."""
    FREEDOM = 8

    def __init__(self, log_density, share, centre, root):
        self.log_density, self.share, self.centre, self.root = log_density, share, centre, root

    def log_proposal(self, points):
        d = points.shape[1]
        terms = []
        for share, centre, root in zip(self.share, self.centre, self.root):
            z = np.linalg.solve(root, (points - centre).T)
            terms.append(np.log(share) - np.log(np.diag(root)).sum() - 0.5 * (self.FREEDOM + d) * np.log1p((z * z).sum(axis=0) / self.FREEDOM))
        return np.logaddexp.reduce(terms)

    def draws(self, rng):
        """Reference draws by importance resampling."""
        count = rng.multinomial(PROPOSALS, self.share)
        points = []
        for n, centre, root in zip(count, self.centre, self.root):
            z = rng.normal(size=(n, len(centre))) / np.sqrt(rng.chisquare(self.FREEDOM, size=(n, 1)) / self.FREEDOM)
            points.append(centre + z @ root.T)
        points = np.concatenate(points)
        log_weight = np.concatenate([self.log_density(part) - self.log_proposal(part) for part in np.array_split(points, PROPOSALS // 10_000 + 1)])
        weight = np.exp(log_weight - log_weight.max())
        EFFECTIVE.append(weight.sum() ** 2 / (weight * weight).sum())
        return points[rng.choice(PROPOSALS, size=REFERENCES, p=weight / weight.sum())]


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
        centre, curvature = mode(x, sums, precision)

        def log_density(points):
            return points @ sums - 0.5 * ((points @ precision) * points).sum(axis=1) - np.logaddexp(0, points @ x.T).sum(axis=1)

        target = Target(log_density, np.ones(1), centre[None], 1.2 * np.linalg.cholesky(np.linalg.inv(curvature))[None])
        yield {"weight": np.ones(1), "mean": np.zeros((1, 10)), "covariance": np.linalg.inv(precision)[None], "x": x, "y": y, "theta": theta,
               "reference": target.draws(rng)}


BENCHMARKS = {  # construction, likelihood, title, references
    "mcgdiff": (mcgdiff, "gaussian", "25 Gaussians of MCGDiff", "arXiv:2308.07983v2"),
    "bipsda_inpainting": (bipsda_inpainting, "gaussian", "inpainting of BIPSDA", "arXiv:2503.03007"),
    "bipsda_tomography": (bipsda_tomography, "poisson", "tomography of BIPSDA", "arXiv:2503.03007"),
    "bipsda_phase_retrieval": (bipsda_phase_retrieval, "squared", "phase retrieval of BIPSDA", "arXiv:2503.03007"),
    "bernoulli_glm": (bernoulli_glm, "logistic", "bernoulli_glm of sbibm", "arXiv:2101.04653"),
}
DIMENSIONS = {"weight": ("component",), "mean": ("component", "dim"), "variance": ("component",), "covariance": ("component", "dim", "dim2"),
              "x": ("observation", "dim"), "y": ("observation",), "noise": (), "exposure": (), "theta": ("dim",), "reference": ("draw", "dim")}


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
    if EFFECTIVE:
        print(f"reference draws: {REFERENCES} of {PROPOSALS} proposals, whose effective number is at least {min(EFFECTIVE):.0f}")


if __name__ == "__main__":
    main()
