#!/usr/bin/env python3
"""Published results: every row of data/published stands on its page as it is printed, and the tables say what the pages conclude from them.
Ends with one line "N passed, N failed"."""
import pathlib
import re
import sys
import unittest

import published
import summary

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "results"
COLUMNS = ("MCGDiff", "DDRM", "DPS", "RNVP", "prior weights")


def page_part(name):
    text = (RESULTS / "bandits.md").read_text(encoding="utf-8")
    return re.search(rf"from {name} -->(.*)<!-- [^>]*to {name} -->", text, re.DOTALL)[1]


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
    for row in published.rows("mcgdiff"):
        d, observed, printed = row["dimension"], row["observed"], f"{row['distance']} ± {row['half_width']}"
        if row["method"] in COLUMNS and cells.get((f"{d}, {observed}", row["method"])) != printed:
            out.append(f"d = {d}, {observed} observed: {row['method']} is {printed}")
        if row["source"] == "v2":
            best[d, observed] = min(best.get((d, observed), (1e9, "")), (float(row["distance"]), f"{row['method']} {printed}"))
    out += [f"d = {d}, {observed} observed: the best is {text}" for (d, observed), (_, text) in best.items()
            if tasks.get(f"25 Gaussians, d = {d}, {observed} observed") != text]
    moments = {(row["source"], row["observation"]): row for row in published.rows("bernoulli_glm")}
    worst = [0.0, 0.0]
    for (source, observation), row in moments.items():
        truth = moments["importance", observation]
        for i in range(1, 11 if source == "reference" else 0):
            mean, sd, exact_mean, exact_sd = (float(of[f"{name}{i}"]) for of in (row, truth) for name in ("mean", "sd"))
            worst = [max(worst[0], abs(mean - exact_mean) / exact_sd), max(worst[1], abs(sd / exact_sd - 1))]
    if tasks.get("ten logistic regressions, d = 10") != f"reference draws {worst[0]:.3f} sd, {100 * worst[1]:.1f}%":
        out.append(f"the reference draws of bernoulli_glm are off by {worst}")
    return out


class Bandits(unittest.TestCase):
    def test_cells(self):
        """The line of a method has the printed number in the column of its setting."""
        for name, table, setting, label in (
                ("wheel", lambda row: "wheel" if row["rounds"] == "2000" else "wheel_long", "delta", lambda row: f"{row['method']} ({row['source']}), {row['kind']}"),
                ("linear_showdown", lambda row: "linear_showdown", "problem",
                 lambda row: f"{row['method']}, {'as published' if row['source'] == 'showdown' else 'recomputed in NumPy'}")):
            for row in published.rows(name):
                lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page_part(table(row)).splitlines() if line.startswith("|")]
                cells = {line[0]: dict(zip(lines[0], line)) for line in lines[2:]}
                self.assertEqual(cells[label(row)][row[setting]], f"{row['regret']} ± {row['spread']}", row)

    def test_optimum(self):
        for row in published.rows("bernoulli"):
            if row["policy"] == "optimal":
                self.assertIn(f"{row['rounds']} rounds: {row['successes']}", page_part("bernoulli"))
        head, _, *rows = tables(page_part("bernoulli"))[0]
        exact = [[float(cell) for cell in row[:4]] for row in rows]
        self.assertEqual([row[0] for row in exact], [60, 200])
        for rounds, optimum, *others in exact:
            self.assertLess(optimum, min(others))
        for name, regret in zip(("optimal", "thompson", "greedy"), exact[0][1:]):
            earned, = [float(row["successes"]) for row in published.rows("bernoulli") if (row["rounds"], row["policy"]) == ("60", name)]
            self.assertAlmostEqual(regret, 40 - earned, delta=5.1e-5)

    def test_gittins(self):
        """The optimum and the indices of new arms on the page are the published ones."""
        head, _, *rows = tables(page_part("gittins"))[0]
        cells = {row[0]: dict(zip(head, row)) for row in rows}
        for row in published.rows("bernoulli"):
            if row["policy"] == "optimal" and row["rounds"] in cells:
                self.assertEqual(cells[row["rounds"]]["optimum"], f"{2 / 3 * int(row['rounds']) - float(row['successes']):.4f}")
        for row in published.rows("gittins"):
            if (row["successes"], row["failures"]) == ("0", "0"):
                self.assertEqual(cells["index of a new arm"][f"index, discount {row['discount']}"], row["index"])


class Delays(unittest.TestCase):
    def test_verdict(self):
        """What README and docs/results/delays.md say: bayes_ucb is nowhere worse by two standard errors at 2%, nor elsewhere up to a thirtieth."""
        text = (RESULTS / "delays.md").read_text(encoding="utf-8")
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| \d+%", line)]
        self.assertEqual(len(cells), 24)
        for rate, delay, *_, difference in cells:
            mean, se = map(float, difference.split(" ± "))
            if rate == "2%" or delay in ("at once", "1/30"):
                self.assertLess(mean, 2 * se, (rate, delay))
        self.assertGreater(float(cells[-1][-1].split()[0]), 0)  # at 50% and a quarter it is worse


class Constants(unittest.TestCase):
    def test_clicks(self):
        """What docs/decisions.md says of alpha = 0.03: lowest at most click rates, nowhere worse than another constant by two standard errors, and better than
        every other one over all rates by as much. Bold cells and the last column follow from the means, which are rounded."""
        text = (RESULTS / "decisions.md").read_text(encoding="utf-8")
        (head, _, *rows, every), = tables(re.search(r"from click_rates -->(.*)<!-- [^>]*to click_rates -->", text, re.DOTALL)[1])
        self.assertEqual([row[0] for row in rows], [f"{rate}%" for rate in (2, 5, 10, 25, 50, 75, 90)])
        lowest = []
        for row in rows:
            means = {name: float(cell.strip("*").split(" ± ")[0]) for name, cell in zip(head[1:-1], row[1:])}
            marked, = (name for name, cell in zip(head, row) if cell.startswith("**"))
            self.assertEqual(means[marked], min(means.values()), row)
            lowest.append(marked)
            rival, more, se = re.fullmatch(r"([\d.]+): ([-+][\d.]+) ± ([\d.]+)%", row[-1]).groups()
            self.assertAlmostEqual(float(more), 100 * (means[f"alpha = {rival}"] / means["alpha = 0.03"] - 1), delta=1)
            self.assertGreater(float(more), -2 * float(se), row)
        self.assertEqual(lowest.count("alpha = 0.03"), 5)
        for name, cell in zip(head[1:-1], every[1:]):
            if name != "alpha = 0.03":
                more, se = map(float, cell.rstrip("%").split(" ± "))
                self.assertGreater(more, 2 * se, name)


class External(unittest.TestCase):
    def test_published_rows(self):
        text = (RESULTS / "external.md").read_text(encoding="utf-8")
        self.assertEqual(faults(text), [])
        for right, wrong in (("0.49 ± 0.24 |", "0.48 ± 0.24 |"), ("MCGDiff 2.40 ± 1.00", "MCGDiff 2.41 ± 1.00"), ("reference draws 0.0", "reference draws 0.1")):
            self.assertIn(right, text)
            self.assertNotEqual(faults(text.replace(right, wrong)), [], wrong)


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
