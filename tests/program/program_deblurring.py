#!/usr/bin/env python3
"""The commands of docs/deblurring.md, with a prior that is hardly trained: the data have the stated properties, and the picture and its
numbers come from the files.
"""
import contextlib
import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from unittest import mock

import netCDF4
import numpy as np

import figure_tilted_deblur
import program
import study_fixture
from program import SOURCE, ProgramTest

sys.path.insert(0, os.path.join(SOURCE, "docs"))
import write_deblurring  # noqa: E402  (its folder has just been added)

MADE = ("shapes.nc", "blurred.nc", "components.nc", "blurred_components.nc")
SIDE, PICTURES, COMPONENTS = 8, 300, 20


def make(folder, *options):
    subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "data/make_shapes.py"), folder, *map(str, options)], stdout=subprocess.DEVNULL, check=True)


class Deblurring(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.data = cls.enterClassContext(tempfile.TemporaryDirectory())
        make(cls.data, "--side", SIDE, "--pictures", PICTURES, "--components", COMPONENTS)

    def setUp(self):
        super().setUp()
        for name in MADE:
            os.symlink(os.path.join(self.data, name), self.path(name))

    def figure(self, *files):
        """Draw in the folder of the test: (exit status, stdout, stderr)."""
        with contextlib.chdir(self.folder):
            return study_fixture.call(figure_tilted_deblur, *files)

    def variable(self, file, name):
        with netCDF4.Dataset(self.path(file)) as data:
            return np.array(data[name][:])

    def draw(self, pictures, history, sampler, name):
        """Posterior draws under a prior that is hardly trained."""
        learned = self.succeed("train", "--theta", self.path(pictures), "-o", self.path("prior.nc"), "--option", "stages=3", "--option",
                               "hidden=[8]", "--option", "training_steps=5")
        self.assertIn("a hidden layer with fewer units than theta has dimensions", learned.stderr)
        self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path(history), "--sampler", sampler, "--noise",
                     0.25, "-n", 7, "-o", self.path(name))

    def test_data(self):
        shapes, matrix, truth = self.variable("shapes.nc", "theta"), self.variable("blurred.nc", "x"), self.variable("blurred.nc", "truth")
        self.assertEqual(shapes.shape, (PICTURES, SIDE * SIDE))
        self.assertEqual(matrix.shape, (SIDE * SIDE, SIDE * SIDE))
        self.assertTrue(0 <= shapes.min() < 0.01 and 0.99 < shapes.max() <= 1)
        self.assertGreater(np.abs(shapes - truth).sum(axis=1).min(), 0)
        point = matrix[:, SIDE * 3 + 4].reshape(SIDE, SIDE)  # what one pixel becomes: a Gaussian with normalisation 2 pi 0.7^2
        np.testing.assert_allclose(point[3, 4], 1 / (2 * np.pi * 0.49), rtol=1e-12)
        np.testing.assert_allclose(point[4, 6] / point[3, 4], np.exp(-0.5 * 5 / 0.49), rtol=1e-12)
        noise = self.variable("blurred.nc", "y") - matrix @ truth
        with netCDF4.Dataset(self.path("blurred.nc")) as data:  # 5 standard errors
            self.assertLess(abs((noise ** 2).mean() / data.noise ** 2 - 1), 5 * np.sqrt(2 / len(noise)))

    def test_components(self):
        """They are the same problem: principal components of the same pictures, the same operator and observations."""
        shapes, matrix = self.variable("shapes.nc", "theta"), self.variable("blurred.nc", "x")
        theta, own = self.variable("components.nc", "theta"), {name: self.variable("blurred_components.nc", name)
                                                               for name in ("x", "y", "basis", "centre", "observed")}
        np.testing.assert_allclose(own["basis"] @ own["basis"].T, np.eye(COMPONENTS), atol=1e-12)
        np.testing.assert_allclose(own["x"], matrix @ own["basis"].T, atol=1e-12)
        np.testing.assert_allclose(own["y"] + matrix @ own["centre"], own["observed"])
        np.testing.assert_array_equal(own["observed"], self.variable("blurred.nc", "y"))
        left = shapes - own["centre"] - theta @ own["basis"]  # what the components lack: the smallest singular values, in all
        smallest = np.linalg.svd(shapes - shapes.mean(axis=0), compute_uv=False)[COMPONENTS:]
        np.testing.assert_allclose((left ** 2).sum(), (smallest ** 2).sum(), rtol=1e-6)

    def test_digits(self):
        """A file of MNIST gives its own pictures, none of them the truth; any other file is refused."""
        samples = os.path.join(SOURCE, "data/samples/mnist")
        make(self.path("digits"), "--digits", os.path.join(samples, "train-images-idx3-ubyte.gz"), "--pictures", 50)
        with gzip.open(os.path.join(samples, "train-images-idx3-ubyte.gz")) as file:
            known = np.frombuffer(file.read()[16:], np.uint8).reshape(300, -1)
        found = np.vstack([self.variable("digits/shapes.nc", "theta"), self.variable("digits/blurred.nc", "truth")]) * 255
        np.testing.assert_allclose(found, found.round(), atol=1e-4)
        places = {tuple(row) for row in known.tolist()}
        self.assertEqual(len(found), 51)
        self.assertTrue(all(tuple(row) in places for row in found.round().astype(int).tolist()))
        refused = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "data/make_shapes.py"), self.path("digits"), "--digits",
                                  os.path.join(samples, "t10k-labels-idx1-ubyte")], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("not a file of square pictures", refused.stderr)

    def test_picture(self):
        for sampler in ("tilted", "diffts"):
            self.draw("shapes.nc", "blurred.nc", sampler, f"pixels_{sampler}.nc")
        self.draw("components.nc", "blurred_components.nc", "diffts", "reduced.nc")
        status, out, error = self.figure("blurred_components.nc", "pixels_tilted.nc", "pixels_diffts.nc", "reduced.nc")
        self.assertEqual((status, error), (0, ""))
        with open(self.path("figure_tilted_deblur.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        truth = self.variable("blurred.nc", "truth")
        basis, centre = self.variable("blurred_components.nc", "basis"), self.variable("blurred_components.nc", "centre")
        for name, draws in (("pixels diffts", self.variable("pixels_diffts.nc", "theta")),
                            ("reduced", self.variable("reduced.nc", "theta") @ basis + centre)):
            found = re.search(rf"{name}: error of the posterior mean ([\d.]+), posterior sd ([\d.]+), (\d+)% of", out).groups()
            low, high = np.quantile(draws, [0.05, 0.95], axis=0)
            expected = [((draws.mean(axis=0) - truth) ** 2).mean() ** 0.5, draws.var(axis=0).mean() ** 0.5]
            np.testing.assert_allclose(list(map(float, found[:2])), expected, atol=6e-4)
            self.assertAlmostEqual(float(found[2]), 100 * ((low <= truth) & (truth <= high)).mean(), delta=0.51)

    def test_table(self):
        """What a command took and found, or why it failed; a command that has run is not run again."""
        priors = {"components gaussian": ("", ["ts"]), "pixels gaussian": ("", ["ts", "none"]), "pixels mixture": ("components=1001", ["mixts"])}
        folder = pathlib.Path(self.folder)
        with mock.patch.object(write_deblurring, "PRIORS", priors), mock.patch.object(write_deblurring, "PROGRAM", program.PROGRAM), \
                contextlib.redirect_stdout(io.StringIO()):
            known = write_deblurring.costs(folder)
            self.assertEqual(set(known), {"components_gaussian", "components_gaussian_ts", "pixels_gaussian", "pixels_gaussian_ts", "pixels_gaussian_none",
                                          "pixels_mixture", "pixels_mixture_mixts"})
            with mock.patch.object(write_deblurring, "run", side_effect=AssertionError):
                self.assertEqual(write_deblurring.costs(folder), known)
            problem = figure_tilted_deblur.history(folder / "blurred_components.nc")
            rows = list(write_deblurring.rows(folder, problem, known))
        self.assertEqual([row[:3] for row in rows], [["components", "gaussian", "`ts`"], ["pixels", "gaussian", "`ts`"], ["pixels", "gaussian", "`none`"],
                                                     ["pixels", "mixture", ""]])
        draws = self.variable("pixels_gaussian_ts.nc", "theta")
        self.assertEqual(rows[1][5], f"{((draws.mean(axis=0) - self.variable('blurred.nc', 'truth')) ** 2).mean() ** 0.5:.3f}")
        self.assertTrue(rows[2][4].startswith("--sampler: 'none' is not a sampler"), rows[2][4])
        self.assertIn("is out of range", rows[3][3])

    def test_refusals(self):
        status, _, error = self.figure("blurred.nc", "shapes.nc")
        self.assertEqual((status, len(error.splitlines())), (3, 1), error)
        self.assertIn("dimensions", error)
        with netCDF4.Dataset(self.path("other.nc"), "w") as file:
            file.createDimension("draw", 2)
            file.createDimension("dim", 5)
            file.createVariable("theta", "f8", ("draw", "dim"))[:] = 0
        for history, allowed in (("blurred.nc", "64"), ("blurred_components.nc", "64 pixels or 20 components")):
            status, _, error = self.figure(history, "other.nc")
            self.assertEqual((status, len(error.splitlines())), (3, 1), error)
            self.assertIn(f"draws of 5 numbers, but the picture has {allowed}", error)


if __name__ == "__main__":
    program.main()
