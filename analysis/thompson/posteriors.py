"""Posteriors: a prior, a sampler, a likelihood and what has been observed so far; agents for a loop of your own."""
import ctypes
import datetime

import numpy as np
import xarray as xr

from . import _library as library
from .priors import Prior

MOST_INT = 2 ** 31 - 1


class Posterior:
    """p(theta | observations), as a sampler sees it. `sampler` and `likelihood` are names of `thompson list`; `noise` is the standard deviation
    of Gaussian rewards, `options` are the sampler's own. Draws depend on nothing but the arguments, the observations and how many calls drew
    before: the first draw(m) equals `thompson sample -n m` with that seed."""

    def __init__(self, prior, sampler="localised", likelihood="gaussian", noise=1.0, seed=1, **options):
        self.prior = prior if isinstance(prior, Prior) else Prior.open(prior)
        self.sampler, self.likelihood, self.noise, self.seed, self.options = sampler, likelihood, noise, seed, options
        self._d = self.prior.dimension
        self._handle = ctypes.c_void_p()
        text = library.options_text({"noise": noise, **options})
        library.posterior_new(self.prior._handle, sampler.encode(), likelihood.encode(), text, seed, ctypes.byref(self._handle))
        self._arm = ctypes.c_int()
        self._observed = []

    def __del__(self):
        if getattr(self, "_handle", None):
            library.posterior_free(self._handle)

    def observe(self, x, y):
        """One observation, x[d] and its reward y, or n of them, x[n, d] and y[n]."""
        x = np.array(x, dtype=np.float64, order="C", ndmin=2)
        y = np.array(y, dtype=np.float64, order="C", ndmin=1)
        if x.shape != (y.size, self._d):
            raise ValueError(f"x has shape {x.shape} and y {y.shape}: ({y.size}, {self._d}) is needed")
        library.observe(self._handle, y.size, x.ctypes.data, y.ctypes.data)
        self._observed.append((x, y))

    def forget(self):
        """No observations, and the first draw is next, as in the beginning."""
        library.forget(self._handle)
        self._observed.clear()

    def draw(self, m=1):
        """m draws: [m, d]."""
        if not 1 <= m <= MOST_INT:
            raise ValueError(f"{m} draws")
        theta = np.empty((m, self._d))
        library.draw(self._handle, m, theta.ctypes.data)
        return theta

    def choose(self, arms):
        """Thompson sampling: one draw, and the index of the best of arms[k, d] for it."""
        arms = library.doubles(arms, None, self._d)
        library.choose(self._handle, len(arms), arms.ctypes.data, self._arm)
        return self._arm.value

    @property
    def fallbacks(self):
        """Numerical rescues so far; not 0: look at the draws before you trust them."""
        return library.fallbacks(self._handle)

    @property
    def observations(self):
        """Features x[n, d] and rewards y[n] so far."""
        if not self._observed:
            return np.empty((0, self._d)), np.empty(0)
        return tuple(np.concatenate(parts) for parts in zip(*self._observed))

    def to_arviz(self, m=1000):
        """m draws in the layout of ArviZ: a dict of xarray Datasets by group, for `arviz.InferenceData(**groups)` or
        `xarray.DataTree.from_dict(groups)`."""
        before = self.fallbacks
        theta, (x, y) = self.draw(m), self.observations
        rescues = np.full((1, m), self.fallbacks - before)
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
            "sample_stats": group({"fallbacks": (("chain", "draw"), rescues, {"long_name": "numerical rescues in the call that made these draws"})},
                                  drawn),
            "observed_data": group({"y": ("observation", y)}, rows),
            "constant_data": group({"x": (("observation", "theta_dim_0"), x)}, {**rows, **in_theta}),
        }

    def __repr__(self):
        return f"<thompson.Posterior: {self.sampler}, {self.likelihood}, {sum(len(y) for _, y in self._observed)} observations, {self.prior!r}>"
