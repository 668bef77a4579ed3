#!/usr/bin/python3
"""The Bayes optimum of two Gaussian arms, by dynamic programming: the least regret that any policy can have.

    tests/bench/bayes_optimum.py [ROUNDS ...]          default: 10 50 200; the last takes a minute

theta_1, theta_2 ~ N(0, 1), rewards N(theta_i, 1). After n_i plays of arm i its posterior is N(m_i, v_i), v_i = 1 / (1 + n_i), and only
delta = m_1 - m_2 matters: with s^2 = v_1 + v_2 the best arm has E max(theta_1 - theta_2, 0) = s phi(delta / s) + delta Phi(delta / s)
more than arm 2. That is the cost of playing arm 2; the cost of arm 1 is that minus delta. A play of arm i moves delta by
N(0, v_i^2 / (v_i + 1)). The cost to go is stored on a grid of [-8, 8] with cubic splines, and expectations are computed by
Gauss-Hermite quadrature."""
import sys

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.stats import norm

EDGE, NODES = 8.0, 21
# Regret of the optimal policy after these numbers of rounds.
OPTIMUM = {10: 1.7987, 50: 3.2741, 200: 5.085}


def cost_of_second(delta, first, second):
    """Expected regret of playing arm 2 after `first` and `second` plays of the two arms."""
    s = np.sqrt(1 / (1 + first) + 1 / (1 + second))
    return s * norm.pdf(delta / s) + delta * norm.cdf(delta / s)


def expected(spline, grid, plays, nodes, weights):
    """E of the cost to go when an arm that was played `plays` times is played once more."""
    v = 1 / (1 + plays)
    moved = grid[:, None] + v / np.sqrt(v + 1) * nodes
    return spline(np.clip(moved, -EDGE, EDGE)) @ weights


def optimum(rounds, points=801):
    """The regret of the optimal policy after `rounds` rounds. to_go[n_1] at n_1 + n_2 = t plays, [points]."""
    grid = np.linspace(-EDGE, EDGE, points)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    to_go = np.zeros((rounds + 1, points))
    for t in range(rounds - 1, -1, -1):
        splines = [CubicSpline(grid, row) for row in to_go]
        to_go = np.zeros((t + 1, points))
        for first in range((t + 2) // 2):  # the others follow by symmetry: the arms change places and delta its sign
            second = t - first
            regret = cost_of_second(grid, first, second)
            of_first = regret - grid + expected(splines[first + 1], grid, first, nodes, weights)
            of_second = regret + expected(splines[first], grid, second, nodes, weights)
            to_go[first] = np.minimum(of_first, of_second)
            to_go[second] = to_go[first][::-1]
    return to_go[0, points // 2]


if __name__ == "__main__":
    for asked in map(int, sys.argv[1:] or map(str, OPTIMUM)):
        print(f"{asked:4d} rounds: {optimum(asked):.4f}")
