"""What posteriors and agents share: what they are made of, which never changes, and their turns."""
import ctypes
import secrets
import threading

from . import _library as library
from .priors import Prior


def made_for(family):
    """The sampler that is made for priors of this family."""
    if family in ("gaussian", "mixture"):
        return "mixts"
    return "diffts" if family == "diffusion" else "localised"


class Belief:
    """An object of the library that was made of a prior, a sampler, a likelihood, a rule and a seed. One thread at a time is served."""

    __slots__ = ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options", "_d", "_handle", "_lock", "__weakref__")
    _free = None  # the function of the library that ends it

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
        create(self._prior._handle, library.word("sampler", self._sampler), library.word("likelihood", likelihood), text, self._seed, ctypes.byref(handle))
        self._hold(handle)

    def _hold(self, handle):
        self._d, self._lock = self._prior.dimension, threading.Lock()
        self._handle = handle

    def _copy_onto(self, handle):
        """An object that was made of the same, with another handle."""
        copy = object.__new__(type(self))
        for name in ("_prior", "_sampler", "_likelihood", "_rule", "_seed", "_options"):
            setattr(copy, name, getattr(self, name))
        copy._hold(handle)
        return copy

    def __del__(self):
        if getattr(self, "_handle", None):
            getattr(library, self._free)(self._handle)
            self._handle = None

    def __deepcopy__(self, _memo):
        return self.__copy__()

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__} cannot be pickled; keep its arguments, its seed and its observations")

    prior = property(lambda self: self._prior, doc="What was believed before the first observation.")
    sampler = property(lambda self: self._sampler, doc="Its name.")
    likelihood = property(lambda self: self._likelihood, doc="Its name.")
    rule = property(lambda self: self._rule, doc="What `choose` does; its name.")
    seed = property(lambda self: self._seed, doc="What names the random numbers.")
    options = property(lambda self: dict(self._options), doc="Of the sampler and the rule, as they were given.")
