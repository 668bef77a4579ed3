#!/usr/bin/env python3
"""Gittins indices of Bernoulli arms, and what two arms earn when the one with the larger index is played.

    analysis/tools/gittins.py [ROUNDS ...] [--discount G ...] [--beta A B] [--json FILE]     default: 60 200, 0.9 0.95 0.99, uniform probabilities

The index of an arm whose success probability is Beta(a, b) is the certain reward per round that is worth as much as the arm with the right to change to
that reward for ever (Gittins 1979). With rewards discounted by G in each round the arm with the largest index is the optimal choice, whatever the number
of independent arms. A fixed number of rounds is another problem: the table has the expected successes and the regret of that policy there, exact apart
from rounding and the error of an index, at most 1e-4 (7e-5 is the largest found against bisection), beside those of the optimal policy (bernoulli_optimum.py).
"""
import needs
import argparse
import json
import pathlib

import numpy as np

import bernoulli_optimum

REWARDS = 400  # certain rewards for which arms are valued; between two of them the index is found on a straight line
FAR = 1e-9  # discount of the last round that is looked at


def advantages(rounds, discount, reward, a, b, last):
    """What one more play is worth, with the right to change to the reward afterwards, beyond the reward for ever: [n][n + 1] for n < rounds plays."""
    stop, out = reward / (1 - discount), []
    s = np.arange(last + 1.0)
    worth = np.maximum((a + s) / (a + b + last) / (1 - discount), stop)  # as if the probability were known by then
    for n in range(last - 1, -1, -1):
        p = (a + s[:n + 1]) / (a + b + n)
        play = p * (1 + discount * worth[1:n + 2]) + (1 - p) * discount * worth[:n + 1]
        if n < rounds:
            out.append(play - stop)
        worth = np.maximum(play, stop)
    return out[::-1]


def indices(rounds, discount, a=1, b=1):
    """Indices of an arm that was Beta(a, b) and has been played n < rounds times, for all numbers of successes: [n][n + 1]."""
    last = rounds + int(np.ceil(np.log(FAR) / np.log(discount)))
    rewards = np.linspace(0, 1, REWARDS + 1)[1:-1]
    out = [np.full(n + 1, np.nan) for n in range(rounds)]
    before, lower = None, 0.0
    for reward in rewards:
        now = advantages(rounds, discount, reward, a, b, last)
        for n in range(rounds):
            above = np.isnan(out[n]) & (now[n] <= 0)
            if above.any():
                start = before[n][above] if before else np.ones(above.sum())
                out[n][above] = lower + (reward - lower) * start / (start - now[n][above])
        before, lower = now, reward
    for n in range(rounds):
        out[n][np.isnan(out[n])] = 1.0
    return out


def index(a, b, discount):
    """The index of one arm, by bisection."""
    last = 1 + int(np.ceil(np.log(FAR) / np.log(discount)))
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if advantages(1, discount, middle, a, b, last)[0][0] > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="*", type=int, default=[60, 200])
    parser.add_argument("--discount", nargs="+", type=float, default=[0.9, 0.95, 0.99], metavar="G")
    parser.add_argument("--beta", nargs=2, type=int, default=(1, 1), metavar=("A", "B"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args()
    a, b = options.beta
    if min(*options.rounds, a, b) < 1 or not 0 < min(options.discount) <= max(options.discount) < 1:
        parser.error("rounds, A and B must be at least 1, and discounts between 0 and 1")
    most = max(options.rounds)
    policies = [("optimal", "optimal", None)] + [(f"gittins {g:g}", indices(most, g, a, b), index(a, b, g)) for g in options.discount]
    rows = []
    print("rounds  policy            successes            regret    index of a new arm")
    for rounds in options.rounds:
        for name, policy, new in policies:
            earned = bernoulli_optimum.successes(policy, rounds, a, b)
            rows.append({"rounds": rounds, "policy": name, "successes": earned, "regret": rounds * bernoulli_optimum.best_mean(a, b) - earned, "index": new})
            print(f"{rounds:6d}  {name:14s}  {earned:11.6f}  {rows[-1]['regret']:16.6f}" + (f"  {new:20.6f}" if new else ""))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
