"""Studies that grow: `run --resume` of an edited study runs only the tasks that the edit touches, says so before, and ends with the results of a fresh run."""

import os
import re
import shutil

import netCDF4

import journals
import program

# 3 policies x 5 blocks of 4 runs; the prior is that of mixts alone.
STUDY = """name: growth
runs: 20
block: 4
problem: {theta: gaussian, dimension: 2, arms: 4, rounds: 6, noise: 1}
metrics: [regret_floor]
prior: {train_samples: 60, components: 2, mixture_starts: 1}
policies: [ts, mixts, {name: linucb, label: index}]
"""
ADAPTIVE = ("--set", "runs.target_se=0.3", "--set", "runs.min=8", "--set", "runs.max=40", "--set", "runs.of=regret")

# What is edited, how many tasks the edited study has, and how many of them run again.
EDITS = [
    ("a policy is added", ["policies=[ts, mixts, {name: linucb, label: index}, egreedy]"], 20, 5),
    ("a policy is removed", ["policies=[ts, {name: linucb, label: index}]"], 10, 0),
    ("a policy is renamed", ["policies=[{name: ts, label: plain}, mixts, {name: linucb, label: index}]"], 15, 0),
    ("policies change places", ["policies=[{name: linucb, label: index}, mixts, ts]"], 15, 0),
    ("an option changes", ["policies=[ts, mixts, {name: linucb, label: index, width: 0.2}]"], 15, 5),
    ("a setting is added", ["problem.noise=[2, 1]"], 30, 15),
    ("rounds are added", ["problem.rounds=[6, 9]"], 30, 15),
    ("more runs, with a partial block", ["runs=42"], 33, 18),
    ("blocks of another size", ["block=5"], 12, 12),
    ("more replicates", ["prior.replicates=2"], 18, 12),
    ("a key of one policy", ["prior.components=3"], 15, 5),
    ("a key of no policy here", ["prior.stages=30", "title=another"], 15, 0),
    ("other kept rounds", ["rounds_kept=[2, 6]"], 15, 15),
    ("kept rounds that are the same", ["rounds_kept=all"], 15, 0),
    ("another seed", ["seed=3"], 15, 15),
]


class Growth(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(STUDY)

    def setUp(self):
        super().setUp()
        self.study, self.out = self.write("growth.yaml", STUDY), self.path("out")
        shutil.copytree(self.finished, self.out)

    def same_as_fresh(self, words, out=None):
        fresh = self.path("fresh")
        self.succeed("run", self.study, "-o", fresh, "--overwrite", "--progress", "none", *words)
        self.assert_same_results(f"{out or self.out}/results.nc", f"{fresh}/results.nc")

    def grow(self, what, words, tasks, again, ranks):
        done = tasks - again
        said = f"{done} of {tasks} tasks are finished, {again} to run"
        before = len(journals.records(self.out))
        planned = self.succeed("run", self.study, "-o", self.out, "--dry-run", *words)
        self.assertIn(said, planned.stdout, what)
        self.assertEqual(len(journals.records(self.out)), before, what)
        shown = self.succeed("run", self.study, "-o", self.out, "--resume", *words, ranks=ranks).stderr
        self.assertIn(said, shown, what)
        self.assertEqual(len(journals.records(self.out)) - before, again, what)
        self.same_as_fresh(words)
        self.succeed("verify", self.out, "--tasks", "1")

    def test_edits(self):
        for i, (what, sets, tasks, again) in enumerate(EDITS):
            with self.subTest(what):
                shutil.rmtree(self.out)
                shutil.copytree(self.finished, self.out)
                self.grow(what, [word for text in sets for word in ("--set", text)], tasks, again, ranks=i % 5)

    def test_there_and_back(self):
        """What an edit leaves behind stays until it is pruned, so an edit can be taken back."""
        edit = ("--set", "policies=[ts]")
        self.grow("one policy", edit, 5, 0, 0)
        self.grow("all again", (), 15, 0, 2)
        self.grow("one policy again", edit, 5, 0, 0)
        self.assertIn("10 finished tasks are not of this study", self.succeed("run", self.study, "-o", self.out, "--dry-run", *edit).stdout)
        self.assertRegex(self.succeed("prune", self.out).stdout, r"^10 unused tasks removed, ")
        self.assertEqual(len(journals.records(self.out)), 5)
        self.assertIn("5 of 15 tasks are finished, 10 to run\n", self.succeed("run", self.study, "-o", self.out, "--dry-run").stdout)
        self.assertRegex(self.succeed("prune", self.out).stdout, r"^0 unused tasks removed, ")
        self.grow("all from one", (), 15, 10, 3)

    def test_after_a_kill(self):
        words = ("--set", "runs=60", "--set", "policies=[ts, mixts, egreedy]")
        job = self.start("run", self.study, "-o", self.out, "--resume", *words, records=4)
        self.wait_until(job, lambda: len(journals.records(self.out)) == 15 + 4)
        job.kill()
        job.wait()
        self.grow("after a kill", words, 45, 45 - 10 - 4, 2)

    def test_adaptive(self):
        out = self.path("adaptive")
        self.succeed("run", self.study, "-o", out, *ADAPTIVE)
        kept = len(journals.records(out))
        finer = (*ADAPTIVE[:1], "runs.target_se=0.2", *ADAPTIVE[2:])
        shown = self.succeed("run", self.study, "-o", out, "--resume", *finer, ranks=2).stderr
        self.assertRegex(shown, rf"{kept} of {kept} tasks are finished, 0 or more to run")
        self.same_as_fresh(finer, out)

    def test_shards(self):
        """A shard takes an edit only if it is told to continue; the other shards then find their study."""
        words = ("--set", "problem.noise=[1, 2]")
        self.fail_with(6, "problem.noise", "run", self.study, "-o", self.out, "--shard", "0/2", *words)
        self.succeed("run", self.study, "-o", self.out, "--shard", "0/2", "--resume", *words)
        self.succeed("run", self.study, "-o", self.out, "--shard", "1/2", *words)
        self.succeed("reduce", self.out)
        self.assertEqual(len(journals.records(self.out)), 15 + 15)
        self.same_as_fresh(words)

    def test_equal_tasks(self):
        """A policy that the swept key cannot change is run once, and every setting has its numbers: those of a study of that setting alone."""
        words = ("--set", "policies=[ts, mixts]", "--set")
        alone = []
        for components in (2, 3):
            self.succeed("run", self.study, "-o", self.path(f"alone{components}"), *words, f"prior.components={components}")
            with netCDF4.Dataset(self.path(f"alone{components}/results.nc")) as file:
                alone.append(file["regret"][0].tobytes())
        whole, parts = self.path("whole"), self.path("parts")
        shown = self.succeed("run", self.study, "-o", whole, *words, "prior.components=[2, 3]", ranks=2)
        self.assertIn("running tasks: 15/15", shown.stderr)
        planned = self.succeed("run", self.study, "-o", parts, "--shard", "0/3", "--dry-run", *words, "prior.components=[2, 3]").stdout
        left = re.search("^0 of 7 tasks are finished, ([0-9]+) to run", planned).group(1)  # of 20 tasks in all
        for shard in ("0/3", "1/3", "2/3"):
            shown = self.succeed("run", self.study, "-o", parts, "--shard", shard, *words, "prior.components=[2, 3]").stderr
            self.assertIn(f"running tasks: {left}/{left} in" if shard == "0/3" else "running tasks: ", shown)
        self.succeed("reduce", parts)
        for out in (whole, parts):
            with netCDF4.Dataset(f"{out}/results.nc") as file:
                self.assertEqual([file["regret"][s].tobytes() for s in range(2)], alone)
        self.assertEqual(len(journals.records(whole)), 15)

    def test_refused(self):
        """Another name or kind is another study."""
        kind = ("--set", "study=stream", "--set", "policies=[ts]", "--set", "metrics=[emd]")
        for edit in (("--set", "name=other"), kind):
            for word in ("--resume", "--dry-run"):
                self.assertEqual(program.thompson("run", self.study, "-o", self.out, word, *edit).returncode, 6)
        self.assertEqual(len(journals.records(self.out)), 15)

    def test_journal_of_another_study(self):
        """It is unused, and reported."""
        other = self.write("other.yaml", STUDY.replace("name: growth", "name: another"))
        self.succeed("run", other, "-o", self.path("other"), "--seed", "8")
        (theirs,) = journals.files(self.path("other"))
        shutil.copy(theirs, os.path.join(self.out, "tasks"))
        self.assertIn("15 of 15 tasks are finished, 0 to run; 15 finished tasks are not of this study", self.succeed("run", self.study, "-o", self.out, "--dry-run").stdout)
        self.succeed("run", self.study, "-o", self.out, "--resume")
        self.same_as_fresh(())
        self.assertRegex(self.succeed("prune", self.out).stdout, "^15 unused tasks removed")

    def test_files_are_read(self):
        """A file that a key names counts by its contents."""
        rows = "\n".join(f"{i % 7 - 3},{i % 5 - 2}" for i in range(40))
        file, words = self.write("theta.csv", rows), ("--set", "problem.theta=file", "--set", f"problem.file={self.path('theta.csv')}")
        self.succeed("run", self.study, "-o", self.path("file"), *words)
        self.assertIn("15 of 15 tasks are finished", self.succeed("run", self.study, "-o", self.path("file"), "--dry-run", *words).stdout)
        with open(file, "a", encoding="utf-8") as more:
            more.write("\n0.5,0.5\n")
        self.assertIn("0 of 15 tasks are finished", self.succeed("run", self.study, "-o", self.path("file"), "--dry-run", *words).stdout)

    def test_event_logs(self):
        """Logs of policies that are gone do not stay."""
        words = ("--set", "event_log=true", "--set", "policies=[ts, egreedy]")
        self.succeed("run", self.study, "-o", self.out, "--resume", *words)
        self.assertEqual(len(os.listdir(f"{self.out}/events")), 2)
        self.succeed("run", self.study, "-o", self.out, "--resume", *words[:3], "policies=[ts]")
        self.assertEqual([re.sub(r".*-", "", name) for name in os.listdir(f"{self.out}/events")], ["ts.nc"])


if __name__ == "__main__":
    program.main()
