#!/usr/bin/env python3
"""Convert the task bernoulli_glm from a clone of sbi-benchmark/sbibm to files of this program.

    data/sbibm_glm.py CLONE OBSERVATION DIR      observations 1 to 10; creates DIR

Writes prior.nc (the task's Gaussian prior), history.csv (features and clicks) and reference.nc (the benchmark's reference draws), for
`thompson sample` and `thompson score --reference`. The features are those of the clone's design_matrix.pt, which needs PyTorch.
"""
import argparse
import pathlib

import netCDF4
import numpy as np


def prior_covariance(features=10):
    """theta_1 has variance 2; the filter theta_2 .. is smooth: precision F'F, F = D D + diag(sqrt(i / 9)), D takes differences."""
    size = features - 1
    differences = np.eye(size) - np.eye(size, k=-1)
    smooth = differences @ differences + np.diag(np.sqrt(np.arange(size) / size))
    covariance = np.zeros((features, features))
    covariance[0, 0] = 2
    covariance[1:, 1:] = np.linalg.inv(smooth.T @ smooth)
    return covariance


def write_prior(path, covariance):
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("component", 1), ("dim", len(covariance)), ("dim2", len(covariance))):
            file.createDimension(name, size)
        file.prior = "gaussian"
        file.createVariable("weight", "f8", ("component",))[:] = 1
        file.createVariable("mean", "f8", ("component", "dim"))[:] = 0
        file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = covariance[None]


def write_draws(path, theta):
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip(("draw", "dim"), theta.shape):
            file.createDimension(name, size)
        file.createVariable("theta", "f8", ("draw", "dim"))[:] = theta


def read_table(path):
    """The numbers of a CSV file with a header and any line ending; .bz2 is unpacked."""
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


def design_matrix(path):
    import torch
    return np.asarray(torch.load(path, map_location="cpu"), float)


def convert(clone, observation, folder):
    task = pathlib.Path(clone) / "sbibm" / "tasks" / "bernoulli_glm" / "files"
    case = task / f"num_observation_{observation}"
    x, y = design_matrix(task / "design_matrix.pt"), read_table(case / "observation_raw.csv").ravel()
    if x.shape != (len(y), 10):
        raise SystemExit(f"{task}: {len(y)} clicks and features of shape {x.shape}; 10 features of each click are expected")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    write_prior(folder / "prior.nc", prior_covariance())
    write_draws(folder / "reference.nc", read_table(case / "reference_posterior_samples.csv.bz2"))
    header = ",".join(f"x{i + 1}" for i in range(x.shape[1])) + ",y"
    np.savetxt(folder / "history.csv", np.column_stack([x, y]), delimiter=",", header=header, comments="", fmt="%.9g")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", metavar="CLONE", help="folder of the clone")
    parser.add_argument("observation", metavar="OBSERVATION", type=int, choices=range(1, 11))
    parser.add_argument("folder", metavar="DIR", help="new folder")
    arguments = parser.parse_args()
    convert(arguments.clone, arguments.observation, arguments.folder)


if __name__ == "__main__":
    main()
