"""Posterior studies of linear inverse problems with tilted transport: the error of mode weights above its floor, by condition number
and signal-to-noise ratio; the spread of an Ising model; and the curvature of the start nu_T*."""
import numpy as np

from thompson import Error, averages, design, store


CONDITION, SNR = "problem.condition_number", "problem.snr"
DOMINANT = 0.95         # share of the posterior in one mode; such a history says nothing about mode weights
ERROR = "mode_weight_error"


def excess(dataset):
    """Error minus floor of each history at the last sample size, [setting, policy, run]; NaN where one mode dominates, or where some
    policy has not run."""
    for curve in (ERROR, "largest_mode"):
        store.chosen(dataset, curve)
    error, floor, largest = (averages.at_end(dataset, dataset[curve].values) for curve in (ERROR, ERROR + store.FLOOR, "largest_mode"))
    complete = (dataset["status"].values == store.STATUS_OK).all(axis=1, keepdims=True)
    return np.where(complete & (largest < DOMINANT), error - floor, np.nan)


def cells(dataset):
    """{(condition number, SNR): settings}, in the order of the study."""
    keys = design.swept(dataset)
    if not {CONDITION, SNR} <= set(keys):
        raise Error(f"the study sweeps {', '.join(keys) or 'nothing'}; this needs {CONDITION} and {SNR}")
    pairs = list(zip(keys[CONDITION].tolist(), keys[SNR].tolist()))
    return {pair: [s for s, other in enumerate(pairs) if other == pair] for pair in dict.fromkeys(pairs)}


def spread(dataset):
    """snr^2, the spread of the Q of an Ising model, for each setting, and their ascending order: (spread[settings], order)."""
    swept = design.swept(dataset)
    if list(swept) != [SNR] or len(swept[SNR]) < 2:
        raise Error(f"this needs a study that sweeps {SNR} alone; this one sweeps {', '.join(swept) or 'nothing'}")
    if design.config(dataset, "problem.theta") != "ising":
        raise Error("this needs a study with problem.theta: ising")
    arms, dimension, kappa = (float(design.config(dataset, f"problem.{key}") or "nan")
                              for key in ("arms", "dimension", "condition_number"))
    if not (arms < dimension and kappa == 1):
        raise Error("the spread of Q is snr^2 only with problem.condition_number: 1 and problem.arms below "
                    "problem.dimension")
    order = np.argsort(swept[SNR], kind="stable")
    return swept[SNR].astype(float)[order] ** 2, order


def curvature(dataset, curve="log_concavity"):
    """The smallest eigenvalue of the Hessian of -log nu_T* in each run of each policy, [setting, runs]; infinite where nu_T* is a point,
    NaN where it is unknown."""
    if curve not in dataset:
        raise Error(f"the study has not measured {curve}")
    return averages.at_end(dataset, dataset[curve].values).reshape(dataset.sizes["setting"], -1)
