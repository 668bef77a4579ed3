#!/usr/bin/env python3
"""Posterior draws of a blurred picture (docs/deblurring.md): the truth, the observations, mean and standard deviation of the draws
for each pixel, and some of the draws.

Reads the history that data/make_shapes.py wrote, and one or more files of draws from `thompson sample`. Draws a row of pictures for each file,
with its name on the left; prints root mean squared errors over pixels, the standard deviation of the draws, and in how many pixels the true
value lies between the 5% and the 95% quantile of the draws; writes figure_tilted_deblur.png.
"""
import needs
import dataclasses
import math
import pathlib

import numpy as np

from thompson import Error, store
import drawing
import script
import style
from style import plt

SHOWN = 5            # draws
RANGE = (0, 1)       # of pixel values
WIDEST = 0.5         # largest standard deviation of values in this range
CENTRAL = (5, 95)    # percentiles of the draws between which a true value is expected in nine of ten pixels


@dataclasses.dataclass
class Problem:
    """What was observed, and how a picture follows from theta, if that is not the picture itself."""
    truth: np.ndarray     # [side, side]
    observed: np.ndarray  # [side, side]
    centre: np.ndarray    # [pixels]
    basis: np.ndarray     # [dim, pixels]; None: theta are the pixels

    def pictures(self, path):
        """The pictures [draw, pixels] in a file of draws."""
        what = "`thompson sample` writes it"
        theta = store.checked(path, store.opened(path, what), {"theta": ("draw", "dim")}, what)["theta"].values
        allowed = [self.truth.size] if self.basis is None else [self.truth.size, len(self.basis)]
        if theta.shape[1] not in allowed:
            raise Error(f"{path}: draws of {theta.shape[1]} numbers, but the picture has {' pixels or '.join(map(str, allowed))}{' components' if allowed[1:] else ''}")
        return theta if theta.shape[1] == self.truth.size else self.centre + theta @ self.basis


def history(path):
    """The problem of the history."""
    what = "data/make_shapes.py writes it"
    dataset = store.opened(path, what)
    needed = {"x": ("observation", "dim"), "y": ("observation",), "truth": ("pixel",)}
    reduced = {"basis": ("dim", "pixel"), "centre": ("pixel",), "observed": ("observation",)} if "basis" in dataset.variables else {}
    dataset = store.checked(path, dataset, needed | reduced, what)
    found = {name: dataset[name].values for name in dataset.variables}
    return Problem(square(path, found["truth"]), square(path, found.get("observed", found["y"])), found.get("centre"), found.get("basis"))


def square(path, vector):
    side = math.isqrt(len(vector))
    if side * side != len(vector):
        raise Error(f"{path}: {len(vector)} numbers are not a square picture")
    return vector.reshape(side, side)


def error(picture, truth):
    """Root mean square over pixels."""
    return float(np.sqrt(np.mean((picture - truth) ** 2)))


@dataclasses.dataclass
class Scores:
    """What the draws say about the true picture."""
    error: float      # of their mean
    deviation: float  # of the draws, root mean square over pixels
    covered: float    # share of the pixels whose true value is within the central nine tenths of the draws

    def __str__(self):
        return f"error of the posterior mean {self.error:.3f}, posterior sd {self.deviation:.3f}, {100 * self.covered:.0f}% of the pixels within 90% intervals"


def scores(pictures, truth):
    """Scores of pictures [draw, pixels]."""
    low, high = np.percentile(pictures, CENTRAL, axis=0)
    return Scores(error(pictures.mean(axis=0), truth.ravel()), error(pictures.std(axis=0), 0), float(np.mean((low <= truth.ravel()) & (truth.ravel() <= high))))


def show(axis, picture, limits=RANGE, colours="gray"):
    image = axis.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1])
    axis.set_xticks([])
    axis.set_yticks([])
    return image


def draw(problem, samples):
    """The whole figure; samples: {name: pictures [draw, pixels]}."""
    style.use()
    figure, axes = plt.subplots(len(samples), 4 + SHOWN, squeeze=False,
                                figsize=style.LOOK.size or (1.15 * (4 + SHOWN), 0.3 + 1.15 * len(samples)),
                                layout="constrained")
    shape = problem.truth.shape
    spreads = [pictures.std(axis=0).reshape(shape) for pictures in samples.values()]
    most = min(max(spread.max() for spread in spreads), WIDEST)
    for row, (name, pictures), spread in zip(axes, samples.items(), spreads):
        show(row[0], problem.truth)
        show(row[1], problem.observed)
        show(row[2], pictures.mean(axis=0).reshape(shape))
        image = show(row[3], spread, (0, most), "magma")
        for k, axis in enumerate(row[4:]):
            show(axis, pictures[k * len(pictures) // SHOWN].reshape(shape))
        row[0].set_ylabel(name.replace(" ", "\n"), fontsize=8)  # one line for each word
    for axis, title in zip(axes[0], ["truth", "observed", "posterior mean", "posterior sd", *(f"draw {k + 1}" for k in range(SHOWN))]):
        axis.set_title(title, fontsize=8)
    figure.colorbar(image, ax=axes[:, -1], shrink=0.8, label="sd")
    return figure


def main():
    parser = drawing.options(__doc__, values=False)
    parser.add_argument("history", metavar="HISTORY", type=pathlib.Path, help="what was observed, with the truth")
    parser.add_argument("draws", metavar="DRAWS", type=pathlib.Path, nargs="+", help="posterior draws")
    arguments = drawing.parse(parser)
    paths = arguments.output or [pathlib.Path("figure_tilted_deblur.png")]
    problem = history(arguments.history)
    samples = {}
    print(f"observed: error {error(problem.observed, problem.truth):.3f}")
    for path in arguments.draws:
        name = path.stem.replace("_", " ")
        samples[name] = problem.pictures(path)
        print(f"{name}: {scores(samples[name], problem.truth)}")
    drawing.save(draw(problem, samples), paths)


if __name__ == "__main__":
    script.run(main)
