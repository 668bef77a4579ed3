#!/usr/bin/python3
"""How much faster a study gets with the ranks of this machine: wall-clock seconds on 1, 2, 4 ... ranks, for the same study and for one that grows with them.

Usage: scaling_ranks.py PATH_OF_thompson [--study STUDY.yaml] [--set KEY=VALUE]... [--turns N] [--most N]

Strong: the study as it is; its efficiency on N ranks is T(1) / (N T(N)). Weak: N times the runs; T(1) / T(N). Times are wall-clock times of whole jobs, from the
start of mpiexec to results.nc, and so only meaningful if nothing else runs: the load before each turn is printed. The rank counts take turns, and each
efficiency is computed within one turn.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import yaml


def seconds(program, study, ranks, runs, sets):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        command = ["mpiexec", "--bind-to", "none", "-n", str(ranks), program, "run", study, "-o", os.path.join(folder, "out"), "--progress", "none", *sets, "--set",
                   f"runs={runs}"]
        start = time.monotonic()
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        taken = time.monotonic() - start
    if process.returncode:
        sys.exit(f"scaling_ranks: {' '.join(command)} failed: {process.stderr}")
    return taken


def spread(values):
    return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--study", default=str(pathlib.Path(__file__).resolve().parents[2] / "jobs/figure2.yaml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--most", type=int, default=len(os.sched_getaffinity(0)), help="ranks at most; all cores by default")
    options = parser.parse_args()
    runs = yaml.safe_load(pathlib.Path(options.study).read_text(encoding="utf-8"))["runs"]
    runs = next((int(key.removeprefix("runs=")) for key in reversed(options.set) if key.startswith("runs=")), runs)
    sets = [part for key in options.set for part in ("--set", key)]
    counts = [2**k for k in range(options.most.bit_length()) if 2**k <= options.most]
    strong, weak = {n: [] for n in counts}, {n: [] for n in counts}
    for turn in range(options.turns):
        load = os.getloadavg()[0]
        one = seconds(options.program, options.study, 1, runs, sets)
        strong[1].append(one)
        weak[1].append(one)
        for n in counts[1:]:
            strong[n].append(seconds(options.program, options.study, n, runs, sets))
            weak[n].append(seconds(options.program, options.study, n, n * runs, sets))
        print(f"turn {turn + 1}, load {load:.1f}:", " ".join(f"{n}: {strong[n][-1]:.2f} s, {weak[n][-1]:.2f} s with {n} times the runs" for n in counts), flush=True)
    print("\n| ranks | s | strong efficiency | s, runs times ranks | weak efficiency |\n|---|---|---|---|---|")
    for n in counts:
        print(f"| {n} | {spread(strong[n])} | {spread([a / b / n for a, b in zip(strong[1], strong[n])])} | {spread(weak[n])} | "
              f"{spread([a / b for a, b in zip(weak[1], weak[n])])} |")


if __name__ == "__main__":
    main()
