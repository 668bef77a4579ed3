#!/usr/bin/env python3
"""Are the draws of a sampler as wide as the exact posterior, and on the right modes? For any posterior study.

One column for each setting, with what the study measured. Top: standard deviation of the draws over that of exact draws
(metric sd_ratio; below 1: too narrow). Middle: total variation between mode weights of draws and of exact draws (metric
mode_weight). Both against the number of observations, with the Monte-Carlo floor that exact draws reach. Bottom: for each policy the
histogram of the rank of theta* among the draws at one number of observations (metric rank): even when the draws are exact,
high at both ends when they are too narrow, high in the middle when too wide, sloped when they are off to one side.

The p-value is of the chi-squared test that ranks are uniform (simulation-based calibration). Settings and sample sizes share
their random numbers, so they are tested one by one, never pooled. Prints the tests too.

Reads DIR/results.nc; writes DIR/calibration.png and .pdf.
"""
import dataclasses

import numpy as np
import pandas as pd
from scipy import stats

from thompson import Error, design, metrics, store, wording
import caption
import drawing
import panel
import script
import style

# Curves of the upper panels; whether on a log axis (a total variation may be zero).
CURVES = {"sd_ratio": None, "mode_weight_error": False}
PER_BIN = 8         # expected runs in a bin, at least
MOST_BINS = 20
TOP = 3.0           # bars above this multiple of the expected height are cut
LEVEL = 0.05
BAND = (0.025, 0.975)   # of bars of exact draws
BESIDE = 3          # histograms side by side


@dataclasses.dataclass
class Ranks:
    """Histogram of ranks 0..draws of n runs, and how likely it is under uniform ranks."""
    edges: np.ndarray       # [bins + 1], as shares of the range of ranks
    counts: np.ndarray      # [bins]
    expected: np.ndarray    # [bins]
    statistic: float        # NaN when the runs are too few
    p: float

    def band(self):
        """Central 95% of the count in each bin under uniform ranks: (low, high), [bins] each."""
        n = int(self.counts.sum())
        return tuple(stats.binom.ppf(level, n, self.expected / n) for level in BAND)


def ranks(values, draws):
    """The histogram of ranks `values` [n] among this many draws."""
    values = values[np.isfinite(values)]
    n = len(values)
    bins = max(1, min(MOST_BINS, n // PER_BIN, draws + 1))
    edges = np.rint(np.linspace(0, draws + 1, bins + 1))  # a bin is a set of whole ranks, so bins may differ by one rank
    counts, expected = np.histogram(values, edges - 0.5)[0], n * np.diff(edges) / (draws + 1)
    statistic = p = np.nan
    if bins > 1:
        statistic = ((counts - expected) ** 2 / expected).sum()
        p = stats.chi2.sf(statistic, bins - 1)
    return Ranks(edges / (draws + 1), counts, expected, float(statistic), float(p))


def number_of_draws(dataset):
    """Draws in each setting, [setting]."""
    swept = design.swept(dataset).get("draws")
    if swept is not None:
        return swept.astype(int)
    number = design.config(dataset, "draws")
    if number is None:
        raise Error("the results do not say how many draws were taken (key draws of attribute config)")
    return np.full(dataset.sizes["setting"], int(number))


def tests(dataset, at):
    """{(setting index, label): Ranks} at this sample size."""
    where, draws = metrics.points(dataset, at), number_of_draws(dataset)
    return {(s, label): ranks(dataset["rank"].values[s, p, :, where[s]], draws[s])
            for s in range(len(where)) for p, label in enumerate(design.policy_names(dataset))}


def middle(dataset):
    """The sample size in the middle of the list."""
    sizes = dataset["sample_size"].values
    return sizes[len(sizes) // 2]


def p_text(p):
    return "too few runs" if np.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def draw_ranks(axis, found, label, colour, threshold):
    """One small histogram, in multiples of the expected height."""
    widths = np.diff(found.edges)
    if found.counts.sum():
        low, high = (edge / found.expected for edge in found.band())
        heights = found.counts / found.expected
        outside = (heights < low) | (heights > high)
        axis.bar(found.edges[:-1], high - low, widths, low, align="edge", color=panel.FLOOR, alpha=0.6, linewidth=0, zorder=1)
        axis.bar(found.edges[:-1][outside], heights[outside], widths[outside], align="edge", color=colour, alpha=0.5,
                 linewidth=0, zorder=2)
        axis.stairs(heights, found.edges, color=colour, linewidth=1.0, zorder=3, baseline=None)
    axis.axhline(1, color=style.FAINT, linewidth=0.6, linestyle=":", zorder=4)
    axis.set(xlim=(0, 1), ylim=(0, TOP), xticks=[], yticks=[0, 1, 2, 3])
    axis.tick_params(labelsize=6, length=2, pad=1)
    bold = "bold" if found.p < threshold else "normal"
    axis.set_title(label, fontsize=6.8, pad=10)
    axis.annotate(p_text(found.p), (0.5, 1), (0, 2), xycoords="axes fraction", textcoords="offset points", ha="center",
                  fontsize=6.5, color=style.TEXT if bold == "bold" else style.FAINT, fontweight=bold)


def draw_all_ranks(figure, place, found, styles, threshold):
    """The histograms of one setting, {label: Ranks}, where `place` was."""
    rows = -(-len(found) // BESIDE)
    cells = place.get_subplotspec().subgridspec(rows, BESIDE, hspace=1.0, wspace=0.22).subplots(squeeze=False)
    place.remove()
    for index, (cell, (label, histogram)) in enumerate(zip(cells.ravel(), found.items())):
        draw_ranks(cell, histogram, label, styles[label]["color"], threshold)
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
            f"Histograms: rank of theta* among the draws along a random direction, n = {wording.plain(at)}; height over that of "
            f"uniform ranks, cut at {wording.plain(TOP)}; grey: 95% of bars of exact draws, filled: outside. p: chi-squared test "
            f"of uniformity, bold below {LEVEL:g} / {len(found)} tests. High ends: draws too narrow; high middle: too wide; slope: off to one side.")
    return text


def draw(dataset, at=None):
    """The whole figure; ranks at sample size `at`, the middle one for None."""
    style.use()
    have = [curve for curve in CURVES if curve in store.curves(dataset)]
    at = middle(dataset) if at is None else at
    found = tests(dataset, at) if "rank" in store.curves(dataset) else {}
    if not have and not found:
        raise Error("the study measured none of sd_ratio, mode_weight, rank (key metrics)")
    names = design.policy_names(dataset)
    styles = style.lines(names)
    rows = -(-len(names) // BESIDE)
    figure, places = panel.grid(dataset.sizes["setting"], [*[1] * len(have), *([0.1 + 0.33 * rows] if found else [])])
    panels = []
    for s, (place, title) in enumerate(zip(places, design.titles(dataset))):
        for axis, curve in zip(place, have):
            one = panel.of_study(dataset, curve, s, title if curve == have[0] else "", ideal=metrics.IDEAL.get(curve),
                                  log=CURVES[curve])
            one.ylabel = metrics.NAMES[curve] if s == 0 else ""
            panel.draw(axis, one, styles)
            panels.append(one)
        if found:
            here = {label: found[s, label] for label in names}
            draw_all_ranks(figure, place[-1], here, styles, LEVEL / len(found))
    entries = panel.handles(panels, styles) if panels else []
    panel.below(figure, entries, sentences(dataset, panels, found, at))
    return figure


def table(dataset, at=None):
    """The tests of uniform ranks, one row for each setting and policy."""
    titles = design.titles(dataset)
    rows = [(titles[s], label, int(one.counts.sum()), len(one.counts), one.statistic, one.p)
            for (s, label), one in tests(dataset, middle(dataset) if at is None else at).items()]
    return pd.DataFrame(rows, columns=["setting", "policy", "runs", "bins", "chi2", "p"])


def main():
    parser = drawing.study_options(__doc__, "a posterior study")
    parser.add_argument("--at", metavar="VALUE", type=float, help="sample size of the ranks (default: the middle one)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, "posterior")
    drawing.save(draw(dataset, arguments.at), drawing.outputs(arguments, "calibration"))
    if "rank" in store.curves(dataset):
        print(table(dataset, arguments.at).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    script.run(main)
