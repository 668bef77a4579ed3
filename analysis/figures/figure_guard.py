#!/usr/bin/env python3
"""A prior that was learned in another world: the regret it costs, with and without a guard beside it.

For bandit studies that sweep problem.theta, prior.file and prior.guard, whose first policy is the reference (jobs/questions/guard.yaml,
jobs/questions/guard_localised.yaml and jobs/questions/guard_mixture.yaml). Above, for each study, the ratio of regret to the reference for every world and prior:
without a guard, and with the weight of --guard. Below, the worst of these ratios against the largest loss where the prior is right, a point for
each weight.

Reads results.nc of each DIR; writes figure_guard.png and .pdf into the first DIR.
"""
import needs
import itertools
import pathlib

import numpy as np
from matplotlib import pyplot as plt

from thompson import Error, averages
import caption
import drawing
import script
import style


def ratios(dataset, by="prior_guard"):
    """The worlds and the weights of the guard (or the values of another key), and the ratio and the regret of the second policy: ratio[weight,
    world, prior], regret likewise."""
    for key in ("problem_theta", "prior_file", by):
        if key not in dataset:
            raise Error(f"the study does not sweep {key.replace('_', '.', 1)}")
    mean = averages.at_end(dataset, averages.moments(dataset, "regret")[0])
    worlds = list(dict.fromkeys(str(world) for world in dataset["problem_theta"].values))
    files = [pathlib.Path(str(file)).stem.split("-")[-1] for file in dataset["prior_file"].values]
    weights = np.unique(dataset[by].values)
    regret = np.full((2, len(weights), len(worlds), len(worlds)), np.nan)
    for s, (world, file, weight) in enumerate(zip(dataset["problem_theta"].values, files, dataset[by].values)):
        regret[:, np.searchsorted(weights, weight), worlds.index(str(world)), worlds.index(file)] = mean[s, :2]
    return worlds, weights, regret[1] / regret[0], regret[1]


def frontier(ratio, regret):
    """For every weight: the largest loss where the prior is right, in percent, and the worst ratio anywhere."""
    right = np.einsum("wkk->wk", regret)
    return 100 * (right / right[0] - 1).max(axis=1), ratio.max(axis=(1, 2))


def draw_matrix(axis, worlds, ratio, title):
    shown = axis.imshow(np.log2(ratio), cmap="RdBu_r", vmin=-2.6, vmax=2.6)
    for i, j in np.ndindex(ratio.shape):
        axis.text(j, i, f"{ratio[i, j]:.1f}", ha="center", va="center", fontsize=8, color="white" if abs(np.log2(ratio[i, j])) > 1.7 else "black")
    axis.set_xticks(range(len(worlds)), worlds, rotation=45, ha="right")
    axis.set_yticks(range(len(worlds)), worlds)
    axis.set(title=title, xlabel="prior learned in", ylabel="world")
    axis.grid(False)
    return shown


def draw(datasets, guard):
    style.use()
    rows = len(datasets)
    figure, axes = plt.subplots(rows + 1, 2, figsize=style.LOOK.size or (8.5, 4 * rows + 3.4), layout="constrained")
    for axis in axes[-1]:
        axis.remove()
    curve = figure.add_subplot(axes[-1, 0].get_gridspec()[-1, :])
    for row, dataset, marker in zip(axes, datasets, itertools.cycle("os^")):
        worlds, weights, ratio, regret = ratios(dataset)
        name = str(dataset["policy"].values[1])
        chosen = int(np.argmin(np.abs(weights - guard)))
        for axis, w, title in zip(row, (0, chosen), ("no guard", f"guard {weights[chosen]:g}")):
            draw_matrix(axis, worlds, ratio[w], f"{name}, {title}")
        loss, worst = frontier(ratio, regret)
        curve.plot(loss[1:], worst[1:], marker=marker, label=name)
        for x, y, weight in zip(loss[1:], worst[1:], weights[1:]):
            curve.annotate(f"{weight:g}", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
        print(name, "weight, largest loss in %, worst ratio:", ", ".join(f"{g:g} {x:.1f} {y:.2f}" for g, x, y in zip(weights, loss, worst)))
    curve.set(xlabel="largest loss where the prior is right, in %", ylabel="worst ratio of regret to ts")
    curve.set_title("by weight of the guard")
    curve.legend()
    style.values(curve)
    style.caption(figure, -0.01, caption.facts(datasets))
    return figure


def main():
    parser = drawing.study_options(__doc__, "such a study", several=True)
    parser.add_argument("--guard", type=float, default=0.3, help="weight of the second matrix (default: 0.3)")
    arguments = drawing.parse(parser)
    drawing.save(draw(drawing.results(arguments), arguments.guard), drawing.outputs(arguments, "figure_guard"))


if __name__ == "__main__":
    script.run(main)
