#!/usr/bin/env python3
"""The same study twice: what changed, and by how many standard errors?

Compares two results files (or their folders) policy by policy, setting by setting, for every metric at the last round or step, or
at each sample size. With the same seed the runs have the same theta*, arms and noise, so the difference is taken run by run; otherwise the
two means are independent. Lists the keys of the configuration that differ, where the files came from if that differs, the settings,
policies and metrics that only one of them has, and every mean that moved, largest moves first.

Exit status: 0 the same: nothing is missing on either side and no mean moved by more than chance explains (two-sided t-tests at 5%
with Holm's correction for all of them; relative changes below 1e-9 count as rounding); 1 different; 3 and 4 a file that
cannot be used. Differences in the configuration alone do not make it 1, nor do missing runs.
"""
import needs
import argparse
import sys

import numpy as np
import pandas as pd
from scipy import stats

from thompson import averages, design, significance, store
import script

ROUNDING = 1e-9
DIFFERENT = 1
ORIGIN = ("source", "hostname", "mpi_ranks", "mpi_library", "compiler", "compiler_flags", "blas")


def keys(dataset, labels):
    """{key: its text} for the resolved study, and for the policies with these labels, by label and option."""
    found = design.keys(dataset)
    for label, chosen in design.options(dataset).items():
        if label in labels:
            found |= {f"policy {label}: {key}": value for key, value in chosen.items()}
    return found


def differences(a, b):
    """[(key, text in a, text in b)] where two dictionaries differ; an absent key is "-"."""
    return [(key, str(a.get(key, "-")), str(b.get(key, "-"))) for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key)]


def only(a, b, what):
    """Sentences about what only one side has."""
    return [f"only {side} has {what} {name}" for side, mine, other in (("A", a, b), ("B", b, a)) for name in mine if name not in other]


def independent(x, y):
    """Welch's test for two samples."""
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    if min(len(x), len(y)) < 2:
        return significance.Difference(y.mean() - x.mean() if len(x) and len(y) else np.nan, np.nan, np.nan)
    se = np.sqrt(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
    if se == 0:
        return significance.Difference(y.mean() - x.mean(), 0.0, float(x.mean() == y.mean()))
    return significance.Difference(y.mean() - x.mean(), se, float(stats.ttest_ind(y, x, equal_var=False).pvalue))


def common(a, b):
    """How many runs both have with the same random numbers, if they share one seed; None if not, in which case all runs of both are used."""
    return min(a.sizes["run"], b.sizes["run"]) if a.attrs.get("seed") == b.attrs.get("seed") else None


def moved(x, y, a, b):
    """By how much the mean at one place moved from x to y, [run] each."""
    if common(a, b):
        return significance.unequal(y - x, significance.of_runs(a)[:len(x)])
    return independent(*(significance.sample(values, significance.of_runs(dataset)) for values, dataset in ((x, a), (y, b))))


def places(a, b, axis):
    """[(setting, point of a, point of b)] for the points that both have."""
    titles = [list(map(str, dataset["setting"].values)) for dataset in (a, b)]
    found = []
    for s, title in enumerate(titles[0]):
        if title not in titles[1]:
            continue
        t = titles[1].index(title)
        mine, yours = averages.shown(a)[s], averages.shown(b)[t]
        values = {float(dataset[axis].values[point]): point for dataset, points in ((b, yours),) for point in points}
        found += [(s, t, point, values[float(a[axis].values[point])]) for point in mine if float(a[axis].values[point]) in values]
    return found


def frame(a, b):
    """One row for each metric, setting, policy and point that both have."""
    axis, rows = store.axis(a), []
    labels = [design.labels(dataset) for dataset in (a, b)]
    for metric in store.curves(a):
        if metric not in store.curves(b):
            continue
        for s, t, i, j in places(a, b, axis):
            one, other = a[metric].isel({"setting": s, axis: i}).values, b[metric].isel({"setting": t, axis: j}).values
            for label in labels[0]:
                if label not in labels[1]:
                    continue
                x, y = one[labels[0].index(label)][:common(a, b)], other[labels[1].index(label)][:common(a, b)]
                change = moved(x, y, a, b)
                runs = [int(np.isfinite(values).sum()) for values in (x, y)]
                means = [values[np.isfinite(values)].mean() if n else np.nan for values, n in zip((x, y), runs)]
                rounding = np.isfinite(change.mean) and abs(change.mean) <= ROUNDING * max(map(abs, means))
                rows.append({"metric": metric, "setting": design.titles(a)[s], "policy": label, axis: int(a[axis].values[i]),
                             "A": means[0], "B": means[1], "change": change.mean, "se": change.se,
                             "in se": change.mean / change.se if change.se > 0 else np.nan, "p": 1.0 if rounding else change.p,
                             "runs A": runs[0], "runs B": runs[1], "equal": bool(np.array_equal(x, y, equal_nan=True))})
    found = pd.DataFrame(rows)
    if len(found):
        found["p"] = significance.holm(found["p"])
    return found


def compare(a, b):
    """The report as lines, and whether the two are the same."""
    if store.axis(a) != store.axis(b):
        return [f"A is of a {store.AXES[store.axis(a)]} study and B of a {store.AXES[store.axis(b)]} study"], False
    labels = set(design.labels(a)) & set(design.labels(b))
    lines = [f"configuration: {key} = {x} in A, {y} in B" for key, x, y in differences(keys(a, labels), keys(b, labels))]
    lines += [f"origin: {key} = {x} in A, {y} in B" for key, x, y in differences(
        *({name: dataset.attrs[name] for name in ORIGIN if name in dataset.attrs} for dataset in (a, b)))]
    missing = [sentence for what in ("setting", "policy") for sentence in
               only(*(list(map(str, dataset[what].values)) for dataset in (a, b)), what)]
    missing += only(store.curves(a), store.curves(b), "metric")
    found = frame(a, b)
    if not len(found):
        return [*lines, *missing, "different: they have no setting, policy and point in common"], False
    significant = found[found["p"] < significance.LEVEL]
    changed = found[~found["equal"]].sort_values("in se", key=abs, ascending=False, kind="stable")
    if len(changed):
        shown = changed.drop(columns=["equal"] + (["runs A", "runs B"] if (found["runs A"] == found["runs B"]).all() else []))
        lines += ["", shown.to_string(index=False, na_rep="", float_format="{:.4g}".format), ""]
    lines += missing
    lines += filter(None, [significance.caution([a, b])])
    if common(a, b) and a.sizes["run"] != b.sizes["run"]:
        lines.append(f"compared: the first {common(a, b)} runs, which both have with the same random numbers")
    if found["equal"].all() and not missing:
        return [*lines, f"same: all runs of {len(found)} means are equal to the last bit"], True
    verdict = f"{len(changed)} of {len(found)} means moved"
    if len(changed) and np.isfinite(changed["in se"]).any():
        verdict += f", at most by {changed['in se'].abs().max():.2g} standard errors"
    if len(significant) or missing:
        return [*lines, f"different: {verdict}; {len(significant)} of them by more than chance explains (Holm, 5%)"], False
    return [*lines, f"same: {verdict}; none by more than chance explains (Holm, 5%)"], True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="DIR", help="A: results folder of a study, or the file in it")
    parser.add_argument("second", metavar="DIR2", help="B: the same for the other study")
    arguments = parser.parse_args()
    lines, same = compare(*(store.results(path, kind=None) for path in (arguments.first, arguments.second)))
    print("\n".join(lines))
    if not same:
        sys.exit(DIFFERENT)


if __name__ == "__main__":
    script.run(main)
