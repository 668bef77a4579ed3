#!/usr/bin/env python3
"""What the program and the scripts say to users who made a small mistake: a table of mistakes, with the words that help."""

import shutil

import ablation
import netCDF4
import numpy as np
import program
import study_fixture
import thompson

# Arguments, exit status, what the sentence must contain. NOWHERE, HERE, STUDY and LOGS are placeholders for paths.
MISTAKES = (
    (["rnu", "STUDY"], 2, ["'rnu' is not a verb", "did you mean 'run'?"]),
    (["frobnicate"], 2, ["allowed: run | plan | status"]),
    (["train", "--family", "mixtur", "--theta", "NOWHERE"], 2, ["did you mean 'mixture'?"]),
    (["train", "--likelihood", "bernoulli", "--logs", "NOWHERE"], 2, ["'bernoulli' is not a likelihood", "did you mean 'logistic'?"]),
    (["sample", "--prior", "NOWHERE", "--data", "NOWHERE", "--sampler", "ts", "--likelihood", "bernoulli"], 3, ["did you mean 'logistic'?"]),
    (["plan", "STUDY", "--set", "likelihood=bernoulli"], 3, ["did you mean 'logistic'?"]),
    (["plan", "STUDY", "--set", "likelihood=counts"], 3, ["did you mean 'poisson'?"]),
    (["plan", "STUDY", "--set", "problem.likelihood=logistic"], 3, ["unknown key", "did you mean 'likelihood'?"]),
    (["bench", "--samplers", "difts"], 2, ["did you mean 'diffts'?"]),
    (["sample", "--prior", "NOWHERE", "--data", "NOWHERE"], 2, ["--sampler is required"]),
    (["sample", "--prior", "NOWHERE", "--data", "NOWHERE", "--sampler", "ts", "--likelihood", "logistic", "--noise", "2"], 2, ["logistic has no noise"]),
    # A missing folder is treated as a missing file; a folder without a study is bad input.
    (["status", "NOWHERE"], 4, ["cannot read", "No such file"]),
    (["reduce", "NOWHERE"], 4, ["cannot read", "No such file"]),
    (["verify", "NOWHERE"], 4, ["cannot read", "No such file"]),
    (["plan", "NOWHERE"], 4, ["cannot read", "No such file"]),
    (["status", "HERE"], 3, ["holds no study"]),
)


class Messages(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.places = {"NOWHERE": self.path("nowhere"), "HERE": self.folder, "STUDY": self.study}

    def test_mistakes(self):
        for arguments, code, parts in MISTAKES:
            process = program.thompson(*(self.places.get(word, word) for word in arguments))
            with self.subTest(" ".join(arguments)):
                self.assertEqual(process.returncode, code, process.stderr)
                for part in parts:
                    self.assertIn(part, process.stderr.splitlines()[0])

    def test_noise_that_nothing_uses(self):
        study = ["plan", self.study, "--set", "policies=[ts]"]
        for words, noted in ((["--set", "likelihood=logistic", "--set", "problem.noise=0.5"], True), (["--set", "likelihood=logistic"], False),
                             (["--set", "problem.noise=0.5"], False)):
            self.assertEqual("problem.noise is 0.5, but rewards with the likelihood logistic have no noise" in self.succeed(*study, *words).stderr, noted)

    def test_few_tasks(self):
        """A prior from too few tasks is learned, and the program warns about its value; ten tasks per component are accepted silently."""
        self.write("few.csv", "task,x1,y\na,1,0\na,1,1\nb,1,1\n")
        self.write("theta.csv", "".join(f"{i % 7 - 3},{i % 11 - 5}\n" for i in range(20)))
        for words, part in ((["--logs", self.path("few.csv"), "--likelihood", "logistic"], "note: 2 past tasks for a prior of 1 component:"),
                            (["--theta", self.path("theta.csv"), "--option", "components=8"], "note: 20 past tasks for a prior of 8 components:"),
                            (["--theta", self.path("theta.csv"), "--option", "components=2"], None)):
            said = self.succeed("train", *words, "--family", "mixture" if "--theta" in words else "gaussian", "-o", self.path("prior.nc")).stderr
            self.assertEqual("note:" in said, part is not None, said)
            self.assertIn(part or "", said)

    def write_prior(self, chosen):
        """Two Gaussians on a line that were chosen among 2, 128 and 256."""
        with netCDF4.Dataset(self.path("mixture.nc"), "w") as file:
            file.prior, file.candidate_chosen = "mixture", np.int64(chosen)
            for name, size in (("component", 2), ("dim", 1), ("dim2", 1), ("candidate", 3)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 0.5
            file.createVariable("mean", "f8", ("component", "dim"))[:] = [[-1], [1]]
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = 1
            file.createVariable("candidate_components", "i4", ("candidate",))[:] = [2, 128, 256]
            file.createVariable("held_out_log_likelihood", "f8", ("candidate",))[:] = [-3, -2, -1]
            file.createVariable("held_out_error", "f8", ("candidate",))[:] = 0

    def test_most_components(self):
        """For a mixture with the largest number of components that is tried, `sample` says so, and so does `run`, once however many policies use it."""
        self.write("none.csv", "x1,y\n")
        study = ("name: one\nruns: 2\nproblem: {theta: gaussian, dimension: 1, arms: 2, rounds: 2}\n"
                 f"policies: [{{name: mixts, prior: {self.path('mixture.nc')}}}, {{name: mixts, label: again, prior: {self.path('mixture.nc')}}}, "
                 f"{{name: mixts, label: other, prior: {self.path('other.nc')}}}]\n")
        for chosen, notes in ((2, 1), (1, 0)):
            self.write_prior(chosen)
            shutil.copy(self.path("mixture.nc"), self.path("other.nc"))
            out = self.succeed("sample", "--prior", self.path("mixture.nc"), "--data", self.path("none.csv"), "--sampler", "mixts", "-o", self.path("draws.nc"))
            self.assertEqual(out.stderr.count("chose the largest number of components that it tries"), notes)
            for ranks in (0, 2):
                out = self.succeed("run", self.write("one.yaml", study), "-o", self.path(f"one{chosen}{ranks}"), "--progress", "none", ranks=ranks)
                self.assertEqual(out.stderr.count("chose the largest number of components that it tries"), notes, out.stderr)
                self.assertEqual(out.stderr.count("(1 more like it in this study)"), notes, out.stderr)

    def test_denoisers_that_fail_their_check(self):
        """A denoiser that fails its check is reported by `train`, by `sample`, and once by `run`, even if its file is the prior: nothing predicts held-out
        samples of a Cauchy distribution."""
        np.savetxt(self.path("theta.csv"), np.random.default_rng(1).standard_t(1, size=(200, 2)), delimiter=",")
        np.savetxt(self.path("few.csv"), np.random.default_rng(1).standard_t(1, size=(150, 2)), delimiter=",")
        self.write("none.csv", "x1,x2,y\n")
        prior = self.path("denoiser.nc")
        commands = (["train", "--theta", self.path("few.csv"), "--family", "denoiser", "--option", "training_steps=10", "--option", "hidden=[4, 4]", "-o", prior],
                    ["sample", "--prior", prior, "--data", self.path("none.csv"), "--sampler", "localised", "-o", self.path("draws.nc")],
                    ["run", self.write("file.yaml", "name: file\nruns: 2\nproblem: {theta: gaussian, dimension: 2, arms: 2, rounds: 2}\n"
                                       f"policies: [{{name: localised, prior: {prior}}}]\n"), "-o", self.path("file"), "--progress", "none"])
        for command in commands:
            said = self.succeed(*command).stderr
            self.assertEqual(said.count("fails its own check"), 1, said)
        study = self.write("cauchy.yaml", f"""name: cauchy
runs: 2
problem: {{theta: file, file: {self.path('theta.csv')}, arms: 2, rounds: 2}}
policies: [localised]
prior: {{train_samples: 150, training_steps: 10, hidden: [4, 4], replicates: 2}}
""")
        for again in ([], ["--resume"]):
            out = self.succeed("run", study, "-o", self.path("cauchy"), "--progress", "none", *again)
            self.assertEqual(out.stderr.count("fails its own check"), 1, out.stderr)

    def test_required_options_are_marked(self):
        shown = self.succeed("sample", "--help").stdout
        for option in ("prior", "data", "sampler"):
            self.assertRegex(shown, rf"--{option}=\w+\s+required: ")
        self.assertEqual(shown.count("required: "), 3)

    def small(self, name, *more):
        """Run a study of two tasks in a folder."""
        self.succeed("run", self.study, "--set", "runs=8", "--set", "policies=[ts]", "--set", "prior.replicates=1", *more, "-o", self.path(name))

    def test_folder_of_another_study(self):
        """The folder's own study, and an edit of it, are advised to resume."""
        self.small("out")
        keys = ["--set", "runs=8", "--set", "policies=[ts]", "--set", "prior.replicates=1"]
        own = self.fail_with(4, "already holds this study", "run", self.study, *keys, "-o", self.path("out"))
        self.assertIn("--resume", own)
        other = self.fail_with(4, "already holds another study", "run", self.study, *keys, "--seed", "8", "-o", self.path("out"))
        self.assertIn("seed: 7 -> 8", other)
        self.assertIn("--overwrite", other)
        self.assertIn("--resume if this is an edit of it", other)
        self.assertIn("--overwrite", self.fail_with(6, "name: small -> other", "run", self.study, *keys, "--set", "name=other", "-o", self.path("out"), "--resume"))

    def test_failed_policy(self):
        """A policy whose runs have all failed has dashes in the table, and the others keep their numbers."""
        self.write("broken.py", "def broken(x, y, rng, about):\n    return about['noise']\n")
        process = program.thompson("run", self.study, "--set", "runs=8", "--set", "policies=[{name: python, module: broken, callable: broken}, ts]",
                                   "--set", "prior.replicates=1", "-o", self.path("out"), cwd=self.folder)
        self.assertEqual(process.returncode, 5, process.stderr)
        self.assertNotIn("nan", process.stdout)
        self.assertRegex(process.stdout, r"(?m)^  python +- +- +0$")
        self.assertRegex(process.stdout, r"(?m)^  ts +[\d.]+ +[\d.]+ +- +- +8$")
        self.assertIn("about['noise'] must be written about.noise; about has arms, ", process.stderr)

    def test_last_part_of_a_swept_key(self):
        """--against noise means --against problem.noise."""
        self.small("out", "--set", "problem.noise=[0.5,1]")
        for against, code in (("noise", 0), ("problem.noise", 0), ("nois", 1)):
            status, _, said = study_fixture.call(ablation, self.path("out"), "--against", against, "-o", self.path(f"{against}.png"))
            self.assertEqual(status != 0, code, said)
        self.assertIn("it sweeps problem.noise, problem.theta", said)

    def test_study_of_a_dictionary(self):
        """An error names the study, not the file that carried it."""
        with self.assertRaisesRegex(thompson.Error, "^the study: key 'rnus'") as refused:
            thompson.run({"name": "x", "rnus": 3})
        self.assertEqual(refused.exception.code, 3)


if __name__ == "__main__":
    program.main()
