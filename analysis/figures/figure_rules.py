#!/usr/bin/env python3
"""Rules and priors side by side: cumulative regret, and regret at the last round, with a colour for each prior and a line style for each rule.

For bandit studies of one setting whose policies are methods with several rules and priors (docs/recipes/routing.md). Left: mean over completed runs
with a band of one standard error; right: the last round, a mark for each policy with a bar of two standard errors.

Reads results.nc of DIR; writes figure_rules.png and .pdf into DIR.
"""
import needs
import pathlib

from matplotlib import pyplot as plt

from thompson import averages, design
import caption
import drawing
import panel
import regret
import script
import style

DASHES = {"thompson": "-", "bayes_ucb": (0, (5, 2)), "greedy": (0, (1, 1.2))}
WIDTH = 0.3                           # width of the marks of a rule
FITTED = {"gaussian": "tuned_ts"}     # prior files drawn in the colour of the method that learns such a prior


def kinds(dataset):
    """{label: (method, prior file without its ending or None, rule or None)} of the policies."""
    found = {}
    for label, options in design.options(dataset).items():
        prior = str(options.get("prior.file") or options.get("prior") or "")
        found[label] = options["name"], pathlib.Path(prior).stem if prior.endswith(".nc") else None, options.get("rule")
    return found


def styles_of(found):
    """{label: keyword arguments of plot}: colour and marker of the method, or of the one that learns such a prior; dashes of the rule."""
    styles = {}
    for label, (method, prior, rule) in found.items():
        colour, marker = style.colour_and_marker(FITTED.get(prior, method))
        styles[label] = {"color": colour, "marker": marker, "linestyle": DASHES.get(rule, "-")}
    return styles


def draw_ends(axis, dataset, found, styles):
    """Regret at the last round of the policies that have a rule, side by side for each rule."""
    means, errors = (averages.at_end(dataset, values)[0] for values in averages.moments(dataset, "regret"))
    rules = [rule for rule in DASHES if any(kind[2] == rule for kind in found.values())]
    for place, rule in enumerate(rules):
        chosen = [p for p, kind in enumerate(found.values()) if kind[2] == rule]
        for k, p in enumerate(chosen):
            one = styles[list(found)[p]]
            axis.errorbar(place + WIDTH * (k - (len(chosen) - 1) / 2), means[p], yerr=2 * errors[p], color=one["color"], marker=one["marker"], capsize=3, elinewidth=1.2)
    axis.set_xticks(range(len(rules)), rules)
    axis.set_xlim(-0.6, len(rules) - 0.4)
    axis.grid(axis="y")
    axis.set_ylabel("regret at the last round")


def draw(dataset):
    style.use()
    found = kinds(dataset)
    styles = styles_of(found)
    figure, (left, right) = plt.subplots(1, 2, figsize=style.LOOK.size or (9, 3.6), layout="constrained", width_ratios=(3, 2))
    regret.draw(left, dataset, 0, styles)
    left.set_ylabel("cumulative regret")
    draw_ends(right, dataset, found, styles)
    panel.below(figure, panel.lines(styles), [*caption.facts([dataset]), caption.curves([dataset]), "Right: two standard errors."])
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "such a study"))
    (dataset,) = drawing.results(arguments)
    drawing.save(draw(dataset), drawing.outputs(arguments, "figure_rules"))


if __name__ == "__main__":
    script.run(main)
