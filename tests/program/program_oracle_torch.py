#!/usr/bin/env python3
"""docs/denoiser.py: a network of PyTorch as a prior, in the library and in studies on one and two ranks. Skipped where PyTorch is not installed: it is no
package that jobs/install_debian.sh installs (python3-torch). Each task imports it, which takes a second or two."""

import importlib.util
import os
import sys
import unittest

import netCDF4
import numpy as np
import program

DOCS = os.path.join(program.SOURCE, "docs")
STUDY = """
name: torch
study: posterior
seed: 1
runs: 2
block: 1
draws: 300
metrics: [{metrics}]
problem: {{theta: mixture, file: {prior}, arms: 10, sample_sizes: [1], noise: 0.2}}
prior: {{family: oracle, module: {module}, callable: oracle, sigma_min: 0.01, sigma_max: 20, stages: 30}}
policies: [{{name: twisted, prior: oracle, cloud_particles: 300}}]
"""
# Reads the batch without a copy in double precision, in the same memory at each call, with one thread.
SHARED = '''
import os, torch
from denoiser import Oracle as Single

places = set()

class Oracle(Single):
    def __call__(self, x, sigma):
        batch = torch.from_numpy(x)
        places.add(batch.data_ptr())
        assert batch.data_ptr() == x.ctypes.data and batch.dtype == torch.float64 and len(places) == 1
        assert torch.get_num_threads() == 1 and os.environ["THOMPSON_LOCAL_RANK"] in "01"
        return super().__call__(x, sigma)

oracle = Oracle()
'''
BROKEN = '''
import torch
from denoiser import Oracle as Single

class Oracle(Single):
    def __call__(self, x, sigma):
        return super().__call__(torch.zeros(3, 5).numpy(), sigma)

oracle = Oracle()
'''


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Torch(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sys.path.insert(0, DOCS)
        cls.addClassCleanup(sys.path.remove, DOCS)
        import denoiser
        import flow
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(1)
        cls.denoiser = denoiser
        cls.network = denoiser.train(flow.circle(20000, np.random.default_rng(1)), 600)

    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(2)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.denoiser.save(self.network, 2)
        self.environment = {"PYTHONPATH": f"{DOCS}:{self.folder}", "THOMPSON_PYTHON": sys.executable}

    def test_products(self):
        """Products by forward differentiation are those by central differences, in single precision: 1e-3 of numbers up to 6."""
        oracle = self.denoiser.Oracle(self.network)
        x, v = self.rng.standard_normal((50, 2)), self.rng.standard_normal((50, 2))
        for sigma in (0.05, 0.5, 5.0):
            difference = (oracle(x + 2e-3 * v, sigma).astype(float) - oracle(x - 2e-3 * v, sigma)) / 4e-3
            np.testing.assert_allclose(oracle.jvp(x, sigma, v), difference, atol=6e-3)

    def test_library(self):
        """Draws given the first coordinate, 0.9 with noise 0.2, are near the circle, on both sides of the axis, after a seventh of the training on the page."""
        os.environ.setdefault("THOMPSON_LIBRARY", os.path.join(os.environ["THOMPSON_BUILD"], "src", "library", "libthompson.so"))
        import thompson

        agent = thompson.Posterior(thompson.Prior.from_oracle(self.denoiser.Oracle(self.network), 2, 0.01, 20), noise=0.2, seed=1)
        agent.observe([[1.0, 0.0]], [0.9])
        theta = agent.draw(1000)
        self.assertLess(abs(np.hypot(*theta.T).mean() - 1.487), 0.15)  # a standard deviation and a half of the ring
        self.assertTrue(0.25 < (theta[:, 1] > 0).mean() < 0.75)

    def make(self, module, source="", metrics="rank"):
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:  # points on the circle, as a mixture
            file.prior = "mixture"
            angle = np.arange(12) * np.pi / 6
            for name, size in (("component", 12), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 1 / 12
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 1.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.multiply.outer(np.full(12, 0.05), np.eye(2))
        if source:
            self.write(f"{module}.py", source)
        self.write("study.yaml", STUDY.format(module=module, prior=self.path("prior.nc"), metrics=metrics))

    def run_study(self, out, ranks, code=0):
        process = program.thompson("run", self.path("study.yaml"), "-o", self.path(out), ranks=ranks, environment=self.environment, cwd=self.folder)
        self.assertEqual(process.returncode, code, process.stderr)
        return process.stderr

    def test_study(self):
        """The same bytes on one and two ranks; batches are read where they lie, and each rank has one thread."""
        self.make("shared", SHARED)
        self.run_study("one", 1)
        self.run_study("two", 2)
        self.assert_same_results(self.path("one/results.nc"), self.path("two/results.nc"))

    def test_failure(self):
        """The message of a failed task has the sentence of PyTorch, and the user's line that led there."""
        self.make("broken", BROKEN)
        said = self.run_study("out", 2, code=5)
        self.assertRegex(said, r"prior oracle: module broken, callable oracle, call 1 \(\d+ rows, sigma 20\): RuntimeError: mat1 and mat2 shapes cannot be multiplied .* \(denoiser.py, line \d+\)")


if __name__ == "__main__":
    program.main()
