#!/usr/bin/env python3
"""Which sampler to choose: distance of the draws to the exact posterior, relative to that of exact draws, against the CPU time per draw.

One panel for each distribution of theta*, from one or more posterior studies. Distances are geometric means over numbers of
observations of the mean over runs; the time covers all of them together. Points of one sampler are joined and labelled with its size:
the last word of the policy's label, and the number of stages if the prior is a chain. They are open if the prior is known (prior:
exact) instead of learned. The staircase is the Pareto front: no other sampler of a learned prior is both closer and faster than a point on it.

Reads results.nc of each DIR; writes figure_frontier.png and .pdf into the first DIR, and prints the points.
"""
import needs
import dataclasses

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from thompson import Error, averages, design, metrics, significance, store, wording
import caption
import chart
import drawing
import labels
import panel
import script
import style

MICRO = 1e6
# For each kind of prior that a sampler needs: marker, words; and the samplers that need a prior other than a diffusion model.
KINDS = {"gaussian": ("o", "Gaussian"), "mixture": ("^", "mixture of Gaussians (components)"),
         "diffusion": ("D", "diffusion model (particles / stages)"), "denoiser": ("s", "denoiser for any precision (steps)")}
KIND_OF = {"ts": "gaussian", "tuned_ts": "gaussian", "mixts": "mixture", "localised": "denoiser"}
TICKS = (1, 1.2, 1.5, 2, 3, 5, 10, 20)


@dataclasses.dataclass
class Point:
    name: str        # of the sampler
    size: str
    exact: bool      # the prior is known, not learned
    cost: float      # CPU microseconds per draw
    value: float     # distance over floor
    error: float     # standard error of the value

    @property
    def kind(self):
        return KIND_OF.get(self.name, "diffusion")


def size(label, name, stages):
    """The size that a policy's label gives, and the stages of its chain."""
    own = label.split()[-1] if " " in label and label.split()[-1] != name else ""
    return " / ".join(filter(None, (own, stages if KIND_OF.get(name, "diffusion") == "diffusion" else "")))


def spread(dataset, curve, mean, floor):
    """The standard error of the logarithm of the distance over the floor, [setting, policy], to first order; both are measured in the same runs."""
    runs, exact = averages.of_completed(dataset, curve), averages.of_completed(dataset, curve + store.FLOOR)     # [setting, policy, run, point]
    with np.errstate(invalid="ignore"):
        more = (runs / mean[:, :, None] - exact / floor[:, None, None]).mean(axis=-1)
    replicate = significance.of_runs(dataset)
    return np.array([[averages.larger_error(row, replicate) for row in rows] for rows in more])


def points(dataset):
    """{title of a panel: its points} of one study. If a sampler is the same in several settings of a panel, as one without a chain
    is at every number of stages, the first setting is used."""
    curve, swept, found = store.curves(dataset)[0], design.swept(dataset), {}
    if averages.floor(dataset, curve) is None:
        raise Error(f"metric {curve} has no floor to compare with")
    draws = design.config(dataset, "draws")
    if draws is None:
        raise Error("the results do not say how many draws were made (attribute config)")
    mean, floor = averages.moments(dataset, curve)[0], averages.floor(dataset, curve)[0]
    with np.errstate(invalid="ignore"):
        value = np.exp(np.log(mean / floor[:, None]).mean(axis=-1))
    error = value * spread(dataset, curve, mean, floor)
    cost = MICRO * metrics.over_runs(dataset, "seconds")[0] / (int(draws) * mean.shape[-1])
    for s in range(dataset.sizes["setting"]):
        words = [(before, wording.plain(swept[key][s])) for before, key in (("", "problem.theta"), ("d = ", "problem.dimension")) if key in swept]
        stages = wording.plain(swept["prior.stages"][s]) if "prior.stages" in swept else design.config(dataset, "prior.stages")
        here = found.setdefault(", ".join(before + word for before, word in words), {})
        for p, (label, options) in enumerate(design.options(dataset).items()):
            one = Point(options["name"], size(label, options["name"], stages), options.get("prior") == "exact", cost[s, p], value[s, p], error[s, p])
            if np.isfinite(one.cost * one.value):
                here.setdefault((one.name, one.size, one.exact), one)
    return {title: list(here.values()) for title, here in found.items()}


def merged(datasets):
    """The points of all studies by panel, in the order of the first study."""
    panels = {}
    for dataset in datasets:
        for title, here in points(dataset).items():
            panels.setdefault(title, []).extend(here)
    return panels


def front(here):
    """The points of learned priors that no other such point beats in both, cheapest first."""
    learned = [one for one in here if not one.exact]
    return [learned[p] for p in chart.front(np.array([one.cost for one in learned]), np.array([one.value for one in learned]))]


def draw_sampler(axis, series):
    """The points of one sampler, all of them with learned or all with known priors."""
    colour, learned = style.colour_and_marker(series[0].name)[0], not series[0].exact
    axis.errorbar([one.cost for one in series], [one.value for one in series], [one.error for one in series], linestyle="-",
                  marker=KINDS[series[0].kind][0], color=colour, linewidth=0.8, elinewidth=0.7, capsize=1.5, markersize=4.5 if learned else 3.5,
                  markerfacecolor=colour if learned else "white", alpha=1 if learned else 0.6, zorder=3 if learned else 2)


def write_labels(axis, here):
    """The names of the samplers of learned priors, and the sizes for which there is room."""
    learned = [one for one in here if not one.exact]
    first = {one.name: one for one in reversed(learned)}
    names = [labels.Label(one.name, (one.cost, one.value), {"fontsize": 7, "fontweight": "bold", "color": style.colour_and_marker(one.name)[0]})
             for one in reversed(first.values())]
    sizes = [labels.Label(one.size, (one.cost, one.value), {"fontsize": 6, "color": style.colour_and_marker(one.name)[0]}, needed=False) for one in learned if one.size]
    labels.place(axis, names + sizes, [line.get_xydata() for line in axis.lines if line.get_transform() == axis.transData])


def draw_panel(axis, title, here):
    best, right = front(here), max((one.cost for one in here), default=1)
    if best:
        stairs = [*(one.cost for one in best), right], [*(one.value for one in best), best[-1].value]
        axis.plot(np.repeat(stairs[0], 2)[1:], np.repeat(stairs[1], 2)[:-1], color="#AAAAAA", linewidth=2.5, alpha=0.6, zorder=1)
    axis.axhline(1, color=panel.FLOOR, linewidth=1, linestyle=(0, (4, 2)), zorder=0)
    for name, exact in dict.fromkeys((one.name, one.exact) for one in here):
        draw_sampler(axis, [one for one in here if (one.name, one.exact) == (name, exact)])
    axis.set(xscale="log", yscale="log", title=title, xlabel="CPU microseconds per draw")
    axis.yaxis.set_major_locator(FixedLocator(TICKS))
    axis.yaxis.set_minor_locator(FixedLocator([]))
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
        each.set_minor_formatter(NullFormatter())


def draw(datasets, panels):
    """The whole figure, with the same distance axis in all panels."""
    style.use()
    figure, places = panel.grid(len(panels))
    points_of_all = [one for here in panels.values() for one in here]
    for axis, (title, here) in zip(places[:, 0], panels.items()):
        draw_panel(axis, title, here)
        if here:
            axis.set_xlim(0.7 * min(one.cost for one in here), 1.6 * max(one.cost for one in here))
            axis.set_ylim(0.85, 1.1 * max(one.value for one in points_of_all))
            style.values(axis)
            write_labels(axis, here)
    places[0, 0].set_ylabel("distance over that of exact draws")
    kinds = {one.kind for one in points_of_all}
    entries = [Line2D([], [], color=style.FAINT, marker=marker, linestyle="", label=words) for kind, (marker, words) in KINDS.items() if kind in kinds]
    panel.below(figure, entries, [*caption.facts(datasets),
                                  caption.draws(datasets[0]) + "Bars: one standard error. Filled: the prior is learned; open: it is known. Stairs: the samplers of "
                                  "learned priors that no other beats in both. Dashed: exact draws."])
    return figure


def table(panels):
    """One row for each point, and whether it is on the front."""
    return pd.DataFrame([(title, one.name, one.size, "known" if one.exact else "learned", one.cost, one.value, "front" if one in front(here) else "")
                         for title, here in panels.items() for one in sorted(here, key=lambda one: one.cost)],
                        columns=["panel", "sampler", "size", "prior", "microseconds", "over floor", ""])


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a posterior study", several=True))
    datasets = drawing.results(arguments, "posterior")
    panels = merged(datasets)
    drawing.save(draw(datasets, panels), drawing.outputs(arguments, "figure_frontier"))
    print(table(panels).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    script.run(main)
