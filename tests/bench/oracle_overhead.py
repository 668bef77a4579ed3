#!/usr/bin/env python3
"""What the program adds to the time of a denoising oracle: one of known cost, 5 ms of CPU time for 2 000 rows in 80 dimensions, asked by the samplers that
need a chain, in `thompson sample` and in a study on one and two ranks. Each process of the oracle measures itself from its first call to its last, so that
starting Python and writing files do not count.

    tests/bench/oracle_overhead.py PROGRAM [--repeats 5] [--draws 2000] [--observations 4] [--policy NAME ...] [--products]

`overhead` is what is left of the time from the first call to the last, over the time inside the oracle: median and range of the repeats. On a machine that
is busy it counts the turns of others; the CPU time of the program and of Python around the callable, over that inside the oracle, hardly do. The last column
is the rows of a call on average."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

D, SECONDS_PER_ROW = 80, 0.005 / 2000
ORACLE = f'''
import os, pathlib, time
import numpy as np

RECORD = np.memmap(pathlib.Path(os.environ["ORACLE_RECORDS"], str(os.getpid())), float, "w+", shape=(9,))
CALLS, ROWS, INSIDE, FIRST, LAST, PROGRAM_FIRST, PROGRAM_LAST, PYTHON, INSIDE_CPU = range(9)
STATE = {{}}

def program_seconds():
    """CPU time of the program."""
    return int(pathlib.Path(f"/proc/{{os.getppid()}}/schedstat").read_text().split()[0]) * 1e-9

def timed(m, answer):
    """Computes the answer, and is busy until the call has taken its time."""
    start, begin = time.process_time(), time.perf_counter()
    if not RECORD[CALLS]:
        STATE["cpu"] = start
        RECORD[FIRST], RECORD[PROGRAM_FIRST] = begin, program_seconds()
    result = answer()
    while time.process_time() - start < m * {SECONDS_PER_ROW}:
        pass
    end, stop = time.perf_counter(), time.process_time()
    RECORD[CALLS] += 1
    RECORD[ROWS] += m
    RECORD[INSIDE] += end - begin
    RECORD[INSIDE_CPU] += stop - start
    RECORD[PYTHON] = stop - STATE["cpu"] - RECORD[INSIDE_CPU]
    if end - STATE.get("asked", 0) > 0.02:
        RECORD[PROGRAM_LAST], STATE["asked"] = program_seconds(), end
    RECORD[LAST] = end
    return result

def oracle(x, sigma):
    """D of N(1, 0.5 I)."""
    return timed(len(x), lambda: 1 + (x - 1) * (0.5 / (0.5 + sigma ** 2)))

def product(x, sigma, v):
    return timed(len(x), lambda: v * (0.5 / (0.5 + sigma ** 2)))

if os.environ["ORACLE_PRODUCTS"] == "1":
    oracle.jvp = product
'''
STUDY = """
name: overhead
study: posterior
seed: 1
runs: 2
block: 1
draws: {draws}
metrics: [distance]
problem: {{family: synthetic, theta: mixture, file: {prior}, arms: {observations}, sample_sizes: [{observations}], noise: 0.5}}
prior: {{family: oracle, module: busy, callable: oracle, sigma_min: 0.01, sigma_max: 50, batch: {batch}}}
policies: [{{name: {policy}, prior: oracle}}]
"""


def run(command, folder, arguments):
    """Runs a command, and returns what its oracles recorded: [process, number]."""
    records = pathlib.Path(tempfile.mkdtemp(dir=folder))
    environment = dict(os.environ, PYTHONPATH=str(folder), THOMPSON_PYTHON=sys.executable, ORACLE_RECORDS=str(records),
                       ORACLE_PRODUCTS=str(int(arguments.products)))
    subprocess.run([str(word) for word in command], env=environment, check=True, stdout=subprocess.DEVNULL)
    found = np.array([np.fromfile(file) for file in records.iterdir()])
    return found[found[:, 0] > 0]


def shares(records):
    """Overhead, and the CPU time of the program and of Python around the callable, over what is inside; rows for each call."""
    calls, rows, inside, first, last, program_first, program_last, python, inside_cpu = records.sum(axis=0)
    return [(last - first - inside) / inside, (program_last - program_first) / inside_cpu, python / inside_cpu, rows / calls]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=4096, help="prior.batch of the studies")
    parser.add_argument("--observations", type=int, default=4)
    parser.add_argument("--policy", nargs="+", default=["twisted", "joint", "diffts", "dps", "tilted"])
    parser.add_argument("--products", action="store_true", help="the oracle has products of its own")
    parser.add_argument("--where", nargs="+", default=["sample", "1", "2"], help="sample, or the ranks of a study")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{'':18} {'overhead':>8} {'range':>15}  CPU: {'program':>7} {'Python':>7}  rows a call")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "busy.py").write_text(ORACLE, encoding="utf-8")
        x = rng.standard_normal((arguments.observations, D)) / np.sqrt(D)
        np.savetxt(folder / "data.csv", np.column_stack([x, x.sum(axis=1)]), delimiter=",", comments="", header=",".join([f"x{i + 1}" for i in range(D)] + ["y"]))
        with netCDF4.Dataset(folder / "prior.nc", "w") as file:
            file.prior = "mixture"
            for dimension, size in (("component", 1), ("dim", D), ("dim2", D)):
                file.createDimension(dimension, size)
            file.createVariable("weight", "f8", ("component",))[:] = [1]
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 1
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = 0.5 * np.eye(D)
        for policy in arguments.policy:
            (folder / "study.yaml").write_text(STUDY.format(batch=arguments.batch, draws=arguments.draws, observations=arguments.observations, policy=policy, prior=folder / "prior.nc"),
                                               encoding="utf-8")
            for where in arguments.where:
                out = folder / "out"
                command = [arguments.program, "sample", "--oracle", "busy:oracle", "--dimension", D, "--sigma-range", "0.01,50", "--noise", 0.5, "--data",
                           folder / "data.csv", "--sampler", policy, "-n", arguments.draws, "-o", folder / "draws.nc", "--seed", 1]
                if where != "sample":
                    command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", where, arguments.program, "run",
                               folder / "study.yaml", "-o", out, "--overwrite"]
                found = np.array([shares(run(command, folder, arguments)) for _ in range(arguments.repeats)])
                overhead, program, python, rows = np.median(found, axis=0)
                label = f"{policy}, {'sample' if where == 'sample' else where + ' ranks'}"
                print(f"{label:18} {overhead:8.1%} {found[:, 0].min():7.1%}-{found[:, 0].max():7.1%}       {program:7.1%} {python:7.1%}  {rows:.0f}", flush=True)


if __name__ == "__main__":
    main()
