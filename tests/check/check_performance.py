#!/usr/bin/env python3
"""The tables of docs/performance.md as tests/bench/performance_page.py writes them, from measurements made up here: each number in the line of its
sampler or peer, and no line for what was not measured. Ends with one line "N passed, N failed"."""
import pathlib
import sys
import unittest

import summary

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))
import performance_page  # noqa: E402


def lines(text):
    """{first cell: the others} of a table, without its head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {row[0]: row[1:] for row in rows[2:]}


def draw(sampler, dimension, hidden=(), share=None, seconds=1e-6):
    return {"sampler": sampler, "dimension": dimension, "hidden": list(hidden), "draw_fraction_of_peak": share, "seconds_per_draw": seconds, "rounds_per_second": 1234567.0}


def beside(peer, ours, median, hidden=None, method=None):
    own = {"hidden": hidden} if hidden else {}
    return {"peer": peer, "peer_method": method or ours, "ours": ours, **own, "ratio": {"median": median, "low": median / 2, "high": 2 * median}}


class Page(unittest.TestCase):
    def test_shares(self):
        rows = [draw("ts", 2), draw("vits1", 2, share=0.0312), draw("diffts", 2, (20, 20), 0.23), draw("ts", 10), draw("vits1", 10, share=0.16), draw("diffts", 10, (100, 100), 0.42)]
        found = lines(performance_page.shares({"share": {"rows": rows}}))
        self.assertEqual(found, {"`vits1`": ["3.1%", "16%"], "`diffts` (20, 20), (100, 100)": ["23%", "42%"]})

    def test_costs(self):
        """The first row of a sampler counts, whose networks have the default size."""
        rows = [draw(sampler, d, seconds=d * 1e-6) for d in (2, 10) for sampler in performance_page.COSTS if sampler != "diffts"]
        rows += [draw("diffts", 2, (20, 20), seconds=3e-6), draw("diffts", 10, (100, 100), seconds=5e-5), draw("diffts", 2, (100, 100), seconds=9e-6)]
        found = lines(performance_page.costs({"bench": {"rows": rows}}))
        self.assertEqual(list(found.values())[0], ["2.00 us", "10.0 us", "1 234 567"])
        self.assertEqual(found["`diffts` (layers of 20 and 100)"], ["3.00 us", "50.0 us", "1 234 567"])

    def test_compared(self):
        small, published = performance_page.SMALL, performance_page.PUBLISHED
        results = {"loops": {"rows": [beside("Python loop, scikit-learn", "diffts", 600, published), beside("Python loop", "diffts", 20, small, "ts"), beside("Python loop", "ts", 500)]},
                   "batches": {"rows": [beside(f"NumPy, plain, batch of {n}", "diffts", ratio, small) for n, ratio in ((100, 24), (1024, 7))]},
                   "torch": {"skipped": "no"},
                   "vits": {"rows": [{"policy": "vits2", "d": 20, "speed": 2.3}]},
                   "training": {"rows": {"summary": {"cross": {"scikit-learn": {}, "default": {"times_faster": 300}, "wide": {"times_faster": 40}}}}},
                   "emd": {"rows": [{"n": 500, "m": 500, "ratio": 0.1}, {"n": 500, "m": 500, "ratio": 0.05}, {"n": 2000, "m": 2000, "ratio": 0.5}]}}
        self.assertEqual(lines(performance_page.compared(results)),
                         {"DiffTS as published (a loop, scikit-learn), layers of 100": ["600 (300 to 1200)"],
                          "DiffTS, layers of 20, plain NumPy, batches of 100 and 1 024 runs": ["24.0 (12.0 to 48.0); 7.00 (3.50 to 14.0)"],
                          "Gaussian Thompson sampling in a loop": ["500 (250 to 1000)"],
                          "VITS-II in batches, NumPy, d = 20": ["2.30"],
                          "earth mover's distance of 500 points, POT": ["10.0 to 20.0"],
                          "training of a prior, scikit-learn": ["40.0 to 300"]})


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
