#!/usr/bin/python3
"""CPU time and memory of `thompson sample --sampler mixts` beside a NumPy program for the same posterior, each with one BLAS thread.

usage: tests/external/mixture_posterior.py build/release/thompson

The posterior of a mixture of Gaussians is drawn by Matheron's rule: one Cholesky factor for each component, and matrices of the size of the observations.
CPU seconds are user + sys of the whole program, and for NumPy those after the imports.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

import resource
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np
from scipy import special

# Dimensions, components, observations, draws.
SIZES = [(16, 1, 20, 100), (16, 4, 20, 100), (64, 1, 20, 100), (64, 4, 20, 100), (256, 1, 20, 100), (256, 4, 20, 100), (512, 1, 20, 100), (512, 4, 20, 100),
         (1024, 1, 20, 100), (1024, 4, 20, 100), (800, 25, 4, 1000)]


def used(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def write_prior(path, d, components, rng):
    with netCDF4.Dataset(path, "w") as data:
        data.prior = "mixture" if components > 1 else "gaussian"
        for name, size in (("component", components), ("dim", d), ("dim2", d)):
            data.createDimension(name, size)
        data.createVariable("weight", "f8", ("component",))[:] = 1 / components
        data.createVariable("mean", "f8", ("component", "dim"))[:] = rng.standard_normal((components, d)) / np.sqrt(d)
        covariance = data.createVariable("covariance", "f8", ("component", "dim", "dim2"))
        for c in range(components):
            root = rng.standard_normal((d, 2 * d))
            covariance[c] = root @ root.T / (2 * d)


def write_rows(path, d, n, rng):
    x = rng.standard_normal((n, d)) / np.sqrt(d)
    y = x @ rng.standard_normal(d) + rng.standard_normal(n)
    header = ",".join(f"x{i + 1}" for i in range(d)) + ",y"
    np.savetxt(path, np.c_[x, y], delimiter=",", header=header, comments="", fmt="%.17g")


def draw(prior, rows, m, rng):
    """theta[m, d] from the posterior with noise 1."""
    with netCDF4.Dataset(prior) as data:
        weight, mean, covariance = (data[name][:].data for name in ("weight", "mean", "covariance"))
    table = np.loadtxt(rows, delimiter=",", skiprows=1, ndmin=2)
    x, y = table[:, :-1], table[:, -1]
    theta, logs, seen = np.empty((m, x.shape[1])), np.log(weight), []
    for c, (centre, spread) in enumerate(zip(mean, covariance)):
        along = spread @ x.T
        predicted = x @ along + np.eye(len(y))
        factor = np.linalg.cholesky(predicted)
        logs[c] -= np.log(np.diag(factor)).sum() + 0.5 * (np.linalg.solve(factor, y - x @ centre) ** 2).sum()
        seen.append((along, predicted))
    component = rng.choice(len(weight), m, p=special.softmax(logs))
    for c in np.unique(component):
        at = np.flatnonzero(component == c)
        along, predicted = seen[c]
        z = mean[c] + rng.standard_normal((len(at), x.shape[1])) @ np.linalg.cholesky(covariance[c]).T
        off = y - z @ x.T - rng.standard_normal((len(at), len(y)))
        theta[at] = z + np.linalg.solve(predicted, off.T).T @ along.T
    return theta


def main():
    print("     d    K    n  draws   NumPy s  thompson s  thompson MB")
    for d, components, n, m in SIZES:
        rng = np.random.default_rng(1)
        with tempfile.TemporaryDirectory() as folder:
            prior, rows, out = (os.path.join(folder, name) for name in ("prior.nc", "rows.csv", "draws.nc"))
            write_prior(prior, d, components, rng)
            write_rows(rows, d, n, rng)
            before = used(resource.RUSAGE_SELF)
            draw(prior, rows, m, rng)
            numpy_seconds = used(resource.RUSAGE_SELF) - before
            command = [sys.argv[1], "sample", "--sampler", "mixts", "--prior", prior, "--data", rows, "-n", str(m), "-o", out]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                sys.exit(process.returncode)
            print(f"{d:6d} {components:4d} {n:4d} {m:6d} {numpy_seconds:9.3f} {usage.ru_utime + usage.ru_stime:11.3f} {usage.ru_maxrss / 1e3:12.0f}", flush=True)


if __name__ == "__main__":
    main()
