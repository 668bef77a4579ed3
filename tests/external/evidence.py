#!/usr/bin/env python3
"""Log evidence of `twisted` and `smc_tempered` against closed forms and importance sampling in NumPy, which share no code with the project.

    tests/external/evidence.py PROGRAM [--cases 100] [--likelihood gaussian] [--dimension 2 8 80] [--policy twisted smc_tempered]

Each problem has a prior of four Gaussians of its own and 12 rewards. For each likelihood, dimension and policy it prints the share of problems
within three claimed standard errors and the median error in units of one; it fails unless they are at least 0.9 and below 1."""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "data"))
from make_cases import mixture_draw, write  # noqa: E402

ROWS, COMPONENTS, PROPOSALS = 12, 4, 20_000
NOISE = 0.5


def log_reward(likelihood, y, u):
    """log p(y | u) without constants that depend on y alone."""
    if likelihood == "gaussian":
        return -0.5 * ((y - u) / NOISE) ** 2 - np.log(NOISE) - 0.5 * np.log(2 * np.pi)
    return y * u - (np.logaddexp(0, u) if likelihood == "logistic" else np.exp(u))


def draw_reward(rng, likelihood, u):
    if likelihood == "gaussian":
        return u + NOISE * rng.normal(size=len(u))
    return (rng.uniform(size=len(u)) < 1 / (1 + np.exp(-u))).astype(float) if likelihood == "logistic" else rng.poisson(np.exp(np.minimum(u, 3))).astype(float)


def make_case(rng, d, likelihood, isotropic):
    mean = 1.5 * rng.normal(size=(COMPONENTS, d))
    weight = rng.dirichlet(np.full(COMPONENTS, 3.0))
    variance = rng.uniform(0.4, 1.2, size=COMPONENTS)
    factor = rng.normal(size=(COMPONENTS, d, d)) / np.sqrt(d)
    covariance = np.stack([v * np.eye(d) for v in variance]) + (0 if isotropic else 0.6 * factor @ factor.transpose(0, 2, 1))
    x = rng.normal(size=(ROWS, d)) / np.sqrt(d)
    theta = mixture_draw(rng, weight, mean, np.linalg.cholesky(covariance))
    case = {"weight": weight, "mean": mean, "x": x, "y": draw_reward(rng, likelihood, x @ theta), "theta": theta}
    case |= {"variance": variance} if isotropic else {"covariance": covariance}
    if likelihood == "gaussian":
        case["noise"] = NOISE
    return case, covariance


def log_normal(z, covariance):
    return -0.5 * (np.linalg.solve(covariance, z.T).T * z).sum(axis=-1) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]


def evidence(rng, case, covariance, likelihood):
    """The log evidence: in closed form or, in the coordinates u = x theta, by importance sampling around the mode of each component."""
    x, y, terms = case["x"], case["y"], []
    for weight, mean, own in zip(case["weight"], case["mean"], covariance):
        spread = x @ own @ x.T + 1e-12 * np.eye(ROWS)
        centre = x @ mean
        if likelihood == "gaussian":
            terms.append(np.log(weight) + log_normal(y - centre, spread + NOISE**2 * np.eye(ROWS)))
            continue
        root, a = np.linalg.cholesky(own), np.zeros(len(mean))  # theta = mean + root a, a ~ N(0, I)
        rows = x @ root
        for _ in range(100):
            u = centre + rows @ a
            p = 1 / (1 + np.exp(-u)) if likelihood == "logistic" else np.exp(np.minimum(u, 30))
            curvature = rows.T * (p * (1 - p) if likelihood == "logistic" else p) @ rows + np.eye(len(a))
            step = np.linalg.solve(curvature, rows.T @ (y - p) - a)
            a += step / max(1, np.abs(step).max())
        width = np.linalg.cholesky(np.linalg.inv(curvature))
        scale = 1.1 if len(a) < 20 else 1.0
        z = scale * rng.normal(size=(PROPOSALS, len(a)))
        points = a + z @ width.T
        log_ratio = -0.5 * (points**2).sum(axis=1) + log_reward(likelihood, y, centre + points @ rows.T).sum(axis=1)
        log_ratio += 0.5 * (z**2).sum(axis=1) / scale**2 + len(a) * np.log(scale) + np.log(np.diag(width)).sum()
        terms.append(np.log(weight) + np.logaddexp.reduce(log_ratio) - np.log(PROPOSALS))
    return np.logaddexp.reduce(terms)


def study(arguments, folder, cases, likelihood):
    write(folder / "cases.nc", cases, likelihood=likelihood, title="evidence", references="")
    (folder / "study.yaml").write_text(f"""name: evidence
study: posterior
seed: 1
runs: auto
draws: {arguments.draws}
metrics: [distance]
problem: {{family: cases, file: {folder}/cases.nc}}
prior: {{schedule: log_snr, stages: {arguments.stages}, first_snr: 1.0e+4, last_snr: 1.0e-5}}
policies: [{", ".join(arguments.policy)}]
""", encoding="utf-8")
    subprocess.run([arguments.program, "run", folder / "study.yaml", "-o", folder / "results"], check=True, stdout=subprocess.DEVNULL)
    with netCDF4.Dataset(folder / "results" / "results.nc") as file:
        return [np.asarray(file[name][0, :, :, 0]) for name in ("log_evidence", "log_evidence_se")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--stages", type=int, default=150)
    parser.add_argument("--likelihood", nargs="+", default=["gaussian", "logistic", "poisson"])
    parser.add_argument("--dimension", nargs="+", type=int, default=[2, 8, 80])
    parser.add_argument("--policy", nargs="+", default=["twisted", "smc_tempered"])
    parser.add_argument("--isotropic", action="store_true", help="covariances are multiples of the identity")
    arguments = parser.parse_args()
    rng, failed = np.random.default_rng(1), False
    for likelihood in arguments.likelihood:
        for d in arguments.dimension:
            made = [make_case(rng, d, likelihood, arguments.isotropic) for _ in range(arguments.cases)]
            truth = np.array([evidence(rng, case, covariance, likelihood) for case, covariance in made])
            if likelihood == "poisson":
                truth -= np.array([sum(math.lgamma(y + 1) for y in case["y"]) for case, _ in made])
            with tempfile.TemporaryDirectory() as folder:
                value, error = study(arguments, pathlib.Path(folder), [case for case, _ in made], likelihood)
            for policy, own, claimed in zip(arguments.policy, value, error):
                off = (own - truth) / claimed
                within, median = (np.abs(off) < 3).mean(), np.median(np.abs(off))
                print(f"{likelihood:9} d {d:3} {policy:12} within three {within:.2f}, median {median:.2f}; error {np.sqrt(np.mean((own - truth)**2)):.4f}, "
                      f"claimed {np.median(claimed):.4f}", flush=True)
                failed |= not (within >= 0.9 and median < 1)
    return failed


if __name__ == "__main__":
    sys.exit(main())
