#!/usr/bin/env python3
"""A prior that was learned in another world: the regret it costs, with and without a guard.

For bandit studies that sweep problem.theta, prior.file and prior.guard, whose first policy is the reference (jobs/questions/guard.yaml,
jobs/questions/guard_localised.yaml and jobs/questions/guard_mixture.yaml). Above, for each study, the ratio of regret to the reference for every
world and prior: without a guard, and with the weight of --guard. Below, the worst of these ratios against the largest loss where the prior is
right, a point for each weight.

Reads results.nc of each DIR; writes figure_guard.png and .pdf into the first DIR.
"""
import needs
import pathlib

import numpy as np
from matplotlib import pyplot as plt

from thompson import Error, averages, design, significance
import caption
import drawing
import labels
import script
import style


def ratios(dataset, by="prior_guard"):
    """The worlds and the weights of the guard (or the values of another key), and the ratio, its standard error and the regret of the second
    policy: ratio[weight, world, prior], the others likewise. The error is that of the paired differences from (the ratio times the reference),
    to first order."""
    for key in ("problem_theta", "prior_file", by):
        if key not in dataset:
            raise Error(f"the study does not sweep {key.replace('_', '.', 1)}")
    runs, replicate = averages.at_end(dataset, dataset["regret"].values)[:, :2], significance.of_runs(dataset)   # [setting, policy, run]
    mean = averages.at_end(dataset, averages.moments(dataset, "regret")[0])
    worlds = list(dict.fromkeys(str(world) for world in dataset["problem_theta"].values))
    files = [pathlib.Path(str(file)).stem.split("-")[-1] for file in dataset["prior_file"].values]
    weights = np.unique(dataset[by].values)
    regret = np.full((2, len(weights), len(worlds), len(worlds)), np.nan)
    error = np.full(regret.shape[1:], np.nan)
    for s, (world, file, weight) in enumerate(zip(dataset["problem_theta"].values, files, dataset[by].values)):
        cell = np.searchsorted(weights, weight), worlds.index(str(world)), worlds.index(file)
        regret[:, *cell] = mean[s, :2]
        error[cell] = averages.larger_error(runs[s, 1] - mean[s, 1] / mean[s, 0] * runs[s, 0], replicate) / mean[s, 0]
    return worlds, weights, regret[1] / regret[0], error, regret[1]


def look(dataset):
    """Label of the second policy, and its colour and marker, those of its method in all figures."""
    label, name = list(design.policy_names(dataset).items())[1]
    return label, *style.colour_and_marker(name)


def frontier(ratio, regret):
    """For every weight: the largest loss where the prior is right, in percent, and the worst ratio anywhere."""
    right = np.einsum("wkk->wk", regret)
    return 100 * (right / right[0] - 1).max(axis=1), ratio.max(axis=(1, 2))


def draw_matrix(axis, worlds, ratio, error, title):
    shown = axis.imshow(np.log2(ratio), cmap="RdBu_r", vmin=-2.6, vmax=2.6)
    for i, j in np.ndindex(ratio.shape):
        axis.text(j, i, f"{ratio[i, j]:.2f}\n± {error[i, j]:.2f}", ha="center", va="center", fontsize=6.5, color="white" if abs(np.log2(ratio[i, j])) > 1.7 else "black")
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
    ends = []
    for row, dataset in zip(axes, datasets):
        worlds, weights, ratio, error, regret = ratios(dataset)
        name, colour, marker = look(dataset)
        chosen = int(np.argmin(np.abs(weights - guard)))
        for axis, w, title in zip(row, (0, chosen), ("no guard", f"guard {weights[chosen]:g}")):
            draw_matrix(axis, worlds, ratio[w], error[w], f"{name}, {title}")
        loss, worst = frontier(ratio, regret)
        flat = ratio.reshape(len(weights), -1)
        of_worst = np.take_along_axis(error.reshape(flat.shape), flat.argmax(axis=1)[:, None], axis=1)[:, 0]
        curve.errorbar(loss[1:], worst[1:], of_worst[1:], marker=marker, color=colour, capsize=1.5, elinewidth=0.9)
        ends.append((name, colour, loss[1:], worst[1:]))
        for x, y, weight in zip(loss[1:], worst[1:], weights[1:]):
            curve.annotate(f"{weight:g}", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
        print(name, "weight, largest loss in %, worst ratio:", ", ".join(f"{g:g} {x:.1f} {y:.2f}" for g, x, y in zip(weights, loss, worst)))
    curve.set(xlabel="largest loss where the prior is right, in %", ylabel="worst ratio of regret to ts")
    curve.set_title("by weight of the guard")
    style.values(curve)
    figure.canvas.draw()            # fixes the layout, so that names can be placed
    figure.set_layout_engine("none")
    labels.ends(curve, ends)
    style.caption(figure, -0.01, [*caption.facts(datasets), "±, bars: one standard error of the ratio, paired; for the worst one it ignores that it "
                                                            "was selected."])
    return figure


def main():
    parser = drawing.study_options(__doc__, "such a study", several=True)
    parser.add_argument("--guard", type=float, default=0.3, help="weight of the second matrix (default: 0.3)")
    arguments = drawing.parse(parser)
    drawing.save(draw(drawing.results(arguments), arguments.guard), drawing.outputs(arguments, "figure_guard"))


if __name__ == "__main__":
    script.run(main)
