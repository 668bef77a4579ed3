#!/usr/bin/env python3
"""Figures 2 and 4 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS), for any bandit study.

One column for each setting. Upper panel: samples of the true prior (blue) and of the learned diffusion prior (red); in more
than two dimensions their first two principal components. Lower panel: cumulative regret against the round, mean over
completed runs with a band of one standard error. A policy that diverges leaves the axis, and the panel says where it ends.

Reads DIR/results.nc and DIR/prior_samples.nc; writes DIR/figure_diffts_2.png and .pdf.
"""
import argparse
import math
import pathlib
import textwrap

import numpy as np
from matplotlib.lines import Line2D

import load
import significance
import style
from style import plt

COLUMNS = 4         # settings side by side; more go into further bands
DIVERGED = 3.0      # a policy this many times above the next lower one, and above the median, leaves the axis
SOURCES = {"true": ("true prior", style.TRUE_PRIOR), "diffusion": ("learned diffusion prior", style.LEARNED_PRIOR)}


def complete_rows(theta):
    """theta [n, d] without absent dimensions and absent samples, which are NaN."""
    theta = theta[:, ~np.isnan(theta).all(axis=0)]
    return theta[~np.isnan(theta).any(axis=1)] if theta.size else theta[:0]


def plane(samples):
    """Two coordinates to draw for each source, and the axis labels: {source: [n, 2]}, (x, y).

    In more than two dimensions: the first two principal components of the first source that has samples (the true prior)."""
    reference = next(iter(samples.values()))
    d = reference.shape[1]
    if d <= 2:
        return samples, (r"$\theta_1$", r"$\theta_2$")
    centre = reference.mean(axis=0)
    _, singular, axes = np.linalg.svd(reference - centre, full_matrices=False)
    share = 100 * singular[:2] ** 2 / (singular ** 2).sum()
    names = tuple(f"{nth} principal component of {d} ({part:.0f}%)" for nth, part in zip(("1st", "2nd"), share))
    return {source: (theta - centre) @ axes[:2].T for source, theta in samples.items()}, names


def note(axis, text, colour, line=0):
    """A remark in the upper left corner of a panel, on its line 0, 1, ..."""
    axis.annotate(text, (0.02, 0.99), (0, -11 * line), xycoords="axes fraction", textcoords="offset points", va="top",
                  color=style.darker(colour, 0.2), fontsize=7.5, zorder=4,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})


def draw_prior(axis, priors, setting, projection=plane):
    """Upper panel: samples of both priors, in random order so that neither hides the other."""
    axis.set_box_aspect(1)
    theta = {}
    if setting in priors["setting"].values:
        here = priors["theta"].sel(setting=setting)
        theta = {source: complete_rows(here.sel(source=source).values)
                 for source in SOURCES if source in priors["source"].values}
        theta = {source: rows for source, rows in theta.items() if len(rows)}
    for line, source in enumerate(source for source in SOURCES if source not in theta):
        name, colour = SOURCES[source]
        note(axis, f"no samples of the {name}", colour, line)
    if not theta:
        axis.set(xticks=[], yticks=[])
        return
    drawn, names = projection(theta)
    if next(iter(drawn.values())).shape[1] == 1:
        for source, rows in drawn.items():
            axis.hist(rows[:, 0], bins=40, density=True, histtype="step", color=SOURCES[source][1])
        names = (names[0], "density")
    else:
        points = np.concatenate(list(drawn.values()))
        colours = np.repeat([SOURCES[source][1] for source in drawn], [len(rows) for rows in drawn.values()])
        order = np.random.default_rng(0).permutation(len(points))
        axis.scatter(*points[order].T, c=colours[order], s=5, alpha=0.55, linewidths=0, rasterized=True)
        axis.set_aspect("equal", adjustable="datalim")
    axis.set_xlabel(names[0], labelpad=1)
    axis.set_ylabel(names[1], labelpad=1)


def ceiling(finals):
    """Where to cut the regret axis, from the final regret of each policy: above the last one before a jump by DIVERGED.
    At least half of the policies stay. None when nobody leaves."""
    ranked = np.sort(finals[np.isfinite(finals)])
    for low in range((len(ranked) - 1) // 2, len(ranked) - 1):
        if low > 0 and ranked[low + 1] > DIVERGED * ranked[low] > 0:
            return 1.3 * ranked[low]
    return None


def unfinished(look, done, wanted):
    """Notes on the policies whose runs are not all in; one for all of them when they are many."""
    short = [(policy, n) for policy, n in zip(look, done) if n < wanted]
    if len(short) > 3:
        low, high = min(n for _, n in short), max(n for _, n in short)
        return [(f"{len(short)} policies: {low} to {high} of {wanted} runs are in", style.TEXT)]
    return [(f"{policy}: {n} of {wanted} runs are in" if n else f"{policy}: no run is in", look[policy]["color"])
            for policy, n in short]


def draw_regret(axis, dataset, s, look):
    """Lower panel: regret of all policies in setting s."""
    rounds = dataset["round"].values[:load.last_rounds(dataset)[s] + 1]
    done, wanted = load.counts(dataset)[0], load.asked(dataset)[s]
    means, errors = (values[s, :, :len(rounds)] for values in load.moments(dataset, "regret"))
    finals = means[:, -1]
    cut = ceiling(finals)
    notes = []
    for p, (policy, mean, error) in enumerate(zip(look, means, errors)):
        every = max(1, len(rounds) // 6)
        axis.plot(rounds, mean, markevery=((p * every) // len(look), every), zorder=3, **look[policy])
        axis.fill_between(rounds, mean - error, mean + error, color=look[policy]["color"], alpha=0.22, linewidth=0)
        if cut is not None and finals[p] > cut:
            notes.append((f"off axis: {policy}, {load.value(finals[p], error[-1])} at round {rounds[-1]:g}", look[policy]["color"]))
    notes += unfinished(look, done[s], wanted)
    axis.set_xlim(0, rounds[-1])
    top = cut if cut is not None else axis.get_ylim()[1]
    # Notes stand above all lines that stay: each takes a share of the axis.
    axis.set_ylim(0, top / max(0.3, 1 - 0.07 * len(notes)) if np.isfinite(top) and top > 0 else 1)
    for line, (text, colour) in enumerate(notes):
        note(axis, text, colour, line)
    axis.set_xlabel("round")


def rewards(dataset):
    """What a reward is, beside its mean; None where there are no rewards, or noise is part of the signal to noise ratio."""
    if load.axis(dataset) == "step" or load.config(dataset, "problem.family") == "inverse":
        return None
    likelihood, noise = load.config(dataset, "likelihood"), load.config(dataset, "problem.noise")
    if likelihood not in (None, "gaussian"):
        return f"{likelihood} rewards"
    if noise == "auto":
        noise = "as in the data file" if load.config(dataset, "problem.family") == "embedding" else "1"
    return f"reward noise {noise}" if noise is not None else "reward noise not recorded"


def facts(dataset):
    """What one must know of a study to judge its lines, a sentence: runs, priors, seed, rewards."""
    failed = load.counts(dataset)[1]
    parts = [f"{load.run_words(dataset)} for each policy" + (f" ({failed.sum()} failed)" if failed.any() else "")]
    if load.replicates(dataset) > 1:
        parts.append(f"priors learned afresh {load.replicates(dataset)} times")
    parts.append(f"seed {dataset.attrs['seed']}" if "seed" in dataset.attrs else "seed not recorded")
    return "; ".join(filter(None, [*parts, rewards(dataset)])) + "."


def caption(dataset):
    """The same, and what the lines and bands are."""
    return f"{facts(dataset)} Lines: mean over completed runs; bands: one standard error {significance.errors_over([dataset])}."


def legend(figure, handles, y, columns):
    figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, y), ncol=columns, handlelength=2.6,
                  columnspacing=1.6)


def draw(dataset, priors):
    """The whole figure: bands of up to COLUMNS settings, each with its two rows of panels."""
    style.use()
    titles = load.titles(dataset)
    look = style.lines(load.policy_names(dataset))
    bands = math.ceil(len(titles) / COLUMNS)
    columns = math.ceil(len(titles) / bands)
    width, height = max(6.4, 3.1 * columns), 6.0 * bands
    figure, axes = plt.subplots(2 * bands, columns, figsize=(width, height), squeeze=False, constrained_layout=False)
    figure.subplots_adjust(left=0.75 / width, right=1 - 0.2 / width, bottom=0.5 / height, top=1 - 0.7 / height,
                           hspace=0.34, wspace=0.3)
    for s, title in enumerate(titles):
        band, column = divmod(s, columns)
        upper, lower = axes[2 * band, column], axes[2 * band + 1, column]
        upper.set_title(textwrap.fill(title, 34))
        draw_prior(upper, priors, dataset["setting"].values[s])
        draw_regret(lower, dataset, s, look)
        if column == 0:
            lower.set_ylabel("cumulative regret")
    for spare in range(len(titles), bands * columns):
        for axis in axes[2 * (spare // columns):, spare % columns]:
            axis.set_visible(False)

    dots = [Line2D([], [], color=colour, marker="o", linestyle="none", label=f"sample of the {name}")
            for name, colour in SOURCES.values()]
    legend(figure, dots, 1.0, 2)
    rows = math.ceil(len(look) / int(width / 1.35))
    legend(figure, [Line2D([], [], label=policy, **drawn) for policy, drawn in look.items()], 0.02 / height,
           math.ceil(len(look) / rows))
    text = style.wrapped(caption(dataset), width)
    figure.text(0.5, -(0.12 + 0.2 * rows) / height, text, ha="center", va="top", fontsize=8.5, color=style.FAINT)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a bandit study")
    parser.add_argument("-o", "--output", metavar="FILE", action="append",
                        help="write there instead, the format by the ending (may be repeated)")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    paths = [pathlib.Path(path) for path in arguments.output or [folder / f"figure_diffts_2.{e}" for e in ("png", "pdf")]]
    for path in paths:
        if path.suffix not in style.ENDINGS:
            parser.error(f"{path}: the file name must end with one of {' '.join(style.ENDINGS)}")

    dataset, priors = load.results(folder), load.prior_samples(folder)
    style.save(draw(dataset, priors), paths)


if __name__ == "__main__":
    load.script(main)
