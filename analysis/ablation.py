#!/usr/bin/env python3
"""Any metric of a study against any key that it sweeps.

One line for each policy, one panel for each combination of the other swept keys; values of a key that are words stand side by
side in the order of the study. Metrics: the curves of the study (regret,
emd, sd_ratio, ...) at one point (the last round or sample size, or --at), and seconds (CPU for one run without training),
seconds_train (CPU to learn the prior once), fallbacks (numerical fallbacks for one run). Error bars are one standard error, over
runs or over learned priors, whichever is larger (of what is counted once a run, over learned priors). Grey band: the floor, what exact draws reach.

Reads DIR/results.nc; writes DIR/ablation_METRIC.png and .pdf.
"""
import argparse

import numpy as np

import load
import panel
import style

# Metrics of whole runs, beside the curves: label of the axis.
WHOLE = {"seconds": "CPU seconds per run", "seconds_train": "CPU seconds to learn the prior",
         "fallbacks": "numerical fallbacks per run"}
NAMES = {"emd": "earth mover's distance", "distance": r"mean distance to $\theta^*$", "sliced_wasserstein": "sliced Wasserstein distance",
         "max_sliced_wasserstein": "max-sliced Wasserstein distance", "sd_ratio": "SD of draws / SD of exact draws",
         "mode_weight_error": "mode weight error (total variation)", "largest_mode": "share of the fullest mode", "mean_error": "error of the mean",
         "covariance_error": "relative error of the covariance", "ess": "effective sample size"}
IDEAL = {"sd_ratio": 1.0}
# Swept keys in words.
KEYS = {"prior.train_samples": "training samples", "prior.stages": "diffusion stages",
        "problem.condition_number": "condition number of the evidence", "problem.noise": "reward noise",
        "problem.dimension": "dimension", "problem.arms": "arms"}


def ranked_keys(dataset):
    """{key: values [setting]} of the swept keys, those with numbers first, then those with most values."""
    return dict(sorted(load.swept(dataset).items(), key=lambda item: (not is_number(item[1]), -len(np.unique(item[1])))))


def is_number(values):
    return np.issubdtype(values.dtype, np.number)


def places(values):
    """Where the values of a key [setting] stand, and their words where they are no numbers: (x [setting], words or None)."""
    if is_number(values):
        return values, None
    words = list(dict.fromkeys(map(load.plain, values)))
    return np.array([words.index(load.plain(value)) for value in values], float), words


def points(dataset, at):
    """Index of the point to take in each setting: that of value `at` of the axis, or the last."""
    if at is None:
        return load.last_rounds(dataset)
    axis = load.axis(dataset)
    found = np.flatnonzero(dataset[axis].values == at)
    if len(found) == 0:
        values = [load.plain(value) for value in dataset[axis].values]
        listed = ", ".join(values) if len(values) <= 12 else f"{values[0]} to {values[-1]}"
        raise load.BadInput(f"the study has no {axis} {load.plain(at)}; it has {listed}")
    return np.full(dataset.sizes["setting"], found[0])


def over_runs(dataset, metric):
    """Mean and standard error, [setting, policy], of a number for each completed run; runs of a block share their seconds, so
    the error is over replicates, or unknown where these are few."""
    ok = dataset["status"].values == load.STATUS_OK
    values = np.where(ok, dataset[metric].values, np.nan)
    groups = dataset["replicate"].values if "replicate" in dataset.variables else np.zeros(values.shape[-1], int)
    shares = np.stack([mean(values[..., groups == group]) for group in np.unique(groups)], axis=-1)
    n = np.isfinite(shares).sum(axis=-1)
    spread = np.sqrt(mean((shares - mean(shares)[..., None]) ** 2) / np.where(n > 1, n - 1, np.nan))
    return mean(values), spread if load.over_replicates(dataset) else np.full(spread.shape, np.nan)


def mean(values):
    """Over the last dimension, without NaN; NaN where nothing is left."""
    n = np.isfinite(values).sum(axis=-1)
    return np.nansum(values, axis=-1) / np.where(n > 0, n, np.nan)


def measured(dataset, metric, at):
    """Mean, standard error [setting, policy] and floor (mean, error; [setting] each, or None) of a metric."""
    if metric == "seconds_train":
        once = dataset[metric].values / load.replicates(dataset)
        return once, np.full(once.shape, np.nan), None
    if metric in WHOLE:
        return *over_runs(dataset, metric), None
    where = points(dataset, at)
    each = np.arange(len(where))
    means, errors = (values[each, :, where] for values in load.moments(dataset, metric))
    floor = load.floor(dataset, metric)
    return means, errors, floor and tuple(values[each, where] for values in floor)


def label(dataset, metric, at):
    """The axis of the values: what, and at which point."""
    if metric in WHOLE:
        return WHOLE[metric]
    where = dataset[load.axis(dataset)].values[points(dataset, at)]
    if len(set(where)) > 1:
        return f"{NAMES.get(metric, metric)} at the end"
    form = {"round": "{} after {} rounds", "sample_size": "{}, n = {}", "step": "{} after {} steps"}[load.axis(dataset)]
    return form.format(NAMES.get(metric, metric), load.plain(where[0]))


def panels(dataset, metric=None, against=None, at=None, select=lambda others: True):
    """The panels of one study. `select` keeps combinations of the other swept keys, given as {key: value}."""
    metric = load.chosen(dataset, metric, WHOLE)
    keys = ranked_keys(dataset)
    if not keys:
        raise load.BadInput("the study sweeps no key, so there is nothing to draw against")
    if against is not None and against not in keys:
        raise load.BadInput(f"the study does not sweep {against}; it sweeps {', '.join(keys)}")
    against = against or next(iter(keys))
    x, ticks = places(keys[against])
    means, errors, floor = measured(dataset, metric, at)
    done, wanted = load.counts(dataset)[0], load.asked(dataset)
    missing = wanted[:, None] - done
    others = [{key: load.plain(values[s]) for key, values in load.swept(dataset).items() if key != against}
              for s in range(len(means))]
    made = []
    for combination in dict.fromkeys(tuple(other.items()) for other in others if select(other)):
        here = np.array([s for s, other in enumerate(others) if tuple(other.items()) == combination])
        here = here[np.argsort(x[here], kind="stable")]
        made.append(panel.Panel(", ".join(f"{key.split('.')[-1]} = {value}" for key, value in combination),
                                KEYS.get(against, against),
                                label(dataset, metric, at), x[here], means[here].T, errors[here].T,
                                load.policy_names(dataset), wanted[here].max() - missing[here].max(axis=0), wanted[here].max(),
                                floor and tuple(values[here] for values in floor), IDEAL.get(metric),
                                cut=metric not in WHOLE, ticks=ticks))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="results folder of a study with a sweep")
    parser.add_argument("--metric", metavar="NAME", help="what to draw (default: the first that was measured)")
    parser.add_argument("--against", metavar="KEY", help="swept key to draw against (default: that with most values)")
    parser.add_argument("--at", metavar="VALUE", type=float, help="round or sample size (default: the last)")
    parser.add_argument("-o", "--output", metavar="FILE", action="append",
                        help="write there instead, the format by the ending (may be repeated)")
    arguments = parser.parse_args()
    dataset = load.results(arguments.folder, kind=None)
    metric = load.chosen(dataset, arguments.metric, WHOLE)
    paths = style.outputs(parser, arguments.output, arguments.folder, f"ablation_{metric}")
    style.save(panel.page(panels(dataset, metric, arguments.against, arguments.at), [dataset]), paths)


if __name__ == "__main__":
    load.script(main)
