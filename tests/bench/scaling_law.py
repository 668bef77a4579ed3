#!/usr/bin/python3
"""How the cost of a bandit study grows: exponents of its CPU time in stages, rounds and runs, and its memory against rounds and runs.

Usage: scaling_law.py PATH_OF_thompson [--json FILE]

DiffTS in the plane with hidden layers of 20, as in peers.py. Each number is doubled four times, with the others fixed, and measured five times in a random order
(of the whole list, so that other load on the machine affects all sizes alike). The exponent is the slope of log CPU seconds on log size, by least squares, with its
95% interval. CPU seconds are those of the simulations (variable seconds), without priors; the cost of a round outside the stages keeps the exponent of the stages
below 1. Memory is the largest resident set of the program with Gaussian TS: for one shard of two, which only runs its tasks, and for the whole study,
whose reducer holds the curves of all runs.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np
from scipy import stats

REPEATS = 5
SIZES = {"stages": ("prior.stages", [50, 100, 200, 400, 800]), "rounds": ("problem.rounds", [25, 50, 100, 200, 400]),
         "runs": ("runs", [64, 128, 256, 512, 1024])}
MEMORY = {"rounds": ("problem.rounds", [100, 400, 1600, 6400, 25600]), "runs": ("runs", [128, 512, 2048, 8192, 32768])}
STUDY = """name: scaling
study: bandit
runs: 128
problem: {theta: cross, arms: 100, rounds: 100, noise: 1}
policies: [diffts]
prior: {stages: 100, hidden: [20, 20], train_samples: 2000, training_steps: 10}
"""


# The memory of a child also counts that of the process that started it, so that process must be small.
START = "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); _, status, usage = os.wait4(pid, 0); print(status, usage.ru_maxrss, file=sys.stderr)"


def run(program, folder, *arguments):
    """CPU seconds of all simulations (None without a reducer), and the largest resident set of the program in bytes."""
    out = pathlib.Path(folder) / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [program, "run", os.path.join(folder, "study.yaml"), "-o", str(out), "--progress", "none", *arguments]
    process = subprocess.run([sys.executable, "-S", "-E", "-c", START, *command], capture_output=True, text=True, check=True)
    status, kilobytes = map(int, process.stderr.split()[-2:])
    if status:
        sys.exit(f"scaling_law: {' '.join(command)} failed: {process.stderr}")
    seconds = None
    if "--shard" not in arguments:
        with netCDF4.Dataset(out / "results.nc") as file:
            seconds = float(np.sum(file["seconds"][:]))
    return seconds, 1024 * kilobytes


def law(program, folder, what):
    key, sizes = SIZES[what]
    order = [(size, turn) for turn in range(REPEATS) for size in sizes]
    random.Random(1).shuffle(order)
    seconds = [run(program, folder, "--set", f"{key}={size}")[0] for size, _ in order]
    size = np.array([size for size, _ in order], float)
    fit = stats.linregress(np.log(size), np.log(seconds))
    half = stats.t.ppf(0.975, len(size) - 2) * fit.stderr
    median = [float(np.median([s for s, (n, _) in zip(seconds, order) if n == wanted])) for wanted in sizes]
    print(f"CPU time ~ {what}^{fit.slope:.3f} +- {half:.3f}; " + ", ".join(f"{n}: {s:.4g} s" for n, s in zip(sizes, median)), flush=True)
    return {"what": what, "sizes": sizes, "seconds": median, "exponent": fit.slope, "half_width": half, "repeats": REPEATS}


def memory(program, folder, what):
    key, sizes = MEMORY[what]
    study = ["--set", "policies=[ts]", "--set", "runs=128"]
    tasks = [run(program, folder, *study, "--set", f"{key}={size}", "--shard", "0/2")[1] for size in sizes]
    whole = [run(program, folder, *study, "--set", f"{key}={size}")[1] for size in sizes]
    for name, found in (("tasks", tasks), ("whole study", whole)):
        print(f"memory of {name} by {what}: " + ", ".join(f"{n}: {b / 1e6:.1f} MB" for n, b in zip(sizes, found)), flush=True)
    return {"what": what, "sizes": sizes, "tasks_bytes": tasks, "bytes": whole}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "study.yaml").write_text(STUDY)
        found = {"cost": [law(arguments.program, folder, what) for what in SIZES], "memory": [memory(arguments.program, folder, what) for what in MEMORY]}
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
