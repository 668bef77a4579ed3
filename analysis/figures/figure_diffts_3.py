#!/usr/bin/env python3
"""Figures 3 (MovieLens) and 5 (MNIST) of "Online Posterior Sampling with a Diffusion Prior" (DiffTS): bandits on real data.

Give the folders of the linear and of the logistic study, or one of them. Left, if the first study has any: samples of the true
prior (blue) and of its learned diffusion prior (red), once as their first two principal components, which preserve distances, and once
through UMAP as in the paper (t-SNE if the package umap-learn is missing), which preserves neighbours. Right: for each study the
cumulative regret against the round, mean over completed runs with a band of one standard error.

Reads results.nc and prior_samples.nc of each DIR; writes figure_diffts_3.png and .pdf into the first DIR.
"""
import needs
import warnings

import numpy as np

from thompson import Error, design, store
import caption
import drawing
import panel
import prior
import regret
import script
import style


def embed(points):
    """A map of points [n, d] into the plane that preserves neighbours, and its name: ([n, 2], name)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both libraries warn of changes to their defaults
        try:
            from umap import UMAP
            return UMAP(random_state=0).fit_transform(points), "UMAP"
        except ImportError:
            from sklearn.manifold import TSNE
            from threadpoolctl import threadpool_limits
            with threadpool_limits(1):  # many threads on a busy machine wait for each other
                return TSNE(random_state=0, init="pca", learning_rate="auto").fit_transform(points), "t-SNE"


def neighbours(samples):
    """As prior.plane, by one map of all sources together. A theta that was drawn more than once from a finite set
    is used once: repeated points would form clusters of their own."""
    samples = {source: np.unique(rows, axis=0) for source, rows in samples.items()}
    mapped, name = embed(np.concatenate(list(samples.values())))
    ends = np.cumsum([len(rows) for rows in samples.values()])
    return dict(zip(samples, np.split(mapped, ends[:-1]))), (f"{name} 1", f"{name} 2")


def draw(studies):
    """The whole figure, from [(results, prior samples), ...]: two panels of priors, one of regret for each study."""
    style.use()
    styles = style.lines({label: name for dataset, _ in studies for label, name in design.policy_names(dataset).items()})
    first, priors = studies[0]
    theta = prior.samples(priors, first["setting"].values[0])
    maps = [(prior.plane, "principal components"), (neighbours, "neighbours")] if theta else []
    figure, places = panel.grid(len(maps) + len(studies), styles=styles)
    of_priors, curves = np.split(places[:, 0], [len(maps)])
    for axis, (projection, kind) in zip(of_priors, maps):
        prior.draw(axis, theta, projection)
        style.title(axis, f"priors of {design.titles(first)[0]}: {kind}")
    for axis in of_priors[1:]:
        axis.set(xticks=[], yticks=[])  # this map has no scale
    for axis, (dataset, _) in zip(curves, studies):
        style.title(axis, regret.titles(dataset)[0])
        regret.draw(axis, dataset, 0, styles)
    curves[0].set_ylabel("cumulative regret")
    datasets = [dataset for dataset, _ in studies]
    prior.legend(figure, [theta])
    panel.below(figure, [], [*caption.facts(datasets), caption.curves(datasets)])
    return figure


def with_priors(dataset):
    """Results and prior samples of a study with one setting."""
    folder = dataset.encoding["source"]
    if dataset.sizes["setting"] != 1:
        raise Error(f"{folder}: {dataset.sizes['setting']} settings; this figure is for studies with one, "
                    "figure_diffts_2.py for the others")
    return dataset, store.prior_samples(folder)


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study without a sweep", several=True))
    drawing.save(draw([with_priors(dataset) for dataset in drawing.results(arguments)]), drawing.outputs(arguments, "figure_diffts_3"))


if __name__ == "__main__":
    script.run(main)
