#!/usr/bin/env python3
"""A guard whose weight is learned from tasks: regret against their number.

For bandit studies that sweep problem.theta, prior.file and prior.guard_tasks, whose first policy is the reference (jobs/questions/guard_tasks.yaml,
jobs/questions/guard_tasks_localised.yaml). Left, the largest and the median ratio of regret to the reference among the priors of other worlds; right,
the largest and the mean ratio among those of the world itself.

Reads results.nc of each DIR; writes figure_guard_tasks.png and .pdf into the first DIR.
"""
import needs
import numpy as np
from matplotlib import pyplot as plt

import caption
import drawing
import figure_guard
import script
import style


def summaries(ratio):
    """For ratio[tasks, world, prior]: the largest and the median of the wrong priors, the largest and the mean of the right ones."""
    right = np.eye(ratio.shape[1], dtype=bool)
    wrong, own = ratio[:, ~right], ratio[:, right]
    return (wrong.max(axis=1), np.median(wrong, axis=1)), (own.max(axis=1), own.mean(axis=1))


def draw(datasets):
    style.use()
    figure, axes = plt.subplots(1, 2, figsize=style.LOOK.size or (8.5, 3.6), layout="constrained")
    for dataset in datasets:
        _, tasks, ratio, _ = figure_guard.ratios(dataset, "prior_guard_tasks")
        name = str(dataset["policy"].values[1])
        for axis, pair, middle in zip(axes, summaries(ratio), ("median", "mean")):
            (line,) = axis.plot(range(len(tasks)), pair[0], marker="o", label=f"{name}, largest")
            axis.plot(range(len(tasks)), pair[1], marker="o", linestyle="--", color=line.get_color(), label=f"{name}, {middle}")
            axis.set_xticks(range(len(tasks)), [f"{count:g}" for count in tasks])
            print(f"{name}: tasks, largest, {middle}:", ", ".join(f"{t:g} {x:.2f} {y:.2f}" for t, x, y in zip(tasks, *pair)))
    for axis, title, top in zip(axes, ("the prior of another world", "the prior of this world"), (1, 0.55)):
        axis.set(title=title, xlabel="tasks that the weight is learned from")
        axis.legend(loc="upper right", bbox_to_anchor=(1, top))
        style.values(axis)
    axes[0].set_ylabel("ratio of regret to ts")
    style.caption(figure, -0.01, caption.facts(datasets))
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "such a study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_guard_tasks"))


if __name__ == "__main__":
    script.run(main)
