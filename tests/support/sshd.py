"""A real SSH server as a normal process on loopback: OpenSSH's, else that of asyncssh.

Nothing of it touches the system: keys, configuration, home folder and log are in one folder.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import asyncssh
import pytest

from tests.support import python_sshd

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
_START_S = 60.0
_PRIVILEGE_SEPARATION = Path("/run/sshd")


def free_port() -> int:
    """Return a port on loopback that nobody listens to now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """Make a key pair and return the path of the private half."""
    names = {"ed25519": "ssh-ed25519", "rsa": "ssh-rsa", "ecdsa": "ecdsa-sha2-nistp256"}
    key = asyncssh.generate_private_key(names[kind], "test")
    path.touch(0o600)
    # Few rounds: the tests are not worth guessing.
    path.write_bytes(
        key.export_private_key(passphrase=passphrase or None, rounds=4, ignore_few_rounds=True)
    )
    key.write_public_key(path.with_name(f"{path.name}.pub"))
    return path


class Sshd:
    """One server; it takes the key `user_key`, and those that :meth:`allow` is told.

    Args:
        folder: Where all of it lies; made when it is not there.
        settings: More lines for its configuration, by keyword.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.settings = dict(settings or {})
        if SSHD is None and not self.settings.keys() <= python_sshd.SETTINGS:
            pytest.skip("no OpenSSH server is installed (apt-get install openssh-server)")
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.host = "127.0.0.1"
        self.port = free_port()
        self.user = getpass.getuser()
        self.host_key = make_key(folder / "host_key")
        self.user_key = make_key(folder / "user_key")
        self.authorized_keys = folder / "authorized_keys"
        self.authorized_keys.touch(0o600)
        self.allow(self.user_key)
        self.log = folder / "sshd.log"
        self._process: subprocess.Popen[bytes] | None = None

    def allow(self, key: Path) -> None:
        public = key.with_name(f"{key.name}.pub").read_text()
        with self.authorized_keys.open("a") as file:
            file.write(public)

    @property
    def known_line(self) -> str:
        kind, key = self.host_key.with_name("host_key.pub").read_text().split()[:2]
        return f"[{self.host}]:{self.port} {kind} {key}\n"

    @property
    def fingerprint(self) -> str:
        return asyncssh.read_public_key(f"{self.host_key}.pub").get_fingerprint()

    def known_hosts(self, *others: Sshd) -> Path:
        """Write a known_hosts file for this server and others, and return its path."""
        path = self.folder / "known_hosts"
        path.write_text("".join(server.known_line for server in (self, *others)))
        return path

    def renew_host_key(self, kind: str = "ed25519") -> None:
        """Show another host key from the next start on."""
        for path in (self.host_key, self.host_key.with_name("host_key.pub")):
            path.unlink()
        make_key(self.host_key, kind=kind)

    def start(self) -> Sshd:
        if os.geteuid() == 0:
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in self._config().items()))
        command = [sys.executable, python_sshd.__file__, str(config)]
        if SSHD is not None:
            command = [SSHD, "-D", "-e", "-f", str(config)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"sshd does not start:\n{self.log.read_text()}")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End it with every session, as a machine that is switched off orderly."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with every session at once."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        sessions = _descendants(process.pid, "sshd")
        process.send_signal(number)
        process.wait(60)
        for pid in sessions:
            _kill(pid, signal.SIGKILL)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1):
            return True
        return False

    def _config(self) -> dict[str, str]:
        base = {
            "ListenAddress": self.host,
            "Port": str(self.port),
            "HostKey": str(self.host_key),
            "AuthorizedKeysFile": str(self.authorized_keys),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "MaxStartups": "100",
            "MaxSessions": "100",
            "UseDNS": "no",
            "PrintMotd": "no",
            "PrintLastLog": "no",
            "SetEnv": f"HOME={self.home}",
            "Subsystem": "sftp internal-sftp",
        }
        return {**base, **self.settings}


def _descendants(root: int, name: str) -> list[int]:
    """Return the processes of a name below one, the deepest last."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            head, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        parent = int(rest.split()[1])
        children.setdefault(parent, []).append((int(entry.name), head.partition("(")[2]))
    found: list[int] = []
    todo = [root]
    while todo:
        for pid, its_name in children.get(todo.pop(), ()):
            todo.append(pid)
            if its_name.startswith(name):
                found.append(pid)
    return found


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
