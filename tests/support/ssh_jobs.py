"""Scripted and real jobs on the SSH servers of the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.core.events import Event
from dld_tui.core.params import RequestData, to_json
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.deploy import Deployment, Need, Needs, Prepared
from dld_tui.targets.ssh.job import Setup, SshJob
from dld_tui.targets.ssh.link import Link, RetryPolicy
from dld_tui.targets.ssh.target import SshTarget
from dld_tui.targets.ssh.transfer import Amount
from tests.support.asker import Answers
from tests.support.fake_activity import Request
from tests.support.slow_line import SlowLine
from tests.support.sshd import Sshd

Links: TypeAlias = Callable[..., Link]
Servers: TypeAlias = Callable[..., Sshd]
Agents: TypeAlias = Callable[..., Agent]
REPOSITORY = Path(__file__).resolve().parents[2]
QUICK = RetryPolicy(first=0.05, longest=0.2, total=30.0, silence=2.5)
FAKE = Setup(QUICK, "tests.support.fake_worker", (str(REPOSITORY),))
"""Jobs whose worker knows the scripted activity."""
REAL = Setup(QUICK)
BARE = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
"""A Python without the packages of the tests."""
TINY = Needs((Need("tinymod", ("tinymod",), "1.0"),), "cpu")
"""What tests/support/tiny_wheel.py brings."""


def target_of(connection: Connection, setup: Setup = FAKE, **changes: Any) -> SshTarget:
    """Return a target whose Python has all packages: that of the tests."""
    return SshTarget(changed(connection, **{"python": sys.executable, **changes}), Answers(), setup)


def script(*steps: list[Any], times: int = 1) -> RequestData:
    return to_json(Request(tuple(steps), times))


def until(job: SshJob, kind: type[Event]) -> list[Event]:
    """Read a job until an event of a kind; return what was read."""
    seen: list[Event] = []
    for event in job.events():
        seen.append(event)
        if isinstance(event, kind):
            return seen
    raise AssertionError(f"there was no {kind.__name__}: {seen}")


def end_processes_of(directory: str) -> None:
    """Kill the processes on whose command line a deployment folder stands."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"{directory}/".encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def files_in(folder: Path) -> list[str]:
    """Return the files below a folder, relative to it."""
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, _, names in os.walk(folder)
        for name in names
    )


def at(server: Sshd, connection: Connection, **changes: Any) -> Connection:
    own = {"port": server.port, "key": server.user_key, "known_hosts": server.known_hosts()}
    return changed(connection, **{**own, **changes})


def behind(connection: Connection, line: SlowLine) -> Connection:
    """Return a connection that goes over a line, whose port is known as the server's."""
    assert connection.known_hosts is not None
    path = connection.known_hosts.with_name("known_hosts_of_line")
    text = connection.known_hosts.read_text()
    path.write_text(text.replace(f":{connection.port} ", f":{line.port} "))
    return changed(connection, port=line.port, known_hosts=path)


def prepare(
    agent: Agent, needs: Needs, route: str = "auto", options: tuple[str, ...] = (),
    amount: Amount | None = None,
) -> Prepared:  # fmt: skip
    deployment = Deployment(agent, amount or Amount(), QUICK, route, options)
    return loop.call(deployment.prepare(needs), 120)


def imported(python: str) -> str:
    """Return what the module of the tiny wheel says there: ``1 2``, or an error."""
    code = "import tinymod, tinymod.more; print(tinymod.value, tinymod.more.value)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr
