#!/usr/bin/env python3
"""Figure 4 of the VITS paper (Appendix F): steps to reach a Gaussian target, by its condition number.

One panel for each step size (option step_size of the policies). Steps until the Kullback-Leibler divergence is at most
target_kl for the first time: mean over runs, bars of one standard error; the dashed line is max_steps, at which the study
stops. Runs that have not arrived count as max_steps; the marker is then open, and the mean is a lower bound.
Prints the slope of a straight line through log steps against log condition number, over the means without such runs: a slope of 1
means that the cost is proportional to the condition number.

Reads DIR/results.nc; writes DIR/figure_vits_4.png and .pdf.
"""
import needs
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from thompson import Error, design, store, wording
import caption
import convergence
import drawing
import panel
import script
import style

CONDITION = "problem.condition_number"
LIMIT = "#B00020"


def by_step_size(dataset):
    """{step size: indices of its policies}, in order of step size."""
    sizes = {}
    for p, chosen in enumerate(design.options(dataset).values()):
        sizes.setdefault(chosen.get("step_size", "auto"), []).append(p)
    return dict(sorted(sizes.items(), key=lambda item: (item[0] == "auto", float(item[0].replace("auto", "0")))))


def conditions(dataset):
    """The condition number of each setting, [setting], and their ascending order."""
    swept = design.swept(dataset)
    if list(swept) != [CONDITION]:
        raise Error(f"this figure is for a study that sweeps {CONDITION} alone; this one sweeps "
                    f"{', '.join(swept) or 'nothing'}")
    values = swept[CONDITION].astype(float)
    return values, np.argsort(values, kind="stable")


def slopes(dataset):
    """One row for each policy: its step size, its slope, and the condition numbers that it covers."""
    mean, _, late = convergence.steps(dataset)
    kappa, order = conditions(dataset)
    rows = []
    for label, chosen, y, missing in zip(design.labels(dataset), design.options(dataset).values(), mean.T, late.T):
        use = order[(missing[order] == 0) & np.isfinite(y[order])]
        rows.append((label, chosen.get("step_size", "auto"), *convergence.slope(kappa[use], y[use]), len(use),
                     int(missing.sum())))
    return pd.DataFrame(rows, columns=["policy", "step size", "slope", "se", "points", "runs at max_steps"])


def draw_panel(axis, x, mean, error, late, names, styles, limit):
    """One step size: [policy, condition number] each."""
    axis.set_yscale("log")
    room = 0.06 * (x[-1] - x[0]) or 1
    axis.set_xlim(x[0] - room, x[-1] + room)
    for p, name in enumerate(names):
        where = panel.beside(axis, x, p, len(names))
        drawn = {**styles[name], "markerfacecolor": styles[name]["color"]}
        axis.errorbar(where, mean[p], error[p] if np.isfinite(error[p]).any() else None, capsize=1.5, elinewidth=0.9, zorder=3,
                      **drawn)
        axis.plot(where[late[p] > 0], mean[p][late[p] > 0], linestyle="none", zorder=4,
                  **{"color": drawn["color"], "marker": drawn["marker"], "markerfacecolor": "white"})
    axis.axhline(limit, color=LIMIT, linewidth=1, linestyle=(0, (4, 2)), zorder=2)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
    axis.yaxis.set_minor_formatter("")
    panel.spread_out(axis, x)
    axis.set_xlabel("condition number of the target")


def draw(dataset):
    """The whole figure."""
    if convergence.STEPS not in store.curves(dataset):
        raise Error(f"the study has no {convergence.STEPS}")
    style.use()
    limit, (kappa, order) = convergence.maximum(dataset), conditions(dataset)
    mean, error, late = (values[order].T for values in convergence.steps(dataset))
    names = list(design.policy_names(dataset).values())
    styles = style.lines({name: name for name in names})
    figure, places = panel.grid(len(by_step_size(dataset)), styles=styles)
    for axis, (size, here) in zip(places[:, 0], by_step_size(dataset).items()):
        draw_panel(axis, kappa[order], mean[here], error[here], late[here], [names[p] for p in here], styles, limit)
        axis.set_title(f"step size {size}")
    limits = [axis.get_ylim() for axis in places[:, 0]]
    for axis in places[:, 0]:
        axis.set_ylim(min(low for low, _ in limits), max(limit * 1.6, max(high for _, high in limits)))
        style.values(axis)
    target = design.config(dataset, "target_kl")
    places[0, 0].set_ylabel(f"steps to a divergence of {target}" if target else "steps to the target")
    for axis, here in zip(places[:, 0], by_step_size(dataset).values()):
        panel.name_lines(axis, kappa[order], mean[here], {names[p]: styles[names[p]] for p in here})
    entries = [Line2D([], [], color=LIMIT, linewidth=1, linestyle=(0, (4, 2)), label="max_steps")]
    text = [*caption.facts([dataset]), "Lines: mean over completed runs; bars: one standard error; policies are shifted slightly "
            "sideways. Open markers: some runs did not reach the target and count as max_steps. A Markov chain is represented by the Gaussian of its time "
            "average after burn-in."]
    panel.below(figure, entries, text)
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a convergence study that sweeps condition_number"))
    dataset, = drawing.results(arguments, "convergence")
    drawing.save(draw(dataset), drawing.outputs(arguments, "figure_vits_4"))
    print(slopes(dataset).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    script.run(main)
