#!/usr/bin/env python3
"""Tilted transport and its rivals in linear inverse problems: error of the posterior's mode weights, and where it comes from.

A cell is a condition number and a signal to noise ratio. Printed for each cell: the mean over histories of the total variation
between the mode weights of the draws and of exact ones, less the floor that a second set of exact draws reaches, with its
standard error; all dimensions and directions of a cell together. A history in which one mode holds 95% of the posterior or
more says nothing about mode weights and is left out; so is one that a policy has not run. The figure has one panel for each
cell: the same by dimension.

Reads DIR/results.nc of a posterior study with metric mode_weight that sweeps problem.condition_number and problem.snr; prints
Markdown; writes DIR/figure_tilted_table.png and .pdf.
"""
import argparse

import numpy as np

import load
import panel
import style

DOMINANT = 0.95
CELL = ("problem.condition_number", "problem.snr")
DIMENSION = "problem.dimension"
ERROR = "mode_weight_error"


def excess(dataset):
    """Error less floor of each history at the last sample size, [setting, policy, run]; NaN where a history is left out."""
    for curve in (ERROR, "largest_mode"):
        load.chosen(dataset, curve)
    last = load.last_rounds(dataset)

    def at_end(curve):
        return np.stack([dataset[curve].values[s, :, :, point] for s, point in enumerate(last)])

    complete = (dataset["status"].values == load.STATUS_OK).all(axis=1, keepdims=True)
    kept = complete & (at_end("largest_mode") < DOMINANT)
    return np.where(kept, at_end(ERROR) - at_end(ERROR + load.FLOOR), np.nan)


def cells(dataset):
    """{(condition number, SNR): settings}, in the order of the study."""
    keys = load.swept(dataset)
    if not set(CELL) <= set(keys):
        raise load.BadInput(f"the study sweeps {', '.join(keys) or 'nothing'}; this needs {' and '.join(CELL)}")
    pairs = list(zip(*(keys[key].tolist() for key in CELL)))
    return {pair: [s for s, other in enumerate(pairs) if other == pair] for pair in dict.fromkeys(pairs)}


def summary(values):
    """Mean, standard error and number over the histories of values [setting, policy, run]: [policy] each."""
    flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    n = np.isfinite(flat).sum(axis=1)
    mean = np.nansum(flat, axis=1) / np.where(n > 0, n, np.nan)
    square = np.nansum((flat - mean[:, None]) ** 2, axis=1)
    return mean, np.sqrt(square / np.where(n > 1, n - 1, np.nan) / n.clip(1)), n


def printed(dataset, values):
    """The lines of the table: a row for each policy, a column for each cell."""
    groups = cells(dataset)
    found = [summary(values[settings]) for settings in groups.values()]
    rows = [["condition number, SNR", *(", ".join(map(load.plain, pair)) for pair in groups)],
            ["---"] * (1 + len(groups)),
            ["histories", *(f"{n.max()} of {len(settings) * values.shape[2]}"
                            for (_, _, n), settings in zip(found, groups.values()))]]
    for p, policy in enumerate(dataset["policy"].values):
        rows.append([str(policy), *(f"{mean[p]:.3f} ± {error[p]:.3f}" for mean, error, _ in found)])
    return [f"| {' | '.join(row)} |" for row in rows]


def panels(dataset, values):
    """A panel for each cell: the excess by dimension."""
    dimension = load.swept(dataset).get(DIMENSION)
    if dimension is None:
        raise load.BadInput(f"the study does not sweep {DIMENSION}, so there is nothing to draw against")
    done, _, wanted = load.counts(dataset)
    made = []
    for pair, settings in cells(dataset).items():
        sizes = np.unique(dimension[settings])
        found = [summary(values[[s for s in settings if dimension[s] == size]]) for size in sizes]
        made.append(panel.Panel(f"condition number {load.plain(pair[0])}, SNR {load.plain(pair[1])}", "dimension",
                                "mode weight error less floor", sizes, np.stack([mean for mean, _, _ in found], axis=1),
                                np.stack([error for _, error, _ in found], axis=1), load.policy_names(dataset),
                                done[settings].min(axis=0), wanted, ideal=0.0, log=False, cut=False))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of the study")
    parser.add_argument("-o", "--output", metavar="FILE", action="append",
                        help="write there instead, the format by the ending (may be repeated)")
    arguments = parser.parse_args()
    paths = style.outputs(parser, arguments.output, arguments.folder, "figure_tilted_table")
    dataset = load.results(arguments.folder, "posterior")
    values = excess(dataset)
    drawn = panels(dataset, values)
    print("\n".join(printed(dataset, values)))
    sentences = [f"Histories in which the fullest mode holds less than {DOMINANT:.0%} of the posterior; a gap: there is none. " + panel.draws(dataset)]
    style.save(panel.page(drawn, [dataset], [*panel.facts([dataset]), *sentences]), paths)


if __name__ == "__main__":
    load.script(main)
