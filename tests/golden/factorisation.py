#!/usr/bin/python3
"""Golden numbers for test_factorisation.c, from NumPy; writes factorisation.nc next to this file.

Alternating least squares on the artificial ratings of data/samples: a dense mask and one linear solve for each row, starting from the
movie vectors in the file.
"""

import pathlib

import numpy as np
import pandas as pd
import xarray as xr

HERE = pathlib.Path(__file__).resolve().parent
RANK, RIDGE, SWEEPS = 4, 0.7, 12

table = pd.read_csv(HERE.parent.parent / "data" / "samples" / "ratings.csv")
matrix = table.pivot(index="userId", columns="movieId", values="rating")
known = matrix.notna().to_numpy()
centred = np.where(known, matrix.to_numpy() - table["rating"].mean(), 0.0)


def ridge_rows(targets, mask, other):
    """One ridge regression for each row: [rows, RANK]."""
    return np.stack([np.linalg.solve(other[m].T @ other[m] + RIDGE * np.eye(RANK), other[m].T @ y[m])
                     for y, m in zip(targets, mask)])


start = item = np.random.default_rng(5).uniform(-1, 1, (known.shape[1], RANK))
rmse = []
for sweep in range(SWEEPS):
    user = ridge_rows(centred, known, item)
    item = ridge_rows(centred.T, known.T, user)
    rmse.append(np.sqrt(((centred - user @ item.T)[known] ** 2).mean()))

xr.Dataset(
    {
        "start": (("item", "dim"), start),
        "user_vector": (("user", "dim"), user),
        "item_vector": (("item", "dim"), item),
        "rmse": ("sweep", rmse),
    },
    attrs={"mean": table["rating"].mean(), "ridge": RIDGE},
).to_netcdf(HERE / "factorisation.nc")
