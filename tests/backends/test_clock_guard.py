"""Only ever against a stand-in for NVML: no test changes the clocks of a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui.backends.machine.clock_guard import BOARD, ClockLock
from dld_tui.core.errors import UnavailableError
from tests.support import fake_pynvml
from tests.support.jobs import is_running, wait_until

BASE = fake_pynvml.NVML_CLOCK_LIMIT_ID_TDP
ADDRESS = "00000000:01:00.0"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let child processes find the stand-in, and return where it writes."""
    text = Path(fake_pynvml.__file__).read_text()
    (tmp_path / "pynvml.py").write_text(text)
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{path}".rstrip(os.pathsep))
    monkeypatch.setenv("FAKE_NVML_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def changes(log: Path) -> list[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [line for line in lines if line.split()[0] in ("Set", "Reset")]


def test_locked_until_released(log: Path) -> None:
    lock = ClockLock(ADDRESS)
    assert lock.mhz == 1590
    assert changes(log) == [f"Set {BASE} {BASE}"]
    lock.release()

    assert changes(log) == [f"Set {BASE} {BASE}", "Reset"]
    assert lock.problem is None
    lock.release()
    assert changes(log)[1:] == ["Reset"]


def test_a_release_that_fails_is_told(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NVML_REFUSES", "Reset")
    lock = ClockLock(ADDRESS)
    lock.release()

    assert "nvidia-smi -rgc" in str(lock.problem)


BOARD_TOOL = """#!/bin/sh
echo $* >> "$FAKE_BOARD/calls"
case "$1" in
  --store) [ ! -e "$2" ] || { echo "File $2 already exists. Can I overwrite it?"; exit 1; }
    cp "$FAKE_BOARD/clocks" "$2";;
  --restore) cp "$2" "$FAKE_BOARD/clocks";;
  "") [ ! -e "$FAKE_BOARD/refuses" ] || { echo "Error: Please run as root user"; exit 1; }
    echo highest > "$FAKE_BOARD/clocks";;
esac
"""


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a ``jetson_clocks`` first on the PATH, and return the file that holds its clocks."""
    (tmp_path / "jetson_clocks").write_text(BOARD_TOOL)
    (tmp_path / "jetson_clocks").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_BOARD", str(tmp_path))
    (tmp_path / "clocks").write_text("by the governor\n")
    return tmp_path / "clocks"


def test_a_board_is_at_its_highest_clocks_until_released(clocks: Path, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    lock = ClockLock(BOARD, stored)
    assert clocks.read_text() == "highest\n"
    assert stored.read_text() == "by the governor\n"
    lock.release()
    assert clocks.read_text() == "by the governor\n"
    assert lock.problem is None
    assert not stored.exists()


def test_what_a_killed_guard_left_is_restored_before_clocks_are_locked_again(
    clocks: Path, tmp_path: Path
) -> None:
    stored = tmp_path / "stored"
    first = ClockLock(BOARD, stored)
    first._guard.kill()
    first.release()
    assert f"sudo jetson_clocks --restore {stored}" in str(first.problem)
    assert clocks.read_text() == "highest\n"
    ClockLock(BOARD, stored).release()
    assert clocks.read_text() == "by the governor\n"


def test_a_board_without_rights_or_tool_is_left_as_it_is(
    clocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refuses").touch()
    with pytest.raises(UnavailableError, match="needs root: run dld with sudo"):
        ClockLock(BOARD, tmp_path / "stored")
    assert clocks.read_text() == "by the governor\n"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="jetson_clocks is not installed"):
        ClockLock(BOARD, tmp_path / "stored")


@pytest.mark.parametrize(
    ("refused", "said"),
    [("Set", "could not be locked: .*which needs root"),
     ("Init", "could not be locked: NVML: Not Supported")],
)  # fmt: skip
def test_what_is_refused_changes_nothing(
    log: Path, monkeypatch: pytest.MonkeyPatch, refused: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_NVML_REFUSES", refused)
    with pytest.raises(UnavailableError, match=said):
        ClockLock(ADDRESS)
    assert changes(log) == []


def killed_holder(lock: str) -> None:
    """Lock clocks in a process, kill it with its group, and wait until its guard has ended."""
    code = (
        "import os, signal; from pathlib import Path;"
        " from dld_tui.backends.machine.clock_guard import BOARD, ClockLock;"
        f" lock = ClockLock({lock}); print(lock._guard.pid, flush=True);"
        " os.killpg(0, signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not is_running(int(done.stdout)), "the guard has ended")


def test_clocks_are_given_back_when_the_one_who_holds_them_is_killed(
    log: Path, clocks: Path, tmp_path: Path
) -> None:
    killed_holder(repr(ADDRESS))
    assert changes(log) == [f"Set {BASE} {BASE}", "Reset"]
    killed_holder(f"BOARD, Path({str(tmp_path / 'stored')!r})")
    assert (tmp_path / "calls").read_text().split() == [
        "--store", str(tmp_path / "stored"), "--restore", str(tmp_path / "stored")
    ]  # fmt: skip
    assert clocks.read_text() == "by the governor\n"
