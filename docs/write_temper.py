#!/usr/bin/env python3
"""Write rows of the table of docs/results/temper.md that compares methods with and without tempering, from results of the studies that it names.

    docs/write_temper.py RESULTS...      rows of studies that are not named stay as they are; prints the factors that were chosen
"""
import pathlib
import sys

import pages

sys.path.insert(0, str(pages.ROOT / "analysis" / "tools"))
import needs  # noqa: E402, F401  (lets the next ones be found)
from thompson import design, selection, store  # noqa: E402

PAGE = pages.ROOT / "docs" / "results" / "temper.md"
FILES = {"movielens": "MovieLens, d = 5", "mnist": "MNIST, d = 8"}
METHODS = {"mixts": "`mixts` auto", "diffts": "`diffts`", "localised": "`localised`", "ts": "`ts`"}
COMPARED = ("diffts", "localised")      # with mixts, in brackets
PART = "control"


def titles(dataset):
    """How the page names the settings: the prior, or the real vectors, and the rewards if these are not Gaussian."""
    file, likelihood = design.config(dataset, "problem.file"), design.config(dataset, "likelihood")
    names = [FILES[pathlib.Path(file).stem]] if file else map(str, design.swept(dataset)["problem.theta"])
    return [name if likelihood == "gaussian" else f"{name}, {likelihood}" for name in names]


def rows(folder):
    """{title: cells}: regret with the evidence unchanged and with the chosen factors."""
    dataset = store.results(folder)
    found = {}
    for name, (_, table) in zip(titles(dataset), selection.control(dataset, "temper", "1", minus="mixts").groupby("setting", sort=False)):
        of = table.set_index("method").loc[list(METHODS)]
        print(f"{name}: {', '.join(of.chosen)}")
        found[name] = [f"{row[value]:.1f}" + (f" ({round(row[minus], 1) + 0.0:+.1f} ± {row[minus + '_se']:.1f})" if method in COMPARED else "")
                       for value, minus in (("fixed", "fixed_difference"), ("reported", "difference")) for method, row in of.iterrows()]
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    there = {}
    for line in pages.split(text, PART)[1].splitlines()[2:]:
        title, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        there[title] = cells
    for folder in sys.argv[1:]:
        there |= rows(folder)
    head = ["", *METHODS.values(), *(f"{words.removesuffix(' auto')}, chosen" for words in METHODS.values())]
    PAGE.write_text(pages.replaced(text, PART, pages.table(head, [[name, *cells] for name, cells in there.items()])), encoding="utf-8")


if __name__ == "__main__":
    main()
