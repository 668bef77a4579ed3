#!/usr/bin/env python3
"""Pictures for the deblurring example (docs/deblurring.md): made ones, which are discs, rings, bars and crosses of random place and size, or
the digits in your own copy of MNIST.

Writes shapes.nc, pictures from which to learn a prior, as theta(sample, dim), and blurred.nc, an inverse problem y = A x + noise: the rows
of a Gaussian blur A as x(observation, dim), the observations as y(observation), and the true picture, which is not among those of shapes.nc, as
truth(pixel). A picture of SIDE x SIDE pixels is a vector, row by row.

With --components K also components.nc and blurred_components.nc, the same for the first K principal components of a picture in place of its
pixels: x is A times these, and y lacks A times the mean picture. The second file has the components as basis(dim, pixel), the mean as
centre(pixel), and A x + noise as observed(observation) too: theta belongs to the picture centre + theta basis.
"""
import argparse
import gzip
import pathlib

import numpy as np
import xarray as xr

BLUR, NOISE = 0.7 / 8, 0.4   # standard deviations: of the blur in units of the side, of the noise
SOFT = 0.5                   # half the width of an edge, in pixels
PART = 1000                  # pictures that are made at a time
IDX_PICTURES = 2051          # how a file of pictures begins


def inside(distance):
    """1 where the signed distance to an edge is below 0, with a soft edge."""
    return np.clip(0.5 - distance / (2 * SOFT), 0, 1)


def shapes(rng, count, side):
    """Pictures [count, side * side] with values from 0 to 1."""
    row, column = np.mgrid[:side, :side] + 0.5
    centre = rng.uniform(0.25 * side, 0.75 * side, (2, count, 1, 1))
    size, kind = rng.uniform(0.2 * side, 0.4 * side, (count, 1, 1)), rng.integers(4, size=(count, 1, 1))
    y, x = row - centre[0], column - centre[1]
    radius, thick = np.hypot(y, x), 0.3 * size
    bars = [np.maximum(abs(a) - thick, abs(b) - size) for a, b in ((x, y), (y, x))]
    distance = np.select([kind == 0, kind == 1, kind == 2], [radius - size, abs(radius - size) - thick, bars[0]],
                         np.minimum(*bars))
    return inside(distance).reshape(count, -1)


def digits(path):
    """The pictures of a file of MNIST, gzip or not: [count, side * side] with values from 0 to 1."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    magic, count, rows, columns = np.frombuffer(data[:16].ljust(16, b"\0"), ">i4")
    if magic != IDX_PICTURES or rows != columns or len(data) != 16 + count * rows * columns:
        raise SystemExit(f"{path}: not a file of square pictures in the format of MNIST, such as train-images-idx3-ubyte.gz")
    return np.frombuffer(data, np.uint8, offset=16).reshape(count, -1) / 255


def pictures(rng, arguments):
    """The true picture, and the others [count, pixels]."""
    count = 1 + arguments.pictures
    if arguments.digits:
        made = rng.permutation(digits(arguments.digits))[:count]
    else:
        made = np.concatenate([shapes(rng, min(PART, count - first), arguments.side) for first in range(0, count, PART)])
    return made[0], made[1:]


def blur(side):
    """The matrix of a Gaussian blur; everything beyond the frame is dark."""
    width = BLUR * side
    line = np.exp(-0.5 * ((np.arange(side)[:, None] - np.arange(side)) / width) ** 2) / (np.sqrt(2 * np.pi) * width)
    return np.kron(line, line)


def components(known, count):
    """The mean picture, and the first principal components as the orthonormal rows of a matrix."""
    variance, vectors = np.linalg.eigh(np.cov(known, rowvar=False))
    print(f"{count} components hold {100 * variance[-count:].sum() / variance.sum():.1f}% of the variance of the pictures")
    return known.mean(axis=0), vectors.T[::-1][:count]


def write(path, variables, **attributes):
    xr.Dataset(variables, attrs=attributes).to_netcdf(path)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="where to write (default: here)")
    parser.add_argument("--side", type=int, default=28, help="pixels of a side (default: 28)")
    parser.add_argument("--pictures", type=int, default=20000, help="how many to learn from (default: 20000)")
    parser.add_argument("--digits", metavar="FILE", type=pathlib.Path, help="take pictures from this file of MNIST instead of making shapes")
    parser.add_argument("--components", metavar="K", type=int, help="write files for this many principal components, too")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    folder, rng = pathlib.Path(arguments.folder), np.random.default_rng(arguments.seed)
    truth, known = pictures(rng, arguments)
    matrix = blur(int(np.sqrt(truth.size)))
    observed = matrix @ truth + NOISE * rng.standard_normal(truth.size)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "shapes.nc", {"theta": (("sample", "dim"), known.astype("f4"))})
    problem = {"x": (("observation", "dim"), matrix), "y": ("observation", observed), "truth": ("pixel", truth)}
    write(folder / "blurred.nc", problem, noise=NOISE)
    if arguments.components:
        centre, basis = components(known, arguments.components)
        write(folder / "components.nc", {"theta": (("sample", "dim"), (known - centre) @ basis.T)})
        problem |= {"x": (("observation", "dim"), matrix @ basis.T), "y": ("observation", observed - matrix @ centre),
                    "basis": (("dim", "pixel"), basis), "centre": ("pixel", centre), "observed": ("observation", observed)}
        write(folder / "blurred_components.nc", problem, noise=NOISE)


if __name__ == "__main__":
    main()
