#!/usr/bin/python3
"""How the cost of a draw grows, sampler by sampler: its exponents in dimensions, observations, stages and runs, compared with theory.

Usage: cost_exponents.py PATH_OF_thompson [--json FILE]

Each number is doubled several times with the others fixed, with REPEATS passes over all sizes; the sizes are passed to `thompson bench --set`, which measures a
draw after n observations, including the update with the last of them. The exponent is the slope of log CPU seconds on log size, by least squares over the minimum
of the repeats (other programs can only add time), and next to it the slope of the last doubling, which is closer to the limit that theory describes. About 3 CPU minutes.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

REPEATS = 2
FEW = ["runs=8", "block=8", "problem.dimension=3", "prior.hidden=[32,32]", "prior.stages=10"]
# number: (keys that hold it, sizes, the other settings, CPU seconds for each sampler and size: all observations must be made within them)
NUMBERS = {
    "d": (["problem.dimension"], [5, 10, 20, 40], ["runs=16", "block=16", "prior.hidden=[32,32]", "prior.stages=10", "problem.rounds=10"], 0.1),
    "n": (["problem.rounds"], [50, 100, 200, 400], FEW, 0.4),
    "n, logistic": (["problem.rounds"], [50, 100, 200, 400], [*FEW, "likelihood=logistic", "problem.arms=1000"], 0.4),
    "T": (["prior.stages"], [25, 50, 100, 200], ["runs=64", "block=64", "problem.dimension=3", "prior.hidden=[32,32]", "problem.rounds=20"], 0.05),
    "B": (["runs", "block"], [64, 128, 256, 512], ["problem.dimension=3", "prior.hidden=[32,32]", "prior.stages=10", "problem.rounds=5"], 0.1),
}
CHAIN = ["diffts", "dps", "joint", "twisted", "tilted"]
# Exponents of the fastest-growing terms, for large values of one number and the others fixed. In d: 3 is a factor, an inverse or a product of d x d
# matrices, 2 a product of such a matrix with a vector, 1 only vectors. In n: 0 where the posterior depends on sums over the history (rewards are
# Gaussian, or treated as such) or an observation is used once and forgotten, 1 where all rows are visited: there are as many rows as arms that were
# played, since the rewards of an arm are collected, so there are more arms here than observations. Every sampler has exponent 1 in B, and those that
# go through the stages of a chain have 1 in T.
THEORY = {
    "ts": (3, 0, 1), "tuned_ts": (3, 0, 1), "mixts": (3, 0, 1), "exact": (3, 0, None), "diffts": (3, 0, 1), "dps": (2, 0, 1), "joint": (3, 0, 1),
    "twisted": (3, 0, 1), "localised": (3, 0, 1), "smc": (1, 0, 0), "smc_tempered": (2, 0, 1), "lints": (3, 0, 0), "vits1": (3, 0, 1), "vits2": (3, 0, 1),
    "vits2_hf": (3, 0, 1), "lmc": (2, 0, 1), "fgts": (2, 0, 1), "vts": (2, 0, 1), "rvga": (3, 0, 0), "tilted": (3, 0, None), "mala": (3, 0, None),
}


def theory(sampler, number):
    if number == "B":
        return 1
    if number == "T":
        return 1 if sampler in CHAIN else None
    return THEORY[sampler][["d", "n", "n, logistic"].index(number)]


def measure(program, samplers, number):
    """{sampler: {size: CPU seconds per draw of one run}}."""
    keys, sizes, others, seconds = NUMBERS[number]
    found = {sampler: {} for sampler in samplers}
    for size in sizes:
        settings = [*others, *(f"{key}={size}" for key in keys)]
        command = [program, "bench", "--json", "--seconds", str(seconds), "--samplers", ",".join(samplers), *(word for each in settings for word in ("--set", each))]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            sys.exit(f"cost_exponents: {' '.join(command)} failed: {process.stderr}")
        for row in json.loads(process.stdout)["rows"]:
            if row["observations"] == row["rounds"]:    # all of them were made in the time
                found[row["sampler"]][size] = row["seconds_per_draw"] * (size if number == "B" else 1)
    return found


def exponent(by_size):
    size, seconds = (np.log(list(values)) for values in (by_size.keys(), by_size.values()))
    return float(np.polyfit(size, seconds, 1)[0]), float((seconds[-1] - seconds[-2]) / (size[-1] - size[-2]))


def law(program, number):
    samplers = [sampler for sampler in THEORY if theory(sampler, number) is not None]
    repeats = [measure(program, samplers, number) for _ in range(REPEATS)]
    for sampler in samplers:
        least = {size: min(repeat[sampler].get(size, np.inf) for repeat in repeats) for size in NUMBERS[number][1]}
        least = {size: cost for size, cost in least.items() if np.isfinite(cost)}
        slope, last = exponent(least) if len(least) > 1 else (None, None)
        print(f"{sampler:13} in {number:12} {slope if slope is None else round(slope, 2)}, last doubling {last if last is None else round(last, 2)}, "
              f"theory {theory(sampler, number)}", flush=True)
        yield {"sampler": sampler, "number": number, "sizes": list(least), "seconds": list(least.values()), "exponent": slope, "last": last,
               "theory": theory(sampler, number)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    rows = [row for number in NUMBERS for row in law(arguments.program, number)]
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
