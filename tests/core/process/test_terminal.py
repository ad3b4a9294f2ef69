from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui.core.process import terminal

_GUARDED = """
import os, sys
from dld_tui.core.process import terminal
with terminal.guarded():
    os.write(1, b"library on 1\\n")
    os.write(2, b"library on 2\\n")
    sys.__stderr__.write("screen\\n")
os.write(1, b"after on 1\\n")
os.write(2, b"after on 2\\n")
print("printed after")
"""


def test_stray_output_goes_to_the_log_and_the_screen_to_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", _GUARDED], capture_output=True, text=True)
    # Neither is a terminal here, so the screen is drawn where standard output goes.
    assert done.stdout.splitlines() == ["screen", "after on 1", "printed after"]
    assert done.stderr.splitlines() == ["after on 2"]
    assert terminal.log_path().read_text() == "library on 1\nlibrary on 2\n"


def test_the_screen_is_drawn_on_a_terminal_where_there_is_one() -> None:
    master, slave = os.openpty()
    code = [sys.executable, "-c", _GUARDED]
    done = subprocess.run(code, stdout=subprocess.PIPE, stderr=slave, text=True, check=True)
    shown = os.read(master, 1000)
    for descriptor in (master, slave):
        os.close(descriptor)
    assert shown.split() == b"screen after on 2".split()
    assert done.stdout.splitlines() == ["after on 1", "printed after"]


def test_without_a_log_stray_output_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "file")}
    done = subprocess.run([sys.executable, "-c", _GUARDED], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert "library" not in done.stdout + done.stderr


def test_the_log_grows_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.log("first\n") == terminal.log_path()
    terminal.log("second \udcff")
    assert terminal.log_path().read_text().splitlines()[0] == "first"
    assert terminal.log_path().stat().st_mode & 0o077 == 0
    monkeypatch.setattr(terminal, "_MOST", 5)
    terminal.log("third")
    assert terminal.log_path().read_text() == "third\n"


def test_a_log_that_cannot_be_written_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert terminal.log("x") is None
