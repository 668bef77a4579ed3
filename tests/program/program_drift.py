"""A world whose theta* changes: what a discount of the evidence gains, what `tune` finds, which methods refuse it, on any number of ranks."""

import json

import netCDF4
import numpy as np

import program

STUDY = """
name: drift
seed: 3
runs: 96
problem: {theta: gm_cross, rounds: %d, drift: {kind: switch, every: 500}}
policies: %s
"""
DISCOUNTS = [0.99, 0.98, 0.97, 0.95]
LADDER = "[{name: mixts, prior: exact, label: none}" + "".join(f", {{name: mixts, prior: exact, discount: {g}, label: g{g}}}" for g in DISCOUNTS) + "]"


class Drift(program.ProgramTest):
    def regret(self, name, rounds, policies, *changes, **options):
        self.succeed("run", self.write("drift.yaml", STUDY % (rounds, policies)), "-o", self.path(name), "--progress", "none", "--set", "rounds_kept=all", *changes, **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            return np.ma.filled(data["regret"][0], np.nan)

    def test_discount(self):
        """Changes every 500 of 2 000 rounds: without a discount regret is 1 269, with 0.98 about 250, in another implementation; 96 runs, with standard errors
        of about 70 and 10. `tune`, with half of the rounds, finds a discount within a tenth of the best of them."""
        regret = self.regret("out", 2000, LADDER)[:, :, -1]
        mean, se = regret.mean(axis=1), regret.std(axis=1, ddof=1) / np.sqrt(96)
        self.assertAlmostEqual(mean[0], 1269, delta=4 * se[0])
        self.assertAlmostEqual(mean[2], 250, delta=4 * se[2])
        self.assertLess(4 * mean[1:].min(), mean[0])
        found = json.loads(self.succeed("tune", self.path("drift.yaml"), "--set", "policies=[{name: mixts, prior: exact}]", "--set", "problem.rounds=1000",
                                        "--tolerance", "0.2", "--json").stdout)
        self.assertEqual(len(found["policies"]), 39)
        self.assertIn("discount", found["best"])
        best = self.regret("best", 2000, f"[{found['best']}]")[0, :, -1]
        self.assertLess(best.mean(), 1.1 * mean.min())

    def test_static(self):
        """Nothing changes before the first switch; afterwards it does, but the oracle still has no regret; a discount of 1 is no discount."""
        policies = "[mixts, {name: mixts, discount: 1, label: one}, linucb, {name: egreedy, discount: 0.9}, oracle]"
        still = self.regret("still", 600, policies, "--set", "problem.drift.kind=none", "--set", "problem.drift.every=0")
        moving = self.regret("moving", 600, policies)
        self.assertEqual(still[:, :, :500].tobytes(), moving[:, :, :500].tobytes())
        self.assertTrue((still[:4, :, -1].mean(axis=1) + 1 < moving[:4, :, -1].mean(axis=1)).all())
        self.assertTrue((moving[4] == 0).all())
        self.assertEqual(moving[0].tobytes(), moving[1].tobytes())

    def test_ranks(self):
        policies = "[{name: mixts, discount: 0.9}, {name: ts, posterior: per_arm, discount: 0.9, label: arms}, {name: vits2, discount: 0.9}, localised]"
        changes = ("--set", "problem.drift.every=10", "--set", "runs=12", "--set", "block=4", "--set", "likelihood=logistic")
        small = policies.replace(", localised", "")
        self.regret("one", 40, small, *changes)
        self.regret("three", 40, small, *changes, ranks=3)
        self.assert_same_results(self.path("one/results.nc"), self.path("three/results.nc"))

    def test_finite_set(self):
        """Members of a finite set, with a separate theta* for each arm too: every segment has different ones for the arms of a run."""
        rng = np.random.default_rng(1)
        np.savetxt(self.path("theta.csv"), rng.normal(size=(40, 2)), delimiter=",")
        for unknown, policy in (("shared", "ts"), ("per_arm", "{name: ts, posterior: per_arm}")):
            self.regret(unknown, 40, f"[{policy}]", "--set", "problem.theta=file", "--set", f"problem.file={self.path('theta.csv')}", "--set", "problem.drift.every=10",
                        "--set", f"problem.unknown={unknown}", "--set", "problem.arms=5")

    def test_refused(self):
        study = self.write("drift.yaml", STUDY % (600, "[ts]"))
        for changes, part in ((["metrics=[regret_floor]"], "a fixed theta*"), (["problem.drift.every=0"], "problem.drift"), (["problem.drift.kind=none"], "problem.drift"),
                              (["problem.family=twin", "problem.arms=5"], "arms that do not depend on theta*"), (["study=posterior"], "study posterior"),
                              (["policies=[{name: smc, discount: 0.9}]"], "sampler smc"), (["policies=[{name: vits1, model: network, discount: 0.9}]"], "model: network"),
                              (["policies=[{name: vits1, posterior: per_arm, discount: 0.9}]"], "sampler vits1"),
                              (["study=posterior", "problem.drift.kind=none", "problem.drift.every=0", "policies=[{name: ts, discount: 0.9}]"], "discounted only in study bandit")):
            self.fail_with(3, part, "run", study, "-o", self.path("no"), *(word for change in changes for word in ("--set", change)))


if __name__ == "__main__":
    program.main()
