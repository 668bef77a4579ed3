"""Under a real Slurm: jobs that are pre-empted and requeued, and arrays of shards, give the same bytes as an undisturbed run."""

import os
import signal
import sys
import time
import unittest

import program
import slurm

SKIPPED = 77  # the exit status that CTest reads as "not run"
JOBS = os.path.join(program.SOURCE, "jobs")
# A job is disturbed once FEW tasks have been done since it began; it waits there until its ranks are stopped, so that it is not over before.
LONGER = ("--set", "problem.rounds=4000")
TASKS = 108
FEW = 5


class Slurm(program.ProgramTest):
    """Each test has its own jobs; the daemons serve all."""

    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: CLUSTER.command("scancel", "--partition=main,urgent", "--full", check=False))

    def wait_for(self, what, condition):
        deadline = time.time() + program.PATIENCE
        while not condition():
            self.assertLess(time.time(), deadline, f"{what}: not within {program.PATIENCE} s; {CLUSTER.command('squeue', '-t', 'all')}; {CLUSTER.logs()}")
            time.sleep(0.1)

    def done(self, folder):
        """Finished tasks, as `thompson status` reports while the job runs."""
        process = program.thompson("status", folder)
        return int(process.stdout.split(" tasks: ")[1].split(" done")[0]) if process.returncode == 0 else 0

    def stop_after_few(self, folder):
        """Wait until FEW more tasks are done in this folder, then stop the ranks and open their gate; returns them. Slurm wakes them when it ends their
        job."""
        before = self.done(folder)
        self.wait_for("progress", lambda: self.done(folder) >= before + FEW)
        ranks = [int(process) for process in os.listdir("/proc") if process.isdigit() and self.is_rank(process, folder)]
        self.signal(ranks, signal.SIGSTOP)
        self.open_gate()
        return ranks

    @staticmethod
    def signal(ranks, number):
        for rank in ranks:
            try:
                os.kill(rank, number)
            except ProcessLookupError:  # it has ended
                pass

    def log(self, job):
        with open(CLUSTER.path(f"thompson-{job}.log"), encoding="utf-8") as file:
            return file.read()

    def wait_for_end(self, job):
        over = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}
        self.wait_for(f"end of job {job}", lambda: set(CLUSTER.states(job) or ["unknown"]) <= over)
        self.assertEqual(set(CLUSTER.states(job)), {"COMPLETED"}, CLUSTER.logs())

    def test_preempted_and_requeued(self):
        """A job of a higher partition takes the node twice; then the batch script gets its own signal, as before the time limit."""
        out = self.path("out")
        CLUSTER.environment.update(self.close_gate(FEW))
        job = CLUSTER.submit("--ntasks=2", os.path.join(JOBS, "requeue.sbatch"), self.study, "-o", out, *LONGER)
        for life in range(2):
            self.stop_after_few(out)
            urgent = CLUSTER.submit("--partition=urgent", "--ntasks=2", "--output=/dev/null", "--wrap=sleep 0.5")
            self.wait_for("the urgent job", lambda: CLUSTER.states(urgent) == ["COMPLETED"])
            self.close_gate(FEW)
        ranks = self.stop_after_few(out)
        CLUSTER.command("scancel", "--batch", "--signal=USR1", job)
        self.signal(ranks, signal.SIGCONT)
        self.wait_for("the third life's end", lambda: CLUSTER.restarts(job) == 3)
        self.assertFalse(os.path.exists(os.path.join(out, "results.nc")))
        self.succeed("run", self.study, "-o", self.path("undisturbed"), *LONGER, ranks=2)  # meanwhile the job waits
        self.wait_for_end(job)
        self.assertIn("life 4 of job", self.log(job))
        self.assert_same_results(os.path.join(out, "results.nc"), self.path("undisturbed/results.nc"))

    def test_array_of_shards(self):
        out = self.path("out")
        array = CLUSTER.submit("--array=0-3", "--ntasks=1", os.path.join(JOBS, "array.sbatch"), self.study, "-o", out)
        reducer = CLUSTER.submit(f"--dependency=afterok:{array}", "--ntasks=1", "--output=/dev/null", f"--wrap={program.PROGRAM} reduce {out}")
        self.wait_for_end(array)
        self.wait_for_end(reducer)
        self.succeed("run", self.study, "-o", self.path("undisturbed"), ranks=2)
        self.assert_same_results(os.path.join(out, "results.nc"), self.path("undisturbed/results.nc"))

    def test_killed_rank(self):
        """kill -9 of a rank ends the step; the same script, submitted again, continues."""
        out = self.path("out")
        script = os.path.join(JOBS, "single.sbatch")
        CLUSTER.environment.update(self.close_gate(FEW))
        job = CLUSTER.submit("--ntasks=2", script, self.study, "-o", out, *LONGER)
        ranks = self.stop_after_few(out)
        self.signal(ranks[:1], signal.SIGKILL)
        self.wait_for("the end", lambda: CLUSTER.states(job) == ["FAILED"])
        kept = self.done(out)
        self.assertGreaterEqual(kept, FEW)
        again = CLUSTER.submit("--ntasks=2", script, self.study, "-o", out, *LONGER)
        self.wait_for_end(again)
        self.assertIn(f"{TASKS - kept}/{TASKS - kept}", self.log(again))

    @staticmethod
    def is_rank(process, folder):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")
        except OSError:
            return False
        return words[0] == program.PROGRAM and folder in words


if __name__ == "__main__":
    try:
        CLUSTER = slurm.Cluster()
    except slurm.Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    CLUSTER.environment["THOMPSON"] = program.PROGRAM
    unittest.addModuleCleanup(CLUSTER.stop)
    program.main()
