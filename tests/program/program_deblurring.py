#!/usr/bin/env python3
"""The commands of docs/deblurring.md, with a prior that is hardly trained: the data have the stated properties, and the picture and its
numbers come from the files.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

import figure_tilted_deblur
import program
import study_fixture
from program import SOURCE, ProgramTest


class Deblurring(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.data = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "data/make_shapes.py"), cls.data], stdout=subprocess.DEVNULL, check=True)

    def setUp(self):
        super().setUp()
        for name in ("shapes.nc", "blurred.nc"):
            os.symlink(os.path.join(self.data, name), self.path(name))

    def figure(self, *files):
        """Draw in the folder of the test: (exit status, stdout, stderr)."""
        with contextlib.chdir(self.folder):
            return study_fixture.call(figure_tilted_deblur, *files)

    def variable(self, file, name):
        with netCDF4.Dataset(self.path(file)) as data:
            return np.array(data[name][:])

    def test_data(self):
        shapes, matrix, truth = self.variable("shapes.nc", "theta"), self.variable("blurred.nc", "x"), self.variable("blurred.nc", "truth")
        self.assertEqual(matrix.shape, (shapes.shape[1], shapes.shape[1]))
        self.assertTrue(0 <= shapes.min() < 0.01 and 0.99 < shapes.max() <= 1)
        self.assertGreater(np.abs(shapes - truth).sum(axis=1).min(), 0)
        side = int(np.sqrt(len(truth)))
        point = matrix[:, side * 3 + 4].reshape(side, side)  # what one pixel becomes: a Gaussian with normalisation 2 pi 0.7^2
        np.testing.assert_allclose(point[3, 4], 1 / (2 * np.pi * 0.49), rtol=1e-12)
        np.testing.assert_allclose(point[4, 6] / point[3, 4], np.exp(-0.5 * 5 / 0.49), rtol=1e-12)
        noise = self.variable("blurred.nc", "y") - matrix @ truth
        with netCDF4.Dataset(self.path("blurred.nc")) as data:  # 5 standard errors
            self.assertLess(abs((noise ** 2).mean() / data.noise ** 2 - 1), 5 * np.sqrt(2 / len(noise)))

    def test_picture(self):
        with netCDF4.Dataset(self.path("few.nc"), "w") as file:  # all of them take half a minute
            few = self.variable("shapes.nc", "theta")[:100]
            for axis, length in zip(("sample", "dim"), few.shape):
                file.createDimension(axis, length)
            file.createVariable("theta", "f8", ("sample", "dim"))[:] = few
        self.succeed("train", "--theta", self.path("few.nc"), "-o", self.path("prior.nc"), "--option", "stages=3", "--option",
                     "hidden=[8]", "--option", "training_steps=5")
        for sampler in ("tilted", "diffts"):
            self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("blurred.nc"), "--sampler", sampler, "--noise",
                         0.25, "-n", 7, "-o", self.path(f"{sampler}.nc"))
        status, out, error = self.figure("blurred.nc", "tilted.nc", "diffts.nc")
        self.assertEqual((status, error), (0, ""))
        with open(self.path("figure_tilted_deblur.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        truth, draws = self.variable("blurred.nc", "truth"), self.variable("diffts.nc", "theta")
        found = re.search(r"diffts: error of the posterior mean ([\d.]+), posterior sd ([\d.]+)", out).groups()
        expected = [((draws.mean(axis=0) - truth) ** 2).mean() ** 0.5, draws.var(axis=0).mean() ** 0.5]
        np.testing.assert_allclose(list(map(float, found)), expected, atol=6e-4)

    def test_refusals(self):
        status, _, error = self.figure("blurred.nc", "shapes.nc")
        self.assertEqual((status, len(error.splitlines())), (3, 1), error)
        self.assertIn("dimensions", error)


if __name__ == "__main__":
    program.main()
