#!/usr/bin/env python3
"""Write the table of docs/results/past_tasks.md by observations of past tasks from results of the study that the page names.

    docs/write_past_tasks.py results/ablation_logs
"""
import sys

import pages
import write_bandits

sys.path.insert(0, str(pages.ROOT / "analysis" / "tools"))
import needs  # noqa: E402, F401  (lets the next ones be found)
import numpy as np  # noqa: E402
from thompson import averages, design, significance, store, wording  # noqa: E402

PAGE = pages.ROOT / "docs" / "results" / "past_tasks.md"
POLICIES = {"diffts": "DiffTS", "mixts": "`mixts`"}
CLEAR = 5  # standard errors: of a smaller gap no share is given


def cells(regret, replicate):
    """The cells of a policy on one problem, from regret [run] by the source of the prior: from theta, how much higher from logs and from estimates (paired;
    the standard error is over runs or over learned priors, whichever is larger), and the share of the gap that logs close."""
    more = {source: regret[source] - regret["theta"] for source in ("logs", "estimates")}
    mean = {source: np.nanmean(values) for source, values in more.items()}
    error = {source: averages.larger_error(values, replicate) for source, values in more.items()}
    closed = f"{100 * (1 - mean['logs'] / mean['estimates']):.0f}%" if mean["estimates"] > CLEAR * error["estimates"] else ""
    return [f"{np.nanmean(regret['theta']):.1f}", *(f"{mean[source]:+.1f} ± {error[source]:.1f}" for source in more), closed]


def by_observations(folder):
    """A row for each number of observations and problem."""
    dataset = store.results(folder)
    regret = averages.at_end(dataset, averages.of_completed(dataset, "regret"))     # [setting, policy, run]
    keys = (map(wording.plain, design.swept(dataset)[key]) for key in ("prior.past_observations", "problem.theta", "prior.learned_from"))
    of = {}
    for setting, (count, theta, source) in enumerate(zip(*keys)):
        of.setdefault((count, theta), {})[source] = regret[setting]
    places = [design.labels(dataset).index(policy) for policy in POLICIES]
    rows = [[f"{theta}, {count}", *(cell for p in places for cell in cells({source: values[p] for source, values in sources.items()}, significance.of_runs(dataset)))]
            for (count, theta), sources in sorted(of.items(), key=lambda item: float(item[0][0]))]
    heads = [head for words in POLICIES.values() for head in (f"{words}: from theta", f"{words}: logs", f"{words}: estimates", "share of the gap closed")]
    return pages.table(["", *heads], rows)


if __name__ == "__main__":
    write_bandits.write(PAGE, {"ablation_logs": by_observations})
