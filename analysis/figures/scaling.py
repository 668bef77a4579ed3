#!/usr/bin/env python3
"""Parallel efficiency against the number of ranks, strong and weak, from results folders of one study on different numbers of ranks.

Give the folders of runs that differ in `mpi_ranks` and, for weak scaling, in the key `runs`. Folders with the same number of runs
form a strong line, folders with the same number of runs per rank a weak one; a folder may belong to both. Throughput is completed
runs (of all settings and policies) per second of the whole job, including learning the priors and writing the results;
efficiency is throughput per rank relative to that of the fewest ranks of the line, 1 being perfect. Folders with equal ranks and
runs are repetitions: the line goes through their median.

Each study must have run in one piece, since its results contain only the last job's wall-clock time (variable seconds_wall). Files
written by `thompson reduce` are refused, and so are files whose CPU seconds exceed ranks times wall-clock seconds, since these were
resumed. `busy` is the share of that product that runs took; the rest is learning, writing and waiting. Prints the table too.

Reads results.nc of each DIR; writes scaling.png and .pdf into the first DIR.
"""
import needs
import numpy as np
import pandas as pd

from thompson import Error, averages, design, store
import drawing
import script
import style
from style import plt

LINES = {"strong": ("runs", style.TRUE_PRIOR, "o"), "weak": ("runs_per_rank", style.LEARNED_PRIOR, "s")}
COLUMNS = ["line", "ranks", "runs", "runs_per_rank", "wall", "throughput", "speedup", "efficiency", "busy", "folder"]
SLACK = 1.1         # allowed ratio of CPU seconds to ranks times wall-clock seconds: clocks and rounding
FREE = {"runs"}     # keys that may differ


def one(folder):
    """What a study says about its own time, as a row."""
    dataset = store.results(folder, kind=None)
    if "seconds_wall" not in dataset:
        raise Error(f"{folder}: the results have no wall-clock time (variable seconds_wall), because an older program wrote them")
    done = averages.counts(dataset)[0]
    if (done < averages.asked(dataset)[:, None]).any():
        raise Error(f"{folder}: {averages.run_words(dataset)}; scaling needs finished studies")
    wall, ranks = float(dataset["seconds_wall"]), int(dataset.attrs.get("mpi_ranks", 1))
    spent = float(np.nansum(dataset["seconds"].values))
    if " reduce " in dataset.attrs.get("history", ""):
        raise Error(f"{folder}: the results were written by `thompson reduce`, so they do not contain the time of the run")
    if spent > SLACK * wall * ranks:
        raise Error(f"{folder}: {spent:.3g} CPU seconds do not fit into {wall:.3g} s on {ranks} ranks; the study was resumed, "
                    "and the time of its first job is not in the results")
    keys = {key: value for key, value in design.keys(dataset).items() if key not in FREE}
    return {"folder": str(folder), "ranks": ranks, "runs": int(done.sum()), "wall": wall, "busy": spent / (wall * ranks)}, keys


def frame(folders):
    """One row for each folder and each line to which it belongs: ranks, runs, wall-clock seconds, throughput, speed-up and efficiency."""
    rows, first = [], None
    for folder in folders:
        row, keys = one(folder)
        first = keys if first is None else first
        other = [key for key in {**first, **keys} if first.get(key) != keys.get(key)]
        if other:
            raise Error(f"{folder}: not the same study as {folders[0]}; key {other[0]} is {keys.get(other[0])} there and "
                        f"{first.get(other[0])} here")
        rows.append(row)
    table = pd.DataFrame(rows)
    table["throughput"] = table.runs / table.wall
    table["runs_per_rank"] = table.runs / table.ranks
    found = []
    for line, (same, _, _) in LINES.items():
        for _, group in table.groupby(same, sort=True):
            if group.ranks.nunique() < 2:
                continue
            fewest = group[group.ranks == group.ranks.min()]
            group = group.assign(line=line, speedup=group.throughput / fewest.throughput.median(), efficiency=(
                group.throughput / group.ranks) / (fewest.throughput / fewest.ranks).median())
            found.append(group.sort_values("ranks", kind="stable"))
    if not found:
        raise Error("no two folders differ in mpi_ranks and have the same number of runs, or of runs per rank")
    return pd.concat(found, ignore_index=True)[COLUMNS]


def draw(table):
    style.use()
    figure, axis = plt.subplots(figsize=style.LOOK.size or (5.2, 3.6))
    axis.axhline(1, color=style.FAINT, linewidth=0.8, linestyle=":")
    for line, (same, colour, marker) in LINES.items():
        for value, group in table[table.line == line].groupby(same):
            middle = group.groupby("ranks").efficiency.median()
            what = f"{value:g} runs" + (" for each rank" if line == "weak" else "")
            axis.plot(middle.index, middle.values, color=colour, marker=marker, label=f"{line}: {what}")
            axis.plot(group.ranks, group.efficiency, color=colour, marker=marker, linestyle="none", alpha=0.4)
    ranks = sorted(table.ranks.unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(value) for value in ranks])
    axis.minorticks_off()
    axis.set(xlabel="ranks", ylabel="parallel efficiency", ylim=(0, max(1.1, 1.05 * table.efficiency.max())))
    style.values(axis)
    axis.legend(loc="lower left")
    text = ("Runs per second of the whole job, including learning and writing, per rank, relative to the fewest ranks. Dotted: perfect. "
            "Faint: single jobs; lines: their median.")
    style.caption(figure, -0.02, [text])
    return figure


def main():
    parser = drawing.options(__doc__)
    parser.add_argument("folders", metavar="DIR", nargs="+", help="results folder of a finished study")
    arguments = drawing.parse(parser)
    table = frame(arguments.folders)
    print(table.to_string(index=False, float_format="{:.3g}".format))
    drawing.save(draw(table), drawing.outputs(arguments, "scaling"))


if __name__ == "__main__":
    script.run(main)
