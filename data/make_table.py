#!/usr/bin/env python3
"""Write a table of events with the reward of every arm, for `problem.family: table`.

    data/make_table.py digits -o digits.nc                       # scikit-learn's 1 797 digits: which of ten? 1 for the right one
    data/make_table.py breast_cancer -o cancer.nc                # 569 tumours, two classes
    data/make_table.py routing routing.jsonl -o routing.nc       # which of four language models answers a prompt? (data/README.md)

Contexts are standardised principal components (`--components`), computed after TF-IDF for prompts, and a constant 1. `--halves` instead writes
NAME-first.nc and NAME-second.nc, a random half of the events each, and NAME-logs.csv: the first half as past tasks of one arm and forty events
each, for `thompson train --logs`."""

import argparse
import json
import pathlib

import netCDF4
import numpy as np

TASK = 40  # events of a past task


def classes(name):
    import sklearn.datasets  # pylint: disable=import-outside-toplevel
    data = getattr(sklearn.datasets, f"load_{name}")()
    return (data.data - data.data.mean(axis=0)) / np.maximum(data.data.std(axis=0), 1e-9), np.eye(data.target.max() + 1)[data.target]


def routing(path):
    from sklearn.feature_extraction.text import TfidfVectorizer  # pylint: disable=import-outside-toplevel
    events = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    arms = sorted(events[0]["arms"])
    features = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)).fit_transform([event["prompt"] for event in events])
    return features, np.array([[event["arms"][arm]["reward"] for arm in arms] for event in events])


def contexts(features, components):
    """The first principal components at unit variance, and 1."""
    from sklearn.decomposition import TruncatedSVD  # pylint: disable=import-outside-toplevel
    parts = TruncatedSVD(components, algorithm="arpack", random_state=0).fit_transform(features)
    parts = (parts - parts.mean(axis=0)) / parts.std(axis=0)
    return np.column_stack([np.ones(len(parts)), parts / np.sqrt(components)])


def write(path, context, reward):
    with netCDF4.Dataset(path, "w") as data:
        for name, size in (("event", len(context)), ("dim", context.shape[1]), ("arm", reward.shape[1])):
            data.createDimension(name, size)
        data.createVariable("context", "f8", ("event", "dim"))[:] = context
        data.createVariable("reward", "f8", ("event", "arm"))[:] = reward


def write_logs(path, context, reward):
    """Each arm on each block of forty events is a task, whose theta was never observed."""
    with open(path, "w", encoding="utf-8") as file:
        print("task", *(f"x{i + 1}" for i in range(context.shape[1])), "y", sep=",", file=file)
        for event, (x, rewards) in enumerate(zip(context, reward)):
            for arm, y in enumerate(rewards):
                print(f"{event // TASK}-{arm}", *x, y, sep=",", file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["digits", "breast_cancer", "routing"])
    parser.add_argument("input", nargs="?", help="routing.jsonl")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--halves", action="store_true")
    arguments = parser.parse_args()
    if (arguments.table == "routing") != (arguments.input is not None):
        parser.error("routing takes a file, routing.jsonl; the others take none")
    features, reward = routing(arguments.input) if arguments.table == "routing" else classes(arguments.table)
    context = contexts(features, arguments.components)
    if not arguments.halves:
        write(arguments.output, context, reward)
        return
    order = np.random.default_rng(0).permutation(len(context))
    first, second = order[:len(order) // 2], order[len(order) // 2:]
    base = arguments.output.with_suffix("")
    write(f"{base}-first.nc", context[first], reward[first])
    write(f"{base}-second.nc", context[second], reward[second])
    write_logs(f"{base}-logs.csv", context[first], reward[first])


if __name__ == "__main__":
    main()
