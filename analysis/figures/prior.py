"""Samples of the true prior and of the learned diffusion prior, in one panel; in more than two dimensions as their first two principal
components."""
import numpy as np
from matplotlib.lines import Line2D
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import panel
import style

SOURCES = {"true": ("true prior", style.TRUE_PRIOR), "diffusion": ("learned diffusion prior", style.LEARNED_PRIOR)}


def complete_rows(theta):
    """theta [n, d] without absent dimensions and absent samples, which are NaN."""
    theta = theta[:, ~np.isnan(theta).all(axis=0)]
    return theta[~np.isnan(theta).any(axis=1)] if theta.size else theta[:0]


def distance(one, other):
    """Earth mover's distance between equal numbers of samples [n, d]."""
    cost = cdist(one, other)
    return cost[linear_sum_assignment(cost)].mean()


def plane(samples):
    """Two coordinates to draw for each source, and the axis labels: {source: [n, 2]}, (x, y).

    In more than two dimensions these are the first two principal components of the first source that has samples (the true prior)."""
    reference = next(iter(samples.values()))
    d = reference.shape[1]
    if d <= 2:
        return samples, (r"$\theta_1$", r"$\theta_2$")
    centre = reference.mean(axis=0)
    _, singular, axes = np.linalg.svd(reference - centre, full_matrices=False)
    share = 100 * singular[:2] ** 2 / (singular ** 2).sum()
    names = tuple(f"{nth} principal component of {d} ({part:.0f}%)" for nth, part in zip(("1st", "2nd"), share))
    return {source: (theta - centre) @ axes[:2].T for source, theta in samples.items()}, names


def samples(priors, setting):
    """{source: theta [n, d]} for the priors that the setting has samples of; `priors` may be None."""
    if priors is None or setting not in priors["setting"].values:
        return {}
    here = priors["theta"].sel(setting=setting)
    found = {source: complete_rows(here.sel(source=source).values) for source in SOURCES if source in priors["source"].values}
    return {source: rows for source, rows in found.items() if len(rows)}


def draw(axis, theta, projection=plane):
    """Samples of the priors, {source: [n, d]}, in random order so that neither hides the other."""
    axis.set_box_aspect(1)
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


def legend(figure, of_settings):
    """The priors that any setting has samples of, above all panels."""
    drawn = [look for source, look in SOURCES.items() if any(source in theta for theta in of_settings)]
    dots = [Line2D([], [], color=colour, marker="o", linestyle="none", label=f"sample of the {name}") for name, colour in drawn]
    if dots:
        panel.legend(figure, dots, 1 + 0.15 / figure.get_figheight(), len(dots))


def grid(titles, of_settings, styles):
    """A figure with a column for each setting: the samples of its priors, if it has any, above a panel for curves, [setting] of axes. A row without any
    samples is left out."""
    figure, places = panel.grid(len(titles), (1, 1) if any(of_settings) else (1,), styles)
    for place, title, theta in zip(places, titles, of_settings):
        style.title(place[0] if theta else place[-1], title)
        if theta:
            draw(place[0], theta)
        elif len(place) > 1:
            place[0].set_visible(False)
    legend(figure, of_settings)
    return figure, places[:, -1]
