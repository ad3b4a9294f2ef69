"""A worker in a local child process, read without threads: one selector over its pipes.

Whatever happens to the process, the iteration ends with exactly one terminal event. The pipes are
read only during an iteration, so a flood of output makes the worker wait instead of filling
the memory here.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import (
    TERMINAL,
    Cancelled,
    Event,
    Failed,
    Finished,
    Log,
    event_from_line,
)
from dld_tui.core.files import permission
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.notes import NoteKind
from dld_tui.core.process.child import Child
from dld_tui.core.types import JSON
from dld_tui.targets.base import Job, LineCutter, describe_end, log_text

_EVENT_LIMIT = 64 << 20
_LOG_LIMIT = 16 << 10
_CHUNK = 64 << 10
_DRAIN = 1 << 20
"""More than a pipe holds: the remaining output of a process that ended."""
_LAST_LINES = 50
_POLL_S = 0.05
"""The polling interval for the end of the process, where the system does not signal it."""


@dataclass(frozen=True)
class Delays:
    """How long a job gets for each step of its end, in seconds."""

    ask: float = 5.0
    """From the request to stop until SIGTERM."""
    terminate: float = 5.0
    """From SIGTERM until SIGKILL."""
    leave: float = 5.0
    """From the terminal event until SIGKILL, and from SIGKILL until the process is given up."""


class ProcessJob(Job):
    """An activity in a child process that leads its own session and process group.

    Args:
        command: The command line of the worker.
        request: The first line for its standard input, as JSON data.
        delays: See :class:`Delays`.

    Raises:
        UnavailableError: The process cannot be started.
    """

    def __init__(self, command: Sequence[str], request: JSON, delays: Delays) -> None:
        self._delays = delays
        self._folder = hold_folder("job")
        try:
            self._process = Child(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "TMPDIR": str(self._folder)},
            )
        except (OSError, ValueError) as error:
            self._remove_folder()
            message = f"the worker process cannot be started: {error}"
            raise UnavailableError(message, where=str(command[0])) from error

        self._turn_lock = threading.Lock()  # held by the thread that reads
        self._state_lock = threading.Lock()  # for what cancel() shares with that thread
        self._outgoing = bytearray(json.dumps(request).encode() + b"\n")
        self._signals: list[tuple[float, signal.Signals]] = []
        self._cancelled = False
        self._over = False

        self._cutters = {"stdout": LineCutter(_EVENT_LIMIT), "stderr": LineCutter(_LOG_LIMIT)}
        self._ready: collections.deque[Event] = collections.deque()
        self._last_lines: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._terminal: Finished | Failed | Cancelled | None = None
        self._give_up_at: float | None = None
        self._open_selector()

    @property
    def pid(self) -> int:
        """The process id of the worker, which is also its process group."""
        return self._process.pid

    def events(self) -> Iterator[Event]:
        """Yield events until the terminal one, which is always the last."""
        while True:
            with self._turn_lock:
                while not self._ready and not self._over:
                    self._turn()
                if not self._ready:
                    return
                event = self._ready.popleft()
            yield event

    def cancel(self) -> None:
        """Ask immediately; SIGTERM and SIGKILL to the group follow after the delays."""
        with self._state_lock:
            if self._cancelled or self._over:
                return
            self._cancelled = True
            terminate_at = time.monotonic() + self._delays.ask
            self._signals += [
                (terminate_at, signal.SIGTERM),
                (terminate_at + self._delays.terminate, signal.SIGKILL),
            ]
            self._outgoing += b"cancel\n"
            self._flush()
            self._wake()

    def close(self) -> None:
        """Kill the rest of the process group and free all resources."""
        with self._state_lock:
            if self._over:
                return
            self._cancelled = True
            self._signals.insert(0, (0.0, signal.SIGKILL))
            self._wake()
        while not self._over:
            with self._turn_lock:
                if not self._over:
                    self._turn()

    def _open_selector(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._descriptors = [self._wake_read, self._wake_write]
        pipes = {"stdin": self._process.stdin, "stdout": self._process.stdout}
        self._pipes = {
            name: pipe for name, pipe in {**pipes, "stderr": self._process.stderr}.items() if pipe
        }
        self._stdin = self._pipes["stdin"].fileno()
        for descriptor in (*self._descriptors, *(p.fileno() for p in self._pipes.values())):
            os.set_blocking(descriptor, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        self._selector.register(self._stdin, selectors.EVENT_WRITE, "stdin")
        self._selector.register(self._pipes["stdout"], selectors.EVENT_READ, "stdout")
        self._selector.register(self._pipes["stderr"], selectors.EVENT_READ, "stderr")
        self._end_is_told = False
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # an old kernel, or a sandbox that forbids it
                descriptor = os.pidfd_open(self._process.pid)
                self._descriptors.append(descriptor)
                self._selector.register(descriptor, selectors.EVENT_READ, "end")
                self._end_is_told = True

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._timeout()):
            if key.data in self._cutters:
                self._read(key.data)
            elif key.data == "stdin":
                self._write()
            elif key.data == "wake":
                os.read(self._wake_read, _CHUNK)
                if self._outgoing and self._stdin not in self._selector.get_map():
                    self._selector.register(self._stdin, selectors.EVENT_WRITE, "stdin")
        self._send_due_signals()
        given_up = self._give_up_at is not None and time.monotonic() >= self._give_up_at
        if self._process.has_ended() or given_up:
            self._finish(given_up)

    def _timeout(self) -> float | None:
        with self._state_lock:
            times = [at for at, _ in self._signals]
        if self._give_up_at is not None:
            times.append(self._give_up_at)
        rest = max(0.0, min(times) - time.monotonic()) if times else None
        if self._end_is_told:
            return rest
        return _POLL_S if rest is None else min(rest, _POLL_S)

    def _read(self, name: str) -> bool:
        """Read the content of a pipe; return False at its end."""
        try:
            data = os.read(self._pipes[name].fileno(), _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            for line in self._cutters[name].feed(data):
                self._take(name, line)
            return True
        if self._pipes[name] in self._selector.get_map():
            self._selector.unregister(self._pipes[name])
            if not {"stdout", "stderr"} & {k.data for k in self._selector.get_map().values()}:
                self._must_leave()  # it closed its outputs: nothing can come from it any more
        return False

    def _take(self, name: str, line: bytes) -> None:
        event = None
        if name == "stdout":
            event = event_from_line(line.decode("utf-8", "surrogateescape"))
        if event is None:
            text, level = log_text(line)
            if text:
                self._last_lines.append(text)
                self._ready.append(Log(text, level))
        elif self._terminal is None:
            if isinstance(event, TERMINAL):
                self._terminal = event  # held back until the process is gone
                self._must_leave()
            else:
                self._ready.append(event)

    def _write(self) -> None:
        with self._state_lock:
            self._flush()
            if not self._outgoing:
                self._selector.unregister(self._stdin)

    def _must_leave(self) -> None:
        with self._state_lock:
            self._signals.append((time.monotonic() + self._delays.leave, signal.SIGKILL))

    def _send_due_signals(self) -> None:
        now = time.monotonic()
        with self._state_lock:
            due = [number for at, number in self._signals if at <= now]
            self._signals = [item for item in self._signals if item[0] > now]
        for number in due:
            if self._process.has_ended():
                return
            self._process.send_signal(number)
            if self._terminal is None:
                self._ready.append(Log(f"sent {number.name} to the job", NoteKind.WARNING))
            if number == signal.SIGKILL and self._give_up_at is None:
                self._give_up_at = now + self._delays.leave

    def _finish(self, given_up: bool) -> None:
        # What the worker started must not outlive it, nor keep the pipes open.
        self._process.kill()
        for name, cutter in self._cutters.items():
            for _ in range(_DRAIN // _CHUNK):
                if not self._read(name):
                    break
            for line in cutter.rest():
                self._take(name, line)
        code = self._process.poll() if given_up else self._process.wait()
        self._ready.append(self._terminal or self._unsaid_end(code))
        with self._state_lock:
            self._over = True
            self._selector.close()
            for pipe in self._pipes.values():
                pipe.close()
            for descriptor in self._descriptors:
                os.close(descriptor)
        self._remove_folder()

    def _remove_folder(self) -> None:
        discard(self._folder)

    def _unsaid_end(self, code: int | None) -> Failed | Cancelled:
        if self._cancelled:
            return Cancelled()
        log = "\n".join(self._last_lines)
        message, hint = describe_end(code, log)
        return Failed(message, None, hint, log or None)

    def _flush(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: os.write(self._stdin, self._outgoing)]
        except BlockingIOError:
            pass  # the selector tells when there is room
        except OSError:
            self._outgoing.clear()  # the worker is gone or does not listen

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it wakes up anyway
            os.write(self._wake_write, b"\0")


# Not `-m`: that would put the current folder first on the module path, and a stray numpy.py beside
# a model would be run. The child gets the path of this process, as multiprocessing does it.
_BOOTSTRAP = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); from {module} import main; "
    "sys.exit(main())"
)
WORKER_MODULE = "dld_tui.activities.worker"


def worker_command(module: str = WORKER_MODULE, words: Sequence[str] = ()) -> list[str]:
    """Return the command line of a worker of this Python with this module path."""
    return [sys.executable, "-c", _BOOTSTRAP.format(module=module), *words, "\n".join(sys.path)]


class LocalTarget:
    """This machine."""

    name = "local"

    def __init__(self, command: Sequence[str] = (), delays: Delays | None = None) -> None:
        self._command = list(command)
        self._delays = delays or Delays()

    def start(self, activity_id: str, request: Mapping[str, JSON]) -> ProcessJob:
        """Start the worker.

        Raises:
            UnavailableError: No process can be started.
        """
        command = self._command or worker_command()
        replaces = {*permission.agreed(), *getattr(request, "replaces", ())}
        line: dict[str, JSON] = {"activity": activity_id, "request": {**request}}
        if replaces:
            line["replaces"] = sorted(replaces)
        return ProcessJob(command, line, self._delays)
