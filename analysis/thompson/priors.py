"""Priors: learned from samples of theta or from logs of past tasks, built from arrays, or read from a file."""
from __future__ import annotations

import concurrent.futures
import ctypes
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from . import _library as library
from . import studies
from .progress import Progress


class Prior(library.Handled):
    """What is believed about theta before the first observation. Made by `train`, `Prior.open` or `Prior.from_mixture`; it never changes."""

    __slots__ = ("_handle", "_function", "__weakref__")

    def __init__(self):
        raise TypeError("a Prior is made by thompson.train, Prior.open or Prior.from_mixture")

    def __del__(self):
        if hasattr(self, "_handle"):
            library.prior_close(self._handle)
            del self._handle

    @classmethod
    def _made_by(cls, function, *arguments):
        handle = ctypes.c_void_p()
        try:
            function(*arguments, ctypes.byref(handle))
        except BaseException:
            if handle:  # made, and then interrupted
                library.prior_close(handle)
            raise
        return cls._of_handle(handle)

    @classmethod
    def _of_handle(cls, handle):
        self = object.__new__(cls)
        self._handle = handle
        doubt = library.prior_doubt(handle)
        if doubt:
            library.warn(doubt.decode())
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __reduce__(self):
        return of_bytes, (Prior, bytes_of(self))

    @classmethod
    def open(cls, path: str | os.PathLike) -> Prior:
        """Read the prior of a prior file, or of saved posteriors or agents (docs/files.md)."""
        return cls._made_by(library.prior_open, library.path(path))

    @classmethod
    def from_mixture(cls, weight: ArrayLike, mean: ArrayLike, covariance: ArrayLike) -> Prior:
        """A mixture of c Gaussians; a single one has c = 1.

        Parameters
        ----------
        weight : array_like, shape (c,)
        mean : array_like, shape (c, d)
        covariance : array_like, shape (c, d, d)
        """
        weight = library.doubles(np.atleast_1d(weight), None)
        mean = library.doubles(np.atleast_2d(mean), len(weight), None)
        c, d = mean.shape
        covariance = library.doubles(np.reshape(covariance, (c, d, d)), c, d, d)
        return cls._made_by(library.prior_from_mixture, c, d, weight.ctypes.data, mean.ctypes.data, covariance.ctypes.data)

    @classmethod
    def from_denoiser(cls, f: Callable[[np.ndarray, np.ndarray], tuple[ArrayLike, ArrayLike]], d: int) -> Prior:
        """A prior given by its denoiser: for the sampler `localised`.

        Parameters
        ----------
        f : callable
            f(b[m, d], M[m, d, d]) -> (mean[m, d], covariance[m, d, d]) of the prior times exp(b' theta - theta' M theta / 2), which is the posterior
            after Gaussian observations of theta with precision M. Called with up to 64 rows at a time, from M = 0 on; an exception in f is raised by
            the call that needed it.
        d : int
            Entries of theta, which should be of order 1.

        Notes
        -----
        Such a prior, and anything made with it, cannot be saved or pickled: f is code.
        """
        d = library.count("d", d)

        def ask(_context, m, _d, b, precision, mean, covariance):
            results = f(array_at(b, m, d).copy(), array_at(precision, m, d, d).copy())
            for result, place in zip(results, (array_at(mean, m, d), array_at(covariance, m, d, d)), strict=True):
                place[...] = library.doubles(result, *place.shape)

        return cls._of_function(library.prior_from_denoiser, d, library.DENOISER(answering("f", f, ask)))

    @classmethod
    def from_score_network(cls, f: Callable[[np.ndarray, int], ArrayLike], d: int, schedule: ArrayLike | None = None) -> Prior:
        """A prior given by a diffusion model: for samplers that walk its chain (`diffts`, `tilted` and the like).

        Parameters
        ----------
        f : callable
            f(x[m, d], t) -> E[x_0 | x_t = x][m, d] at stage t = 1 .. T, an int, where x_t = sqrt(schedule[t - 1]) x_0 + sqrt(1 - schedule[t - 1]) noise.
            From a network eps of the noise this is (x - sqrt(1 - a) eps(x, t)) / sqrt(a) with a = schedule[t - 1], from one of the score s it is
            (x + (1 - a) s(x, t)) / sqrt(a). Called with up to 128 rows at a time; an exception in f is raised by the call that needed it.
        d : int
            Entries of theta, which should be of order 1.
        schedule : array_like, shape (T,)
            The share of the signal's variance (alpha_bar) that stages 1 .. T keep: decreasing, between 0 and 1, the last nearly 0. The default is
            that of `thompson train --family diffusion`: 0.97 ** t, t = 1 .. 100.

        Notes
        -----
        Such a prior, and anything made with it, cannot be saved or pickled: f is code.
        """
        d = library.count("d", d)
        alpha_bar = library.doubles(0.97 ** np.arange(1, 101) if schedule is None else schedule, None)

        def ask(_context, m, _d, x, t, mean):
            array_at(mean, m, d)[...] = library.doubles(f(array_at(x, m, d).copy(), t), m, d)

        return cls._of_function(library.prior_from_score_network, d, len(alpha_bar), alpha_bar.ctypes.data, library.SCORE_NETWORK(answering("f", f, ask)))

    @classmethod
    def from_oracle(cls, f: Callable[[np.ndarray, float], ArrayLike], d: int, sigma_min: float, sigma_max: float) -> Prior:
        """A prior given by a denoising oracle: for samplers that walk a reverse chain (`twisted`, `joint`, `diffts` and the like; docs/oracles.md).

        Parameters
        ----------
        f : callable
            f(x[m, d], sigma) -> E[theta | theta + sigma z = x][m, d], with z standard normal; m is at most 1 024. If it has an attribute jvp,
            f.jvp(x, sigma, v[m, d]) is the product of its Jacobian with each row of v; otherwise products are central differences. An exception in f
            is raised by the call that needed it.
        d : int
            Entries of theta.
        sigma_min, sigma_max : float
            The smallest noise that f is asked about, which is what draws are blurred by, and the largest, many times the standard deviation of theta.

        Notes
        -----
        Such a prior, and anything made with it, cannot be saved or pickled: f is code.
        """
        d, product = library.count("d", d), getattr(f, "jvp", None)

        def ask(_context, m, _d, x, sigma, mean):
            array_at(mean, m, d)[...] = library.doubles(f(array_at(x, m, d).copy(), sigma), m, d)

        def multiply(_context, m, _d, x, sigma, v, out):
            array_at(out, m, d)[...] = library.doubles(product(array_at(x, m, d).copy(), sigma, array_at(v, m, d).copy()), m, d)

        functions = library.ORACLE(answering("f", f, ask)), library.PRODUCT(answering("f.jvp", product, multiply)) if product else library.PRODUCT()
        return cls._of_function(library.prior_from_oracle, d, float(sigma_min), float(sigma_max), *functions)

    @classmethod
    def from_velocity(cls, f: Callable[[np.ndarray, float], ArrayLike], d: int, sigma_min: float = 0.01, sigma_max: float = 100) -> Prior:
        """A prior given by a flow, as flow matching and stochastic interpolants learn it: `from_oracle` with theta = x_t - t f(x_t, t) for t = sigma / (1 + sigma).

        Parameters
        ----------
        f : callable
            f(x[m, d], t) -> E[z - theta | x_t = x][m, d], the velocity of x_t = (1 - t) theta + t z, with z standard normal and t from 0 (theta) to 1, a float.
            If it has an attribute jvp, f.jvp(x, t, v[m, d]) is the product of its Jacobian with each row of v.
        d : int
            Entries of theta.
        sigma_min, sigma_max : float
            As in `from_oracle`: t lies between sigma_min / (1 + sigma_min) and sigma_max / (1 + sigma_max).
        """
        d, product = library.count("d", d), getattr(f, "jvp", None)
        if not callable(f):
            raise TypeError(f"f is {f!r}: a function is needed")

        def oracle(x, sigma):
            t, at = sigma / (1 + sigma), x / (1 + sigma)
            return at - t * library.doubles(f(at, t), len(x), d)

        def multiply(x, sigma, v):
            t, along = sigma / (1 + sigma), v / (1 + sigma)
            return along - t * library.doubles(product(x / (1 + sigma), t, along), len(x), d)

        if product:
            oracle.jvp = multiply
        return cls.from_oracle(oracle, d, sigma_min, sigma_max)

    @classmethod
    def _of_function(cls, create, *arguments):
        self = cls._made_by(create, *arguments, None)
        self._function = arguments  # live as long as the prior
        return self

    @property
    def dimension(self) -> int:
        """d."""
        return library.prior_dimension(self._handle)

    @property
    def family(self) -> str:
        """gaussian, mixture, diffusion or denoiser; given, score_network or oracle for a function of your own."""
        return library.prior_family(self._handle).decode()

    def save(self, path: str | os.PathLike) -> None:
        """Write a prior file, for `prior.file` of a study and for `thompson sample`."""
        library.prior_save(self._handle, library.path(path))

    def sample(self, m: int, seed: int = 1) -> np.ndarray:
        """m samples of the prior itself, shape (m, d)."""
        theta = np.empty((library.count("samples", m), self.dimension))
        library.prior_sample(self._handle, m, library.seed_of(seed), theta.ctypes.data)
        return theta

    def __repr__(self) -> str:
        return f"<thompson.Prior: {self.family} in {self.dimension} dimensions>"


def answering(name, f, ask):
    """`ask`, which calls the user's f, as the library calls it: returns 0, or 1 once f has raised; f is then not called again until the call has ended."""
    if not callable(f):
        raise TypeError(f"{name} is {f!r}: a function is needed")

    def call(*arguments):
        try:
            if getattr(library.RAISED, "error", None):
                return 1
            ask(*arguments)
            return 0
        except BaseException as error:
            library.RAISED.error = error
            return 1

    return call


def array_at(pointer, *shape):
    return np.ctypeslib.as_array(pointer, shape)


def bytes_of(thing):
    """What `thing.save` writes, for a prior, a posterior or agents."""
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        file = pathlib.Path(folder, "saved.nc")
        thing.save(file)
        return file.read_bytes()


def of_bytes(kind, content):
    """The object that `bytes_of` was given."""
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        file = pathlib.Path(folder, "saved.nc")
        file.write_bytes(content)
        return kind.open(file)


def interruptible(function, progress):
    """The result of function(stop), a long call of the library that learns a prior, made in its own thread so that KeyboardInterrupt can arrive meanwhile. An
    interrupt sets `stop` and waits for the call to end; a second one does not wait."""
    outcome, stop = concurrent.futures.Future(), ctypes.c_int(0)

    def call():
        try:
            outcome.set_result(function(stop))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=call, name="thompson.train", daemon=True)
    try:
        thread.start()
        return Progress(progress).wait(outcome, "learning a prior")
    except KeyboardInterrupt:
        stop.value = 1
        thread.join()
        raise


def train(theta: ArrayLike | None = None, family: str = "mixture", ranks: int = 1, seed: int = 1, logs: str | os.PathLike | tuple | None = None,
          likelihood: str | None = None, noise: float | str | None = None, progress: bool | None = None, **options) -> Prior:
    """Learn a prior from past tasks.

    Parameters
    ----------
    theta : array_like, shape (n, d)
        Samples of the parameters of past tasks.
    family : str
        mixture, gaussian, diffusion or denoiser (`thompson list priors`).
    ranks : int
        Processes that share the work; the result does not depend on their number.
    seed : int
        Determines the random numbers.
    logs : path, or (task[n], x[n, d], y[n])
        In place of theta: observations from tasks whose parameters are unknown.
    likelihood : str
        The kind of rewards in logs; gaussian by default.
    noise : float or "estimate"
        Standard deviation of Gaussian rewards in logs.
    progress : bool, optional
        Show on standard error how far it is: always, never, or, by default, once it has taken three seconds.
    **options
        The keys `prior.*` of a study: components=5, stages=50.

    Notes
    -----
    Logs, and several ranks, need the program `thompson`.
    """
    if (theta is None) == (logs is None):
        raise TypeError("give either theta or logs")
    if logs is None and (likelihood is not None or noise is not None):
        raise TypeError("likelihood and noise need logs")
    ranks, seed = library.count("ranks", ranks), library.seed_of(seed)
    if theta is not None:
        theta = library.doubles(theta, None, None)
        if ranks == 1:
            theta = theta.copy()  # the thread's own copy
            text = library.options_text({"seed": seed, **options})
            _warn_of_few(len(theta), options.get("components", 1) if family == "mixture" else 1)
            family = library.word("family", family)
            return Prior._made_by(lambda out: interruptible(lambda stop: library.prior_from_theta_until(theta.ctypes.data, *theta.shape, family, text, stop, out), progress))
    settings = [word for key, value in options.items() for word in ("--option", library.options_text({key: value}).decode())]
    for name, value in (("--likelihood", likelihood), ("--noise", noise)):
        settings += [] if value is None else [name, value]
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        file = os.path.join(folder, "prior.nc")
        source = ("--theta", _write_theta(theta, folder)) if logs is None else ("--logs", _logs_file(logs, folder))
        studies.call("train", *source, "--family", family, "--seed", seed, *settings, "-o", file, ranks=ranks, progress=progress)
        return Prior.open(file)


def _warn_of_few(tasks, components):
    """Give the program's warning about few tasks."""
    if isinstance(components, int) and tasks < 10 * components:
        library.warn(f"{tasks} past tasks for a prior of {components} components: with fewer than 10 for each it follows single tasks, and a posterior "
                     "under it may be far too certain")


def _write_theta(theta, folder):
    path = os.path.join(folder, "theta.csv")
    np.savetxt(path, theta, delimiter=",", fmt="%.16e")  # a whole number must not look like an index
    return path


def _logs_file(logs, folder):
    """A file of logs: the named one, or one made from the arrays, with tasks numbered in order of first appearance."""
    if isinstance(logs, (str, os.PathLike)):
        return os.fspath(logs)
    import xarray as xr
    task, x, y = logs
    x = library.doubles(x, None, None)
    y = library.doubles(y, len(x))
    first, number = np.unique(library.unmasked("task", task), return_index=True, return_inverse=True)[1:]
    if number.shape != y.shape:
        raise ValueError(f"task has shape {number.shape}, but there are {len(y)} observations")
    place = np.empty(len(first), "i4")
    place[np.argsort(first)] = np.arange(len(first))
    path = os.path.join(folder, "logs.nc")
    xr.Dataset({"task": ("observation", place[number]), "x": (("observation", "dim"), x), "y": ("observation", y)}).to_netcdf(path)
    return path
