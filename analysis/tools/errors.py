#!/usr/bin/env python3
"""The regret of each sampler in excess of that of exact draws, split into the error of learning and the error of approximation.

For a bandit study that has samplers of a learned prior, the same samplers with `prior: exact`, a sampler that is exact for a learned
prior, and the policy `exact` (jobs/questions/errors.yaml). For each setting and sampler, in regret at the last round, run by run:

  whole          learned prior, this sampler, minus exact
  learning       learned prior, the right sampler, minus exact
  approximation  exact prior, this sampler, minus exact
  rest           whole minus both: the interaction of the two errors

The right sampler for a diffusion prior is `twisted` (particles make it asymptotically exact); for a sampler in closed form it is that sampler
itself. SE: over runs, or over learned priors if that is larger.

Reads DIR/results.nc; writes nothing but the table.
"""
import needs
import argparse

import numpy as np
import pandas as pd

from thompson import Error, averages, design, store
import markup
import script

OF_A_CHAIN, RIGHT = ("diffts", "joint", "dps", "twisted"), "twisted"
PARTS = ["whole", "learning", "approximation", "rest"]


def named(dataset):
    """{(registered name, whether its prior is the exact one): the policy}."""
    return {(chosen["name"], chosen["name"] == "exact" or chosen.get("prior") == "exact"): p
            for p, chosen in enumerate(design.options(dataset).values())}


def split(regret, policies, name):
    """{part: difference by run} for one sampler, those parts that the study allows; regret [policy, run]."""
    exact = regret[policies["exact", True]]
    right = RIGHT if name in OF_A_CHAIN else name
    parts = {"whole": (name, False), "learning": (right, False), "approximation": (name, True)}
    made = {part: regret[policies[key]] - exact for part, key in parts.items() if key in policies}
    if len(made) == len(parts):
        made["rest"] = made["whole"] - made["learning"] - made["approximation"]
    return made


def error(values, replicate):
    """Standard error of the mean over runs, or over the means of replicates if that is larger."""
    over_runs = averages.mean_and_error(values)[1]
    means = np.array([values[replicate == r].mean() for r in np.unique(replicate)])
    return float(np.fmax(over_runs, averages.mean_and_error(means)[1]))


def frame(dataset):
    """One row for each setting and sampler, with unrounded numbers."""
    policies, rows = named(dataset), []
    if ("exact", True) not in policies:
        raise Error("the study has no policy exact to compare with")
    replicate = dataset["replicate"].values if "replicate" in dataset else np.zeros(dataset.sizes["run"])
    complete = (dataset["status"].values == store.STATUS_OK).all(axis=1)
    for s, title in enumerate(design.titles(dataset)):
        regret = dataset["regret"].values[s, :, :, averages.last_rounds(dataset)[s]][:, complete[s]]
        for name in dict.fromkeys(name for name, _ in policies if name != "exact"):
            row = {"setting": title, "sampler": name}
            for part, values in split(regret, policies, name).items():
                row[part], row[f"{part} SE"] = values.mean(), error(values, replicate[complete[s]])
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=["setting", "sampler", *(name for part in PARTS for name in (part, f"{part} SE"))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a bandit study")
    parser.add_argument("-f", "--format", choices=("text", "csv"), default="text")
    arguments = parser.parse_args()
    table = frame(store.results(arguments.folder))
    text = table.rename(columns={f"{part} SE": "SE" for part in PARTS}).to_string(index=False, na_rep="", float_format="{:.2f}".format)
    print(markup.comma_separated(table) if arguments.format == "csv" else text + "\n", end="")


if __name__ == "__main__":
    script.run(main)
