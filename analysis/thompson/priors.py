"""Priors: learned from samples of theta, put together from arrays, or read from a file."""
import ctypes
import os
import tempfile

import numpy as np

from . import _library as library
from . import studies


class Prior:
    """What is believed about theta before the first observation. Made by `train`, `Prior.open` or `Prior.from_mixture`."""

    def __init__(self, handle):
        self._handle = handle

    def __del__(self):
        if getattr(self, "_handle", None):
            library.prior_close(self._handle)

    @classmethod
    def _made_by(cls, function, *arguments):
        handle = ctypes.c_void_p()
        function(*arguments, ctypes.byref(handle))
        return cls(handle)

    @classmethod
    def open(cls, path):
        """From a prior file (docs/files.md)."""
        return cls._made_by(library.prior_open, os.fsencode(path))

    @classmethod
    def from_mixture(cls, weight, mean, covariance):
        """Of a mixture of Gaussians: weight[c], mean[c, d], covariance[c, d, d]; a single Gaussian has c = 1."""
        weight = library.doubles(np.atleast_1d(weight), None)
        mean = library.doubles(np.atleast_2d(mean), len(weight), None)
        c, d = mean.shape
        covariance = library.doubles(np.reshape(covariance, (c, d, d)), c, d, d)
        return cls._made_by(library.prior_from_mixture, c, d, weight.ctypes.data, mean.ctypes.data, covariance.ctypes.data)

    @property
    def dimension(self):
        return library.prior_dimension(self._handle)

    @property
    def family(self):
        return library.prior_family(self._handle).decode()

    def save(self, path):
        """Write a prior file, for `prior.file` of a study and for `thompson sample`."""
        library.prior_save(self._handle, os.fsencode(path))

    def sample(self, m, seed=1):
        """m samples of the prior itself: [m, d]."""
        theta = np.empty((m, self.dimension))
        library.prior_sample(self._handle, m, seed, theta.ctypes.data)
        return theta

    def __repr__(self):
        return f"<thompson.Prior: {self.family} in {self.dimension} dimensions>"


def train(theta, family="diffusion", ranks=1, seed=1, **options):
    """Learn a prior from theta[n, d], samples of the parameters of past tasks. `options` are the keys `prior.*` of a study: components=5,
    stages=50. With several ranks the program does it; the result is the same."""
    theta = library.doubles(theta, None, None)
    if ranks == 1:
        return Prior._made_by(library.prior_from_theta, theta.ctypes.data, *theta.shape, family.encode(), library.options_text({"seed": seed, **options}))
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        samples, file = os.path.join(folder, "theta.csv"), os.path.join(folder, "prior.nc")
        np.savetxt(samples, theta, delimiter=",", fmt="%.17g")
        settings = [word for key, value in options.items() for word in ("--option", library.options_text({key: value}).decode())]
        studies.call("train", "--theta", samples, "--family", family, "--seed", seed, *settings, "-o", file, ranks=ranks)
        return Prior.open(file)
