"""Scores draws of any sampler with the program, on its frozen problems (docs/score.md)."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile

import numpy as np
from numpy.typing import ArrayLike

from . import _library as library
from . import studies


@dataclasses.dataclass(repr=False)
class Problem:
    """What a sampler is given: the prior, a mixture of Gaussians, and histories (x[n, d], y[n]); `draws` are wanted for each history."""
    weight: np.ndarray        # [components]
    mean: np.ndarray          # [components, d]
    covariance: np.ndarray    # [components, d, d]; if 0, the components are points
    histories: list
    likelihood: str
    noise: float
    draws: int

    def __repr__(self) -> str:
        components, d = self.mean.shape
        return f"<thompson.Problem: {components} Gaussians in {d} dimensions, {len(self.histories)} histories, {self.likelihood}, {self.draws} draws of each>"


def problems(name: str | None = None) -> dict[str, Problem]:
    """{name: Problem} for the whole set, or for one problem or prior file."""
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        place = pathlib.Path(folder, "problems")
        studies.call("score", "--export", place, *([] if name is None else ["--problem", name]))
        return {path.parent.name: read(path.parent) for path in sorted(place.glob("*/histories.nc"))}


def read(folder):
    import xarray as xr
    with xr.open_dataset(folder / "prior.nc") as prior, xr.open_dataset(folder / "histories.nc") as data:
        histories = [(data.x.values[h, :n], data.y.values[h, :n]) for h, n in enumerate(data.observations.values)]
        return Problem(prior["weight"].values, prior["mean"].values, prior["covariance"].values, histories, data.likelihood, float(data.noise),
                       int(data.draws))


def score(problem: str, theta: ArrayLike) -> dict:
    """What `thompson score --json` reports on theta[history, draw, d], with histories in the order of the problem."""
    import xarray as xr
    theta = library.doubles(theta, None, None, None)
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        path = os.path.join(folder, "draws.nc")
        xr.Dataset({"theta": (("history", "draw", "dim"), theta)}).to_netcdf(path)
        return json.loads(studies.call("score", "--problem", problem, "--draws", path, "--json"))
