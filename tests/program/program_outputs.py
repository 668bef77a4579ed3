"""What the program writes for users, and tells them: labels in any script, outputs that must not replace files of another kind, odd paths, options
that exclude each other, the command for the figure, and keys that have no effect."""

import os

import netCDF4
import xarray as xr

import program
from tiny import STUDY, THETA, TinyTest


class Outputs(TinyTest):
    def test_labels(self):
        """Labels in any script are read rightly by netCDF4-python and by xarray, and are the same bytes on any number of ranks."""
        labels = ["a", "ε-greedy", "日本語", "naïve", "plain", "𝜃"]
        policies = "[" + ", ".join(f'{{name: random, label: "{label}"}}' for label in labels) + "]"
        study = self.write("labels.yaml", STUDY % policies + "sweep: {problem.theta: [cross, rays]}\n")
        for ranks in (0, 2):
            self.succeed("run", study, "-o", self.path(f"labels{ranks}"), ranks=ranks)
            with netCDF4.Dataset(self.path(f"labels{ranks}/results.nc")) as file:
                self.assertEqual(list(file["policy"][:]), labels)
                self.assertEqual(list(file["setting"][:]), ["problem.theta=cross", "problem.theta=rays"])
            with xr.open_dataset(self.path(f"labels{ranks}/results.nc")) as data:
                self.assertEqual(list(data.policy.values), labels)
                self.assertEqual(data.regret.sel(policy="日本語", setting="problem.theta=rays").shape, (4, 4))
        self.assert_same_results(self.path("labels0/results.nc"), self.path("labels2/results.nc"))

    def test_outputs_of_another_kind(self):
        """-o replaces a file of the same kind, and no other file of the program."""
        study = self.write("tiny.yaml", STUDY % "[random]")
        history = self.write("history.csv", "x1,x2,y\n1,2,3\n")
        ratings = self.write("ratings.csv", "userId,movieId,rating\n" + "".join(f"{u},{m},{(u + m) % 5}\n" for u in range(1, 7) for m in range(1, 6)))
        made = {"draws": self.path("draws.nc"), "prior": self.path("trained.nc"), "embedding": self.path("embedding.nc"), "results": self.path("out/results.nc"),
                "prior samples": self.path("out/prior_samples.nc")}
        commands = {"draws": lambda out: [*self.sample(history)[:-1], out], "prior": lambda out: [*self.train(self.theta)[:-1], out],
                    "embedding": lambda out: ["prepare", "movielens", ratings, "--option", "dimension=2", "-o", out],
                    "policy": lambda out: ["tune", study, "-o", out]}
        self.succeed("run", study, "-o", self.path("out"))
        for kind in ("draws", "prior", "embedding"):
            for _ in range(2):
                self.succeed(*commands[kind](made[kind]))
        for old, path in made.items():
            with open(path, "rb") as file:
                before = file.read()
            for kind, command in commands.items():
                if kind != old:
                    with self.subTest(old=old, new=kind):
                        self.fail_with(4, "it exists, and holds something other than", *command(path))
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)
        for kind in ("draws", "prior"):  # saved agents are priors, and have a sampler
            saved = os.path.join(program.SOURCE, "tests", "golden", "saved_1_agents.nc")
            with open(saved, "rb") as file:
                self.fail_with(4, "it exists, and holds something other than", *commands[kind](self.write_bytes("agents.nc", file.read())))

    def test_memory(self):
        """Options that exclude each other are refused by plan, not by every task."""
        for options in ("{name: ts, memory: filtered, approximation: laplace}", "{name: ts, memory: filtered, temper: 2}", "{name: ts, memory: filtered, candidates: 8}",
                        "{name: mixts, memory: {keep: 5}, temper: 2}", "{name: mixts, memory: {keep: 5}, approximation: laplace}",
                        "{name: tuned_ts, memory: filtered, temper: 0.5}", "{name: ts, memory: {keep: 5}, discount: 0.9}"):
            with self.subTest(options):
                self.fail_with(3, "memory", "plan", self.write("memory.yaml", STUDY % f"[{options}]"), "--set", "likelihood=logistic", "--set", "problem.theta=gaussian")
        self.fail_with(3, "first_precision 400 is above last_precision 300", "plan", self.write("one.yaml", STUDY % "[{name: localised, first_precision: 400}]"))
        self.fail_with(3, "components must be 1", "plan", self.write("two.yaml", STUDY % "[{name: vits1, components: 2, model: network}]"))

    def test_odd_paths(self):
        """A path that is not UTF-8 can be used, and what is recorded of it can be read."""
        odd = os.fsencode(self.folder) + b"/caf\xe9"
        with open(odd + b".csv", "w", encoding="ascii") as file:
            file.write("x1,x2,y\n1,2,3\n")
        process = program.subprocess.run([program.PROGRAM, *self.sample(odd + b".csv")[:-1], odd + b".nc"], capture_output=True, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        os.rename(odd + b".nc", self.path("draws.nc"))
        with xr.open_dataset(self.path("draws.nc")) as data:
            self.assertIn("caf\\351.csv'", data.attrs["history"])

    def test_figure(self):
        """The key `figure` is printed as part of a command, so it must be a script."""
        study = self.write("tiny.yaml", STUDY % "[random]")
        for figure in ("x.py; rm -rf ~", "$(id).py", "/tmp/x.py", "../../x.py", "`id`", "-x.py", "a|b", "x.py & y"):
            with self.subTest(figure):
                self.fail_with(3, "key 'figure'", "run", study, "-o", self.path("out"), "--set", f'figure="{figure}"')
        self.assertIn("analysis/tools/selection.py --by steps ", self.succeed("run", study, "-o", self.path("out"), "--set", "figure=tools/selection.py --by steps").stdout)

    def test_keys_without_effect(self):
        """Keys that another kind of study or another family uses are noted, once each; others are not."""
        study = self.write("tiny.yaml", STUDY % "[random]")
        table = self.write("table.csv", "x1,x2,class\n" + "".join(f"{a},{b},{i % 3}\n" for i, (a, b) in enumerate(THETA)))
        of_table = ["problem.family=table", f"problem.file={table}"]
        for sets, noted in (([*of_table, "problem.theta=rays"], ["problem.theta is rays, but problem.family table does not use it"]),
                            ([*of_table, "problem.features=gaussian"], ["problem.features is gaussian, but"]),
                            ([*of_table, "problem.condition_number=9", "problem.zeta=2"], ["problem.condition_number is 9, but", "problem.zeta is 2, but"]),
                            ([*of_table, "problem.snr=2"], ["problem.snr is 2, but"]), (of_table, []),
                            (["problem.family=pool", "problem.features=sphere"], ["problem.features is sphere, but problem.family pool does not use it"]),
                            (["problem.zeta=2"], ["problem.zeta is 2, but problem.family synthetic does not use it"]),
                            (["prior.stages=[5, 9, 7]", "policies=[ts, diffts]"],
                             ["the sweep does not change policy ts in setting prior.stages=9, whose results are those of prior.stages=5, and likewise in 1 more"]),
                            (["prior.stages=[5, 9]", "problem.noise=[1, 2]", "policies=[diffts]"], []),
                            (["prior.guard_width=[1, 2]", "policies=[ts, diffts]"], ["the sweep does not change any policy in setting prior.guard_width=2, whose results are"]),
                            (["prior.guard_shrink=[1, 0.5]", "prior.guard=0.1", "policies=[ts, diffts]"], ["the sweep does not change policy ts in"]),
                            (["prior.test_fraction=[0.1, 0.2]", "policies=[ts, diffts]"], ["the sweep does not change any policy in"]),
                            (["feedback.delay_distribution=[constant, geometric]"],
                             ["feedback.delay_distribution is constant and other values, but no reward is late", "the sweep does not change policy random in"]),
                            (["feedback.delay_distribution=[constant, geometric]", "feedback.delay=2"], []),
                            (["problem.zeta=[2, 3]"], ["problem.zeta is 2 and other values, but problem.family synthetic does not use it", "the sweep does not change policy random in"]),
                            (["problem.noise=[2, 3]", "likelihood=logistic"],
                             ["problem.noise is 2 and other values, but rewards with the likelihood logistic have no noise", "the sweep does not change policy random in"]),
                            (["stream.tasks=5"], ["stream.tasks is 5, but study bandit does not use it"]),
                            (["train_fraction=0.1"], ["train_fraction is 0.1, but study bandit does not use it"]),
                            (["study=posterior", "policies=[ts]", "feedback.delay=3", "problem.theta=gaussian"], ["feedback.delay is 3, but study posterior", "problem.rounds is 4, but study posterior"]),
                            (["study=stream", "policies=[ts]", "stream.tasks=5", "stream.switch_at=5"], ["stream.switch_at is 5, but there are only 5 bandits"]),
                            (["study=stream", "policies=[ts]", "stream.tasks=5", "stream.switch_at=3"], []),
                            (["problem.family=[synthetic,pool]", "problem.features=sphere"], []), (["problem.features=sphere", "feedback.delay=2"], [])):
            with self.subTest(sets):
                process = self.succeed("plan", study, *(word for text in sets for word in ("--set", text)))
                notes = [line for line in process.stderr.splitlines() if line.startswith("note: ")]
                self.assertEqual(len(notes), len(noted), notes)
                for sentence in noted:
                    self.assertTrue(any(sentence in line for line in notes), notes)

if __name__ == "__main__":
    program.main()
