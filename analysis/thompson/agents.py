"""Agents by the thousand: posteriors under one prior that share everything except what each has learned."""
from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from . import _library as library
from .beliefs import Belief
from .priors import Prior, interruptible


class Agents(Belief):
    """n posteriors under one prior, numbered from 0.

    Parameters
    ----------
    prior : Prior or path
        What all of them believe before their first observation.
    n : int
        How many; `add` makes more.
    sampler, likelihood, noise, rule, seed, **options
        As for `Posterior`. Samplers that carry a state from observation to observation (smc, lmc, vts and others) are refused.

    Notes
    -----
    An agent stores only what it has learned: d (d + 3) / 2 + 1 doubles with Gaussian rewards, its observations with clicks or counts. `ids` are the
    numbers of m agents, in any order; an agent that is listed twice is served twice, in order. Each has its own random numbers: what it does depends
    neither on the other agents nor on whether they are called together, and agent 0 is the `Posterior` of the same seed. Threads take turns.
    """

    __slots__ = ()
    _kind = "agents"

    def __init__(self, prior: Prior | str | os.PathLike, n: int, sampler: str | None = None, likelihood: str = "gaussian", noise: float | None = None,
                 rule: str = "thompson", seed: int | None = None, **options) -> None:
        n = library.integer("n", n, 0, library.MOST_INT)
        self._make(lambda prior, *rest: library.agents_new(prior, n, *rest), prior, sampler, likelihood, noise, rule, seed, options)

    noise = property(lambda self: library.agents_noise(self._handle), doc="The standard deviation that is used for Gaussian rewards.")

    def __len__(self) -> int:
        return library.agents_count(self._handle)

    def _ids(self, ids):
        """ids[m] in the layout of C, which checks that the agents exist."""
        ids = library.unmasked("ids", ids)
        if ids.dtype.kind not in "iu" and ids.size or ids.ndim != 1:
            raise TypeError(f"ids is {ids.ndim}-dimensional, of type {ids.dtype}: a list of integers is needed")
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self):
            given = f"id is {ids.min()}" if ids.min() == ids.max() else f"ids are from {ids.min()} to {ids.max()}"
            raise IndexError(f"{given}; there are agents 0 to {len(self) - 1}")
        return np.ascontiguousarray(ids, dtype=np.int32)

    def add(self, n: int) -> int:
        """Add n agents; returns the number of the first."""
        n = library.integer("n", n, 0, library.MOST_INT)
        with self._lock:
            first = len(self)
            library.agents_add(self._handle, n)
        return first

    def observe(self, ids: ArrayLike, x: ArrayLike, y: ArrayLike) -> None:
        """Add one observation for each of the agents; observations may come late, and in any order.

        Parameters
        ----------
        ids : array_like of int, shape (m,)
            Which agents.
        x : array_like, shape (m, d)
            Features of the arms that were played.
        y : array_like, shape (m,)
            Their rewards.
        """
        with self._lock:
            ids = self._ids(ids)
            x, y = library.doubles(x, len(ids), self._d), library.doubles(y, len(ids))
            library.agents_observe(self._handle, len(ids), ids.ctypes.data, x.ctypes.data, y.ctypes.data)

    def _arms(self, ids, arms):
        """arms[k, d] or arms[m, k, d] in the layout of C: k, the numbers, and whether each agent has its own."""
        apart = np.ndim(arms) == 3
        arms = library.doubles(arms, len(ids), None, self._d) if apart else library.doubles(arms, None, self._d)
        return arms.shape[-2], arms, apart

    def choose(self, ids: ArrayLike, arms: ArrayLike, propensity: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The arm that each of the agents plays.

        Parameters
        ----------
        ids : array_like of int, shape (m,)
            Which agents.
        arms : array_like, shape (k, d) or (m, k, d)
            Features of the arms, the same for all agents or separate for each.
        propensity : bool
            Pick arms by `probabilities(ids, arms)`, and also return the probability with which each was chosen.

        Returns
        -------
        arm : ndarray of int, shape (m,)
        p : ndarray, shape (m,)
            Only with `propensity`.
        """
        with self._lock:
            ids = self._ids(ids)
            k, arms, apart = self._arms(ids, arms)
            arm, p = np.empty(len(ids), np.int32), np.empty(len(ids))
            if not library.flag("propensity", propensity):
                library.agents_choose(self._handle, len(ids), ids.ctypes.data, k, arms.ctypes.data, apart, arm.ctypes.data)
                return arm
            library.agents_choose_propensity(self._handle, len(ids), ids.ctypes.data, k, arms.ctypes.data, apart, arm.ctypes.data, p.ctypes.data)
        return arm, p

    def probabilities(self, ids: ArrayLike, arms: ArrayLike) -> np.ndarray:
        """The probabilities, shape (m, k), with which the next `choose(ids, arms, propensity=True)` picks an arm for each of the agents, as `Posterior.probabilities`."""
        with self._lock:
            ids = self._ids(ids)
            k, arms, apart = self._arms(ids, arms)
            p = np.empty((len(ids), k))
            library.agents_probabilities(self._handle, len(ids), ids.ctypes.data, k, arms.ctypes.data, apart, p.ctypes.data)
        return p

    def draw(self, ids: ArrayLike, m: int = 1) -> np.ndarray:
        """m draws for each of the agents, shape (len(ids), m, d)."""
        m = library.count("draws", m)
        with self._lock:
            ids = self._ids(ids)
            theta = np.empty((len(ids), m, self._d))
            library.agents_draw(self._handle, len(ids), ids.ctypes.data, m, theta.ctypes.data)
        return theta

    def forget(self, ids: ArrayLike) -> None:
        """Make these agents drop what they have observed; their random numbers continue."""
        with self._lock:
            ids = self._ids(ids)
            library.agents_forget(self._handle, len(ids), ids.ctypes.data)

    def age(self, ids: ArrayLike, rounds: int = 1) -> None:
        """Make what these agents have learned count `discount` ** `rounds` times as much, as `Posterior.age` does."""
        with self._lock:
            ids = self._ids(ids)
            library.agents_age(self._handle, len(ids), ids.ctypes.data, library.integer("rounds", rounds, 0, library.MOST_INT))

    def learn_prior(self) -> Prior:
        """Learn a prior from what all agents have observed, and continue with it.

        Returns
        -------
        prior : Prior
            A mixture, one component of which has the mean and the variances of the previous prior.

        Notes
        -----
        Each agent that has observed something is a task; at least four are needed, and the more rewards each of them has had, the better the prior.
        What agents have observed is kept; an interrupt leaves everything as it was. Not available with `memory`, which stores it in terms of the previous prior.
        """
        with self._lock:
            self._prior = Prior._made_by(lambda out: interruptible(lambda stop: library.agents_learn_prior_until(self._handle, stop, out)))
        return self._prior

    @property
    def fallbacks(self) -> int:
        """Numerical fallbacks so far, of all agents; if this is not 0, check the draws before you trust them."""
        with self._lock:
            return library.agents_fallbacks(self._handle)

    def __repr__(self) -> str:
        return f"<thompson.Agents: {len(self)} of {self.sampler}, {self.likelihood}, {self.rule}, seed {self.seed}, {self.prior!r}>"
