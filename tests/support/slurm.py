"""A private Slurm: one node on loopback, in a temporary folder, with its own key, sockets and ports; removed afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")
SEARCH = os.environ["PATH"] + ":/usr/sbin:/sbin"

# Two partitions on the one node: jobs of the second stop and requeue those of the first.
# cred_expire is also the time that a requeued job waits (120 s by default): 5 s is the minimum. A shorter wait, by
# `scontrol update StartTime=now`, can fail: a life that begins in the same second in which the credential of the previous one was
# revoked has a credential that counts as revoked too. TmpFS: PMIx names its folder there after user, job and step, which two Slurms would share.
CONFIGURATION = """
ClusterName=thompson
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
{communication}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
TmpFS={folder}/tmp
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
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""


class Unavailable(Exception):
    """The reason why no Slurm can run here."""


def find(name):
    return shutil.which(name, path=SEARCH)


def require_programs():
    """Raises Unavailable, with a reason, if Slurm is not installed or cannot be started."""
    if os.geteuid() != 0:
        raise Unavailable("Slurm's daemons need root")
    missing = [name for name in PROGRAMS if not find(name)]
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)} (jobs/install_debian.sh --tests)")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def listening(host):
    """Settings to listen only on loopback, if the machine's name has an address; without one Slurm 24 would find no socket that it may listen on."""
    try:
        socket.gethostbyname(host)
    except OSError:
        return ""
    return "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny"


class Cluster:
    """Start the daemons; raises Unavailable if they do not come up. `stop` ends them and removes the folder."""

    def __init__(self):
        require_programs()
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
            file.write(CONFIGURATION.format(host=host, folder=self.folder, ports=free_ports(2), communication=listening(host)))
        with open(os.open(self.path("munge.key"), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(1024))
        for name in ("state", "spool", "tmp"):
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

    def log(self, name, lines=3):
        """The end of a daemon's log."""
        try:
            with open(self.path(name + ".log"), encoding="utf-8") as file:
                return "\n".join(file.read().splitlines()[-lines:])
        except OSError:
            return f"no log of {name}"

    def logs(self):
        """What the jobs have printed, and the last messages of the daemons about them."""
        texts = [f"{name}: {self.log(name, 15)}" for name in ("slurmctld", "slurmd")]
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("thompson-"):
                with open(self.path(name), encoding="utf-8") as file:
                    texts.append(f"{name}: {file.read()}")
        return "\n".join(texts)

    def command(self, *arguments, check=True):
        return subprocess.run(arguments, env=self.environment, capture_output=True, text=True, timeout=30, check=check).stdout.strip()

    def submit(self, *arguments):
        """Run sbatch; returns the number of the job."""
        return self.command("sbatch", "--parsable", f"--chdir={self.folder}", *arguments)

    def states(self, job):
        """The states of a job and of its array's members: PENDING, RUNNING, ..., COMPLETED; empty when Slurm has forgotten it."""
        return self.command("squeue", "-h", "-t", "all", "-o", "%T", "-j", job, check=False).split()

    def restarts(self, job):
        """How often a job has been put back into the queue."""
        return int(self.command("scontrol", "show", "job", job).split(" Restarts=")[1].split()[0])

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
