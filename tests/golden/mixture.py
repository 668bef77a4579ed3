#!/usr/bin/python3
"""Golden numbers of Gaussian mixtures, from NumPy, SciPy and scikit-learn; writes mixture.nc next to this file.

Samples of four priors of the DiffTS paper with the best mean log likelihood that scikit-learn's GaussianMixture finds in
many starts (some minutes); and densities, scores and moments of fixed mixtures.
"""

import pathlib

import numpy as np
import xarray as xr
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

rng = np.random.default_rng(1)
N = 1000


def accepted(inside):
    points = np.empty((0, 2))
    while len(points) < N:
        u = rng.uniform(-3, 3, (4 * N, 2))
        points = np.concatenate([points, u[inside(u[:, 0], u[:, 1])]])
    return points[:N]


def cross():
    which = rng.integers(2, size=N)
    pair = np.array([[[1, 0.99], [0.99, 1]], [[1, -0.9], [-0.9, 1]]])
    return np.einsum("nij,nj->ni", np.linalg.cholesky(pair)[which], rng.standard_normal((N, 2)))


def swirl():
    u, v = rng.uniform(size=(2, N))
    radius = 3.5 * u - u * (v - 0.5)
    return np.stack([np.sin(2 * np.pi * u) * radius + 1, np.cos(2 * np.pi * u) * radius - 1], axis=1)


names = ["cross", "rays", "triangles", "swirl"]
samples = np.stack([
    cross(),
    accepted(lambda x, y: (np.hypot(x, y) < 3) & (np.maximum(abs(x), abs(y)) > 0.95 * np.hypot(x, y))),
    accepted(lambda x, y: ((x > 0) & (abs(y) < x)) | ((x < 0) & (abs(y) < abs(x) / 3))),
    swirl(),
])
components = [2, 4]
likelihood = np.empty((len(names), len(components)))
for i in range(len(names)):
    for j, count in enumerate(components):
        fits = [GaussianMixture(count, tol=1e-9, max_iter=5000, n_init=40, init_params=start, random_state=3).fit(samples[i])
                for start in ["kmeans", "k-means++", "random_from_data"]]
        likelihood[i, j] = max(fit.score(samples[i]) for fit in fits)

out = xr.Dataset({
    "samples": (("family", "dim", "sample"), samples.transpose(0, 2, 1)),
    "likelihood": (("family", "count", ), likelihood),
    "count": (("count",), np.array(components, "i4")),
})

# Densities of fixed mixtures in 1, 2 and 5 dimensions at points near and far.
for d, count in [(1, 3), (2, 2), (5, 4)]:
    weight = rng.dirichlet(np.full(count, 3.0))
    mean = 2 * rng.standard_normal((count, d))
    root = rng.standard_normal((count, d, d))
    covariance = np.einsum("cij,ckj->cik", root, root) / d + 0.05 * np.eye(d)
    points = np.concatenate([3 * rng.standard_normal((20, d)), 60 * rng.standard_normal((20, d))])
    precision = np.linalg.inv(covariance)

    each = np.stack([np.log(w) + multivariate_normal(m, s).logpdf(points).reshape(-1)
                     for w, m, s in zip(weight, mean, covariance)])
    density = logsumexp(each, axis=0)
    shift = points[None] - mean[:, None]
    pull = np.einsum("cij,cnj->cni", precision, shift)
    share = np.exp(each - density)
    score = -np.einsum("cn,cni->ni", share, pull)

    average = weight @ mean
    spread = np.einsum("c,cij->ij", weight, covariance)
    spread += np.einsum("c,ci,cj->ij", weight, mean - average, mean - average)
    tail = f"_{d}"
    for name, dims, value in [
        ("weight", ("component",), weight), ("mean", ("component", "dim"), mean),
        ("covariance", ("component", "dim", "dim2"), covariance), ("points", ("dim", "point"), points.T),
        ("density", ("point",), density), ("score", ("dim", "point"), score.T),
        ("total_mean", ("dim",), average), ("total_covariance", ("dim", "dim2"), spread),
    ]:
        out[name + tail] = (tuple(dim + tail for dim in dims), value)

out.attrs["title"] = "Golden numbers of Gaussian mixtures, written by mixture.py"
path = pathlib.Path(__file__).with_name("mixture.nc")
out.to_netcdf(path, encoding={name: {"_FillValue": None} for name in out.variables})
print(path, dict(zip(names, likelihood.round(5).tolist())))
