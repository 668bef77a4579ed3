#!/usr/bin/env python3
"""Regret against temper, the factor of the evidence: a line for each method, a panel for each problem.

For bandit studies whose policies are methods at several values of the option temper (jobs/questions/temper.yaml and its versions for real data).
Where the lines of two methods are the same curve shifted sideways, one method is the other with more or less evidence.
analysis/tools/selection.py --control temper=1 prints the table: the difference that is left when every method may choose its temper.

Reads results.nc of each DIR; writes figure_temper.png and .pdf into the first DIR.
"""
import needs
import numpy as np

from thompson import Error, averages, design, selection, wording
import drawing
import panel
import script


def panels(dataset):
    """One panel for each setting."""
    options = list(design.options(dataset).values())
    groups = selection.methods(dataset)
    tempers = [float(chosen.get("temper", 1)) for chosen in options]
    x = np.array(sorted(set(tempers)))
    means, errors = (averages.at_end(dataset, values) for values in averages.moments(dataset, "regret"))
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)
    if len(x) < 2:
        raise Error("all policies have the same temper, so there is nothing to draw against")
    made = []
    for s, title in enumerate(design.titles(dataset)):
        lines = np.full((2, len(groups), len(x)), np.nan)
        for row, members in enumerate(groups.values()):
            for p in members:
                lines[:, row, np.searchsorted(x, tempers[p])] = means[s, p], errors[s, p]
        fewest = np.array([done[s, members].min() for members in groups.values()])
        made.append(panel.Panel(title, "temper: factor on the evidence", "regret at the last round", x, *lines,
                                {method: method for method in groups}, fewest, wanted[s], log=False))
    return made


def doubling(axis, one):
    """Equal steps for each factor of two."""
    low, high = axis.get_xlim()
    axis.set_xscale("log", base=2)
    axis.set_xlim(max(low, 0.9 * one.x[0]), high)
    axis.xaxis.set_major_formatter(lambda value, _: wording.plain(value))
    axis.xaxis.set_minor_formatter("")


def draw(datasets):
    """The whole figure, from the results of one or more studies."""
    return panel.page([one for dataset in datasets for one in panels(dataset)], datasets, finish=doubling)


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_temper"))


if __name__ == "__main__":
    script.run(main)
