"""Kept rounds (rounds_kept): results have these alone, with the values that they have when all are kept; files stay small, and `plan` says how small."""

import json
import os

import netCDF4
import numpy as np
import xarray as xr

import journals
import program

STUDY = """name: kept
runs: {runs}
problem: {{theta: gaussian, dimension: 2, arms: 5, rounds: {rounds}}}
rounds_kept: {kept}
policies: [{policies}]
"""


class Rounds(program.ProgramTest):
    def make(self, kept, policies="ts, linucb", runs=64, rounds=60):
        return self.write("kept.yaml", STUDY.format(kept=kept, policies=policies, runs=runs, rounds=rounds))

    def folder_of(self, name, kept, *words, **more):
        out = self.path(name)
        shown = self.succeed("run", self.make(kept, **more), "-o", out, *words).stdout
        return out, shown

    def test_swept_rounds(self):
        """`round` is the union of the kept rounds; values, means, quantiles and paired differences are those of a study that keeps all."""
        sweep = ("--set", "problem.rounds=[40, 60]")
        (whole, _), (part, shown) = self.folder_of("all", "all", *sweep), self.folder_of("some", "[10, 33, 40, 60]", *sweep)
        with xr.open_dataset(f"{whole}/results.nc") as full, xr.open_dataset(f"{part}/results.nc") as data:
            np.testing.assert_array_equal(data["round"], [10, 33, 40, 60])
            for name in ("regret", "regret_mean", "regret_se", "regret_diff_mean", "regret_diff_se", "regret_quantile"):
                np.testing.assert_array_equal(data[name], full[name].sel(round=data["round"].values), name)
                there = np.isfinite(data[name].values)
                self.assertFalse(there[0, ..., 3].any(), "a setting of 40 rounds has no round 60")
                self.assertTrue(there[0, 1, ..., :3].all() and there[1, 1].all())
        self.assertRegex(shown, r"by round\n +policy +10 +se +33 +se +40 +se +runs\n")
        self.assertRegex(shown, r"by round\n +policy +10 +se +33 +se +40 +se +60 +se +runs\n")
        size = {out: sum(os.path.getsize(path) for path in journals.files(out)) for out in (whole, part)}
        self.assertEqual(size[part], size[whole] - 8 * 64 * 2 * (40 - 3 + 60 - 4), "journals hold only what is kept")

    def test_target(self):
        """An adaptive number of runs goes by the last kept round."""
        out, _ = self.folder_of("target", "[7, 20]", "--set", "runs.target_se=0.35", "--set", "runs.min=64", "--set", "runs.max=1024", "--set", "runs.of=regret")
        with xr.open_dataset(f"{out}/results.nc") as data:
            self.assertLessEqual(float(data["regret_se"].sel(round=20).max()), 0.35)
            first = data["regret"].sel(round=20).values[0, :, :64]
            self.assertGreater((first.std(axis=1, ddof=1) / 8).max(), 0.35, "else the first wave would do")

    def test_every_round_is_logged(self):
        out, _ = self.folder_of("logged", "[60]", "--set", "event_log=true", policies="ts", runs=3)
        with netCDF4.Dataset(f"{out}/events/default-ts.nc") as log:
            np.testing.assert_array_equal(log["round"][:], np.tile(np.arange(1, 61), 3))

    def test_plan(self):
        """`plan` says what files weigh, within a sixth of what they do and 60 kB of what NetCDF adds, and which key weighs most."""
        for kept, more, heaviest, logs in (("[15, 30, 60]", [], "rounds_kept", 0), ("[60]", [], "runs", 0), ("[60]", ["--set", "event_log=true"], "event_log", 1)):
            out, _ = self.folder_of("weighed", kept, "--overwrite", *more, policies="ts, mixts, linucb", runs=500 if more else 5000)
            plan = json.loads(self.succeed("plan", self.path("kept.yaml"), "--json", *more).stdout)["files"]
            self.assertEqual(plan["heaviest_key"], heaviest)
            sizes = {"tasks": sum(os.path.getsize(path) for path in journals.files(out)), "results": os.path.getsize(f"{out}/results.nc")}
            for name, size in sizes.items():
                self.assertLess(abs(plan[name] - size), size / 6 + 6e4, f"{kept} {name}: {size}, planned {plan[name]}")
            self.assertEqual(plan["event_logs"] > 0, bool(logs))
        self.assertIn("; event_log weighs most, ", self.succeed("plan", self.path("kept.yaml"), "--set", "event_log=true").stdout)

    def test_large_ablation(self):
        """375 settings x 10 policies x 1 000 runs at four rounds take at most 350 MB, 20 x 4 096 runs of 1 000 rounds at most 90 MB."""
        ten = ", ".join(f"{{name: ts, label: p{i}}}" for i in range(10))
        noise = "problem.noise=[{}]".format(", ".join(f"{1 + i / 100}" for i in range(375)))
        wide = json.loads(self.succeed("plan", self.make("[25, 50, 100, 200]", ten, 1000, 200), "--json", "--set", noise).stdout)
        self.assertLess(wide["bytes"], 350e6)
        long = json.loads(self.succeed("plan", self.make("auto", "ts, mixts, lints, linucb", 4096, 1000), "--json", "--set", "problem.noise=[1, 2, 3, 4, 5]").stdout)
        self.assertLess(long["bytes"], 90e6)


if __name__ == "__main__":
    program.main()
