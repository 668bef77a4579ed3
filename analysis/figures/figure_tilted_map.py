#!/usr/bin/env python3
"""The map of tilted transport (Bruna and Han, Theorem 2), from a posterior study of jobs/papers/tilted_map.yaml.

One panel for each policy. Axes: condition number of A and signal-to-noise ratio. Colour and number in a cell: how far the error
of the policy is above the Monte-Carlo floor, which a second set of exact draws reaches. The lines, the same in all panels, bound the region
in which the start nu_T* of tilted transport is log-concave: by the theorem's bound for mixtures as printed; by the same bound with a quarter
of the diameter's square, which two points reach; and by the Hessian itself, between draws from nu_T*, in half of the runs. Lines are
interpolated between the settings.

Reads DIR/results.nc; writes DIR/figure_tilted_map.png and .pdf.
"""
import needs
import numpy as np
from matplotlib.lines import Line2D

from thompson import Error, averages, design, wording
import caption
import inverse
import panel
import script
import style

CONDITION, SNR = inverse.CONDITION, inverse.SNR
# Variable: meaning of its line, dashes.
LINES = {"log_concavity_bound": ("bound of Theorem 2, as printed", ":"),
         "log_concavity_sharp": ("its sharp form (R/2 for R)", "--"),
         "log_concavity": ("Hessian between draws, half of the runs", "-")}
COLOURS = "YlOrRd"
HUGE = 1e6              # replaces infinite curvature, which has no contour
DARK = 0.6              # share of the colour scale above which numbers are white


def axes_of(dataset):
    """The values of both swept keys, in ascending order, and the position of each setting among them: (kappa, snr, row, column)."""
    swept = design.swept(dataset)
    if set(swept) != {CONDITION, SNR}:
        raise Error(f"this needs a study that sweeps {CONDITION} and {SNR}; this one sweeps {', '.join(swept) or 'nothing'}")
    kappa, column = np.unique(swept[CONDITION], return_inverse=True)
    snr, row = np.unique(swept[SNR], return_inverse=True)
    if min(len(kappa), len(snr)) < 2 or len(set(zip(row, column))) != len(kappa) * len(snr):
        raise Error(f"this needs every value of {CONDITION} with every value of {SNR}, and at least two of each")
    return kappa, snr, row, column


def on_grid(dataset, values):
    """values[setting] on the grid [snr, kappa]."""
    kappa, snr, row, column = axes_of(dataset)
    out = np.full((len(snr), len(kappa)), np.nan)
    out[row, column] = values
    return out


def excess(dataset, curve):
    """Error above the floor at the last sample size, [policy, snr, kappa]."""
    floor = averages.floor(dataset, curve)
    if floor is None:
        raise Error(f"the metric {curve} has no floor; the map shows what is above it")
    above = averages.at_end(dataset, averages.moments(dataset, curve)[0]) - averages.at_end(dataset, floor[0])[:, None]
    return np.stack([on_grid(dataset, above[:, p]) for p in range(above.shape[1])])


def concavity(dataset, name):
    """The median over runs of the smallest eigenvalue, [snr, kappa]; infinite where the start is a point, NaN where no run has a value."""
    values = inverse.curvature(dataset, name)
    known = ~np.isnan(values).all(axis=1)
    return on_grid(dataset, [np.nanmedian(row) if good else np.nan for row, good in zip(values, known)])


def draw_panel(axis, title, kappa, snr, above, borders, top):
    """Settings are evenly spaced, whatever their values."""
    x, y = np.arange(len(kappa)), np.arange(len(snr))
    mesh = axis.pcolormesh(x, y, np.clip(above, 0, top), shading="nearest", cmap=COLOURS, vmin=0, vmax=top, zorder=1)
    for (i, j), value in np.ndenumerate(above):
        text = f"{value:.2f}".replace("-0.00", "0.00").replace("0.", ".") if np.isfinite(value) else "none"
        axis.text(j, i, text, ha="center", va="center", fontsize=7, zorder=4,
                  color="white" if value > DARK * top else style.TEXT)
    for name, border in borders.items():
        if not np.isnan(border).all() and np.nanmin(border) < 0 < np.nanmax(border):
            axis.contour(x, y, np.arcsinh(np.minimum(border, HUGE)), levels=[0], colors="#0B3C8C", linewidths=1.8,
                         linestyles=[LINES[name][1]], zorder=3)
    axis.set(xlabel="condition number of A", title=title)
    axis.set_xticks(x, map(wording.plain, kappa))
    axis.set_yticks(y, map(wording.plain, snr))
    return mesh


def draw(dataset, curve):
    """The whole figure."""
    style.use()
    kappa, snr, _, _ = axes_of(dataset)
    above = excess(dataset, curve)
    borders = {name: concavity(dataset, name) for name in LINES}
    top = max(0.01, np.nanmax(above)) if np.isfinite(above).any() else 0.01
    figure, places = panel.grid(len(above))
    for axis, label, values in zip(places[:, 0], design.policy_names(dataset), above):
        mesh = draw_panel(axis, label, kappa, snr, values, borders, top)
    places[0, 0].set_ylabel("signal to noise ratio")
    words = dataset[curve].attrs.get("long_name", curve)
    figure.colorbar(mesh, ax=list(places[:, 0]), pad=0.02, label="error above the Monte-Carlo floor")
    drawn = [Line2D([], [], color="#0B3C8C", linewidth=1.8, linestyle=dashes, label=text) for text, dashes in LINES.values()]
    panel.below(figure, drawn, [
        *caption.facts([dataset]),
        f"{caption.draws(dataset)}Cells: {words}, mean over completed runs, minus the same for a second set of exact draws. Lines: "
        "where the smallest eigenvalue of the Hessian of -log nu_T* is zero; towards the lower left corner it is positive, "
        "and the start of tilted transport is log-concave. Signal to noise ratio: smallest singular value of A over the standard deviation of the noise."])
    return figure


def main():
    panel.main(__doc__, "figure_tilted_map", " with metric log_concavity", draw)


if __name__ == "__main__":
    script.run(main)
