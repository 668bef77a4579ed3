"""Studies whose settings are the points of a design: what the points are, that they do not depend on ranks, and that more points reuse those of a smaller
design."""

import json
import os
import subprocess
import sys

import netCDF4
import numpy as np
from scipy import integrate, stats
from scipy.stats import qmc

import journals
import program

STUDY = """name: design
runs: 6
block: 3
problem: {theta: gaussian, dimension: 2, rounds: 5}
policies: [ts, egreedy]
design: {kind: sobol, points: 8}
sweep:
  problem.noise: {from: 0.1, to: 10, scale: log}
  problem.condition_number: {from: 1, to: 3}
  problem.arms: {from: 2, to: 12, scale: log}
  problem.features: [ball, sphere]
"""
KNOWN = """name: known
runs: 16
block: 16
problem: {theta: gaussian, features: basis}
policies: [random]
design: {kind: saltelli, points: 64}
sweep:
  problem.rounds: {from: 2, to: 20}
  problem.dimension: {from: 2, to: 30, scale: log}
  problem.noise: {from: 0.1, to: 10, scale: log}
"""
SENSITIVITY = os.path.join(os.environ["THOMPSON_SOURCE"], "analysis/tools/sensitivity.py")
KEYS = ("problem_noise", "problem_condition_number", "problem_arms", "problem_features")


class Design(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(STUDY)

    def setUp(self):
        super().setUp()
        self.study, self.out = self.write("design.yaml", STUDY), self.path("out")

    def run_study(self, *words, out=None, **options):
        return self.succeed("run", self.study, "-o", out or self.out, *words, **options).stderr

    def keys(self, out):
        """The swept keys: {name: [setting]}."""
        with netCDF4.Dataset(f"{out}/results.nc") as file:
            return {name: np.array(file[name][:]) for name in KEYS if name in file.variables}

    def places(self, out):
        """Where the two real keys lie in the unit square, [setting, 2]."""
        keys = self.keys(out)
        return np.stack([np.log10(keys["problem_noise"] / 0.1) / 2, (keys["problem_condition_number"] - 1) / 2], axis=1)

    def test_points(self):
        """Every eighth of a range has one of eight points, lists are shared out, and settings are numbered."""
        keys, places = self.keys(self.finished), self.places(self.finished)
        for column in places.T:
            self.assertEqual(sorted((column * 8).astype(int)), list(range(8)))
        np.testing.assert_array_equal(keys["problem_arms"], keys["problem_arms"].round())
        self.assertTrue((keys["problem_arms"] >= 2).all() and (keys["problem_arms"] <= 12).all())
        self.assertEqual(sorted(keys["problem_features"]), ["ball"] * 4 + ["sphere"] * 4)
        with netCDF4.Dataset(f"{self.finished}/results.nc") as file:
            self.assertEqual(file["regret"].shape[:2], (8, 2))
            self.assertEqual(list(file["setting"][:]), [f"point={i}" for i in range(8)])

    def test_discrepancy(self):
        """Scrambled points fill the square better than independent ones: their discrepancy is below the median of those by a factor of more than ten
        (SciPy's own scrambled points: 60 to 100)."""
        self.run_study("--set", "design.points=256", "--set", "runs=1", "--set", "policies=[random]")
        rng = np.random.default_rng(1)
        independent = np.median([qmc.discrepancy(rng.random((256, 2))) for _ in range(20)])
        self.assertLess(qmc.discrepancy(self.places(self.out)), independent / 10)

    def test_ranks_and_shards(self):
        words = ("--set", "design.kind=saltelli", "--set", "design.points=4")
        self.run_study(*words)
        self.run_study(*words, out=self.path("three"), ranks=3)
        for shard in ("0/2", "1/2"):
            self.run_study(*words, "--shard", shard, out=self.path("parts"))
        self.succeed("reduce", self.path("parts"))
        for other in ("three", "parts"):
            self.assert_same_results(f"{self.out}/results.nc", f"{self.path(other)}/results.nc")
        groups = [values.reshape(4, 6) for values in self.keys(self.out).values()]
        for j, values in enumerate(groups):
            mixed = [values[:, 1 + k] == values[:, 5 if k == j else 0] for k in range(4)]
            self.assertTrue(np.all(mixed), KEYS[j])

    def grow(self, what, words, tasks, again):
        """Continues the study with an edit; `again` tasks are repeated, and the results are those of a fresh run."""
        self.assertIn(f"{tasks - again} of {tasks} tasks are finished, {again} to run", self.run_study("--resume", *words), what)
        self.run_study(*words, "--overwrite", out=self.path("fresh"))
        self.assert_same_results(f"{self.out}/results.nc", f"{self.path('fresh')}/results.nc")

    def test_growth(self):
        """The points of a Sobol design stay when it grows; those of a hypercube do not."""
        numbers = ("--set", "problem.features=ball")  # without words, which can make points equal
        self.run_study(*numbers)
        self.grow("more points", (*numbers, "--set", "design.points=32"), 128, 96)
        self.grow("fewer points", (*numbers, "--set", "design.points=16"), 64, 0)
        self.grow("another range", (*numbers, "--set", "problem.noise={from: 0.1, to: 11, scale: log}"), 32, 32)
        self.grow("another seed", (*numbers, "--set", "seed=9"), 32, 32)
        latin = (*numbers, "--set", "design.kind=latin")
        self.grow("another kind", latin, 32, 32)
        self.grow("a larger hypercube", (*latin, "--set", "design.points=9"), 36, 36)

    def test_after_a_kill(self):
        words = ("--set", "design.kind=saltelli", "--set", "design.points=16")
        job = self.start("run", self.study, "-o", self.out, *words, records=5)
        self.wait_until(job, lambda: len(journals.records(self.out)) == 5)
        job.kill()
        job.wait()
        more = (*words[:2], "--set", "design.points=32")
        self.assertRegex(self.run_study("--resume", *more, ranks=2), r"[1-9]\d* of 768 tasks are finished")
        self.run_study(*more, out=self.path("fresh"))
        self.assert_same_results(f"{self.out}/results.nc", f"{self.path('fresh')}/results.nc")

    def test_plan_and_status(self):
        self.assertRegex(self.succeed("plan", self.study).stdout, r"^# 8 settings x 2 policies x 6 runs")
        self.assertIn("measured in setting point=", self.succeed("plan", self.study, "--calibrate").stdout)
        self.assertIn("point=7", self.succeed("status", self.finished).stdout)

    def test_many_keys(self):
        """Sixteen keys are the most of saltelli: two columns of Sobol points for each."""
        keys = [key for key in json.loads(program.thompson("list", "keys", "--json").stdout) if key["type"] == "number" and not key.get("fixed")]
        names = [key["name"] for key in keys][:17]
        self.assertEqual(len(names), 17)
        study = self.write("many.yaml", "name: a\npolicies: [ts]\ndesign: {kind: saltelli, points: 2}\nsweep:\n" + "".join(
            f"  {key['name']}: {{from: {key.get('minimum', 0)}, to: {key.get('maximum', 1)}}}\n" for key in keys[:17]))
        self.fail_with(3, f"{study}:3:16: key 'design.kind': 17 keys are swept; value 'saltelli' allows at most 16", "plan", study)

    def test_refused(self):
        for words, message in ((("--set", "sweep.zip=true"), "key 'sweep.zip': a design chooses"),
                               (("--set", "design.points=6"), "value '6' is not a power of two"),
                               (("--set", "problem.noise={from: 1, to: 0.5}"), "value '1' is not below"),
                               (("--set", "design=none"), "key 'sweep.problem.noise': a range needs a design")):
            self.fail_with(3, message, "run", self.study, "-o", self.out, *words)

    def test_sensitivity(self):
        """A world whose answer is known: the regret of random arms with independent N(0, 1) means is rounds times the mean of the largest of d such
        numbers, whatever the noise. All indices are within their intervals, and those of the noise are 0."""
        study = self.write("known.yaml", KNOWN)
        self.succeed("run", study, "-o", self.out)
        shown = subprocess.run([sys.executable, SENSITIVITY, self.out], capture_output=True, text=True, check=True).stdout.splitlines()
        rounds, arms, noise = (np.array(line.split()[2:], float) for line in shown[-3:])
        places = (np.arange(10000) + 0.5) / 10000
        n, d = np.rint(2 + 18 * places), np.rint(2 * 15**places)
        largest = {k: integrate.quad(lambda x, k=k: x * k * stats.norm.pdf(x) * stats.norm.cdf(x)**(k - 1), -9, 9)[0] for k in np.unique(d)}
        m = np.array([largest[k] for k in d])
        whole = np.mean(n**2) * np.mean(m**2) - (n.mean() * m.mean())**2
        for found, first, total in ((rounds, n.var() * m.mean()**2, n.var() * np.mean(m**2)), (arms, m.var() * n.mean()**2, m.var() * np.mean(n**2))):
            for value, half, truth in ((*found[:2], first / whole), (*found[2:], total / whole)):
                self.assertLess(abs(value - truth), half)
                self.assertLess(half, 0.35)
        np.testing.assert_array_equal(noise, 0)


if __name__ == "__main__":
    program.main()
