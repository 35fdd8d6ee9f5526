"""A real SLURM of one node with two cards that are no cards, and a simulated study to send through it.

Needs root, Debian's `slurm-wlm` and `munge` (`apt-get install --no-install-recommends slurm-wlm munge`), and a machine
without a SLURM of its own: the executor's job steps look for the controller in /etc/slurm alone.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ETC = Path("/etc/slurm")
#: Stands in the files that the tests put into /etc/slurm, so that no other cluster's are ever touched.
OURS = "# a cluster of userturn's tests\n"
NODE = platform.node().split(".")[0]

SLURM_CONF = """\
ClusterName=userturn
SlurmctldHost={node}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=0
# says 16 cores and 64 GB where there are fewer
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
MinJobAge=300
KillWait=5
NodeName={node} NodeAddr=127.0.0.1 CPUs=16 RealMemory=64000 Gres=gpu:fake:2 State=UNKNOWN
PartitionName=all Nodes={node} Default=YES MaxTime=1-00:00:00 State=UP
"""
GRES_CONF = "NodeName={node} Name=gpu Type=fake File={folder}/card[0-1]\n"


@dataclass(frozen=True)
class Cluster:
    """A running SLURM."""

    folder: Path

    def ask(self, *words: str) -> str:
        """Runs one of SLURM's commands and returns what it said; a busy controller is asked again."""
        for _ in range(5):
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout
            time.sleep(1)
        pytest.fail(f"{' '.join(words)}: {done.stderr}")

    def running(self, rule: str) -> list[str]:
        """Numbers of the running jobs of a rule."""
        lines = self.ask("squeue", "-h", "-t", "RUNNING", "-o", "%i %k").splitlines()
        return [line.split()[0] for line in lines if line.split(maxsplit=1)[1].startswith(f"rule_{rule}_")]

    def node(self, state: str) -> None:
        """Sets the node's state: ``down`` ends its jobs, ``resume`` takes it back."""
        reason = ["reason=test"] if state == "down" else []
        self.ask("scontrol", "update", f"nodename={NODE}", f"state={state}", *reason)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Starts a controller and a node, and ends them."""
    missing = [name for name in ("slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no SLURM on this machine ({', '.join(missing)})")
    if os.geteuid() != 0:
        pytest.skip("a SLURM of one's own needs root")
    conf = ETC / "slurm.conf"
    if conf.exists() and not conf.read_text().startswith(OURS):
        pytest.skip(f"this machine has a SLURM of its own ({conf})")
    folder = tmp_path_factory.mktemp("slurm")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    for card in range(2):
        os.mknod(folder / f"card{card}", 0o20666, os.makedev(1, 3))
    ETC.mkdir(exist_ok=True)
    for name, text in (("slurm.conf", SLURM_CONF), ("gres.conf", GRES_CONF)):
        (ETC / name).write_text(OURS + text.format(node=NODE, folder=folder))
    munged = [
        *("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"),
        *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"),
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in (munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", NODE]):
            with (folder / f"{command[0]}.out").open("wb") as log:
                started.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
            time.sleep(0.5)
        up = Cluster(folder)
        for _ in range(300):
            said = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False).stdout
            if said.strip() == "idle":
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"SLURM did not start: {(folder / 'slurmctld.out').read_text()[-2000:]}")
        yield up
        # jobs of a test that failed: without a node's daemon nobody would end them
        subprocess.run(["scancel", "--user=root"], check=False)
        for _ in range(100):
            if not up.ask("squeue", "-h").strip():
                break
            time.sleep(0.2)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink(missing_ok=True)


@pytest.fixture(scope="session")
def executor(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A folder for PYTHONPATH that holds Snakemake's executor for SLURM; None where the environment has it."""
    python = root / ".envs/workflow/bin/python"
    found = "import importlib.util, sys; sys.exit(importlib.util.find_spec('snakemake_executor_plugin_slurm') is None)"
    if subprocess.run([python, "-c", found], check=False).returncode == 0:
        return None
    folder = tmp_path_factory.mktemp("executor")
    # what the workflow's environment lacks, of the same lock
    entries = re.split(r"\n(?=\S)", (root / "envs/slurm.lock").read_text())
    lock = folder / "executor.lock"
    have = subprocess.run([python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True)
    names = {re.sub(r"[-_.]+", "-", one["name"]).lower() for one in json.loads(have.stdout)}
    lock.write_text("\n".join(one for one in entries if one.partition("==")[0] not in names))
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "--target", folder, "-r", lock],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"the executor for SLURM cannot be installed here: {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="session")
def chaos(root: Path) -> ModuleType:
    """`benchmarks/chaos.py`: a small simulated study that takes its time, in a copy of the checkout."""
    spec = importlib.util.spec_from_file_location("chaos", root / "benchmarks/chaos.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chaos"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Folder:
    """A copy of the checkout in which a study is run."""

    path: Path
    executor: Path | None
    started: list[subprocess.Popen[str]]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts Snakemake; what it says goes to ``run.log``."""
        python_path = [str(self.path / "src"), *([str(self.executor)] if self.executor else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(python_path)}
        # each job starts Snakemake twice, which would compile itself anew
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            self.path / ".envs/workflow/bin/snakemake",
            "results/report.html",
            "--configfile",
            "config/study.yaml",
        ]
        with (self.path / "run.log").open("a") as log:
            self.started.append(
                subprocess.Popen([*command, *words], cwd=self.path, env=environment, stdout=log, stderr=log, text=True)
            )
        return self.started[-1]

    def start_on_cluster(self) -> subprocess.Popen[str]:
        """Starts Snakemake through the profile; only the first look at a job comes sooner."""
        return self.start(
            *("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2"),
            *("--latency-wait", "10"),
        )

    def said(self) -> str:
        """What Snakemake said so far."""
        return (self.path / "run.log").read_text()


@pytest.fixture(scope="session")
def simulated(
    chaos: ModuleType, executor: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Folder]]:
    """Makes copies of the checkout with the same simulated study: two models, a card each."""
    config, files = chaos.study(0.4, items=3)
    for model in config["models"].values():
        model["resources"] = {**model["resources"], "gpus": 1, "card": "fake", "cores": 2, "memory_gb": 2}

    started: list[subprocess.Popen[str]] = []

    def make(name: str) -> Folder:
        folder = chaos.checkout(tmp_path_factory.mktemp(name), config, files, "config/study.yaml")
        return Folder(folder, executor, started)

    yield make
    # of a test that failed
    for process in started:
        process.kill()
        process.wait()
