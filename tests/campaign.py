#!/usr/bin/env python3
"""Random faults against small studies, each resumed on a random number of ranks until it is done, and what they cost: results that were
reported done and are lost or computed again, files that cannot be read, hangs, wrong exit codes. All four must be zero.

    tests/campaign.py --kills 200 --seed 1 [--program build/release/thompson]

A fault is one of: kill -9 of a rank, of mpiexec, of all at once; SIGTERM and SIGUSR1 to mpiexec; a full disk (a small tmpfs, where mounting
is allowed). 200 take some 20 minutes. tests/program_campaign.py is the short version."""

import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import netCDF4

STUDY = """
name: campaign
study: bandit
seed: {seed}
runs: 40
block: 8
problem: {{theta: cross, arms: 10, rounds: {rounds}}}
policies: [ts, mixts, diffts, dps, egreedy]
prior: {{train_samples: 500, replicates: 2, stages: 8, training_steps: 60, hidden: [8, 8]}}
sweep:
  problem.theta: [cross, rays]
"""
TASKS = 60
HANG = 30  # seconds that a job may take to end after a fault
# What may come out, besides 0 when the work was done before the fault. mpiexec itself ends with 1 or 143 on SIGTERM, whatever its ranks say.
CODES = {"rank": {137, 9}, "mpiexec": {-9}, "all": {-9, 137}, "term": {1, 75, 143, 15}, "usr1": {75}, "disk": {4}}
FREE = {"size": "40m"}


def ranks_of(job):
    return [int(p) for p in subprocess.run(["pgrep", "-P", str(job)], capture_output=True, text=True, check=False).stdout.split()]


def alive(processes):
    """Those that run; a zombie does not."""
    running = []
    for process in processes:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    running.append(process)
        except OSError:
            pass
    return running


def same_values(first, second):
    """Equal to the byte in every variable but the seconds."""
    with netCDF4.Dataset(first) as one, netCDF4.Dataset(second) as two:
        one.set_auto_maskandscale(False)
        two.set_auto_maskandscale(False)
        names = [name for name in one.variables if not name.startswith("seconds")]
        return set(one.variables) == set(two.variables) and all(one[n][...].tobytes() == two[n][...].tobytes() for n in names)


class Campaign:
    def __init__(self, program, seed, rounds, report=print):
        self.program, self.chance, self.rounds, self.report = program, random.Random(seed), rounds, report
        self.folder = tempfile.mkdtemp(prefix="thompson-campaign-")
        self.faults, self.codes, self.wrong = collections.Counter(), collections.Counter(), []
        self.lives = self.studies = 0
        self.slowest = 0.0

    def path(self, name):
        return os.path.join(self.folder, name)

    def blame(self, kind, text):
        self.wrong.append((kind, text))
        self.report(f"WRONG ({kind}): {text}")

    def status(self, out):
        answer = subprocess.run([self.program, "status", "--json", out], capture_output=True, text=True, timeout=HANG, check=False)
        return json.loads(answer.stdout)["done"] if answer.returncode == 0 else 0

    def begin(self, out, ranks):
        command = ["mpiexec", "-n", str(ranks), self.program, "run", self.path("study.yaml"), "-o", out, "--resume", "--progress", "plain"]
        with open(self.path("log"), "wb") as log:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def strike(self, fault, job, out):
        ranks = ranks_of(job.pid)
        victims = {"rank": self.chance.sample(ranks, min(1, len(ranks))), "mpiexec": [job.pid], "all": [job.pid, *ranks], "term": [job.pid],
                   "usr1": [job.pid]}.get(fault, [])
        if fault == "disk":
            subprocess.run(["mount", "-o", "remount,size=4k", os.path.dirname(out)], check=False, capture_output=True)
            subprocess.run(["dd", "if=/dev/zero", f"of={os.path.dirname(out)}/ballast", "bs=4k"], check=False, capture_output=True)
        for victim in victims:
            try:
                os.kill(victim, {"term": signal.SIGTERM, "usr1": signal.SIGUSR1}.get(fault, signal.SIGKILL))
            except ProcessLookupError:
                pass
        return ranks

    def relieve(self, mount):
        if os.path.exists(os.path.join(mount, "ballast")):
            os.remove(os.path.join(mount, "ballast"))
        subprocess.run(["mount", "-o", f"remount,size={FREE['size']}", mount], check=False, capture_output=True)

    def check_end(self, fault, job, ranks, struck):
        """All processes gone in time; the exit code one that may be."""
        deadline = struck + HANG
        while time.time() < deadline and (job.poll() is None or alive(ranks)):
            time.sleep(0.02)
        self.slowest = max(self.slowest, time.time() - struck)
        if job.poll() is None or alive(ranks):
            self.blame("hang", f"{fault}: alive {HANG} s later: {self.log()[-500:]}")
            for process in [job.pid, *ranks]:
                subprocess.run(["kill", "-9", str(process)], check=False, stderr=subprocess.DEVNULL)
            job.wait()
        self.codes[f"{fault} {job.returncode}"] += 1
        if job.returncode not in CODES[fault] and job.returncode != 0:
            self.blame("exit code", f"{fault}: {job.returncode}: {self.log()[-500:]}")

    def live(self, out, fault):
        """One life of the study, struck at a random moment. True when it was done."""
        kept, ranks = self.status(out), self.chance.randint(1, 4)
        lock = os.path.join(out, "lock")
        before = os.stat(lock).st_mtime_ns if os.path.exists(lock) else 0
        job = self.begin(out, ranks)
        while job.poll() is None and (not os.path.exists(lock) or os.stat(lock).st_mtime_ns == before):
            time.sleep(0.005)
        moment = time.time() + self.chance.expovariate(1.5)
        while job.poll() is None and time.time() < moment:
            time.sleep(0.002)
        self.lives += 1
        if job.poll() is not None:
            if job.returncode != 0:
                self.blame("exit code", f"undisturbed: {job.returncode}: {self.log()[-500:]}")
            return True
        struck = time.time()
        self.check_end(fault, job, self.strike(fault, job, out), struck)
        self.faults[fault] += 1
        reported = [int(done) for done in re.findall(r"running tasks: (\d+)/", self.log())]
        if fault == "disk":
            self.relieve(os.path.dirname(out))
        now = self.status(out)
        if now < kept + max(reported, default=0):
            self.blame("lost", f"{fault}: {kept} done before, {reported} reported, {now} kept")
        return False

    def finish(self, out, reference):
        """Undisturbed to the end: only what is left is computed, every file can be read, the bytes are those of the reference."""
        kept = self.status(out)
        job = self.begin(out, self.chance.randint(1, 4))
        status = job.wait(timeout=600)
        if status != 0:
            self.blame("exit code", f"the last life: {status}: {self.log()[-500:]}")
            return
        computed = re.findall(r"running tasks: (\d+)/(\d+) in", self.log())
        if sum(int(total) for _, total in computed) != TASKS - kept:
            self.blame("lost", f"{kept} were done, and {computed} computed of {TASKS}")
        files = [os.path.join(where, name) for where, _, names in os.walk(out) for name in names]
        if "set aside" in self.log() or any(name.endswith((".bad", ".tmp")) for name in files):
            self.blame("unreadable", f"{files} {self.log()[-500:]}")
        if not same_values(os.path.join(out, "results.nc"), os.path.join(reference, "results.nc")):
            self.blame("lost", "the results differ from those of an undisturbed run")

    def study(self, kills):
        """A study of its own seed, struck until it is done, or `kills` times."""
        self.studies += 1
        with open(self.path("study.yaml"), "w", encoding="utf-8") as file:
            file.write(STUDY.format(seed=self.studies, rounds=self.rounds))
        reference, mount = self.path("reference"), self.path("disk")
        subprocess.run([self.program, "run", self.path("study.yaml"), "-o", reference, "--overwrite"], check=True, capture_output=True)
        os.makedirs(mount, exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FREE['size']}", "tmpfs", mount], check=False, capture_output=True).returncode == 0
        out = os.path.join(mount, "out")
        kinds = [kind for kind in CODES if kind != "disk" or mounted]
        try:
            while kills > 0 and not self.live(out, self.chance.choice(kinds)):
                kills -= 1
            self.finish(out, reference)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", mount], check=False)
            shutil.rmtree(mount, ignore_errors=True)

    def run(self, kills):
        begin = time.time()
        try:
            while sum(self.faults.values()) < kills:
                self.study(min(5, kills - sum(self.faults.values())))
                self.report(f"{sum(self.faults.values())}/{kills} faults, {self.studies} studies, {time.time() - begin:.0f} s")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        counts = collections.Counter(kind for kind, _ in self.wrong)
        self.report(f"faults: {dict(self.faults)}; ends: {dict(sorted(self.codes.items()))}")
        self.report(f"{sum(self.faults.values())} faults in {self.studies} studies: {counts['lost']} results lost, {counts['unreadable']} unreadable files, "
                    f"{counts['hang']} hangs over {HANG} s (slowest end {self.slowest:.1f} s), {counts['exit code']} wrong exit codes")
        return not self.wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of a study: how long it lives")
    parser.add_argument("--program", default=os.environ.get("THOMPSON_PROGRAM", "build/release/thompson"), help="the program to strike")
    arguments = parser.parse_args()
    campaign = Campaign(os.path.realpath(arguments.program), arguments.seed, arguments.rounds)
    sys.exit(0 if campaign.run(arguments.kills) else 1)


if __name__ == "__main__":
    main()
