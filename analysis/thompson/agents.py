"""Agents by the thousand: posteriors under one prior that share everything except what each has learned."""
from __future__ import annotations

import collections
import json
import os
from collections.abc import Sequence

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
    n : int or sequence of str
        How many, or their names; `add` makes more.
    sampler, likelihood, noise, rule, seed, **options
        As for `Posterior`. Samplers that carry a state from observation to observation (smc, lmc, vts and others) are refused.

    Notes
    -----
    An agent stores only what it has learned: d (d + 3) / 2 + 1 doubles with Gaussian rewards, its observations with clicks or counts. `ids` are the
    numbers or the names of m agents, in any order; an agent that is listed twice is served twice, in order. Each has its own random numbers: what it
    does depends neither on the other agents nor on whether they are called together, and agent 0 is the `Posterior` of the same seed. Threads take
    turns.
    """

    __slots__ = ("_numbers",)
    _kind = "agents"

    def __init__(self, prior: Prior | str | os.PathLike, n: int | Sequence[str], sampler: str | None = None, likelihood: str = "gaussian", noise: float | None = None,
                 rule: str = "thompson", seed: int | None = None, **options) -> None:
        n, names = self._names(n)
        self._make(lambda prior, *rest: library.agents_new(prior, n, *rest), prior, sampler, likelihood, noise, rule, seed, options)
        self._name(0, names)

    def _hold(self, handle):
        super()._hold(handle)
        note = library.agents_note(handle)
        self._numbers = {name: number for number, name in enumerate(json.loads(note))} if note else {}

    @staticmethod
    def _names(n):
        """How many agents n says there are, and their names, none for a number."""
        if isinstance(n, str) or not np.iterable(n):
            return library.integer("n", n, 0, library.MOST_INT), []
        names = list(n)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no name of an agent: a str is needed")
        (most, count), = collections.Counter(names).most_common(1) or [("", 0)]
        if count > 1:
            raise ValueError(f"{most!r} names two agents")
        return len(names), names

    def _name(self, first, names):
        """Name the agents from number `first` on."""
        self._numbers.update((name, first + number) for number, name in enumerate(names))

    def save(self, path: str | os.PathLike) -> None:
        """As for `Posterior`; names are in the file too."""
        with self._lock:
            library.agents_set_note(self._handle, json.dumps(self.names).encode() if self._numbers else None)
            super().save(path)

    @property
    def names(self) -> list[str]:
        """The names of the agents, in the order of their numbers; empty if they have only numbers."""
        return list(self._numbers)

    noise = property(lambda self: library.agents_noise(self._handle), doc="The standard deviation that is used for Gaussian rewards.")

    def __len__(self) -> int:
        return library.agents_count(self._handle)

    def _ids(self, ids):
        """ids[m], numbers or names, in the layout of C, which checks that the agents exist."""
        ids = library.unmasked("ids", ids)
        if ids.dtype.kind == "O" and len(set(map(type, ids.flat))) == 1:  # a column of a table
            ids = np.array(ids.tolist())
        if self._numbers and ids.dtype.kind == "U" and ids.ndim == 1:
            unknown = [name for name in ids.tolist() if name not in self._numbers]
            if unknown:
                raise KeyError(f"no agent is named {unknown[0]!r}; agents.add([{unknown[0]!r}]) makes one")
            ids = np.array([self._numbers[name] for name in ids.tolist()])
        if ids.dtype.kind not in "iu" and ids.size or ids.ndim != 1:
            needed = "names of agents" if self._numbers else "integers"
            raise TypeError(f"ids is {ids.ndim}-dimensional, of type {ids.dtype}: a list of {needed} is needed")
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self):
            given = f"id is {ids.min()}" if ids.min() == ids.max() else f"ids are from {ids.min()} to {ids.max()}"
            raise IndexError(f"{given}; there are agents 0 to {len(self) - 1}")
        return np.ascontiguousarray(ids, dtype=np.int32)

    def add(self, n: int | Sequence[str]) -> int:
        """Add n agents, or agents with these names; returns the number of the first."""
        n, names = self._names(n)
        with self._lock:
            first = len(self)
            if n and bool(names) != bool(self._numbers) and first:
                raise ValueError(f"the agents have {'names' if self._numbers else 'numbers only'}, and so must those that are added")
            known = [name for name in names if name in self._numbers]
            if known:
                raise ValueError(f"there is already an agent {known[0]!r}")
            library.agents_add(self._handle, n)
            self._name(first, names)
        return first

    def observe(self, ids: ArrayLike, x: ArrayLike, y: ArrayLike) -> None:
        """Add one observation for each of the agents; observations may come late, and in any order.

        Parameters
        ----------
        ids : array_like of int or str, shape (m,)
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

    def _arms(self, ids, arms, available):
        """arms[k, d] or arms[m, k, d] in the layout of C, and the arrays that it points to: features and, unless all arms are available, flags[m, k]."""
        own = np.ndim(arms) == 3
        features = library.doubles(arms, len(ids), None, self._d) if own else library.doubles(arms, None, self._d)
        k, flags = features.shape[-2], None
        if available is not None:
            flags = np.asarray(available)
            if flags.dtype != bool or flags.shape not in ((k,), (len(ids), k)):
                raise TypeError(f"available is of type {flags.dtype} and shape {flags.shape}: bool and ({k},) or ({len(ids)}, {k}) are needed")
            flags = np.array(np.broadcast_to(flags, (len(ids), k)), np.uint8, order="C")
        return library.Arms(k, features.ctypes.data, own, None if flags is None else flags.ctypes.data), features, flags

    def choose(self, ids: ArrayLike, arms: ArrayLike, propensity: bool = False, available: ArrayLike | None = None,
               top_k: int | None = None) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The arm that each of the agents plays.

        Parameters
        ----------
        ids : array_like of int or str, shape (m,)
            Which agents.
        arms : array_like, shape (k, d) or (m, k, d)
            Features of the arms, the same for all agents or separate for each.
        propensity : bool
            Pick arms by `probabilities(ids, arms)`, and also return the probability with which each was chosen.
        available : array_like of bool, shape (k,) or (m, k)
            Which arms each agent has now, at least one; features of the others may be anything. By default all.
        top_k : int
            Choose so many different arms for each agent, one position after the other, each among those that are left.

        Returns
        -------
        arm : ndarray of int, shape (m,), or (m, top_k)
        p : ndarray, of the same shape
            Only with `propensity`; of a position: given the arms before it.
        """
        propensity = library.flag("propensity", propensity)
        if top_k is not None and available is None:
            available = np.ones(np.shape(arms)[-2:-1], bool)
        with self._lock:
            ids = self._ids(ids)
            call, _features, flags = self._arms(ids, arms, available)
            positions = 1 if top_k is None else library.integer("top_k", top_k, 1, int(flags.sum(axis=1).min(initial=call.k)))
            arm, p = np.empty((positions, len(ids)), np.int32), np.empty((positions, len(ids)))
            for j in range(positions):
                library.agents_choose_among(self._handle, len(ids), ids.ctypes.data, call, arm[j:].ctypes.data, p[j:].ctypes.data if propensity else None)
                if top_k is not None:
                    flags[np.arange(len(ids)), arm[j]] = 0
        arm, p = (arm[0], p[0]) if top_k is None else (arm.T.copy(), p.T.copy())
        return (arm, p) if propensity else arm

    def probabilities(self, ids: ArrayLike, arms: ArrayLike, available: ArrayLike | None = None) -> np.ndarray:
        """The probabilities, shape (m, k), with which the next `choose(ids, arms, propensity=True)` picks an arm for each of the agents, as
        `Posterior.probabilities`."""
        with self._lock:
            ids = self._ids(ids)
            call, _features, _flags = self._arms(ids, arms, available)
            p = np.empty((len(ids), call.k))
            library.agents_probabilities_among(self._handle, len(ids), ids.ctypes.data, call, p.ctypes.data)
        return p

    def score(self, ids: ArrayLike, arms: ArrayLike, available: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """What each agent believes of the mean reward of each arm, mean[m, k] and its standard deviation sd[m, k], as `Posterior.score`; NaN for arms
        that are not available."""
        with self._lock:
            ids = self._ids(ids)
            call, _features, _flags = self._arms(ids, arms, available)
            mean, sd = np.empty((len(ids), call.k)), np.empty((len(ids), call.k))
            library.agents_score(self._handle, len(ids), ids.ctypes.data, call, mean.ctypes.data, sd.ctypes.data)
        return mean, sd

    def p_value(self, ids: ArrayLike) -> np.ndarray:
        """How surprising what each agent has observed is under the prior, shape (m,), as `Posterior.p_value`. Not with `discount`."""
        with self._lock:
            ids = self._ids(ids)
            p = np.empty(len(ids))
            library.agents_p_value(self._handle, len(ids), ids.ctypes.data, p.ctypes.data)
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

    def learn_prior(self, progress: bool | None = None) -> Prior:
        """Learn a prior from what all agents have observed, and continue with it.

        Parameters
        ----------
        progress : bool, optional
            Show on standard error for how long it has taken: always, never, or, by default, once it has taken three seconds.

        Returns
        -------
        prior : Prior
            A mixture, one component of which has the mean and the variances of the previous prior.

        Notes
        -----
        Each agent that has observed something is a task; at least four are needed, and the more rewards each of them has had, the better the prior.
        What agents have observed is kept; an interrupt leaves everything as it was. With `memory` the Gaussians that an agent has for the components of the
        previous prior become one, which it keeps for each component of the new one.
        """
        with self._lock:
            self._prior = Prior._made_by(lambda out: interruptible(lambda stop: library.agents_learn_prior_until(self._handle, stop, out), progress))
        return self._prior

    @property
    def fallbacks(self) -> int:
        """Numerical fallbacks so far, of all agents; if this is not 0, check the draws before you trust them."""
        with self._lock:
            return library.agents_fallbacks(self._handle)

    def __repr__(self) -> str:
        return f"<thompson.Agents: {len(self)} of {self.sampler}, {self.likelihood}, {self.rule}, seed {self.seed}, {self.prior!r}>"
