#!/usr/bin/env python3
"""The results of a study as a table: Markdown, CSV or LaTeX.

One row for each setting and policy, and in a posterior study for each sample size. Columns: the metric (regret, emd, ...) at the last
round or at the sample size; for regret its 95th percentile over runs (95%); the floor (what exact draws reach; for regret, a lower bound on
the mean of every policy); the paired difference to the first policy; CPU seconds for one run without training; CPU seconds of training;
numerical fallbacks over all runs; and how many runs are complete. p: that the paired difference is 0, two-sided t-test, with Holm's
correction for all differences of the table (thompson/significance.py says what the sample is). Standard errors (SE) are over runs or, if
priors were learned several times, over the means of these replicates, whichever is larger; CSV has both. Bold in Markdown and LaTeX: the
best of a setting and sample size, only if its paired difference to every other policy is significant at 5%, with Holm's correction for
all these comparisons; `oracle`, which knows theta*, does not take part. CSV has the same as a column `best`. With --layout paper: policies
x problems, mean ± SE; bold are the best of each column and what is not significantly worse.
"""
import needs
import argparse

import numpy as np
import pandas as pd

from thompson import averages, design, significance, store
import markup
import paper_table
import script

PARTS = {"se": "_se", "se_replicate": "_se_replicate", "difference": "_diff_mean",
         "difference_se": "_diff_se", "difference_se_replicate": "_diff_se_replicate"}


def tests(dataset, metric, places):
    """For the (setting, point) of `places`: Holm's p-values of the differences to the reference [place, policy], and the policy
    that is significantly the best, or None, [place]."""
    references = design.references(dataset)
    replicate, axis = significance.of_runs(dataset), store.axis(dataset)
    rivals = design.rivals(dataset)
    first, found = [], []
    for s, point in places:
        values = dataset[metric].isel({"setting": s, axis: point}).values
        first.append([np.nan if p == references[s] else significance.unequal(row - values[references[s]], replicate).p for p, row in enumerate(values)])
        found.append(significance.winners(significance.scores(metric, values), rivals, replicate))
    adjusted = significance.holm([p for _, others in found for p in others])
    ends = np.cumsum([len(others) for _, others in found])
    parts = np.split(adjusted, ends[:-1])
    certain = [best if len(part) and (part < significance.LEVEL).all() else None for (best, _), part in zip(found, parts)]
    return significance.holm(np.ravel(first)).reshape(len(places), -1), certain


def frame(dataset, metric=None):
    """One row for each setting, policy and point, with unrounded numbers. The metric's column has its name; there is a floor only if the
    metric has one."""
    metric, axis = store.chosen(dataset, metric), store.axis(dataset)
    done, failed, _ = averages.counts(dataset)
    wanted = averages.asked(dataset)
    unknown = np.full((*done.shape, dataset.sizes[axis]), np.nan)  # parts may be absent: replicates, differences
    values = {metric: dataset[f"{metric}_mean"].values}
    for part, ending in PARTS.items():
        values[part] = dataset[f"{metric}{ending}"].values if f"{metric}{ending}" in dataset else unknown
    if (name := f"{metric}{store.FLOOR}_mean") in dataset:
        floor = dataset[name].values
        values["floor"] = floor if "policy" in dataset[name].dims else np.broadcast_to(floor[:, None], unknown.shape)
    if (tail := averages.tail(dataset, metric)) is not None:
        values["quantile_95"] = tail
    places = [(s, point) for s, points in enumerate(averages.shown(dataset)) for point in points]
    adjusted, certain = tests(dataset, metric, places)
    titles, rows = design.titles(dataset), []
    for (s, point), p_values, best in zip(places, adjusted, certain):
        for p, policy in enumerate(design.labels(dataset)):
            ok = dataset["status"].values[s, p] == store.STATUS_OK
            seconds, fallbacks = (dataset[name].values[s, p][ok] for name in ("seconds", "fallbacks"))
            rows.append({"setting": titles[s], "policy": policy, axis: int(dataset[axis].values[point]),
                         **{part: float(numbers[s, p, point]) for part, numbers in values.items()},
                         "p": p_values[p], "best": p == best,
                         "seconds": seconds.mean() if ok.any() else np.nan,
                         "seconds_train": float(dataset["seconds_train"].values[s, p]),
                         "fallbacks": int(np.nansum(fallbacks)), "runs": int(done[s, p]), "failed": int(failed[s, p]),
                         "wanted": int(wanted[s])})
    table = pd.DataFrame(rows)
    table.attrs["caption"] = caption(dataset, metric)
    return table


def caption(dataset, metric):
    """What the table shows and what its tests are, for someone who reads only the table."""
    long_name = dataset[metric].attrs.get("long_name", metric)
    failed = averages.counts(dataset)[1]
    runs = averages.run_words(dataset) + (f", {failed.sum()} failed" if failed.any() else "")
    return (f"{dataset.attrs.get('title', 'Results')}: {long_name}, mean and standard error (SE) {significance.errors_over([dataset])}; {runs}. "
            f"p: two-sided paired t-test of the difference from {design.reference_words(dataset)} {significance.over([dataset])}, Holm's correction for all of the table. Bold: the best of "
            f"its group, significantly so against every other policy (same test at {significance.LEVEL:.0%}, Holm's correction for "
            f"all such comparisons of the table). {significance.caution([dataset])}").rstrip()


def number(value, form="{:.2f}"):
    return "" if np.isnan(value) else form.format(value)


def probability(p):
    return "" if np.isnan(p) else "<0.001" if p < 0.001 else f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


def point_of(table):
    """Names of the column of the points, and of the metric's: the third and the fourth."""
    return table.columns[2], table.columns[3]


def cells(row, table):
    """The texts of one printed row; the others are compared with the first policy."""
    axis, metric = point_of(table)
    first = row.policy == table.policy[0]
    form = "{:.2f}" if metric == "regret" else "{:.3g}"
    signed = form.replace(":", ":+")
    runs = f"{row.runs}" if row.runs == row.wanted else f"{row.runs} of {row.wanted}"
    if row.failed:
        runs += f" ({row.failed} failed)"
    return [row.setting, row.policy, *([str(getattr(row, axis))] if axis == "sample_size" else []),
            number(getattr(row, metric), form), number(np.fmax(row.se, row.se_replicate), form),
            *([number(row.quantile_95, form)] if "quantile_95" in table else []),
            *([number(row.floor, form)] if "floor" in table else []),
            "" if first else number(row.difference, signed),
            "" if first else number(np.fmax(row.difference_se, row.difference_se_replicate), form), probability(row.p),
            number(row.seconds, "{:.2g}"), number(row.seconds_train, "{:.3g}"), str(row.fallbacks), runs]


def printed(table):
    """Heading and rows of texts, with the column of the metric and the index of the best row for each setting and point."""
    axis, metric = point_of(table)
    each = axis == "sample_size"
    name = metric if each else f"{metric} at {table[axis][0]}" if table[axis].nunique() == 1 else f"{metric} at the end"
    heading = ["setting", "policy", *(["n"] if each else []), name, "SE",
               *(["95%"] if "quantile_95" in table else []), *(["floor"] if "floor" in table else []), f"minus {table.policy[0]}", "SE", "p", "CPU s/run", "training s",
               "fallbacks", "runs"]
    return heading, [cells(row, table) for row in table.itertuples()], heading.index(name), table.index[table.best]


def markdown(table):
    heading, rows, column, best = printed(table)
    for index in best:
        rows[index][column] = f"**{rows[index][column]}**"
    return markup.markdown(heading, rows, table.attrs["caption"])


def latex(table):
    heading, rows, column, best = printed(table)
    rows = [list(map(markup.escaped, row)) for row in rows]
    for index in best:
        rows[index][column] = f"\\textbf{{{rows[index][column]}}}"
    new = {index for index, row in enumerate(rows) if index == 0 or row[0] != rows[index - 1][0]}
    rows = [row if index in new else ["", *row[1:]] for index, row in enumerate(rows)]
    return markup.latex(list(map(markup.escaped, heading)), rows, table.attrs["caption"], rules=new)


FORMATS = {"markdown": markdown, "csv": markup.comma_separated, "latex": latex}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a study")
    parser.add_argument("--metric", metavar="NAME", help="metric to list (default: the first one measured)")
    parser.add_argument("-f", "--format", choices=FORMATS, default="markdown")
    parser.add_argument("--layout", choices=("rows", "paper"), default="rows",
                        help="paper: policies x problems, mean ± standard error; bold: not significantly worse than the best")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write instead of stdout")
    arguments = parser.parse_args()

    dataset = store.results(arguments.folder, kind=None)
    if arguments.layout == "rows":
        text = FORMATS[arguments.format](frame(dataset, arguments.metric))
    elif arguments.format in paper_table.FORMATS:
        text = paper_table.printed(dataset, arguments.metric, arguments.format)
    else:
        parser.error("--layout paper is for Markdown and LaTeX; CSV has all numbers in rows")
    if arguments.output:
        script.writable(arguments.output, marked=False).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    script.run(main)
