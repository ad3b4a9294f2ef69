"""Third-party code and programs in separate processes, which isolates crashes and has time limits.

A user's program, and what it starts, ends with the worker that runs it, even if the worker is
killed (:mod:`dld_tui.core.process.child`). Its standard input is empty.
"""

from __future__ import annotations

import collections
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.notes import NoteKind
from dld_tui.core.process.child import (
    LEAVE_S,
    Child,
    ProcessEnd,
    die_with,
    has_news,
    says_no_memory,
)
from dld_tui.core.process.interpreter import collect
from dld_tui.core.text import clip, visible, without_escapes

_LOOK_S = 0.1
MOST_LOAD = 5
"""How much longer than a limit of processor time something may take by the clock."""
_TAIL = 4000
_BOOTSTRAP = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); {first}from {module} import {main};"
    " {main}()"
)
_LIMITED = "from dld_tui.core.process.child import limit_memory; limit_memory({memory}); "


@dataclass(frozen=True)
class ToolEnd(ProcessEnd):
    """How a tool ended."""

    output: str
    """The end of its output. Untrusted text."""
    memory: int | None = None
    """The limit of its memory in bytes."""

    @property
    def lacked_memory(self) -> bool:
        """Whether it ended because it got no more memory."""
        return not self.timed_out and self.status != 0 and says_no_memory(self.output)


def run_tool(
    module: str,
    arguments: Sequence[str],
    limit_s: float | None,
    memory: int | None = None,
    *,
    computed: bool = False,
) -> Generator[float, None, ToolEnd]:
    """Run a function of a module in a process with ``sys.argv[1:]`` set; closing ends the process.

    Args:
        module: ``module`` or ``module:function``; the function is ``main`` by default.
        arguments: Its ``sys.argv[1:]``.
        limit_s: A time limit in seconds; None is no limit.
        memory: The most bytes that it may have; None is no limit.
        computed: Whether the limit is one of processor time, too, so that a loaded machine ends
            nothing; :data:`MOST_LOAD` times as much by the clock ends it anyway.

    Yields:
        The elapsed seconds, ten times per second.
    """
    # Not `-m`: that would put the current folder first on the module path.
    name, _, function = module.partition(":")
    first = "" if memory is None else _LIMITED.format(memory=memory)
    code = _BOOTSTRAP.format(first=first, module=name, main=function or "main")
    command = [sys.executable, "-c", code, *arguments]
    began = time.monotonic()
    timed_out = False
    with tempfile.TemporaryFile() as output:
        process = Child(
            [*command, "\n".join(sys.path)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(),
        )
        try:
            while process.poll() is None:
                passed = time.monotonic() - began
                if limit_s is not None and passed > limit_s:
                    used = process.processor_seconds() if computed else None
                    if used is None or used > limit_s or passed > MOST_LOAD * limit_s:
                        timed_out = True
                        break
                yield passed
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        finally:
            process.end()
        tail = _tail(output, 0)
    return ToolEnd(process.returncode, time.monotonic() - began, timed_out, tail, memory)


def _tail(output: IO[bytes], begin: int) -> str:
    """Return the end of what was written behind a position."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(begin, size - _TAIL))
    return output.read().decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    return {**os.environ, "POLYGRAPHY_AUTOINSTALL_DEPS": "0"}


class ForkServer:
    """A process that imports modules once and runs a function in a fork of itself for each call.

    A call starts in milliseconds, in a process that shares with others only what the imports made.
    They must start no threads that the function needs. One call runs at a time.

    Args:
        module: ``module`` or ``module:function``; the function is ``main`` by default.
        imports: Modules to import before the first call.
    """

    def __init__(self, module: str, imports: Sequence[str]) -> None:
        name, _, function = module.partition(":")
        code = _BOOTSTRAP.format(first="", module=__name__, main="_serve_forks")
        arguments = [name, function or "main", *imports]
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._told = 0
        """Bytes of the output that calls before have told."""
        self._process = Child(
            [sys.executable, "-c", code, *arguments, "\n".join(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env=_environment(),
        )

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def close(self) -> None:
        """End the process, and the call that it runs."""
        self._process.end()
        for file in (self._process.stdin, self._process.stdout, self._output):
            if file is not None:
                file.close()

    def run(
        self, arguments: Sequence[str], limit_s: float | None
    ) -> Generator[float, None, ToolEnd]:
        """Run the function as :func:`run_tool` does.

        Closing the generator and exceeding the time limit end the server, too.
        """
        began = time.monotonic()
        timed_out = False
        commands, replies = self._process.stdin, self._process.stdout
        assert commands is not None
        assert replies is not None
        with suppress(BrokenPipeError):
            commands.write(json.dumps(list(arguments)).encode() + b"\n")
        reply = b""
        try:
            while not has_news(replies.fileno(), _LOOK_S):
                passed = time.monotonic() - began
                if limit_s is not None and passed > limit_s:
                    timed_out = True
                    break
                yield passed
            else:
                reply = replies.readline()
        finally:
            if not reply:
                self._process.end()
        tail = _tail(self._output, self._told)  # an import may have failed before the first call
        self._told = self._output.seek(0, os.SEEK_END)
        status = int(reply) if reply else self._process.returncode
        return ToolEnd(status, time.monotonic() - began, timed_out, tail)


def _serve_forks() -> None:
    """Run a function in a fork for each line of arguments, and print the exit status of each."""
    name, function, *imports = sys.argv[1:]
    for module in imports:
        importlib.import_module(module)
    call = getattr(importlib.import_module(name), function)
    collect()  # so that no fork copies the memory of objects only to look at them
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent, too
    for line in iter(sys.stdin.buffer.readline, b""):
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_call, args=(call, json.loads(line), os.getpid()))
        process.start()
        try:
            process.join()
        finally:
            if process.is_alive():
                process.terminate()
                process.join(LEAVE_S / 2)
                process.kill()
        sys.stdout.write(f"{process.exitcode}\n")
        sys.stdout.flush()


def _call(function: Callable[[], None], arguments: list[str], server: int) -> None:
    die_with(server)
    os.dup2(2, 1)  # the replies go there
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    sys.argv[1:] = arguments
    function()


_LISTEN_S = 0.2
_CHUNK = 64 << 10
_DRAIN = 1 << 20
"""More than a pipe holds: the last output."""
_LINE = 2000
"""The most bytes that are kept of a line."""
_STAGE = 60
_LINES_A_SECOND = 200
_BURST = 1000
"""The number of lines that may come together."""
_LAST = 20
"""The number of last lines that are always shown, however many were left out before."""


@dataclass(frozen=True)
class ProgramEnd(ProcessEnd):
    """How a program ended."""

    lines: int
    """How many lines it printed."""
    left_out: int
    """How many of them were not shown, because they came too fast."""


def find_program(text: str) -> str:
    """Return the absolute path of a program, given its name on the PATH or its path.

    Raises:
        UnavailableError: It does not exist, or is not executable.
    """
    path = os.path.expanduser(text)
    program = shutil.which(path)
    if program is None or ("/" in path and not os.path.isabs(path)):
        where = "does not exist or is not executable" if "/" in path else "is not on the PATH"
        raise UnavailableError(f"the program {where}", where=text)
    return os.path.abspath(program)


def run_program(
    command: Sequence[str], folder: Path, limit_s: float
) -> Generator[Event, None, ProgramEnd]:
    """Run a program; closing the generator ends it and its processes.

    Args:
        command: The absolute program, and its arguments.
        folder: Its working directory.
        limit_s: A time limit in seconds; 0 is no limit.

    Yields:
        Its output as ``Log``, and a ``Progress`` five times per second, whose stage is the
        unfinished line.

    Raises:
        UsageError: It cannot be started.
    """
    began = time.monotonic()
    timed_out = False
    printed = _Output(began)
    process = _start(command, folder)
    try:
        while process.poll() is None:
            passed = time.monotonic() - began
            if limit_s and passed >= limit_s:
                timed_out = True
                break
            yield Progress(round(passed, 1), None, "s", printed.current or "Running")
            _listen(process, printed)
            yield from printed.shown(time.monotonic())
    finally:
        process.end()
        for _ in range(_DRAIN // _CHUNK):
            if not printed.read(process, 0):
                break
        if process.stdout is not None:
            process.stdout.close()
    yield from printed.rest()
    seconds = time.monotonic() - began
    return ProgramEnd(process.returncode, seconds, timed_out, printed.lines, printed.left_out)


def _start(command: Sequence[str], folder: Path) -> Child:
    try:
        return Child(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot be started: {reason}", where=str(command[0])) from None


def _listen(process: Child, printed: _Output) -> None:
    """Read the output of a program until the next check of the time, or until it has ended."""
    until = time.monotonic() + _LISTEN_S
    while (rest := until - time.monotonic()) > 0:
        if printed.closed:  # it printed all it ever will
            with suppress(subprocess.TimeoutExpired):
                process.wait(rest)
            return
        if not printed.read(process, rest) and process.poll() is not None:
            return


class _Output:
    """The output of a program in lines; of a flood, only the beginning and the end are shown."""

    def __init__(self, now: float) -> None:
        self.lines = 0
        self.left_out = 0
        self.closed = False
        self._line = bytearray()
        self._events: list[Event] = []
        self._allowed = float(_BURST)
        self._filled_at = now
        self._untold = 0
        self._last: collections.deque[str] = collections.deque(maxlen=_LAST)

    @property
    def current(self) -> str:
        """The line that has no end yet, such as a progress bar that draws itself again."""
        text = self._line.rsplit(b"\r", 1)[-1][-_STAGE * 4 :]
        return clip(visible(_text(text).strip()), _STAGE)

    def read(self, process: Child, wait_s: float) -> bool:
        """Read available output, waiting for some; return False if there is none."""
        pipe = process.stdout
        if pipe is None or self.closed or not has_news(pipe.fileno(), wait_s):
            return False
        data = os.read(pipe.fileno(), _CHUNK)
        self.closed = not data
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._append(part)
            self._add(bytes(self._line))
            self._line.clear()
        self._append(rest)
        return bool(data)

    def shown(self, now: float) -> Iterator[Event]:
        """Return the lines to show."""
        passed = now - self._filled_at
        if passed >= 1:  # not oftener: each pause in a flood is told
            self._allowed = min(_BURST, self._allowed + passed * _LINES_A_SECOND)
            self._filled_at = now
        events, self._events = self._events, []
        yield from events

    def rest(self) -> Iterator[Event]:
        """Return the remaining lines, at the end."""
        if self._line:
            self._add(bytes(self._line))
        yield from self._events
        if self._untold > len(self._last):
            yield Log(f"{self._untold - len(self._last):,} lines are not shown", NoteKind.WARNING)
        for text in self._last:
            yield Log(text)
        self.left_out -= len(self._last)

    def _append(self, part: bytes) -> None:
        line = bytes(self._line) + part
        start = line.rstrip(b"\r").rfind(b"\r") + 1  # what is drawn again takes the place
        self._line[:] = line[start : start + _LINE]

    def _add(self, line: bytes) -> None:
        text = _text(line)
        self.lines += 1
        if self._allowed < 1:
            self.left_out += 1
            self._untold += 1
            self._last.append(text)
            return
        self._allowed -= 1
        if self._untold:
            self._events.append(Log(f"{self._untold:,} lines are not shown", NoteKind.WARNING))
            self._untold = 0
            self._last.clear()
        self._events.append(Log(text))


def _text(line: bytes | bytearray) -> str:
    text = bytes(line).decode("utf-8", "surrogateescape").rstrip("\r").replace("\t", "    ")
    return without_escapes(text)
