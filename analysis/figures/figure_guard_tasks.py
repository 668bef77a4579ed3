#!/usr/bin/env python3
"""A guard whose weight is learned from tasks: regret against their number.

For bandit studies that sweep problem.theta, prior.file and prior.guard_tasks, whose first policy is the reference (jobs/questions/guard_tasks.yaml,
jobs/questions/guard_tasks_localised.yaml). Left, the largest and the median ratio of regret to the reference among the priors of other worlds; right,
the largest and the mean ratio among the priors of the world itself.

Reads results.nc of each DIR; writes figure_guard_tasks.png and .pdf into the first DIR.
"""
import needs
import numpy as np
from matplotlib import pyplot as plt

import caption
import drawing
import figure_guard
import labels
import script
import style


def summaries(ratio, error):
    """For ratio[tasks, world, prior]: the largest and the median for the wrong priors, the largest and the mean for the right ones, each with its
    standard error; the error of the largest or the median is that of the one ratio (for an even number, the larger error of the two in the middle)."""
    right = np.eye(ratio.shape[1], dtype=bool)
    wrong, own, of_wrong, of_own = ratio[:, ~right], ratio[:, right], error[:, ~right], error[:, right]
    rows, order = np.arange(len(ratio)), np.argsort(wrong, axis=1)
    n = wrong.shape[1]
    middle = np.maximum(of_wrong[rows, order[:, (n - 1) // 2]], of_wrong[rows, order[:, n // 2]])
    return (((wrong.max(axis=1), of_wrong[rows, wrong.argmax(axis=1)]), (np.median(wrong, axis=1), middle)),
            ((own.max(axis=1), of_own[rows, own.argmax(axis=1)]), (own.mean(axis=1), np.sqrt((of_own ** 2).sum(axis=1)) / own.shape[1])))


def draw(datasets):
    style.use()
    figure, axes = plt.subplots(1, 2, figsize=style.LOOK.size or (10, 3.6))
    figure.subplots_adjust(wspace=0.55)
    ends = {axis: [] for axis in axes}
    for dataset in datasets:
        _, tasks, ratio, error, _ = figure_guard.ratios(dataset, "prior_guard_tasks")
        name, colour, marker = figure_guard.look(dataset)
        for axis, pair, middle in zip(axes, summaries(ratio, error), ("median", "mean")):
            for (values, its), which, line in zip(pair, ("largest", middle), ("-", "--")):
                axis.errorbar(range(len(tasks)), values, its, marker=marker, color=colour, linestyle=line, capsize=1.5, elinewidth=0.9)
                ends[axis].append((f"{name}, {which}", colour, range(len(tasks)), values))
            axis.set_xticks(range(len(tasks)), [f"{count:g}" for count in tasks])
            print(f"{name}: tasks, largest, {middle}:", ", ".join(f"{t:g} {x:.2f} {y:.2f}" for t, (x, _), (y, _) in zip(tasks, *(zip(*one) for one in pair))))
    for axis, title in zip(axes, ("the prior of another world", "the prior of this world")):
        axis.set(title=title, xlabel="tasks from which the weight is learned")
        style.values(axis)
        labels.ends(axis, ends[axis])
    axes[0].set_ylabel("ratio of regret to ts")
    style.caption(figure, -0.06, [*caption.facts(datasets), "Bars: one standard error of the ratio, paired."])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "such a study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_guard_tasks"))


if __name__ == "__main__":
    script.run(main)
