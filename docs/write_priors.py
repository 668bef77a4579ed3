#!/usr/bin/env python3
"""Write the table of docs/results/priors.md that says when a diffusion prior pays by distance, from parts of the study jobs/questions/prior_pays.yaml.

    docs/write_priors.py RESULTS...      the folders of all parts, as the whole table is written; a policy that several have is taken from the last
"""
import sys

import pages

sys.path.insert(0, str(pages.ROOT / "analysis" / "tools"))
import needs  # noqa: E402, F401  (lets the next ones be found)
import numpy as np  # noqa: E402
from thompson import averages, design, store, wording  # noqa: E402

PAGE = pages.ROOT / "docs" / "results" / "priors.md"
SHAPES = {"gm_sphere": "sphere", "roll": "surface", "spiral": "curve", "student": "heavy tails"}
POLICIES = {"mixts": "`mixts` auto", "diffts": "`diffts`", "twisted": "`twisted` 16", "localised": "`localised`, learned denoiser",
            "mixts exact prior": "`mixts`, known prior"}
KEYS = ("problem.dimension", "problem.theta", "prior.train_samples")
METRIC = "sliced_wasserstein"


def cells(folder):
    """{(dimension, shape, training samples): {policy: cell}} of one part: the distance over its floor at each number of observations, and in brackets the
    largest standard error of these."""
    dataset = store.results(folder, "posterior")
    (means, errors), (floor, _) = averages.moments(dataset, METRIC), averages.floor(dataset, METRIC)
    of = {}
    for s in range(len(means)):
        key = tuple(wording.plain(design.swept(dataset)[key][s]) if key in design.swept(dataset) else design.config(dataset, key) for key in KEYS)
        of[key] = {policy: ", ".join(f"{ratio:.1f}" for ratio in mean / floor[s]) + f" ({np.nanmax(error / floor[s]):.1f})"
                   for policy, mean, error in zip(design.labels(dataset), means[s], errors[s])}
    return of


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = {}
    for folder in sys.argv[1:]:
        for key, of_policies in cells(folder).items():
            found.setdefault(key, {}).update(of_policies)
    order = sorted(found, key=lambda key: (int(key[0]), list(SHAPES).index(key[1]), int(key[2])))
    rows = [[f"{SHAPES[shape]}, d = {dimension}, {int(samples):,}".replace(",000", " 000"), *(found[dimension, shape, samples].get(policy, "") for policy in POLICIES)]
            for dimension, shape, samples in order]
    PAGE.write_text(pages.replaced(PAGE.read_text(encoding="utf-8"), "distance", pages.table(["", *POLICIES.values()], rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
