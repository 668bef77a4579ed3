#!/usr/bin/env python3
"""Prints jobs/papers/vits_grid.yaml: a policy for each point of the grid search of the VITS paper (Appendix E, Tables 1 to 3)."""
import itertools

ETA = [10, 100, 500, 1000]
LAMBDA = [0.1, 1, 10]
STEP_SIZE = [0.001, 0.01, 0.1]      # for all methods h / (eta t), see step_rule
LMC_STEPS = [10, 50]
VITS_STEPS, SAMPLES = 10, 20

HEAD = """\
# Purpose: the grid search of the VITS paper (Appendix E, Tables 1 to 3) in the linear bandits of its Figure 1, whole, so that
#          each method can be tuned on one half of the runs and reported on the other. Made by jobs/papers/make_vits_grid.py.
# Cost:    about 40 min of CPU time
# Output:  results/vits_grid/results.nc; then analysis/tools/selection.py --by steps results/vits_grid and analysis/tools/table.py for the
#          whole grid
name: vits_grid
title: Grid search for linear, Langevin and variational Thompson sampling in linear bandits (VITS paper, Appendix E)
study: bandit
seed: 2025                                                    # not the runs of vits_figure1
runs: 128
block: 16
problem:
  family: pool
  reward: linear
  dimension: 20
  arms: 50
  rounds: 2000
  noise: 1.0
likelihood: gaussian
policies:
"""
TAIL = """\
sweep:
  problem.zeta: [0.1, 1]
"""


def policy(name, label, **options):
    """One line of the list; the label gives its place in the grid."""
    point = " ".join(f"{short}={options[key]}" for short, key in (("eta", "eta"), ("lambda", "lambda"), ("h", "step_size"))
                     if key in options)
    listed = ", ".join(f"{key}: {value}" for key, value in options.items())
    return f"  - {{name: {name}, label: {label} {point}, {listed}}}\n"


def section(words, lines):
    return f"  # {words}\n{''.join(lines)}"


def stepping(name, label, steps, **more):
    """All points of a method that takes steps."""
    return [policy(name, label, eta=eta, **{"lambda": weight}, steps=steps, step_rule="eta_t", step_size=h, **more)
            for eta, weight, h in itertools.product(ETA, LAMBDA, STEP_SIZE)]


def study():
    lints = [policy("lints", "lints", eta=eta, **{"lambda": weight}) for eta, weight in itertools.product(ETA, LAMBDA)]
    return "".join([
        HEAD,
        section("Table 1", lints),
        *(section(f"Table 2, {steps} steps", stepping("lmc", f"lmc {steps}", steps)) for steps in LMC_STEPS),
        section("Table 3, Hessian", stepping("vits2", "vits2", VITS_STEPS)),
        section("Table 3, Hessian-free", stepping("vits2_hf", "vits2_hf", VITS_STEPS, samples=SAMPLES)),
        TAIL])


if __name__ == "__main__":
    print(study(), end="")
