"""What goes wrong on a cluster: each fault ends as documented (docs/cluster.md), nothing finished is lost, and the run continues to the same bytes."""

import concurrent.futures
import os
import pty
import shlex
import shutil
import signal
import subprocess
import threading
import time

import netCDF4

import journals
import program
from processes import alive

# A policy whose single round takes minutes: nothing in the process can stop it gracefully.
HANGING_STUDY = """
name: hanging
study: bandit
seed: 7
runs: 8
block: 4
problem: {theta: gaussian, dimension: 30, arms: 10, rounds: 20}
policies: [ts, {name: vits1, steps: 100000}, linucb]
"""
ONLY_HANGING = ("--set", "policies=[{name: vits1, steps: 100000}]", "--set", "runs=4", "--task-timeout", "100")
TASKS = 108
BEAT = 5  # seconds between the looks of a job at its lock (io_lock.c)


class FaultTest(program.ProgramTest):
    """Runs of the small study in the folder `out`, started in the background, and checks of what they leave."""

    def setUp(self):
        super().setUp()
        self.out = self.path("out")

    @classmethod
    def setUpClass(cls):
        cls.undisturbed = os.path.join(cls.run_once(program.SMALL_STUDY), "results.nc")

    def begin(self, *arguments, study=None, records=3, **options):
        return self.start("run", study or self.study, "-o", self.out, *arguments, records=records, **options)

    def done(self):
        """Finished tasks, as `thompson status` reports while the job runs."""
        process = program.thompson("status", self.out)
        return int(process.stdout.split(" tasks: ")[1].split(" done")[0]) if process.returncode == 0 else 0

    def wait_for_progress(self, job, tasks=3):
        self.wait_until(job, lambda: len(journals.done(self.out)) >= tasks)

    def end(self, job):
        """Exit status and stderr of a job that must end without help."""
        error = job.communicate(timeout=program.PATIENCE)[1]
        return job.returncode, error

    def assert_goes_on(self, ranks=0):
        """--resume computes only what is left, and ends with the bytes of an undisturbed run."""
        left = TASKS - self.done()
        process = self.succeed("run", self.study, "-o", self.out, "--resume", ranks=ranks)
        if left:
            self.assertIn(f"running tasks: {left}/{left} in", process.stderr)
        self.assert_same_results(os.path.join(self.out, "results.nc"), self.undisturbed)


class Tasks(FaultTest):
    """With --task-timeout, a task that hangs or crashes costs only itself."""

    def test_hanging_task(self):
        study = self.write("hanging.yaml", HANGING_STUDY)
        sentence = self.fail_with(5, "2 tasks failed", "run", study, "-o", self.out, "--task-timeout", "2", ranks=2)
        self.assertIn("--resume", sentence)
        with netCDF4.Dataset(os.path.join(self.out, "results.nc")) as file:
            self.assertEqual(file["status"][0].tolist(), [[1] * 8, [2] * 8, [1] * 8])
        failed = [record for record in journals.records(self.out) if record.status == 2]
        self.assertEqual(len(failed), 2)
        self.assertIn(b"--task-timeout", failed[0].payload)

    def test_message_of_a_failed_task(self):
        """In a folder whose name the shell would split: what is printed can be pasted."""
        study, out = self.write("hanging.yaml", HANGING_STUDY), self.path("it's $HOME; out")
        process = program.thompson("run", study, "-o", out, "--task-timeout", "2", "--set", "runs=4")
        self.assertIn("task 1 failed (setting default, policy vits1, runs 0 to 3, seed 7): not finished within the 2 s", process.stderr)
        again = [line.split("to try it again: ")[1] for line in process.stderr.splitlines() if "to try it again: " in line]
        self.assertEqual([shlex.split(line) for line in again], [["thompson", "run", f"{out}/study.yaml", "-o", out, "--resume"]])
        self.assertEqual(shlex.split(process.stdout.splitlines()[-1]), ["report:", "analysis/tools/report.py", out])

    def start_hanging_task(self):
        """Start a job whose only task hangs; returns the job and the task's process."""
        job = self.begin(*ONLY_HANGING, study=self.write("hanging.yaml", HANGING_STUDY))
        self.wait_until(job, lambda: program.children(job.pid))
        return job, program.children(job.pid)[0]

    def test_crashed_task(self):
        job, task = self.start_hanging_task()
        os.kill(task, signal.SIGKILL)
        status, error = self.end(job)
        self.assertEqual(status, 5, error)
        self.assertIn("signal 9", error)
        self.assertEqual([record.status for record in journals.records(self.out)], [2])

    def test_rank_with_a_task_beside_it_is_killed(self):
        """The task's process must not outlive its rank."""
        job, task = self.start_hanging_task()
        job.kill()
        self.end(job)
        deadline = time.time() + program.PATIENCE
        while alive([task]) and time.time() < deadline:
            time.sleep(0.05)
        self.assertEqual(alive([task]), [])


class Stops(FaultTest):
    """Signals and time limits: exit status 75, and no rank is left behind."""

    def test_signal_to_a_single_rank(self):
        """All ranks stop. The others ask once a second, so there must be more to do."""
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(signal=number):
                shutil.rmtree(self.out, ignore_errors=True)
                job = self.begin("--set", "problem.rounds=50000", ranks=2)
                self.wait_for_progress(job, 1)
                os.kill(program.children(job.pid)[1], number)
                self.open_gate()
                status, error = self.end(job)
                self.assertEqual(status, 75, error)
                self.assertIn("run again with --resume", error)
                self.assertLess(len(journals.done(self.out)), TASKS)

    def test_time_limit(self):
        job = self.begin("--time-limit", "0.5", ranks=2)
        self.wait_until(job, lambda: os.path.exists(os.path.join(self.out, "study.yaml")))
        time.sleep(0.5)
        self.open_gate()
        status, error = self.end(job)
        self.assertEqual(status, 75, error)
        self.assert_goes_on()

    def test_nothing_done_within_the_limit(self):
        self.fail_with(75, "stopped early", "run", self.study, "-o", self.out, "--time-limit", "0.001")
        self.succeed("run", self.study, "-o", self.out, "--resume", "--shard", "0/108")  # the priors
        self.fail_with(75, "none was done in this job", "run", self.study, "-o", self.out, "--resume", "--time-limit", "0.001")
        self.assert_goes_on()

    def test_signal_while_a_prior_is_learned(self):
        """Learning shows its progress, and stops, in the middle of a part that takes hours."""
        terminal, screen = pty.openpty()
        command = ("run", self.study, "-o", self.out, "--set", "policies=[localised]", "--set", "prior.training_steps=1000000")
        job = subprocess.Popen([program.PROGRAM, *command], stdout=subprocess.DEVNULL, stderr=screen)
        os.close(screen)
        shown = b""
        try:
            while b"learning priors [" not in shown:
                shown += os.read(terminal, 4096)
            job.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(program.PATIENCE), 75)
            shown += os.read(terminal, 4096)
        finally:
            job.kill()
            os.close(terminal)
        self.assertIn(b"stopped early while learning priors; run again with --resume", shown)

    def test_end_of_the_slurm_job(self):
        """SLURM_JOB_END_TIME ends the run 15 s before that time; a time in the past has no effect."""
        job = self.begin(environment={"SLURM_JOB_END_TIME": str(int(time.time()) + 15)}, records=TASKS)
        self.assertEqual(self.end(job)[0], 75)
        self.succeed("run", self.study, "-o", self.out, "--resume", environment={"SLURM_JOB_END_TIME": str(int(time.time()) - 100)})


class Locks(FaultTest):
    """Two jobs on one folder."""

    def refuse(self, *arguments, code=4, part="another job is writing"):
        return self.fail_with(code, part, "run", self.study, "-o", self.out, *arguments)

    def test_second_job_while_the_first_lives_and_after_it_was_killed(self):
        job = self.begin(ranks=2)
        self.wait_for_progress(job)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # at once, since each waits for a lock that might be given up
            refused = pool.map(lambda arguments: self.refuse(*arguments), (["--resume"], ["--overwrite"], ["--shard", "0/2"]))
            self.assertIn(f"pid {program.children(job.pid)[0]}", list(refused)[0])
        for process in [*program.children(job.pid), job.pid]:
            os.kill(process, signal.SIGKILL)
        self.end(job)
        self.assert_goes_on(ranks=3)

    def test_whole_study_while_a_shard_lives(self):
        job = self.begin("--shard", "1/2")
        self.wait_for_progress(job)
        self.refuse("--resume")
        self.refuse("--overwrite")
        self.succeed("run", self.study, "-o", self.out, "--shard", "0/2")
        self.open_gate()
        self.assertEqual(self.end(job)[0], 0)
        self.assert_goes_on()

    def test_different_studies_that_begin_at_once(self):
        """Two shards, of studies that differ in one key, in an empty folder: one of them creates the study, the other is refused."""
        for attempt in range(8):
            self.out = self.path(f"out{attempt}")
            jobs = [self.begin("--set", "policies=[random]", "--set", f"runs={8 * (shard + 1)}", "--shard", f"{shard}/2", records=TASKS) for shard in range(2)]
            ends = sorted(self.end(job) for job in jobs)
            self.assertEqual([code for code, _ in ends], [0, 6], ends)
            self.assertRegex(ends[1][1], "runs: (8 -> 16|16 -> 8)")

    def test_shard_that_would_overwrite(self):
        process = program.thompson("run", self.study, "-o", self.out, "--shard", "0/2", "--overwrite")
        self.assertEqual(process.returncode, 2)
        self.assertIn("other shards", process.stderr)

    def test_job_on_another_machine(self):
        """While the other job lives, its text in the lock file changes: refused. When the text stops changing, the run takes over, in some 20 s."""
        os.mkdir(self.out)
        lives = threading.Event()
        lives.set()

        def beat():
            number = 0
            while lives.is_set():
                number += 1
                with open(os.path.join(self.out, "lock"), "w", encoding="utf-8") as file:
                    file.write(f"host elsewhere, pid 1, since 2026-01-01; boot another, beat {number:010d}\n")
                time.sleep(0.5)

        other = threading.Thread(target=beat)
        other.start()
        try:
            time.sleep(0.2)
            self.assertIn("host elsewhere, pid 1", self.refuse())
        finally:
            lives.clear()
            other.join()
        begin = time.time()
        self.assertIn("another machine", self.succeed("run", self.study, "-o", self.out).stderr)
        self.assertGreater(time.time() - begin, 15)
        with open(os.path.join(self.out, "lock"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "")

    def test_lock_that_was_taken_over(self):
        """A job that was held up while another took its folder stops when it notices."""
        job = self.begin()
        self.wait_for_progress(job)
        with open(os.path.join(self.out, "lock"), "w", encoding="utf-8") as file:
            file.write("host elsewhere, pid 1, since 2026-01-01; boot another, beat 0000000001\n")
        time.sleep(BEAT)  # it looks as soon as it goes on, and has not computed in the meantime
        self.open_gate()
        status, error = self.end(job)
        self.assertEqual(status, 4, error)
        self.assertIn("took over this folder", error)


class Folder(FaultTest):
    """The folder and its contents."""

    def test_damaged_torn_and_missing_records(self):
        """What cannot be used is reported and computed again; the rest is not."""
        self.succeed("run", self.study, "-o", self.out)
        (path,) = journals.files(self.out)
        last = journals.records(self.out)[-1]
        rest = {7, 3, 5} - {last.task}
        journals.remove(self.out, 7)
        journals.damage(self.out, 3)
        journals.damage_header(self.out, 5)
        os.truncate(path, os.path.getsize(path) - 100)
        with open(os.path.join(self.out, "tasks", "0123456789abcdef.journal"), "wb"):
            pass
        process = self.succeed("run", self.study, "-o", self.out, "--resume", ranks=2)
        again = len(rest | {last.task})
        self.assertIn("damaged records are dropped", process.stderr)
        self.assertIn("task 3 cannot be read; it runs again", process.stderr)
        self.assertIn(f"running tasks: {again}/{again} in", process.stderr)
        self.assert_goes_on()

    def test_verify_tells_all_damaged_tasks(self):
        self.succeed("run", self.study, "-o", self.out)
        (path,) = journals.files(self.out)
        size = os.path.getsize(path)
        journals.damage(self.out, 3, 17, 80)
        process = program.thompson("verify", self.out, "--tasks", "4")
        self.assertEqual(process.returncode, 7, process.stderr)
        lines = process.stdout.splitlines()
        unusable = [line.split(" (")[0] for line in lines if "UNUSABLE: " in line]
        again = [int(line.split()[1]) for line in lines if line.endswith("): same")]
        self.assertEqual(unusable, ["task 3", "task 17", "task 80"])
        self.assertEqual(len(set(again) - {3, 17, 80}), 4, process.stdout)
        self.assertIn(f"3 of {TASKS} finished tasks", process.stderr)
        self.assertEqual(os.path.getsize(path), size, "verify changes nothing")

    def test_torn_prior(self):
        self.succeed("run", self.study, "-o", self.out, "--shard", "0/2")
        priors = os.path.join(self.out, "priors")
        torn = sorted(os.listdir(priors))[0]
        with open(os.path.join(priors, torn), "r+b") as file:
            file.truncate(os.path.getsize(os.path.join(priors, torn)) // 2)
        process = self.succeed("run", self.study, "-o", self.out, "--shard", "1/2")
        self.assertIn(f"{torn} is damaged", process.stderr)
        self.assertIn("learning priors: 1/1 in", process.stderr)
        self.assert_goes_on()

    def test_leftovers_of_a_killed_job_are_swept(self):
        self.succeed("run", self.study, "-o", self.out, "--shard", "0/2")
        for name in ("priors/.mixture-0123456789abcdef0123.nc.4711.0.tmp", ".results.nc.4711.0.tmp"):
            with open(os.path.join(self.out, name), "wb"):
                pass
        self.assert_goes_on()
        self.assertFalse([name for _, _, files in os.walk(self.out) for name in files if name.endswith(".tmp")])

    def test_folder_gone_during_the_run(self):
        job = self.begin(ranks=2)
        self.wait_for_progress(job)
        os.rename(self.out, self.path("moved"))
        self.open_gate()
        status, error = self.end(job)
        self.assertEqual(status, 4, error)
        self.assertIn(self.out, error)

    def test_folder_read_only_during_the_run(self):
        if os.geteuid() != 0:
            self.skipTest("needs the right to mount")
        tasks = os.path.join(self.out, "tasks")
        os.makedirs(tasks)
        if subprocess.run(["mount", "--bind", tasks, tasks], check=False, capture_output=True).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", tasks], check=False)
        job = self.begin("--set", "problem.rounds=200000", records=TASKS, ranks=2)
        self.wait_until(job, lambda: os.path.exists(os.path.join(self.out, "study.yaml")))
        self.assertEqual(journals.files(self.out), [], "a journal is made by its first record")
        subprocess.run(["mount", "-o", "remount,bind,ro", tasks], check=True, capture_output=True)
        status, error = self.end(job)
        self.assertEqual(status, 4, error)
        self.assertIn("Read-only", error)

    def test_quota(self):
        """A limit on the size of files simulates a quota: both fail in write(2). Small limits would affect MPI itself."""
        big = ("--set", "problem.rounds=10000", "--set", "policies=[random]", "--set", "rounds_kept=all")
        limited = ["bash", "-c", 'ulimit -f 5000; exec "$@"', "bash", program.PROGRAM, "run", self.study, "-o", self.out, *big]
        process = subprocess.run(limited, capture_output=True, text=True, timeout=program.PATIENCE, check=False)
        self.assertEqual(process.returncode, 4, process.stderr)
        self.assertIn("File too large", process.stderr)
        self.succeed("run", self.study, "-o", self.out, *big, "--resume")

    def test_disk_full_at_any_moment(self):
        """A tmpfs of every size from nothing to enough for the priors: one sentence, status 4, however far the library has come."""
        os.mkdir(self.out)
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.out], check=False, capture_output=True).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", self.out], check=False)
        for size in range(8, 80, 4):
            subprocess.run(["find", self.out, "-mindepth", "1", "-delete"], check=True)
            subprocess.run(["mount", "-o", f"remount,size={size}k", self.out], check=True)
            self.fail_with(4, "No space left", "run", self.study, "-o", self.out, "--resume")

    def test_clock_that_jumped(self):
        """Files from last year and from next year, including the lock: nothing depends on their times."""
        self.succeed("run", self.study, "-o", self.out, "--shard", "0/2")
        for name, years in ((journals.files(self.out)[0], 1), (os.path.join(self.out, "lock.0"), -1)):
            stamp = time.time() + years * 365 * 86400
            os.utime(name, (stamp, stamp))
        self.assertEqual(self.done(), TASKS // 2)
        self.assert_goes_on()


if __name__ == "__main__":
    program.main()
