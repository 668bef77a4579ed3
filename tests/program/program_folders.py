"""Finished work is never thrown away, and other people's files in a study's folder are never touched."""

import json
import os
import shutil
import subprocess

import netCDF4

import journals
import program

TASKS = 8
ADAPTIVE = ("--set", "runs={min: 8, max: 64, target_se: 0.5}")


class FolderTest(program.ProgramTest):
    """A finished study in the folder `out`, copied from one for each class."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.finished = cls.run_once(program.QUICK_STUDY, *cls.arguments)

    def setUp(self):
        super().setUp()
        self.study = self.write("s.yaml", program.QUICK_STUDY)
        self.out = self.path("out")
        shutil.copytree(self.finished, self.out)
        self.results = os.path.join(self.out, "results.nc")

    def journal(self):
        """The journal of the only rank that ran."""
        (path,) = journals.files(self.out)
        return path

    def tear(self, path, size=100):
        with open(path, "r+b") as file:
            file.truncate(size)

    def plant(self, name, text="mine"):
        path = os.path.join(self.out, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def change(self, old="noise: auto", new="noise: 3"):
        """Edit the study in the folder by hand."""
        path = os.path.join(self.out, "study.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    def done(self):
        with netCDF4.Dataset(self.results) as file:
            return int((file["status"][:] == 1).sum())

    def snapshot(self, folder=None):
        """Everything in a folder except locks: type, bytes, time, target."""
        found = {}
        for where, folders, files in os.walk(folder or self.out):
            for name in folders + files:
                path = os.path.join(where, name)
                if name.startswith("lock"):
                    continue
                if os.path.islink(path):
                    found[path] = ("link", os.readlink(path))
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[path] = (file.read(), os.stat(path).st_mtime_ns)
                else:
                    found[path] = "other"
        return found

    def refuse(self, code, part, *arguments, ranks=0, folder=None):
        """Check that the program ends with this exit status and sentence, and leaves every byte as it was."""
        before = self.snapshot(folder)
        sentence = self.fail_with(code, part, *arguments, ranks=ranks)
        self.assertEqual(self.snapshot(folder), before)
        return sentence


class Status(FolderTest):
    """`thompson status`: which job writes to the folder, and how many priors are learned."""

    def status(self):
        return json.loads(self.succeed("status", self.out, "--json").stdout), self.succeed("status", self.out).stdout

    def test_priors(self):
        report, text = self.status()
        self.assertEqual((report["priors"], report["priors_learned"], report["job"]), (1, 1, None))
        self.assertNotIn("priors", text)
        (prior,) = os.listdir(os.path.join(self.out, "priors"))
        os.remove(os.path.join(self.out, "priors", prior))
        report, text = self.status()
        self.assertEqual((report["priors"], report["priors_learned"]), (1, 0))
        self.assertIn("1 priors: 0 learned, 1 left", text)

    def test_job(self):
        """A job is named while it runs; one that was killed on this machine is not, and of one on another machine it cannot be known."""
        shutil.rmtree(self.out)
        job = self.start("run", self.study, "-o", self.out, "--progress", "none", records=1, stderr=subprocess.DEVNULL)
        self.wait_until(job, lambda: os.path.isdir(self.out) and journals.done(self.out))
        report, text = self.status()
        self.assertRegex(report["job"], f"^host .*, pid {job.pid}, .*since")
        self.assertIn(f"running: {report['job']}\n", text)
        job.kill()
        job.wait()
        report, text = self.status()
        self.assertIsNone(report["job"])
        self.assertNotIn("running", text)
        self.plant("lock", "host elsewhere, pid 1, since 2020-01-01 00:00:00 UTC; boot other, beat 0000000001\n")
        self.assertIn("running, or ended without a trace: host elsewhere, pid 1, since", self.status()[1])


class Reduce(FolderTest):
    """`thompson reduce` and the reducer of `run`."""

    def test_changed_study(self):
        self.change()
        for ranks in (0, 3):
            self.refuse(6, "of the study before it was edited, and 8 tasks of the study are missing", "reduce", self.out, ranks=ranks)
        self.succeed("reduce", self.out, "--overwrite")
        self.assertEqual(self.done(), 0)

    def test_changed_study_with_resume(self):
        """What was changed in the folder is an edit, which a run of the user's own study takes back; a shard that was not told to continue does not."""
        shutil.copy(self.results, self.path("whole.nc"))
        self.change()
        self.refuse(6, "problem.noise", "run", self.study, "-o", self.out, "--shard", "0/2")
        self.assertIn("8 of 8 tasks are finished, 0 to run", self.succeed("run", self.study, "-o", self.out, "--resume", ranks=2).stderr)
        self.assert_same_results(self.results, self.path("whole.nc"))

    def test_results_of_another_study(self):
        """The mismatch is found before the first task runs."""
        self.succeed("run", self.study, "-o", self.path("foreign"), "--set", "name=foreign")
        shutil.copy(self.path("foreign/results.nc"), self.results)
        journals.remove(self.out, 0)
        self.refuse(6, "name", "run", self.study, "-o", self.out, "--resume")
        self.refuse(6, "name", "reduce", self.out)

    def test_journal_of_another_study(self):
        self.succeed("run", self.study, "-o", self.path("foreign"), "--seed", "8")
        (theirs,) = journals.files(self.path("foreign"))
        shutil.copy(theirs, os.path.join(self.out, "tasks"))
        for verb in (["run", self.study, "-o", self.out, "--resume"], ["reduce", self.out], ["status", self.out], ["verify", self.out]):
            self.succeed(*verb)
        self.assertEqual(self.done(), 32)

    def test_journal_of_an_earlier_version(self):
        """One that named tasks by their place."""
        path = os.path.join(self.out, "tasks/0123456789abcdef.journal")
        with open(path, "wb") as file:
            file.write(b"thompson" + b"0" * 500)
        for verb in (["run", self.study, "-o", self.out, "--resume"], ["reduce", self.out], ["status", self.out], ["verify", self.out]):
            self.refuse(6, "tasks/0123456789abcdef.journal was written by an earlier version of this program", *verb)

    def test_folder_of_an_earlier_version(self):
        for name in ("000042.nc", "000042.failed.nc", "000000-000009-0123456789abcdef.nc"):
            path = self.plant(f"tasks/{name}")
            for verb in (["run", self.study, "-o", self.out, "--resume"], ["run", self.study, "-o", self.out, "--overwrite"], ["reduce", self.out],
                         ["status", self.out], ["verify", self.out]):
                self.refuse(6, f"tasks/{name} was written by a version of this program that kept one file per task", *verb)
            os.remove(path)

    def test_fewer_tasks(self):
        shutil.copy(self.results, self.path("whole.nc"))
        journals.remove(self.out, 3)
        for ranks in (0, 3):
            self.assertIn("4 finished runs", self.refuse(6, "--overwrite", "reduce", self.out, ranks=ranks))
        self.succeed("reduce", self.out, "--overwrite")
        self.assertEqual(self.done(), 28)
        self.succeed("run", self.study, "-o", self.out, "--resume")
        self.assert_same_results(self.results, self.path("whole.nc"))

    def test_other_tasks_as_many(self):
        """The number of tasks is not enough: results with task 0 are not replaced by results with task 1."""
        path = self.journal()
        whole, _ = journals.read(path)
        journals.remove(self.out, 1)
        os.remove(self.results)
        self.succeed("reduce", self.out)
        journals.write(path, [record for record in whole if record.task != 0])
        self.refuse(6, "4 finished runs", "reduce", self.out)

    def test_damaged_tasks(self):
        journals.damage(self.out, 2, 5)
        self.refuse(6, "8 finished runs", "reduce", self.out)
        shutil.copy(self.results, self.path("whole.nc"))
        os.remove(self.results)
        for ranks in (0, 3):
            process = program.thompson("reduce", self.out, ranks=ranks)
            self.assertEqual(process.returncode, 5, process.stderr)
            self.assertIn("2 task records cannot be read", process.stderr)
            self.assertEqual(self.done(), 24)
        process = self.succeed("run", self.study, "-o", self.out, "--resume")
        self.assertEqual(process.stderr.count("it runs again"), 2, process.stderr)
        self.assert_same_results(self.results, self.path("whole.nc"))
        self.succeed("reduce", self.out)
        self.succeed("verify", self.out)

    def test_damaged_headers(self):
        """A record with an unreadable header costs only its own task; after that has run again nothing is damaged any more."""
        shutil.copy(self.results, self.path("whole.nc"))
        os.remove(self.results)
        journals.damage_header(self.out, 2, 7)
        self.assertEqual(program.thompson("verify", self.out).returncode, 7)
        for ranks in (0, 3):
            process = program.thompson("reduce", self.out, ranks=ranks)
            self.assertEqual(process.returncode, 5, process.stderr)
            self.assertIn("damaged or torn", process.stderr)
            self.assertEqual(self.done(), 24)
        process = self.succeed("run", self.study, "-o", self.out, "--resume")
        self.assertIn("damaged records are dropped", process.stderr)
        self.assertIn("running tasks: 2/2 in", process.stderr)
        self.assert_same_results(self.results, self.path("whole.nc"))
        self.assertNotIn("dropped", self.succeed("run", self.study, "-o", self.out, "--resume").stderr)
        self.succeed("reduce", self.out)
        self.succeed("verify", self.out)

    def test_run_never_replaces_by_fewer(self):
        """A task of a complete study is gone, and running it again fails: the complete results stay."""
        failing = ("--task-timeout", "0.001", "--set", "problem.rounds=20000", "--set", "runs=8")
        out = self.path("slow")
        self.succeed("run", self.study, "-o", out, *failing[2:])
        whole = self.snapshot(out)
        journals.remove(out, 1)
        process = program.thompson("run", self.study, "-o", out, *failing, "--resume")
        self.assertEqual(process.returncode, 5, process.stderr)
        self.assertIn("4 finished runs that the journals lack, so it is left as it is", process.stderr)
        results = os.path.join(out, "results.nc")
        self.assertEqual(self.snapshot(out)[results], whole[results])

    def test_damaged_results(self):
        """Damaged results are rebuilt; the damaged file is kept."""
        shutil.copy(self.results, self.path("whole.nc"))
        for verb in (["reduce", self.out], ["run", self.study, "-o", self.out, "--resume"]):
            self.tear(self.results, os.path.getsize(self.results) - 10)
            self.assertIn("set aside", self.succeed(*verb).stderr)
            self.assert_same_results(self.results, self.path("whole.nc"))
        self.assertTrue(os.path.exists(self.results + ".bad") and os.path.exists(self.results + ".bad.2"))

    def test_results_of_others(self):
        for name in ("results.nc", "prior_samples.nc"):
            path = os.path.join(self.out, name)
            shutil.move(path, self.path("kept"))
            self.plant(name)
            for verb in (["reduce", self.out], ["run", self.study, "-o", self.out, "--resume"], ["run", self.study, "-o", self.out, "--overwrite"]):
                self.refuse(4, name, *verb)
            os.remove(path)
            os.symlink(self.path("kept"), path)
            for verb in (["reduce", self.out], ["run", self.study, "-o", self.out, "--resume"], ["run", self.study, "-o", self.out, "--overwrite"]):
                self.refuse(4, name, *verb)
            os.remove(path)
            shutil.move(self.path("kept"), path)

    def test_file_that_was_set_aside_is_not_replaced(self):
        """A journal in which nothing can be read is set aside."""
        path = self.journal()
        bad = self.plant(f"tasks/{os.path.basename(path)}.bad")
        self.tear(path)
        self.assertIn("no record can be read", self.succeed("run", self.study, "-o", self.out, "--resume").stderr)
        with open(bad, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(os.path.getsize(f"{path}.bad.2"), 100)


class Adaptive(FolderTest):
    """The same for runs until a target is reached."""

    arguments = ADAPTIVE

    def test_reduce(self):
        self.assertGreater(len(journals.records(self.out)), 4, "more than one wave")
        shutil.copy(self.results, self.path("whole.nc"))
        journals.damage(self.out, 0)
        self.refuse(6, "4 finished runs", "reduce", self.out)
        before = self.done()
        self.assertEqual(program.thompson("reduce", self.out, "--overwrite").returncode, 5)
        self.assertEqual(self.done(), before - 4)
        self.succeed("run", self.study, "-o", self.out, *ADAPTIVE, "--resume")
        self.assert_same_results(self.results, self.path("whole.nc"))

    def test_changed_target(self):
        self.change("target_se: 0.5", "target_se: 0.4")
        self.refuse(6, "of the study before it was edited", "reduce", self.out)


class Shards(FolderTest):
    """Shards share a folder; the reducer completes them."""

    def setUp(self):
        super().setUp()
        self.whole = self.path("whole")
        os.rename(self.out, self.whole)

    def test_reduce_between_and_after(self):
        for shard in range(2):
            self.succeed("run", self.study, "-o", self.out, "--shard", f"{shard}/2")
            self.succeed("reduce", self.out)
            self.assertEqual(self.done(), 16 * (shard + 1))
        self.assert_same_results(self.results, os.path.join(self.whole, "results.nc"))

    def test_results_without_a_study(self):
        os.mkdir(self.out)
        shutil.copy(os.path.join(self.whole, "results.nc"), self.results)
        self.refuse(4, "no study.yaml", "run", self.study, "-o", self.out, "--shard", "0/2")


class Others(FolderTest):
    """Other people's files in the folder, in place of ours and next to them."""

    def overwrite(self, *arguments):
        return ["run", self.study, "-o", self.out, "--overwrite", *arguments]

    def test_results_without_a_study(self):
        """Refused in every mode, and nothing is created."""
        os.remove(os.path.join(self.out, "study.yaml"))
        for mode in ([], ["--resume"], ["--overwrite"]):
            self.refuse(4, "no study.yaml", "run", self.study, "-o", self.out, *mode)
        shutil.rmtree(os.path.join(self.out, "tasks"))
        for mode in ([], ["--resume"], ["--overwrite"]):
            self.refuse(4, "results.nc but no study.yaml", "run", self.study, "-o", self.out, *mode, ranks=2)

    def test_overwrite_removes_the_study_only(self):
        """Files with other names, links and the targets of links stay."""
        target = self.write("target", "of another program")
        names = ["notes.txt", "results.nc.orig", "tasks/notes.txt", "tasks/42.nc", "tasks/0000001.nc", "tasks/.hidden", "tasks/.x.1.2.tmp",
                 "priors/mine.nc", "priors/mixture-0123.nc", "priors/.a.nc.1.1.tmp", ".notes.tmp", ".results.nc.tmp", "lock.txt", "lockfile"]
        for name in names:
            self.plant(name)
        for name in ("link", "tasks/link.nc", "tasks/.000001.nc.1.1.tmp", "priors/link.nc"):
            os.symlink(target, os.path.join(self.out, name))
            names.append(name)
        os.mkdir(os.path.join(self.out, "tasks/folder"))
        before = {path: content for path, content in self.snapshot().items() if os.path.relpath(path, self.out) in names}
        self.assertEqual(len(before), len(names) - 2)  # the snapshot leaves out lock*
        self.succeed(*self.overwrite("--set", "policies=[oracle]"))
        after = self.snapshot()
        self.assertEqual({path: after.get(path) for path in before}, before)
        for name in ("lock.txt", "lockfile", "tasks/folder"):
            self.assertTrue(os.path.exists(os.path.join(self.out, name)), name)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of another program")
        self.assertEqual(journals.done(self.out), set(range(TASKS // 2)))
        self.assertEqual(len(journals.files(self.out)), 1)
        self.assertEqual([name for name in os.listdir(os.path.join(self.out, "priors")) if len(name) == len("mixture-.nc") + 20], [])

    def test_overwrite_with_a_file_of_others_under_our_name(self):
        for name in (os.path.relpath(self.journal(), self.out), "tasks/0123456789abcdef.journal", "priors/mixture-0123456789abcdef0123.nc"):
            path = os.path.join(self.out, name)
            kept = os.path.exists(path) and shutil.move(path, self.path("kept"))
            self.plant(name)
            self.refuse(4, name, *self.overwrite())
            os.remove(path)
            if kept:
                shutil.move(kept, path)

    def test_overwrite_of_a_study_that_is_not_ours(self):
        for text in ("mine", program.QUICK_STUDY, ""):
            self.plant("study.yaml", text)
            self.refuse(4, "study.yaml", *self.overwrite())
        os.remove(os.path.join(self.out, "study.yaml"))
        os.symlink(self.study, os.path.join(self.out, "study.yaml"))
        for mode in ("--overwrite", "--resume"):
            self.refuse(4, "study.yaml is a link", "run", self.study, "-o", self.out, mode)

    def test_linked_parts(self):
        """tasks/ or priors/ that are links to other people's folders."""
        for part in ("tasks", "priors"):
            elsewhere = self.path(f"elsewhere-{part}")
            os.rename(os.path.join(self.out, part), elsewhere)
            os.symlink(elsewhere, os.path.join(self.out, part))
            before = self.snapshot(elsewhere)
            for mode in ([], ["--resume"], ["--overwrite"], ["--shard", "0/2"]):
                self.refuse(4, f"{part} is a link", "run", self.study, "-o", self.out, *mode)
            self.refuse(4, f"{part} is a link", "reduce", self.out)
            self.assertEqual(self.snapshot(elsewhere), before)
            os.remove(os.path.join(self.out, part))
            os.rename(elsewhere, os.path.join(self.out, part))

    def test_links_in_the_place_of_files(self):
        prior = os.listdir(os.path.join(self.out, "priors"))[0]
        for name in (os.path.relpath(self.journal(), self.out), f"priors/{prior}"):
            path = os.path.join(self.out, name)
            shutil.move(path, self.path("kept"))
            os.symlink(self.path("kept"), path)
            for verb in (["reduce", self.out], ["run", self.study, "-o", self.out, "--resume"], self.overwrite()):
                self.refuse(4, f"{name} is a link", *verb)
            os.remove(path)
            shutil.move(self.path("kept"), path)

    def test_locks_of_others(self):
        target = self.write("target", "of another program")
        for name, arguments in (("lock", []), ("lock.0", ["--shard", "0/2"])):
            lock = os.path.join(self.out, name)
            if os.path.exists(lock):
                os.remove(lock)
            os.symlink(target, lock)
            self.refuse(4, f"{name} is not a lock", "run", self.study, "-o", self.out, "--resume", *arguments)
            os.remove(lock)
            self.plant(name)
            self.refuse(4, f"{name} is not a lock", "run", self.study, "-o", self.out, "--resume", *arguments)
            with open(lock, encoding="utf-8") as file:
                self.assertEqual(file.read(), "mine")
            os.remove(lock)
            os.mkfifo(lock)
            self.refuse(4, f"{name} is not a lock", "run", self.study, "-o", self.out, "--resume", *arguments)
            os.remove(lock)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), "of another program")

    def test_lock_of_a_shard_that_is_none(self):
        """A file lock.txt, locked by its owner, does not block anybody."""
        path = self.plant("lock.txt")
        with subprocess.Popen(["flock", path, "sleep", "100"]) as holder:
            try:
                self.succeed("run", self.study, "-o", self.out, "--resume")
            finally:
                subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
                holder.kill()

    def test_folder_that_is_a_link(self):
        """The user's own path may lead through links."""
        os.symlink(self.out, self.path("link"))
        self.succeed("run", self.study, "-o", self.path("link"), "--overwrite")
        self.succeed("reduce", self.path("link"))
        self.assertEqual(self.done(), 32)


class Outputs(program.ProgramTest):
    """-o FILE of train and sample only replaces files of this program."""

    def test_outputs(self):
        self.write("theta.csv", "1,2\n3,4\n5,6\n7,9\n")
        history = self.write("history.csv", "x1,x2,y\n1,0,1\n")
        prior = self.path("prior.nc")
        train = ["train", "--theta", self.path("theta.csv"), "--option", "stages=2", "--option", "training_steps=5"]
        sample = ["sample", "--prior", prior, "--data", history, "--sampler", "diffts", "-n", "5"]
        self.succeed(*train, "-o", prior)
        for verb in (train, sample):
            out = self.path("out.nc")
            self.succeed(*verb, "-o", out)
            self.succeed(*verb, "-o", out)
            with open(out, "wb"):
                pass
            self.succeed(*verb, "-o", out)
            os.remove(out)
            os.symlink(prior, out)
            self.fail_with(4, "is a link", *verb, "-o", out)
            self.assertTrue(os.path.islink(out))
            os.remove(out)
            self.write("out.nc", "mine")
            self.fail_with(4, "did not write", *verb, "-o", out)
            with open(out, encoding="utf-8") as file:
                self.assertEqual(file.read(), "mine")
            os.remove(out)
        self.fail_with(4, "theta.csv", *train, "-o", self.path("theta.csv"), ranks=2)


if __name__ == "__main__":
    program.main()
