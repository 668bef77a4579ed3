"""Paired tests between policies of one study, or between two studies, and Holm's correction for multiple tests.

Policies share theta*, arms and noise run by run, so the difference in each run is tested, by a two-sided t-test. Runs that
share a learned prior are not independent of it: if priors were learned averages.LEARNED times or more, the test is over the
means of these replicates, with an error that is at least that over runs, as in every table (a few replicates can agree by
chance); with fewer replicates it is over runs, and then says nothing about other learned priors.
"""
import dataclasses

import numpy as np
from scipy import special  # scipy.stats takes 0.2 s to import

from . import averages, design

LEVEL = 0.05
RANKS = ("rank", "rank_norm", "rank_log_likelihood")  # uniform if draws are exact
# How far each metric is from its best value, as a number to be small; metrics that are not listed are best when small themselves.
BEST = {"sd_ratio": lambda values: np.abs(values - 1), "ess": np.negative, **{rank: lambda values: values * np.nan for rank in RANKS},
        "largest_mode": lambda values: values * np.nan}


@dataclasses.dataclass
class Difference:
    """Mean of a difference, its standard error and the two-sided p-value; NaN if the sample is too small."""
    mean: float
    se: float
    p: float


def holm(p):
    """Adjusted p-values of a family of tests (Holm 1979, Scandinavian Journal of Statistics 6), NaN for tests that were not made."""
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    made = np.flatnonzero(np.isfinite(p))
    order = made[np.argsort(p[made], kind="stable")]
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def sample(values, replicate):
    """The independent parts of `values` [run]: means of replicates if there are averages.LEARNED of them, else the runs themselves."""
    groups = averages.of_replicates(values, replicate)
    return groups if len(groups) >= averages.LEARNED else values[np.isfinite(values)]


def unequal(values, replicate):
    """Tests whether the mean of `values` [run] differs from 0."""
    parts = sample(values, replicate)
    if len(parts) < 2:
        return Difference(parts.mean() if len(parts) else np.nan, np.nan, np.nan)
    mean, se = parts.mean(), averages.larger_error(values, replicate, averages.LEARNED)
    if se == 0:  # the difference is the same in every run
        return Difference(mean, se, float(mean == 0))
    return Difference(mean, se, float(2 * special.stdtr(len(parts) - 1, -abs(mean) / se)))


def scores(metric, values):
    """The values of a metric as numbers to be small; NaN if no value is better than another."""
    return BEST[metric](values) if metric in BEST else values


def winners(scores, rivals, replicate):
    """The policy with the least mean score [policy, run] among `rivals`, and the p-value of its paired difference to each of the others."""
    n = np.isfinite(scores).sum(axis=1)
    means = np.where(rivals & (n > 0), np.nansum(scores, axis=1) / np.where(n > 0, n, 1), np.inf)
    best = int(np.argmin(means))
    if not np.isfinite(means[best]):
        return None, []
    return best, [unequal(scores[p] - scores[best], replicate).p for p in np.flatnonzero(rivals) if p != best]


def of_runs(dataset):
    """Which learned prior each run used, [run]."""
    return dataset["replicate"].values if "replicate" in dataset.variables else np.zeros(dataset.sizes["run"], int)


def over(datasets):
    """What the tests of these studies are taken over, in words."""
    found = {}
    for dataset in datasets:
        learned = averages.replicates(dataset)
        found["over runs" if learned == 1 else f"over the {learned} learned priors" if averages.over_replicates(dataset) else
              f"over runs, given the {learned} priors that were learned"] = None
    return " or ".join(found)


def errors_over(datasets):
    """What the standard errors of these studies are taken over (averages.moments), in words."""
    learned = dict.fromkeys(averages.replicates(dataset) for dataset in datasets)
    return " or ".join("over runs" if n == 1 else f"over runs or over the {n} learned priors, whichever is larger," for n in learned).rstrip(",")


def caution(datasets):
    """A sentence of caution about the tests of adaptive studies; empty for others."""
    if not any(map(design.adaptive, datasets)):
        return ""
    return "Runs were added until a standard error was small enough, which makes these tests slightly optimistic."
