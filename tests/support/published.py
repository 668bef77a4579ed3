"""Rows that others published (data/published), as dictionaries of text."""

import csv
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(name):
    with open(ROOT / "data" / "published" / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
