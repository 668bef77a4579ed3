"""`thompson plan`: its estimates and its calibration compared with what a run really takes, and a batch script that runs."""

import json
import os
import re
import shutil
import stat
import subprocess

import netCDF4
import numpy as np

import program

LIMIT = 3  # the factor within which sampler.h and prior.h promise their costs
ATTEMPTS = 5  # at a measurement that other processes may disturb


class Plan(program.ProgramTest):
    def plan(self, *arguments):
        return json.loads(self.succeed("plan", self.study, "--json", *arguments).stdout)

    def test_no_calibration_unless_asked(self):
        plan = self.plan()
        self.assertIs(plan["calibrated"], False)
        self.assertEqual(plan["tasks"], 2 * 9 * 6)      # blocks of 8, 8 and 4 runs for each replicate
        self.assertEqual(os.listdir(self.folder), ["small.yaml"])

    def test_calibration_against_a_run(self):
        """CPU seconds of the simulation of a longer study, within a factor of 3: the calibration sees one block."""
        labels = ("ts", "diffts", "dps", "linucb")
        settings = ["--set", "problem.rounds=400", "--set", "policies=[ts, diffts, dps, linucb]", "--set", "problem.arms=100", "--set", "runs=64"]
        planned, taken = np.full((2, 5), np.inf)  # the whole study, and a run of each policy
        for _ in range(ATTEMPTS):
            plan = self.plan("--calibrate", *settings)
            self.assertIs(plan["calibrated"], True)
            whole = (plan["core_hours"] - plan["training_core_hours"]) * 3600
            planned = np.minimum(planned, [whole, *(plan["seconds_per_run"][label] for label in labels)])
            seconds = self.seconds_of_runs(self.study, settings)
            taken = np.minimum(taken, [seconds.sum(), *seconds[0].mean(1)])
            # diffts and dps differ by a tenth, and on a busy machine the order may be reversed
            if abs(np.log(planned[0] / taken[0])) < np.log(LIMIT) and taken[1 + np.argmax(planned[1:])] > taken[1:].max() / 1.5:
                return
        self.fail(f"seconds of the whole study and of {labels}: {planned} planned, {taken} taken")

    def seconds_of_runs(self, study, sets):
        """CPU seconds [setting, policy, run] of a study that is actually run."""
        out = self.path("timed")
        self.succeed("run", study, "-o", out, *sets)
        with netCDF4.Dataset(os.path.join(out, "results.nc")) as data:
            seconds = np.asarray(data["seconds"][...])
        shutil.rmtree(out)
        return seconds

    def within_limit(self, measure):
        """Check the ratios of measured to planned CPU seconds, by case, relative to their median: a common factor is due to the machine, whose core is not
        the one for which the constants were fitted and may be shared. Other processes can only slow a case down, so its smallest ratio counts, and cases
        outside the limit are measured again. measure(wanted): the ratios of at least the cases for which wanted(case).
        """
        least, wrong = {}, None
        for _ in range(ATTEMPTS):
            for case, ratio in measure(lambda case: wrong is None or case in wrong).items():
                least[case] = min(ratio, least.get(case, ratio))
            median = np.median(list(least.values()))
            wrong = {case: round(ratio / median, 2) for case, ratio in least.items() if not 1 / LIMIT < ratio / median < LIMIT}
            if not wrong:
                return
        self.fail(f"{wrong} of CPU seconds over those planned, relative to the median of {median:.2f}")

    def ratios(self, names, runs, *settings):
        """Measured over planned CPU seconds of runs, by sampler, from the fastest block."""
        file = self.write("costs.yaml", f"""
            name: costs
            runs: {runs}
            block: 16
            policies: [{", ".join(names)}]
            problem: {{theta: gaussian, arms: 30}}
            prior: {{stages: 50, hidden: [20, 20], train_samples: 1000, training_steps: 50, mixture_starts: 1}}
            """)
        sets = [part for key in settings for part in ("--set", key)]
        plan = json.loads(self.succeed("plan", file, "--json", *sets).stdout)["seconds_per_run"]
        seconds = self.seconds_of_runs(file, sets)[0].min(axis=-1)
        return {f"{name} {' '.join(settings)}": taken / plan[name] for name, taken in zip(names, seconds)}

    def test_costs_of_samplers(self):
        """What the op `cost` of every sampler predicts compared with what its runs take, in settings that differ in dimension and likelihood, with small
        networks and larger ones: within the factor of 3 that sampler.h promises."""
        samplers = json.loads(self.succeed("list", "samplers", "--json").stdout)
        names = [sampler["name"] for sampler in samplers]
        free = [sampler["name"] for sampler in samplers if "conjugate likelihood" not in sampler["needs"]]
        gaussian, logistic = "likelihood=gaussian", "likelihood=logistic"
        clouds = {"smc_tempered", "twisted", "smc", "vts"}  # slow: a single block is timed well, the others need four
        cases = ((names, [gaussian, "problem.dimension=2", "problem.rounds=50"]), (names, [gaussian, "problem.dimension=6", "problem.rounds=30"]),
                 (free, [logistic, "problem.dimension=2", "problem.rounds=30"]),
                 (["mixts", "diffts", "localised"], [gaussian, "problem.rounds=50", "prior.guard=0.1"]),
                 (["ts", "mixts", "lints"], [gaussian, "problem.rounds=20", "event_log=true"]), (["ts", "mixts"], [logistic, "problem.rounds=20", "event_log=true"]),
                 (["diffts", "dps", "joint"], [gaussian, "problem.rounds=20", "prior.hidden=[100, 100]", "prior.training_steps=5"]))

        def measure(wanted):
            found = {}
            for which, settings in cases:
                for few in (False, True):
                    if chosen := [name for name in which if (name in clouds) == few and wanted(f"{name} {' '.join(settings)}")]:
                        found |= self.ratios(chosen, 16 if few else 64, *settings)
            return found

        self.within_limit(measure)

    def test_costs_of_fits(self):
        """The predicted cost of learning a prior compared with the actual cost: networks, mixtures next to them, EM on samples and on logs, with the mixture that
        precedes networks. The mixture dominates the cost of a denoiser in one case, the network in the next. Doubling a mixture beyond the largest candidate is
        planned as if each were better, and occurs in no case here."""
        file = self.write("fits.yaml", """
            name: fits
            runs: 1
            problem: {theta: cross, arms: 5, rounds: 1}
            prior: {train_samples: 600, past_tasks: 150, past_observations: 10, mixture_starts: 2}
            """)
        logs = "prior.learned_from=logs"
        cases = (["policies=[diffts]", "prior.stages=10"], ["policies=[diffts]", "prior.stages=1", "prior.training_steps=20"],
                 ["policies=[localised]", "prior.training_steps=100"], ["policies=[localised]", "prior.training_steps=1500", "prior.train_samples=300"],
                 ["policies=[mixts]", "prior.components=20"], ["policies=[mixts]", "prior.components=auto"],
                 ["policies=[mixts]", "prior.components=auto", "problem.theta=roll", "problem.dimension=16", "prior.train_samples=250"],
                 ["policies=[mixts]", "prior.components=10", logs, "prior.past_tasks=1500"], ["policies=[mixts]", "prior.components=auto", logs],
                 ["policies=[diffts]", "prior.stages=1", "prior.training_steps=20", logs],
                 ["policies=[mixts]", "prior.components=4", logs, "likelihood=logistic"])

        def measure(wanted):
            ratios = {}
            for case in filter(lambda case: wanted(" ".join(case)), cases):
                sets = [part for key in case for part in ("--set", key)]
                planned = json.loads(self.succeed("plan", file, "--json", *sets).stdout)["training_core_hours"] * 3600
                self.succeed("run", file, "-o", self.path("fits"), *sets)
                with netCDF4.Dataset(self.path("fits/results.nc")) as data:
                    ratios[" ".join(case)] = float(data["seconds_train"][0, 0]) / planned
                shutil.rmtree(self.path("fits"))
            return ratios

        self.within_limit(measure)

    def test_adaptive_runs(self):
        plan = self.plan("--set", "runs={min: 16, max: 160, target_se: 1}")
        self.assertEqual((plan["runs_least"], plan["runs"]), (16, 160))
        simulation = plan["core_hours"] - plan["training_core_hours"]
        least = plan["core_hours_least"] - plan["training_core_hours"]
        self.assertAlmostEqual(least / simulation, 0.1)
        text = self.succeed("plan", self.study, "--set", "runs={min: 16, max: 160, target_se: 1}").stdout
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

    def test_a_name_is_no_command(self):
        """No part of a file's name appears in the script outside quotes."""
        study = self.path("small\ntouch made.yaml")
        os.rename(self.study, study)
        script = self.succeed("plan", study, "--slurm", "--set", "policies=[oracle]").stdout
        self.assertEqual(script.count("touch made.yaml"), 1)
        word = re.search(r"thompson run (.*) --set", script)[1]
        self.assertEqual(subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True).stdout, study)

    def test_floor_of_regret(self):
        """It is planned once for each setting, however many policies there are, and within a factor of 3 of what was measured: CPU microseconds per
        round of a run on one core of an AMD EPYC, where a plan assumes 5e-5 of them for an operation."""
        base = ["--set", "runs=64", "--set", "block=64", "--set", "problem.arms=100", "--set", "problem.rounds=200"]

        def floor(policies, *settings):
            planned = [self.plan(*base, "--set", f"policies={policies}", *metrics, *settings)["core_hours"] for metrics in ((), ("--set", "metrics=[regret_floor]"))]
            return (planned[1] - planned[0]) * 3600 / (64 * 200) * 1e6

        for theta, dimension, measured in (("gm_cross", 2, 0.2), ("gm_sphere", 16, 5.3), ("gm_curve", 2, 3), ("rays", 2, 33), ("ising", 8, 2.4)):
            one, two = (floor(policies, "--set", f"problem.theta={theta}", "--set", f"problem.dimension={dimension}") for policies in ("[random]", "[random, oracle]"))
            self.assertAlmostEqual(one / two, 1, delta=1e-6)
            self.assertLess(abs(np.log(one / measured)), np.log(LIMIT), theta)

    def test_refusals(self):
        for arguments in (["--slurm", "--json"], ["-o", self.path("out")]):
            self.assertEqual(program.thompson("plan", self.study, *arguments).returncode, 2)
        self.fail_with(2, "one rank", "plan", self.study, "--calibrate", ranks=2)


if __name__ == "__main__":
    program.main()
