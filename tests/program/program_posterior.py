"""The posterior study: its results file, its independence of ranks, its refusals, and simulation-based calibration."""

import json

import numpy as np
import xarray as xr

from thompson import store
import program
import table

STUDY = """
name: posterior
study: posterior
seed: 11
runs: 12
block: 4
draws: 40
metrics: [emd, sliced_wasserstein, max_sliced_wasserstein, sd_ratio, mode_weight, moments, rank]
problem: {theta: gm_cross, arms: 5, resample_arms: true, sample_sizes: [1, 4, 20]}
policies: [ts, diffts]
prior: {train_samples: 500, replicates: 2, stages: 8, training_steps: 60, hidden: [8, 8]}
sweep:
  problem.theta: [gm_cross, gm_rays]
"""

INVERSE = """
name: inverse
study: posterior
seed: 11
runs: 6
block: 3
draws: 60
metrics: [moments, log_concavity]
problem: {family: inverse, theta: gm_sphere, dimension: 5, arms: 3, snr: 0.7, condition_number: 1, sample_sizes: [1, 3]}
policies: [{name: tilted, prior: exact}, {name: joint, prior: exact}]
prior: {stages: 8, alpha: 0.8}
"""

# Runs, bins and the level of the test for uniform ranks: one false alarm in 10 000 seeds for each calibrated sampler.
RUNS, BINS, LEVEL = 2048, 16, 1e-4


def chi_squared_tail(statistic, bins):
    """P(chi-squared with bins - 1 degrees of freedom > statistic)."""
    from scipy import stats
    return stats.chi2.sf(statistic, bins - 1)


class Posterior(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.study = self.write("posterior.yaml", STUDY)

    def test_results_file(self):
        self.succeed("run", self.study, "-o", self.path("out"))
        with xr.open_dataset(self.path("out/results.nc")) as data:
            for name in ("emd", "sliced_wasserstein", "max_sliced_wasserstein", "sd_ratio", "mode_weight_error", "mean_error", "covariance_error"):
                for variable in (name, f"{name}_floor"):
                    self.assertEqual(data[variable].dims, ("setting", "policy", "run", "sample_size"))
                    self.assertTrue(np.isfinite(data[variable]).all(), variable)
                    np.testing.assert_allclose(data[f"{variable}_mean"], data[variable].values.mean(2), rtol=1e-12)
                # Every policy is measured against the same draws.
                np.testing.assert_array_equal(data[f"{name}_floor"][:, 0], data[f"{name}_floor"][:, 1])
            np.testing.assert_array_equal(data["sample_size"], [1, 4, 20])
            self.assertTrue(((data["rank"] >= 0) & (data["rank"] <= 40)).all())
            # Projections contract: the transport in a slice is at most that in the plane.
            self.assertTrue((data["sliced_wasserstein"] <= data["max_sliced_wasserstein"] + 1e-12).all())
            self.assertTrue((data["max_sliced_wasserstein"] <= data["emd"] + 1e-12).all())
            # The distance between two clouds is at least that between their means.
            self.assertTrue((data["mean_error"] <= data["emd"] + 1e-12).all())
            self.assertTrue((data["status"] == 1).all() and (data["seconds"] > 0).all())

    def test_sizes_of_settings(self):
        """Settings with their own sizes have results at these sizes, whatever the others have, and the same as when run alone."""
        common = STUDY[:STUDY.index("sweep")].replace("runs: 12", "runs: 4").replace("diffts", "mixts").replace("[1, 4, 20]", "arms")
        self.write("arms.yaml", common + "sweep:\n  zip: true\n  problem.arms: [5, 3, 7]\n  prior.components: [1, 2, 2]\n")
        self.succeed("run", self.path("arms.yaml"), "-o", self.path("arms"), ranks=2)
        with xr.open_dataset(self.path("arms/results.nc")) as data:
            np.testing.assert_array_equal(data["sample_size"], [3, 5, 7])
            for s, (arms, components) in enumerate(((5, 1), (3, 2), (7, 2))):
                self.write("one.yaml", common)
                self.succeed("run", self.path("one.yaml"), "-o", self.path(f"{arms}"), "--set", f"problem.arms={arms}", "--set", f"prior.components={components}")
                with xr.open_dataset(self.path(f"{arms}/results.nc")) as alone:
                    for variable in ("emd", "emd_mean", "emd_diff_se", "emd_n"):
                        np.testing.assert_array_equal(data[variable][s].sel(sample_size=[arms]), alone[variable][0])
                self.assertTrue(np.isnan(data["emd"][s].drop_sel(sample_size=[arms])).all())
        self.assertEqual(" ".join(map(str, table.frame(store.results(self.path("arms"), "posterior"))["sample_size"])), "5 5 3 3 7 7")

    def test_any_number_of_ranks(self):
        """All samplers of the registry, with the problem's own prior if they can use it."""
        samplers = json.loads(self.succeed("list", "samplers", "--json").stdout)
        names = [one["name"] for one in samplers if "gaussian" not in one.get("needs", [])]
        options = {"smc": ", particles: 50", "smc_tempered": ", particles: 50", "twisted": ", particles: 4"}
        policies = ", ".join(f"{{name: {name}{options.get(name, '')}, prior: exact}}" for name in names)
        sets = ["--set", f"policies=[ts, {policies}]"]
        self.succeed("run", self.study, "-o", self.path("one"), *sets, ranks=1)
        with xr.open_dataset(self.path("one/results.nc")) as data:
            self.assertTrue(np.isfinite(data["emd"]).all())
        for ranks in (2, 3, 4):
            self.succeed("run", self.study, "-o", self.path(f"ranks{ranks}"), *sets, ranks=ranks)
            self.assert_same_results(self.path("one/results.nc"), self.path(f"ranks{ranks}/results.nc"))

    def test_refusals(self):
        for old, new, part in (("policies: [ts, diffts]", "policies: [ts, linucb]", "does not sample"),
                               ("sample_sizes: [1, 4, 20]", "sample_sizes: [1, 4, 4]", "they must increase"),
                               ("[gm_cross, gm_rays]", "[gm_cross, rays]", "mode_weight needs"),
                               ("[gm_cross, gm_rays]", "[gm_cross, file]", "problem.file")):
            self.fail_with(3, part, "run", self.write("bad.yaml", STUDY.replace(old, new)), "-o", self.path("bad"))

    def test_log_concavity(self):
        """At the start of tilted transport: the curvature at the draws is at least the sharp bound, and that at least the printed one."""
        study = self.write("inverse.yaml", INVERSE)
        self.succeed("run", study, "-o", self.path("out"))
        with xr.open_dataset(self.path("out/results.nc")) as data:
            met, bound, sharp = (data[f"log_concavity{ending}"].values for ending in ("", "_bound", "_sharp"))
            self.assertTrue(np.isfinite([met, bound, sharp]).all())
            self.assertTrue((bound < sharp).all() and (sharp <= met).all())
            np.testing.assert_array_equal(met[:, 0], met[:, 1])
            # The Q of all three rows has the eigenvalues snr^2 and 0, in every run.
            np.testing.assert_allclose(bound[..., -1], bound[0, 0, 0, -1], rtol=1e-9)
        self.succeed("run", study, "-o", self.path("ising"), "--set", "problem.theta=ising")
        with xr.open_dataset(self.path("ising/results.nc")) as data:
            spread = 0.7 ** 2
            self.assertTrue((data["log_concavity"][..., -1] >= (1 + spread) * (1 - spread) - 1e-9).all())
            self.assertTrue(np.isnan(data["log_concavity_bound"]).all())
            self.assertTrue(np.isfinite(data["mean_error"]).all())
        self.fail_with(3, "log_concavity needs", "run", study, "-o", self.path("rays"), "--set", "problem.theta=rays", "--set",
                       "problem.dimension=2", "--set", "policies=[{name: ts}]")
        self.fail_with(3, "at most 20 dimensions", "run", study, "-o", self.path("large"), "--set", "problem.theta=ising", "--set",
                       "problem.dimension=21", "--set", "policies=[{name: tilted, prior: exact}]")

    def ranks(self, theta, policies, *more, metrics=("rank",), sizes="[5]"):
        """For each metric the p-value of uniform ranks by policy: theta* redrawn for each of RUNS runs, 5 observations or `sizes`, 63 draws."""
        self.succeed("run", self.study, "-o", self.path(theta), "--set", f"runs={RUNS}", "--set", "block=128", "--set", "draws=63", "--set",
                     f"metrics=[{', '.join(metrics)}]", "--set", f"problem.sample_sizes={sizes}", "--set", f"problem.theta={theta}", "--set", "prior.stages=100",
                     "--set", "prior.replicates=1", "--set", f"policies=[{policies}]", "--overwrite", *more, ranks=2)
        with xr.open_dataset(self.path(f"{theta}/results.nc")) as data:
            # 64 possible ranks in BINS bins of equal width.
            counts = np.array([[np.bincount((rank // (64 // BINS)).astype(int), minlength=BINS) for rank in data[metric].values[0, :, :, 0]] for metric in metrics])
            statistic = ((counts - RUNS / BINS) ** 2 / (RUNS / BINS)).sum(2)
            return [dict(zip(data["policy"].values.astype(str), tails)) for tails in chi_squared_tail(statistic, BINS)]

    def test_ranks_of_norms_and_likelihoods(self):
        """Ranks are uniform too if draws are exact, with Gaussian rewards and with clicks; DPS is far too narrow."""
        metrics = ("rank_norm", "rank_log_likelihood")
        for p in self.ranks("gm_cross", "exact, {name: mixts, prior: exact}, {name: dps, prior: exact}", metrics=metrics):
            self.assertGreater(p["exact"], LEVEL)
            self.assertGreater(p["mixts"], LEVEL)
            self.assertLess(p["dps"], LEVEL)
        for p in self.ranks("rays", "exact", "--set", "likelihood=logistic", metrics=metrics):
            self.assertGreater(p["exact"], LEVEL)

    def test_calibration_with_clicks(self):
        """Ranks need no exact posterior, which is not available in five dimensions with clicks; Laplace's Gaussian is told apart from it."""
        five = [word for key in ("problem.dimension=5", "problem.features=gaussian", "problem.resample_arms=true", "likelihood=logistic")
                for word in ("--set", key)]
        (p,) = self.ranks("gaussian", "{name: ts, prior: exact}, {name: ts, label: laplace, prior: exact, approximation: laplace}", *five,
                          metrics=("rank_norm",), sizes="[10]")
        self.assertGreater(p["ts"], LEVEL)
        self.assertLess(p["laplace"], LEVEL)
        study = self.write("five.yaml", STUDY[:STUDY.index("sweep")])
        self.fail_with(3, "all but rank, rank_norm and rank_log_likelihood need the exact posterior", "run", study, "-o", self.path("no"), *five,
                       "--set", "problem.theta=gm_sphere", "--set", "metrics=[emd]")

    def test_ranks_of_exact_samplers_are_uniform_and_others_are_not(self):
        """Simulation-based calibration (Talts et al. 2018). LaplaceDPS is under-dispersed, so its ranks pile up at both ends."""
        (p,) = self.ranks("gm_cross", "exact, {name: mixts, prior: exact}, {name: diffts, prior: exact}, {name: dps, prior: exact}")
        self.assertGreater(p["exact"], LEVEL)
        self.assertGreater(p["mixts"], LEVEL)
        self.assertLess(p["diffts"], LEVEL)
        self.assertLess(p["dps"], LEVEL)
        self.assertGreater(self.ranks("gaussian", "ts")[0]["ts"], LEVEL)


if __name__ == "__main__":
    program.main()
