#!/usr/bin/env python3
"""Write the tables of docs/results/delays.md from results of the studies jobs/questions/late_clicks*.yaml.

    docs/write_delays.py [results/late_clicks] [results/late_clicks_apart]        the table of the other folder stays as it is
"""
import pathlib
import re

import netCDF4
import numpy as np

import pages
import write_bandits

PAGE = pages.ROOT / "docs" / "results" / "delays.md"
SHARES = "at once", "1/30", "1/6", "1/4"


def cell(x):
    return f"{np.mean(x):.1f} ± {np.std(x, ddof=1) / np.sqrt(len(x)):.1f}"


def regret_table(folder):
    """Regret of each rule in each setting, and the paired difference of bayes_ucb to thompson."""
    with netCDF4.Dataset(pathlib.Path(folder) / "results.nc") as file:
        policies = [str(name) for name in file["policy"][:]]
        settings = [str(name) for name in file["setting"][:]]
        regret = np.ma.filled(file["regret"][:], np.nan)[..., -1]
    delays = sorted({int(re.search(r"delay=(\d+)", setting)[1]) for setting in settings})
    rows = []
    for s, setting in enumerate(settings):
        rate = int(re.search(r"_(\d+)\.nc", setting)[1])
        delay = SHARES[delays.index(int(re.search(r"delay=(\d+)", setting)[1]))]
        difference = regret[s, policies.index("bayes_ucb")] - regret[s, policies.index("thompson")]
        rows.append([f"{rate}%", delay, *(cell(of_policy) for of_policy in regret[s]), cell(difference)])
    return pages.table(["click rate", "delay", *(f"`{name}`" for name in policies), "`bayes_ucb` minus `thompson`"], rows)


if __name__ == "__main__":
    write_bandits.write(PAGE, {"late_clicks": regret_table, "late_clicks_apart": regret_table})
