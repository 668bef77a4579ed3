#!/usr/bin/env python3
"""Write the tables of docs/results/external.md from published results (data/published) and from results of the studies in jobs/external.

    docs/write_external.py results/mcgdiff ...        one folder, or several that share the settings of the study
"""
import csv
import pathlib
import re
import sys

import netCDF4
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results" / "external.md"
BEGIN, END = "<!-- Written by docs/write_external.py: from here -->", "<!-- Written by docs/write_external.py: to here -->"
METHODS = ("MCGDiff", "DDRM", "DPS", "RNVP")
BASELINE = "prior weights"  # the right components with the prior's weights


def published():
    """{(dimension, observed): {method: (distance, half width)}}, as printed."""
    out = {}
    with open(ROOT / "data" / "published" / "mcgdiff.csv", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            out.setdefault((int(row["dimension"]), int(row["observed"])), {})[row["method"]] = (row["distance"], row["half_width"])
    return out


def half_width(x):
    """Half the width of an interval as in the paper: 1.96 sd / sqrt(n)."""
    return 1.96 * np.std(x, ddof=1) / np.sqrt(len(x))


def cell(x):
    return f"{np.mean(x):.3f} ± {half_width(x):.3f}"


def of_cases(values):
    """The number of each case, at its own number of observations: the others are NaN."""
    values = np.ma.filled(values, np.nan).astype(float).reshape(len(values), -1)
    return np.where(np.isnan(values).all(axis=1), np.nan, np.nansum(values, axis=1))


def read(folder):
    """{(dimension, observed): {"floor": distances, policy: {variable: values of all problems}}} of a results folder."""
    out = {}
    with netCDF4.Dataset(pathlib.Path(folder) / "results.nc") as file:
        policies, names = ([str(name) for name in file[variable][:]] for variable in ("policy", "setting"))
        for s, name in enumerate(names):
            key = tuple(map(int, re.search(r"mcgdiff_(\d+)_(\d+)", name).groups()))
            here = out.setdefault(key, {})
            here["floor"] = of_cases(file["sliced_wasserstein_floor"][s, 0])
            for p, policy in enumerate(policies):
                here[policy] = {variable: of_cases(file[variable][s, p]) for variable in ("sliced_wasserstein", "seconds", "oracle_calls", "distinct")}
    return out


def tables(folders):
    found, printed = {}, published()
    for folder in folders:
        found |= read(folder)
    policies = [name for name in next(iter(found.values())) if name != "floor"]
    lines = ["| d, observed | " + " | ".join(METHODS) + " | " + " | ".join(f"`{name}`" for name in policies) + " | floor | " + f"{BASELINE} |",
             "|---" * (len(METHODS) + len(policies) + 3) + "|"]
    for key, here in sorted(found.items()):
        row = [" ± ".join(printed[key][method]) for method in METHODS]
        row += [cell(here[policy]["sliced_wasserstein"]) for policy in policies] + [cell(here["floor"]), " ± ".join(printed[key][BASELINE])]
        lines.append(f"| {key[0]}, {key[1]} | " + " | ".join(row) + " |")
    lines += ["", "| d, observed | sampler | CPU s per problem | denoiser calls per draw | distinct draws | worst problem |", "|---|---|---|---|---|---|"]
    for key, here in sorted(found.items()):
        for policy in policies:
            of = here[policy]
            distinct = "all" if np.isnan(of["distinct"]).all() else f"{of['distinct'].mean():.2f}"
            lines.append(f"| {key[0]}, {key[1]} | `{policy}` | {np.mean(of['seconds']):.2f} | {of['oracle_calls'].mean():.0f} | {distinct} | {of['sliced_wasserstein'].max():.2f} |")
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n\n" + tables(sys.argv[1:]) + "\n\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
