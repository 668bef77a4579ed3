#!/usr/bin/env python3
"""Random faults against small studies, each resumed on a random number of ranks until it is done, and the damage counted: results that were
reported done and are lost or computed again, files that cannot be read, hangs, wrong exit codes, touched files of others. All must be zero.

    tests/program/campaign.py --kills 200 --seed 1 [--program build/release/thompson] [--without tail]
    tests/program/campaign.py --damages 2000 --seed 1

Every second study has many short tasks, and every second one of each kind is edited between two of its lives: tasks of both versions count, by the
names in their records, and the results are those of a fresh run of the edited study. --damages damages the journals of one finished study at random, again and again: no task that can be read
may differ, none may be lost except those with a changed byte, and now and then the study is resumed, every second time after an edit, and must give the bytes of an undisturbed run.

A fault is one of: kill -9 of a rank, of mpiexec, of all at once; SIGTERM and SIGUSR1 to mpiexec; a full disk (a small tmpfs, if mounting
is allowed); kill -9 of all and zeros in the tail of a journal or prior, as a power cut leaves them; files and links of others planted
in the folder while the job runs, then kill -9 of all. A study with such files is overwritten in the end, too. 200 faults take some 20 minutes.
tests/program/program_campaign.py is the short version."""

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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import journals  # pylint: disable=wrong-import-position
import values  # pylint: disable=wrong-import-position
from processes import alive  # pylint: disable=wrong-import-position

STUDY = """
name: campaign
study: bandit
seed: {seed}
runs: {runs}
block: {block}
problem: {{theta: cross, arms: 10, rounds: {rounds}}}
policies: [ts, mixts, diffts, dps, egreedy]
prior: {{train_samples: 500, replicates: 2, stages: 8, training_steps: 60, hidden: [8, 8]}}
sweep:
  problem.theta: [cross, rays]
"""
# Runs and blocks of a study; its share of the rounds; its average lifetime in seconds before a fault strikes.
FEW = {"runs": 40, "block": 8, "share": 1, "life": 0.67}
MANY = {"runs": 110, "block": 1, "share": 0.4, "life": 1.5}
# Edits: what is replaced in the study, and by what; more runs are two blocks more.
EDITS = {"a policy first": ("[ts, mixts", "[linucb, ts, mixts"), "a policy less": ("diffts, dps", "diffts"), "an option": ("egreedy]", "{name: egreedy, label: e, epsilon: 0.1}]"),
         "a setting": ("[cross, rays]", "[triangles, rays, cross]"), "more runs": ("runs: {}", "runs: {}"), "a key of two policies": ("stages: 8", "stages: 9")}
PRIOR = r"[a-z]+-[0-9a-f]{20}\.nc"
HANG = 300 if os.environ.get("THOMPSON_SANITIZED") == "1" else 30  # seconds that a job may take to end after a fault
# Exit codes that are allowed, besides 0 if the work was done before the fault. mpiexec itself ends with 1 or 143 on SIGTERM, whatever its ranks say;
# if that comes as it ends, it has crashed once in libgcc_s (-11; a rank's crash would be 139). It ends by SIGUSR1 (-10) if that comes when its ranks have
# ended and it no longer passes signals on.
CODES = {"rank": {137, 9}, "mpiexec": {-9}, "all": {-9, 137}, "term": {1, 75, 143, 15, -11}, "usr1": {75, -10}, "disk": {4}, "tail": {-9, 137},
         "foreign": {-9, 137}}
TAIL = 4096  # most bytes that are zeroed
# Files and links that do not belong to the program, though some names are close; a link points to a file or to a folder of others.
FOREIGN_FILES = ["notes.txt", "results.nc.old", ".results.nc.tmp", ".notes.txt.1.1.tmp", "lock.txt", "tasks/notes.nc", "tasks/42.nc", "tasks/0123456789abcdef.journal.orig", "tasks/123.journal",
                 "tasks/.hidden.nc", "priors/mine.nc", "priors/mixture-0123.nc", "priors/.mine.nc.4711.0.tmp"]
FOREIGN_LINKS = ["link", "folder", "tasks/link.nc", "tasks/.0123456789abcdef.journal.4711.0.tmp", "tasks/folder", "priors/link.nc", "priors/.results.nc.1.0.tmp"]
FREE = {"size": "40m"}


def ranks_of(job):
    return [int(p) for p in subprocess.run(["pgrep", "-P", str(job)], capture_output=True, text=True, check=False).stdout.split()]


def state_of(path):
    """Bytes and time of a file; target of a link, and the state of the target."""
    if os.path.islink(path):
        return os.readlink(path), state_of(os.path.realpath(path))
    if os.path.isdir(path):
        return {name: state_of(os.path.join(path, name)) for name in os.listdir(path)}
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read(), os.stat(path).st_mtime_ns


def bad_files(path):
    """Files that were set aside for the name `path`."""
    folder, name = os.path.split(path)
    return [found for found in os.listdir(folder) if found.startswith(f"{name}.bad")]


def done(out):
    """The names of the tasks that succeeded, of whatever version of the study."""
    return {record.name for record in journals.records(out) if record.status == 1}


def edited(study, edit, kind):
    """The text of a study after an edit."""
    old, new = EDITS[edit]
    if edit == "more runs":
        old, new = old.format(kind["runs"]), new.format(kind["runs"] + 2 * kind["block"])
    assert old in study, (edit, study)
    return study.replace(old, new, 1)


def same_values(first, second):
    """Whether every variable except the seconds is equal to the byte."""
    with netCDF4.Dataset(first) as one, netCDF4.Dataset(second) as two:
        one.set_auto_maskandscale(False)
        two.set_auto_maskandscale(False)
        names = [name for name in one.variables if not name.startswith("seconds")]
        return set(one.variables) == set(two.variables) and all(values.values_of(one[n]) == values.values_of(two[n]) for n in names)


class Campaign:
    def __init__(self, program, seed, rounds, life=1.0, report=print, without=()):
        """`life`: what the average lifetimes before a fault are multiplied by."""
        self.program, self.chance, self.rounds, self.life, self.report = program, random.Random(seed), rounds, life, report
        self.folder = tempfile.mkdtemp(prefix="thompson-campaign-")
        self.faults, self.codes, self.wrong = collections.Counter(), collections.Counter(), []
        self.lives = self.studies = 0
        self.slowest = 0.0
        self.kinds = [kind for kind in CODES if kind not in without]
        self.kind = FEW
        self.foreign, self.damaged = {}, collections.Counter()  # for the current study: {path: state}, {path: how often}
        self.text, self.names = "", set()  # of the current study: itself, the names of its tasks
        self.versions = {}  # {what study.yaml in the folder says: the names of the tasks}
        self.edits = collections.Counter()

    def path(self, name):
        return os.path.join(self.folder, name)

    def blame(self, kind, text):
        self.wrong.append((kind, text))
        self.report(f"WRONG ({kind}): {text}")

    def status(self, out):
        answer = subprocess.run([self.program, "status", "--json", out], capture_output=True, text=True, timeout=HANG, check=False)
        return json.loads(answer.stdout)["done"] if answer.returncode == 0 else 0

    def names_in(self, out):
        """The names of the tasks of the study that the folder has: an edit reaches the folder only when a job has opened it."""
        path = os.path.join(out, "study.yaml")
        if not os.path.exists(path):
            return set()
        with open(path, encoding="utf-8") as file:
            return self.versions[file.read()]

    def take_study(self, text):
        """Make this the current study, and run it undisturbed as a reference."""
        self.text, reference = text, self.path("reference")
        with open(self.path("study.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([self.program, "run", self.path("study.yaml"), "-o", reference, "--overwrite"], check=True, capture_output=True)
        self.names = done(reference)
        with open(os.path.join(reference, "study.yaml"), encoding="utf-8") as file:
            self.versions[file.read()] = self.names

    def edit(self):
        """Edit the study, in one of the ways that were used least."""
        fewest = min(self.edits[edit] for edit in EDITS)
        edit = self.chance.choice([edit for edit in EDITS if self.edits[edit] == fewest])
        self.edits[edit] += 1
        self.take_study(edited(self.text, edit, self.kind))

    def begin(self, out, ranks):
        command = [os.environ.get("THOMPSON_MPIEXEC", "mpiexec"), "-n", str(ranks), self.program, "run", self.path("study.yaml"), "-o", out, "--resume", "--progress", "plain"]
        with open(self.path("log"), "wb") as log:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def strike(self, fault, job, out):
        ranks = ranks_of(job.pid)
        victims = {"rank": self.chance.sample(ranks, min(1, len(ranks))), "mpiexec": [job.pid], "all": [job.pid, *ranks], "term": [job.pid],
                   "usr1": [job.pid]}.get(fault, [])
        if fault in ("tail", "foreign"):
            victims = [job.pid, *ranks]
        if fault == "foreign":
            self.plant(out)
        if fault == "disk":
            subprocess.run(["mount", "-o", "remount,size=4k", os.path.dirname(out)], check=False, capture_output=True)
            subprocess.run(["dd", "if=/dev/zero", f"of={os.path.dirname(out)}/ballast", "bs=4k"], check=False, capture_output=True)
        for victim in victims:
            try:
                os.kill(victim, {"term": signal.SIGTERM, "usr1": signal.SIGUSR1}.get(fault, signal.SIGKILL))
            except ProcessLookupError:
                pass
        return ranks

    def choose(self, kinds):
        """One of the kinds that struck least often."""
        fewest = min(self.faults[kind] for kind in kinds)
        return self.chance.choice([kind for kind in kinds if self.faults[kind] == fewest])

    def plant(self, out):
        """Add some files and links of others; the targets are outside the study's folder."""
        theirs = self.path("theirs")
        if not os.path.isdir(theirs):
            os.mkdir(theirs)
            with open(os.path.join(theirs, "target"), "w", encoding="utf-8") as file:
                file.write("a file of others\n")
        for name in self.chance.sample([*FOREIGN_FILES, *FOREIGN_LINKS], 8):
            path = os.path.join(out, name)
            if os.path.lexists(path) or not os.path.isdir(os.path.dirname(path)):
                continue
            if name in FOREIGN_LINKS:
                os.symlink(theirs if name.endswith("folder") else os.path.join(theirs, "target"), path)
            else:
                with open(path, "wb") as file:
                    file.write(self.chance.randbytes(self.chance.randint(0, 1000)))
            self.foreign[path] = state_of(path)

    def check_foreign(self):
        for path, state in self.foreign.items():
            if state_of(path) != state:
                self.blame("foreign", f"{path} was touched")

    def damage(self, out):
        """Zero the tail of a random journal or prior. What was in the tail no longer counts as done, everything else does."""
        priors = os.path.join(out, "priors")
        files = journals.files(out) + [os.path.join(priors, name) for name in sorted(os.listdir(priors)) if re.fullmatch(PRIOR, name)]
        files = [path for path in files if path not in self.foreign and os.path.getsize(path) > 0]
        if not files:
            return
        path = self.chance.choice(files)
        size, before = os.path.getsize(path), done(out)
        zeros = min(self.chance.randint(1, TAIL), size)
        hit = {record.name for record in journals.records(out) if record.path == path and record.at + len(record.header) + len(record.payload) > size - zeros}
        with open(path, "r+b") as file:
            file.seek(size - zeros)
            file.write(bytes(zeros))
        self.damaged[path] += 1
        if path.endswith(".nc") and len(bad_files(path)) + 1 < self.damaged[path]:
            self.damaged[path] -= 1  # it was damaged before, and the program has not noticed yet
        if not done(out) <= before:
            self.blame("lost", f"zeros in {path} made tasks")
        self.check_kept("tail", out, before - hit, set(), 0)

    def relieve(self, mount):
        if os.path.exists(os.path.join(mount, "ballast")):
            os.remove(os.path.join(mount, "ballast"))
        subprocess.run(["mount", "-o", f"remount,size={FREE['size']}", mount], check=False, capture_output=True)

    def check_end(self, fault, job, ranks, struck):
        """Check that all processes ended in time, with an exit code that is allowed."""
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
        """One life of the study, with a fault at a random moment. True if it was done before the fault."""
        kept, ranks = done(out), self.chance.randint(1, 4)
        lock = os.path.join(out, "lock")
        before = os.stat(lock).st_mtime_ns if os.path.exists(lock) else 0
        job = self.begin(out, ranks)
        while job.poll() is None and (not os.path.exists(lock) or os.stat(lock).st_mtime_ns == before):
            time.sleep(0.005)
        moment = time.time() + self.chance.expovariate(1 / (self.life * self.kind["life"]))
        while job.poll() is None and time.time() < moment:
            time.sleep(0.002)
        self.lives += 1
        if job.poll() is not None:
            if job.returncode != 0:
                self.blame("exit code", f"undisturbed: {job.returncode}: {self.log()[-500:]}")
            return True
        seen, struck = done(out), time.time()
        self.check_end(fault, job, self.strike(fault, job, out), struck)
        self.faults[fault] += 1
        reported = [int(done) for done in re.findall(r"running tasks: (\d+)/", self.log())]
        if fault == "disk":
            self.relieve(os.path.dirname(out))
        self.check_kept(fault, out, kept, seen, max(reported, default=0))
        self.check_foreign()
        if fault == "tail":
            self.damage(out)
        return False

    def finish(self, out, reference):
        """Run undisturbed to the end: only what is left is computed, every file can be read, and the bytes are those of the reference."""
        kept = len(done(out) & self.names)
        job = self.begin(out, self.chance.randint(1, 4))
        status = job.wait(timeout=600)
        if status != 0:
            self.blame("exit code", f"the last life: {status}: {self.log()[-500:]}")
            return
        computed = sum(int(total) for _, total in re.findall(r"running tasks: (\d+)/(\d+) in", self.log()))
        if computed != len(self.names) - kept:
            self.blame("lost", f"{kept} could be read, and {computed} computed of {len(self.names)}: {self.log()[-500:]}")
        self.check_files(out)
        self.check_foreign()
        if not same_values(os.path.join(out, "results.nc"), os.path.join(reference, "results.nc")):
            self.blame("lost", "the results differ from those of an undisturbed run")

    def check_kept(self, fault, out, before, seen, reported):
        """Check that every task readable before this life or just before its end is still readable, and all that it reported; the program agrees."""
        now = done(out)
        if not before | seen <= now or len(now) < len(before) + reported:
            self.blame("lost", f"{fault}: {len(before)} could be read before, {len(seen)} at the end, {reported} were reported, and {len(now)} can be "
                       f"read now; gone: {sorted((before | seen) - now)}: {self.log()[-500:]}")
        counted = len(now & self.names_in(out))
        if self.status(out) < counted:
            self.blame("lost", f"{fault}: {counted} tasks can be read, and {self.status(out)} count as done")

    def check_files(self, out):
        """Check that there are no leftovers, damaged priors were set aside, and all tasks can be read."""
        files = [os.path.join(where, name) for where, _, names in os.walk(out) for name in names]
        files = [path for path in files if path not in self.foreign]
        bad = {path: len(bad_files(path)) for path in self.damaged if path.endswith(".nc")}
        if any(self.damaged[path] != count for path, count in bad.items()) or any(path.endswith(".tmp") for path in files):
            self.blame("unreadable", f"damaged {self.damaged}, set aside {bad}: {files} {self.log()[-500:]}")
        if not self.names <= done(out):
            self.blame("lost", "the journals do not hold every task")

    def overwrite(self, out):
        """Overwrite the study: its own files go, the files of others stay."""
        answer = subprocess.run([self.program, "run", self.path("study.yaml"), "-o", out, "--overwrite", "--set", "policies=[random]"],
                                capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            self.blame("exit code", f"--overwrite: {answer.returncode}: {answer.stderr[-500:]}")
        self.check_foreign()

    def study(self, kills):
        """A study with its own seed, struck until it is done, or `kills` times; every second one of each kind is edited at some time."""
        self.studies += 1
        self.kind = MANY if self.studies % 2 == 0 else FEW
        self.foreign, self.damaged, self.versions = {}, collections.Counter(), {}
        reference, mount = self.path("reference"), self.path("disk")
        self.take_study(STUDY.format(seed=self.studies, rounds=int(self.kind["share"] * self.rounds), runs=self.kind["runs"], block=self.kind["block"]))
        edit_at = self.chance.randrange(kills) if self.studies % 4 in (1, 2) else -1  # when so many faults are left to strike
        os.makedirs(mount, exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FREE['size']}", "tmpfs", mount], check=False, capture_output=True).returncode == 0
        out = os.path.join(mount, "out")
        kinds = [kind for kind in self.kinds if kind != "disk" or mounted]
        try:
            while kills > 0 and not self.live(out, self.choose(kinds)):
                kills -= 1
                if kills == edit_at:
                    self.edit()
            if kills > edit_at >= 0:  # it was done before
                self.edit()
            self.finish(out, reference)
            if self.foreign:
                self.overwrite(out)
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
        self.report(f"edits: {dict(self.edits)}")
        self.report(f"{sum(self.faults.values())} faults in {self.studies} studies: {counts['lost']} results lost, {counts['unreadable']} unreadable files, "
                    f"{counts['hang']} hangs over {HANG} s (slowest end {self.slowest:.1f} s), {counts['exit code']} wrong exit codes, "
                    f"{counts['foreign']} files of others touched")
        return not self.wrong

    def damages(self, count):
        """Damage a finished study `count` times: flips, zeros, ones, cuts, foreign bytes at the end, in one journal or several."""
        begin, believed, lost, wrong_end, checked = time.time(), 0, 0, 0, 0
        self.kind = {**MANY, "runs": 24}
        self.take_study(STUDY.format(seed=1, rounds=30, runs=24, block=1))
        whole, out, original, truth = self.path("whole"), self.path("out"), self.text, self.names
        command = [os.environ.get("THOMPSON_MPIEXEC", "mpiexec"), "-n", "3", self.program, "run", self.path("study.yaml"), "-o"]
        subprocess.run([*command, whole], check=True, capture_output=True)
        for number in range(count):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(whole, out)
            touched = set().union(*(self.damage_once(path) for path in self.chance.sample(journals.files(out), self.chance.randint(1, 2))))
            answer = subprocess.run([self.program, "status", "--json", out], capture_output=True, text=True, check=False)
            if answer.returncode != 0 or json.loads(answer.stdout)["done"] < len(truth) - len(touched):
                lost += 1
                self.report(f"damage {number}: status {answer.returncode}, {len(touched)} touched: {answer.stdout} {answer.stderr}")
            if number % 20 == 0:
                checked += 1
                self.take_study(original)
                if number % 40 == 20:
                    self.edit()
                again = subprocess.run([*command, out, "--resume"], capture_output=True, text=True, check=False)
                computed = sum(int(total) for _, total in re.findall(r"running tasks: (\d+)/(\d+) in", again.stderr))
                wrong_end += again.returncode != 0
                lost += computed > len(touched & self.names) + len(self.names - truth)
                believed += again.returncode == 0 and not same_values(os.path.join(out, "results.nc"), os.path.join(self.path("reference"), "results.nc"))
                believed += not self.names <= done(out)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.report(f"{count} damages, {checked} of them resumed, {sum(self.edits.values())} after an edit: {lost} cost tasks that were not touched, {believed} wrong results, "
                    f"{wrong_end} wrong exit codes, {time.time() - begin:.0f} s")
        return lost + believed + wrong_end == 0

    def damage_once(self, path):
        """Damage one journal; returns the names of the tasks with a changed byte."""
        with open(path, "rb") as file:
            data = bytearray(file.read())
        whole, how = journals.read(path)[0], self.chance.choice(["flip", "zeros", "ones", "cut", "append", "tail"])
        length = 1 if how == "flip" else self.chance.randint(1, TAIL)
        first = self.chance.randrange(len(data)) if how in ("flip", "zeros", "ones") else max(0, len(data) - length)
        end = min(len(data), first + length)
        if how == "flip":
            data[first] ^= 1 << self.chance.randrange(8)
        elif how == "append":
            first = end = len(data)
            data += self.chance.randbytes(length)
        elif how == "cut":
            del data[first:]
        else:
            data[first:end] = (b"\xff" if how == "ones" else b"\0") * (end - first)
        with open(path, "wb") as file:
            file.write(data)
        return {record.name for record in whole if record.at < end and record.at + len(record.header) + len(record.payload) > first}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of a study: how long it lives")
    parser.add_argument("--without", metavar="KIND", action="append", default=[], choices=CODES, help="a kind of fault that is left out")
    parser.add_argument("--damages", type=int, default=0, help="damage journals this often instead")
    parser.add_argument("--program", default=os.environ.get("THOMPSON_PROGRAM", "build/release/thompson"), help="the program to strike")
    arguments = parser.parse_args()
    campaign = Campaign(os.path.realpath(arguments.program), arguments.seed, arguments.rounds, without=arguments.without)
    sys.exit(0 if (campaign.damages(arguments.damages) if arguments.damages else campaign.run(arguments.kills)) else 1)


if __name__ == "__main__":
    main()
