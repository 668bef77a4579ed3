#!/usr/bin/python3
"""Golden numbers for test_emd.c, from POT; writes emd.nc next to this file.

Each case is a pair of clouds x[d, n], y[d, m] (stored one after the other) and their earth mover's distance. A second, slower answer from SciPy
(linear assignment; clouds of unequal size have their points repeated to the least common multiple) must agree before a number is written. The clouds
scaled by powers of two have exactly scaled distances: POT's own tolerances do not reach that far.
"""

import math
import pathlib

import numpy as np
import ot
import xarray as xr
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(29)


def normal(d, n, m):
    return rng.standard_normal((d, n)), rng.standard_normal((d, m))


def duplicates(d, n, m):
    """Points of a small grid, most of them many times."""
    return rng.integers(0, 4, (d, n)).astype(float), rng.integers(0, 4, (d, m)).astype(float)


def collinear(d, n, m):
    direction = rng.standard_normal((d, 1))
    return direction * rng.standard_normal(n), direction * (0.3 + rng.standard_normal(m))


def far(d, n, m):
    x, y = normal(d, n, m)
    return x, y + 1e6


def islands(d, n, m):
    """Two islands 1e5 apart; both clouds have points on both, in different proportions."""
    x, y = normal(d, n, m)
    x[0] += 1e5 * (rng.random(n) < 0.5)
    y[0] += 1e5 * (rng.random(m) < 0.4)
    return x, y


def equal(d, n, m):
    x, _ = normal(d, n, m)
    return x, x[:, rng.permutation(m)]


def distance(x, y):
    n, m = x.shape[1], y.shape[1]
    cost = cdist(x.T, y.T)
    answer = ot.emd2(np.full(n, 1 / n), np.full(m, 1 / m), cost, numItermax=10_000_000)
    common = math.lcm(n, m)
    if common <= 2000:
        repeated = np.repeat(np.repeat(cost, common // n, axis=0), common // m, axis=1)
        check = repeated[linear_sum_assignment(repeated)].mean()
        assert abs(check - answer) <= 1e-10 * cost.max(), (answer, check)
    return answer


CASES = [
    (normal, 1, 1, 1, 0), (normal, 3, 2, 2, 0), (normal, 1, 60, 60, 0), (normal, 2, 17, 17, 0), (normal, 2, 300, 300, 0),
    (normal, 5, 128, 128, 0), (normal, 10, 100, 100, 0), (duplicates, 1, 40, 40, 0), (duplicates, 2, 90, 90, 0),
    (duplicates, 3, 50, 50, 0), (collinear, 2, 80, 80, 0), (collinear, 4, 33, 33, 0), (far, 2, 70, 70, 0),
    (islands, 2, 100, 100, 0), (equal, 2, 100, 100, 0), (normal, 2, 50, 50, -600), (normal, 2, 50, 50, 600),
    (normal, 1, 1, 7, 0), (normal, 2, 9, 1, 0), (normal, 1, 30, 20, 0), (normal, 2, 200, 300, 0), (normal, 2, 97, 89, 0),
    (normal, 10, 60, 80, 0), (duplicates, 2, 60, 45, 0), (collinear, 3, 40, 70, 0), (far, 2, 50, 60, 0),
    (islands, 2, 100, 80, 0), (normal, 2, 40, 50, -600), (normal, 2, 40, 50, 600),
]

rows, xs, ys = [], [], []
for kind, d, n, m, exponent in CASES:
    x, y = kind(d, n, m)
    rows.append((d, n, m, np.ldexp(distance(x, y), exponent)))
    xs.append(np.ldexp(x, exponent).ravel())
    ys.append(np.ldexp(y, exponent).ravel())

d, n, m, emd = zip(*rows)
xr.Dataset(
    {
        "dimension": ("case", np.array(d, float)),
        "n": ("case", np.array(n, float)),
        "m": ("case", np.array(m, float)),
        "emd": ("case", np.array(emd)),
        "x": ("x_value", np.concatenate(xs)),
        "y": ("y_value", np.concatenate(ys)),
    },
    attrs={"source": f"POT {ot.__version__}"},
).to_netcdf(HERE / "emd.nc")
