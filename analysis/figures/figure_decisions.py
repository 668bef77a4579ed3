#!/usr/bin/env python3
"""Regret relative to the floor of regret: a row for each setting, a colour for each prior, hollow marks for Thompson sampling, filled marks for
the rule that was chosen on the other half of the runs.

For bandit studies with the metric regret_floor whose policies are methods with several rules (jobs/decisions.yaml and the like). The distance
between the filled marks of a row is what a better prior gains once the rule is right.

Reads results.nc of each DIR; writes figure_decisions.png and .pdf into the first DIR, and prints the numbers.
"""
import needs
import pathlib

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from thompson import Error, averages, design, selection, wording
import caption
import drawing
import script
import style

# The policies whose colours stand for priors, in words.
PRIORS = {"ts": "N(0, I)", "tuned_ts": "Gaussian, fitted", "mixts": "mixture, learned", "diffts": "diffusion model (DiffTS)", "exact": "known prior"}


def names(dataset):
    """The name of each setting: its distribution of theta*, and the swept values in which it differs from the first setting."""
    swept = {key: [wording.plain(value) for value in values] for key, values in design.swept(dataset).items()}
    theta = swept.pop("problem.theta", None)
    if theta is None:
        file = design.config(dataset, "problem.file")
        theta = [pathlib.Path(file).stem if file else design.config(dataset, "problem.theta")] * dataset.sizes["setting"]
    return [", ".join([theta[s], *(f"{key.split('.')[-1]} {values[s]}" for key, values in swept.items() if values[s] != values[0])]) for s in range(len(theta))]


def table(dataset):
    """The table of selection.control for one study, with the columns `name` (of the setting), `floor` and `floor_se`."""
    floor = averages.floor(dataset, "regret")
    if floor is None:
        raise Error("there is no floor of regret; metrics: [regret_floor] measures it")
    found = selection.control(dataset, "rule", "thompson")
    place = {title: s for s, title in enumerate(design.titles(dataset))}
    settings = found["setting"].map(place)
    end = averages.last_rounds(dataset)
    for column, values in (("floor", floor[0]), ("floor_se", floor[1])):
        found[column] = [values[s, end[s]] for s in settings]
    found["name"] = [names(dataset)[s] for s in settings]
    return found


def draw(tables, datasets):
    style.use()
    rows = [(name, group) for found in tables for name, group in found.groupby("name", sort=False)]
    figure, axis = plt.subplots(figsize=style.LOOK.size or (8, 1.2 + 0.34 * len(rows)), layout="constrained")
    used = {}  # {words of a prior: its mark}
    for y, (_, group) in enumerate(rows):
        for k, one in enumerate(group.itertuples()):
            (colour, marker), words = style.colour_and_marker(one.method), PRIORS.get(one.method, one.method)
            used[words] = Line2D([], [], color=colour, marker=marker, linestyle="", label=words)
            height = y + 0.2 * (k - (len(group) - 1) / 2)
            for value, error, filled in ((one.fixed, one.fixed_se, False), (one.reported, one.reported_se, True)):
                axis.errorbar(value / one.floor, height, xerr=error / one.floor, color=colour, marker=marker, markersize=5.5, elinewidth=1,
                              markerfacecolor=colour if filled else "white")
    axis.set_xscale("log")
    ticks = [1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlim(left=1)
    axis.set_yticks(range(len(rows)), [name for name, _ in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x")
    axis.set_xlabel("regret at the last round over the floor of regret")
    handles = [*used.values()]
    handles += [Line2D([], [], color=style.FAINT, marker="o", linestyle="", markerfacecolor=face, label=words)
                for face, words in (("white", "Thompson sampling"), (style.FAINT, "rule chosen on the other half"))]
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    style.caption(figure, -0.01, caption.facts(datasets))
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "such a study", several=True))
    datasets = drawing.results(arguments)
    tables = [table(dataset) for dataset in datasets]
    for found in tables:
        print(found.drop(columns="setting").to_string(index=False, float_format="{:.2f}".format))
    drawing.save(draw(tables, datasets), drawing.outputs(arguments, "figure_decisions"))


if __name__ == "__main__":
    script.run(main)
