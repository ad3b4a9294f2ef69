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


def test_no_permission_changes_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NVML_REFUSES", "Set")
    with pytest.raises(UnavailableError, match=r"could not be locked: .*which needs root"):
        ClockLock(ADDRESS)
    assert changes(log) == []


def test_a_release_that_fails_is_told(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NVML_REFUSES", "Reset")
    lock = ClockLock(ADDRESS)
    lock.release()

    assert "nvidia-smi -rgc" in str(lock.problem)


def test_without_nvml_it_says_why(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NVML_REFUSES", "Init")
    with pytest.raises(UnavailableError, match="could not be locked: NVML: Not Supported"):
        ClockLock(ADDRESS)


def test_they_are_given_back_when_the_one_who_holds_them_is_killed(log: Path) -> None:
    code = (
        "import os, signal\n"
        "from dld_tui.backends.machine.clock_guard import BOARD, ClockLock\n"
        f"lock = ClockLock({ADDRESS!r})\n"
        "print(lock._guard.pid, flush=True)\n"
        "os.killpg(0, signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert done.returncode == -signal.SIGKILL
    guard = int(done.stdout)
    wait_for_end(guard)

    assert changes(log) == [f"Set {BASE} {BASE}", "Reset"]


def wait_for_end(pid: int) -> None:
    """Wait until a process that is no child of this one has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, AttributeError):
        return
    import select

    try:
        assert select.select([descriptor], [], [], 30)[0], "the guard still runs"
    finally:
        os.close(descriptor)


BOARD_TOOL = """#!/bin/sh
echo "$*" >> "$FAKE_BOARD/log"
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


def test_a_board_is_given_back_when_the_one_who_holds_it_is_killed(
    clocks: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, time; from pathlib import Path; "
        "from dld_tui.backends.machine.clock_guard import BOARD, ClockLock; "
        f"lock = ClockLock(BOARD, Path({str(tmp_path / 'stored')!r})); "
        "print(lock._guard.pid, flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    guard = int(holder.stdout.readline())
    assert clocks.read_text() == "highest\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    wait_for_end(guard)
    assert clocks.read_text() == "by the governor\n"
