"""An activity that plays a script, for the tests of workers and jobs.

Each step is a list: a verb and its arguments. A ``raise`` step, or the end of the script without an
``event finished`` step, is as wrong as it would be in a real activity.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.core.errors import ActivityError, InputError, UnavailableError
from dld_tui.core.events import Event, Finished, Progress, event_from_line
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request:
    """The steps to play."""

    steps: tuple[Any, ...] = param((), label="Steps", help="What to do.")
    times: int = param(1, label="Times", help="How often.", minimum=1)


def run(request: Request) -> Iterator[Event]:
    for _ in range(request.times):
        for verb, *arguments in request.steps:
            yield from _STEPS[verb](*arguments)


def _event(line: str) -> Iterator[Event]:
    event = event_from_line(line)
    assert event is not None, line
    yield event


def _finish(result: Any = None) -> Iterator[Event]:
    yield Finished(result or {})


def _finish_badly() -> Iterator[Event]:
    yield Finished({"not": object()})


def _write(descriptor: int, text: str, times: int = 1) -> Iterator[Event]:
    """Write as a native library does: past Python's own streams."""
    for _ in range(times):
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(descriptor, data) :]
    yield from ()


def _print(text: str) -> Iterator[Event]:
    sys.stdout.write(text)
    yield from ()


def _exit(status: int) -> Iterator[Event]:
    yield from ()
    os._exit(status)


def _kill(number: int) -> Iterator[Event]:
    yield from ()
    os.kill(os.getpid(), number)
    signal.pause()


def _crash() -> Iterator[Event]:
    yield from ()
    ctypes.string_at(0)


def _raise(kind: str, text: str) -> Iterator[Event]:
    yield from ()
    errors: dict[str, Callable[[str], Exception]] = {
        "activity": ActivityError, "input": InputError, "unavailable": UnavailableError,
        "value": ValueError, "space": functools.partial(OSError, errno.ENOSPC),
    }  # fmt: skip
    raise errors[kind](text)


def _hang(*, deaf: bool = False) -> Iterator[Event]:
    """Stay in one call for good, as a native call does that does not return."""
    yield from ()
    if deaf:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.write(2, b"hanging\n")  # not an event: a cancel could come before the call begins
    while True:
        time.sleep(60)


def _until_cancelled(trace: str) -> Iterator[Event]:
    """Yield for good; leave a note in a file when the clean-up has run."""
    done = 0
    try:
        while True:
            done += 1
            yield Progress(done)
            time.sleep(0.001)
    finally:
        Path(trace).write_text("cleaned up")


def _hang_with_clean_up(trace: str) -> Iterator[Event]:
    try:
        yield from _hang()
    finally:
        Path(trace).write_text("cleaned up")


def _child(seconds: int, trace: str) -> Iterator[Event]:
    """Start a process of our own that holds the pipes open."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    Path(trace).write_text(str(child.pid))
    yield from ()


def _close_outputs() -> Iterator[Event]:
    yield from ()
    os.closerange(1, 100)
    time.sleep(60)


def _environment() -> Iterator[Event]:
    folder = os.environ["TMPDIR"]
    Path(folder, "left behind").write_text("x")
    group = os.getpgrp() == os.getpid()
    yield Finished({"folder": folder, "leads": group, "path": list(sys.path)})


def _wait_for(path: str) -> Iterator[Event]:
    """Wait until a file is there."""
    while not Path(path).exists():
        time.sleep(0.01)
    yield from ()


def _variable(name: str) -> Iterator[Event]:
    yield Finished({"value": os.environ.get(name, "")})


_STEPS: dict[str, Any] = {
    "event": _event,
    "finish": _finish,
    "finish_badly": _finish_badly,
    "write": _write,
    "print": _print,
    "exit": _exit,
    "kill": _kill,
    "crash": _crash,
    "raise": _raise,
    "hang": _hang,
    "hang_deaf": lambda: _hang(deaf=True),
    "hang_with_clean_up": _hang_with_clean_up,
    "until_cancelled": _until_cancelled,
    "child": _child,
    "close_outputs": _close_outputs,
    "environment": _environment,
    "wait_for": _wait_for,
    "variable": _variable,
}
