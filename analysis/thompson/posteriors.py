"""Posteriors: a prior, a sampler, a likelihood and the observations so far; agents for a loop of your own."""
from __future__ import annotations

import ctypes
import datetime
import os
import typing

import numpy as np
from numpy.typing import ArrayLike

from . import _library as library
from .beliefs import Belief
from .likelihoods import Likelihood
from .priors import Prior

if typing.TYPE_CHECKING:
    import xarray as xr


class Posterior(Belief):
    """p(theta | observations), as a sampler represents it.

    Parameters
    ----------
    prior : Prior or path
        What is believed before the first observation.
    sampler : str, optional
        A name from `thompson list samplers`; by default the one for the prior's family: mixts for a Gaussian or a mixture, diffts for a diffusion
        model, localised for a denoiser. `auto`: the one that `thompson train --family auto` chose.
    likelihood : str or Likelihood
        gaussian, logistic (clicks), poisson (counts): `thompson list likelihoods`; or one of your own, `Likelihood.from_functions`.
    noise : float, optional
        Standard deviation of Gaussian rewards; by default the one that the prior learned from logs, otherwise 1. Refused with other rewards.
    rule : str
        What `choose` does: thompson, bayes_ucb, greedy. bayes_ucb needs `horizon`, the total number of choices since the last `forget`, or a
        constant `quantile`.
    seed : int, optional
        Makes the random numbers repeatable; the repr shows it. Without a seed each posterior draws its own numbers.
    **options
        Options of the sampler and the rule: `thompson list NAME`.

    Notes
    -----
    Draws depend only on the arguments, the observations and how many calls drew before; the first draw(m) equals `thompson sample -n m` with
    that seed. A copy, a pickle and an opened file continue with the same numbers; for independent ones give each a seed. Threads take turns.
    """

    __slots__ = ("_arm",)
    _kind = "posterior"

    def __init__(self, prior: Prior | str | os.PathLike, sampler: str | None = None, likelihood: str | Likelihood = "gaussian", noise: float | None = None,
                 rule: str = "thompson", seed: int | None = None, **options) -> None:
        given = isinstance(likelihood, Likelihood)
        self._make(library.posterior_from_likelihood if given else library.posterior_new, prior, sampler, likelihood, noise, rule, seed, options)

    def _hold(self, handle):
        self._arm = ctypes.c_int()
        super()._hold(handle)

    def __copy__(self):
        handle = ctypes.c_void_p()
        with self._lock:
            library.posterior_copy(self._handle, ctypes.byref(handle))
            return self._copy_onto(handle)

    noise = property(lambda self: library.posterior_noise(self._handle), doc="The standard deviation that is used for Gaussian rewards.")

    def observe(self, x: ArrayLike, y: ArrayLike) -> None:
        """Add one observation, x[d] and its reward y, or n of them.

        Parameters
        ----------
        x : array_like, shape (d,) or (n, d)
            Features of the arms that were played.
        y : array_like, a number or shape (n,)
            Their rewards.
        """
        x, y = library.numbers("x", x), library.numbers("y", y)
        if x.ndim == 1 and y.ndim == 0 or x.shape[:1] == (1,) and y.ndim == 0:
            y = y.reshape(1)
        if x.ndim == 1 and y.shape == (1,):
            x = x.reshape(1, -1)
        if y.ndim != 1 or x.shape != (y.size, self._d):
            raise ValueError(f"x has shape {x.shape} and y {y.shape}: ({y.size}, {self._d}) and ({y.size},) are needed")
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        with self._lock:
            library.observe(self._handle, y.size, x.ctypes.data, y.ctypes.data)

    def forget(self) -> None:
        """Drop the observations. The random numbers continue, so what follows is independent of what came before."""
        with self._lock:
            library.forget(self._handle)

    def age(self, rounds: int = 1) -> None:
        """Make what was learned so far count `discount` ** `rounds` times as much (an option, 1 by default), so that the posterior moves towards the
        prior. For Gaussian rewards and for memory="filtered", with samplers that read evidence."""
        with self._lock:
            library.age(self._handle, library.integer("rounds", rounds, 0, library.MOST_INT))

    def draw(self, m: int = 1) -> np.ndarray:
        """m draws from the posterior, shape (m, d); from 100 on they are made together, as `thompson sample` makes them."""
        theta = np.empty((library.count("draws", m), self._d))
        with self._lock:
            library.draw(self._handle, len(theta), theta.ctypes.data)
        return theta

    def choose(self, arms: ArrayLike, propensity: bool = False) -> int | tuple[int, float]:
        """The arm to play, by the rule: with `thompson` the best arm for one draw.

        Parameters
        ----------
        arms : array_like, shape (k, d)
            Features of the arms.
        propensity : bool
            Pick the arm by `probabilities(arms)`, and also return the probability with which it was chosen.

        Returns
        -------
        int, or (int, float) with `propensity`
            The row of the arm, from 0; its probability.
        """
        arms = library.doubles(arms, None, self._d)
        with self._lock:
            if not library.flag("propensity", propensity):
                library.choose(self._handle, len(arms), arms.ctypes.data, self._arm)
                return self._arm.value
            p = ctypes.c_double()
            library.choose_propensity(self._handle, len(arms), arms.ctypes.data, self._arm, p)
            return self._arm.value, p.value

    def probabilities(self, arms: ArrayLike) -> np.ndarray:
        """The probabilities, shape (k,), with which the next `choose(arms, propensity=True)` picks one of arms[k, d].

        With rule `thompson` they are the shares of `propensity_draws` (1000) draws in which each arm is the best, in closed form for two arms under
        one Gaussian; other rules are certain of their arm. The option `floor` is the least probability of any arm. Calling this changes nothing:
        called again, it gives the same probabilities."""
        arms = library.doubles(arms, None, self._d)
        p = np.empty(len(arms))
        with self._lock:
            library.probabilities(self._handle, len(arms), arms.ctypes.data, p.ctypes.data)
        return p

    def score(self, arms: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """What is believed of the mean reward of each of arms[k, d], to explain a choice: mean[k], and the standard deviation sd[k] of the belief.

        They come from `propensity_draws` (1000) draws, so that their own error is about 3% of sd. Calling this changes nothing."""
        arms = library.doubles(arms, None, self._d)
        mean, sd = np.empty(len(arms)), np.empty(len(arms))
        with self._lock:
            library.score(self._handle, len(arms), arms.ctypes.data, mean.ctypes.data, sd.ctypes.data)
        return mean, sd

    def p_value(self) -> float:
        """How surprising the observations are under the prior: small if the prior may be wrong, otherwise uniform in (0, 1]; exact if features did
        not depend on rewards. `thompson sample` prints the same with the same seed."""
        p = ctypes.c_double()
        with self._lock:
            library.p_value(self._handle, p)
        return p.value

    def log_evidence(self) -> tuple[float, float]:
        """The log evidence of the observations, log p(y | x) under the prior, and its standard error, to compare priors or likelihoods.

        For localised, twisted and smc_tempered, and with Gaussian rewards in closed form, with error 0, for ts, tuned_ts, mixts and exact.
        It comes from draws of its own, so that the next draws stay the same."""
        value, error = ctypes.c_double(), ctypes.c_double()
        with self._lock:
            library.log_evidence(self._handle, value, error)
        return value.value, error.value

    @property
    def fallbacks(self) -> int:
        """Numerical fallbacks so far; if this is not 0, check the draws before you trust them."""
        with self._lock:
            return library.fallbacks(self._handle)

    @property
    def observations(self) -> tuple[np.ndarray, np.ndarray]:
        """Features x[n, d] and rewards y[n] so far."""
        with self._lock:
            n = library.observation_count(self._handle)
            x, y = np.empty((n, self._d)), np.empty(n)
            library.observations(self._handle, x.ctypes.data, y.ctypes.data)
        return x, y

    def to_arviz(self, m: int = 1000) -> dict[str, xr.Dataset]:
        """m draws in the layout of ArviZ: a dict of xarray Datasets by group, for `arviz.InferenceData(**groups)` or
        `xarray.DataTree.from_dict(groups)`."""
        import xarray as xr
        before = self.fallbacks
        theta, (x, y) = self.draw(m), self.observations
        fallbacks = np.full((1, m), self.fallbacks - before)
        about = {"created_at": datetime.datetime.now(datetime.timezone.utc).isoformat(), "inference_library": "thompson",
                 "inference_library_version": library.version().decode(), "sampler": self.sampler, "likelihood": self.likelihood, "seed": self.seed}
        drawn = {"chain": [0], "draw": np.arange(m)}
        axes = ("chain", "draw", "theta_dim_0")
        in_theta = {"theta_dim_0": np.arange(self._d)}
        rows = {"observation": np.arange(len(y))}

        def group(variables, coordinates):
            return xr.Dataset(variables, coordinates, about)

        return {
            "posterior": group({"theta": (axes, theta[None])}, {**drawn, **in_theta}),
            "prior": group({"theta": (axes, self.prior.sample(m, self.seed)[None])}, {**drawn, **in_theta}),
            "sample_stats": group({"fallbacks": (("chain", "draw"), fallbacks, {"long_name": "numerical fallbacks in the call that made these draws"})},
                                  drawn),
            "observed_data": group({"y": ("observation", y)}, rows),
            "constant_data": group({"x": (("observation", "theta_dim_0"), x)}, {**rows, **in_theta}),
        }

    def __repr__(self) -> str:
        return f"<thompson.Posterior: {self.sampler}, {self.likelihood}, seed {self.seed}, {library.observation_count(self._handle)} observations, {self.prior!r}>"
