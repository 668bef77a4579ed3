#!/usr/bin/python3
"""A prior file as a user would write it with xarray, in single precision; writes prior_mixture.nc next to this file."""

import pathlib

import numpy as np
import xarray as xr

prior = xr.Dataset(
    {
        "weight": ("component", np.array([0.3, 0.6, 0.1], "f4")),
        "mean": (("component", "dim"), np.array([[0, 1], [2, -1], [-3, 0.5]], "f4")),
        "covariance": (
            ("component", "dim", "dim2"),
            np.array([[[1, 0.3], [0.3, 2]], [[0.5, -0.1], [-0.1, 0.25]], [[4, 0], [0, 0.0625]]], "f4"),
        ),
    },
    attrs={"prior": "mixture"},
)
prior.to_netcdf(pathlib.Path(__file__).with_name("prior_mixture.nc"))
