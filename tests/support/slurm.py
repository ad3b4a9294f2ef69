"""A real Slurm of one node, as ordinary processes on loopback: munged, slurmctld and slurmd.

Nothing of it touches the system: keys, sockets, state and logs are in one folder. Debian's packages
are slurmctld, slurmd, slurm-client and munge.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sshd import free_port

_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "squeue")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_START_S = 60.0


def require_slurm() -> dict[str, str]:
    """Return the paths of Slurm's programs by name; skips the test where one is missing."""
    found = {name: shutil.which(name, path=_PATH) for name in _PROGRAMS}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed (apt-get install slurm-wlm munge)")
    return {name: path for name, path in found.items() if path is not None}


class Slurm:
    """One cluster of one node, which runs as many jobs at a time as it has `cores`."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        self._programs = require_slurm()
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._node = socket.gethostname().partition(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        key = folder / "key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        self.config = folder / "slurm.conf"
        self.config.write_text(self._settings(cores), encoding="utf-8")
        # No control groups are asked for; slurmd loads a plugin for them all the same.
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")

    @property
    def launcher(self) -> tuple[str, ...]:
        """What is put before a command to run it on the node."""
        return ("env", f"SLURM_CONF={self.config}", self._programs["srun"], "--ntasks=1")

    def start(self) -> Slurm:
        folder, config = self.folder, str(self.config)
        self._begin("munged", "--foreground", "--force", f"--key-file={folder / 'key'}",
                    f"--socket={folder / 'munge'}", f"--pid-file={folder / 'munged.pid'}",
                    f"--seed-file={folder / 'seed'}")  # fmt: skip
        self._await(lambda: (folder / "munge").exists())
        self._begin("slurmctld", "-D", "-f", config)
        self._begin("slurmd", "-D", "-f", config, "-N", self._node)
        self._await(lambda: subprocess.run(
            [*self.launcher, "--immediate=2", "true"], capture_output=True, check=False
        ).returncode == 0)  # fmt: skip
        return self

    def jobs(self) -> list[str]:
        """Return the states of the jobs that are there: PENDING, RUNNING, COMPLETING."""
        command = [self._programs["squeue"], "--noheader", "--format=%T"]
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def _begin(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen(
                [self._programs[name], *arguments], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            ))  # fmt: skip

    def _await(self, is_ready: Callable[[], bool]) -> None:
        end = time.monotonic() + _START_S
        while not is_ready():
            ended = any(process.poll() is not None for process in self._processes)
            if ended or time.monotonic() > end:
                logs = (path.read_text() for path in self.folder.glob("*.log"))
                self.stop()
                raise AssertionError(f"Slurm does not start:\n{''.join(logs)}")
            time.sleep(0.05)

    def _settings(self, cores: int) -> str:
        folder, user = self.folder, pwd.getpwuid(os.geteuid()).pw_name
        return f"""\
ClusterName=test
SlurmctldHost={self._node}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName={self._node} NodeAddr=127.0.0.1 CPUs={cores} CoresPerSocket={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
