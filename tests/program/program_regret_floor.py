"""The floor of regret in results.nc: its value in a known case, below the Bayes optimum and below every policy; the same for all policies and ranks."""

import pathlib
import sys

import netCDF4
import numpy as np

import program

sys.path.insert(0, str(pathlib.Path(program.SOURCE) / "tests" / "bench"))
import bayes_optimum

TWO_ARMS = """
name: two_arms
runs: 8192
problem: {theta: gaussian, dimension: 2, features: basis, rounds: 200}
policies: [ts]
metrics: [regret_floor]
"""
SETTINGS = """
name: settings
seed: 3
runs: 64
problem: {rounds: 60, arms: 20}
policies: [{name: exact, prior: exact}, linucb, oracle]
metrics: [regret_floor]
sweep: {problem.theta: [cross, rays, corners], problem.resample_arms: [true, false]}
"""


class RegretFloor(program.ProgramTest):
    def results(self, name, study, **options):
        self.succeed("run", self.write(f"{name}.yaml", study), "-o", self.path(name), "--progress", "none", **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return {key: (data[key].dimensions, np.ma.filled(data[key][...], np.nan)) for key in data.variables if key.startswith("regret")}

    def test_two_arms(self):
        """Two Gaussian arms, whose optimum is known: after 10, 50, 200 rounds the floor is 1.16, 1.61, 2.00 and Thompson sampling has 2.61, 5.00, 7.74,
        according to another implementation with 40 000 runs. Bounds: four standard errors of both."""
        found = self.results("two", TWO_ARMS)
        for rounds, floor, thompson in ((10, 1.16, 2.61), (50, 1.61, 5.00), (200, 2.00, 7.74)):
            for name, expected, share in (("regret_floor", floor, ()), ("regret", thompson, (0,))):
                mean, error = (found[name + part][1][(0, *share, rounds - 1)] for part in ("_mean", "_se"))
                self.assertAlmostEqual(mean, expected, delta=4 * error * np.hypot(1, np.sqrt(8192 / 40000)))
            self.assertLess(found["regret_floor_mean"][1][0, rounds - 1] + 6 * found["regret_floor_se"][1][0, rounds - 1], bayes_optimum.OPTIMUM[rounds])
            self.assertGreater(found["regret_mean"][1][0, 0, rounds - 1], bayes_optimum.OPTIMUM[rounds])

    def test_dynamic_program(self):
        """The optimum itself: on a coarser grid within 0.1% of the value on which 801 and 1 601 points agree."""
        for rounds in (10, 30):
            self.assertAlmostEqual(bayes_optimum.optimum(rounds, 401) / bayes_optimum.optimum(rounds, 801), 1, delta=1e-3)
        self.assertAlmostEqual(bayes_optimum.optimum(10) / bayes_optimum.OPTIMUM[10], 1, delta=1e-3)
        # One round left: nothing can be learned, so the regret is E max(theta_1, theta_2) = 1 / sqrt(pi) for two standard normals.
        self.assertAlmostEqual(bayes_optimum.optimum(1), 1 / np.sqrt(np.pi), delta=1e-9)

    def test_every_policy_is_above(self):
        """Paired over runs, within three standard errors; the oracle, which knows theta*, does not count as a policy."""
        found = self.results("settings", SETTINGS)
        dimensions, floor = found["regret_floor"]
        self.assertEqual(dimensions, ("setting", "run", "round"))
        self.assertEqual(found["regret_floor_mean"][0], ("setting", "round"))
        self.assertEqual(found["regret_floor_se"][0], ("setting", "round"))
        self.assertNotIn("regret_floor_diff_mean", found)
        np.testing.assert_allclose(found["regret_floor_mean"][1], floor.mean(axis=1), rtol=1e-12)
        above = found["regret"][1][:, :2] - floor[:, None]
        error = above.std(axis=2, ddof=1) / np.sqrt(64)
        self.assertTrue((above.mean(axis=2) > -3 * error).all())
        self.assertTrue((above.mean(axis=2)[..., -1] > 3 * error[..., -1]).all())
        self.assertTrue((np.diff(floor, axis=-1) >= 0).all())

    def test_ranks(self):
        study = SETTINGS.replace("64", "8").replace("60", "10")
        self.results("one", study)
        self.results("three", study, ranks=3)
        self.assert_same_results(self.path("one/results.nc"), self.path("three/results.nc"))


if __name__ == "__main__":
    program.main()
