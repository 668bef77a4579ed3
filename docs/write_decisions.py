#!/usr/bin/env python3
"""Write the table of constants for clicks of docs/results/decisions.md from results of the study jobs/questions/click_rates.yaml.

    docs/write_decisions.py results/click_rates
"""
import pathlib
import re

import netCDF4
import numpy as np

import pages
import write_bandits
import write_delays

PAGE = pages.ROOT / "docs" / "results" / "decisions.md"
DEFAULT = "bayes_ucb 0.03"


def relative(regret, to):
    """Differences of mean regret to that of another policy, as a share of it, and what each run contributes to their error; regret[..., run]."""
    ratio = regret.mean(axis=-1, keepdims=True) / to.mean(axis=-1, keepdims=True)
    return ratio[..., 0] - 1, (regret - ratio * to) / to.mean(axis=-1, keepdims=True)


def alpha(policy):
    return policy.removeprefix("bayes_ucb ") if policy.startswith("bayes_ucb ") else ""


def percent(share, each_run):
    return f"{100 * share:+.1f} ± {100 * np.std(each_run, ddof=1) / np.sqrt(len(each_run)):.1f}%"


def click_rates(folder):
    """Regret at each rate, the lowest in bold, and how much the best other constant differs from the default, paired; then the mean of these differences over
    the rates for each policy. Runs of different rates share random numbers, so the error of that mean is over runs."""
    with netCDF4.Dataset(pathlib.Path(folder) / "results.nc") as file:
        policies = [str(name) for name in file["policy"][:]]
        rates = [int(re.search(r"rates_(\d+)_", str(name))[1]) for name in file["setting"][:]]
        regret = np.ma.filled(file["regret"][:], np.nan)[..., -1]  # [rate, policy, run]
    default = policies.index(DEFAULT)
    others = [p for p, name in enumerate(policies) if name.startswith("bayes_ucb") and p != default]
    share, each_run = relative(regret, regret[:, [default]])
    rows = []
    for s, rate in enumerate(rates):
        cells = [write_delays.cell(of_policy) for of_policy in regret[s]]
        best = regret[s].mean(axis=-1).argmin()
        cells[best] = f"**{cells[best]}**"
        rival = min(others, key=lambda p: share[s, p])
        rows.append([f"{rate}%", *cells, f"{alpha(policies[rival])}: {percent(share[s, rival], each_run[s, rival])}"])
    means = [percent(share[:, p].mean(), each_run[:, p].mean(axis=0)) if p != default else "" for p in range(len(policies))]
    rows.append(["all, relative to 0.03", *means, ""])
    return pages.table(["click rate", *(f"alpha = {alpha(name)}" if alpha(name) else f"`{name}`" for name in policies), "best other alpha"], rows)


if __name__ == "__main__":
    write_bandits.write(PAGE, {"click_rates": click_rates})
