"""`thompson export`: the rows, read by pandas, are the numbers that xarray reads from results.nc."""

import os

import netCDF4
import numpy as np
import pandas as pd
import xarray as xr

import journals
import program
import replay

BANDIT = """name: rows
runs: 8
block: 4
problem: {dimension: 2, arms: 4, rounds: 9, noise: 1}
metrics: [regret_floor]
rounds_kept: [1, 5, 9]
prior: {train_samples: 60, mixture_starts: 1, replicates: 2}
policies: [ts, {name: mixts, label: "a, \\"b\\""}]
sweep: {problem.theta: [gaussian, cross], problem.noise: [1, 0.1]}
"""
POSTERIOR = """name: rows
study: posterior
runs: 6
block: 3
draws: 20
metrics: [emd, moments]
problem: {theta: gm_cross, arms: 5, sample_sizes: [1, 4]}
policies: [ts, {name: mixts, prior: exact}]
sweep: {problem.noise: [1, 0.5]}
"""
ROUNDS = BANDIT.replace("sweep: {problem.theta: [gaussian, cross], problem.noise: [1, 0.1]}", "sweep: {problem.rounds: [6, 9]}").replace("rounds_kept: [1, 5, 9]\n", "").replace("metrics: [regret_floor]\n", "")


class Export(program.ProgramTest):
    def rows(self, out):
        """The exported rows, with every number as it is written."""
        path = self.path("rows.csv")
        if os.path.exists(path):
            os.remove(path)
        self.assertEqual(self.succeed("export", out, "-o", path).stdout, "")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.succeed("export", out).stdout)
        return pd.read_csv(path, float_precision="round_trip")

    def expected(self, out, axis):
        """The same from results.nc: what varies with a run or point, for all runs that have ended and all points that the setting has."""
        with xr.open_dataset(f"{out}/results.nc") as data:
            data = data.load()
        curves = [name for name in data.data_vars if "run" in data[name].dims and axis in data[name].dims]
        columns = [name for name in data.data_vars if data[name].dims == ("setting", "policy", "run") and name != "status"]
        keys = [name for name, value in data.coords.items() if value.dims == ("setting",) and name != "setting"]
        table = xr.merge([data[[*curves, *columns, "status"]]]).broadcast_like(data[curves[0]])
        frame = table.to_dataframe(dim_order=["setting", "policy", "run", axis]).reset_index()
        for name in (*keys, "setting", "policy"):
            frame[name] = [text.decode() if isinstance(text, bytes) else text for text in frame[name]]
        order = {name: {label: i for i, label in enumerate(data[name].astype(str).values)} for name in ("setting", "policy")}
        frame["order"] = frame["setting"].map(order["setting"]) * 1000 + frame["policy"].map(order["policy"])
        frame = frame[frame["status"] > 0].sort_values(["order", "run", axis], kind="stable")
        frame["status"] = np.where(frame["status"] == 1, "ok", "failed")
        return frame[["setting", *keys, "policy", "run", "replicate", "status", axis, *curves, *columns]].reset_index(drop=True)

    def same(self, out, axis, length):
        rows, expected = self.rows(out), self.expected(out, axis)
        self.assertEqual(len(rows), length)
        self.assertEqual(set(rows.columns), set(expected.columns))
        pd.testing.assert_frame_equal(rows, expected[rows.columns], check_exact=True, check_dtype=False)
        return rows

    def test_bandit(self):
        """Swept numbers and words, labels with commas and quotes, curves of the world, replicates; unfinished and failed runs."""
        out, study = self.path("out"), self.write("bandit.yaml", BANDIT)
        self.succeed("run", study, "-o", out, "--progress", "none")
        rows = self.same(out, "round", 4 * 2 * 8 * 3)
        self.assertEqual(list(rows.columns[:9]), ["setting", "problem_theta", "problem_noise", "policy", "run", "replicate", "status", "round", "regret"])
        self.assertEqual(set(rows["policy"]), {"ts", 'a, "b"'})
        journals.remove(out, 0, 3)
        self.succeed("reduce", out, "--overwrite")
        self.same(out, "round", 4 * 2 * 8 * 3 - 2 * 4 * 3)

    def test_posterior(self):
        out = self.path("out")
        self.succeed("run", self.write("posterior.yaml", POSTERIOR), "-o", out, "--progress", "none")
        self.same(out, "sample_size", 2 * 2 * 6 * 2)

    def test_swept_rounds(self):
        """A setting has its own points, not those of the longest."""
        out = self.path("out")
        self.succeed("run", self.write("rounds.yaml", ROUNDS), "-o", out, "--progress", "none")
        rows = self.rows(out)
        self.assertEqual(len(rows), 2 * 8 * (6 + 9))
        with xr.open_dataset(f"{out}/results.nc") as data:
            short = data["regret"][0, 1, 5].values
        there = rows[(rows["problem_rounds"] == 6) & (rows["policy"] != "ts") & (rows["run"] == 5)]["regret"].to_numpy()
        self.assertEqual(there.tolist(), short[:6].tolist())

    def test_several(self):
        """Rows of several folders are those of each, after the name of its folder, also with a comma; folders with other columns are refused before anything is
        written."""
        folders = [self.path("one"), self.path("two, again")]
        study = self.write("rounds.yaml", ROUNDS)
        for folder, noise in zip(folders, (1, 0.5)):
            self.succeed("run", study, "-o", folder, "--progress", "none", "--set", f"problem.noise={noise}")
        expected = [self.rows(folder) for folder in folders]
        path = self.path("both.csv")
        self.succeed("export", *folders, "-o", path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.succeed("export", *folders).stdout)
        rows = pd.read_csv(path, float_precision="round_trip")
        self.assertEqual(rows.columns[0], "folder")
        self.assertEqual(rows["folder"].unique().tolist(), folders)
        for folder, own in zip(folders, expected):
            there = rows[rows["folder"] == folder].drop(columns="folder").reset_index(drop=True)
            pd.testing.assert_frame_equal(there, own, check_exact=True, check_dtype=False)
        other = self.path("other")
        self.succeed("run", self.write("posterior.yaml", POSTERIOR), "-o", other, "--progress", "none")
        said = f"{other} has a column 'problem_noise' where {folders[0]} has 'problem_rounds'"
        self.fail_with(3, said, "export", *folders, other)
        self.fail_with(3, said, "export", *folders, other, "-o", self.path("three.csv"))
        self.assertFalse(os.path.exists(self.path("three.csv")))
        self.fail_with_usage("no results folder given", "export", "-o", self.path("none.csv"))

    def test_failed(self):
        """A failed run has rows, without numbers."""
        self.write("broken.py", "def sample(x, y, rng, about):\n    raise ValueError\n")
        study, out = self.write("bandit.yaml", BANDIT), self.path("out")
        process = program.thompson("run", study, "-o", out, "--set", "policies=[ts, {name: python, module: broken, callable: sample}]", environment={"PYTHONPATH": self.folder})
        self.assertEqual(process.returncode, 5)
        rows = self.rows(out)
        failed = rows[rows["policy"] == "python"]
        self.assertEqual(len(failed), len(rows) / 2)
        self.assertEqual(set(failed["status"]), {"failed"})
        self.assertTrue(failed[["regret", "regret_floor", "seconds"]].isna().all(axis=None))

    def test_replay(self):
        log = replay.World().log(np.random.default_rng(1), 200)
        log["propensity"] = log["propensity"] / 2  # so that values are doubtful
        replay.write(self.path("log.nc"), log)
        out = self.path("out")
        self.succeed("run", self.write("replay.yaml", replay.STUDY % self.path("log.nc")), "-o", out, "--progress", "none")
        rows = self.rows(out)
        with xr.open_dataset(f"{out}/results.nc") as data:
            self.assertEqual(list(rows["estimator"]), list(data["estimator"].astype(str).values))
            for name in rows.columns[3:-1]:
                np.testing.assert_array_equal(rows[name], data[name][0, 0], err_msg=name)
            meanings = data["doubt"].attrs["flag_meanings"].split()
            self.assertEqual(list(rows["doubt"]), [meanings[int(code)] for code in data["doubt"][0, 0]])

    def test_files(self):
        """No file is replaced, and no Parquet is promised."""
        out = self.path("out")
        self.succeed("run", self.write("posterior.yaml", POSTERIOR), "-o", out, "--progress", "none")
        notes = self.write("notes.csv", "mine")
        self.fail_with(4, "notes.csv exists; remove it, or use another name", "export", out, "-o", notes)
        with open(notes, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        self.fail_with(4, "cannot", "export", out, "-o", self.path("no/rows.csv"))
        self.fail_with_usage("to_parquet", "export", out, "-o", self.path("rows.parquet"))
        self.fail_with_usage("does not end in .csv", "export", out, "-o", self.path("rows.txt"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["notes.csv", "out", "posterior.yaml", "small.yaml"])


if __name__ == "__main__":
    program.main()
