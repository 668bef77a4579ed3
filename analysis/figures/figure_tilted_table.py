#!/usr/bin/env python3
"""Tilted transport and its rivals in linear inverse problems: error of the posterior's mode weights, and where it comes from.

A cell is a condition number and a signal-to-noise ratio. Printed for each cell: the mean over histories of the total variation
between the mode weights of the draws and of exact ones, minus the Monte-Carlo floor that a second set of exact draws reaches, with its
standard error, pooled over all dimensions and directions of the cell. A history in which one mode holds at least 95% of the
posterior says nothing about mode weights and is left out; so is one that a policy has not run. The figure has one panel for each
cell: the same quantity by dimension.

Reads DIR/results.nc of a posterior study with metric mode_weight that sweeps problem.condition_number and problem.snr; prints
Markdown; writes DIR/figure_tilted_table.png and .pdf.
"""
import needs
import numpy as np

from thompson import Error, averages, design, wording
import caption
import drawing
import inverse
import panel
import script

DIMENSION = "problem.dimension"


def summary(values):
    """Mean, standard error and number of values [setting, policy, run] over the histories: [policy] each."""
    flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    return averages.mean_and_error(flat)


def printed(dataset, values):
    """The lines of the table: a row for each policy, a column for each cell."""
    groups = inverse.cells(dataset)
    found = [summary(values[settings]) for settings in groups.values()]
    rows = [["condition number, SNR", *(", ".join(map(wording.plain, pair)) for pair in groups)],
            ["---"] * (1 + len(groups)),
            ["histories", *(f"{n.max()} of {len(settings) * values.shape[2]}"
                            for (_, _, n), settings in zip(found, groups.values()))]]
    for p, policy in enumerate(design.labels(dataset)):
        rows.append([policy, *(f"{mean[p]:.3f} ± {error[p]:.3f}" for mean, error, _ in found)])
    return [f"| {' | '.join(row)} |" for row in rows]


def panels(dataset, values):
    """A panel for each cell: the excess by dimension."""
    dimension = design.swept(dataset).get(DIMENSION)
    if dimension is None:
        raise Error(f"the study does not sweep {DIMENSION}, so there is nothing to draw against")
    done, _, wanted = averages.counts(dataset)
    made = []
    for pair, settings in inverse.cells(dataset).items():
        sizes = np.unique(dimension[settings])
        found = [summary(values[[s for s in settings if dimension[s] == size]]) for size in sizes]
        made.append(panel.Panel(f"condition number {wording.plain(pair[0])}, SNR {wording.plain(pair[1])}", "dimension",
                                "mode weight error minus floor", sizes, np.stack([mean for mean, _, _ in found], axis=1),
                                np.stack([error for _, error, _ in found], axis=1), design.policy_names(dataset),
                                done[settings].min(axis=0), wanted, ideal=0.0, log=False, cut=False))
    return made


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "the study"))
    dataset, = drawing.results(arguments, "posterior")
    values = inverse.excess(dataset)
    drawn = panels(dataset, values)
    print("\n".join(printed(dataset, values)))
    text = f"Histories in which the fullest mode holds less than {inverse.DOMINANT:.0%} of the posterior; a gap: no such history. "
    drawing.save(panel.page(drawn, [dataset], [*caption.facts([dataset]), text + caption.draws(dataset)]), drawing.outputs(arguments, "figure_tilted_table"))


if __name__ == "__main__":
    script.run(main)
