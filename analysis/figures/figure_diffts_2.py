#!/usr/bin/env python3
"""Figures 2 and 4 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS), for any bandit study.

One column for each setting. Upper panel: samples of the true prior (blue) and of the learned diffusion prior (red), in more
than two dimensions as their first two principal components; it is left out where the study has neither. Lower panel: cumulative regret against the round, mean over
completed runs with a band of one standard error. A policy that diverges leaves the axis, and the panel says where it ends.

Reads DIR/results.nc and DIR/prior_samples.nc; writes DIR/figure_diffts_2.png and .pdf.
"""
import needs
from thompson import design, store
import caption
import drawing
import panel
import prior
import regret
import script
import style


def draw(dataset, priors):
    """The whole figure."""
    style.use()
    styles = style.lines(design.policy_names(dataset))
    figure, places = prior.grid(design.titles(dataset), [prior.samples(priors, setting) for setting in dataset["setting"].values], styles)
    for s, axis in enumerate(places):
        regret.draw(axis, dataset, s, styles)
    places[0].set_ylabel("cumulative regret")
    panel.below(figure, [], [*caption.facts([dataset]), caption.curves([dataset])])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study"))
    (dataset,), priors = drawing.results(arguments), store.prior_samples(arguments.folders[0])
    drawing.save(draw(dataset, priors), drawing.outputs(arguments, "figure_diffts_2"))


if __name__ == "__main__":
    script.run(main)
