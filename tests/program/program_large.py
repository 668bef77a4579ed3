"""Large settings: the same numbers on any number of ranks and in any groups of them, calibrated draws, resumed runs, refusals."""

import random

import numpy as np
import xarray as xr
from scipy import stats

import journals
import program

STUDY = """
name: large
study: posterior
seed: 11
runs: 3
block: 1
draws: 50
metrics: [sd_ratio, mode_weight, moments, distance, rank, rank_norm, rank_log_likelihood]
problem: {family: inverse, theta: gm_sphere, dimension: 40, arms: 40, sample_sizes: arms, condition_number: 10, snr: 0.1}
prior: {standardise: false}
linear_algebra: {distributed_from: 40}
policies: [{name: mala, prior: exact}, {name: tilted, prior: exact, temper: 0.5}, exact]
sweep:
  problem.dimension: [39, 40]
"""

# One false alarm in 10 000 seeds for each calibrated sampler.
RUNS, BINS, DRAWS, LEVEL = 1024, 16, 63, 1e-4


class Large(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.study = self.write("large.yaml", STUDY)

    def results(self, name):
        return xr.open_dataset(self.path(f"{name}/results.nc"))

    def assert_same_numbers(self, first, second):
        """Distributed settings agree to 1e-10; the other settings, in the same file, agree to the byte."""
        with self.results(first) as one, self.results(second) as two:
            for name, variable in one.data_vars.items():
                if name.startswith("seconds") or variable.dtype.kind != "f":
                    continue
                np.testing.assert_array_equal(variable[0], two[name][0], name)
                np.testing.assert_allclose(variable, two[name], rtol=0, atol=1e-10, err_msg=name)

    def test_any_number_of_ranks(self):
        """All ranks together, groups of two side by side, groups that do not fit, and as many as the program chooses."""
        self.succeed("run", self.study, "-o", self.path("on1"), ranks=1)
        with self.results("on1") as one:
            np.testing.assert_array_equal(one["distributed"], [0, 1])
            self.assertTrue((one["status"] == 1).all())
            # six modes; a share that was never computed is 0 or far outside
            self.assertTrue(((one["largest_mode"] >= 1 / 6) & (one["largest_mode"] <= 1)).all())
        for ranks, each, groups in ((2, 2, 1), (3, 2, 1), (4, 2, 2), (3, 5, 1), (4, "auto", 3)):
            name = f"{ranks} ranks, {each} each"
            shown = self.succeed("run", self.study, "-o", self.path(name), "--set", f"ranks_per_setting={each}", ranks=ranks).stderr
            self.assertIn(f"parts 3, groups {groups}, ", shown, name)
            self.assert_same_numbers("on1", name)

    def test_shards(self):
        """Shards divide the blocks of a distributed setting as they do other tasks; a block stays together, since its policies share matrices."""
        self.succeed("run", self.study, "-o", self.path("whole"))
        done = 0
        for shard, single, blocks in ((0, 5, 1), (1, 4, 2)):  # of 9 tasks of the first setting and 3 blocks of the second
            shown = self.succeed("run", self.study, "-o", self.path("parts"), "--shard", f"{shard}/2", "--set", "ranks_per_setting=1", ranks=2).stderr
            self.assertIn(f"parts {blocks}, groups {blocks}, ranks in all groups {blocks}, LAPACK on one rank", shown)
            done += single + 3 * blocks
            self.assertEqual(len(journals.records(self.path("parts"))), done)
        self.succeed("reduce", self.path("parts"))
        self.assert_same_numbers("whole", "parts")

    def test_kill(self):
        """One of four ranks is killed while two groups work, twice; what is finished is not run again, on any number of ranks in any groups."""
        chance = random.Random(5)
        self.succeed("run", self.study, "-o", self.path("whole"), "--set", "runs=12")
        mode = ("--set", "runs=12", "--set", "ranks_per_setting=2")
        for again in ((), ("--resume",)):
            self.kill_a_rank(self.path("killed"), chance, "run", self.study, *mode, *again, ranks=4)
        self.succeed("run", self.study, "-o", self.path("killed"), "--resume", "--set", "runs=12", ranks=3)
        self.assertLessEqual(len(journals.records(self.path("killed"))), 72 + 12)  # at each of two kills two parts may have been kept by half
        self.assert_same_numbers("whole", "killed")

    def test_shared_matrices(self):
        """If requested in 64 dimensions, a shared matrix changes the draws but not their spread: within 4 errors of a ratio of 1 000 draws."""
        ratios = {}
        for name, least in (("alone", "auto"), ("shared", "64")):
            self.succeed("run", self.study, "-o", self.path(name), "--set", "runs=1", "--set", "draws=1000", "--set", "metrics=[sd_ratio]",
                         "--set", "problem.dimension=64", "--set", "problem.arms=64", "--set", "policies=[{name: tilted, prior: exact}]",
                         "--set", f"linear_algebra.distributed_from={least}")
            with self.results(name) as data:
                self.assertEqual(data["distributed"].item(), least == "64")
                ratios[name] = data["sd_ratio"].mean().item()
        self.assertAlmostEqual(ratios["alone"], ratios["shared"], delta=4 * np.sqrt(2) / np.sqrt(2 * 1000))

    def test_every_metric(self):
        """In 1 000 dimensions every metric works as in two, with temper, and clicks and samplers with matrices too if there are few observations."""
        self.succeed("run", self.study, "-o", self.path("every"), "--set", "runs=1", "--set", "draws=40", "--set", "problem.dimension=1000", "--set",
                     "problem.arms=6", "--set", "metrics=[emd, sliced_wasserstein, sd_ratio, mode_weight, moments, distance, rank, rank_norm, rank_log_likelihood]",
                     "--set", "policies=[{name: exact, prior: exact}, {name: tilted, prior: exact, temper: 2}, {name: diffts, prior: exact}, {name: vits1, prior: exact}]",
                     "--set", "linear_algebra.distributed_from=auto", "--set", "prior.stages=10")
        with self.results("every") as data:
            self.assertTrue((data["status"] == 1).all())
            for name in ("emd", "sliced_wasserstein", "sd_ratio", "mode_weight_error", "mean_error", "covariance_error", "distance", "rank", "rank_norm", "rank_log_likelihood"):
                self.assertTrue(np.isfinite(data[name]).all(), name)
            # two sets of 40 exact draws differ as much as draws of the sampler exact differ from one: within a quarter
            self.assertLess(abs(data["covariance_error"].values.ravel()[0] / data["covariance_error_floor"].values.ravel()[0] - 1), 0.25)
        self.succeed("run", self.study, "-o", self.path("clicks"), "--set", "runs=1", "--set", "draws=10", "--set", "problem.dimension=1000", "--set",
                     "problem.arms=6", "--set", "metrics=[rank]", "--set", "likelihood=logistic", "--set", "linear_algebra.distributed_from=auto",
                     "--set", "policies=[{name: mixts, prior: exact}, {name: smc_tempered, prior: exact, particles: 100}]")
        with self.results("clicks") as data:
            self.assertTrue((data["status"] == 1).all())
            self.assertEqual(data["fallbacks"].values.sum(), 0)

    def test_resume(self):
        """A job that was stopped at once continues on another number of ranks."""
        whole = self.succeed("run", self.study, "-o", self.path("whole"))
        self.assertIn("LAPACK on one rank", whole.stderr)
        self.fail_with(75, "--resume", "run", self.study, "-o", self.path("parts"), "--time-limit", "0.001")
        resumed = self.succeed("run", self.study, "-o", self.path("parts"), "--resume", "--set", "ranks_per_setting=2", ranks=2)
        self.assertRegex(resumed.stderr, "groups 1, ranks in all groups 2, ScaLAPACK|this build has no ScaLAPACK")
        self.assert_same_numbers("whole", "parts")
        self.assertIn("0 to run", self.succeed("run", self.study, "-o", self.path("parts"), "--resume", "--set", "ranks_per_setting=1").stderr)
        self.assertIn("matrices spread over ranks", self.succeed("plan", self.study).stdout)
        groups = ("--set", "ranks_per_setting=2")
        self.assertIn("3 parts with spread matrices, run side by side by groups of 2 ranks", self.succeed("plan", self.study, *groups).stdout)
        self.assertIn("3 of 3 parts with spread matrices are done, by groups of 1 rank", self.succeed("status", self.path("parts")).stdout)

    def test_ranks_of_theta_are_uniform(self):
        """Simulation-based calibration (Talts et al. 2018), from the matrix to the draw: exact draws pass, a prior that is too narrow does not."""
        self.succeed("run", self.study, "-o", self.path("ranks"), "--set", f"runs={RUNS}", "--set", "block=128", "--set", f"draws={DRAWS}",
                     "--set", "metrics=[rank]", "--set", "problem.dimension=3", "--set", "problem.arms=4", "--set", "problem.snr=0.2",
                     "--set", "linear_algebra.distributed_from=2", "--set",
                     "policies=[exact, {name: exact, label: wrong, prior: standard}]")
        with self.results("ranks") as data:
            counts = [np.bincount((rank // ((DRAWS + 1) // BINS)).astype(int), minlength=BINS) for rank in data["rank"].values[0, :, :, 0]]
        exact, wrong = (stats.chisquare(count).pvalue for count in counts)
        self.assertGreater(exact, LEVEL)
        self.assertLess(wrong, LEVEL)

    def test_refusals(self):
        for old, new, part in (
            ("sample_sizes: arms", "sample_sizes: [4]", "all of y"),
            ("metrics: [sd_ratio", "metrics: [emd", "emd needs all draws on one rank"),
            ("metrics: [sd_ratio", "metrics: [log_concavity", "log_concavity needs all draws on one rank"),
            ("standardise: false", "standardise: true", "key 'prior.standardise': it must be false"),
            ("tilted, prior: exact", "tilted, prior: gaussian", "only isotropic priors can be rotated"),
            ("tilted, prior: exact", "tilted, prior: exact, reverse: moments", "it makes matrices for each draw"),
            ("name: tilted, prior: exact", "name: diffts, prior: exact", "it makes matrices for each draw"),
            ("theta: gm_sphere", "theta: ising", "gaussian or gm_sphere"),
            ("family: inverse", "family: synthetic", "only posterior studies of problem.family = inverse"),
            ("problem: {", "likelihood: logistic\nproblem: {", "only gaussian has a matrix to decompose"),
        ):
            with self.subTest(new):
                self.fail_with(3, part, "run", self.write("bad.yaml", STUDY.replace("[39, 40]", "[40]").replace(old, new)), "-o", self.path("bad"))


if __name__ == "__main__":
    program.main()
