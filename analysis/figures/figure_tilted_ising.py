#!/usr/bin/env python3
"""Tilted transport on Ising models (Bruna and Han, Theorem 2), from a posterior study of jobs/papers/tilted_ising.yaml.

All eigenvalues of Q are 0 or snr^2, so its spread is snr^2. Left: the smallest eigenvalue of the Hessian of -log nu_T*, the start
of tilted transport, against the spread l: in closed form at its worst point, (1 + l)(1 - l), which changes sign at 1; and at
the draws. Right: error of each sampler against the exact posterior, computed by enumerating all corners; the grey band is the Monte-Carlo
floor, the error of a second set of exact draws.

Reads DIR/results.nc; writes DIR/figure_tilted_ising.png and .pdf.
"""
import needs
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from thompson import averages, design, wording
import caption
import inverse
import panel
import script
import style

SPREAD = "spread l of Q"
THRESHOLD = "#0B3C8C"
MET = style.TEXT


def worst(l):
    """The smallest eigenvalue at x = 0, where it is at its minimum."""
    return (1 + l) * (1 - l)


def met(dataset, order):
    """The smallest eigenvalue at the draws: median, least and most over runs, [settings] each."""
    values = inverse.curvature(dataset)[order]
    return tuple(of(values, axis=1) for of in (np.nanmedian, np.nanmin, np.nanmax))


def error_panel(dataset, curve, l, order):
    floor = averages.floor(dataset, curve)
    means, errors = (averages.at_end(dataset, values)[order].T for values in averages.moments(dataset, curve))
    done, _, wanted = averages.counts(dataset)
    return panel.Panel("error of the draws", SPREAD, dataset[curve].attrs.get("long_name", curve), l, means, errors,
                       design.policy_names(dataset), done.min(axis=0), wanted,
                       floor and tuple(averages.at_end(dataset, values)[order] for values in floor), cut=False)


def draw_hessian(axis, dataset, l, order):
    middle, least, most = met(dataset, order)
    fine = np.geomspace(l[0], l[-1], 200)
    axis.plot(fine, worst(fine), color=THRESHOLD, zorder=2)
    axis.errorbar(l, middle, (middle - least, most - middle), color=MET, marker="o", linestyle="none", capsize=1.5, elinewidth=0.9,
                  zorder=3)
    axis.set_yscale("asinh", linear_width=1)
    axis.yaxis.set_major_locator(FixedLocator([sign * 10 ** k for k in range(5) for sign in (-1, 1)] + [0]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.axhline(0, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1)
    panel.points_axis(axis, l)
    panel.spread_out(axis, l)
    axis.set_title("start of tilted transport")
    axis.set(xlabel=SPREAD, ylabel="smallest eigenvalue of\nthe Hessian of -log nu_T*")


def draw(dataset, curve):
    """The whole figure."""
    style.use()
    l, order = inverse.spread(dataset)
    errors = error_panel(dataset, curve, l, order)
    styles = panel.styles_of([errors])
    figure, places = panel.grid(2, styles=styles)
    draw_hessian(places[0, 0], dataset, l, order)
    panel.draw(places[1, 0], errors, styles)
    panel.name_lines(places[1, 0], errors.x, errors.means, styles)
    for axis in places[:, 0]:
        axis.axvline(1, color=style.FAINT, linewidth=0.8, linestyle="--", zorder=1)
    drawn = [Line2D([], [], color=THRESHOLD, label="worst point: (1 + l)(1 - l)"),
             Line2D([], [], color=MET, marker="o", linestyle="none", label="minimum between draws"),
             *panel.handles([errors])]
    panel.below(figure, drawn, [
        *caption.facts([dataset]),
        f"{caption.draws(dataset)}Spread: largest minus smallest eigenvalue of Q. Dashed: spread 1, up to which Theorem 2 guarantees "
        "a log-concave start (eigenvalue above 0). Minimum between draws: median and range over runs. "
        + panel.reading([errors], [dataset])])
    return figure


def main():
    panel.main(__doc__, "figure_tilted_ising", " with metric log_concavity", draw)


if __name__ == "__main__":
    script.run(main)
