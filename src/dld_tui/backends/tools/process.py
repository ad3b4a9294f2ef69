"""A third-party tool in a separate process, which isolates crashes and has a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass

_LOOK_S = 0.1
_LEAVE_S = 2.0
_TAIL = 4000
_BOOTSTRAP = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); from {module} import main; main()"
)


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended."""

    status: int
    """Its exit status; the negative number of a signal that ended it."""
    seconds: float
    timed_out: bool

    @property
    def crashed(self) -> str | None:
        """The signal that ended it; None if it exited or was stopped."""
        if self.timed_out or self.status >= 0:
            return None
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


@dataclass(frozen=True)
class ToolEnd(ProcessEnd):
    """How a tool ended."""

    said: str
    """The end of its output. Foreign text."""


def run_tool(
    module: str, arguments: Sequence[str], limit_s: float | None
) -> Generator[float, None, ToolEnd]:
    """Run ``main`` of a module with ``sys.argv[1:]`` set; closing the generator ends the process.

    Args:
        arguments: Its ``sys.argv[1:]``.
        limit_s: A time limit in seconds; None is no limit.

    Yields:
        The elapsed seconds, ten times per second.
    """
    # Not `-m`: that would put the current folder first on the module path.
    command = [sys.executable, "-c", _BOOTSTRAP.format(module=module), *arguments]
    began = time.monotonic()
    timed_out = False
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*command, "\n".join(sys.path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "POLYGRAPHY_AUTOINSTALL_DEPS": "0"},
        )
        try:
            while process.poll() is None:
                passed = time.monotonic() - began
                if limit_s is not None and passed > limit_s:
                    timed_out = True
                    break
                yield passed
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        finally:
            _end(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - _TAIL))
        tail = output.read().decode("utf-8", "replace")
    return ToolEnd(process.returncode, time.monotonic() - began, timed_out, tail)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
