#!/usr/bin/env python3
"""Figures 1, 2, 3, 5 and 6 of "VITS: Variational Inference Thompson Sampling for contextual bandits": cumulative regret.

One panel for each setting of each study: mean over completed runs against the round, with a band of one standard error. A
policy far above the others leaves the axis, and the panel says where it ends. Draws any bandit study, even one without
samples of a prior. The studies of the paper:

  1  jobs/papers/vits_figure1.yaml  linear bandits, arms from a pool       5  jobs/papers/vits_figure5.yaml  linear bandit, twin arm
  2  jobs/papers/vits_figure2.yaml  quadratic bandits, arms from a pool    6  jobs/papers/vits_figure6.yaml  logistic bandit, twin arm
  3  jobs/papers/vits_figure3.yaml  MovieLens, a posterior for each arm

Reads results.nc of each DIR; writes figure_vits.png and .pdf into the first DIR.
"""
import needs
from thompson import averages, design, wording
import caption
import drawing
import panel
import regret
import script
import style

FEW = 4             # methods of the paper that share a panel with others
OF_PAPER = ("lints", "lmc", "vits1", "vits2", "vits2_hf", "vts")


def sentences(datasets):
    """What readers must know to judge the lines."""
    found = caption.facts(datasets)
    if any(design.config(dataset, "problem.family") == "pool" for dataset in datasets):
        found.append("Reward noise of a pool: in units of the deviation at which the signal to noise ratio is 1.")
    return [*found, caption.curves(datasets)]


def others(dataset):
    """The policies that are not the paper's, if more than FEW of the paper's methods are there."""
    found = [label for label, name in design.policy_names(dataset).items() if name not in OF_PAPER]
    return found if dataset.sizes["policy"] - len(found) > FEW else []


def left_out(datasets):
    """A sentence about the policies without a line and where they end."""
    ends = []
    for dataset in datasets:
        means, errors = (averages.at_end(dataset, values) for values in averages.moments(dataset, "regret"))
        for label in others(dataset):
            p = design.labels(dataset).index(label)
            ends.append(f"{label} " + ", ".join(wording.value(*row) for row in zip(means[:, p], errors[:, p])))
    return [f"Without a line, regret at the last round: {'; '.join(ends)}."] if ends else []


def draw(datasets):
    """The whole figure, from the results of one or more studies."""
    whole, datasets = datasets, [dataset.isel(policy=[label not in others(dataset) for label in design.labels(dataset)]) for dataset in datasets]
    style.use()
    styles = style.lines({label: name for dataset in datasets for label, name in design.policy_names(dataset).items()})
    settings = [(dataset, s, title) for dataset in datasets for s, title in enumerate(regret.titles(dataset))]
    figure, places = panel.grid(len(settings), styles=styles)
    for axis, (dataset, s, title) in zip(places[:, 0], settings):
        regret.draw(axis, dataset, s, styles)
        style.title(axis, title)
    places[0, 0].set_ylabel("cumulative regret")
    panel.below(figure, [], [*sentences(datasets), *left_out(whole)])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_vits"))


if __name__ == "__main__":
    script.run(main)
