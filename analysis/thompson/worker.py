"""The process next to a rank that runs the user's own code: a sampler for policy `python` (docs/python.md), or a denoising oracle as a prior
(docs/oracles.md).

The program carries this file, starts it with `python3 -c`, the kind of what it serves and the names of a module and of a callable in it, and talks to
it over its standard input, a socket. A sampler is told about its block, and in each request what every run has observed since the last; the answer is
theta. An oracle finds its arguments in memory that both processes see, descriptor 3, and leaves its results there. It needs only NumPy.
"""
import faulthandler
import importlib
import mmap
import os
import socket
import struct
import sys
import time
import traceback
import types

BEGIN = struct.Struct("=QQqqqqd32s")  # seed, first run, runs, d, arms, rounds, noise, likelihood
REQUEST = struct.Struct("=qqq")       # new observations of every run, rounds played, draws (0: one theta, for a bandit)
ORACLE = struct.Struct("=qq")         # d, most rows of a call
ASK = struct.Struct("=qqd")           # what, rows, sigma
MEAN, PRODUCT = range(2)
SHARED = 3
ANSWER = struct.Struct("=qq")         # kind, bytes that follow
OK, ERROR = range(2)
LONGEST = 399                         # most bytes of a sentence
PROCESS = os.getpid()


class About(types.SimpleNamespace):
    """What a sampler is told about its block."""

    def __getitem__(self, name):
        raise TypeError(f"about[{name!r}] must be written about.{name}; about has {', '.join(sorted(vars(self)))}")


class Refused(Exception):
    """What the program is to report about the sampler."""


def read(stream, size):
    """Read `size` bytes; ends the process if the program has closed its end."""
    content = stream.read(size)
    if len(content) < size:
        sys.exit()
    return content


def end_fork():
    """End a process that the user's code has forked: it is not asked, and shares what answers are made of."""
    if os.getpid() != PROCESS:
        os._exit(1)


def answer(stream, kind, content=b""):
    """Answer a request."""
    end_fork()
    stream.write(ANSWER.pack(kind, len(content)) + content)
    stream.flush()


def raised(error):
    """An exception of the user's code in one sentence, with the line of it that led there, rather than one of a package that it calls."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(("<string>", "<frozen"))]
    own = [frame for frame in frames if "-packages" not in frame.filename] or frames
    place = f" ({os.path.basename(own[-1].filename)}, line {own[-1].lineno})" if own else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def find(module, name):
    """Find the callable."""
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except BaseException as error:
        raise Refused(raised(error)) from error
    if not callable(found):
        raise Refused("it cannot be called")
    return found


def draw(np, sampler, x, y, rng, about, draws):
    """theta[runs, d] for one round, or theta[runs, draws, d]."""
    try:
        theta = np.asarray(sampler(x, y, rng, about))
        if np.iscomplexobj(theta):
            raise TypeError("complex numbers where real ones are needed")
        theta = theta.astype(np.float64)
    except BaseException as error:
        raise Refused(raised(error)) from error
    runs, d = x.shape[0], x.shape[2]
    shape = (runs, draws, d) if draws else (runs, d)
    if theta.shape not in (shape, (runs, about.draws, d)):
        raise Refused(f"returned an array of shape {theta.shape} where {shape} is needed")
    broken = np.flatnonzero(~np.isfinite(theta.reshape(runs, -1)).all(axis=1))
    if broken.size:
        raise Refused(f"returned a theta that is not finite, for run {broken[0] + about.first_run}")
    return theta


def serve(np, stream, sampler):
    """Answer one request of a block after another."""
    seed, first_run, runs, d, arms, rounds, noise, likelihood = BEGIN.unpack(read(stream, BEGIN.size))
    about = About(likelihood=likelihood.rstrip(b"\0").decode(), noise=noise, arms=arms, rounds=rounds, first_run=first_run, round=0)
    x, y = np.empty((runs, rounds, d)), np.empty((runs, rounds))
    t, spent = 0, time.process_time()
    while True:
        rows, played, draws = REQUEST.unpack(read(stream, REQUEST.size))
        for _ in range(rows):
            row = np.frombuffer(read(stream, 8 * runs * (d + 1))).reshape(runs, d + 1)
            x[:, t], y[:, t] = row[:, :d], row[:, d]
            t += 1
        seen = x[:, :t], y[:, :t]
        for array in seen:
            array.flags.writeable = False
        about.round, about.draws = played + 1, draws or 1
        theta = draw(np, sampler, *seen, np.random.default_rng([seed, first_run, played + 1]), about, draws)
        now = time.process_time()
        answer(stream, OK, struct.pack("=d", now - spent) + theta.tobytes())
        spent = now


def evaluate(np, function, arguments):
    """What the oracle returns for x[m, d], an array of that shape."""
    shape = arguments[0].shape
    try:
        result = function(*arguments)
        array = np.asarray(result)
    except BaseException as error:
        raise Refused(raised(error)) from error
    if isinstance(result, np.ma.MaskedArray) and np.ma.is_masked(result):
        raise Refused("returned masked values")
    if array.dtype.kind != "f":
        raise Refused(f"returned values of type {array.dtype} where float64 or float32 is needed")
    if array.shape != shape:
        raise Refused(f"returned an array of shape {array.shape} where {shape} is needed")
    if not np.isfinite(array).all():
        row = np.flatnonzero(~np.isfinite(array).all(axis=1))[0]
        raise Refused(f"returned a value that is not finite, in row {row} of {shape[0]}")
    return array


def serve_oracle(np, stream, oracle):
    """Answer one call after another."""
    d, batch = ORACLE.unpack(read(stream, ORACLE.size))
    shared = mmap.mmap(SHARED, 8 * 3 * batch * d)
    os.close(SHARED)
    x, v, out = np.frombuffer(shared).reshape(3, batch, d)
    product = getattr(oracle, "jvp", None)
    answer(stream, OK, struct.pack("=q", callable(product)))
    spent = time.process_time()
    while True:
        what, m, sigma = ASK.unpack(read(stream, ASK.size))
        result = evaluate(np, oracle, (x[:m], sigma)) if what == MEAN else evaluate(np, product, (x[:m], sigma, v[:m]))
        end_fork()
        out[:m] = result
        now = time.process_time()
        answer(stream, OK, struct.pack("=d", now - spent))
        spent = now


SERVE = {"policy": serve, "oracle": serve_oracle}


def main():
    faulthandler.enable()
    try:
        import numpy as np
    except ImportError:
        return  # the program tries another interpreter
    with socket.socket(fileno=0) as channel, channel.makefile("rwb") as stream:
        answer(stream, OK)
        try:
            kind, module, name = sys.argv[1:]
            found = find(module, name)
            answer(stream, OK)
            SERVE[kind](np, stream, found)
        except Refused as refusal:
            answer(stream, ERROR, str(refusal).encode()[:LONGEST])


if __name__ == "__main__":
    main()
