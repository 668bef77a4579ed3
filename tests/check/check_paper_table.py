#!/usr/bin/env python3
"""The table for papers on results made by hand: means, errors and which cells are bold, worked out below."""
import numpy as np

from study_fixture import SIZES, StudyTest, call, main, write_posterior, write_study

from thompson import store
import paper_table
import table

A = np.array([1.0, 2.0, 3.0, 4.0])
# In the first problem b is worse than a by about 1 in every run (t = 24 with 3 degrees of freedom), c by 0.2 ± 0.5; the oracle does not take part.
FIRST = [A, A + [1, 1.1, 0.9, 1], A + [-1, 1.2, 0.6, 0], 0 * A]
# In the second a has not run, and c is worse than b by the same amount in every run.
SECOND = [np.nan * A, 1 + 0 * A, 1.01 + 0 * A, 0 * A]
MARKDOWN = """\
| policy |             cross |            ra_ys |
|--------|------------------:|-----------------:|
| a      |   **2.50 ± 0.65** |                – |
| b_1    |       3.50 ± 0.63 |  **1.00 ± 0.00** |
| c      |   **2.70 ± 0.91** |      1.01 ± 0.00 |
| oracle |       0.00 ± 0.00 |      0.00 ± 0.00 |
"""
LATEX = r"""% needs \usepackage{booktabs}
\begin{table}
\centering
\begin{tabular}{lrr}
\toprule
policy & cross & ra\_ys \\
\midrule
a & $\mathbf{2.50 \pm 0.65}$ & $\text{--}$ \\
b\_1 & $3.50 \pm 0.63$ & $\mathbf{1.00 \pm 0.00}$ \\
c & $\mathbf{2.70 \pm 0.91}$ & $1.01 \pm 0.00$ \\
oracle & $0.00 \pm 0.00$ & $0.00 \pm 0.00$ \\
\bottomrule
"""


class PaperTable(StudyTest):
    def test_by_hand(self):
        regret = np.stack([np.stack(FIRST), np.stack(SECOND)])[..., None] * np.ones(3)
        write_study(self.folder, "round", [1, 2, 3], {"regret": regret}, [{"problem.theta": "cross"}, {"problem.theta": "ra_ys"}],
                    {"a": ("ts", {}), "b_1": ("mixts", {}), "c": ("diffts", {}), "oracle": ("oracle", {})}, not_run=[(1, 0, r) for r in range(4)])
        status, out, err = call(table, self.folder, "--layout", "paper")
        self.assertEqual((status, err), (0, ""))
        rows, _, caption = out.partition("\n\n")
        self.assertEqual([line.split() for line in rows.splitlines() if "--" not in line], [line.split() for line in MARKDOWN.splitlines() if "--" not in line])
        self.assertIn("0 to 4 of 4 runs are in", caption)
        self.assertIn("Holm", caption)
        status, out, _ = call(table, self.folder, "--layout", "paper", "-f", "latex")
        self.assertEqual((status, out[:len(LATEX)]), (0, LATEX))
        self.assertEqual(call(table, self.folder, "--layout", "paper", "-f", "csv")[0], 2)

    def test_columns_of_a_posterior_study(self):
        """One column for each setting and number of observations; a metric without a best value has no bold cell."""
        write_posterior(self.folder)
        dataset = store.results(self.folder, None)
        heading = paper_table.printed(dataset, "emd", "markdown").splitlines()[0]
        self.assertEqual([cell.strip() for cell in heading.split("|")[2:-1]], [f"{title}, n = {n}" for title in ("gm_cross", "gm_rays") for n in SIZES])
        self.assertNotIn("**", paper_table.printed(dataset, "rank", "markdown"))


if __name__ == "__main__":
    main(PaperTable)
