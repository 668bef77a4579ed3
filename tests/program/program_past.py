"""Studies whose priors are learned from past tasks: the same bytes on any number of ranks, the prior of `train`, what is refused,
and a prior that is better than the one that it replaces."""

import glob

import netCDF4
import numpy as np
import program

STUDY = """
name: past
seed: 3
runs: 16
block: 4
problem: {theta: cross, arms: 10, rounds: 20}
policies: [tuned_ts, mixts, diffts, localised]
prior: {past_tasks: 20, past_observations: 10, replicates: 2, stages: 4, training_steps: 30, hidden: [8, 8], mixture_starts: 1,
        components: auto}
sweep: {prior.learned_from: [logs, estimates, posterior_means]}
"""


class Past(program.ProgramTest):
    def test_any_number_of_ranks(self):
        study = self.write("past.yaml", STUDY)
        self.succeed("run", study, "-o", self.path("one"))
        for ranks in (2, 3, 4):
            self.succeed("run", study, "-o", self.path(f"{ranks}"), ranks=ranks)
            self.assert_same_results(self.path("one/results.nc"), self.path(f"{ranks}/results.nc"))
        # For two replicates: from logs a Gaussian, under which posterior means are computed too; the mixture of mixts, under which the
        # networks are learned; and all four for each rival.
        count = {family: len(glob.glob(self.path(f"one/priors/{family}-*.nc"))) for family in ("gaussian", "mixture", "diffusion", "denoiser")}
        self.assertEqual(count, {"gaussian": 6, "mixture": 6, "diffusion": 6, "denoiser": 6})
        # Only the Gaussians from logs know the noise of rewards: those of the rivals are fitted to estimates of theta.
        known = [hasattr(netCDF4.Dataset(path), "noise") for path in glob.glob(self.path("one/priors/gaussian-*.nc"))]
        self.assertEqual(sum(known), 2)

    def test_likelihood_without_closed_form(self):
        study = self.write("logistic.yaml", STUDY)
        settings = ["--set", "likelihood=logistic", "--set", "runs=8", "--set", "prior.replicates=1"]
        self.succeed("run", study, "-o", self.path("one"), *settings)
        self.succeed("run", study, "-o", self.path("three"), *settings, ranks=3)
        self.assert_same_results(self.path("one/results.nc"), self.path("three/results.nc"))

    def test_train(self):
        """`train STUDY.yaml` gives the priors of the study's first setting, alone and on ranks."""
        study = self.write("past.yaml", STUDY)
        self.succeed("run", study, "-o", self.path("run"), "--set", "runs=2", "--set", "prior.replicates=1", "--set", "prior.learned_from=logs")
        for family, name in (("gaussian", "mean"), ("mixture", "covariance"), ("diffusion", None)):
            (path,) = glob.glob(self.path(f"run/priors/{family}-*.nc"))
            for ranks in (0, 2):
                self.succeed("train", study, "--family", family, "-o", self.path("prior.nc"), ranks=ranks)
                with netCDF4.Dataset(path) as one, netCDF4.Dataset(self.path("prior.nc")) as other:
                    for variable in [name] if name else one.variables:
                        np.testing.assert_array_equal(one[variable][...], other[variable][...])
        self.assertIn("from 50 past tasks", self.succeed("train", study, "--family", "gaussian", "--option", "past_tasks=50",
                                                         "-o", self.path("prior.nc")).stdout)

    def test_nearer_to_the_truth(self):
        """Theta of `cross` has unit variances. With 10 observations of each of 2000 tasks, estimates and means of posteriors, which
        shrink, underestimate them, and EM does not. 5 standard errors of a variance from 2000 samples are 0.16; from logs a little more."""
        study = self.write("gaussian.yaml", STUDY)
        variance = {}
        for source in ("theta", "logs", "estimates", "posterior_means"):
            self.succeed("train", study, "--family", "gaussian", "-o", self.path("prior.nc"), "--option", f"learned_from={source}",
                         "--option", "past_tasks=2000", "--option", "train_samples=2000")
            with netCDF4.Dataset(self.path("prior.nc")) as file:
                variance[source] = np.trace(file["covariance"][0]) / 2
        self.assertAlmostEqual(variance["theta"], 1, delta=0.16)
        self.assertAlmostEqual(variance["logs"], variance["theta"], delta=0.16)
        self.assertLess(variance["estimates"], 0.8)
        self.assertLess(variance["posterior_means"], 0.8)

    def test_refused(self):
        study = self.write("past.yaml", STUDY)
        for family in ("ising", "file"):
            self.fail_with(3, f"with prior.family: {family} the prior is given and nothing is learned", "run", study, "-o", self.path("out"),
                           "--set", f"prior.family={family}", "--set", "prior.file=x.nc")
        self.fail_with(3, "in problem.family = twin the arms depend on theta*", "run", study, "-o", self.path("out"),
                       "--set", "problem.family=twin")
        self.fail_with(3, "a gaussian prior is learned from logs without samples", "run", study, "-o", self.path("out"),
                       "--set", "prior.contamination=0.1")
        self.fail_with(3, "past_tasks", "run", study, "-o", self.path("out"), "--set", "prior.past_tasks=0")


if __name__ == "__main__":
    program.main()
