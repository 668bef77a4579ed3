#!/usr/bin/env python3
"""Write the tables of docs/results/past_tasks.md from results of the studies that the page names, in folders with the names that it gives.

    docs/write_past_tasks.py [results/three_problems] [results/three_more] [results/own_denoiser] [results/ablation_logs] [results/past_clicks]

Tables of studies that are not named stay as they are.
"""
import functools
import sys

import pages
import write_bandits

sys.path.insert(0, str(pages.ROOT / "analysis" / "tools"))
import needs  # noqa: E402, F401  (lets the next ones be found)
import numpy as np  # noqa: E402
from thompson import averages, design, significance, store, wording  # noqa: E402

PAGE = pages.ROOT / "docs" / "results" / "past_tasks.md"
NAMES = {"diffts": "DiffTS"}
SOURCE = "prior.learned_from"
CLEAR = 5  # standard errors: of a smaller gap no share is given


def cells(regret, replicate):
    """{column: cell} of a policy on one problem, from regret [run] by the source of the prior: from theta, how much higher from each other source (paired;
    the standard error is over runs or over learned priors, whichever is larger), and the share of the gap to estimates that logs close."""
    more = {source: values - regret["theta"] for source, values in regret.items() if source != "theta"}
    mean = {source: np.nanmean(values) for source, values in more.items()}
    error = {source: averages.larger_error(values, replicate) for source, values in more.items()}
    out = {"from theta": f"{np.nanmean(regret['theta']):.1f}", **{source: f"{mean[source]:+.1f} ± {error[source]:.1f}" for source in more}}
    if "estimates" in more:
        out["share of the gap closed"] = f"{100 * (1 - mean['logs'] / mean['estimates']):.0f}%" if mean["estimates"] > CLEAR * error["estimates"] else ""
    return out


def by_source(folder, policies=None):
    """A row for each of these policies of a study, or of all, and each setting of the other swept keys; a column for each source of the prior."""
    dataset = store.results(folder)
    regret = averages.at_end(dataset, averages.of_completed(dataset, "regret"))     # [setting, policy, run]
    keys = {key: [wording.plain(value) for value in values] for key, values in design.swept(dataset).items()}
    sources, titles = keys.pop(SOURCE), [", ".join(values) for values in zip(*keys.values())]
    rows = {}
    for policy in policies or design.labels(dataset):
        place, of = design.labels(dataset).index(policy), {}
        for title, source, values in zip(titles, sources, regret):
            of.setdefault(title, {})[source] = values[place]
        rows |= {f"{NAMES.get(policy, f'`{policy}`')}, {title}": cells(by, significance.of_runs(dataset)) for title, by in of.items()}
    return pages.table(["", *next(iter(rows.values()))], [[name, *row.values()] for name, row in rows.items()])


if __name__ == "__main__":
    tables = dict.fromkeys(("three_problems", "three_more", "own_denoiser", "past_clicks"), by_source)
    write_bandits.write(PAGE, tables | {"ablation_logs": functools.partial(by_source, policies=("diffts", "mixts"))})
