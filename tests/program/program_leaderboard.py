"""`thompson status --table`: the table that `run` prints, of what is finished so far, while the job runs and without touching its folder."""

import os
import pty
import re
import subprocess

import netCDF4
import numpy as np

import journals
import program
import replay

# 2 settings x 3 policies x 3 blocks of 4 runs. The prior concerns mixts alone, so ts is the same task in both settings.
STUDY = """name: board
runs: 12
block: 4
problem: {theta: gaussian, dimension: 2, arms: 4, rounds: 30, noise: 0.5}
policies: [ts, mixts, {name: linucb, label: index}]
prior: {train_samples: 60, mixture_starts: 1, replicates: 3}
sweep: {prior.components: [1, 2]}
"""
POSTERIOR = """name: posterior
study: posterior
runs: 8
block: 4
draws: 20
problem: {theta: gm_cross, arms: 5, sample_sizes: [1, 4]}
policies: [ts, {name: mixts, prior: exact}]
"""


def table(text):
    """The table in what the program printed, without what comes before and after."""
    return re.search(r"\n\n?(\S+: .*)\nse: ", "\n" + text, re.DOTALL)[1].rstrip()


def rows(text):
    """The numbers of a table of one last point: {(setting, policy): [mean, se, difference, se, runs]}."""
    found, setting = {}, None
    for line in table(text).splitlines():
        words = line.split()
        if line and not line.startswith(" "):
            setting = words[0].rstrip(":")
        elif words and words[0] != "policy" and not line.startswith("difference"):
            numbers = [float("nan") if word == "-" else float(word) for word in words[1:]]
            found[setting, words[0]] = numbers if len(numbers) == 5 else [*numbers[:2], np.nan, np.nan, numbers[2]]
    return found


class Leaderboard(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(STUDY)

    def setUp(self):
        super().setUp()
        self.study, self.out = self.write("board.yaml", STUDY), self.path("out")

    def files(self):
        return {path: os.stat(path).st_mtime_ns for path in [self.out, *(os.path.join(where, name) for where, _, names in os.walk(self.out) for name in names)]}

    def test_finished(self):
        """The numbers that `run` printed, to the last digit: curves at the last point and at all points, and the values of a replay study."""
        replay_study = replay.STUDY % self.path("log.nc")
        replay.write(self.path("log.nc"), replay.World().log(np.random.default_rng(1), 200))
        for name, text in (("bandit", STUDY), ("posterior", POSTERIOR), ("replay", replay_study)):
            with self.subTest(name):
                out = self.path(name)
                printed = self.succeed("run", self.write(f"{name}.yaml", text), "-o", out, "--progress", "none").stdout
                shown = self.succeed("status", out, "--table").stdout
                printed = printed[: printed.index("results: ")].strip()
                self.assertRegex(shown, r"^\d+ tasks: \d+ done, 0 failed, 0 left\n")
                self.assertEqual(shown[shown.index("\n\n") :].strip(), printed)
                self.assertEqual(self.succeed("reduce", out).stdout.rsplit("\n\n", 1)[0].strip(), printed)

    def expected(self, runs):
        """Mean, error, paired difference and its error of these runs[setting, policy] in the finished results, by NumPy; errors over the means of
        replicates, the blocks of four runs, where they are larger."""
        with netCDF4.Dataset(f"{self.finished}/results.nc") as file:
            regret = np.ma.filled(file["regret"][..., -1], np.nan)
        regret = np.where(runs, regret, np.nan)

        def mean_and_error(values):
            values = values[~np.isnan(values)].reshape(-1, 4)
            errors = [x.std(ddof=1) / np.sqrt(x.size) for x in (values.ravel(), values.mean(axis=1)) if x.size > 1]
            return [values.mean() if values.size else np.nan, max(errors, default=np.nan)]

        settings = ["prior.components=1", "prior.components=2"]
        return {(setting, policy): [*mean_and_error(regret[s, p]), *(mean_and_error(regret[s, p] - regret[s, 0]) if p else [np.nan, np.nan]), runs[s, p].sum()]
                for s, setting in enumerate(settings) for p, policy in enumerate(["ts", "mixts", "index"]) if runs[s].any()}

    def check(self, shown):
        runs = np.zeros((2, 3, 12), bool)
        for task in journals.done(self.out):
            setting, policy, block = np.unravel_index(task, (2, 3, 3))
            runs[setting if policy == 1 else slice(None), policy, 4 * block : 4 * block + 4] = True
        # The tasks of one policy say nothing about the time of another's.
        silent = [name for p, name in enumerate(["ts", "mixts", "index"]) if not runs[:, p].any()]
        self.assertEqual("left at that speed" in shown, not silent, shown)
        self.assertEqual([name for name in silent[:1] if f"time left unknown: no task of '{name}' is done" in shown], silent[:1], shown)
        board, expected = rows(shown), self.expected(runs)
        self.assertEqual(list(board), list(expected))
        for cell, numbers in board.items():
            # 4 digits of means, 2 of errors: half a unit of the last one is at most 5e-4 and 5e-2 of the number.
            for number, exact, tolerance in zip(numbers, expected[cell], (6e-4, 6e-2, 6e-4, 6e-2, 0)):
                np.testing.assert_allclose(number, exact, rtol=tolerance, err_msg=f"{cell}: {numbers}, not {expected[cell]}")

    def test_while_it_runs(self):
        job = self.start("run", self.study, "-o", self.out, "--progress", "none", records=5)
        self.wait_until(job, lambda: len(journals.records(self.out)) == 5)
        before = self.files()
        shown = self.succeed("status", self.out, "--table").stdout
        self.check(shown)
        self.assertIn("\nrunning: host ", shown)
        self.assertEqual(self.files(), before)
        self.open_gate()
        self.assertEqual(job.wait(program.PATIENCE), 0)
        self.check(self.succeed("status", self.out, "--table").stdout)

    def test_not_started(self):
        """Settings without a run are counted, not shown; tasks that an edit left unused are in no table."""
        self.succeed("run", self.study, "-o", self.out, "--set", "prior.components=1", "--set", "problem.noise=[0.5, 1]")
        journals.remove(self.out, *range(9, 18))
        self.assertIn("\n1 of 2 settings have no finished run\n", self.succeed("status", self.out, "--table").stdout)
        self.succeed("run", self.study, "-o", self.out, "--resume", "--set", "prior.components=1", "--set", "problem.noise=0.5", "--set", "policies=[index]",
                     "--set", "policies=[{name: linucb, label: index}]")
        shown = self.succeed("status", self.out, "--table").stdout
        self.assertTrue(shown.startswith("3 tasks: 3 done"), shown)
        self.assertEqual(len(rows(shown)), 1)

    def watch(self, stdout):
        return subprocess.Popen([program.PROGRAM, "status", self.out, "--table", "--watch", "--interval", "0.1"], stdout=stdout, text=True)

    def test_watch(self):
        """In a pipe one block follows another until the job, here a shard, is over; the last one has all that it did."""
        shard = ("--shard", "0/2")
        job = self.start("run", self.study, "-o", self.out, "--progress", "none", *shard, records=2)
        self.wait_until(job, lambda: len(journals.records(self.out)) == 2)
        with self.watch(subprocess.PIPE) as watcher:
            lines, heads = [], 0
            while heads < 3:
                lines.append(watcher.stdout.readline())
                self.assertTrue(lines[-1], "the watch ended before the job")
                heads += " tasks: " in lines[-1]
            self.open_gate()
            self.assertEqual(job.wait(program.PATIENCE), 0)
            last = "".join(lines) + watcher.stdout.read()
        self.assertEqual(watcher.returncode, 0)
        blocks = re.split(r"\n\n(?=\d+ tasks: )", last)
        self.assertGreaterEqual(len(blocks), 3)
        self.assertIn("\nrunning: host ", blocks[0])
        self.assertNotIn("\nrunning", blocks[-1])
        self.assertEqual(blocks[-1], self.succeed("status", self.out, "--table").stdout)
        self.assertNotIn("\033", last)

    def test_terminal(self):
        """On a terminal a look replaces the last one; without a job there is one."""
        self.succeed("run", self.study, "-o", self.out, "--progress", "none")
        reader, writer = pty.openpty()
        with self.watch(writer) as watcher:
            self.assertEqual(watcher.wait(program.PATIENCE), 0)
        os.close(writer)
        self.assertTrue(os.read(reader, 100).startswith(b"\033[H\033[2J18 tasks: 18 done"))
        os.close(reader)

    def test_refused(self):
        for word in ("--table", "--watch"):
            self.fail_with_usage("--json cannot be combined with --table or --watch", "status", self.finished, "--json", word)


if __name__ == "__main__":
    program.main()
