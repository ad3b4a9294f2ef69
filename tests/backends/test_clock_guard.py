"""Only ever against a stand-in for NVML: no test changes the clocks of a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui.backends.gpu.clock_guard import ClockLock
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
        "from dld_tui.backends.gpu.clock_guard import ClockLock\n"
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
