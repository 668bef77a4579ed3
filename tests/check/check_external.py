#!/usr/bin/env python3
"""docs/results/external.md opens with one table of published and own numbers, and prints the published rows as they stand in data/published."""

import csv
import pathlib
import re
import unittest

import program

ROOT = pathlib.Path(program.SOURCE)
PAGE = ROOT / "docs" / "results" / "external.md"
COLUMNS = ("MCGDiff", "DDRM", "DPS", "RNVP", "prior weights")


def published(name):
    with open(ROOT / "data" / "published" / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def tables(text):
    """The tables of a page: lists of rows of cells."""
    found = re.findall(r"((?:^\|.*\|\n)+)", text, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]


def faults(text):
    """What differs between the page and the published rows."""
    out = []
    first, *others = tables(text)
    if first[0] != ["task", "best published", "ours", "floor"] or "## " in text[:text.index("| task |")]:
        out.append("the page does not open with the table of tasks")
    tasks = {row[0]: row[1] for row in first[2:]}
    detail = next(table for table in others if table[0][0] == "d, observed" and "MCGDiff" in table[0])
    cells = {(row[0], column): cell for row in detail[2:] for column, cell in zip(detail[0], row)}
    best = {}
    for row in published("mcgdiff"):
        d, observed, printed = row["dimension"], row["observed"], f"{row['distance']} ± {row['half_width']}"
        if row["method"] in COLUMNS and cells.get((f"{d}, {observed}", row["method"])) != printed:
            out.append(f"d = {d}, {observed} observed: {row['method']} is {printed}")
        if row["source"] == "v2":
            best[d, observed] = min(best.get((d, observed), (1e9, "")), (float(row["distance"]), f"{row['method']} {printed}"))
    out += [f"d = {d}, {observed} observed: the best is {text}" for (d, observed), (_, text) in best.items()
            if tasks.get(f"25 Gaussians, d = {d}, {observed} observed") != text]
    moments = {(row["source"], row["observation"]): row for row in published("bernoulli_glm")}
    worst = [0.0, 0.0]
    for (source, observation), row in moments.items():
        truth = moments["importance", observation]
        for i in range(1, 11 if source == "reference" else 0):
            mean, sd, exact_mean, exact_sd = (float(of[f"{name}{i}"]) for of in (row, truth) for name in ("mean", "sd"))
            worst = [max(worst[0], abs(mean - exact_mean) / exact_sd), max(worst[1], abs(sd / exact_sd - 1))]
    if tasks.get("ten logistic regressions, d = 10") != f"reference draws {worst[0]:.3f} sd, {100 * worst[1]:.1f}%":
        out.append(f"the reference draws of bernoulli_glm are off by {worst}")
    return out


class External(unittest.TestCase):
    def test_published_rows(self):
        text = PAGE.read_text(encoding="utf-8")
        self.assertEqual(faults(text), [])
        for right, wrong in (("0.49 ± 0.24 |", "0.48 ± 0.24 |"), ("MCGDiff 2.40 ± 1.00", "MCGDiff 2.41 ± 1.00"), ("reference draws 0.0", "reference draws 0.1")):
            self.assertIn(right, text)
            self.assertNotEqual(faults(text.replace(right, wrong)), [], wrong)


if __name__ == "__main__":
    program.main()
