"""Results do not depend on ranks, on the order of blocks, or on interruptions: byte for byte."""

import contextlib
import os
import random
import shutil
import signal
import subprocess

import journals
import program


class Invariance(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        """The study on one rank, once for all tests."""
        cls.once = cls.run_once(program.SMALL_STUDY, ranks=1)

    def reference(self):
        """Results in a copy of the study's folder, which the test may change."""
        shutil.copytree(self.once, self.path("one"))
        return self.path("one/results.nc")

    def test_any_number_of_ranks(self):
        reference = self.reference()
        for ranks in (2, 3, 4):
            self.succeed("run", self.study, "-o", self.path(f"ranks{ranks}"), ranks=ranks)
            self.assert_same_results(reference, self.path(f"ranks{ranks}/results.nc"))

    def test_without_mpiexec(self):
        self.succeed("run", self.study, "-o", self.path("alone"))
        self.assert_same_results(self.reference(), self.path("alone/results.nc"))

    def test_block_order(self):
        """Shards run the blocks in a different order: the last third first."""
        reference = self.reference()
        for shard in (2, 0, 1):
            self.succeed("run", self.study, "-o", self.path("shards"), "--shard", f"{shard}/3")
        self.succeed("reduce", self.path("shards"))
        self.assert_same_results(reference, self.path("shards/results.nc"))

    def test_killed_twice_and_resumed(self):
        """kill -9 of a rank at a random moment, twice, on different numbers of ranks; then resumed to the end on yet another."""
        reference = self.reference()
        chance = random.Random(1)
        for ranks, mode in ((2, []), (3, ["--resume"])):
            self.kill_a_rank(self.path("killed"), chance, "run", self.study, *mode, ranks=ranks)
        self.succeed("run", self.study, "-o", self.path("killed"), "--resume", ranks=4)
        self.assert_same_results(reference, self.path("killed/results.nc"))

    def test_damaged_record_runs_again(self):
        reference = self.reference()
        self.succeed("run", self.study, "-o", self.path("torn"))
        journals.damage(self.path("torn"), 3)
        process = self.succeed("run", self.study, "-o", self.path("torn"), "--resume")
        self.assertIn("task 3 cannot be read; it runs again", process.stderr)
        self.assert_same_results(reference, self.path("torn/results.nc"))

    def test_reduce_on_many_ranks(self):
        """All ranks except the first read; a damaged record is found whichever rank reads it, and an error ends all ranks."""
        reference = self.reference()
        os.rename(reference, self.path("kept.nc"))
        self.succeed("reduce", self.path("one"), ranks=3)
        self.assert_same_results(self.path("kept.nc"), reference)
        journals.damage(self.path("one"), 7)
        self.fail_with(6, "8 finished runs that the journals lack", "reduce", self.path("one"), ranks=3)
        self.assert_same_results(self.path("kept.nc"), reference)
        process = program.thompson("reduce", self.path("one"), "--overwrite", ranks=3)
        self.assertEqual(process.returncode, 5, process.stderr)
        self.assertIn("is damaged: task 7 cannot be read", process.stderr)
        self.assertIn("1 not run", process.stdout)
        os.rename(reference, self.path("torn.nc"))
        self.assertEqual(program.thompson("reduce", self.path("one")).returncode, 5)
        self.assert_same_results(self.path("torn.nc"), reference)
        os.remove(reference)
        os.mkdir(reference)
        self.fail_with(4, "results.nc", "reduce", self.path("one"), ranks=3)

    def test_verify(self):
        self.reference()
        self.assertIn("same", self.succeed("verify", self.path("one"), "--tasks", "4").stdout)

    def test_early_stop(self):
        """SIGUSR1 ends the run with status 75, keeps what is finished, and --resume gives the same results."""
        reference = self.reference()
        job = self.start("run", self.study, "-o", self.path("stopped"), records=0, ranks=2)
        self.wait_until(job, lambda: os.path.isdir(self.path("stopped/priors")))
        job.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(timeout=1)  # the launcher passes the signal on in its own time
        self.open_gate()
        job.communicate(timeout=program.PATIENCE)
        self.assertEqual(job.returncode, 75)
        self.assertFalse(os.path.exists(self.path("stopped/results.nc")))
        self.succeed("run", self.study, "-o", self.path("stopped"), "--resume", ranks=3)
        self.assert_same_results(reference, self.path("stopped/results.nc"))


if __name__ == "__main__":
    program.main()
