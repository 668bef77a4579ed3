"""The best setting of each method's options, chosen on one half of the runs and reported on the other, on which nothing was tuned."""
import numpy as np
import pandas as pd

from . import averages, design, store
from ._library import Error


def methods(dataset, by=()):
    """{method: indices of its policies}, in their order."""
    found = {}
    for p, chosen in enumerate(design.options(dataset).values()):
        parts = [f"{option}={chosen[option]}" for option in by if option in chosen]
        found.setdefault(" ".join([chosen["name"], *parts]), []).append(p)
    return found


def finals(dataset, s):
    """Regret at the last round in setting s, [policy, run], for runs that all policies without a failure have completed; and which
    policies failed, [policy]."""
    status = dataset["status"].values[s]
    failed = (status == store.STATUS_FAILED).any(axis=1)
    complete = (status[~failed] == store.STATUS_OK).all(axis=0)
    return dataset["regret"].values[s, :, :, averages.last_rounds(dataset)[s]][:, complete], failed


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
        row["tuned"], row["tuned_se"] = averages.mean_and_error(regret[chosen, tuning])[:2]
        row["reported"], row["reported_se"] = averages.mean_and_error(mine)[:2]
        row["best"], row["median"], row["worst"] = others.min(), np.median(others), others.max()
        if first is not None:
            row["difference"], row["difference_se"] = averages.mean_and_error(mine - first)[:2]
        first = mine if first is None else first
    return rows


COLUMNS = ["setting", "half", "method", "chosen", "tuned", "tuned_se", "reported", "reported_se", "best", "median", "worst",
           "difference", "difference_se", "points", "failed"]


def frame(dataset, by=(), tune=None):
    """One row for each setting, half and method, with unrounded numbers."""
    groups, labels, rows = methods(dataset, by), design.labels(dataset), []
    for s, title in enumerate(design.titles(dataset)):
        regret, failed = finals(dataset, s)
        runs = np.arange(regret.shape[1])
        halves = np.array_split(runs, 2)
        if len(runs) < 4:
            raise Error(f"{title}: {len(runs)} runs are complete for all policies, but choosing on one half needs 4")
        for name, tuning, reporting in (("first", *halves), ("second", *halves[::-1])):
            if tune is not None and not 1 <= tune <= len(tuning):
                raise Error(f"--tune {tune}: a half has {len(tuning)} runs")
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
    """{method: (policies chosen on the first and the second half, regret fixed and reported, [run] each)}. A half reports the point that was chosen on the other half."""
    halves, rows = np.array_split(np.arange(regret.shape[1]), 2), {}
    for method, members in groups.items():
        start = [p for p in members if p in fixed and not failed[p]]
        if not start:
            raise Error(f"method {method} has no point at the value of --control, or its runs have failed")
        chosen = [choose(regret, failed, {method: members}, mine, others)[method]["policy"] for mine, others in (halves, halves[::-1])]
        reported = np.concatenate([regret[chosen[1], halves[0]], regret[chosen[0], halves[1]]])
        rows[method] = (chosen, regret[start[0]], reported)
    return rows


def control(dataset, option, value, by=(), minus=None):
    """One row for each setting and method, columns CONTROL, with unrounded numbers; differences are to the method `minus`, or to the first."""
    groups, options, labels, rows = methods(dataset, by), list(design.options(dataset).values()), design.labels(dataset), []
    if minus is not None and minus not in groups:
        raise Error(f"--minus {minus}: the methods are {', '.join(groups)}")
    fixed = {p for p, chosen in enumerate(options) if option in chosen and same(chosen[option], value)}
    for s, title in enumerate(design.titles(dataset)):
        regret, failed = finals(dataset, s)
        if regret.shape[1] < 4:
            raise Error(f"{title}: {regret.shape[1]} runs are complete for all policies, but choosing on one half needs 4")
        found = control_rows(regret, failed, groups, fixed)
        base = found[minus or next(iter(found))]
        for method, (chosen, plain, reported) in found.items():
            row = {"setting": title, "method": method, "chosen": " / ".join(dict.fromkeys(labels[p] for p in chosen))}
            for name, values in (("fixed", plain), ("reported", reported)):
                row[name], row[f"{name}_se"] = averages.mean_and_error(values)[:2]
            row["fixed_difference"], row["fixed_difference_se"] = averages.mean_and_error(plain - base[1])[:2]
            row["difference"], row["difference_se"] = averages.mean_and_error(reported - base[2])[:2]
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=CONTROL)
