"""How soon a method reaches a known target, in steps and in CPU seconds, and how that grows with a swept number."""
import numpy as np

from thompson import averages, design, store


STEPS = "steps_to_target"
BURN_IN = 1000          # steps of a Markov chain before its average (src/study/convergence.c)
CHAINS = {"lmc"}


def maximum(dataset):
    """The step at which a run that has not reached the target ends."""
    limit = design.config(dataset, "max_steps")
    return float(limit) if limit else float(dataset["step"].values[-1])


def steps(dataset):
    """For the completed runs: mean number of steps and its standard error, counting all steps of runs that did not arrive, and the
    number of such runs: [setting, policy] each."""
    ok = dataset["status"].values == store.STATUS_OK
    reached = dataset[STEPS].values[..., -1]
    mean, error, _ = averages.mean_and_error(np.where(ok, np.where(np.isfinite(reached), reached, maximum(dataset)), np.nan))
    return mean, error, (ok & ~np.isfinite(reached)).sum(axis=-1)


def burn_in(dataset):
    """Steps that a policy takes before its first counted one, [policy]."""
    return np.array([BURN_IN if name in CHAINS else 0 for name in design.policy_names(dataset).values()])


def step_cost(dataset):
    """CPU seconds of one step, [setting, policy]."""
    return averages.mean_and_error(averages.of_completed(dataset, "seconds"))[0] / (maximum(dataset) + burn_in(dataset))


def slope(x, y):
    """The slope of log y against log x by least squares, and its standard error from the residuals; NaN for fewer than 2 (3) points."""
    if len(x) < 2:
        return np.nan, np.nan
    u, v = np.log(x) - np.log(x).mean(), np.log(y)
    value = (u * v).sum() / (u ** 2).sum()
    rest = v - v.mean() - value * u
    return value, np.sqrt((rest ** 2).sum() / (len(x) - 2) / (u ** 2).sum()) if len(x) > 2 else np.nan
