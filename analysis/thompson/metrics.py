"""A metric in words, and its number in each setting: a curve at one point, or a number per run."""
import numpy as np

from . import averages, store, wording
from ._library import Error

# Labels of the axis where the words in the file are too long.
WHOLE = {"seconds": "CPU seconds per run", "seconds_train": "CPU seconds to learn the prior",
         "fallbacks": "numerical fallbacks per run"}
NAMES = {"regret": "cumulative regret", "emd": "earth mover's distance", "distance": "mean distance to theta*",
         "sliced_wasserstein": "sliced Wasserstein distance",
         "max_sliced_wasserstein": "max-sliced Wasserstein distance", "sd_ratio": "SD of draws / SD of exact draws",
         "mode_weight_error": "mode weight error (total variation)", "largest_mode": "share of the fullest mode", "mean_error": "error of the mean",
         "covariance_error": "relative error of the covariance", "ess": "effective sample size",
         "marginal_mean_error": "largest error of a mean / SD of exact draws", "marginal_sd_error": "largest relative error of an SD"}
IDEAL = {"sd_ratio": 1.0}


def whole(dataset):
    """Metrics of whole runs, in addition to the curves."""
    return [*store.columns(dataset), "seconds_train"]


def points(dataset, at):
    """Index of the point to use in each setting: the one at value `at` of the axis, or the last."""
    if at is None:
        return averages.last_rounds(dataset)
    axis = store.axis(dataset)
    found = np.flatnonzero(dataset[axis].values == at)
    if len(found) == 0:
        values = [wording.plain(value) for value in dataset[axis].values]
        listed = ", ".join(values) if len(values) <= 12 else f"{values[0]} to {values[-1]}"
        raise Error(f"the study has no {axis} {wording.plain(at)}; it has {listed}")
    return np.full(dataset.sizes["setting"], found[0])


def over_runs(dataset, metric):
    """Mean and standard error, [setting, policy], of a number for each completed run; runs of a block share their seconds, so
    the error is over replicates, or unknown if there are few of these."""
    values = averages.of_completed(dataset, metric)
    groups = dataset["replicate"].values if "replicate" in dataset.variables else np.zeros(values.shape[-1], int)
    shares = np.stack([averages.mean_and_error(values[..., groups == group])[0] for group in np.unique(groups)], axis=-1)
    spread = averages.mean_and_error(shares)[1]
    return averages.mean_and_error(values)[0], spread if averages.over_replicates(dataset) else np.full(spread.shape, np.nan)


def measured(dataset, metric, at):
    """Mean, standard error [setting, policy] and floor (mean, error; [setting] each, or None) of a metric."""
    if metric == "seconds_train":
        once = dataset[metric].values / averages.replicates(dataset)
        return once, np.full(once.shape, np.nan), None
    if metric in whole(dataset):
        return *over_runs(dataset, metric), None
    where, floor = points(dataset, at), averages.floor(dataset, metric)
    means, errors = (averages.at(values, where) for values in averages.moments(dataset, metric))
    return means, errors, floor and tuple(averages.at(values, where) for values in floor)


def words(dataset, metric):
    """A metric in plain words."""
    return NAMES.get(metric) or dataset[metric].attrs.get("long_name", metric)


def label(dataset, metric, at=None):
    """The label of the axis of values: what is shown, and at which point."""
    if metric in whole(dataset):
        return WHOLE.get(metric) or words(dataset, metric)
    where = dataset[store.axis(dataset)].values[points(dataset, at)]
    if len(set(where)) > 1:
        return f"{words(dataset, metric)} at the end"
    unit = {"round": "rounds", "sample_size": "observations", "step": "steps", "bandit_task": "bandits"}.get(store.axis(dataset), store.axis(dataset))
    return f"{words(dataset, metric)} after {wording.plain(where[0])} {unit}"
