"""Bad input ends with one clear sentence and the right exit status, alone and under mpiexec, and loses nothing."""

import os
import signal
import subprocess
import time

import netCDF4
import numpy as np

import program


class StudyErrors(program.ProgramTest):
    """The study file and --set: exit status 3, with the place and what is allowed."""

    def refuse(self, old, new, *parts, ranks=0):
        text = program.SMALL_STUDY.replace(old, new)
        self.assertNotEqual(text, program.SMALL_STUDY)
        sentence = self.fail_with(3, parts[0], "run", self.write("bad.yaml", text), "-o", self.path("out"), ranks=ranks)
        for part in parts:
            self.assertIn(part, sentence)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_misspelt_key(self):
        self.refuse("runs: 40", "rnus: 40", "bad.yaml:5", "'rnus'", "did you mean 'runs'?")

    def test_misspelt_key_under_mpiexec(self):
        self.refuse("runs: 40", "rnus: 40", "did you mean 'runs'?", ranks=3)

    def test_no_policies(self):
        self.refuse("policies: [ts, tuned_ts, mixts, diffts, dps, linucb, egreedy, random, oracle]", "", "policies")

    def test_name_that_is_no_folder(self):
        for name, part in (("../../etc", "slash"), ('"a\\\\b"', "backslash"), ("-rf", "dash"), ("x" * 201, "at most 200")):
            self.refuse("name: small", f"name: {name}", "name", part)

    def test_reading_direction(self):
        self.refuse("name: small", "name: small\u202elive", "U+202E")
        self.refuse("egreedy", '{name: egreedy, label: "a\u2066b"}', "U+2066")

    def test_bytes_that_are_no_text(self):
        """Every verb that reads a study refuses one that it could not have read to the end; a UTF-8 byte order mark is accepted."""
        text = program.SMALL_STUDY
        cases = ((text.encode() + b"\n\0\nruns: banana", f"study.yaml:{text.count(chr(10)) + 2}:1: a NUL byte"),
                 (text.encode("utf-16"), "UTF-16"), (text.encode("utf-16-be"), "UTF-16 (big endian)"), (text.encode("utf-32"), "UTF-32"))
        for content, part in cases:
            study = self.write_bytes("study.yaml", content)
            for arguments in (["plan", study], ["run", study, "-o", self.path("out")], ["train", study, "-o", self.path("prior.nc")]):
                self.fail_with(3, part, *arguments)
            self.fail_with(3, part, "run", study, "-o", self.path("out"), ranks=2)
        study = self.write_bytes("study.yaml", b"\xef\xbb\xbf" + text.encode())
        self.assertEqual(self.succeed("plan", study).stdout, self.succeed("plan", self.study).stdout)

    def test_files_without_end(self):
        """Refused at once, and within 2 GB of address space (which the sanitizers alone would exceed)."""
        limit = "" if program.SANITIZED else "ulimit -v 2000000;"
        with open(self.path("sparse.yaml"), "wb") as file:
            file.truncate(10 << 30)
        os.mkfifo(self.path("fifo"))
        for path, code, part in ((self.path("fifo"), 4, "not a regular file"), ("/dev/zero", 4, "not a regular file"),
                                 (self.path("sparse.yaml"), 3, "more than 1048576 bytes")):
            process = subprocess.run(["bash", "-c", f'{limit} "$@"', "bash", program.PROGRAM, "plan", path], capture_output=True, text=True,
                                     timeout=program.PATIENCE, check=False)
            self.assertEqual(process.returncode, code, process.stderr)
            self.assertIn(part, process.stderr)

    def test_wrong_type(self):
        self.refuse("block: 8", "block: eight", "bad.yaml:6", "block", "eight", "integer")

    def test_out_of_range(self):
        self.refuse("arms: 10", "arms: 0", "bad.yaml:7", "problem.arms", "0")

    def test_unknown_policy(self):
        self.refuse("linucb", "linusb", "linusb", "did you mean 'linucb'?")

    def test_misspelt_option_of_a_policy(self):
        self.refuse("egreedy", "{name: egreedy, epsilom: 0.1}", "epsilom", "did you mean 'epsilon'?")

    def test_set_names_itself(self):
        self.fail_with(3, "--set", "run", self.study, "-o", self.path("out"), "--set", "problem.nois=1")

    def test_sampler_that_does_not_fit_the_prior(self):
        self.refuse("mixts", "{name: mixts, prior: diffusion}", "mixts", "mixture")

    def test_exact_prior_without_a_chain(self):
        self.refuse("dps", "{name: dps, prior: exact}", "dps", "reverse chain", "prior exact")

    def test_exact_prior_of_a_finite_set(self):
        self.write("theta.csv", "1,2\n3,4\n5,6\n")
        sentence = self.fail_with(3, "finite set", "run", self.study, "-o", self.path("out"), "--set", "problem.theta=file", "--set",
                                  f"problem.file={self.path('theta.csv')}", "--set", "policies=[exact]")
        self.assertIn("prior 'exact'", sentence)

    def test_schedules_that_are_none(self):
        for sets, part in ((["prior.keep_signal=true"], "keep_signal needs a constant alpha"), (["prior.first_snr=0.01"], "above last_snr 0.05")):
            sets = [word for text in ["prior.schedule=log_snr"] + sets for word in ("--set", text)]
            sentence = self.fail_with(3, part, "run", self.study, "-o", self.path("out"), *sets)
            self.assertIn("prior.schedule", sentence)

    def test_prior_file_that_is_missing(self):
        self.fail_with(4, "nowhere.nc", "run", self.study, "-o", self.path("out"), "--set", "policies=[{name: mixts, prior: nowhere.nc}]")

    def test_prior_file_of_another_dimension(self):
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "gaussian"
            for name, size in (("component", 1), ("dim", 3), ("dim2", 3)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 1
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 0
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.eye(3)
        sentence = self.fail_with(3, "3 dimensions", "run", self.study, "-o", self.path("out"), "--set",
                                  f"policies=[{{name: ts, prior: {self.path('prior.nc')}}}]")
        self.assertIn("prior.nc", sentence)

    def test_samples_that_are_no_numbers(self):
        self.write("theta.csv", "1,2\n3,x\n")
        sentence = self.fail_with(3, "theta.csv", "run", self.study, "-o", self.path("out"), "--set", "problem.theta=file", "--set",
                                  f"problem.file={self.path('theta.csv')}")
        self.assertIn("x", sentence)


class Files(program.ProgramTest):
    """Files and folders: exit status 4; nothing is overwritten."""

    def test_unreadable_study(self):
        self.fail_with(4, "nothing.yaml", "run", self.path("nothing.yaml"))
        self.fail_with(4, "nothing.yaml", "run", self.path("nothing.yaml"), ranks=2)

    def test_existing_folder(self):
        self.succeed("run", self.study, "-o", self.path("out"), "--set", "policies=[ts]")
        with open(self.path("out/results.nc"), "rb") as file:
            before = file.read()
        for ranks in (0, 2):
            self.fail_with(4, "--resume", "run", self.study, "-o", self.path("out"), "--set", "policies=[ts]", ranks=ranks)
        with open(self.path("out/results.nc"), "rb") as file:
            self.assertEqual(before, file.read())

    def test_resume_of_another_configuration(self):
        self.succeed("run", self.study, "-o", self.path("out"), "--set", "policies=[ts]")
        for ranks in (0, 2):
            self.fail_with(6, "name", "run", self.study, "-o", self.path("out"), "--set", "policies=[ts]", "--set", "name=another", "--resume", ranks=ranks)

    def test_overwrite_replaces(self):
        self.succeed("run", self.study, "-o", self.path("out"), "--set", "policies=[ts]")
        self.succeed("run", self.study, "-o", self.path("out"), "--set", "policies=[oracle]", "--overwrite")
        with netCDF4.Dataset(self.path("out/results.nc")) as file:
            self.assertEqual(float(file["regret_mean"][:].max()), 0)

    def test_full_disk(self):
        """A tmpfs of 300 kB: one sentence, status 4, and earlier files are untouched; the run continues when there is room."""
        mount = self.path("small")
        os.mkdir(mount)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", mount], check=False, capture_output=True).returncode:
            self.skipTest("needs the right to mount a tmpfs")
        try:
            for ranks in (0, 2):
                self.fail_with(4, "No space left", "run", self.study, "-o", os.path.join(mount, "out"), "--resume", ranks=ranks)
            self.assertFalse(any(name.endswith(".tmp") for _, _, files in os.walk(mount) for name in files))
            subprocess.run(["mount", "-o", "remount,size=30m", mount], check=True)
            self.succeed("run", self.study, "-o", os.path.join(mount, "out"), "--resume")
            self.succeed("run", self.study, "-o", self.path("roomy"))
            self.assert_same_results(os.path.join(mount, "out/results.nc"), self.path("roomy/results.nc"))
        finally:
            subprocess.run(["umount", mount], check=False)

    def test_output_is_tried_first(self):
        """A file that cannot be written at the end is refused before the work is done: here a prior that takes a minute, and inputs that are missing."""
        for path, part in ((self.folder, "not a regular file"), (self.path("no/such.nc"), "No such file")):
            sentence = self.fail_with(4, part, "train", self.study, "--option", "training_steps=10000000", "-o", path)
            self.assertIn(path, sentence)
            self.fail_with(4, part, "sample", "--prior", "x", "--data", "y", "--sampler", "ts", "-o", path)
            self.fail_with(4, part, "prepare", "mnist", "x", "-o", path)
            self.fail_with(4, part, "prepare", "mnist", "x", "-o", path, ranks=2)
        self.assertEqual(os.listdir(self.folder), ["small.yaml"])
        self.fail_with(4, "small.yaml: cannot make the folder: a file has this name", "run", self.study, "-o", self.study)

    def test_backslash(self):
        """NetCDF would treat it as a slash, and fail after all the work is done."""
        for arguments in (["run", self.study], ["plan", self.study, "--slurm"], ["train", self.study], ["prepare", "mnist", "x"],
                          ["sample", "--prior", "x", "--data", "y", "--sampler", "ts"]):
            self.fail_with_usage("backslash", *arguments, "-o", self.path("a\\b"))
        self.assertEqual(os.listdir(self.folder), ["small.yaml"])
        self.fail_with(3, "backslash", "run", self.study, "-o", self.path("out"), "--set", f"policies=[{{name: ts, prior: '{self.path('a')}\\b.nc'}}]")

    def test_output_that_cannot_be_written(self):
        """Every verb ends with status 4 when its stdout is full or closed; the files that it wrote are complete."""
        few = ["--set", "policies=[ts]", "--set", "sweep.problem.theta=[cross]", "--set", "prior.replicates=1"]
        self.succeed("run", self.study, "-o", self.path("out"), *few)
        self.write("history.csv", "x1,x2,y\n1,0,1\n")
        self.succeed("train", self.study, "-o", self.path("prior.nc"))
        verbs = (["plan", self.study], ["plan", self.study, "--json"], ["plan", self.study, "--slurm", *few], ["run", self.study, "-o", self.path("again"), *few],
                 ["status", self.path("out")], ["status", self.path("out"), "--json"], ["verify", self.path("out")], ["reduce", self.path("out")],
                 ["list"], ["list", "--json"], ["score", "--list"], ["--help"], ["--version"], ["run", "--help"], ["bench", "--help"],
                 ["train", self.study, "-o", self.path("more.nc")],
                 ["sample", "--prior", self.path("prior.nc"), "--data", self.path("history.csv"), "--sampler", "diffts", "-n", "5", "-o", self.path("draws.nc")])
        for arguments in verbs:
            with open("/dev/full", "w", encoding="utf-8") as full:
                process = subprocess.run([program.PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=program.PATIENCE, check=False)
            self.assertEqual(process.returncode, 4, f"{arguments}: {process.stderr}")
            self.assertEqual(process.stderr.count("cannot write to standard output"), 1, process.stderr)
        self.assert_same_results(self.path("out/results.nc"), self.path("again/results.nc"))

    def test_closed_streams(self):
        """No file of the program takes the file descriptor of a stream that its caller closed."""
        few = ["--set", "policies=[ts]", "--set", "sweep.problem.theta=[cross]"]
        self.succeed("run", self.study, "-o", self.path("out"), *few)
        process = subprocess.run(["bash", "-c", '"$@" <&- >&- 2>&-', "bash", program.PROGRAM, "run", self.study, "-o", self.path("closed"), *few],
                                 timeout=program.PATIENCE, check=False)
        self.assertEqual(process.returncode, 4)
        self.assert_same_results(self.path("out/results.nc"), self.path("closed/results.nc"))
        for arguments, code in ((["run"], 2), (["status", self.folder], 3)):
            process = subprocess.run(["bash", "-c", '"$@" >&-', "bash", program.PROGRAM, *arguments], capture_output=True, timeout=program.PATIENCE, check=False)
            self.assertEqual(process.returncode, code)

    def test_hash_that_is_disabled(self):
        """System settings under which libcrypto has no SHA-256."""
        lines = ("openssl_conf = settings", "[settings]", "providers = providers", "[providers]", "null = none", "[none]", "activate = 1", "")
        settings = self.write("openssl.cnf", "\n".join(lines))
        self.fail_with(1, "SHA-256", "run", self.study, "-o", self.path("out"), environment={"OPENSSL_CONF": settings})

    def test_folder_that_cannot_be_made(self):
        self.fail_with(4, "Not a directory", "run", self.study, "-o", os.path.join(self.study, "out"))

    def test_two_jobs_on_one_folder(self):
        job = subprocess.Popen([program.PROGRAM, "run", self.study, "-o", self.path("out"), "--set", "prior.training_steps=10000000", "--set",
                                "prior.patience=10000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(self.path("out/study.yaml")):
                self.assertIsNone(job.poll())
                time.sleep(0.005)
            job.send_signal(signal.SIGSTOP)  # it holds the lock all the same
            self.fail_with(4, "another job", "run", self.study, "-o", self.path("out"), "--resume")
        finally:
            job.kill()
            job.wait()

    def test_folders_without_a_study(self):
        for verb in ("status", "reduce", "verify"):
            self.fail_with(3, "holds no study", verb, self.folder)


class CommandLine(program.ProgramTest):
    """Usage errors: exit status 2, once, whatever the number of ranks."""

    def test_usage(self):
        for arguments in (["run"], ["run", "a", "b"], ["run", self.study, "--resume", "--overwrite"], ["run", self.study, "--shard", "2/2"],
                          ["run", self.study, "-o", self.path("out"), "--shard", "4294967296/4294967297"], ["run", self.study, "-o", ""],
                          ["list", "poets"], ["sample"], ["train"], ["run", self.study, "--progress", "loud"]):
            for ranks in (0, 2):
                for _ in range(3):  # mpiexec of Open MPI 5 on a busy machine can lose what a rank wrote just before it failed
                    process = program.thompson(*arguments, ranks=ranks)
                    self.assertEqual(process.returncode, 2, arguments)
                    if process.stderr.count("Try `thompson"):
                        break
                self.assertEqual(process.stderr.count("Try `thompson"), 1, process.stderr)
        self.fail_with(2, "not a verb", "rum")
        self.fail_with(2, "no verb")

    def test_help(self):
        for verb in ("run", "plan", "status", "list", "train", "sample", "reduce", "score", "verify"):
            self.assertIn("Usage: thompson", self.succeed(verb, "--help").stdout)
        self.assertEqual(self.succeed("run", "--help", ranks=3).stdout.count("Usage:"), 1)
        self.assertIn("75", self.succeed("--help").stdout)

    def test_sample_names_what_is_wrong(self):
        self.write("history.csv", "x1,x2,y\n1,0,1\n")
        with netCDF4.Dataset(self.path("prior.nc"), "w") as file:
            file.prior = "mixture"
            for name, size in (("component", 2), ("dim", 2), ("dim2", 2)):
                file.createDimension(name, size)
            file.createVariable("weight", "f8", ("component",))[:] = 0.5
            file.createVariable("mean", "f8", ("component", "dim"))[:] = 0
            file.createVariable("covariance", "f8", ("component", "dim", "dim2"))[:] = np.eye(2)
        prior, data = ["--prior", self.path("prior.nc")], ["--data", self.path("history.csv"), "-o", self.path("draws.nc")]
        self.fail_with(3, "did you mean 'mixts'?", "sample", *prior, *data, "--sampler", "mixt")
        self.fail_with(3, "gaussian", "sample", *prior, *data, "--sampler", "ts", "--likelihood", "gausian")
        self.fail_with(3, "ts", "sample", *prior, *data, "--sampler", "ts")
        self.write("history.csv", "x1,x2,x3,y\n1,0,1,1\n")
        self.fail_with(3, "3 dimensions", "sample", *prior, *data, "--sampler", "mixts")
        self.write("history.csv", "x1,x2,y\n" + 8000 * "1,0,1\n" + "1,0,7\n")     # vts would take half a minute to learn from the others
        start = time.monotonic()
        self.fail_with(3, "observation 8001 is 7", "sample", *prior, *data, "--sampler", "vts", "--likelihood", "logistic")
        self.assertLess(time.monotonic() - start, 10)
        self.assertFalse(os.path.exists(self.path("draws.nc")))


if __name__ == "__main__":
    program.main()
