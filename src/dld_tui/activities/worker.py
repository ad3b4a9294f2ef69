"""The child process that runs one activity and prints its events.

Protocol: the first line of standard input is ``{"activity": id, "request": {...}}``; a later line
``cancel`` and the end of standard input both cancel. Standard output carries one event a line and
nothing else: the worker keeps a private copy of it and points descriptor 1 at standard error, so
that a library that prints cannot break the protocol. The last event is the only terminal one.

A polite cancel takes effect between two events, where the activity's generator is closed. SIGTERM
also raises inside the activity. Neither reaches a native call that does not return; whoever
started the worker then sends SIGKILL, or its guard does (:mod:`dld_tui.core.process.child`).
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import io
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import FrameType
from typing import BinaryIO, NoReturn

from dld_tui.activities import registry
from dld_tui.core import params
from dld_tui.core.errors import CancelledError, DldError, ExitStatus, UsageError
from dld_tui.core.events import (
    TERMINAL,
    Cancelled,
    Event,
    Failed,
    Finished,
    Started,
    event_to_line,
)
from dld_tui.core.files import permission
from dld_tui.core.files.source import input_error, texts_in
from dld_tui.core.files.temporary import is_made_here
from dld_tui.core.types import JSON


class Control:
    """Whether somebody wants the job to stop: a line, the end of input, or a signal."""

    def __init__(self) -> None:
        self.cancelled = False
        self._interruptible = False

    def listen(self, commands: BinaryIO) -> None:
        """Read commands on a thread until the job is over."""
        threading.Thread(target=self._listen, args=(commands,), daemon=True).start()

    def _listen(self, commands: BinaryIO) -> None:
        while line := commands.readline():
            if line.strip() == b"cancel":
                self.cancelled = True
        self.cancelled = True

    def handle_signals(self) -> None:
        """Let SIGTERM and SIGINT stop the job. Main thread only."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.cancelled = True
        if self._interruptible:
            self._interruptible = False  # once: never into the clean-up that this starts
            raise CancelledError

    @contextlib.contextmanager
    def interruptible(self) -> Generator[None]:
        """Let a signal raise CancelledError inside the block."""
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False


class EventWriter:
    """Writes events to a descriptor, whole lines only."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, event: Event) -> None:
        """Write one line.

        Raises:
            CancelledError: The reader is gone.
            TypeError: The event holds something that is not JSON data; nothing was written.
        """
        rest = memoryview(event_to_line(event).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise CancelledError from error


def run_request(
    line: bytes, writer: EventWriter, control: Control
) -> Finished | Failed | Cancelled:
    """Run the activity that a request line names; send all its events but the terminal one."""
    name = "the worker"
    request: Mapping[str, JSON] = {}
    try:
        name, request, replaces = _parse_request(line)
        permission.agree(map(str, replaces))
        activity = registry.load(name)
        built = params.from_json(activity.request, request)
        writer.send(Started(name, activity.title))
        return _drive(activity.run(built), writer, control)
    except CancelledError as error:
        return Cancelled(error.hint or "")
    except DldError as error:
        return Failed.from_error(error)
    # The seam: whatever a library raises must reach the user as one event.
    except BaseException as error:  # noqa: BLE001
        if (full := _without_memory(error, name)) is not None:
            return full
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            place = error.filename or "the disk of the model, of the result or of temporary files"
            return Failed("the disk is full", str(place), "Free some space")
        known = input_error(error, texts_in(request))
        return _unexpected(error, name) if known is None else Failed.from_error(known)


def _without_memory(error: BaseException, name: str) -> Failed | None:
    """Return how a job failed that got no more memory; None if it failed otherwise."""
    from dld_tui.core.process.child import has_memory_limit, says_no_memory

    if not says_no_memory(f"{type(error).__name__}: {error}"):
        return None
    if not has_memory_limit():
        return Failed("out of memory", name, "Close other programs or use a smaller input")
    from dld_tui.backends.onnxruntime.limits import memory_error

    return Failed.from_error(memory_error(name))


def _unexpected(error: BaseException, name: str) -> Failed:
    message = f"unexpected {type(error).__name__}: {error}"[:500]
    return Failed(message, name, "The details show where", traceback.format_exc())


def _parse_request(line: bytes) -> tuple[str, Mapping[str, JSON], Sequence[str]]:
    """Return the activity, its request, and the files that it may replace."""
    name = request = replaces = None
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError, AttributeError):
        data = json.loads(line)
        name, request, replaces = data["activity"], data["request"], data.get("replaces", [])
    if not isinstance(name, str) or not isinstance(request, dict) or not isinstance(replaces, list):
        raise UsageError(
            "the first line is not a request",
            where="dld worker",
            hint='Send {"activity": "ID", "request": {...}} as one line of JSON',
        )
    return name, request, replaces


def _drive(
    events: Iterator[Event], writer: EventWriter, control: Control
) -> Finished | Failed | Cancelled:
    with contextlib.ExitStack() as stack:
        if isinstance(events, Generator):
            stack.callback(events.close)
        while not control.cancelled:
            with control.interruptible():
                event = next(events, None)
            if event is None:
                return Failed("the activity ended without a result")
            if isinstance(event, TERMINAL):
                return event
            writer.send(event)
        if isinstance(events, Generator):
            # Not closed silently: the exception that is raised again may name remaining files.
            with contextlib.suppress(StopIteration):
                events.throw(CancelledError())
        return Cancelled()


def exit_status(terminal: Finished | Failed | Cancelled) -> int:
    """Return the exit status that corresponds to a terminal event."""
    if isinstance(terminal, Finished):
        return ExitStatus.DONE
    return terminal.status if isinstance(terminal, Failed) else ExitStatus.CANCELLED


def _remove_job_folder() -> None:
    folder = os.environ.get("TMPDIR", "")
    if is_made_here(os.path.basename(folder)):
        shutil.rmtree(folder, ignore_errors=True)


def main() -> NoReturn:
    """Serve one request and leave the process, without running the teardown of libraries.

    Native libraries crash in their teardown now and then; that must not follow a result.
    """
    writer = EventWriter(os.dup(1))
    commands = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a pipe: Python would keep 8 KB back
    faulthandler.enable()

    control = Control()
    control.handle_signals()
    line = commands.readline()
    control.listen(commands)
    terminal = run_request(line, writer, control) if line else Cancelled()
    _remove_job_folder()
    with contextlib.suppress(OSError, ValueError):  # closed by a library, or the reader is gone
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(CancelledError):
        try:
            writer.send(terminal)
        except (TypeError, ValueError) as error:
            terminal = Failed(f"the result is not JSON data: {error}")
            writer.send(terminal)
    os._exit(exit_status(terminal))


if __name__ == "__main__":
    main()
