#!/usr/bin/env python3
"""How sure an agent is of the best arm: the entropy H(A*) under its posterior draws before each round, and its regret compared with the bound
of Russo and Van Roy (2016, An information-theoretic analysis of Thompson sampling): sqrt(2 s^2 d H(A*) n) after n rounds of exact
Thompson sampling with linear rewards, with H(A*) before the first round and s the standard deviation of a reward under the prior.

Two panels for each setting of a bandit study with metrics: [optimal_arm_entropy] (jobs/questions/entropy.yaml). Policies without a single
posterior of theta* have no entropy curve and are left out. The bound uses the H(A*) of the policy that has the highest.

Reads DIR/results.nc; writes DIR/figure_entropy.png and .pdf.
"""
import needs
import dataclasses

import numpy as np

from thompson import Error, averages, design, store
import drawing
import panel
import script

CURVE = "optimal_arm_entropy"
POINTS = 16         # rounds that are drawn, evenly spaced in their logarithm
BOUND = "bound of Russo and Van Roy"


def bounded(lines, bound):
    """The panel with the bound as one more line, without error bars."""
    return dataclasses.replace(lines, means=np.vstack([lines.means, bound]), errors=np.vstack([lines.errors, 0 * bound]),
                               names={**lines.names, BOUND: BOUND}, done=np.append(lines.done, lines.wanted))


def panels(dataset, spread, dimension):
    """For each setting a panel of the entropy, then one of the regret with the bound."""
    if CURVE not in store.curves(dataset):
        raise Error(f"no {CURVE}: the study has no metrics: [{CURVE}]")
    rounds = dataset["round"].values
    shown = np.unique(np.searchsorted(rounds, np.geomspace(rounds[0], rounds[-1], POINTS).round()))
    entropy, regret = averages.moments(dataset, CURVE), averages.moments(dataset, "regret")
    done, wanted, names = averages.counts(dataset)[0], averages.asked(dataset), design.policy_names(dataset)
    made = []
    for s, title in enumerate(design.titles(dataset)):
        known = np.isfinite(entropy[0][s]).any(axis=-1)
        kept = {label: name for (label, name), one in zip(names.items(), known) if one}
        means, errors = (values[s][known][:, shown] for values in entropy)
        made.append(panel.Panel(title, "round", "entropy of the best arm, nats", rounds[shown], means, errors, kept, done[s][known],
                                wanted[s], log=True))
        means, errors = (values[s][known][:, shown] for values in regret)
        lines = panel.Panel(title, "round", "cumulative regret", rounds[shown], means, errors, kept, done[s][known], wanted[s], log=True, cut=False)
        made.append(lines if spread is None else bounded(lines, spread * np.sqrt(2 * dimension * entropy[0][s, known, 0].max() * lines.x)))
    return made


def main():
    parser = drawing.study_options(__doc__, "a bandit study")
    parser.add_argument("--spread", type=float, metavar="S",
                        help="standard deviation of a reward under the prior, including its noise (1.73 for jobs/questions/entropy.yaml); draws the bound")
    parser.add_argument("--dimension", type=int, default=2, metavar="D", help="dimension of theta* (default: %(default)s)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments)
    drawing.save(panel.page(panels(dataset, arguments.spread, arguments.dimension), [dataset]), drawing.outputs(arguments, "figure_entropy"))


if __name__ == "__main__":
    script.run(main)
