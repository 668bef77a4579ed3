"""Means over the runs of a study with their standard errors, over runs or over learned priors, and how many runs are complete."""
import numpy as np

from . import design, store

LEARNED = 5  # learned priors needed to trust a standard error over them; with fewer it says next to nothing


def replicates(dataset):
    """How many times the priors were learned."""
    return len(np.unique(dataset["replicate"].values)) if "replicate" in dataset.variables else 1


def over_replicates(dataset):
    """Whether tests are over learned priors, which includes the randomness of learning; otherwise they are over runs."""
    return replicates(dataset) >= LEARNED


def moments(dataset, curve):
    """Mean of a curve over completed runs and its standard error, [setting, policy, point] each. The error is over runs or over the
    means of learned priors, whichever is larger: runs that share a prior are not independent of it, and the spread of a few priors
    may be small by chance."""
    error = dataset[f"{curve}_se"].values
    if f"{curve}_se_replicate" in dataset:
        error = np.fmax(error, dataset[f"{curve}_se_replicate"].values)
    return dataset[f"{curve}_mean"].values, error


def floor(dataset, curve):
    """What exact draws reach, or a lower bound on the mean regret of every policy: mean and standard error over runs (nothing is learned),
    [setting, point] each, or None if a curve has no floor. The floor of draws is the same for all policies except for which runs are complete,
    so it is that of the policy with the most of them."""
    if f"{curve}{store.FLOOR}_mean" not in dataset:
        return None
    most = counts(dataset)[0].argmax(axis=1)
    of_world = "policy" not in dataset[f"{curve}{store.FLOOR}_mean"].dims
    return tuple(values if of_world else values[np.arange(len(most)), most]
                 for values in (dataset[f"{curve}{store.FLOOR}{ending}"].values for ending in ("_mean", "_se")))


def tail(dataset, curve):
    """The 95th percentile over runs [setting, policy, point], or None if it is not stored."""
    name = f"{curve}_quantile"
    return dataset[name].sel(quantile=0.95, method="nearest").values if name in dataset else None


def at(values, where):
    """values [setting, ..., point] at one point of each setting, `where` [setting]: [setting, ...]."""
    return values[np.arange(len(where)), ..., where]


def at_end(dataset, values):
    """The same at the last point of each setting."""
    return at(values, last_rounds(dataset))


def of_completed(dataset, name):
    """A variable [setting, policy, run, ...], NaN for runs that are not completed."""
    values, done = dataset[name].values, dataset["status"].values == store.STATUS_OK
    return np.where(done.reshape(done.shape + (1,) * (values.ndim - done.ndim)), values, np.nan)


def mean_and_error(values):
    """Mean over the last dimension, its standard error, and the number of values, ignoring those that are not finite; NaN if too few are left."""
    n = np.isfinite(values).sum(axis=-1)
    mean = np.nansum(values, axis=-1) / np.where(n > 0, n, np.nan)
    square = np.nansum((values - mean[..., None]) ** 2, axis=-1)
    return mean, np.sqrt(square / np.where(n > 1, n - 1, np.nan) / np.where(n > 0, n, np.nan)), n


def of_replicates(values, replicate):
    """The means of `values` [run] under each learned prior, ignoring values that are not finite."""
    known = np.isfinite(values)
    return np.array([values[known & (replicate == group)].mean() for group in np.unique(replicate[known])])


def larger_error(values, replicate, least=2):
    """The standard error of the mean of `values` [run]: over runs or, if there are at least `least` learned priors, over their means,
    whichever is larger, as in moments."""
    groups = of_replicates(values, replicate)
    return np.fmax(mean_and_error(values)[1], mean_and_error(groups)[1] if len(groups) >= least else np.nan)


def counts(dataset):
    """Completed and failed runs of each setting and policy, and the length of the dimension: (done, failed, most)."""
    status = dataset["status"].values
    return (status == store.STATUS_OK).sum(axis=-1), (status == store.STATUS_FAILED).sum(axis=-1), status.shape[-1]


def asked(dataset):
    """How many runs each setting should have, [setting]: all, or in an adaptive study, up to the last run that any of its policies has."""
    there = (dataset["status"].values != store.STATUS_NOT_RUN).any(axis=1)
    if not design.adaptive(dataset):
        return np.full(len(there), there.shape[-1])
    return np.where(there.any(axis=1), there.shape[-1] - there[:, ::-1].argmax(axis=1), there.shape[-1])


def run_words(dataset):
    """How many runs are complete, by policy and setting: "128 runs", "64 to 512 runs" for an adaptive study, "0 to 90 of 128 runs are in"."""
    done, most = counts(dataset)[0], asked(dataset)

    def span(values):
        return f"{values.min()} to {values.max()}" if values.min() < values.max() else f"{values.max()}"

    return f"{span(most)} runs" if (done == most[:, None]).all() else f"{span(done)} of {span(most)} runs are in"


def last_rounds(dataset):
    """Index of the last point of each setting, [setting]; settings may have different numbers of rounds, with NaN beyond them."""
    there = np.isfinite(dataset[f"{store.curves(dataset)[0]}_mean"].values).any(axis=1)
    return np.where(there.any(axis=1), there.shape[1] - 1 - there[:, ::-1].argmax(axis=1), there.shape[1] - 1)


def half_rounds(dataset):
    """Index of the first kept round after half of the rounds of each setting, [setting]; in other studies, of the points of the axis."""
    rounds = dataset[store.axis(dataset)].values
    return np.searchsorted(rounds, rounds[last_rounds(dataset)] / 2)


def shown(dataset):
    """Index of the points that a table shows, for each setting: in a posterior study all except those that only other settings have."""
    if store.axis(dataset) == "sample_size":
        there = np.isfinite(dataset[f"{store.curves(dataset)[0]}_mean"].values).any(axis=1)
        return [np.flatnonzero((own | ~there.any(axis=0))[:last + 1]) for own, last in zip(there, last_rounds(dataset))]
    return [[last] for last in last_rounds(dataset)]
