"""How close draws come to a posterior: what the scripts that measure this share. Sets of draws are [sets, draws, d]."""
import time

import numpy as np


def unit_rows(rng, n, d):
    """Features [n, d] of length 1."""
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def directions(rng, d, count):
    """Columns of length 1, the directions."""
    out = rng.standard_normal((d, count))
    return out / np.linalg.norm(out, axis=0)


def along(sets, columns):
    """Values of each set along each direction, sorted, for `distance`."""
    return np.sort(sets @ columns, axis=1)


def distance(a, b):
    """Mean W1 between each of the sets a[., draws, directions] and each of b, whose values are sorted along each direction."""
    return np.mean([np.abs(one - b).mean() for one in a])


def drawn(posterior, sets, draws, since):
    """Sets of draws of a posterior, and the CPU seconds since `since`, a time.process_time()."""
    return posterior.draw(sets * draws).reshape(sets, draws, -1), time.process_time() - since
