#!/usr/bin/env python3
"""The best setting of each method's options, chosen on one half of the runs and reported on the other.

For a bandit study whose policies are the points of a grid search (jobs/vits_grid.yaml). Policies of the same registered name are
one method; --by OPTION distinguishes them by the value of an option too (--by steps: Langevin with 10 and with 50 steps are two).
In each setting the grid point of least mean regret at the last round on one half of the runs is chosen, and its regret on the
other half is what is reported, which nobody tuned for; then the halves change places. Columns:

  chosen             the grid point
  tuned, SE          its regret on the runs it was chosen on: too low, because it was chosen for being low
  reported, SE       its regret on the other runs
  best               the least regret of the method's points on those other runs, which nobody could have known
  median, worst      of the method's points on those other runs
  minus FIRST, SE    reported regret minus that of the first method, run by run
  points, failed     size of the grid; points with a run that failed, which cannot be chosen

With --control OPTION=VALUE the table asks what choosing an option does to the comparison of methods: for each setting and method the
regret of the point with that value, and that of the points chosen on the other half, both over all runs and with their paired
differences to the first method, or to that of --minus.

With --tune N only N runs of the half are used to choose, as a search on few runs would. analysis/table.py lists the whole grid.

Reads DIR/results.nc; writes nothing but the table.
"""
import argparse

import numpy as np
import pandas as pd

import load


def methods(dataset, by=()):
    """{method: indices of its policies}, in their order."""
    found = {}
    for p, chosen in enumerate(load.options(dataset).values()):
        parts = [f"{option}={chosen[option]}" for option in by if option in chosen]
        found.setdefault(" ".join([chosen["name"], *parts]), []).append(p)
    return found


def finals(dataset, s):
    """Regret at the last round in setting s, [policy, run]: of runs that all policies without a failure have completed; and which
    policies failed, [policy]."""
    status = dataset["status"].values[s]
    failed = (status == load.STATUS_FAILED).any(axis=1)
    complete = (status[~failed] == load.STATUS_OK).all(axis=0)
    return dataset["regret"].values[s, :, :, load.last_rounds(dataset)[s]][:, complete], failed


def choose(regret, failed, groups, tuning, reporting):
    """{method: dictionary of the columns}, from regret [policy, run] and two lists of runs."""
    rows, first = {}, None
    for method, members in groups.items():
        usable = [p for p in members if not failed[p]]
        row = {"points": len(members), "failed": len(members) - len(usable)}
        rows[method] = row
        if not usable:
            continue
        chosen = usable[int(np.argmin(regret[usable][:, tuning].mean(axis=1)))]
        others = regret[usable][:, reporting].mean(axis=1)
        mine = regret[chosen, reporting]
        row["policy"] = chosen
        row["tuned"], row["tuned_se"] = load.mean_and_error(regret[chosen, tuning])[:2]
        row["reported"], row["reported_se"] = load.mean_and_error(mine)[:2]
        row["best"], row["median"], row["worst"] = others.min(), np.median(others), others.max()
        if first is not None:
            row["difference"], row["difference_se"] = load.mean_and_error(mine - first)[:2]
        first = mine if first is None else first
    return rows


COLUMNS = ["setting", "half", "method", "chosen", "tuned", "tuned_se", "reported", "reported_se", "best", "median", "worst",
           "difference", "difference_se", "points", "failed"]


def frame(dataset, by=(), tune=None):
    """One row for each setting, half and method, numbers unrounded."""
    groups, labels, rows = methods(dataset, by), load.labels(dataset), []
    for s, title in enumerate(load.titles(dataset)):
        regret, failed = finals(dataset, s)
        runs = np.arange(regret.shape[1])
        halves = np.array_split(runs, 2)
        if len(runs) < 4:
            raise load.BadInput(f"{title}: {len(runs)} runs are complete for all policies, and choosing on one half needs 4")
        for name, tuning, reporting in (("first", *halves), ("second", *halves[::-1])):
            if tune is not None and not 1 <= tune <= len(tuning):
                raise load.BadInput(f"--tune {tune}: a half has {len(tuning)} runs")
            for method, row in choose(regret, failed, groups, tuning[:tune], reporting).items():
                chosen = labels[row["policy"]] if "policy" in row else None
                rows.append({"setting": title, "half": name, "method": method, "chosen": chosen, **row})
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


CONTROL = ["setting", "method", "fixed", "fixed_se", "fixed_difference", "fixed_difference_se", "chosen", "reported", "reported_se",
           "difference", "difference_se"]


def same(one, other):
    """Whether two values of an option are equal, as numbers or as words."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def control_rows(regret, failed, groups, fixed):
    """{method: (policies chosen on the first and the second half, regret fixed and reported, [run] each)}. What a half reports is of the point chosen on the other one."""
    halves, rows = np.array_split(np.arange(regret.shape[1]), 2), {}
    for method, members in groups.items():
        start = [p for p in members if p in fixed and not failed[p]]
        if not start:
            raise load.BadInput(f"method {method} has no point at the value of --control, or its runs have failed")
        chosen = [choose(regret, failed, {method: members}, mine, others)[method]["policy"] for mine, others in (halves, halves[::-1])]
        reported = np.concatenate([regret[chosen[1], halves[0]], regret[chosen[0], halves[1]]])
        rows[method] = (chosen, regret[start[0]], reported)
    return rows


def control(dataset, option, value, by=(), minus=None):
    """One row for each setting and method, columns CONTROL, numbers unrounded; differences are to method `minus`, or to the first."""
    groups, options, labels, rows = methods(dataset, by), list(load.options(dataset).values()), load.labels(dataset), []
    if minus is not None and minus not in groups:
        raise load.BadInput(f"--minus {minus}: the methods are {', '.join(groups)}")
    fixed = {p for p, chosen in enumerate(options) if option in chosen and same(chosen[option], value)}
    for s, title in enumerate(load.titles(dataset)):
        regret, failed = finals(dataset, s)
        if regret.shape[1] < 4:
            raise load.BadInput(f"{title}: {regret.shape[1]} runs are complete for all policies, and choosing on one half needs 4")
        found = control_rows(regret, failed, groups, fixed)
        base = found[minus or next(iter(found))]
        for method, (chosen, plain, reported) in found.items():
            row = {"setting": title, "method": method, "chosen": " / ".join(dict.fromkeys(labels[p] for p in chosen))}
            for name, values in (("fixed", plain), ("reported", reported)):
                row[name], row[f"{name}_se"] = load.mean_and_error(values)[:2]
            row["fixed_difference"], row["fixed_difference_se"] = load.mean_and_error(plain - base[1])[:2]
            row["difference"], row["difference_se"] = load.mean_and_error(reported - base[2])[:2]
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=CONTROL)


def printed_control(table, what, minus):
    """The table of --control as text."""
    minus = f"minus {minus or table.method[0]}"
    head = {"fixed": what, "reported": "chosen on other half", "difference": minus, "fixed_difference": minus, **{name: "SE" for name in CONTROL if name.endswith("_se")}}
    return table.rename(columns=head).to_string(index=False, na_rep="", float_format="{:.2f}".format)


def printed(table):
    """The table as text; the names of its columns say what they are compared with."""
    head = {"half": "tuned on", "tuned_se": "SE", "reported_se": "SE", "difference": f"minus {table.method[0]}",
            "difference_se": "SE"}
    return table.rename(columns=head).to_string(index=False, na_rep="", float_format="{:.2f}".format)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a bandit study")
    parser.add_argument("--by", metavar="OPTION", action="append", default=[],
                        help="distinguish methods by this option too (may be repeated)")
    parser.add_argument("--control", metavar="OPTION=VALUE", help="compare methods at this value and where it was chosen")
    parser.add_argument("--minus", metavar="METHOD", help="with --control: differences to this method (default: the first)")
    parser.add_argument("--tune", metavar="N", type=int, help="choose on so many runs of the half only")
    parser.add_argument("-f", "--format", choices=("text", "csv"), default="text")
    arguments = parser.parse_args()
    dataset = load.results(arguments.folder)
    if arguments.control:
        option, _, value = arguments.control.partition("=")
        table = control(dataset, option, value, arguments.by, arguments.minus)
        text = printed_control(table, arguments.control, arguments.minus)
    else:
        table = frame(dataset, arguments.by, arguments.tune)
        text = printed(table)
    print(table.to_csv(index=False, lineterminator="\n") if arguments.format == "csv" else text + "\n", end="")


if __name__ == "__main__":
    load.script(main)
