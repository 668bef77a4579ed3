#!/usr/bin/env python3
"""Posterior draws of a blurred picture (docs/deblurring.md): the truth, the observations, mean and standard deviation of the draws
for each pixel, and some of the draws.

Reads the history that data/make_shapes.py wrote, with truth(dim), and one or more files of draws from `thompson sample`, and draws a row of
pictures for each; prints root mean squared errors; writes figure_tilted_deblur.png.
"""
import needs
import math
import pathlib

import numpy as np

from thompson import Error, store
import drawing
import script
import style
from style import plt

SHOWN = 5       # draws
RANGE = (0, 1)  # of pixel values


def history(path):
    """truth and y of the history, as square pictures."""
    dataset = store.checked(path, store.opened(path, "data/make_shapes.py writes it"), {"truth": ("dim",), "y": ("observation",)},
                           "data/make_shapes.py writes it")
    return square(path, dataset["truth"].values), square(path, dataset["y"].values)


def draws(path, pixels):
    """Pictures [draw, pixels] and the name of their sampler."""
    what = "`thompson sample` writes it"
    dataset = store.checked(path, store.opened(path, what), {"theta": ("draw", "dim")}, what)
    theta = dataset["theta"].values
    if theta.shape[1] != pixels:
        raise Error(f"{path}: draws of {theta.shape[1]} numbers, but the picture has {pixels}")
    return theta, dataset.attrs.get("sampler", path.stem)


def square(path, vector):
    side = math.isqrt(len(vector))
    if side * side != len(vector):
        raise Error(f"{path}: {len(vector)} numbers are not a square picture")
    return vector.reshape(side, side)


def error(picture, truth):
    """Root mean square over pixels."""
    return float(np.sqrt(np.mean((picture - truth) ** 2)))


def show(axis, picture, title, limits=RANGE, colours="gray"):
    image = axis.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1])
    axis.set_title(title, fontsize=8)
    axis.set_xticks([])
    axis.set_yticks([])
    return image


def draw(truth, observed, samples):
    """The whole figure; samples: {name: pictures [draw, pixels]}."""
    style.use()
    figure, axes = plt.subplots(len(samples), 4 + SHOWN, squeeze=False,
                                figsize=style.LOOK.size or (1.15 * (4 + SHOWN), 1.45 * len(samples)),
                                layout="constrained")
    spreads = [theta.std(axis=0) for theta in samples.values()]
    most = max(spread.max() for spread in spreads)
    for row, (name, theta), spread in zip(axes, samples.items(), spreads):
        show(row[0], truth, "truth")
        show(row[1], observed, "observed")
        show(row[2], theta.mean(axis=0).reshape(truth.shape), "posterior mean")
        image = show(row[3], spread.reshape(truth.shape), "posterior sd", (0, most), "magma")
        for k, axis in enumerate(row[4:]):
            show(axis, theta[k * len(theta) // SHOWN].reshape(truth.shape), f"draw {k + 1}")
        row[0].set_ylabel(name)
    figure.colorbar(image, ax=axes[:, -1], shrink=0.8, label="sd")
    return figure


def main():
    parser = drawing.options(__doc__, values=False)
    parser.add_argument("history", metavar="HISTORY", type=pathlib.Path, help="what was observed, with the truth")
    parser.add_argument("draws", metavar="DRAWS", type=pathlib.Path, nargs="+", help="posterior draws")
    arguments = drawing.parse(parser)
    paths = arguments.output or [pathlib.Path("figure_tilted_deblur.png")]
    truth, observed = history(arguments.history)
    samples = {}
    print(f"observed: error {error(observed, truth):.3f}")
    for path in arguments.draws:
        theta, name = draws(path, truth.size)
        label = name if name not in samples else path.stem
        samples[label] = theta
        mean, spread = theta.mean(axis=0).reshape(truth.shape), theta.std(axis=0).reshape(truth.shape)
        print(f"{label}: error of the posterior mean {error(mean, truth):.3f}, posterior sd {error(spread, 0):.3f}")
    drawing.save(draw(truth, observed, samples), paths)


if __name__ == "__main__":
    script.run(main)
