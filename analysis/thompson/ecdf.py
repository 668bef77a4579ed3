"""Is a sample uniform? Its empirical distribution function with a simultaneous band, and the corresponding test.

Säilynoja, Bürkner and Vehtari 2022, "Graphical test for discrete uniformity and its applications in goodness-of-fit evaluation and multiple
sample comparison", Statistics and Computing 32. The counts below points z are a Markov chain with binomial steps, so the probability that all of
them lie within their bounds is computed, not simulated.
"""
import functools

import numpy as np
from scipy import special

HALVINGS = 30


@functools.lru_cache
def tails(n, z):
    """P(count <= c) and P(count >= c) at each of the points z, a tuple: [point, n + 1] each."""
    counts, share = np.arange(n + 1), np.array(z)[:, None]
    return special.bdtr(counts, n, share), special.bdtrc(counts - 1, n, share)


def bounds(n, z, level):
    """Least and largest count at each point for which neither tail is below level / 2: [point] each."""
    lower, upper = tails(n, z)
    return (lower > level / 2).argmax(axis=1), n - (upper > level / 2)[:, ::-1].argmax(axis=1)


def inside(n, z, low, high):
    """Probability that the counts of n uniform values below the ascending points z all lie within low..high."""
    factorial = special.gammaln(np.arange(n + 1) + 1.0)
    chance, reached, before = np.ones(1), np.zeros(1, int), 0.0
    for share, least, most in zip((np.array(z) - [0, *z[:-1]]) / (1 - np.array([0, *z[:-1]])), low, high):
        to = np.arange(least, most + 1)
        more, left = to[:, None] - reached, n - reached
        some = np.maximum(more, 0)  # negative steps are impossible
        log = factorial[left] - factorial[some] - factorial[np.maximum(left - some, 0)] + special.xlogy(some, share) + special.xlog1py(left - some, -share)
        chance, reached = np.where(more >= 0, np.exp(log), 0.0) @ chance, to
    return float(chance.sum())


@functools.lru_cache
def band(n, z, coverage=0.95):
    """Bounds of the counts of n uniform values below the points z, a tuple, that all hold simultaneously with at least this probability."""
    none, all_points = (1 - coverage) / len(z), 1 - coverage  # the levels if the points were disjoint, or were a single one
    for _ in range(HALVINGS):
        level = (none + all_points) / 2
        none, all_points = (level, all_points) if inside(n, z, *bounds(n, z, level)) >= coverage else (none, level)
    return bounds(n, z, none)


def p_value(n, z, below):
    """The probability that uniform values are, at some point, as extreme as these counts `below` [point]."""
    lower, upper = tails(n, z)
    at = np.arange(len(z))
    return 1 - inside(n, z, *bounds(n, z, 2 * np.minimum(lower[at, below], upper[at, below]).min()))
