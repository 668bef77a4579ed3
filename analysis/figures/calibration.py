#!/usr/bin/env python3
"""Are the draws of a sampler as wide as the exact posterior, and on the right modes? For any posterior study.

One column for each setting, with what the study measured. Top: standard deviation of the draws over that of exact draws
(metric sd_ratio; below 1: too narrow). Middle: total variation between mode weights of draws and of exact draws (metric
mode_weight). Both against the number of observations, with the Monte-Carlo floor that exact draws reach. Bottom: for each policy the
distribution function of the rank of theta* among the draws at one number of observations (metric rank), minus that of uniform ranks, with a
band that contains the whole curve with 95% probability when the draws are exact (Säilynoja, Bürkner and Vehtari 2022). If draws are too
narrow, the curve is above on the left and below on the right; if too wide, the reverse; if biased to one side, it stays on one side.

The printed table also has the ranks of |theta*| and of the likelihood at theta* (metrics rank_norm and rank_log_likelihood), which reveal
errors that coordinates do not.

Two p-values that ranks are uniform (simulation-based calibration): p for the chi-squared test, p ecdf for the band, as in the figure.
Settings and sample sizes share their random numbers, so they are tested one by one, never pooled. Prints the tests too.

Reads DIR/results.nc; writes DIR/calibration.png and .pdf.
"""
import needs
import dataclasses

import numpy as np
import pandas as pd
from scipy import special

from thompson import Error, design, ecdf, metrics, significance, store, wording
import caption
import drawing
import panel
import script
import style

# Curves of the upper panels; whether they use a log axis (a total variation may be zero).
CURVES = {"sd_ratio": None, "mode_weight_error": False}
PER_BIN = 8         # least expected number of runs in a bin
MOST_BINS = 20
POINTS = 64         # most points of a distribution function
REACH = 2.0         # the axis extends to this multiple of the band
LEVEL = 0.05
BESIDE = 3          # distribution functions side by side


@dataclasses.dataclass
class Ranks:
    """Ranks 0..draws of n runs: their histogram with its test, and their distribution function with its own; p is NaN for too few runs."""
    counts: np.ndarray      # [bins]
    expected: np.ndarray    # [bins]
    statistic: float
    p: float
    points: tuple           # [point], as fractions of the range of ranks
    below: np.ndarray       # [point], ranks below each
    p_ecdf: float

    def runs(self):
        return int(self.counts.sum())

    def band(self):
        """The distribution function minus that of uniform ranks, at most and at least, within the band: [point] each."""
        return tuple(edge / self.runs() - np.array(self.points) for edge in ecdf.band(self.runs(), self.points, 1 - LEVEL))


def edges(draws, parts):
    """[parts + 1] ends of parts of the ranks; ranks are whole numbers, so the sizes of parts may differ by one."""
    return np.rint(np.linspace(0, draws + 1, parts + 1))


def ranks(values, draws):
    """The ranks `values` [n] among this many draws."""
    values = values[np.isfinite(values)]
    n = len(values)
    bins = max(1, min(MOST_BINS, n // PER_BIN, draws + 1))
    ends, inner = edges(draws, bins), edges(draws, max(1, min(POINTS, n, draws + 1)))[1:-1]
    counts, expected = np.histogram(values, ends - 0.5)[0], n * np.diff(ends) / (draws + 1)
    points, below = tuple(inner / (draws + 1)), (values[:, None] < inner).sum(axis=0)
    statistic = p = p_ecdf = np.nan
    if bins > 1:
        statistic = float(((counts - expected) ** 2 / expected).sum())
        p, p_ecdf = float(special.chdtrc(bins - 1, statistic)), ecdf.p_value(n, points, below)
    return Ranks(counts, expected, statistic, p, points, below, p_ecdf)


def number_of_draws(dataset):
    """Number of draws in each setting, [setting]."""
    swept = design.swept(dataset).get("draws")
    if swept is not None:
        return swept.astype(int)
    number = design.config(dataset, "draws")
    if number is None:
        raise Error("the results do not say how many draws were made (key draws of attribute config)")
    return np.full(dataset.sizes["setting"], int(number))


def tests(dataset, at, rank="rank"):
    """{(setting index, label): Ranks} for this rank at this sample size."""
    where, draws = metrics.points(dataset, at), number_of_draws(dataset)
    return {(s, label): ranks(dataset[rank].values[s, p, :, where[s]], draws[s])
            for s in range(len(where)) for p, label in enumerate(design.policy_names(dataset))}


def middle(dataset):
    """The sample size in the middle of the list."""
    sizes = dataset["sample_size"].values
    return sizes[len(sizes) // 2]


def p_text(p):
    return "too few runs" if np.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def draw_ranks(axis, found, label, colour, threshold):
    """One small distribution function of ranks, minus that of uniform ones."""
    axis.axhline(0, color=style.FAINT, linewidth=0.6, linestyle=":", zorder=4)
    if found.points:
        low, high = found.band()
        axis.fill_between(found.points, low, high, color=panel.FLOOR, alpha=0.6, linewidth=0, zorder=1)
        axis.plot([0, *found.points, 1], [0, *(found.below / found.runs() - np.array(found.points)), 0], color=colour, linewidth=1.0, zorder=3)
        top = REACH * max(high.max(), -low.min())
        axis.set_ylim(-top, top)
    axis.set(xlim=(0, 1), xticks=[])
    axis.locator_params(axis="y", nbins=3)
    axis.tick_params(labelsize=6, length=2, pad=1)
    bold = "bold" if found.p_ecdf < threshold else "normal"
    axis.set_title(label, fontsize=6.8, pad=10)
    axis.annotate(p_text(found.p_ecdf), (0.5, 1), (0, 2), xycoords="axes fraction", textcoords="offset points", ha="center",
                  fontsize=6.5, color=style.TEXT if bold == "bold" else style.FAINT, fontweight=bold)


def draw_all_ranks(figure, place, found, styles, threshold):
    """The distribution functions of one setting, {label: Ranks}, where `place` was."""
    rows = -(-len(found) // BESIDE)
    cells = place.get_subplotspec().subgridspec(rows, BESIDE, hspace=1.0, wspace=0.22).subplots(squeeze=False)
    place.remove()
    for index, (cell, (label, one)) in enumerate(zip(cells.ravel(), found.items())):
        draw_ranks(cell, one, label, styles[label]["color"], threshold)
        if index % BESIDE:
            cell.set_yticklabels([])
        if index + BESIDE >= len(found):
            cell.set_xlabel("rank", fontsize=6.8, labelpad=1)
    for spare in cells.ravel()[len(found):]:
        spare.set_visible(False)


def sentences(dataset, panels, found, at):
    text = caption.facts([dataset])
    if panels:
        text.append(caption.draws(dataset) + panel.reading(panels, [dataset]))
    if found:
        text.append(
            f"Small panels: distribution of the rank of theta* among the draws, n = {wording.plain(at)}, minus the uniform one; grey: {1 - LEVEL:.0%} band of "
            f"exact draws; bold: p below {LEVEL:g} / {len(found)} tests. Up on the left, down on the right: draws too narrow; the reverse: too wide.")
    return text


def draw(dataset, at=None):
    """The whole figure; ranks at sample size `at`, the middle one for None."""
    style.use()
    have = [curve for curve in CURVES if curve in store.curves(dataset)]
    at = middle(dataset) if at is None else at
    found = tests(dataset, at) if "rank" in store.curves(dataset) else {}
    if not have and not found:
        raise Error("the study did not measure sd_ratio, mode_weight or rank (key metrics)")
    names = design.policy_names(dataset)
    styles = style.lines(names)
    rows = -(-len(names) // BESIDE)
    figure, places = panel.grid(dataset.sizes["setting"], [*[1] * len(have), *([0.1 + 0.4 * rows] if found else [])], styles)
    panels = []
    for s, (place, title) in enumerate(zip(places, design.titles(dataset))):
        for axis, curve in zip(place, have):
            one = panel.of_study(dataset, curve, s, title if curve == have[0] else "", ideal=metrics.IDEAL.get(curve),
                                  log=CURVES[curve])
            one.ylabel = metrics.NAMES[curve] if s == 0 else ""
            panel.draw(axis, one, styles)
            panel.name_lines(axis, one.x, one.means, {label: styles[label] for label in one.names})
            panels.append(one)
        if found:
            here = {label: found[s, label] for label in names}
            draw_all_ranks(figure, place[-1], here, styles, LEVEL / len(found))
    entries = panel.handles(panels)
    panel.below(figure, entries, sentences(dataset, panels, found, at))
    return figure


def measured(dataset):
    """The kinds of ranks that the study measured."""
    return [rank for rank in significance.RANKS if rank in store.curves(dataset)]


def table(dataset, at=None):
    """The tests of uniform ranks, one row for each rank, setting and policy."""
    titles = design.titles(dataset)
    rows = [(rank, titles[s], label, one.runs(), len(one.counts), one.statistic, one.p, one.p_ecdf) for rank in measured(dataset)
            for (s, label), one in tests(dataset, middle(dataset) if at is None else at, rank).items()]
    return pd.DataFrame(rows, columns=["of", "setting", "policy", "runs", "bins", "chi2", "p", "p ecdf"])


def main():
    parser = drawing.study_options(__doc__, "a posterior study")
    parser.add_argument("--at", metavar="VALUE", type=float, help="sample size of the ranks (default: the middle one)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, "posterior")
    drawing.save(draw(dataset, arguments.at), drawing.outputs(arguments, "calibration"))
    if measured(dataset):
        print(table(dataset, arguments.at).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    script.run(main)
