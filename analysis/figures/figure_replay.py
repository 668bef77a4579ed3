#!/usr/bin/env python3
"""Values of policies from a log of events (a replay study): each estimator's value with its 95% interval, one panel for each setting. A hollow
marker: the value is not to be trusted, for a reason that `thompson run` prints and the variable `doubt` holds. Grey: the mean reward of the log, the value of
the policy that left it, with its interval.

Reads DIR/results.nc; writes DIR/figure_replay.png and .pdf.
"""
import needs

import numpy as np

from thompson import Error, design, store
import drawing
import script
import style

AXES = ("setting", "policy", "estimator")
VALUES = "value", "value_low", "value_high", "doubt"
LOGGED = "logged_value", "logged_value_low", "logged_value_high"
NEEDED = {name: AXES for name in VALUES + LOGGED}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def draw(dataset):
    settings, policies, estimators = ([str(label) for label in dataset[name].values] for name in AXES)
    style.use()
    figure, axes = style.plt.subplots(1, len(settings), squeeze=False, sharey=True, layout="constrained",
                                      figsize=style.LOOK.size or (1.2 + 2.8 * len(settings), 1 + 0.45 * len(policies)))
    for s, axis in enumerate(axes[0]):
        for e, estimator in enumerate(estimators):
            value, low, high, doubt = (dataset[name].values[s, :, e] for name in VALUES)
            place = np.arange(len(policies)) + 0.7 * ((e + 0.5) / len(estimators) - 0.5)
            axis.errorbar(value, place, xerr=[value - low, high - value], fmt="none", color=COLOURS[e], capsize=2)
            axis.scatter(value, place, color=np.where(doubt > 0, "white", COLOURS[e]), edgecolor=COLOURS[e], zorder=3, label=estimator)
        axis.set(title=settings[s] if len(settings) > 1 else "", xlabel="mean reward per event, 95% interval",
                 yticks=range(len(policies)), yticklabels=policies, xscale="log" if style.LOOK.log else "linear")
        mean, low, high = (dataset[name].values[s].flat[0] for name in LOGGED)
        axis.axvspan(low, high, color="0.9", zorder=0)
        axis.axvline(mean, color="0.6", zorder=0, label="mean of the log")
        if style.LOOK.ylim:  # limits of the axis of values, which is horizontal here
            axis.set_xlim(*style.LOOK.ylim)
    axes[0][0].invert_yaxis()
    if not style.LOOK.no_caption:
        figure.supxlabel("Hollow: not to be trusted; `thompson run` prints why.", fontsize="small")
    axes[0][-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a replay study"))
    path = store.folder_of(arguments.folders[0]) / "results.nc"
    dataset = store.opened(path, store.absent(path.parent))
    if "estimator" not in dataset.dims:
        raise Error(f"{path} has no dimension estimator; this needs the results of a replay study")
    dataset = store.checked(path, dataset, NEEDED, "this needs the results of a replay study")
    (dataset,) = design.selected([dataset], arguments.policies, arguments.without)
    drawing.save(draw(dataset), drawing.outputs(arguments, "figure_replay"))


if __name__ == "__main__":
    script.run(main)
