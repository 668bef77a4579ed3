#!/usr/bin/env python3
"""Regret against the observations of past tasks: a line for each source of the prior, a panel for each policy and problem; and how far
the prior is from the true one.

For bandit studies that sweep prior.learned_from and one of prior.past_observations and prior.past_tasks
(jobs/questions/ablation_logs.yaml); other swept keys make more panels. A prior from the true theta does not depend on the observations; its
regret is the level that the others approach. Distances are between samples of the true and of the learned prior, for the first family
that the study learns and for one replicate.

Reads results.nc and prior_samples.nc of each DIR; writes figure_logs.png and .pdf into the first DIR.
"""
import needs
import dataclasses

import numpy as np

from thompson import Error, averages, store, wording
import drawing
import panel
import prior
import script

AXES = {"prior_past_observations": "observations per past task", "prior_past_tasks": "past tasks"}
SAMPLES = 500     # samples of each prior, for the distance


def column(dataset, name):
    """A swept key, one value for each setting."""
    return [value.decode() if isinstance(value, bytes) else value for value in dataset[name].values.tolist()]


@dataclasses.dataclass
class Grid:
    """Where each setting belongs: on which line, at which x and in which panel."""
    axis: str
    source: list
    place: list
    title: list

    def panel(self, title, what, heading, mean, error, done, wanted):
        """Draws mean, error and done, [setting] each."""
        lines, x = list(dict.fromkeys(self.source)), np.array(sorted(set(self.place)), float)
        values = np.full((2, len(lines), len(x)), np.nan)
        members = [s for s, own in enumerate(self.title) if own == title]
        for s in members:
            values[:, lines.index(self.source[s]), np.searchsorted(x, self.place[s])] = mean[s], error[s]
        fewest = np.array([min(done[s] for s in members if self.source[s] == line) for line in lines])
        return panel.Panel(f"{what} {title}".strip(), AXES[self.axis], heading, x, *values, {line: line for line in lines}, fewest,
                           wanted[members[0]], log=False)


def grid_of(dataset):
    axis = next((name for name in AXES if name in dataset.variables), None)
    if axis is None or "prior_learned_from" not in dataset.variables:
        raise Error("the study does not sweep prior.learned_from with prior.past_observations or prior.past_tasks")
    others = [name for name in dataset.variables if name.startswith(("problem_", "prior_"))
              and name not in (axis, "prior_learned_from") and dataset[name].dims == ("setting",)]
    source = column(dataset, "prior_learned_from")
    return Grid(axis, source, column(dataset, axis), [", ".join(str(column(dataset, name)[s]) for name in others) for s in range(len(source))])


def distances(dataset):
    """The distance of the learned prior to the true one in each setting, and its family."""
    samples = store.prior_samples(dataset.encoding["source"])
    _, family = samples["source"].values.tolist()
    theta = [[prior.complete_rows(samples["theta"].sel(setting=name, source=source).values)[:SAMPLES] for source in ("true", family)]
             for name in dataset["setting"].values]
    return np.array([prior.distance(*both) for both in theta]), family


def panels(dataset):
    """One panel for each policy and each setting of the other keys, and one of distances for each setting of these keys."""
    grid = grid_of(dataset)
    means, errors = (averages.at_end(dataset, values) for values in averages.moments(dataset, "regret"))
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)
    titles = list(dict.fromkeys(grid.title))
    made = [grid.panel(title, policy, "regret at the last round", means[:, p], errors[:, p], done[:, p], wanted)
            for p, policy in enumerate(dataset["policy"].values.tolist()) for title in titles]
    distance, family = distances(dataset)
    heading = "earth mover's distance to the true prior"
    return made + [grid.panel(title, family, heading, distance, np.full(len(distance), np.nan), wanted, wanted) for title in titles]


def decades(axis, one):
    axis.set_xscale("log")
    axis.set_xticks(one.x, [wording.plain(value) for value in one.x], minor=False)
    axis.xaxis.set_minor_formatter("")


def draw(datasets):
    """The whole figure, from the results of one or more studies."""
    made = [one for dataset in datasets for one in panels(dataset)]
    return panel.page(made, datasets, finish=decades)


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_logs"))


if __name__ == "__main__":
    script.run(main)
