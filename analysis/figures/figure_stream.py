#!/usr/bin/env python3
"""Regret of bandits that come one after the other while priors are learned (a stream study), one panel for each setting.

Lines: regret of a bandit at its end, mean over streams and over windows of bandits, with a band of one standard error over streams. Dashed:
the same policy with the known prior, on the same bandits.

Reads DIR/results.nc; writes DIR/figure_stream.png and .pdf.
"""
import needs

import numpy as np

from thompson import design
import caption
import drawing
import panel
import script
import style

WINDOWS = 20    # at most


def windows(regret):
    """Averages over windows of bandits, for regret[streams, bandits]: the middle of each window, mean and standard error over streams."""
    regret = regret[~np.isnan(regret).all(axis=1)]
    parts = np.array_split(np.arange(regret.shape[1]), min(WINDOWS, regret.shape[1]))
    means = np.stack([regret[:, part].mean(axis=1) for part in parts])
    error = means.std(axis=1, ddof=1) / np.sqrt(means.shape[1]) if means.shape[1] > 1 else np.full(len(parts), np.nan)
    return np.array([part.mean() + 1 for part in parts]), means.mean(axis=1), error


def draw_setting(axis, dataset, s, styles):
    """All policies of one setting."""
    for p, policy in enumerate(design.labels(dataset)):
        for name, look in (("task_regret_known", {"linestyle": (0, (2, 2)), "linewidth": 1}), ("task_regret", {})):
            values = dataset[name].values[s, p]
            if np.isnan(values).all():
                continue
            middle, mean, error = windows(values)
            axis.plot(middle, mean, zorder=3, **{**styles[policy], **look, **({"marker": ""} if look else {})})
            axis.fill_between(middle, mean - error, mean + error, color=styles[policy]["color"], alpha=0.22, linewidth=0)
    axis.set(xlabel="bandit of the stream", xlim=(0, dataset.sizes["bandit_task"]))
    style.values(axis)


def draw(dataset):
    style.use()
    styles = style.lines(design.policy_names(dataset))
    titles = design.titles(dataset)
    figure, places = panel.grid(len(titles), (1,))
    for s, ((axis,), title) in enumerate(zip(places, titles)):
        axis.set_title(title)
        draw_setting(axis, dataset, s, styles)
    places[0, 0].set_ylabel("regret of a bandit at its end")
    reading = "Lines: mean over streams and windows of bandits; bands: one standard error over streams. Dashed: with the known prior."
    panel.below(figure, panel.lines(styles), [*caption.facts([dataset]), reading])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a stream study"))
    (dataset,) = drawing.results(arguments, "stream")
    drawing.save(draw(dataset), drawing.outputs(arguments, "figure_stream"))


if __name__ == "__main__":
    script.run(main)
