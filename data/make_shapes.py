#!/usr/bin/env python3
"""Artificial pictures for the deblurring example (docs/deblurring.md): discs, rings, bars and crosses of random place and size.

Writes shapes.nc, pictures from which to learn a prior, as theta(sample, dim), and blurred.nc, an inverse problem y = A x + noise: the rows
of a Gaussian blur A as x(observation, dim), the observations as y(observation), and the true picture, which is not in any training
set, as truth(dim). A picture of SIDE x SIDE pixels is a vector, row by row.
"""
import argparse
import pathlib

import numpy as np
import xarray as xr

SIDE, PICTURES = 8, 20000
BLUR, NOISE = 0.7, 0.4       # standard deviations: of the blur in pixels, of the noise
SOFT = 0.5                   # half the width of an edge, in pixels


def inside(distance):
    """1 where the signed distance to an edge is below 0, with a soft edge."""
    return np.clip(0.5 - distance / (2 * SOFT), 0, 1)


def shapes(rng, count):
    """Pictures [count, SIDE * SIDE] with values from 0 to 1."""
    row, column = np.mgrid[:SIDE, :SIDE] + 0.5
    centre = rng.uniform(0.25 * SIDE, 0.75 * SIDE, (2, count, 1, 1))
    size, kind = rng.uniform(0.2 * SIDE, 0.4 * SIDE, (count, 1, 1)), rng.integers(4, size=(count, 1, 1))
    y, x = row - centre[0], column - centre[1]
    radius, thick = np.hypot(y, x), 0.3 * size
    bars = [np.maximum(abs(a) - thick, abs(b) - size) for a, b in ((x, y), (y, x))]
    distance = np.select([kind == 0, kind == 1, kind == 2], [radius - size, abs(radius - size) - thick, bars[0]],
                         np.minimum(*bars))
    return inside(distance).reshape(count, -1)


def blur():
    """The matrix of a Gaussian blur; everything beyond the frame is dark."""
    line = np.exp(-0.5 * ((np.arange(SIDE)[:, None] - np.arange(SIDE)) / BLUR) ** 2) / (np.sqrt(2 * np.pi) * BLUR)
    return np.kron(line, line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="where to write (default: here)")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    folder, rng = pathlib.Path(arguments.folder), np.random.default_rng(arguments.seed)
    matrix, truth = blur(), shapes(rng, 1)[0]
    observed = matrix @ truth + NOISE * rng.standard_normal(len(truth))
    folder.mkdir(parents=True, exist_ok=True)
    xr.Dataset({"theta": (("sample", "dim"), shapes(rng, PICTURES))}).to_netcdf(folder / "shapes.nc")
    xr.Dataset({"x": (("observation", "dim"), matrix), "y": ("observation", observed), "truth": ("dim", truth)},
               attrs={"noise": NOISE}).to_netcdf(folder / "blurred.nc")
    print(f"{folder / 'shapes.nc'}\n{folder / 'blurred.nc'}")


if __name__ == "__main__":
    main()
