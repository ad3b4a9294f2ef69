"""The program in a real terminal: what it sends, and what it leaves behind."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.model.document.scripting.journal import crash_journals, standing_edits
from dld_tui.core.process import terminal
from dld_tui.core.process.paths import journal_dir
from tests.support import models

_PLAIN = """
from dld_tui.cli.main import run
raise SystemExit(run([]))
"""
_CRASH = """
from dld_tui.cli.main import run
from dld_tui.widgets.shell.page import TabStrip
def fail(*_): raise RuntimeError("broken here")
TabStrip.content = fail
raise SystemExit(run([]))
"""
_FAILING = """
import os, signal, sys, threading, time
from dld_tui import app
from dld_tui.cli.main import run
from dld_tui.widgets.shell import driver, ending
from dld_tui.widgets.shell.key_parser import KeyParser
from dld_tui.widgets.tasks import on_thread

def endless(): endless()
def throw(error): raise error
def leave(number): os.kill(os.getpid(), number)

class Broken:
    def __init__(self, fileno): self.fileno = fileno
    def write(self, text): raise OSError("broken")
    flush = None

class Ways:
    def handler(app): app.call_later(throw, RuntimeError("broken here"))
    def memory(app): app.call_later(throw, MemoryError())
    def recursion(app): app.call_later(endless)
    def leaving(app): app.call_later(throw, SystemExit(0))
    def interrupt(app): app.call_later(throw, KeyboardInterrupt())
    def panic(app): app._handle_exception(RuntimeError("broken here"))
    def reading(app): KeyParser.feed = lambda *_: throw(RuntimeError("broken here"))
    def writing(app): app._driver._file._file = Broken(app._driver._file._file.fileno)
    def term(app): leave(signal.SIGTERM)
    def hup(app): leave(signal.SIGHUP)
    def int(app): leave(signal.SIGINT)
    def stuck(app):
        ending._GRACE_S = 0.5
        leave(signal.SIGTERM)
        while True: time.sleep(0.01)
    def busy_thread(app):
        ending._GRACE_S = 0.5
        app.tasks.start(on_thread(threading.Event().wait), "work")
        app.call_later(throw, RuntimeError("broken here"))
    def thread(app): threading.Thread(target=throw, args=(RuntimeError("broken here"),)).start()
    def callback(app): app._loop.call_soon(throw, RuntimeError("broken here"))

app.DldApp.action_help = getattr(Ways, sys.argv[1])
raise SystemExit(run([sys.argv[2]]))
"""


LIMIT_S = 60.0


class Tty:
    """A program on a terminal of its own."""

    def __init__(self, code: str, size: tuple[int, int], *arguments: str) -> None:
        self.ended = False
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["COLORTERM"] = "truecolor"
            for number in (signal.SIGHUP, signal.SIGINT):  # which nohup and a shell's & ignore
                signal.signal(number, signal.SIG_DFL)
            os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
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


@pytest.fixture
def edited(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Tty]:
    """Return the program with an unsaved edit of `chain.onnx`; ``?`` makes it fail."""
    model = models.write(tmp_path, models.CHAIN, "chain.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    tty = Tty(_FAILING, (80, 24), request.param, str(model))
    tty.read(b"chain.onnx")
    os.write(tty.fd, b"1jd\r")  # the first node goes
    while not list(journal_dir().glob("*")):
        tty.read(quiet_s=0.2)
    yield tty
    tty.end()


def _left(tmp_path: Path) -> int:
    """Return how many edits are offered at the next start."""
    journals = crash_journals(tmp_path / "chain.onnx")
    return sum(len(standing_edits(journal.lines)) for journal in journals if journal.matches)


_BROKEN = {
    "handler": "internal error: RuntimeError: broken here", "memory": "MemoryError",
    "recursion": "RecursionError", "leaving": "SystemExit", "interrupt": "KeyboardInterrupt",
    "panic": "broken here", "reading": "broken here", "writing": "OSError: broken",
    "hup": "the terminal has gone", "busy_thread": "broken here",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edited", "said", "status"),
    [
        *((way, said, 5) for way, said in _BROKEN.items()),
        ("term", "SIGTERM", 130),
        ("int", "SIGINT", 130),
        ("stuck", "SIGTERM", 130),
    ],
    indirect=["edited"],
    ids=[*_BROKEN, "term", "int", "stuck"],
)
def test_an_end_by_an_error_keeps_the_edits(
    edited: Tty, said: str, status: int, tmp_path: Path
) -> None:
    def is_raw() -> bool:
        return not termios.tcgetattr(edited.fd)[3] & termios.ICANON

    assert is_raw()
    os.write(edited.fd, b"?")
    data = edited.read(quiet_s=0.5)
    os.write(edited.fd, b"q")  # another read
    data += edited.read()
    assert edited.status() == status
    assert not is_raw()
    before, left, after = data.rpartition(b"\x1b[?1049l")
    assert left
    assert b"\x1b[?25h" in after
    assert (before + left + after).rfind(b"\x1b[?1003l") > (before + left + after).rfind(b"1003h")
    (line,) = re.findall(r"dld: (.+?)\r\n", re.sub(r"\x1b\[[0-9?;<]*[a-z]", "", after.decode()))
    assert said in line
    assert line.endswith(
        "Unsaved edits are kept (chain.onnx: 1 edit): open the file again to restore them"
    )
    assert _left(tmp_path) == 1


@pytest.mark.broad
@pytest.mark.parametrize("edited", ["thread", "callback"], indirect=True)
def test_what_fails_beside_the_app_is_shown(edited: Tty) -> None:
    os.write(edited.fd, b"?")
    shown = edited.read(b"here").replace(b"\x1b[1C", b" ")  # a blank that was there is passed over
    assert b"broken here" in shown
    os.write(edited.fd, b"\x1b")
    edited.read(quiet_s=0.5)
    os.write(edited.fd, b"\x11")
    assert b"Quit?" in edited.read(b"Quit?")
    edited.read(quiet_s=0.5)  # the question takes keys only after it was seen
    os.write(edited.fd, b"d")  # discard
    edited.read()
    assert edited.status() == 0
    (left,) = journal_dir().glob("*")  # what was discarded is kept for a week
    assert left.suffix == ".discarded"


@pytest.mark.broad
@pytest.mark.parametrize("edited", ["handler"], indirect=True)
def test_a_closed_terminal_ends_the_program(edited: Tty, tmp_path: Path) -> None:
    os.close(edited.fd)
    edited.fd = os.open(os.devnull, os.O_RDONLY)
    assert edited.status() == 5
    assert _left(tmp_path) == 1


@pytest.mark.broad
@pytest.mark.parametrize("edited", ["handler"], indirect=True)
def test_no_byte_ends_the_program(edited: Tty) -> None:
    os.write(edited.fd, bytes(range(0x80, 0x100)))
    os.write(edited.fd, b"\x1b[97;1:3u\x1b[97:65;2u\x1b[27u\x1b[1;:1A\x1b[1114112u\x1b[M \xe4\xa0")
    os.write(edited.fd, b"\x10")
    assert b"Search" in edited.read(b"Search")


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
