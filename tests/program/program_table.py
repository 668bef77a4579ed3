"""Bandits from tables of rewards: NetCDF and CSV of one table, clicks, any ranks; policies and priors that do not fit are refused."""

import netCDF4
import numpy as np

import program

STUDY = """
name: table
runs: 24
block: 8
problem: {family: table, file: %s, rounds: 200}
policies: [ts, {name: ts, rule: bayes_ucb, label: ucb}, {name: vits2, posterior: per_arm}, random, oracle]
"""


class Table(program.ProgramTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.context = np.column_stack([np.ones(240), rng.normal(size=(240, 2))])
        self.classes = np.argmax(self.context @ np.array([[0, 0.2, 0], [2, -1, -1], [0, 1.5, -1.5]]) + 0.3 * rng.normal(size=(240, 3)), axis=1)
        with open(self.path("table.csv"), "w", encoding="utf-8") as file:
            file.write("x1,x2,x3,class\n" + "".join(f"{a!r},{b!r},{c!r},{k}\n" for (a, b, c), k in zip(self.context.tolist(), self.classes)))
        self.write_netcdf("table.nc", np.eye(3)[self.classes])

    def write_netcdf(self, name, reward):
        with netCDF4.Dataset(self.path(name), "w") as data:
            for dimension, size in (("event", 240), ("dim", 3), ("arm", 3)):
                data.createDimension(dimension, size)
            data.createVariable("context", "f8", ("event", "dim"))[:] = self.context
            data.createVariable("reward", "f8", ("event", "arm"))[:] = reward

    def regret(self, name, table, *changes, **options):
        self.succeed("run", self.write("study.yaml", STUDY % self.path(table)), "-o", self.path(name), "--progress", "none", *changes, **options)
        with netCDF4.Dataset(self.path(f"{name}/results.nc")) as data:
            self.assertTrue((data["status"][...] == 1).all())
            return np.ma.filled(data["regret"][0], np.nan)

    def test_forms_and_ranks(self):
        """The same regret from both forms, on any ranks; random is wrong in two of three rounds; every policy that learns does much better."""
        csv, netcdf = self.regret("csv", "table.csv"), self.regret("nc", "table.nc", ranks=3)
        self.assertEqual(csv.tobytes(), netcdf.tobytes())
        self.assertTrue((csv[4] == 0).all())
        self.assertAlmostEqual(csv[3, :, -1].mean(), 200 * 2 / 3, delta=5 * np.sqrt(200 * 2 / 9 / 24))
        self.assertTrue((csv[:3, :, -1].mean(axis=1) < 80).all())
        clicks = self.regret("clicks", "table.csv", "--set", "likelihood=logistic")
        self.assertTrue((clicks[:2, :, -1].mean(axis=1) < 100).all())

    def test_refused(self):
        study = self.write("study.yaml", STUDY % self.path("table.nc"))
        for change, part in (("policies=[mixts]", "no theta*"), ("policies=[{name: ts, prior: exact}]", "no exact prior"), ("policies=[linucb]", "with the contexts of problem.family = table each has its own"),
                             ("policies=[{name: ts, posterior: shared}]", "per_arm"), ("metrics=[regret_floor]", "per_arm"), ("problem.file=none.nc", "none.nc")):
            sentence = program.thompson("run", study, "-o", self.path("no"), "--set", change).stderr
            self.assertIn(part, sentence)
        self.write("from_1.csv", "x1,class\n" + "".join(f"1,{k + 1}\n" for k in self.classes))
        self.fail_with(3, "from_1.csv: no event has class 0; classes are counted from 0", "run", study, "-o", self.path("no"), "--set", f"problem.file={self.path('from_1.csv')}")
        self.succeed("run", study, "-o", self.path("four"), "--progress", "none", "--set", f"problem.file={self.path('from_1.csv')}", "--set", "problem.arms=4")
        self.write_netcdf("half.nc", 0.5 * np.eye(3)[self.classes])
        self.fail_with(3, "with likelihood logistic it must be 0 or 1", "run", study, "-o", self.path("no"), "--set", "likelihood=logistic", "--set", f"problem.file={self.path('half.nc')}")


if __name__ == "__main__":
    program.main()
