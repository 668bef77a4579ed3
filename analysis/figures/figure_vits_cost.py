#!/usr/bin/env python3
"""CPU time of VITS and its rivals (VITS paper, Appendix I), from convergence and bandit studies.

Give one or more results folders; the panels that they allow are drawn. From a convergence study: Kullback-Leibler divergence from
the target against CPU time, one panel for each setting, mean over runs with a band of one standard error; and, if it sweeps
problem.dimension, the cost of one step against d. From a bandit study that sweeps problem.rounds: the cost of a round against the
number of observations so far, which is the extra cost of extra rounds, one panel for each setting of the other keys; and, if it
also sweeps problem.dimension, the cost of the last rounds against d.

Time is that of the whole block divided by its runs, which advance together in vector lanes; for a Markov chain it includes the
burn-in. Prints the slopes of straight lines through log cost against log d and log t.

Reads results.nc of each DIR; writes figure_vits_cost.png and .pdf into the first DIR.
"""
import needs
import dataclasses

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter

from thompson import Error, averages, design, metrics, store, wording
import caption
import convergence
import drawing
import labels
import panel
import script
import style

DIMENSION, ROUNDS = "problem.dimension", "problem.rounds"
MICRO = 1e6
LOWEST = 1e-4           # divergences below this leave the axis


@dataclasses.dataclass
class Cost:
    """One panel: {label: (x, y, error of y or None)}."""
    title: str
    xlabel: str
    ylabel: str
    lines: dict
    marked: bool            # few points, each with a marker; their slope is printed


def divergence(dataset):
    """Panels of the divergence against time."""
    (mean, error), cost, before = averages.moments(dataset, "kl"), convergence.step_cost(dataset), convergence.burn_in(dataset)
    steps, labels = dataset["step"].values, design.labels(dataset)
    return [Cost(title, "CPU milliseconds per run", "divergence from the target (KL)",
                 {label: (1e3 * cost[s, p] * (before[p] + steps), mean[s, p], error[s, p]) for p, label in enumerate(labels)},
                 False) for s, title in enumerate(design.titles(dataset))]


def against(dataset, key, values, cost):
    """{label: (x, y, None)} of costs [setting, policy] against the values [setting] of a key."""
    order = np.argsort(values, kind="stable")
    return {label: (values[order].astype(float), MICRO * cost[order, p], None)
            for p, label in enumerate(design.policy_names(dataset))}


def of_convergence(dataset):
    made, swept = divergence(dataset), design.swept(dataset)
    if list(swept) == [DIMENSION]:
        made.append(Cost("one step", "dimension", "CPU microseconds", against(dataset, DIMENSION, swept[DIMENSION],
                                                                           convergence.step_cost(dataset)), True))
    return made


def of_rounds(dataset):
    """Between two numbers of rounds, a round costs the difference in time over the difference in rounds, at the midpoint between them."""
    swept, cost = design.swept(dataset), metrics.over_runs(dataset, "seconds")[0]
    rounds = swept[ROUNDS].astype(float)
    others = [tuple((key, wording.plain(values[s])) for key, values in swept.items() if key != ROUNDS) for s in range(len(rounds))]
    made, last = [], {}
    for other in dict.fromkeys(others):
        here = np.array([s for s, one in enumerate(others) if one == other])
        here = here[np.argsort(rounds[here], kind="stable")]
        if len(here) < 2:
            raise Error(f"the cost of a round needs at least two values of {ROUNDS}")
        each = np.diff(cost[here], axis=0) / np.diff(rounds[here])[:, None]
        middle = (rounds[here][1:] + rounds[here][:-1]) / 2
        made.append(Cost(", ".join(["one round", *(f"{key.split('.')[-1]} = {value}" for key, value in other)]),
                         "observations so far", "CPU microseconds",
                         {label: (middle, MICRO * each[:, p], None) for p, label in enumerate(design.policy_names(dataset))}, True))
        last[other] = each[-1]
    if [key for key in swept if key != ROUNDS] == [DIMENSION]:
        made.append(Cost(f"one round, {wording.plain(middle[-1])} observations", "dimension", "CPU microseconds",
                         against(dataset, DIMENSION, np.array([float(other[0][1]) for other in last]),
                                 np.stack(list(last.values()))), True))
    return made


def panels(dataset):
    """The panels that one study allows."""
    if store.axis(dataset) == "step":
        return of_convergence(dataset)
    if store.axis(dataset) == "round" and ROUNDS in design.swept(dataset):
        return of_rounds(dataset)
    raise Error(f"this needs a convergence study, or a bandit study that sweeps {ROUNDS}")


def slopes(made):
    """One row for each line of the marked panels."""
    rows = []
    for one in made:
        for label, (x, y, _) in one.lines.items() if one.marked else ():
            use = np.isfinite(y) & (y > 0)
            rows.append((one.title, one.xlabel, label, *convergence.slope(x[use], y[use]), int(use.sum())))
    return pd.DataFrame(rows, columns=["panel", "against", "policy", "slope", "se", "points"])


def draw_panel(axis, one, styles):
    for label, (x, y, error) in one.lines.items():
        use = np.isfinite(y) & (y > 0)
        drawn = styles[label] if one.marked else {**styles[label], "marker": None}
        axis.loglog(x[use], y[use], zorder=3, **drawn)
        if error is not None and np.isfinite(error).any():
            axis.fill_between(x[use], np.maximum(y - error, 1e-3 * y)[use], (y + error)[use], color=styles[label]["color"],
                              alpha=0.22, linewidth=0)
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
        each.set_minor_formatter("")
    points = np.unique(np.concatenate([x for x, _, _ in one.lines.values()]))
    if one.marked and len(points) > 1:
        panel.points_axis(axis, points)
        panel.spread_out(axis, points)
    if not one.marked:
        axis.set_ylim(bottom=max(axis.get_ylim()[0], LOWEST))
    style.values(axis)
    style.title(axis, one.title)
    axis.set(xlabel=one.xlabel, ylabel=one.ylabel)
    low, high = axis.get_xlim()
    seen = {label: (x, np.where((x >= low) & (x <= high) & (y >= axis.get_ylim()[0]), y, np.nan)) for label, (x, y, _) in one.lines.items()}
    labels.ends(axis, [(label, style.darker(styles[label]["color"], 0.1), x, y) for label, (x, y) in seen.items()])


def draw(datasets, made):
    """The whole figure; `made` are the panels of all studies."""
    style.use()
    names = {label: name for dataset in datasets for label, name in design.policy_names(dataset).items()}
    styles = style.lines(names)
    figure, places = panel.grid(len(made), styles=styles)
    for axis, one in zip(places[:, 0], made):
        draw_panel(axis, one, styles)
    blocks = list(dict.fromkeys(filter(None, (design.config(dataset, "block") for dataset in datasets))))
    text = ["CPU time of a run: that of a block of runs that advance together" + (f" ({' or '.join(blocks)})" if blocks else "")
            + ", divided by their number. Bands: one standard error over runs; a divergence below "
            f"{LOWEST:g} is off the axis."]
    panel.below(figure, [], [*caption.facts(datasets), *text])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a convergence or bandit study", several=True))
    datasets = drawing.results(arguments, kind=None)
    made = [one for dataset in datasets for one in panels(dataset)]
    drawing.save(draw(datasets, made), drawing.outputs(arguments, "figure_vits_cost"))
    table = slopes(made)
    if len(table):
        print(table.to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    script.run(main)
