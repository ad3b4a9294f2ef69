"""The process that stays with a job on a target: it starts the worker and records its output.

``events`` in the job's folder has a record per line: ``o`` and a line of the worker's standard
output, ``e`` and a line of its standard error, at last ``x`` and its end, as JSON. The
supervisor holds a lock on ``lock`` while it lives, and reads orders from the pipe ``control``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from dld_tui.core.process.child import Child
from dld_tui.targets.base import LineCutter
from dld_tui.targets.ssh.remote.objects import flush

ASK_S = 5.0
"""From the request to stop until SIGTERM, and from there until SIGKILL."""
_CHUNK = 1 << 16
_LOG_BYTES = 32 << 20
"""Of standard error: a worker that floods it must not fill the disk."""
_EVENT_BYTES = 1 << 30
_LINE_BYTES = 64 << 20


class Supervisor:
    """One job.

    Args:
        folder: Of the job.
        ready: A descriptor that is closed once the worker runs; what went wrong is written to it.
    """

    def __init__(self, folder: Path, ready: int) -> None:
        self._folder = folder
        self._ready = ready
        self._job: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        self._lock = (folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.mkfifo(folder / "control", 0o600)
        # Also open for writing: the end of the last writer must not look like an order.
        self._control = os.open(folder / "control", os.O_RDWR | os.O_NONBLOCK)
        self._events = (folder / "events").open("wb", buffering=0)
        self._rest = {"o": _EVENT_BYTES, "e": _LOG_BYTES}
        self._cutters = {"o": LineCutter(_LINE_BYTES), "e": LineCutter(_LINE_BYTES)}
        self._signals: list[tuple[float, signal.Signals]] = []
        self._cancelled = self._killed = False
        self._reason = ""

    def run(self) -> None:
        """Run the worker to its end."""
        try:
            process = self._start()
        except OSError as error:
            os.write(self._ready, f"{error.strerror or error}".encode())
            self._end(None)
            return
        os.close(self._ready)
        self._watch(process)
        self._end(process.wait())

    def _start(self) -> Child:
        temporary = self._folder / "tmp" / "dld-job-tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        process = Child(
            self._job["command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder / "work",
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        assert process.stdin is not None
        request = memoryview((self._folder / "request.json").read_bytes() + b"\n")
        with contextlib.suppress(BrokenPipeError):  # its end says why
            while request:
                request = request[os.write(process.stdin.fileno(), request) :]
        return process

    def _watch(self, process: Child) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ, "control")
        for name, pipe in (("o", process.stdout), ("e", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, name)
        leave_at = None
        while process.poll() is None:
            closed = len(selector.get_map()) == 1
            # Open pipes signal their end; the group may keep them open, so poll now and then.
            for key, _ in selector.select(self._wait_s(0.1 if closed else 1.0)):
                if key.data == "control":
                    self._handle_orders(process)
                elif not self._take(key.data, key.fd):
                    selector.unregister(key.fileobj)
            if closed and leave_at is None:
                leave_at = time.monotonic() + ASK_S
            if leave_at is not None and time.monotonic() > leave_at:
                self._signals.append((0.0, signal.SIGKILL))
            self._send_signals(process)
        for name, pipe in (("o", process.stdout), ("e", process.stderr)):
            assert pipe is not None
            for _ in range(32):
                if not self._take(name, pipe.fileno()):
                    break
            self._write(
                name, b"".join(name.encode() + b + b"\n" for b in self._cutters[name].rest())
            )
        selector.close()

    def _wait_s(self, most: float) -> float:
        due = [at - time.monotonic() for at, _ in self._signals]
        return max(0.0, min([most, *due]))

    def _take(self, name: str, descriptor: int) -> bool:
        """Record the content of a pipe; return False at its end."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        cutter = self._cutters[name]
        lines = cutter.feed(data) if data else cutter.rest()
        tag = name.encode()
        self._write(name, b"".join(tag + line + b"\n" for line in lines))
        return bool(data)

    def _write(self, name: str, records: bytes) -> None:
        if not records or self._rest[name] < 0:
            return
        self._rest[name] -= len(records)
        if self._rest[name] < 0:
            records = b"e[W: the output of the job is too long; the rest is left out]\n"
        try:
            view = memoryview(records)
            while view:
                view = view[self._events.write(view) or 0 :]
        except OSError as error:  # the disk is full
            if not self._reason:
                self._reason = f"its output cannot be saved: {error.strerror}"
                self._signals.append((0.0, signal.SIGKILL))

    def _handle_orders(self, process: Child) -> None:
        orders = os.read(self._control, _CHUNK).split(b"\n")
        now = time.monotonic()
        if b"kill" in orders:
            self._cancelled = True
            self._signals.append((0.0, signal.SIGKILL))
        elif b"cancel" in orders and not self._cancelled:
            self._cancelled = True
            self._signals += [(now + ASK_S, signal.SIGTERM), (now + 2 * ASK_S, signal.SIGKILL)]
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                os.write(process.stdin.fileno(), b"cancel\n")

    def _send_signals(self, process: Child) -> None:
        now = time.monotonic()
        due = [number for at, number in self._signals if at <= now]
        self._signals = [item for item in self._signals if item[0] > now]
        self._killed = self._killed or signal.SIGKILL in due
        for number in due:
            process.send_signal(number)

    def _end(self, code: int | None) -> None:
        shutil.rmtree(self._folder / "tmp", ignore_errors=True)
        if self._cancelled:
            shutil.rmtree(self._folder / "work", ignore_errors=True)
        if self._killed:  # nothing half-written stays; a worker that ends by itself leaves none
            shutil.rmtree(self._folder / "out", ignore_errors=True)
        for where, _, names in os.walk(self._folder / "out"):
            for path in (*(Path(where, name) for name in names), Path(where)):
                with contextlib.suppress(OSError):
                    flush(path)
        end = {"code": code, "cancelled": self._cancelled, "reason": self._reason}
        with contextlib.suppress(OSError):
            self._events.write(b"x" + json.dumps(end).encode() + b"\n")
            os.fsync(self._events.fileno())
        (self._folder / "control").unlink(missing_ok=True)


def main(folder: Path, ready: int) -> None:
    """Supervise a job; called in a separate process, which leads its session."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the connection may end, the job goes on
    supervisor = Supervisor(folder, ready)
    signal.signal(signal.SIGTERM, lambda *_: _order(folder, b"cancel\n"))
    supervisor.run()


def _order(folder: Path, order: bytes) -> bool:
    try:
        descriptor = os.open(folder / "control", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody reads: it has ended
        return False
    try:
        os.write(descriptor, order)
    finally:
        os.close(descriptor)
    return True


def order(folder: Path, word: str) -> bool:
    """Give a job an order; return False if its supervisor is gone."""
    return _order(folder, word.encode() + b"\n")
