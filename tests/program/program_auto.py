#!/usr/bin/env python3
"""The family whose posterior draws score best on held-out tasks, with its sampler: `train --family auto` from theta, from logs and from a study, and
`prior.family: auto` with the policy `auto`."""

import os
import shutil

import netCDF4
import numpy as np
import program

# Networks that are learned quickly; they do not have to be good.
FAST = ["--option", "training_steps=40", "--option", "hidden=[8, 8]", "--option", "stages=4", "--option", "mixture_starts=1"]


class Auto(program.ProgramTest):
    def train(self, theta, *more, **options):
        np.savetxt(self.path("theta.csv"), theta, delimiter=",")
        return self.succeed("train", "--family", "auto", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"), *FAST, *more, **options)

    def test_gaussian(self):
        """In a Gaussian world, where the mixture has one component, the least expensive of equal families is chosen. Its scores are known in closed
        form: with S the covariance of the posterior a score is E|theta - x| - E|x - x'| / 2, and all three are drawn from it. 128 tasks in
        the program and 4000 here: 5 standard errors of the first, from the table of NumPy's scores."""
        rng = np.random.default_rng(4)
        out = self.train(rng.normal(size=(700, 2)), "--noise", "0.5").stdout
        self.assertIn("gaussian prior in 2 dimensions from 700 samples", out)
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            self.assertEqual((data.prior, data.auto_sampler, int(data.auto_chosen), int(data.auto_tasks)), ("gaussian", "mixts", 0, 128))
            scores, ratio = data["auto_score"][...], data["auto_ratio"][...]
            self.assertTrue((data["auto_seconds_draw"][...] > 0).all())
            # The file's own seconds are those of all fits plus those of the chosen one.
            self.assertLess(data["auto_seconds_fit"][2], data["auto_seconds_fit"][...].sum())
            self.assertLess(data["auto_seconds_fit"][...].sum(), float(data.seconds_fit))
        np.testing.assert_allclose(ratio, (scores / scores[0]).mean(1), rtol=1e-12)
        for size, score in zip((5, 50, 500), scores[0]):
            phi = rng.normal(size=(4000, size, 2))
            phi /= np.linalg.norm(phi, axis=2, keepdims=True)
            root = np.linalg.cholesky(np.linalg.inv(np.eye(2) + np.einsum("tni,tnj->tij", phi, phi) / 0.25))
            theta, x, y = np.einsum("tij,ktj->kti", root, rng.normal(size=(3, 4000, 2)))
            sampled = np.linalg.norm(theta - x, axis=1) - np.linalg.norm(x - y, axis=1) / 2
            self.assertLess(abs(score - sampled.mean()), 5 * sampled.std() / np.sqrt(128))

    def test_few_held_out(self):
        """128 of 2 600 is a small share, so the Gaussian that was fitted without them is kept: their contribution to the mean of all samples is
        the mean of 128."""
        theta = np.random.default_rng(8).normal(size=(2600, 1))
        self.assertIn("on 128 held-out tasks, fitted without them", self.train(theta).stdout)
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            self.assertEqual(data.prior, "gaussian")
            self.assertAlmostEqual(float(data.seconds_fit), float(data["auto_seconds_fit"][...].sum()))
            held = theta.sum(0) - 2472 * data["mean"][...].ravel()
        self.assertGreater(np.abs(held - 128 * theta.mean(0)).max(), 1)
        self.assertLess(np.abs(held / 128).max(), 5 / np.sqrt(128))

    def test_mixture(self):
        """Two narrow Gaussians far apart: one Gaussian is clearly worse, and the networks, hardly trained, are not better. The file opens
        with the sampler that was chosen, also by the name `auto`, and is the same on any number of ranks."""
        rng = np.random.default_rng(5)
        theta = 0.1 * rng.normal(size=(100, 2)) + np.where(rng.random((100, 1)) < 0.5, -2, 2)
        self.assertRegex(self.train(theta).stdout, "mixture +mixts .*chosen")
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            first = {name: data[name][...] for name in data.variables if "seconds" not in name}
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
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            self.assertEqual(list(data["auto_size"][...]), [5, 50, 500])
        study = (f"name: one\nruns: 2\nproblem: {{theta: gaussian, dimension: 2, arms: 2, rounds: 2}}\n"
                 f"policies: [{{name: mixts, prior: {self.path('prior.nc')}}}]\n")
        self.succeed("run", self.write("one.yaml", study), "-o", self.path("one"), "--progress", "none")

    STUDY = """
name: one
runs: 4
problem: {theta: gm_cross, arms: 10, rounds: 30}
prior: {family: auto, train_samples: 100, training_steps: 40, hidden: [8, 8], stages: 4, mixture_starts: 1}
policies: [ts, auto, {name: auto, rule: bayes_ucb, label: ucb}]
"""

    def play(self, name, *sets, ranks=1):
        """Returns regret[policy, run] at the end of STUDY, and the prior file."""
        folder = self.path(name)
        self.succeed("run", self.write("one.yaml", self.STUDY), "-o", folder, "--progress", "none", *(f for s in sets for f in ("--set", s)), ranks=ranks)
        with netCDF4.Dataset(os.path.join(folder, "results.nc")) as data:
            files = [os.path.join(folder, "priors", file) for file in sorted(os.listdir(os.path.join(folder, "priors")))]
            return data["regret"][0, :, :, -1], files

    def test_study(self):
        """Both policies share one prior, judged on 20 tasks after 3 and 15 of 30 rounds; the regret is that of the chosen sampler with the same file, and
        results and table are the same on any number of ranks. A study with another number of rounds is judged at other sizes, and has its own prior."""
        regret, (file,) = self.play("one")
        with netCDF4.Dataset(file) as data:
            self.assertEqual((int(data.auto_tasks), list(data["auto_size"][...])), (20, [3, 15]))
            sampler, table = data.auto_sampler, data["auto_score"][...]
        for ranks in (2, 4):
            again, (other,) = self.play(f"ranks{ranks}", ranks=ranks)
            np.testing.assert_array_equal(again, regret)
            with netCDF4.Dataset(other) as data:
                np.testing.assert_array_equal(data["auto_score"][...], table)
        same, files = self.play("file", f"policies=[ts, {{name: {sampler}, prior: {file}}}, {{name: auto, prior: {file}}}]")
        np.testing.assert_array_equal(same, regret[[0, 1, 1]])
        self.assertEqual(files, [])
        shutil.rmtree(self.path("one"))
        self.assertNotEqual(os.path.basename(self.play("one", "problem.rounds=20", "policies=[auto]")[1][0]), os.path.basename(file))

    def test_logs(self):
        """Two distant Gaussians, known only through rewards: one Gaussian predicts the other half of a task's rewards clearly worse. 33 tasks of 100 are
        held out, and the file is the same on three ranks."""
        rng = np.random.default_rng(6)
        task, x = np.repeat(np.arange(100), 8), rng.normal(size=(800, 2))
        theta = 0.2 * rng.normal(size=(100, 2)) + np.where(rng.random((100, 1)) < 0.5, -2, 2)
        y = (x * theta[task]).sum(1) + 0.5 * rng.normal(size=800)
        self.write("logs.csv", "task,x1,x2,y\n" + "".join(f"{t},{a:.9g},{b:.9g},{c:.9g}\n" for t, (a, b), c in zip(task, x, y)))
        tables = []
        for ranks in (1, 3):
            out = self.succeed("train", "--logs", self.path("logs.csv"), "--family", "auto", "-o", self.path("prior.nc"), *FAST, ranks=ranks).stdout
            self.assertRegex(out, "gaussian +mixts +[0-9.]+ +1.000 [^c]*\n")
            with netCDF4.Dataset(self.path("prior.nc")) as data:
                self.assertEqual((int(data.auto_tasks), list(data["auto_size"][...])), (33, [0]))
                self.assertLess(data["auto_ratio"][1], 0.95)
                self.assertGreater(int(data.auto_chosen), 0)
                self.assertLess(abs(data.noise - 0.5), 0.05)
                tables.append((data["auto_score"][...], data["weight"][...]))
        for one, other in zip(*tables):
            np.testing.assert_array_equal(one, other)

    def test_halves_of_evidence(self):
        """Tasks that all have the same theta: prior and half of the evidence determine it, so only noise is left to predict, N(0, I) in the two directions of
        the other half, and the energy score is E|e - e'| / 2 = sqrt(pi) / 2. Its standard deviation from task to task is about 0.5, and 100 are held out."""
        rng = np.random.default_rng(7)
        task, x = np.repeat(np.arange(300), 4), rng.normal(size=(1200, 2))
        y = x @ [1.0, -2.0] + rng.normal(size=1200)
        self.write("logs.csv", "task,x1,x2,y\n" + "".join(f"{t},{a:.9g},{b:.9g},{c:.9g}\n" for t, (a, b), c in zip(task, x, y)))
        self.succeed("train", "--logs", self.path("logs.csv"), "--family", "auto", "--noise", "1", "-o", self.path("prior.nc"), *FAST)
        with netCDF4.Dataset(self.path("prior.nc")) as data:
            score = data["auto_score"][0, 0]
        self.assertLess(abs(score - np.sqrt(np.pi) / 2), 4 * 0.5 / np.sqrt(100))

    def test_study_refused(self):
        study = self.write("one.yaml", self.STUDY)
        for sets, sentence in ((["policies=[mixts]"], "prior auto is chosen together with its sampler; use the policy auto"),
                               (["prior.family=mixture"], "sampler auto needs a prior from"),
                               (["policies=[{name: auto, prior: standard}]"], "no sampler was chosen with this one")):
            self.fail_with(3, sentence, "run", study, "-o", self.path("refused"), *(f for s in sets for f in ("--set", s)))

    def test_default_family(self):
        """Without --family: a mixture; networks if an option is for them, or if a policy of the study learns some."""
        np.savetxt(self.path("theta.csv"), np.random.default_rng(1).standard_normal((100, 2)), delimiter=",")
        few = "prior: {train_samples: 100, training_steps: 4, stages: 2, mixture_starts: 1}\n"
        head = "study: bandit\nruns: 8\nproblem: {theta: cross, arms: 5, rounds: 3}\n"
        of_networks = self.write("networks.yaml", f"name: networks\n{head}{few}policies: [ts, mixts, diffts]\n")
        without = self.write("without.yaml", f"name: without\n{head}{few}policies: [ts, mixts]\n")
        data = ["--theta", self.path("theta.csv")]
        for family, arguments in (("mixture", [*data]), ("mixture", [*data, "--option", "components=3"]), ("mixture", [without]),
                                  ("diffusion", [*data, "--option", "stages=2", "--option", "training_steps=4"]), ("diffusion", [of_networks])):
            with self.subTest(arguments):
                self.succeed("train", *arguments, "-o", self.path("default.nc"))
                with netCDF4.Dataset(self.path("default.nc")) as file:
                    self.assertEqual(file.prior, family)

    def test_refused(self):
        self.write("history.csv", "x1,y\n1,0\n")
        self.write("theta.csv", "\n".join(str(k) for k in range(49)) + "\n")
        self.fail_with(3, "49 samples; family auto needs at least 50", "train", "--family", "auto", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"))
        self.succeed("train", "--family", "gaussian", "--theta", self.path("theta.csv"), "-o", self.path("prior.nc"))
        self.fail_with(3, "sampler auto needs a prior from", "sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"),
                       "--sampler", "auto", "-o", self.path("draws.nc"))
        self.fail_with_usage("--noise estimate needs --logs", "train", "--family", "auto", "--theta", self.path("theta.csv"), "--noise", "estimate")
        for sizes, sentence in (("5,5", "must increase"), ("1,2,3,4", "at most 3 numbers"), ("0", "not an integer")):
            self.fail_with_usage(sentence, "train", "--family", "auto", "--theta", self.path("theta.csv"), "--observations", sizes)
        self.fail_with_usage("--observations needs --theta with --family auto", "train", "--theta", self.path("theta.csv"), "--observations", "5")


if __name__ == "__main__":
    program.main()
