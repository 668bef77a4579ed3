#!/usr/bin/env python3
"""Regret against what past tasks were observed: a line for each source of the prior, a panel for each policy and problem.

For bandit studies that sweep prior.learned_from and one of prior.past_observations and prior.past_tasks
(jobs/ablation_logs.yaml); other swept keys make more panels. A prior from the true theta does not depend on the observations, and
is the level that the others come down to.

Reads results.nc of each DIR; writes figure_logs.png and .pdf into the first DIR.
"""
import needs
import numpy as np

from thompson import Error, averages, wording
import drawing
import panel
import script

AXES = {"prior_past_observations": "observations of each past task", "prior_past_tasks": "past tasks"}


def column(dataset, name):
    """A swept key, one value for each setting."""
    return [value.decode() if isinstance(value, bytes) else value for value in dataset[name].values.tolist()]


def panels(dataset):
    """One panel for each policy and each setting of the keys that are not drawn."""
    axis = next((name for name in AXES if name in dataset.variables), None)
    if axis is None or "prior_learned_from" not in dataset.variables:
        raise Error("the study sweeps no prior.learned_from with prior.past_observations or prior.past_tasks")
    source, place = column(dataset, "prior_learned_from"), column(dataset, axis)
    others = [name for name in dataset.variables if name.startswith(("problem_", "prior_"))
              and name not in (axis, "prior_learned_from") and dataset[name].dims == ("setting",)]
    titles = [", ".join(str(column(dataset, name)[s]) for name in others) for s in range(len(source))]
    lines, x = list(dict.fromkeys(source)), np.array(sorted(set(place)), float)
    means, errors = (averages.at_end(dataset, values) for values in averages.moments(dataset, "regret"))
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)
    made = []
    for p, policy in enumerate(dataset["policy"].values.tolist()):
        for title in dict.fromkeys(titles):
            values = np.full((2, len(lines), len(x)), np.nan)
            members = [s for s, own in enumerate(titles) if own == title]
            for s in members:
                values[:, lines.index(source[s]), np.searchsorted(x, place[s])] = means[s, p], errors[s, p]
            fewest = np.array([min(done[s, p] for s in members if source[s] == line) for line in lines])
            made.append(panel.Panel(f"{policy} {title}".strip(), AXES[axis], "regret at the last round", x, *values,
                                    {line: line for line in lines}, fewest, wanted[members[0]], log=False))
    return made


def draw(datasets):
    """The whole figure, of the results of one or more studies."""
    made = [one for dataset in datasets for one in panels(dataset)]
    figure = panel.page(made, datasets)
    for axis, one in zip(figure.axes, made):
        axis.set_xscale("log")
        axis.set_xticks(one.x, [wording.plain(value) for value in one.x], minor=False)
        axis.xaxis.set_minor_formatter("")
    return figure


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_logs"))


if __name__ == "__main__":
    script.run(main)
