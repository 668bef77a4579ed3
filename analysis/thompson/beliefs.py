"""What posteriors and agents share: what they are made of, which never changes, and how threads take turns."""
from __future__ import annotations

import ctypes
import os
import secrets
import threading
import weakref

from . import _library as library
from .likelihoods import Likelihood
from .priors import Prior, bytes_of, of_bytes


def made_for(family):
    """The sampler that is the default for priors of this family."""
    if family in ("gaussian", "mixture"):
        return "mixts"
    if family == "oracle":
        return "twisted"
    return "diffts" if family in ("diffusion", "score_network") else "localised"


EVERY = weakref.WeakSet()  # of them
LISTED = threading.Lock()  # held to add to EVERY or to go through it
BUSY = []  # locks that are held while the process is forked


def before_fork():
    """Wait for the calls of other threads to end: the child has its own copy of the objects, but not these threads."""
    while True:
        LISTED.acquire()
        others = [one._lock for one in EVERY if one._lock not in BUSY]
        if not others:
            break
        LISTED.release()  # a call may make another object before it ends
        for lock in others:
            lock.acquire()
            BUSY.append(lock)
    BUSY.append(LISTED)


def after_fork():
    while BUSY:
        BUSY.pop().release()


os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)


class Belief(library.Handled):
    """An object of the library made from a prior, a sampler, a likelihood, a rule and a seed. It serves one thread at a time."""

    __slots__ = ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options", "_d", "_handle", "_lock", "__weakref__")
    _kind = None  # posterior or agents, in the names of the library's functions

    def _make(self, create, prior, sampler, likelihood, noise, rule, seed, options):
        """create(prior, sampler, likelihood, options, seed, out) is the function of the library."""
        if hasattr(self, "_handle"):
            raise TypeError(f"{type(self).__name__} is made once")
        self._prior = prior if isinstance(prior, Prior) else Prior.open(prior)
        self._sampler = made_for(self._prior.family) if sampler is None else sampler
        self._likelihood, self._rule, self._options = likelihood, rule, options
        self._seed = secrets.randbits(53) if seed is None else library.seed_of(seed)
        text = library.options_text({"rule": rule, **({} if noise is None else {"noise": noise}), **options})
        handle = ctypes.c_void_p()
        given = likelihood if self._kind == "posterior" and isinstance(likelihood, Likelihood) else None
        words = library.word("sampler", self._sampler), given._handle if given else library.word("likelihood", likelihood)
        try:
            create(self._prior._handle, *words, text, self._seed, ctypes.byref(handle))
        except BaseException:
            if handle:  # a function of the user's raised an exception, and the library does not know of it
                self._of_kind("free")(handle)
            raise
        rewards = library.prior_rewards(self._prior._handle)
        if rewards and isinstance(likelihood, str) and rewards.decode() != likelihood:
            library.warn(f"the prior was learned from rewards with likelihood={rewards.decode()!r}, and here it is {likelihood!r}")
        self._d = self._prior.dimension
        self._hold(handle)

    def _hold(self, handle):
        self._lock = threading.RLock()
        self._handle = handle
        with LISTED:
            EVERY.add(self)

    def _copy_onto(self, handle):
        """An object made from the same arguments, with another handle."""
        copy = object.__new__(type(self))
        for name in ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options", "_d"):
            setattr(copy, name, getattr(self, name))
        copy._hold(handle)
        return copy

    def save(self, path: str | os.PathLike) -> None:
        """Write a file from which `open` continues: the prior, the observations, the position in the random numbers. It is written under another
        name, synced and renamed, so that a crash at any moment leaves either the old file or the new one (docs/files.md)."""
        with self._lock:
            self._of_kind("save")(self._handle, library.path(path))

    @classmethod
    def open(cls, path: str | os.PathLike) -> Belief:
        """Read what was saved, by this version or an earlier one; it continues with the same random numbers."""
        prior, handle, arguments = ctypes.c_void_p(), ctypes.c_void_p(), library.Arguments()
        cls._of_kind("open")(library.path(path), ctypes.byref(prior), ctypes.byref(handle))
        cls._of_kind("arguments")(handle, ctypes.byref(arguments))
        self = object.__new__(cls)
        self._handle = handle
        self._prior = Prior._of_handle(prior)
        self._sampler, self._likelihood, self._seed = arguments.sampler.decode(), arguments.likelihood.decode(), arguments.seed
        self._options = library.options_of(arguments.options.decode())
        self._rule = self._options.pop("rule", "thompson")
        self._options.pop("noise", None)
        self._d = self._prior.dimension
        self._hold(handle)
        return self

    @classmethod
    def _of_kind(cls, verb):
        """A function of the library, for posteriors or for agents."""
        return getattr(library, f"{cls._kind}_{verb}")

    def __del__(self):
        if hasattr(self, "_handle"):
            self._of_kind("free")(self._handle)
            del self._handle

    def __copy__(self):
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __deepcopy__(self, _memo):
        return self.__copy__()

    def __reduce__(self):
        return of_bytes, (type(self), bytes_of(self))

    prior = property(lambda self: self._prior, doc="What was believed before the first observation.")
    sampler = property(lambda self: self._sampler, doc="Its name.")
    likelihood = property(lambda self: self._likelihood, doc="Its name, or the Likelihood that was given.")
    rule = property(lambda self: self._rule, doc="What `choose` does; its name.")
    seed = property(lambda self: self._seed, doc="What determines the random numbers.")
    options = property(lambda self: dict(self._options), doc="Options of the sampler and the rule, as given.")
