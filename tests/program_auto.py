#!/usr/bin/env python3
"""`train --family auto`: the family whose posterior draws score best on held-out tasks, with its sampler, and what the file then does."""

import netCDF4
import numpy as np
import program

# Networks that are quickly learned; they do not have to be good.
FAST = ["--option", "training_steps=40", "--option", "hidden=[8, 8]", "--option", "stages=4", "--option", "mixture_starts=1"]


class Auto(program.ProgramTest):
    def train(self, theta, *more, **options):
        np.savetxt(self.path("theta.csv"), theta, delimiter=",")
        return self.succeed("train", "--family", "auto", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"), *FAST, *more, **options)

    def test_gaussian(self):
        """A Gaussian world takes the least expensive of equals. Its scores, known from the closed form: with S the covariance of the
        posterior a score is E|theta - x| - E|x - x'| / 2, and all three are drawn from it. 128 tasks of the program and 4000 here: 5
        standard errors of the first, from the table of NumPy's scores."""
        rng = np.random.default_rng(4)
        out = self.train(rng.normal(size=(700, 2)), "--noise", "0.5").stdout
        self.assertIn("gaussian prior in 2 dimensions from 700 samples", out)
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            self.assertEqual((data.prior, data.auto_sampler, int(data.auto_chosen), int(data.auto_tasks)), ("gaussian", "mixts", 0, 128))
            scores, ratio = data["auto_score"][...], data["auto_ratio"][...]
        np.testing.assert_allclose(ratio, (scores / scores[0]).mean(1), rtol=1e-12)
        for size, score in zip((5, 50), scores[0]):
            phi = rng.normal(size=(4000, size, 2))
            phi /= np.linalg.norm(phi, axis=2, keepdims=True)
            root = np.linalg.cholesky(np.linalg.inv(np.eye(2) + np.einsum("tni,tnj->tij", phi, phi) / 0.25))
            theta, x, y = np.einsum("tij,ktj->kti", root, rng.normal(size=(3, 4000, 2)))
            sampled = np.linalg.norm(theta - x, axis=1) - np.linalg.norm(x - y, axis=1) / 2
            self.assertLess(abs(score - sampled.mean()), 5 * sampled.std() / np.sqrt(128))

    def test_mixture(self):
        """Two narrow Gaussians far apart: one Gaussian is clearly worse, and the networks, hardly trained, are not better. The file opens
        with the sampler that was chosen, by its name `auto` too, and is the same on any number of ranks."""
        rng = np.random.default_rng(5)
        theta = 0.1 * rng.normal(size=(200, 2)) + np.where(rng.random((200, 1)) < 0.5, -2, 2)
        self.assertRegex(self.train(theta).stdout, "mixture +mixts .*chosen")
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            first = {name: data[name][...] for name in data.variables}
            self.assertEqual((data.prior, data.auto_sampler), ("mixture", "mixts"))
        for ranks in (2, 3, 4):
            self.train(theta, ranks=ranks)
            with netCDF4.Dataset(self.path("prior.nc")) as data:
                for name, value in first.items():
                    np.testing.assert_array_equal(value, data[name][...])
        self.write("history.csv", "x1,x2,y\n1,0,2\n")
        draws = []
        for sampler in ("auto", "mixts"):
            self.succeed("sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", sampler, "-o", self.path("draws.nc"))
            with netCDF4.Dataset(self.path("draws.nc")) as data:
                self.assertEqual(data.sampler, "mixts")
                draws.append(data["theta"][...])
        np.testing.assert_array_equal(*draws)
        study = (f"name: one\nruns: 2\nproblem: {{theta: gaussian, dimension: 2, arms: 2, rounds: 2}}\n"
                 f"policies: [{{name: mixts, prior: {self.path('prior.nc')}}}]\n")
        self.succeed("run", self.write("one.yaml", study), "-o", self.path("one"), "--progress", "none")

    def test_refused(self):
        self.write("history.csv", "x1,y\n1,0\n")
        self.write("theta.csv", "\n".join(str(k) for k in range(49)) + "\n")
        self.fail_with(3, "49 samples; family auto needs at least 50", "train", "--family", "auto", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"))
        self.succeed("train", "--family", "gaussian", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"))
        self.fail_with(3, "sampler auto is of priors by", "sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"),
                       "--sampler", "auto", "-o", self.path("draws.nc"))
        self.fail_with_usage("--noise estimate is of --logs", "train", "--family", "auto", "--theta", self.path("theta.csv"), "--noise", "estimate")
        self.fail_with_usage("--family auto holds out samples of theta", "train", "--family", "auto", "--logs", self.path("history.csv"))


if __name__ == "__main__":
    program.main()
