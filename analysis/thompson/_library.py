"""libthompson through ctypes: its functions with their types, and its errors as exceptions (thompson.h says what each one does)."""
import ctypes
import ctypes.util
import json
import numbers as kinds
import os
import pathlib
import re
import sys
import threading
import warnings

import numpy as np

SONAME = "libthompson.so.0"
BAD_INPUT = 3  # status of errors in what the user gave, which the user can correct
MOST_INT = 2 ** 31 - 1
MOST_SEED = 2 ** 53


class Error(Exception):
    """What the library, the program or a reader of its files refused, in one sentence; `code` is its status (`thompson --help` lists them)."""

    def __init__(self, sentence, code=BAD_INPUT):
        super().__init__(sentence)
        self.code = code


def warn(sentence):
    """Warn at the line outside this package that called it."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, stacklevel=level)


def beside(*names):
    """The first file with one of these names, relative to a prefix, in the prefix that this package is installed in; or None."""
    for folder in pathlib.Path(__file__).resolve().parents:
        for name in names:
            for file in sorted(folder.glob(name)):
                return str(file)
    return None


def of_wheel():
    """The library that a wheel carries in the package itself, or None."""
    file = pathlib.Path(__file__).resolve().with_name(SONAME)
    return str(file) if file.exists() else None


def load():
    path = os.environ.get("THOMPSON_LIBRARY") or of_wheel() or beside(f"lib/{SONAME}", f"lib64/{SONAME}", f"lib/*/{SONAME}") or ctypes.util.find_library("thompson")
    if not path:
        raise ImportError(f"{SONAME} was found neither next to this package nor by the system; install thompson, or name the file in THOMPSON_LIBRARY")
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded ({error}); it needs netCDF, HDF5, OpenBLAS, LAPACKE, SLEEF, libyaml and OpenSSL, which pip does not "
                          "install. On Debian: apt-get install libnetcdf-dev libopenblas-dev liblapacke-dev libsleef-dev libyaml-dev libssl-dev") from error


class Ended(ctypes.ArgumentError, AttributeError):
    """Use of an object that has ended, or was never made."""


class Handled:
    """What has a handle: an object of the library, which does not check that it exists."""

    __slots__ = ()

    def __getattr__(self, name):
        """Called for what is missing: there is no handle before an object is made, and none once it has ended."""
        if hasattr(type(self), name):
            raise Ended("this object has ended, or was never made")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Arguments(ctypes.Structure):
    """thompson_arguments."""
    _fields_ = [("sampler", ctypes.c_char_p), ("likelihood", ctypes.c_char_p), ("options", ctypes.c_char_p), ("seed", ctypes.c_uint64)]


class Arms(ctypes.Structure):
    """thompson_arms."""
    _fields_ = [("k", ctypes.c_int), ("features", ctypes.c_void_p), ("own", ctypes.c_int), ("available", ctypes.c_void_p)]


# Arguments are converted in C: an interrupt in a conversion in Python would become an ArgumentError.
HANDLE, ARRAY, TEXT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
INT, SEED = ctypes.c_int, ctypes.c_uint64
SCORE_NETWORK = ctypes.CFUNCTYPE(INT, ARRAY, INT, INT, ctypes.POINTER(ctypes.c_double), INT, ctypes.POINTER(ctypes.c_double))
ORACLE = ctypes.CFUNCTYPE(INT, ARRAY, INT, INT, ctypes.POINTER(ctypes.c_double), ctypes.c_double, ctypes.POINTER(ctypes.c_double))
PRODUCT = ctypes.CFUNCTYPE(INT, ARRAY, INT, INT, ctypes.POINTER(ctypes.c_double), ctypes.c_double, *[ctypes.POINTER(ctypes.c_double)] * 2)
LOG_DENSITY = ctypes.CFUNCTYPE(INT, ARRAY, INT, INT, *[ctypes.POINTER(ctypes.c_double)] * 2)  # and its gradient
DENOISER = ctypes.CFUNCTYPE(INT, ARRAY, INT, INT, *[ctypes.POINTER(ctypes.c_double)] * 4)
OUT = ctypes.POINTER(ctypes.c_void_p)


class LikelihoodFunctions(ctypes.Structure):
    """thompson_likelihood_functions."""
    _fields_ = [("log_density", LOG_DENSITY), ("gradient", LOG_DENSITY), ("context", ctypes.c_void_p)]


# Function: type of the result, types of the arguments. A result of type STATUS is checked.
STATUS = object()
FUNCTIONS = {
    "version": (TEXT,),
    "error": (TEXT,),
    "prior_open": (STATUS, TEXT, OUT),
    "prior_from_theta_until": (STATUS, ARRAY, INT, INT, TEXT, TEXT, ctypes.POINTER(INT), OUT),
    "prior_from_mixture": (STATUS, INT, INT, ARRAY, ARRAY, ARRAY, OUT),
    "prior_from_denoiser": (STATUS, INT, DENOISER, ARRAY, OUT),
    "prior_from_score_network": (STATUS, INT, INT, ARRAY, SCORE_NETWORK, ARRAY, OUT),
    "prior_from_oracle": (STATUS, INT, ctypes.c_double, ctypes.c_double, ORACLE, PRODUCT, ARRAY, OUT),
    "prior_save": (STATUS, HANDLE, TEXT),
    "prior_sample": (STATUS, HANDLE, INT, SEED, ARRAY),
    "prior_dimension": (INT, HANDLE),
    "prior_doubt": (TEXT, HANDLE),
    "prior_rewards": (TEXT, HANDLE),
    "prior_family": (TEXT, HANDLE),
    "prior_close": (None, HANDLE),
    "likelihood_from_functions": (STATUS, ctypes.POINTER(LikelihoodFunctions), OUT),
    "likelihood_free": (None, HANDLE),
    "posterior_from_likelihood": (STATUS, HANDLE, TEXT, HANDLE, TEXT, SEED, OUT),
    "posterior_new": (STATUS, HANDLE, TEXT, TEXT, TEXT, SEED, OUT),
    "posterior_copy": (STATUS, HANDLE, OUT),
    "posterior_arguments": (None, HANDLE, ctypes.POINTER(Arguments)),
    "posterior_save": (STATUS, HANDLE, TEXT),
    "posterior_open": (STATUS, TEXT, OUT, OUT),
    "p_value": (STATUS, HANDLE, ctypes.POINTER(ctypes.c_double)),
    "log_evidence": (STATUS, HANDLE, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)),
    "observation_count": (INT, HANDLE),
    "observations": (None, HANDLE, ARRAY, ARRAY),
    "posterior_noise": (ctypes.c_double, HANDLE),
    "observe": (STATUS, HANDLE, INT, ARRAY, ARRAY),
    "forget": (STATUS, HANDLE),
    "draw": (STATUS, HANDLE, INT, ARRAY),
    "choose": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(INT)),
    "probabilities": (STATUS, HANDLE, INT, ARRAY, ARRAY),
    "choose_propensity": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(INT), ctypes.POINTER(ctypes.c_double)),
    "score": (STATUS, HANDLE, INT, ARRAY, ARRAY, ARRAY),
    "fallbacks": (ctypes.c_int64, HANDLE),
    "posterior_free": (None, HANDLE),
    "agents_new": (STATUS, HANDLE, INT, TEXT, TEXT, TEXT, SEED, OUT),
    "agents_arguments": (None, HANDLE, ctypes.POINTER(Arguments)),
    "agents_save": (STATUS, HANDLE, TEXT),
    "agents_open": (STATUS, TEXT, OUT, OUT),
    "agents_observe": (STATUS, HANDLE, INT, ARRAY, ARRAY, ARRAY),
    "agents_choose_among": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(Arms), ARRAY, ARRAY),
    "agents_probabilities_among": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(Arms), ARRAY),
    "agents_score": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(Arms), ARRAY, ARRAY),
    "agents_p_value": (STATUS, HANDLE, INT, ARRAY, ARRAY),
    "agents_set_note": (STATUS, HANDLE, TEXT),
    "agents_note": (TEXT, HANDLE),
    "agents_draw": (STATUS, HANDLE, INT, ARRAY, INT, ARRAY),
    "agents_forget": (STATUS, HANDLE, INT, ARRAY),
    "age": (STATUS, HANDLE, INT),
    "agents_age": (STATUS, HANDLE, INT, ARRAY, INT),
    "agents_learn_prior_until": (STATUS, HANDLE, ctypes.POINTER(INT), OUT),
    "agents_add": (STATUS, HANDLE, INT),
    "agents_count": (INT, HANDLE),
    "agents_noise": (ctypes.c_double, HANDLE),
    "agents_fallbacks": (ctypes.c_int64, HANDLE),
    "agents_free": (None, HANDLE),
}


RAISED = threading.local()  # .error: what a function of the user's raised during a call of the library


def check(code, _function, _arguments):
    error_of_user, RAISED.error = getattr(RAISED, "error", None), None
    if error_of_user:
        raise error_of_user
    if code:
        raise Error(error().decode(errors="backslashreplace"), code)  # a path need not be UTF-8
    return code


def __getattr__(name):
    """A function of the library, which is loaded when one is first needed: reading results does not need it."""
    if name not in FUNCTIONS:
        raise AttributeError(name)
    library = load()
    for each, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, f"thompson_{each}")
        function.argtypes = arguments
        function.restype = INT if result is STATUS else result
        if result is STATUS:
            function.errcheck = check
        globals()[each] = function
    return globals()[name]


def unmasked(name, values):
    """An array; one with masked values is refused, as its other values would be used without the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{name} has masked values")
    return np.asarray(values)


def numbers(name, values):
    """An array of doubles of any shape, from real numbers: anything that would lose its meaning in the conversion (an imaginary part, a mask, a text) is refused."""
    array = unmasked(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} has values of type {array.dtype} where real numbers are needed")
    return array.astype(np.float64, copy=False)


def doubles(values, *shape):
    """A row-major array of doubles of this shape; None allows any length."""
    array = np.ascontiguousarray(numbers("the array", values)) if np.ndim(values) else np.empty(())
    if array.ndim != len(shape) or any(wanted is not None and have != wanted for have, wanted in zip(array.shape, shape)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"an array of shape {array.shape} where ({wanted}) is needed")
    return array


def integer(name, value, least, most):
    """An integer in a range: values that C would truncate are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds.Integral):
        raise TypeError(f"{name} is {value!r}: an integer is needed")
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}: an integer from {least} to {most} is needed")
    return int(value)


def flag(name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}: True or False is needed")
    return bool(value)


def count(name, value):
    return integer(name, value, 1, MOST_INT)


def seed_of(value):
    return integer("seed", value, 0, MOST_SEED)


def word(name, value):
    """A name of `thompson list`."""
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"{name} is {value!r}: a name is needed")
    return value.encode()


def path(value):
    name = os.fsencode(value)
    if b"\0" in name:
        raise ValueError(f"a path with a null byte: {value!r}")
    return name


def options_text(options):
    """{"steps": 10, "hidden": [8, 8], "memory": {"keep": 9}} as "steps=10,hidden=[8,8],memory.keep=9"."""
    def text(value):
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, (list, tuple, np.ndarray)):
            return f"[{','.join(map(text, value))}]"
        if isinstance(value, (float, np.floating)):
            return repr(float(value))
        if not isinstance(value, (str, kinds.Integral)) or re.search(r"[,\[\]=\0\s]", str(value)):
            raise ValueError(f"{value!r} is not a valid value of an option: a number, a word or a list of them is needed")
        return str(value)

    flat = {}
    for key, value in options.items():
        parts = value if isinstance(value, dict) else {None: value}     # memory={"keep": 100} is memory.keep=100
        for name in (key, *parts):
            if not (name is None or isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name)):
                raise ValueError(f"{name!r} is not a valid name of an option")
        flat.update({key if name is None else f"{key}.{name}": one for name, one in parts.items()})
    return ",".join(f"{key}={text(value)}" for key, value in flat.items()).encode()


def options_of(text):
    """The dictionary that `options_text` was given, from a text without spaces."""
    def value(word):
        if word.startswith("["):
            return [value(part) for part in word[1:-1].split(",")]
        try:
            return json.loads(word)
        except ValueError:
            return word

    return {key: value(word) for key, word in re.findall(r"([^=,]+)=(\[[^\]]*\]|[^,]*)", text)}
