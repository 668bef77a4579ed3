#!/usr/bin/env python3
"""Figures 3 and 5 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS): bandits on real data.

Give the folders of the linear and of the logistic study, or one of them. Left: samples of the true prior (blue) and of the
learned diffusion prior (red) of the first study, once as their first two principal components, which keep distances, and once
through UMAP as in the paper (t-SNE where the package umap-learn is missing), which keeps neighbours. Right: for each study the
cumulative regret against the round, mean over completed runs with a band of one standard error.

Reads results.nc and prior_samples.nc of each DIR; writes figure_diffts_3.png and .pdf into the first DIR.
"""
import argparse
import pathlib
import warnings

import numpy as np
from matplotlib.lines import Line2D

import load
import style
from figure_diffts_2 import SOURCES, caption, draw_prior, draw_regret, legend
from style import plt

LIKELIHOODS = {"gaussian": "linear bandit", "logistic": "logistic bandit", "poisson": "Poisson bandit"}


def embed(points):
    """A map of points [n, d] into the plane that keeps neighbours, and its name: ([n, 2], name)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both libraries announce changes of their defaults
        try:
            from umap import UMAP
            return UMAP(random_state=0).fit_transform(points), "UMAP"
        except ImportError:
            from sklearn.manifold import TSNE
            from threadpoolctl import threadpool_limits
            with threadpool_limits(1):  # many threads on a busy machine wait for each other
                return TSNE(random_state=0, init="pca", learning_rate="auto").fit_transform(points), "t-SNE"


def neighbours(samples):
    """As figure_diffts_2.plane, by a map of all sources together. A theta that was drawn more than once from a finite set
    stands for itself once: repeated points would make clusters of their own."""
    samples = {source: np.unique(rows, axis=0) for source, rows in samples.items()}
    mapped, name = embed(np.concatenate(list(samples.values())))
    ends = np.cumsum([len(rows) for rows in samples.values()])
    return dict(zip(samples, np.split(mapped, ends[:-1]))), (f"{name} 1", f"{name} 2")


def title(dataset):
    likelihood = load.config(dataset, "likelihood")
    return f"{load.titles(dataset)[0]}, {LIKELIHOODS.get(likelihood, likelihood)}"


def draw(studies):
    """The whole figure, of [(results, prior samples), ...]: two panels of priors, one of regret for each study."""
    style.use()
    names = {label: name for dataset, _ in studies for label, name in load.policy_names(dataset).items()}
    look = style.lines(names)
    columns = 2 + len(studies)
    width, height = 3.3 * columns, 3.6
    figure, axes = plt.subplots(1, columns, figsize=(width, height))
    figure.subplots_adjust(left=0.6 / width, right=1 - 0.1 / width, bottom=0.5 / height, top=1 - 0.7 / height, wspace=0.3)
    first, priors = studies[0]
    setting = first["setting"].values[0]
    draw_prior(axes[0], priors, setting)
    draw_prior(axes[1], priors, setting, neighbours)
    axes[1].set(xticks=[], yticks=[])  # the map has no scale
    for axis, kind in zip(axes, ("principal components", "neighbours")):
        axis.set_title(f"priors of {load.titles(first)[0]}: {kind}")
    for axis, (dataset, _) in zip(axes[2:], studies):
        axis.set_title(title(dataset))
        draw_regret(axis, dataset, 0, {label: look[label] for label in load.policy_names(dataset)})
    axes[2].set_ylabel("cumulative regret")

    dots = [Line2D([], [], color=colour, marker="o", linestyle="none", label=f"sample of the {name}")
            for name, colour in SOURCES.values()]
    lines = [Line2D([], [], label=policy, **drawn) for policy, drawn in look.items()]
    legend(figure, dots + lines, 0.02 / height, max(1, int(width / 1.5)))
    captions = dict.fromkeys(caption(dataset) for dataset, _ in studies)
    text = "\n".join(style.wrapped(line, width) for line in captions)
    figure.text(0.5, -0.55 / height, text, ha="center", va="top", fontsize=8.5, color=style.FAINT)
    return figure


def read(folder):
    """Results and prior samples of a study with one setting."""
    dataset = load.results(folder)
    if dataset.sizes["setting"] != 1:
        raise load.BadInput(f"{folder}: {dataset.sizes['setting']} settings; this figure is for studies with one, "
                            "figure_diffts_2.py for the others")
    return dataset, load.prior_samples(folder)


def main(description=__doc__, name="figure_diffts_3"):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="DIR", nargs="+", help="results folder of a bandit study without a sweep")
    parser.add_argument("-o", "--output", metavar="FILE", action="append",
                        help="write there instead, the format by the ending (may be repeated)")
    arguments = parser.parse_args()
    paths = [pathlib.Path(path) for path in
             arguments.output or [pathlib.Path(arguments.folders[0]) / f"{name}.{ending}" for ending in ("png", "pdf")]]
    for path in paths:
        if path.suffix not in style.ENDINGS:
            parser.error(f"{path}: the file name must end with one of {' '.join(style.ENDINGS)}")
    style.save(draw([read(folder) for folder in arguments.folders]), paths)


if __name__ == "__main__":
    load.script(main)
