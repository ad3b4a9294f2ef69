"""Only ever against a stand-in for NVML: no test changes the clocks of a GPU."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dld_tui.backends.machine import clock_guard
from dld_tui.backends.machine.clock_guard import BOARD, ClockLock
from dld_tui.backends.machine.jetson import ABSENT, FAILED, NO_RIGHTS, ToolAnswer
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


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ('{"locked": true, "mhz": 7}', 0, (7, None)),
        ('{"locked": true, "mhz": "x"}', 1, (None, "the clocks may still be locked: BY HAND")),
        ('{"locked": true}', None, (None, "the driver does not answer; BY HAND")),
        ('{"locked": false, "reason": "no rights"}', 0, "no rights"),
        ('{"locked": 0}', 0, "the process that holds them did not answer"),
        ("[1]", 0, "the process that holds them did not answer"),
        ("", None, "the process that holds them did not answer"),
    ],
)
@pytest.mark.parametrize("device", [ADDRESS, BOARD])
def test_what_the_process_that_holds_them_answers(
    monkeypatch: pytest.MonkeyPatch, device: str, answer: str, status: int | None, said: object
) -> None:
    by_hand = "run nvidia-smi -rgc" if device == ADDRESS else "run sudo jetson_clocks --restore s"

    class Guard:
        def __init__(self, command: list[str], **_: object) -> None:
            module = "dld_tui.backends.machine.clock_guard"
            assert command == [sys.executable, "-m", module, device, "s"]
            self.stdin: Any = io.StringIO()
            self.stdout, self.ended = io.StringIO(f"{answer}\n"), 0
            self.kill = self.poll = lambda: status

        def wait(self, limit_s: float) -> int:
            assert limit_s == 20
            self.ended += 1
            if status is None:
                raise subprocess.TimeoutExpired("guard", limit_s)
            return status

    monkeypatch.setattr(clock_guard, "Child", Guard)
    if isinstance(said, str):
        with pytest.raises(UnavailableError, match=f"^the clocks could not be locked: {said}$"):
            ClockLock(device, Path("s"))
        return
    lock: Any = ClockLock(device, Path("s"))
    stdin = lock._guard.stdin
    lock.release()
    told = (lock.mhz, lock.problem and lock.problem.replace(by_hand, "BY HAND"))
    assert (told, lock._guard.ended, stdin.closed) == (said, 1, True)
    assert lock._guard.stdout.closed == (status is not None)


@pytest.mark.parametrize(
    ("refused", "default", "expected"),
    [
        ({}, 1590, (0, {"locked": True, "mhz": 1590}, [(BASE, BASE), "reset"])),
        ({BASE: "Not Supported"}, 1590,
         (0, {"locked": True, "mhz": 1590}, [(1590, 1590), "reset"])),
        ({BASE: "Not Supported"}, None, (0, {"locked": False, "reason": "Not Supported"}, [])),
        ({BASE: "Not Supported", 1590: "GPU is lost"}, 1590,
         (0, {"locked": False, "reason": "GPU is lost"}, [])),
        ({BASE: "Insufficient Permissions"}, 1590,
         (0, {"locked": False, "reason": "Insufficient Permissions, which needs root"}, [])),
        ({"reset": "GPU is lost"}, 1590, (1, {"locked": True, "mhz": 1590}, [(BASE, BASE)])),
        ({"init": "Not Found"}, 1590, (0, {"locked": False, "reason": "NVML: Not Found"}, [])),
    ],
)  # fmt: skip
def test_how_the_clocks_of_a_gpu_are_held(
    monkeypatch: pytest.MonkeyPatch, refused: dict[object, str], default: int | None,
    expected: tuple[object, ...],
) -> None:  # fmt: skip
    done, said, ignored = list[object](), list[bytes](), list[object]()

    def did(what: object, *_: object) -> None:
        key = what[0] if isinstance(what, tuple) else what
        if key in refused:
            raise fake_pynvml.NVMLError(refused[key])
        done.append(what)

    set_clocks, reset = "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
    monkeypatch.setattr(fake_pynvml, "nvmlInit", lambda: did("init"))
    monkeypatch.setattr(fake_pynvml, set_clocks, lambda handle, low, high: did((low, high)))
    monkeypatch.setattr(fake_pynvml, reset, lambda handle: did("reset"))
    name = "nvmlDeviceGetDefaultApplicationsClock"
    monkeypatch.setattr(fake_pynvml, name, lambda *_: default)
    answers = iter((b"x", b"", b"never read"))
    monkeypatch.setattr(os, "read", lambda fd, size: next(answers) if fd == 0 else b"")
    monkeypatch.setattr(os, "write", lambda fd, text: said.append(text) if fd == 1 else None)
    monkeypatch.setattr(signal, "signal", lambda *what: ignored.append(what))
    status = clock_guard.main(ADDRESS, module=fake_pynvml)
    monkeypatch.undo()
    (line,) = said
    assert line.endswith(b"\n")
    changes = [one for one in done if one != "init"]
    assert (status, json.loads(line), changes) == expected
    held = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    assert ignored == [(one, signal.SIG_IGN) for one in held]


BOARD_TOOL = """#!/bin/sh
echo $* >> "$FAKE_BOARD/calls"
case "$1" in
  --store) [ ! -e "$2" ] || { echo "File $2 already exists. Can I overwrite it?"; exit 1; }
    cp "$FAKE_BOARD/clocks" "$2";;
  --restore) cp "$2" "$FAKE_BOARD/clocks";;
  "") echo highest > "$FAKE_BOARD/clocks";;
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


@pytest.mark.parametrize(
    ("left", "problems", "expected"),
    [
        (False, {}, (0, True, "", ["--store", "", "--restore"], False)),
        (True, {}, (0, True, "", ["--restore", "--store", "", "--restore"], False)),
        (True, {"--restore": ToolAnswer(problem=FAILED, why="broken")},
         (0, False, "jetson_clocks: broken", ["--restore"], True)),
        (False, {"--store": ToolAnswer(problem=ABSENT)},
         (0, False, "jetson_clocks is not installed", ["--store"], False)),
        (False, {"": ToolAnswer(problem=NO_RIGHTS, why="no")},
         (0, False, "jetson_clocks needs root: run dld with sudo", ["--store", "", "--restore"],
          False)),
        (False, {"--restore": ToolAnswer(problem=NO_RIGHTS)},
         (1, True, "", ["--store", "", "--restore"], True)),
    ],
)  # fmt: skip
def test_how_the_clocks_of_a_board_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bool,
    problems: dict[str, ToolAnswer], expected: tuple[object, ...],
) -> None:  # fmt: skip
    stored, done, said = tmp_path / "stored", list[str](), list[Any]()

    def tool(command: list[str]) -> ToolAnswer:
        name, *arguments = command
        assert (name, arguments[1:]) == ("jetson_clocks", [str(stored)][: len(arguments)])
        done.append("".join(arguments[:1]))
        if done[-1] == "--store":
            assert not stored.exists(), "it would ask"
            if not problems.get("--store"):
                stored.touch()
        return problems.get(done[-1], ToolAnswer())

    if left:
        stored.touch()
    answers = iter((b"x", b"", b"never read"))
    monkeypatch.setattr(clock_guard, "ask_tool", tool)
    monkeypatch.setattr(os, "read", lambda fd, size: next(answers) if fd == 0 else b"")
    monkeypatch.setattr(clock_guard, "_say", lambda **answer: said.append(answer))
    monkeypatch.setattr(signal, "signal", lambda *what: None)
    status = clock_guard.main(BOARD, str(stored))
    monkeypatch.undo()
    (answer,) = said
    found = (status, answer["locked"], answer["reason"], done, stored.exists())
    assert found == expected


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
