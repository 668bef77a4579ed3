"""Posteriors: a prior, a sampler, a likelihood and what has been observed so far; agents for a loop of your own."""
import ctypes
import datetime
import secrets
import threading

import numpy as np
import xarray as xr

from . import _library as library
from .priors import Prior


def made_for(family):
    """The sampler that is made for priors of this family."""
    if family in ("gaussian", "mixture"):
        return "mixts"
    return "diffts" if family == "diffusion" else "localised"


class Posterior:
    """p(theta | observations), as a sampler sees it.

    `sampler` and `likelihood` are names of `thompson list`; without a sampler it is the one that is made for the prior. `noise` is the standard
    deviation of Gaussian rewards, by default the one that the prior learned from logs, else 1. `rule` is what `choose` does (`thompson list rules`;
    bayes_ucb needs `horizon`, the number of choices in all since the last `forget`, or a constant `quantile`), `options` are those of the sampler
    and the rule. Without a seed, each posterior draws its own numbers; `seed` (also in the repr) repeats them: draws depend on nothing but the
    arguments, the observations and how many calls drew before, and the first draw(m) equals `thompson sample -n m` with that seed. A copy goes on
    with the same numbers. Several threads may use one posterior: they take turns."""

    __slots__ = ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options", "_d", "_handle", "_arm", "_observed", "_lock", "__weakref__")

    def __init__(self, prior, sampler=None, likelihood="gaussian", noise=None, rule="thompson", seed=None, **options):
        if hasattr(self, "_handle"):
            raise TypeError("a Posterior is made once")
        self._prior = prior if isinstance(prior, Prior) else Prior.open(prior)
        self._sampler = made_for(self._prior.family) if sampler is None else sampler
        self._likelihood, self._rule, self._options = likelihood, rule, options
        self._seed = secrets.randbits(53) if seed is None else library.seed_of(seed)
        text = library.options_text({"rule": rule, **({} if noise is None else {"noise": noise}), **options})
        handle = ctypes.c_void_p()
        library.posterior_new(self._prior._handle, library.word("sampler", self._sampler), library.word("likelihood", likelihood), text, self._seed,
                              ctypes.byref(handle))
        self._hold(handle, [])

    def _hold(self, handle, observed):
        self._handle, self._observed = handle, observed
        self._d = self._prior.dimension
        self._arm, self._lock = ctypes.c_int(), threading.Lock()

    def __del__(self):
        if getattr(self, "_handle", None):
            library.posterior_free(self._handle)
            self._handle = None

    def __copy__(self):
        copy, handle = object.__new__(type(self)), ctypes.c_void_p()
        for name in ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options"):
            setattr(copy, name, getattr(self, name))
        with self._lock:
            library.posterior_copy(self._handle, ctypes.byref(handle))
            copy._hold(handle, list(self._observed))
        return copy

    def __deepcopy__(self, _memo):
        return self.__copy__()

    def __reduce__(self):
        raise TypeError("a Posterior cannot be pickled; keep its arguments, its seed and its observations")

    prior = property(lambda self: self._prior, doc="What was believed before the first observation.")
    sampler = property(lambda self: self._sampler, doc="Its name.")
    likelihood = property(lambda self: self._likelihood, doc="Its name.")
    noise = property(lambda self: library.posterior_noise(self._handle), doc="The standard deviation of Gaussian rewards that is used.")
    rule = property(lambda self: self._rule, doc="What `choose` does; its name.")
    seed = property(lambda self: self._seed, doc="What names the random numbers.")
    options = property(lambda self: dict(self._options), doc="Of the sampler and the rule, as they were given.")

    def observe(self, x, y):
        """One observation, x[d] and its reward y, or n of them, x[n, d] and y[n]."""
        x, y = library.numbers("x", x), library.numbers("y", y)
        if x.ndim == 1 and y.ndim == 0 or x.shape[:1] == (1,) and y.ndim == 0:
            y = y.reshape(1)
        if x.ndim == 1 and y.shape == (1,):
            x = x.reshape(1, -1)
        if y.ndim != 1 or x.shape != (y.size, self._d):
            raise ValueError(f"x has shape {x.shape} and y {y.shape}: ({y.size}, {self._d}) and ({y.size},) are needed")
        x, y = np.array(x, order="C"), np.array(y, order="C")
        with self._lock:
            library.observe(self._handle, y.size, x.ctypes.data, y.ctypes.data)
            self._observed.append((x, y))

    def forget(self):
        """Drop the observations. The random numbers go on, so that what follows is independent of what came before."""
        with self._lock:
            library.forget(self._handle)
            self._observed.clear()

    def draw(self, m=1):
        """m draws: [m, d]."""
        theta = np.empty((library.count("draws", m), self._d))
        with self._lock:
            library.draw(self._handle, len(theta), theta.ctypes.data)
        return theta

    def choose(self, arms):
        """The index of one of arms[k, d], by the rule: with `thompson` the best one for one draw."""
        arms = library.doubles(arms, None, self._d)
        with self._lock:
            library.choose(self._handle, len(arms), arms.ctypes.data, self._arm)
            return self._arm.value

    @property
    def fallbacks(self):
        """Numerical fallbacks so far; not 0: look at the draws before you trust them."""
        with self._lock:
            return library.fallbacks(self._handle)

    @property
    def observations(self):
        """Features x[n, d] and rewards y[n] so far."""
        with self._lock:
            parts = [(np.empty((0, self._d)), np.empty(0)), *self._observed]
        return tuple(np.concatenate(part) for part in zip(*parts))

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
        observed = sum(len(y) for _, y in self._observed)
        return f"<thompson.Posterior: {self.sampler}, {self.likelihood}, seed {self.seed}, {observed} observations, {self.prior!r}>"
