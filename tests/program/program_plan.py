"""`thompson plan`: what it says without running anything, its calibration compared with what a run really takes, and a batch script that runs."""

import json
import os
import re
import shutil
import stat
import subprocess
import unittest

import netCDF4
import numpy as np

import program

# The factor within which a calibration is right. Clocks of shared processors differ by less from one second to the next, except now and then: what is outside is
# measured again. Policies are compared with each other, so that the speed of the processor cancels.
LIMIT = 3
ATTEMPTS = 5
LARGE = """
name: large
study: posterior
runs: 1
metrics: [sd_ratio]
problem: {family: inverse, theta: gm_sphere, dimension: 40, arms: 40, sample_sizes: arms, condition_number: 10, snr: 0.1}
prior: {standardise: false}
linear_algebra: {distributed_from: 40}
policies: [exact]
"""
MEMORY = """
name: memory
study: posterior
runs: {runs}
problem: {{family: inverse, theta: gm_sphere, dimension: {d}, arms: {arms}, sample_sizes: arms}}
prior: {{stages: 10}}
policies: [{{name: {policy}, prior: exact}}]
"""


class Plan(program.ProgramTest):
    def plan(self, *sets, study=None, calibrate=False):
        words = [word for text in sets for word in ("--set", text)]
        return json.loads(self.succeed("plan", study or self.study, "--json", *["--calibrate"] * calibrate, *words).stdout)

    def results(self, study, sets, name):
        """A variable of a study that is actually run."""
        out = self.path("timed")
        self.succeed("run", study, "-o", out, *(word for text in sets for word in ("--set", text)))
        with netCDF4.Dataset(os.path.join(out, "results.nc")) as data:
            values = np.asarray(data[name][...])
        shutil.rmtree(out)
        return values

    def within_limit(self, measure, relative):
        """Check that CPU seconds taken are those planned, within LIMIT; `relative`: after division by the median over cases. Cases outside the limit are measured
        again. measure(wanted) -> {case: taken / planned} of at least the cases for which wanted(case).
        """
        ratios, wrong = {}, None
        for _ in range(ATTEMPTS):
            ratios |= measure(lambda case: wrong is None or case in wrong)
            middle = np.median(list(ratios.values())) if relative else 1
            wrong = {case: round(ratio / middle, 2) for case, ratio in ratios.items() if not 1 / LIMIT < ratio / middle < LIMIT}
            if not wrong:
                return
        self.fail(f"{wrong} of CPU seconds over those planned, where the median is {middle:.2f}")

    def test_no_calibration_unless_asked(self):
        plan = self.plan()
        self.assertIs(plan["calibrated"], False)
        self.assertEqual(plan["tasks"], 2 * 9 * 6)      # blocks of 8, 8 and 4 runs for each replicate
        for key in ("core_hours", "core_hours_least", "training_core_hours", "shared_seconds_per_run"):
            self.assertIsNone(plan[key])
        self.assertEqual(set(plan["seconds_per_run"].values()), {None})
        self.assertIn("# time: unknown; --calibrate measures it", self.succeed("plan", self.study).stdout)
        self.assertEqual(os.listdir(self.folder), ["small.yaml"])

    @unittest.skipIf(program.SANITIZED, "the sanitizers have memory of their own")
    def test_memory_of_posterior_studies(self):
        """The peak of a run is within a factor of two of what `plan` says, whatever the dimension and the sampler."""
        for d, runs, policy in ((2, 20, "twisted"), (200, 2, "diffts"), (200, 2, "localised"), (2000, 2, "tilted")):
            study = self.write("memory.yaml", MEMORY.format(d=d, runs=runs, arms=min(d, 20), policy=policy))
            said = self.plan(study=study)["memory_bytes_per_rank"]
            with subprocess.Popen([program.PROGRAM, "run", study, "-o", self.path(f"memory{d}{policy}")], stdout=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            self.assertTrue(0.5 < usage.ru_maxrss * 1024 / said < 2, f"{d} {policy}: {usage.ru_maxrss / 1e3} MB, and plan says {said / 1e6}")

    def test_many_settings(self):
        """Ten are printed, and how many more there are."""
        noise, arms = (", ".join(str(i + 1) for i in range(count)) for count in (50, 40))
        shown = self.succeed("plan", self.study, "--set", "policies=[random]", "--set", f"problem.noise=[{noise}]", "--set", f"problem.arms=[{arms}]",
                             "--set", "problem.theta=cross").stdout
        settings = re.findall(r"^#   problem.*", shown, re.MULTILINE)
        self.assertEqual((len(settings), settings[0], settings[9]), (10, "#   problem.noise=1, problem.arms=1", "#   problem.noise=1, problem.arms=10"))
        self.assertIn("\n#   and 1990 more\n", shown)

    def test_calibration_measures_three_settings(self):
        """The smallest, the middle and the largest, in whatever order they are listed; the rest have the times of the nearest."""
        sets = ["policies=[random, oracle]", "problem.theta=cross", "problem.rounds=[80, 10, 160, 20, 40]"]
        done = self.succeed("plan", self.study, "--calibrate", *(word for text in sets for word in ("--set", text)))
        self.assertEqual(re.findall(r"measured in setting problem.rounds=(\d+)", done.stdout), ["10", "40", "160"])
        self.assertRegex(done.stderr, r"measuring fits and policies: (\d+)/\1 in ")

    def test_costs_of_samplers(self):
        """Every sampler, with Gaussian rewards and with clicks: a run of one policy compared with one of another, as a calibration measured them and as they took.
        Two policies of a study differ by factors up to a thousand, and how fast the processor is cancels."""
        samplers = json.loads(self.succeed("list", "samplers", "--json").stdout)
        names = [sampler["name"] for sampler in samplers]
        free = [sampler["name"] for sampler in samplers if "conjugate likelihood" not in sampler["needs"]]
        slow = {"twisted", "localised", "smc", "smc_tempered", "tilted", "mala", "vts", "vits2_hf"}
        study = self.write("costs.yaml", """
            name: costs
            problem: {theta: gaussian, dimension: 2, arms: 30}
            prior: {stages: 10, hidden: [20, 20], train_samples: 300, training_steps: 50, mixture_starts: 1}
            """)
        # A calibration includes what comes before the first round, some milliseconds to read a prior, and the results do not: a block takes longer than that.
        cases = (([name for name in names if name not in slow], ["runs=64", "problem.rounds=400"]), ([name for name in names if name in slow], ["runs=16", "problem.rounds=30"]),
                 ([name for name in free if name not in slow], ["runs=64", "problem.rounds=60", "likelihood=logistic"]),
                 ([name for name in free if name in slow], ["runs=16", "problem.rounds=10", "likelihood=logistic"]))

        def measure(wanted):
            found = {}
            for which, settings in cases:
                chosen = [name for name in which if wanted(f"{name} {settings}")]
                if not chosen:
                    continue
                sets = [f"policies=[{', '.join(chosen)}]", *settings]
                planned, taken = self.plan(*sets, study=study, calibrate=True)["seconds_per_run"], self.results(study, sets, "seconds")[0].mean(axis=-1)
                found |= {f"{name} {settings}": seconds / planned[name] for name, seconds in zip(chosen, taken)}
            return found

        self.within_limit(measure, relative=True)

    def test_a_policy_is_calibrated_alone(self):
        """The others of its study make no difference: neither many of them, nor one whose rounds take long."""
        others = "ts, linucb, egreedy, random, {name: smc_tempered, particles: 500}"
        sets = ["problem.theta=gm_cross", "problem.rounds=50", "prior.replicates=1"]

        def measure(wanted):
            alone, beside = (self.plan(*sets, f"policies=[{policies}]", calibrate=True)["seconds_per_run"]["smc"] for policies in ("smc", f"{others}, smc"))
            return {"smc": beside / alone}

        self.within_limit(measure, relative=False)

    def test_costs_of_fits(self):
        """The time of learning a prior compared with the actual one, where only a part of it was measured: the networks of a diffusion model and of a denoiser are
        trained for 15 times as many steps as in a calibration, and logs are of 1.5 times as many tasks."""
        study = self.write("fits.yaml", """
            name: fits
            runs: 1
            problem: {theta: cross, arms: 5, rounds: 1}
            prior: {train_samples: 300, past_observations: 10, mixture_starts: 2, training_steps: 1500}
            """)
        cases = (["policies=[diffts]", "prior.stages=10"], ["policies=[localised]"],
                 ["policies=[mixts]", "prior.components=10", "prior.learned_from=logs", "prior.past_tasks=1500"])

        def measure(wanted):
            found = {}
            for case in cases:
                if wanted(" ".join(case)):
                    planned, taken = self.plan(*case, study=study, calibrate=True)["training_core_hours"] * 3600, self.results(study, case, "seconds_train")[0, 0]
                    found[" ".join(case)] = float(taken) / planned
            return found

        self.within_limit(measure, relative=False)

    def test_sums(self):
        """Hours are those of all runs of all policies, of what the policies share once for each setting, and of the priors of all replicates."""
        plan = self.plan("policies=[random, ts]", "problem.theta=gm_cross", "metrics=[regret_floor]", calibrate=True)
        self.assertIs(plan["calibrated"], True)
        self.assertEqual(plan["training_core_hours"], 0)
        self.assertGreater(plan["shared_seconds_per_run"], 0)
        seconds = sum(plan["seconds_per_run"].values()) + plan["shared_seconds_per_run"]
        self.assertAlmostEqual(plan["core_hours"] * 3600 / (seconds * plan["runs"]), 1, delta=1e-9)

    def test_tasks_that_are_run_once(self):
        """A key that no policy depends on adds no hours: the tasks of its first value are those of the others."""
        plan = self.plan("policies=[random, ts]", "problem.theta=gm_cross", "sweep={prior.stages: [2, 3, 4]}", calibrate=True)
        self.assertAlmostEqual(plan["core_hours"] * 3600 / (sum(plan["seconds_per_run"].values()) * plan["runs"]), 1, delta=1e-9)

    def test_adaptive_runs(self):
        sets = ["policies=[ts, random]", "runs={min: 16, max: 160, target_se: 1}"]
        plan = self.plan(*sets, calibrate=True)
        self.assertEqual((plan["runs_least"], plan["runs"]), (16, 160))
        self.assertAlmostEqual(plan["core_hours_least"] / plan["core_hours"], 0.1)
        text = self.succeed("plan", self.study, *(word for text in sets for word in ("--set", text))).stdout
        self.assertIn("from 16 to 160 until the standard error of regret_diff is at most 1", text)

    def test_batch_script_runs(self):
        """With stand-ins for Slurm's commands the script runs the study as planned, --set included."""
        script = self.succeed("plan", self.study, "--slurm", "-o", self.path("batch out"), "--set", "policies=[ts, oracle]", "--set",
                              'title="it\'s a title"').stdout
        for part in ("#SBATCH --nodes=1\n", "#SBATCH --ntasks-per-node=", "#SBATCH --mem-per-cpu=", "#SBATCH --time=00:", "#SBATCH --requeue", "\n##SBATCH --partition=", "\n##SBATCH --account=", "srun needs --mpi="):
            self.assertIn(part, script)
        os.mkdir(self.path("bin"))
        for name, text in (("srun", 'shift\nexec "$@"\n'), ("squeue", "echo 2099-01-01T00:00:00\n"), ("scontrol", 'echo "$@"\n')):
            self.write(f"bin/{name}", "#!/bin/sh\n" + text)
            os.chmod(self.path(f"bin/{name}"), stat.S_IRWXU)
        environment = dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"], SLURM_JOB_ID="7")
        process = subprocess.run(["bash", self.write("job.sbatch", script)], env=environment, capture_output=True, text=True, timeout=program.PATIENCE, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        with netCDF4.Dataset(self.path("batch out/results.nc")) as data:
            self.assertEqual(data.title, "it's a title")
            self.assertEqual(len(data.dimensions["policy"]), 2)

    def test_pbs_script_runs(self):
        """With stand-ins for the commands of PBS: as planned, with a time limit below the walltime; stopped early, it submits itself again, but not for ever."""
        script = self.succeed("plan", self.study, "--pbs", "-o", self.path("out"), "--set", "policies=[ts, oracle]", "--set", "name=a name of many letters",
                              "--max-nodes", "2", "--cores-per-node", "4", "--wall-time", "0.5").stdout
        for part in ("#PBS -N a_name_of_many_\n", "#PBS -l walltime=00:30:00\n", " --time-limit 1740 "):
            self.assertIn(part, script)
        nodes, cores, ranks, memory = map(int, re.search(r"select=(\d+):ncpus=(\d+):mpiprocs=(\d+):mem=(\d+)mb", script).groups())
        self.assertTrue(nodes <= 2 and cores == ranks <= 4 and memory > 0)
        os.mkdir(self.path("bin"))
        for name, text in (("mpiexec", 'exec "$@" $MORE\n'), ("qsub", 'echo "$@"\n')):
            self.write(f"bin/{name}", "#!/bin/sh\n" + text)
            os.chmod(self.path(f"bin/{name}"), stat.S_IRWXU)
        path = self.write("job.pbs", script)

        def job(**more):
            environment = dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"], PBS_JOBID="7", PBS_O_WORKDIR=os.getcwd(), **more)
            return subprocess.run(["bash", path], env=environment, capture_output=True, text=True, timeout=program.PATIENCE, check=False)

        early = job(MORE="--time-limit 0.001")
        self.assertEqual((early.returncode, early.stdout), (0, f"-W depend=afterany:7 -v THOMPSON_JOBS=1 {path}\n"), early.stderr)
        self.assertEqual(job(MORE="--time-limit 0.001", THOMPSON_JOBS="100").returncode, 75)
        whole = job()
        self.assertEqual(whole.returncode, 0, whole.stderr)
        with netCDF4.Dataset(self.path("out/results.nc")) as data:
            self.assertEqual(len(data.dimensions["policy"]), 2)

    def test_advice(self):
        """Ranks: a tenth of the tasks that differ, one at least. Shards: not where priors are learned, the number of runs is adaptive, or tasks are few."""
        def advice(*sets):
            plan = self.plan(*sets)
            text = self.succeed("plan", self.study, *(word for change in sets for word in ("--set", change))).stdout
            ranks = int(re.search(r"# up to about (\d+) rank(?:s are| is) useful; one job", text)[1])
            self.assertEqual(ranks, plan["useful_ranks"])
            self.assertEqual("array of shards" in text, plan["array_does_as_well"])
            return ranks, plan["array_does_as_well"], plan["tasks"]

        ranks, array, tasks = advice("policies=[ts, oracle]", "runs=4000", "problem.theta=gm_cross")
        self.assertEqual((ranks, array), (tasks // 10, True))
        self.assertEqual(advice("policies=[mixts]", "runs=4000")[1], False)
        self.assertEqual(advice("policies=[ts]", "runs={min: 16, max: 160, target_se: 1}")[1], False)
        self.assertEqual(advice("policies=[ts]", "runs=2", "problem.theta=gm_cross")[:2], (1, False))
        equal = advice("policies=[ts]", "runs=4000", "problem.theta=gm_cross", "prior.stages=[10, 20]")
        self.assertEqual(equal[0], equal[2] // 20)

    def test_advice_where_learning_takes_longest(self):
        """Three priors of ten groups of stages each, far more work than their three tasks: 30 parts for three ranks, once that is measured."""
        study = self.write("learn.yaml", "name: learn\nruns: 3\nproblem: {theta: gm_cross, arms: 2, rounds: 2}\npolicies: [diffts]\n"
                                         "prior: {train_samples: 200, stages: 100, replicates: 3, training_steps: 100}\n")
        for measured, ranks in (([], "1 rank is"), (["--calibrate"], "3 ranks are")):
            text = self.succeed("plan", study, *measured).stdout
            self.assertIn("# 1 settings x 1 policies x 3 runs = 3 tasks, 3 priors to fit\n", text)
            self.assertIn(f"# up to about {ranks} useful; ", text)

    def test_batch_script_for_a_machine(self):
        """Cores, nodes and time that are given stand in the script; where nodes and time are, nothing has to be run. A study with few tasks gets few ranks, and one
        whose matrices are spread gets all."""
        def job(*arguments, study=self.study):
            script = self.succeed("plan", study, "--slurm", *arguments).stdout
            return re.search(r"--nodes=(\d+)\n#SBATCH --ntasks-per-node=(\d+)", script).groups() + re.search(r"--time=(\S+)", script).groups(), script

        machine = ["--cores-per-node", "8", "--max-nodes", "2", "--wall-time", "4.5"]
        many, script = job(*machine, "--set", "runs=4000")
        self.assertEqual(many, ("2", "8", "04:30:00"))
        self.assertIn("whose time was not measured", script)
        self.assertEqual(job(*machine)[0], ("2", "5", "04:30:00"))          # 108 tasks
        large = self.write("large.yaml", LARGE)
        for nodes, more in (("3", ["--max-nodes", "3"]), ("1", [])):
            found, _ = job("--cores-per-node", "4", "--wall-time", "0.2", *more, study=large)
            self.assertIn(found, ((nodes, "4", "00:12:00"), ("1", "1", "00:12:00")))    # the latter in a build without ScaLAPACK
        measured, script = job("--cores-per-node", "1", "--wall-time", "0.5", "--set", "policies=[random]")
        self.assertEqual(measured, ("1", "1", "00:30:00"))
        self.assertIn("from a calibration", script)

    def test_a_name_is_no_command(self):
        """No part of a file's name appears in the script outside quotes."""
        study = self.path("small\ntouch made.yaml")
        os.rename(self.study, study)
        script = self.succeed("plan", study, "--slurm", "--set", "policies=[oracle]").stdout
        self.assertEqual(script.count("touch made.yaml"), 1)
        word = re.search(r"thompson run (.*) --set", script)[1]
        self.assertEqual(subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True).stdout, study)

    def test_refusals(self):
        for arguments in (["--slurm", "--json"], ["--slurm", "--pbs"], ["-o", self.path("out")]):
            self.assertEqual(program.thompson("plan", self.study, *arguments).returncode, 2)
        self.fail_with(2, "one rank", "plan", self.study, "--calibrate", ranks=2)
        large = self.write("large.yaml", LARGE)
        self.fail_with(3, "cannot be measured in a short run: give --wall-time", "plan", large, "--slurm")
        for option in ("--cores-per-node", "--max-nodes", "--wall-time"):
            self.fail_with_usage("are for --slurm", "plan", self.study, option, "1")
        self.assertIn("# time: unknown; it cannot be measured", self.succeed("plan", large, "--calibrate").stdout)


if __name__ == "__main__":
    program.main()
