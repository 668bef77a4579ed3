#!/usr/bin/env python3
"""The results of a bandit study as a table: Markdown, CSV or LaTeX.

One row for each setting and policy: regret at the last round with its standard error over runs (and, where priors were
learned several times, over these replicates), the paired difference to the first policy (negative: better) with its standard
error over runs, CPU seconds for one run without training, CPU seconds of training, numerical rescues over all runs, and how
many runs are in. Bold in Markdown and LaTeX: the lowest regret of a setting.
"""
import argparse
import csv
import io
import pathlib

import numpy as np
import pandas as pd

import load

COLUMNS = ["setting", "policy", "round", "regret", "se", "se_replicate", "difference", "difference_se", "seconds",
           "seconds_train", "fallbacks", "runs", "failed", "wanted"]


def frame(dataset):
    """One row for each setting and policy, numbers unrounded; columns as in COLUMNS."""
    done, failed, wanted = load.counts(dataset)
    unknown = np.full(done.shape, np.nan)  # regret_se_replicate may be absent when priors are learned once
    last = load.last_rounds(dataset)
    finals = [dataset[name].values[np.arange(len(last)), :, last] if name in dataset else unknown
              for name in ("regret_mean", "regret_se", "regret_se_replicate", "regret_diff_mean", "regret_diff_se")]
    rows = []
    for s, setting in enumerate(load.titles(dataset)):
        for p, policy in enumerate(dataset["policy"].values):
            ok = dataset["status"].values[s, p] == load.STATUS_OK
            seconds, fallbacks = dataset["seconds"].values[s, p][ok], dataset["fallbacks"].values[s, p][ok]
            rows.append([setting, str(policy), int(dataset["round"].values[last[s]]),
                         *(float(values[s, p]) for values in finals), seconds.mean() if ok.any() else np.nan,
                         float(dataset["seconds_train"].values[s, p]), int(np.nansum(fallbacks)),
                         int(done[s, p]), int(failed[s, p]), wanted])
    return pd.DataFrame(rows, columns=COLUMNS)


def number(value, form="{:.2f}"):
    return "" if np.isnan(value) else form.format(value)


def cells(row, first):
    """The texts of one printed row; the first policy is what the others are compared with."""
    runs = f"{row.runs}" if row.runs == row.wanted else f"{row.runs} of {row.wanted}"
    if row.failed:
        runs += f" ({row.failed} failed)"
    return [row.setting, row.policy, number(row.regret), number(row.se), number(row.se_replicate),
            "" if first else number(row.difference, "{:+.2f}"), "" if first else number(row.difference_se),
            number(row.seconds, "{:.2g}"), number(row.seconds_train, "{:.3g}"), str(row.fallbacks), runs]


def printed(table):
    """Heading and rows of texts, with the index of the best row of each setting."""
    reference = table.policy[0]
    regret = f"regret at {table['round'][0]}" if table["round"].nunique() == 1 else "regret at the end"
    heading = ["setting", "policy", regret, "SE", "SE (replicates)", f"minus {reference}", "SE", "CPU s/run", "training s",
               "fallbacks", "runs"]
    best = set(table.loc[table.regret.notna()].groupby("setting", sort=False).regret.idxmin())
    return heading, [cells(row, row.policy == reference) for row in table.itertuples()], best


def markdown(table):
    heading, rows, best = printed(table)
    for index in best:
        rows[index][2] = f"**{rows[index][2]}**"
    widths = [max(len(row[c]) for row in [heading, *rows]) for c in range(len(heading))]

    def line(row):
        return "| " + " | ".join(text.ljust(width) if c < 2 else text.rjust(width)
                                 for c, (text, width) in enumerate(zip(row, widths))) + " |\n"

    rule = "|" + "|".join("-" * (width + 2) if c < 2 else "-" * (width + 1) + ":" for c, width in enumerate(widths)) + "|\n"
    return line(heading) + rule + "".join(map(line, rows))


def latex(table):
    heading, rows, best = printed(table)

    def line(row):
        return " & ".join(text.replace("_", r"\_").replace("%", r"\%") for text in row) + " \\\\\n"

    text = "\\begin{tabular}{ll" + "r" * (len(heading) - 2) + "}\n\\toprule\n" + line(heading)
    for index, row in enumerate(rows):
        new_setting = index == 0 or row[0] != rows[index - 1][0]
        if index in best:
            row = row[:2] + [f"\\textbf{{{row[2]}}}"] + row[3:]
        text += ("\\midrule\n" if new_setting else "") + line(row if new_setting else ["", *row[1:]])
    return text + "\\bottomrule\n\\end{tabular}\n"


def comma_separated(table):
    out = io.StringIO()
    table.to_csv(out, index=False, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    return out.getvalue()


FORMATS = {"markdown": markdown, "csv": comma_separated, "latex": latex}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a bandit study")
    parser.add_argument("-f", "--format", choices=FORMATS, default="markdown")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of on stdout")
    arguments = parser.parse_args()

    text = FORMATS[arguments.format](frame(load.results(arguments.folder)))
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    load.script(main)
