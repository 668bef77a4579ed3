#!/usr/bin/env python3
"""NetCDF inputs of tests/io/test_dataset.c and tests/io/test_store.c, written by the libraries of other programs (xarray, netCDF4-python).

theta[i, j] = i + j / 8, x[i, j] = i - j / 4, y[i] = 3 i. Run in this folder; the files are committed.
"""

import netCDF4
import numpy as np
import xarray as xr

sample, dim = np.arange(5)[:, None], np.arange(3)[None, :]
theta = sample + dim / 8

xr.Dataset({"theta": (("sample", "dim"), theta.astype("f4"))}, attrs={"note": "größer"}).to_netcdf("dataset_float.nc")
xr.Dataset({"theta": (("dim", "sample"), theta.T)}).to_netcdf("dataset_transposed.nc")
xr.Dataset({"theta": (("sample", "dim"), theta)}).to_netcdf(
    "dataset_packed.nc", encoding={"theta": {"dtype": "i2", "scale_factor": 0.125}})

missing = theta.copy()
missing[3, 1] = np.nan
xr.Dataset({"theta": (("sample", "dim"), missing)}).to_netcdf(
    "dataset_missing.nc", encoding={"theta": {"_FillValue": -999.0}})


def history(name, form, rows):
    with netCDF4.Dataset(name, "w", format=form) as file:
        file.createDimension("observation", None)
        file.createDimension("dim", 3)
        x = file.createVariable("x", "f8", ("observation", "dim"))
        y = file.createVariable("y", "i2", ("observation",))
        tag = file.createVariable("tag", "i1", ("observation",))
        i = np.arange(rows)
        x[:] = (i[:, None] - dim / 4)[:rows]
        y[:] = 3 * i
        tag[:] = i


history("dataset_history_records.nc", "NETCDF3_CLASSIC", 4)
history("dataset_history_empty.nc", "NETCDF4", 0)
with netCDF4.Dataset("dataset_no_rewards.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
    file.createDimension("observation", 2)
    file.createDimension("dim", 1)
    file.createVariable("x", "f8", ("observation", "dim"))[:] = 1
