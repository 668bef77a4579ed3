"""What tests of the program's files share: samples of theta, a prior and a study, all tiny, and the commands that use them."""

import numpy as np
import xarray as xr

import program

THETA = np.random.default_rng(3).normal(size=(40, 2))
STUDY = """
name: tiny
runs: 4
block: 2
problem: {arms: 3, rounds: 4}
policies: %s
"""


class TinyTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.theta = self.path("theta.csv")
        np.savetxt(self.theta, THETA, delimiter=",")
        self.prior = self.path("prior.nc")
        xr.Dataset({"weight": ("component", [1.0]), "mean": (("component", "dim"), [[0.0, 0.0]]),
                    "covariance": (("component", "dim", "dim2"), [np.eye(2)])}, attrs={"prior": "gaussian"}).to_netcdf(self.prior)

    def sample(self, data, **options):
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return ["sample", "--prior", self.prior, "--data", data, "--sampler", "ts", "-n", "50", "-o", self.path("draws.nc"), *words]

    def train(self, theta, *options):
        return ["train", "--theta", theta, "--family", "gaussian", "-o", self.path("trained.nc"), *options]
