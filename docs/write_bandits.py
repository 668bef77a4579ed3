#!/usr/bin/env python3
"""Write the tables of docs/results/bandits.md from published results (data/published), from results of the studies in jobs/external, from what
analysis/tools/gittins.py wrote and, for two arms, from analysis/tools/bernoulli_optimum.py.

    docs/write_bandits.py [results/bernoulli] [results/gittins.json] [results/linear_showdown] [results/wheel] [results/wheel_long]        other tables stay
"""
import json
import pathlib
import re
import sys

import netCDF4
import numpy as np

import pages

sys.path.insert(0, str(pages.ROOT / "analysis" / "tools"))

import bernoulli_optimum  # noqa: E402

PAGE = pages.ROOT / "docs" / "results" / "bandits.md"


def final_regret(folder, key):
    """{value of the swept key: {policy: regret of each run after the last round}}."""
    with netCDF4.Dataset(pathlib.Path(folder) / "results.nc") as file:
        policies = [str(name) for name in file["policy"][:]]
        regret = np.ma.filled(file["regret"][:], np.nan)
        out = {}
        for s, setting in enumerate(file["setting"][:]):
            curves = regret[s]
            last = np.flatnonzero(~np.isnan(curves[0, 0]))[-1]
            value = re.search(rf"{re.escape(key)}=([\d.]+)", str(setting))[1]
            out[value] = {policy: curves[p, :, last] for p, policy in enumerate(policies)}
    return out


def mean_and_error(x):
    return f"{np.mean(x):.3g} ± {np.std(x, ddof=1) / np.sqrt(len(x)):.2g}"


def mean_and_deviation(x, digits=1):
    return f"{np.mean(x):.{digits}f} ± {np.std(x, ddof=1):.{digits}f}"


def exact_regret(policy, rounds):
    """The regret of a policy of bernoulli_optimum.py on two arms with uniform success probabilities; some seconds for hundreds of rounds."""
    return rounds * bernoulli_optimum.best_mean(1, 1) - bernoulli_optimum.successes(policy, rounds)


def bernoulli(folder):
    ours = final_regret(folder, "problem.rounds")
    best = [f"{row['rounds']} rounds: {row['successes']} ({row['source']})" for row in pages.published("bernoulli") if row["policy"] == "optimal"]
    rows = [[rounds, *(f"{exact_regret(policy, int(rounds)):.4f}" for policy in bernoulli_optimum.POLICIES), *(mean_and_error(x) for x in policies.values())]
            for rounds, policies in ours.items()]
    head = ["rounds", "optimum", "exact `thompson`", "exact `greedy`", *(f"`{name}`" for name in ours[next(iter(ours))])]
    return "Expected successes of the optimal policy, as printed or computed: " + "; ".join(best) + ".\n\n" + pages.table(head, rows)


def gittins(file):
    """Regret of the larger Gittins index, by rounds and discount, beside the optimum."""
    found = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    policies = list(dict.fromkeys(row["policy"] for row in found))
    regret = {(row["rounds"], row["policy"]): row["regret"] for row in found}
    rows = [[str(rounds), *(f"{regret[rounds, policy]:.4f}" for policy in policies)] for rounds in dict.fromkeys(row["rounds"] for row in found)]
    indices = {row["policy"]: row["index"] for row in found}
    rows.append(["index of a new arm", *(f"{indices[policy]:.4f}" if indices[policy] else "" for policy in policies)])
    return pages.table(["rounds", *("optimum" if policy == "optimal" else policy.replace("gittins", "index, discount") for policy in policies)], rows)


def linear_showdown(folder):
    ours = final_regret(folder, "problem.dimension")
    here = {problem: ours[dimension] for problem, dimension in (("20d", "4"), ("40d", "8"))}
    rows = {}
    for row in pages.published("linear_showdown"):
        label = f"{row['method']}, {'as published' if row['source'] == 'showdown' else 'recomputed in NumPy'}"
        rows.setdefault(label, {})[row["problem"]] = f"{row['regret']} ± {row['spread']}"
    for problem, policies in here.items():
        for name, regret in policies.items():
            method = re.sub(r" \d+d$", "", name)
            if method == name or name.endswith(problem):
                rows.setdefault(f"`{method}`", {})[problem] = mean_and_deviation(regret)
    return pages.table(["", "20d", "40d"], [[label, cells.get("20d", ""), cells.get("40d", "")] for label, cells in rows.items()])


def wheel(folder, rounds="2000", digits=1):
    deltas = ["0.5", "0.7", "0.9", "0.95", "0.99"]
    rows = {}
    for row in pages.published("wheel"):
        if row["rounds"] == rounds:
            label = f"{row['method']} ({row['source']}), {row['kind']}"
            rows.setdefault(label, {})[row["delta"]] = f"{row['regret']} ± {row['spread']}"
    for delta, policies in final_regret(folder, "problem.delta").items():
        for name, regret in policies.items():
            if name != "random":
                rows.setdefault(f"`{name}`, sd", {})[delta] = mean_and_deviation(100 * regret / np.mean(policies["random"]), digits)
    return pages.table(["", *deltas], [[label, *(cells.get(delta, "") for delta in deltas)] for label, cells in rows.items()])


def wheel_long(folder):
    return wheel(folder, "80000", digits=2)


TABLES = {"bernoulli": bernoulli, "gittins": gittins, "linear_showdown": linear_showdown, "wheel": wheel, "wheel_long": wheel_long}


def write(page, tables):
    """Replaces the tables of a page between the two marks of each, {name of the study: writer}, from the folders or files of the command line."""
    if len(sys.argv) < 2:
        sys.exit(sys.modules["__main__"].__doc__)
    text = page.read_text(encoding="utf-8")
    for folder in sys.argv[1:]:
        name = pathlib.Path(folder).stem
        if name not in tables:
            sys.exit(f"{folder}: the folder or file must be named {', '.join(tables)}")
        text = pages.replaced(text, name, tables[name](folder))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(PAGE, TABLES)
