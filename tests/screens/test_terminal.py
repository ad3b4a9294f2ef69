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
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.machine import terminal

_LIST = """
from dld_tui.core.machine import terminal
from dld_tui.widgets.shell.driver import DiffDriver
from dld_tui.widgets.lists.line_view import LineView
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
from dld_tui.widgets.shell.page import TabStrip
def fail(*_): raise RuntimeError("broken here")
TabStrip.content = fail
raise SystemExit(app.run())
"""


LIMIT_S = 60.0


class Tty:
    """A program on a terminal of its own."""

    def __init__(self, code: str, size: tuple[int, int]) -> None:
        self.ended = False
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["COLORTERM"] = "truecolor"
            os.execv(sys.executable, [sys.executable, "-c", code])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def read(self, words: bytes | None = None, quiet_s: float = LIMIT_S) -> bytes:
        """Return what is sent up to some words, or until nothing came for a while or ever will."""
        data = b""
        while (words is None or words not in data) and self._can_be_read(quiet_s):
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
        return data

    def _can_be_read(self, within_s: float) -> bool:
        return bool(select.select([self.fd], [], [], within_s)[0])

    def key(self, key: str) -> int:
        """Press a key and return how many bytes are sent for it, or late for the one before."""
        os.write(self.fd, key.encode())
        self._can_be_read(2.0)
        return len(self.read(quiet_s=0.03))

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
def started(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Tty]:
    code, size = request.param
    monkeypatch.chdir(tmp_path)  # the start page lists the files of the folder
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    tty = Tty(code, size)
    yield tty
    tty.end()


@pytest.mark.parametrize(
    "started", [(_LIST, (80, 24)), (_LIST, (200, 50))], indirect=True, ids=["80x24", "200x50"]
)
def test_a_move_sends_little(started: Tty) -> None:
    assert b"row 5" in started.read(b"row 5")
    started.read(quiet_s=0.5)
    sent = sum(started.key("j") for _ in range(60))
    assert 60 < sent < 60 * 400  # the view scrolls now and then; all of it is 2 kB and more


@pytest.mark.parametrize("started", [(_PLAIN, (80, 24))], indirect=True, ids=["plain"])
def test_a_polite_kill_restores_the_terminal(started: Tty) -> None:
    assert b"Recent" in started.read(b"Recent")
    os.kill(started.pid, signal.SIGTERM)
    data = started.read()
    assert b"\x1b[?1049l" in data
    assert b"\x1b[?25h" in data
    assert started.status() == 130


@pytest.mark.parametrize("started", [(_CRASH, (80, 24))], indirect=True, ids=["crash"])
def test_a_crash_restores_the_terminal_and_says_one_line(started: Tty) -> None:
    data = started.read()
    after = data.rpartition(b"\x1b[?1049l")[2]
    text = after.decode()
    assert "dld: internal error: RuntimeError: broken here; details in" in text.replace("\r\n", " ")
    assert "Traceback" not in text
    assert "broken here" in terminal.log_path().read_text()
