#!/usr/bin/env python3
"""Figures 1, 2, 3, 5 and 6 of "VITS: Variational Inference Thompson Sampling for contextual bandits": cumulative regret.

One panel for each setting of each study: mean over completed runs against the round, with a band of one standard error. A
policy far above the others leaves the axis, and the panel says where it ends. Draws any bandit study, also one without
samples of a prior. Those of the paper:

  1  jobs/papers/vits_figure1.yaml  linear bandits, arms from a pool       5  jobs/papers/vits_figure5.yaml  linear bandit, twin arm
  2  jobs/papers/vits_figure2.yaml  quadratic bandits, arms from a pool    6  jobs/papers/vits_figure6.yaml  logistic bandit, twin arm
  3  jobs/papers/vits_figure3.yaml  MovieLens, a posterior for each arm

Reads results.nc of each DIR; writes figure_vits.png and .pdf into the first DIR.
"""
import needs
import textwrap

from thompson import averages, design, wording
import caption
import drawing
import panel
import regret
import script
import style


def sentences(datasets):
    """What one must know to judge the lines."""
    found = caption.facts(datasets)
    if any(design.config(dataset, "problem.family") == "pool" for dataset in datasets):
        found.append("Reward noise of a pool: in units of the deviation at which the signal to noise ratio is 1.")
    return [*found, caption.curves(datasets)]


def finals(dataset):
    """{label: its regret at the last round}, in words, of a study with one setting."""
    means, errors = (averages.at_end(dataset, values)[0] for values in averages.moments(dataset, "regret"))
    return {label: wording.value(*row) for label, *row in zip(design.policy_names(dataset), means, errors)}


def draw(datasets):
    """The whole figure, of the results of one or more studies."""
    style.use()
    styles = style.lines({label: name for dataset in datasets for label, name in design.policy_names(dataset).items()})
    settings = [(dataset, s, title) for dataset in datasets for s, title in enumerate(regret.titles(dataset))]
    figure, places = panel.grid(len(settings))
    for axis, (dataset, s, title) in zip(places[:, 0], settings):
        regret.draw(axis, dataset, s, styles)
        axis.set_title(textwrap.fill(title, 40))
    places[0, 0].set_ylabel("cumulative regret")
    ends = finals(datasets[0]) if len(settings) == 1 else {}  # lines of one panel often lie on each other
    handles = panel.lines({f"{label}: {ends[label]}" if ends else label: drawn for label, drawn in styles.items()})
    beside = ["Beside a name: regret at the last round, with its standard error."] if ends else []
    panel.below(figure, handles, [*sentences(datasets), *beside])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_vits"))


if __name__ == "__main__":
    script.run(main)
