"""libthompson by ctypes: its functions with their types, and its errors as exceptions (thompson.h says what each one does)."""
import ctypes
import ctypes.util
import os
import pathlib

import numpy as np

SONAME = "libthompson.so.0"
BAD_INPUT = 3  # status of what a user gave and can mend


class Error(Exception):
    """What the library, the program or a reader of its files refused, in one sentence; `code` is its status (`thompson --help` lists them)."""

    def __init__(self, sentence, code=BAD_INPUT):
        super().__init__(sentence)
        self.code = code


def beside(*names):
    """The first file of these names, relative to a prefix, in the prefix that this package is installed in; or None."""
    for folder in pathlib.Path(__file__).resolve().parents:
        for name in names:
            for file in sorted(folder.glob(name)):
                return str(file)
    return None


def load():
    path = os.environ.get("THOMPSON_LIBRARY") or beside(f"lib/{SONAME}", f"lib64/{SONAME}", f"lib/*/{SONAME}") or ctypes.util.find_library("thompson")
    if not path:
        raise ImportError(f"{SONAME} was found neither beside this package nor by the system; install thompson, or name the file in THOMPSON_LIBRARY")
    return ctypes.CDLL(path)


HANDLE, ARRAY, TEXT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
INT, SEED = ctypes.c_int, ctypes.c_uint64
OUT = ctypes.POINTER(ctypes.c_void_p)

# Function: type of the result, types of the arguments. A result of STATUS is checked.
STATUS = object()
FUNCTIONS = {
    "version": (TEXT,),
    "error": (TEXT,),
    "prior_open": (STATUS, TEXT, OUT),
    "prior_from_theta": (STATUS, ARRAY, INT, INT, TEXT, TEXT, OUT),
    "prior_from_mixture": (STATUS, INT, INT, ARRAY, ARRAY, ARRAY, OUT),
    "prior_save": (STATUS, HANDLE, TEXT),
    "prior_sample": (STATUS, HANDLE, INT, SEED, ARRAY),
    "prior_dimension": (INT, HANDLE),
    "prior_family": (TEXT, HANDLE),
    "prior_close": (None, HANDLE),
    "posterior_new": (STATUS, HANDLE, TEXT, TEXT, TEXT, SEED, OUT),
    "observe": (STATUS, HANDLE, INT, ARRAY, ARRAY),
    "forget": (STATUS, HANDLE),
    "draw": (STATUS, HANDLE, INT, ARRAY),
    "choose": (STATUS, HANDLE, INT, ARRAY, ctypes.POINTER(INT)),
    "fallbacks": (ctypes.c_int64, HANDLE),
    "posterior_free": (None, HANDLE),
}


def check(code, _function, _arguments):
    if code:
        raise Error(error().decode(), code)
    return code


def __getattr__(name):
    """A function of the library. It is loaded when one is first needed: to read results takes none."""
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


def doubles(values, *shape):
    """A row-major array of doubles of this shape; None stands for any length."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != len(shape) or any(wanted is not None and have != wanted for have, wanted in zip(array.shape, shape)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"an array of shape {array.shape} where ({wanted}) is needed")
    return array


def options_text(options):
    """{"steps": 10, "hidden": [8, 8]} as "steps=10,hidden=[8,8]"."""
    def text(value):
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        if isinstance(value, (list, tuple, np.ndarray)):
            return f"[{','.join(map(text, value))}]"
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)

    return ",".join(f"{key}={text(value)}" for key, value in options.items()).encode()
