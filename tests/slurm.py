"""A Slurm of our own: one node on loopback, in a temporary folder, with its own key, sockets and ports; gone afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")
SEARCH = os.environ["PATH"] + ":/usr/sbin:/sbin"

# Two partitions on the one node: jobs of the second end and requeue those of the first.
CONFIGURATION = """
ClusterName=thompson
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=pmix
SwitchType=switch/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,batch_sched_delay=0
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""


class Unavailable(Exception):
    """Why there can be no Slurm here."""


def find(name):
    return shutil.which(name, path=SEARCH)


def require_programs(source):
    """Slurm, installed if that is allowed; Unavailable with a reason otherwise."""
    if os.geteuid() != 0:
        raise Unavailable("Slurm's daemons need root")
    missing = [name for name in PROGRAMS if not find(name)]
    if missing and os.environ.get("THOMPSON_NO_INSTALL") != "1":
        subprocess.run([os.path.join(source, "jobs", "install_debian.sh"), "--cluster"], check=False, timeout=600, stdout=subprocess.DEVNULL)
        missing = [name for name in PROGRAMS if not find(name)]
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)} (jobs/install_debian.sh --cluster)")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """Start the daemons; Unavailable when they do not come up. `stop` ends them and removes the folder."""

    def __init__(self, source):
        require_programs(source)
        self.folder = tempfile.mkdtemp(prefix="thompson-slurm-")
        os.chmod(self.folder, 0o755)
        self.environment = dict(os.environ, PATH=SEARCH, SLURM_CONF=self.path("slurm.conf"))
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        host = socket.gethostname().split(".")[0]
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=host, folder=self.folder, ports=free_ports(2)))
        with open(os.open(self.path("munge.key"), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(1024))
        for name in ("state", "spool"):
            os.mkdir(self.path(name))
        self.daemon("munged", "--force", *(f"--{key}={self.path('munge' + end)}" for key, end in (
            ("key-file", ".key"), ("socket", ".socket"), ("pid-file", "d.pid"), ("log-file", "d.log"), ("seed-file", "d.seed"))))
        self.daemon("slurmctld", "-f", self.path("slurm.conf"))
        self.daemon("slurmd", "-f", self.path("slurm.conf"), "-N", host)
        deadline = time.time() + 30
        while "idle" not in self.command("sinfo", "-h", "-o", "%T", check=False):
            if time.time() > deadline:
                raise Unavailable(f"Slurm does not come up: {self.log('slurmctld')} | {self.log('slurmd')}")
            time.sleep(0.2)

    def daemon(self, name, *arguments):
        process = subprocess.run([find(name), *arguments], env=self.environment, capture_output=True, text=True, timeout=30, check=False)
        if process.returncode:
            raise Unavailable(f"{name} does not start: {(process.stderr or self.log(name)).strip()}")

    def log(self, name):
        try:
            with open(self.path(name + ".log"), encoding="utf-8") as file:
                return " ".join(file.read().split("\n")[-3:])
        except OSError:
            return f"no log of {name}"

    def logs(self):
        """What the jobs have printed."""
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("thompson-"):
                with open(self.path(name), encoding="utf-8") as file:
                    texts.append(f"{name}: {file.read()}")
        return "\n".join(texts)

    def command(self, *arguments, check=True):
        return subprocess.run(arguments, env=self.environment, capture_output=True, text=True, timeout=30, check=check).stdout.strip()

    def submit(self, *arguments):
        """sbatch; returns the number of the job."""
        return self.command("sbatch", "--parsable", f"--chdir={self.folder}", *arguments)

    def states(self, job):
        """The states of a job and of its array's members: PENDING, RUNNING, ..., COMPLETED; empty when Slurm has forgotten it."""
        return self.command("squeue", "-h", "-t", "all", "-o", "%T", "-j", job, check=False).split()

    def start_now(self, job):
        """Slurm keeps a requeued job waiting for two minutes; here only until its former life is over: its sockets are gone, and
        the node has reported its end, which would count for the next life else."""
        over = not any(f"_{job}." in name or f".{job}." in name for name in os.listdir(self.path("spool")))
        if over and self.states(job) == ["PENDING"] and self.command("sinfo", "-h", "-N", "-o", "%T").split()[:1] == ["idle"]:
            self.command("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)

    def stop(self):
        self.command("scancel", "--partition=main,urgent", "--signal=KILL", "--full", check=False)
        for name in ("slurmd", "slurmctld", "munged"):
            try:
                with open(self.path(name + ".pid"), encoding="utf-8") as file:
                    process = int(file.read())
                os.kill(process, signal.SIGTERM)
                deadline = time.time() + 10
                while os.path.exists(f"/proc/{process}") and time.time() < deadline:
                    time.sleep(0.05)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
