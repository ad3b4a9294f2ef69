"""Scripted and real jobs on the SSH servers of the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from dld_tui.core.events import Event
from dld_tui.core.params import RequestData, to_json
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh.job import Setup, SshJob
from dld_tui.targets.ssh.link import RetryPolicy
from dld_tui.targets.ssh.target import SshTarget
from tests.support.asker import Answers
from tests.support.fake_activity import Request

REPOSITORY = Path(__file__).resolve().parents[2]
QUICK = RetryPolicy(first=0.05, longest=0.2, total=30.0, silence=2.5)
FAKE = Setup(QUICK, "tests.support.fake_worker", (str(REPOSITORY),))
"""Jobs whose worker knows the scripted activity."""
REAL = Setup(QUICK)


def target_of(connection: Connection, setup: Setup = FAKE, **changes: Any) -> SshTarget:
    """Return a target whose Python has all packages: that of the tests."""
    return SshTarget(changed(connection, **{"python": sys.executable, **changes}), Answers(), setup)


def script(*steps: list[Any], times: int = 1) -> RequestData:
    """Return the request of a scripted job."""
    return to_json(Request(tuple(steps), times))


def until(job: SshJob, kind: type[Event]) -> list[Event]:
    """Read a job until an event of a kind; return what was read."""
    seen: list[Event] = []
    for event in job.events():
        seen.append(event)
        if isinstance(event, kind):
            return seen
    raise AssertionError(f"there was no {kind.__name__}: {seen}")


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


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
