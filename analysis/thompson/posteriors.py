"""Posteriors: a prior, a sampler, a likelihood and what has been observed so far; agents for a loop of your own."""
import ctypes
import datetime

import numpy as np
import xarray as xr

from . import _library as library
from .beliefs import Belief


class Posterior(Belief):
    """p(theta | observations), as a sampler sees it.

    `sampler` and `likelihood` are names of `thompson list`; without a sampler it is the one that is made for the prior. `noise` is the standard
    deviation of Gaussian rewards, by default the one that the prior learned from logs, else 1. `rule` is what `choose` does (`thompson list rules`;
    bayes_ucb needs `horizon`, the number of choices in all since the last `forget`, or a constant `quantile`), `options` are those of the sampler
    and the rule. Without a seed, each posterior draws its own numbers; `seed` (also in the repr) repeats them: draws depend on nothing but the
    arguments, the observations and how many calls drew before, and the first draw(m) equals `thompson sample -n m` with that seed. A copy goes on
    with the same numbers. Several threads may use one posterior: they take turns."""

    __slots__ = ("_arm",)
    _kind = "posterior"

    def __init__(self, prior, sampler=None, likelihood="gaussian", noise=None, rule="thompson", seed=None, **options):
        self._make(library.posterior_new, prior, sampler, likelihood, noise, rule, seed, options)

    def _hold(self, handle):
        self._arm = ctypes.c_int()
        super()._hold(handle)

    def __copy__(self):
        handle = ctypes.c_void_p()
        with self._lock:
            library.posterior_copy(self._handle, ctypes.byref(handle))
            return self._copy_onto(handle)

    noise = property(lambda self: library.posterior_noise(self._handle), doc="The standard deviation of Gaussian rewards that is used.")

    def observe(self, x, y):
        """One observation, x[d] and its reward y, or n of them, x[n, d] and y[n]."""
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

    def forget(self):
        """Drop the observations. The random numbers go on, so that what follows is independent of what came before."""
        with self._lock:
            library.forget(self._handle)

    def draw(self, m=1):
        """m draws: [m, d]."""
        theta = np.empty((library.count("draws", m), self._d))
        with self._lock:
            library.draw(self._handle, len(theta), theta.ctypes.data)
        return theta

    def choose(self, arms, propensity=False):
        """The index of one of arms[k, d], by the rule: with `thompson` the best one for one draw. With `propensity` (arm, p): the arm is picked by
        `probabilities(arms)`, and p is the probability that it was chosen with."""
        arms = library.doubles(arms, None, self._d)
        with self._lock:
            if not library.flag("propensity", propensity):
                library.choose(self._handle, len(arms), arms.ctypes.data, self._arm)
                return self._arm.value
            p = ctypes.c_double()
            library.choose_propensity(self._handle, len(arms), arms.ctypes.data, self._arm, p)
            return self._arm.value, p.value

    def probabilities(self, arms):
        """p[k] by which the next `choose(arms, propensity=True)` picks one of arms[k, d]. With rule `thompson` the shares of `propensity_draws`
        (1000) draws in which each arm is the best, in closed form for two arms under one Gaussian; other rules are certain of their arm. The option
        `floor` is the least probability of any arm. Nothing moves on: asked again they are the same."""
        arms = library.doubles(arms, None, self._d)
        p = np.empty(len(arms))
        with self._lock:
            library.probabilities(self._handle, len(arms), arms.ctypes.data, p.ctypes.data)
        return p

    @property
    def fallbacks(self):
        """Numerical fallbacks so far; not 0: look at the draws before you trust them."""
        with self._lock:
            return library.fallbacks(self._handle)

    @property
    def observations(self):
        """Features x[n, d] and rewards y[n] so far."""
        with self._lock:
            n = library.observation_count(self._handle)
            x, y = np.empty((n, self._d)), np.empty(n)
            library.observations(self._handle, x.ctypes.data, y.ctypes.data)
        return x, y

    def to_arviz(self, m=1000):
        """m draws in the layout of ArviZ: a dict of xarray Datasets by group, for `arviz.InferenceData(**groups)` or
        `xarray.DataTree.from_dict(groups)`."""
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

    def __repr__(self):
        return f"<thompson.Posterior: {self.sampler}, {self.likelihood}, seed {self.seed}, {library.observation_count(self._handle)} observations, {self.prior!r}>"
