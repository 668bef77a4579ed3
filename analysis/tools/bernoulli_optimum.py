#!/usr/bin/env python3
"""What two Bernoulli arms can earn: expected successes by dynamic programming, exact apart from rounding.

    analysis/tools/bernoulli_optimum.py [ROUNDS ...] [--beta A B]          default: 60 200, uniform probabilities

Both success probabilities are Beta(A, B), A and B whole numbers. After s_i successes and f_i failures of arm i it is Beta(A + s_i, B + f_i), so the
counts are all that a policy need know. The table has the expected successes, and the regret against max(p_1, p_2), of the optimal policy, of
Thompson sampling, and of greedy, which plays the arm with the larger mean; both take either arm on ties.
"""
import needs
import argparse

import numpy as np
from scipy.special import betaln, betainc

POLICIES = ("optimal", "thompson", "greedy")


def best_mean(a, b):
    """E max(p_1, p_2), with as many nodes as make the polynomial 1 - F(x)^2 exact."""
    x, weight = np.polynomial.legendre.leggauss(2 * (a + b))
    return weight @ (1 - betainc(a, b, (x + 1) / 2) ** 2) / 2


class Arms:
    """Means of an arm after n plays, and the probability that one arm is the better one, for all numbers of successes [n + 1]."""

    def __init__(self, a, b, rounds):
        self.a, self.b = a, b
        x, weight = np.polynomial.legendre.leggauss(rounds + a + b)  # exact for densities times distribution functions, which are polynomials
        self.x, self.weight, self.known = (x + 1) / 2, weight / 2, {}

    def parameters(self, n):
        s = np.arange(n + 1.0)
        return self.a + s, self.b + n - s

    def mean(self, n):
        first, second = self.parameters(n)
        return first / (first + second)

    def curves(self, n):
        """Densities times weights, and distribution functions, [n + 1, nodes]."""
        if n not in self.known:
            first, second = (p[:, None] for p in self.parameters(n))
            density = np.exp((first - 1) * np.log(self.x) + (second - 1) * np.log1p(-self.x) - betaln(first, second))
            self.known[n] = density * self.weight, betainc(first, second, self.x)
        return self.known[n]

    def first_is_better(self, n, m):
        """P(p_1 > p_2) after n plays of arm 1 and m of arm 2, [n + 1, m + 1]."""
        return self.curves(n)[0] @ self.curves(m)[1].T

    def share(self, policy, n, m):
        """The probability that a policy that is not optimal plays arm 1, [n + 1, m + 1]; a policy can also be a table of indices, [n][n + 1]."""
        if not isinstance(policy, str):
            return 0.5 + 0.5 * np.sign(policy[n][:, None] - policy[m][None, :])
        if policy == "thompson":
            return self.first_is_better(n, m)
        (a, b), (c, d) = self.parameters(n), self.parameters(m)
        return 0.5 + 0.5 * np.sign(np.outer(a, c + d) - np.outer(a + b, c))  # in whole numbers, which tie exactly


def successes(policy, rounds, a=1, b=1, discount=1):
    """Expected successes of a policy, each multiplied by discount in every round before it. to_go[n][s_1, s_2]: those still to come when arm 1 was played n times."""
    arms = Arms(a, b, rounds)
    to_go = [np.zeros((n + 1, rounds - n + 1)) for n in range(rounds + 1)]
    for t in range(rounds - 1, -1, -1):
        now = []
        for n in range(t + 1):
            p, q = arms.mean(n)[:, None], arms.mean(t - n)[None, :]
            first = p * (1 + discount * to_go[n + 1][1:]) + (1 - p) * discount * to_go[n + 1][:-1]
            second = q * (1 + discount * to_go[n][:, 1:]) + (1 - q) * discount * to_go[n][:, :-1]
            if policy == "optimal":
                now.append(np.maximum(first, second))
            else:
                share = arms.share(policy, n, t - n)
                now.append(share * first + (1 - share) * second)
        to_go = now
    return to_go[0][0, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="*", type=int, default=[60, 200])
    parser.add_argument("--beta", nargs=2, type=int, default=(1, 1), metavar=("A", "B"))
    options = parser.parse_args()
    if min(*options.rounds, *options.beta) < 1:
        parser.error("rounds, A and B must be at least 1")
    print("rounds  policy       successes            regret")
    for rounds in options.rounds:
        for policy in POLICIES:
            earned = successes(policy, rounds, *options.beta)
            print(f"{rounds:6d}  {policy:9s}  {earned:17.12f}  {rounds * best_mean(*options.beta) - earned:14.12f}")


if __name__ == "__main__":
    main()
