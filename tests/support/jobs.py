"""Scripted jobs in a real child process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dld_tui.core.events import TERMINAL, Event, Log
from dld_tui.core.types import JSON
from dld_tui.targets.process import Delays, LocalTarget, ProcessJob, worker_command

FAST = Delays(ask=0.05, terminate=0.05, leave=0.2)
PATIENT = Delays(ask=60, terminate=60, leave=60)


def fake_target(delays: Delays = PATIENT) -> LocalTarget:
    """Return a target whose worker knows the scripted activity."""
    return LocalTarget(worker_command("tests.support.fake_worker"), delays)


def start(*steps: list[Any], delays: Delays = PATIENT, times: int = 1) -> ProcessJob:
    request: dict[str, JSON] = {"steps": list(steps), "times": times}
    return fake_target(delays).start("fake", request)


def start_program(program: str, delays: Delays = PATIENT) -> ProcessJob:
    """Start a worker that is not ours at all: a Python program."""
    target = LocalTarget([sys.executable, "-S", "-c", program], delays)
    return target.start("any", {})


def read(job: ProcessJob) -> list[Event]:
    """Return all events; check that exactly the last one is terminal."""
    with job:
        events = list(job.events())
    assert [isinstance(event, TERMINAL) for event in events] == [False] * (len(events) - 1) + [True]
    return events


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Log)]


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition; fail by name when it does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
