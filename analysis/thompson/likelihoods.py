"""Likelihoods of your own: a log density of theta in Python."""
from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from . import _library as library
from .priors import answering, array_at


class Likelihood(library.Handled):
    """p(observations | theta) as functions of theta: any forward map and any noise. Made by `from_functions`, and given to `Posterior`."""

    __slots__ = ("_handle", "_functions")

    def __init__(self):
        raise TypeError("a Likelihood is made by Likelihood.from_functions")

    @classmethod
    def from_functions(cls, log_density: Callable[[np.ndarray], ArrayLike], gradient: Callable[[np.ndarray], ArrayLike] | None = None) -> Likelihood:
        """A likelihood known by its logarithm at theta, and by the gradient of that if there is one.

        Parameters
        ----------
        log_density : callable
            log_density(theta[m, d]) -> log p(observations | theta)[m], up to a constant; -inf where theta is impossible. m is at most 4 096.
        gradient : callable, optional
            gradient(theta[m, d]) -> its gradient with respect to theta, [m, d]. Without it only `smc_tempered` can draw; differences are never taken in
            its place.

        Notes
        -----
        Samplers: `smc_tempered` needs values; `twisted`, `mala` and `dps` also the gradient. `dps` takes -2 log_density for a sum of squares, so that
        log_density must be 0 for a perfect fit and never above; for the others constants do not matter, except that `log_evidence` contains them. All
        observations are inside the functions: such a posterior has no `observe`, no arms and no files. An exception in a function is raised by the
        call that needed it, which leaves the posterior as it was.

        Examples
        --------
        One measurement of the length of theta, y = |theta|^2 + noise:

        >>> def log_density(theta):
        ...     return -0.5 * ((y - (theta ** 2).sum(1)) / 0.3) ** 2
        >>> def gradient(theta):
        ...     return 2 * theta * ((y - (theta ** 2).sum(1)) / 0.3 ** 2)[:, None]
        >>> posterior = thompson.Posterior(prior, "twisted", thompson.Likelihood.from_functions(log_density, gradient))
        """
        def ask_value(_context, m, d, theta, value):
            array_at(value, m)[...] = _answer("log_density", log_density(array_at(theta, m, d).copy()), m)

        def ask_gradient(_context, m, d, theta, out):
            array_at(out, m, d)[...] = _answer("gradient", gradient(array_at(theta, m, d).copy()), m, d)

        functions = library.LikelihoodFunctions(library.LOG_DENSITY(answering("log_density", log_density, ask_value)),
                                                library.LOG_DENSITY(answering("gradient", gradient, ask_gradient) if gradient is not None else 0), None)
        self, handle = object.__new__(cls), ctypes.c_void_p()
        library.likelihood_from_functions(ctypes.byref(functions), ctypes.byref(handle))
        self._handle, self._functions = handle, functions  # the functions live as long as the likelihood, which its posteriors hold
        return self

    def __del__(self):
        if hasattr(self, "_handle"):
            library.likelihood_free(self._handle)
            del self._handle

    def __reduce__(self):
        raise TypeError("a Likelihood is made of functions, which cannot be saved or pickled")

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __repr__(self) -> str:
        return f"<thompson.Likelihood: {'values and gradients' if self._functions.gradient else 'values'} of a function of theta>"


def _answer(name, values, *shape):
    """What a function of the user's has returned, as doubles of this shape."""
    try:
        return library.doubles(values, *shape)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} returned a wrong answer: {error}") from None
