#!/usr/bin/env python3
"""How near the draws of samplers come to posteriors of clicks: sliced Wasserstein distance over its floor.

Cases: a prior N(0, tau^2 I), features of length 1, clicks of a theta* of the prior; for tau = 3 mixtures of three Gaussians too, with means
from N(0, 9 I) and covariances I. The truth is importance sampling by a NumPy program of its own: multivariate t about expectation propagation's
Gaussians, whose effective size is printed. A distance is the mean over random directions of W1 between 500 draws and 500 of the truth, over
that between two such sets of the truth; both are means over sets. Prints a Markdown table.
"""
import needs
import argparse
import time

import numpy as np

import script
import thompson

DIRECTIONS, DRAWS, SETS, TRUTH = 100, 500, 8, 100_000
TAUS = (0.3, 1.0, 3.0, 10.0)
SAMPLERS = {
    "`mixts`": ("mixts", {}),
    "`mixts`, 16 candidates": ("mixts", {"candidates": 16}),
    "`mixts`, 1 candidate": ("mixts", {"candidates": 1}),
    "`mixts`, Laplace": ("mixts", {"approximation": "laplace"}),
    "`localised`": ("localised", {}),
    "`localised`, 4 particles": ("localised", {"particles": 4}),
    "`smc_tempered`": ("smc_tempered", {}),
    "`vits1`": ("vits1", {}),
    "`vits2`": ("vits2", {}),
    "`vits2_hf`": ("vits2_hf", {}),
    "`vts`": ("vts", {}),
    "`rvga`": ("rvga", {}),
}


def make_case(rng, d, n, tau, components=1):
    """Weight, mean and covariance of the prior, features and clicks."""
    weight = np.full(components, 1 / components)
    mean = np.zeros((components, d)) if components == 1 else tau * rng.standard_normal((components, d))
    covariance = np.repeat(np.eye(d)[None] * (tau**2 if components == 1 else 1), components, axis=0)
    c = rng.integers(components)
    theta = mean[c] + np.linalg.cholesky(covariance[c]) @ rng.standard_normal(d)
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return weight, mean, covariance, x, (rng.random(n) < 1 / (1 + np.exp(-x @ theta))).astype(float)


def log_likelihood(theta, x, y):
    return -np.logaddexp(0, np.where(y > 0, -1, 1) * (theta @ x.T)).sum(axis=1)


def propagate(mean, covariance, x, y):
    """Expectation propagation by NumPy: mean and covariance of the approximation of one Gaussian prior."""
    node, weight = np.polynomial.hermite_e.hermegauss(61)
    weight = weight / weight.sum()
    precision, lam, nu = np.linalg.inv(covariance), np.full(len(y), 0.05), y - 0.5
    for _ in range(200):
        s = np.linalg.inv(precision + x.T @ (lam[:, None] * x))
        m = s @ (precision @ mean + x.T @ nu)
        v, mu = np.einsum("li,ij,lj->l", x, s, x), x @ m
        w = 1 / (1 / v - lam)
        centre = w * (mu / v - nu)
        u = centre[:, None] + np.sqrt(w)[:, None] * node
        p = weight / (1 + np.exp(-np.where(y > 0, 1, -1)[:, None] * u))
        z = p.sum(axis=1)
        first = (p * u).sum(axis=1) / z
        second = np.maximum((p * u**2).sum(axis=1) / z - first**2, 1e-12)
        change = np.maximum(1 / second - 1 / w, 1e-8) - lam
        nu = nu + 0.5 * (first / second - centre / w - nu)
        lam = lam + 0.5 * change
        if np.abs(change).max() < 1e-4:
            break
    return m, s


def truth(rng, weight, mean, covariance, x, y):
    """Draws of the posterior, and the effective size behind them."""
    d, nu = mean.shape[1], 8
    theta, log_q, log_p = [], [], []
    parts = [propagate(m, c, x, y) for m, c in zip(mean, covariance)]
    for m, s in parts:
        z = rng.standard_normal((TRUTH // len(parts), d)) / np.sqrt(rng.chisquare(nu, (TRUTH // len(parts), 1)) / nu)
        theta.append(m + 1.1 * z @ np.linalg.cholesky(s).T)
    theta = np.concatenate(theta)
    for m, s in parts:
        square = np.einsum("ni,ij,nj->n", theta - m, np.linalg.inv(1.21 * s), theta - m)
        log_q.append(-0.5 * (nu + d) * np.log1p(square / nu) - 0.5 * np.linalg.slogdet(s)[1])
    for w, m, c in zip(weight, mean, covariance):
        square = np.einsum("ni,ij,nj->n", theta - m, np.linalg.inv(c), theta - m)
        log_p.append(np.log(w) - 0.5 * square - 0.5 * np.linalg.slogdet(c)[1])
    ratio = np.logaddexp.reduce(log_p) + log_likelihood(theta, x, y) - np.logaddexp.reduce(log_q)
    p = np.exp(ratio - ratio.max())
    p /= p.sum()
    return theta, p, 1 / (p**2).sum()


def distance(a, b, directions):
    return np.abs(np.sort(a @ directions, axis=0) - np.sort(b @ directions, axis=0)).mean()


def ratio(rng, draws, theta, p):
    """Distance over floor of draws[SETS, DRAWS, d]."""
    directions = rng.standard_normal((theta.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    true = theta[rng.choice(len(p), (2, SETS, DRAWS), p=p)]
    floor = np.mean([distance(a, b, directions) for a, b in zip(*true)])
    return np.mean([distance(a, b, directions) for a, b in zip(draws, true[0])]) / floor


def measure(rng, case, samplers, seconds):
    weight, mean, covariance, x, y = case
    theta, p, size = truth(rng, *case)
    prior, out = thompson.Prior.from_mixture(weight, mean, covariance), {}
    for name in samplers:
        sampler, options = SAMPLERS[name]
        if sampler in ("vits1", "vits2", "vits2_hf", "vts", "rvga") and len(weight) > 1:
            out[name] = np.nan
            continue
        before = time.process_time()
        posterior = thompson.Posterior(prior, sampler, "logistic", seed=1, **options)
        posterior.observe(x, y)
        draws = posterior.draw(SETS * DRAWS).reshape(SETS, DRAWS, -1)
        seconds[name] = seconds.get(name, 0) + time.process_time() - before
        out[name] = ratio(rng, draws, theta, p)
    return out, size


def table(rows, head):
    print("| | " + " | ".join(head) + " |\n|" + "---|" * (len(head) + 1))
    for name, values in rows:
        print(f"| {name} | " + " | ".join(values) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=4, help="for each tau, d and n")
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    arguments = parser.parse_args()
    rng, found, sizes, seconds = np.random.default_rng(20260), {}, [], {}
    cases = [(tau, d, n, 1) for tau in TAUS for d in (2, 5, 10, 20) for n in (20, 100, 500)] + [(3.0, 5, n, 3) for n in (20, 100, 500)]
    for tau, d, n, components in cases:
        for _ in range(arguments.histories):
            out, size = measure(rng, make_case(rng, d, n, tau, components), arguments.samplers, seconds)
            sizes.append(size)
            for name, value in out.items():
                found.setdefault((name, tau, components), []).append(value)
    columns = [(tau, 1) for tau in TAUS] + [(3.0, 3)]
    table([(name, [f"{np.mean(v):.2f} ({np.max(v):.2f})" for v in (found[name, *column] for column in columns)] + [f"{seconds[name]:.2f}"])
           for name in arguments.samplers], [f"tau = {tau:g}" + (", three components" if c > 1 else "") for tau, c in columns] + ["CPU s"])
    print(f"{arguments.histories} histories for each of {len(cases)} cases; the least effective size of the truth is {min(sizes):.0f}.")


if __name__ == "__main__":
    script.run(main)
