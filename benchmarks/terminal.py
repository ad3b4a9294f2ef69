"""A program in a real pseudo-terminal: what it sends after each key, and when."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchmarks.quota import Quota

_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^].*?(?:\x07|\x1b\\)|[ -/]*[0-~])", re.DOTALL
)

_CPUCLOCK_SCHED = 2
"""The clock of a process whose id is known, as `clock_getcpuclockid` of glibc makes it."""


@dataclass(frozen=True)
class Answer:
    """What came after one key.

    The row under the cursor is painted at once; panes that show more of it may follow after the
    cursor has rested there for a moment.
    """

    row_bytes: int
    """Bytes up to the first pause."""
    row_ms: float
    """From the key to the last of them."""
    all_bytes: int
    """Bytes until the program was quiet."""
    all_ms: float
    """From the key to the last of all."""


_PAUSE = 0.03


class Terminal:
    """A child process that draws on a terminal of a given size.

    Args:
        command: The program and its arguments.
        environment: All of its variables, but for those that describe the terminal.
        columns: Width in cells.
        rows: Height in cells.
        quota: Holds it and what it starts to a share of a core.
        folder: Where it is started; this process's own by default.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        columns: int,
        rows: int,
        quota: Quota | None = None,
        folder: Path | None = None,
    ) -> None:
        self._master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.output = bytearray()
        self.started = self._arrived = time.perf_counter()
        self._child = subprocess.Popen(
            [*(quota.prefix if quota is not None else ()), *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            cwd=folder,
            start_new_session=True,
        )
        self._held = ExitStack()
        if quota is not None:
            self._held.enter_context(quota.holding(self._child.pid))
        os.close(terminal)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        os.close(self._master)

    def used(self) -> tuple[float, float]:
        """Return the processor time in ms, and the peak memory in MB, of the program so far."""
        process = Path("/proc", str(self._child.pid))
        after_name = (process / "stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, after_name[11:13]))
        peak = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
        assert peak is not None  # of every process that runs
        return ticks * 1000 / os.sysconf("SC_CLK_TCK"), int(peak[1]) * 1.024 / 1000

    @property
    def text(self) -> str:
        """What was sent so far, without escape sequences."""
        return _ESCAPES.sub(b"", bytes(self.output)).decode("utf-8", "replace")

    def wait_for(self, pattern: str, timeout: float) -> float:
        """Read until the text has `pattern`; return the seconds since the start.

        Raises:
            TimeoutError: It never came; the message holds the end of the text.
        """
        deadline = time.perf_counter() + timeout
        is_new = True
        while time.perf_counter() < deadline:
            if is_new and re.search(pattern, self.text):
                return self._arrived - self.started
            if self._child.poll() is not None:
                break
            is_new = self._read(0.02)
        raise TimeoutError(f"{pattern!r} never came; the terminal ends with: {self.text[-500:]!r}")

    def send(self, keys: str) -> None:
        """Send keys and wait for nothing."""
        os.write(self._master, keys.encode())

    def press(self, keys: str, quiet: float = 0.15, patience: float = 2.0) -> Answer:
        """Send keys and read what they cause, until nothing came for `quiet` seconds.

        The first byte may take `patience` seconds.
        """
        before = len(self.output)
        start = last = time.perf_counter()
        self.send(keys)
        row: tuple[int, float] | None = None
        while time.perf_counter() - last < (quiet if len(self.output) > before else patience):
            had = len(self.output) - before
            if self._read(0.01):
                now = time.perf_counter()
                if row is None and had and now - last > _PAUSE:
                    row = (had, last)
                last = now
        total = len(self.output) - before
        row_bytes, row_end = row or (total, last)
        return Answer(row_bytes, (row_end - start) * 1000, total, (last - start) * 1000)

    def wait_idle(self, timeout: float = 60.0) -> None:
        """Read until the program and its children have used no processor time for a second."""
        deadline = time.perf_counter() + timeout
        used = -1.0
        while time.perf_counter() < deadline and (now := self.processor_ms()) > used:
            # A blinking cursor or a clock takes some milliseconds, which is not work.
            used = now + 10
            until = time.perf_counter() + 1.0
            while time.perf_counter() < until:
                self._read(0.05)

    def wait_calm(self, seconds: float, timeout: float = 60.0) -> None:
        """Read until all threads have slept for a time, however busy the machine is."""
        began = calm_since = time.perf_counter()
        used = -1
        while (now := time.perf_counter()) - calm_since < seconds and now - began < timeout:
            had = len(self.output)
            self._read(0.01)
            states, ticks = self._threads()
            if len(self.output) > had or ticks != used or states.strip("SI"):
                calm_since, used = time.perf_counter(), ticks

    def read_for(self, seconds: float) -> None:
        """Read what the program sends in a time."""
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self._read(0.05)

    def processor_ms(self) -> float:
        """Return the processor time of the program and its children so far.

        The clock of a process counts nanoseconds; its `stat` counts 10 ms, and rounds them down.
        """
        seconds = 0.0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self._child.pid:  # the session
                    seconds += time.clock_gettime(~int(entry.name) << 3 | _CPUCLOCK_SCHED)
                    seconds += sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")  # ended ones
            except OSError:  # it has just ended
                continue
        return seconds * 1000

    def memory_mb(self) -> float:
        """Return the resident memory of the program."""
        pages = int(Path(f"/proc/{self._child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def _threads(self) -> tuple[str, int]:
        """Return the states of all threads of the program and its children, and their ticks."""
        states, ticks, pids = "", 0, [self._child.pid]
        while pids:
            try:
                tasks = list(Path(f"/proc/{pids.pop()}/task").iterdir())
            except OSError:  # the process has just ended
                continue
            for task in tasks:
                try:
                    fields = (task / "stat").read_text().rpartition(")")[2].split()
                    pids += map(int, (task / "children").read_text().split())
                except OSError:  # the thread has just ended
                    continue
                states += fields[0]
                ticks += int(fields[11]) + int(fields[12])
        return states, ticks

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout)
        if not ready:
            return False
        try:
            chunk = os.read(self._master, 1 << 16)
        except OSError:  # the child closed its side
            time.sleep(timeout)
            return False
        self.output += chunk
        self._arrived = time.perf_counter()
        return bool(chunk)
