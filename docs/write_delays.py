#!/usr/bin/env python3
"""Write the tables of docs/results/delays.md from results of the studies jobs/questions/late_clicks*.yaml, and from what tests/external/clicks.py writes.

    docs/write_delays.py [results/late_clicks] [results/late_clicks_apart] [results/clicks.csv]        tables that are not named stay as they are
"""
import csv
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


def oracle_table(path):
    """Regret of the program and of exact posteriors in each world, for each rule and delay."""
    worlds = {"apart": "ten ads apart", "segments": "20 ads with features", "fresh": "20 other ads in each round"}
    rows = []
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            ours, se, oracle, oracle_se, rounds, delay = (float(row[name]) for name in ("regret", "se", "oracle", "oracle_se", "rounds", "delay"))
            share = SHARES[[0, 30, 6, 4].index(round(rounds / delay) if delay else 0)]
            rows.append([f"{worlds[row['world']]} ({row['runs']} users)", f"`{row['rule']}`", share, f"{ours:.2f} ± {se:.2f}", f"{oracle:.2f} ± {oracle_se:.2f}",
                         f"{(ours - oracle) / np.hypot(se, oracle_se):+.1f}", f"{ours / oracle:.2f} ± {ours / oracle * np.hypot(se / ours, oracle_se / oracle):.2f}"])
    return pages.table(["world", "rule", "delay", "this program", "exact posterior", "difference in standard errors", "ratio"], rows)


if __name__ == "__main__":
    write_bandits.write(PAGE, {"late_clicks": regret_table, "late_clicks_apart": regret_table, "clicks": oracle_table})
