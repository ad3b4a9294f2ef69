"""The program in a real terminal: what it sends, and what it leaves behind."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from statistics import median

import pytest

from dld_tui.core import terminal

_LIST = """
from dld_tui.core import terminal
from dld_tui.widgets.driver import DiffDriver
from dld_tui.widgets.line_view import LineView
from tests.support.tui import HostApp, Numbered
import os
app = HostApp(lambda: LineView(Numbered(50_000)))
with terminal.guarded():
    app.driver_class = DiffDriver
    app.run()
"""
_PLAIN = """
from dld_tui import app
raise SystemExit(app.run())
"""
_CRASH = """
from dld_tui import app
from dld_tui.widgets.tab_strip import TabStrip
def fail(*_): raise RuntimeError("broken here")
TabStrip.content = fail
raise SystemExit(app.run())
"""


class Tty:
    """A program on a terminal of its own."""

    def __init__(self, code: str, size: tuple[int, int]) -> None:
        self.ended = False
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["COLORTERM"] = "truecolor"
            os.execv(sys.executable, [sys.executable, "-c", code])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def read(self, quiet_s: float, first_s: float = 20.0) -> bytes:
        """Return what is sent until nothing came for a while, or the program has ended."""
        data = b""
        while select.select([self.fd], [], [], quiet_s if data else first_s)[0]:
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
        return data

    def key(self, key: str) -> int:
        """Press a key and return how many bytes are sent for it."""
        os.write(self.fd, key.encode())
        return len(self.read(0.05, 2.0))

    def status(self) -> int:
        """Wait for the end and return the exit status."""
        self.ended = True
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self) -> None:
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            self.status()
        os.close(self.fd)


@pytest.fixture
def started(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tty]:
    code, size = request.param
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    tty = Tty(code, size)
    yield tty
    tty.end()


@pytest.mark.parametrize(
    "started", [(_LIST, (80, 24)), (_LIST, (200, 50))], indirect=True, ids=["80x24", "200x50"]
)
def test_a_move_sends_little(started: Tty) -> None:
    first = started.read(0.7)
    assert b"row 5" in first
    sent = [started.key("j") for _ in range(60)]
    assert min(sent) > 0
    assert median(sent) < 400
    assert max(sent) < 2000  # the view scrolls now and then


@pytest.mark.parametrize("started", [(_PLAIN, (80, 24))], indirect=True, ids=["plain"])
def test_a_polite_kill_restores_the_terminal(started: Tty) -> None:
    assert b"Recent" in started.read(0.7)
    os.kill(started.pid, signal.SIGTERM)
    data = started.read(2.0)
    assert b"\x1b[?1049l" in data
    assert b"\x1b[?25h" in data
    assert started.status() == 130


@pytest.mark.parametrize("started", [(_CRASH, (80, 24))], indirect=True, ids=["crash"])
def test_a_crash_restores_the_terminal_and_says_one_line(started: Tty) -> None:
    begin = time.monotonic()
    data = started.read(3.0)
    assert time.monotonic() - begin < 30
    after = data.rpartition(b"\x1b[?1049l")[2]
    text = after.decode()
    assert "dld: internal error: RuntimeError: broken here; details in" in text.replace("\r\n", " ")
    assert "Traceback" not in text
    assert "broken here" in terminal.log_path().read_text()
