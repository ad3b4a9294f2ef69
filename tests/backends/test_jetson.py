from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.backends.machine.board_watch import BoardWatch
from dld_tui.backends.machine.capture import PollingSampler, jetson_meter
from dld_tui.backends.machine.jetson import (
    ABSENT,
    FAILED,
    NO_RIGHTS,
    Jetson,
    ToolAnswer,
    ask_tool,
    run_tool,
    system_tensorrt,
)
from dld_tui.core.errors import UnavailableError
from tests.support.jetson_boards import BOARDS, NOT_ROOT, answers, place, put

no_tool = answers()
tools = answers("NV Power Mode: MAXN\n0\n", "SOC family: tegra234\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson Orin Nano Developer Kit\0")
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 1\n")
    put(tmp_path, "sys/devices/platform/17000000.gpu/load", "456\n")
    put(tmp_path, "sys/class/devfreq/17000000.gpu/cur_freq", "624750000\n")
    return tmp_path


def test_the_board_its_mode_and_clocks(root: Path) -> None:
    board = Jetson(root, tools)

    assert board.environment() == {
        "jetson": "NVIDIA Jetson Orin Nano Developer Kit",
        "jetson_release": "R36 (release), REVISION: 4.0, GCID: 1",
        "jetson_power_mode": "MAXN",
        "jetson_clocks": "SOC family: tegra234",
    }
    assert board.state() == {"gpu_sm_mhz": 624.75}


def test_load_and_clock(root: Path) -> None:
    assert Jetson(root, no_tool).read() == {"gpu": 45.6, "gpu_mhz": 624.75}

    put(root, "sys/kernel/actmon_avg_activity/mc_all", "532800\n")
    put(root, "sys/kernel/debug/bpmp/debug/clk/emc/rate", "2131200000\n")
    assert Jetson(root, no_tool).read()["memory"] == pytest.approx(25.0)


def test_a_file_that_goes_later_leaves_the_row_out(root: Path) -> None:
    sampler = PollingSampler(jetson_meter(Jetson(root, no_tool)), clock_ns=lambda: 5)
    sampler.poll()
    (root / "sys/devices/platform/17000000.gpu/load").unlink()
    sampler.poll()
    rows = {one.spec.title: one for one in sampler.stop()}

    assert rows["GPU load"].samples == [(5, 45.6)]
    assert len(rows["GPU clock"].samples) == 3
    assert rows["Memory traffic"].absent == "the driver does not report it"


def test_another_machine_is_no_jetson(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", "Raspberry Pi 5\0")
    put(tmp_path, "sys/devices/gpu.0/load", "100\n")
    board = Jetson(tmp_path, tools)

    assert (board.board, board.environment(), board.read()) == (None, {}, {})


def test_a_container_with_the_release_alone_is_a_jetson(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3\n")
    board = Jetson(tmp_path, no_tool)

    assert (board.board, board.gpu_file()) == ("Jetson, model unknown", None)
    assert not board.is_container()
    put(tmp_path, "run/.containerenv", "")
    assert board.is_container()


def test_the_mode_is_told_by_its_state_file_where_the_tool_is_not(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["Orin Nano Super"])
    board.tool = no_tool
    assert isinstance(board.present_mode(), ToolAnswer)
    put(tmp_path, "var/lib/nvpmodel/status", "pmode:0002 fmode:quiet\n")
    assert board.present_mode() == ("MAXN_SUPER", 2)
    (tmp_path / "etc/nvpmodel.conf").unlink()
    assert board.present_mode() == ("mode 2", 2)
    # It counts though the tool may not read all.
    board.tool = answers(ToolAnswer("NV Power Mode: 25W\n1\n", NO_RIGHTS, "NVPM ERROR: : 13"))
    assert board.present_mode() == ("25W", 1)


def test_clocks_for_a_user_who_is_not_root_are_those_of_sysfs(root: Path) -> None:
    board = Jetson(root, answers(clocks=NOT_ROOT))
    assert board.gpu_clocks() == NOT_ROOT
    for name, hertz in (("min_freq", 306000000), ("max_freq", 918000000)):
        put(root, f"sys/class/devfreq/17000000.gpu/{name}", f"{hertz}\n")
    clocks = board.gpu_clocks()
    assert isinstance(clocks, list)
    assert [(c.lowest, c.highest, c.now, c.is_fixed) for c in clocks] == [(306, 918, 624.75, False)]


@pytest.fixture
def pipe(root: Path) -> Iterator[Path]:
    """Give a pipe without a writer; the threads that wait for it go on at the end."""
    path = root / "silent"
    os.mkfifo(path)
    known = set(threading.enumerate())  # of other tests
    yield path
    names = ("board-file", "board-watch", "gpu-meter")
    waiting = {one for one in threading.enumerate() if one.name in names} - known
    load = root / "sys/devices/platform/17000000.gpu/load"
    end = time.monotonic() + 60
    while any(thread.is_alive() for thread in waiting):
        assert time.monotonic() < end, f"they wait for something else: {waiting}"
        os.close(os.open(load, os.O_RDWR | os.O_NONBLOCK))
        time.sleep(0.01)


@pytest.mark.broad
def test_a_load_that_does_not_answer_holds_nobody_up(
    root: Path, monkeypatch: pytest.MonkeyPatch, pipe: Path
) -> None:
    # A busy machine may let the sensor that does answer wait.
    monkeypatch.setattr("dld_tui.backends.machine.jetson._PATIENCE_S", 0.5)
    pipe.replace(root / "sys/devices/platform/17000000.gpu/load")  # opening it waits for a writer
    board = Jetson(root, answers("NV Power Mode: MAXN\n0\n"))
    assert board.read() == {"gpu_mhz": 624.75}
    assert board.environment()["jetson_power_mode"] == "MAXN"
    watch = BoardWatch(board, interval_s=0.01, patience_s=0.5)
    watch.start()
    clock = next(one for one in watch._tracks if one.sensor.spec.title == "GPU clock")
    load = next(one for one in watch._tracks if one is not clock)
    while not clock.samples or not load.problem:  # until that of the load is given up
        assert not clock.problem
        list(watch.metrics())
        time.sleep(0.005)
    watch.close()
    assert {one.sensor.spec.title: one.problem for one in watch._tracks} == {
        "GPU load": "it does not answer",
        "GPU clock": "",
    }


def test_a_load_that_stops_answering_ends_no_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, pipe: Path
) -> None:
    monkeypatch.setattr("dld_tui.backends.machine.capture._PATIENCE_S", 0.02)
    load = root / "sys/devices/platform/17000000.gpu/load"
    meter = replace(jetson_meter(Jetson(root, no_tool)), interval_s=0.001)
    sampler = PollingSampler(meter)
    sampler.start()
    pipe.replace(load)
    rows = {one.spec.title: one for one in sampler.stop()}
    assert rows["Memory traffic"].absent == "the driver does not report it"


@pytest.mark.parametrize(
    ("load", "clock", "read"),
    [("nan\n", "624750000\n", {"gpu_mhz": 624.75}), (None, "not a number\n", {})],
)
def test_what_cannot_be_read_is_left_out(
    root: Path, load: str | None, clock: str, read: dict[str, float]
) -> None:
    file = root / "sys/devices/platform/17000000.gpu/load"
    file.unlink() if load is None else file.write_text(load)
    put(root, "sys/class/devfreq/17000000.gpu/cur_freq", clock)
    board = Jetson(root, no_tool)
    assert board.read() == read
    assert "jetson_power_mode" not in board.environment()
    if not read:
        assert board.state() == {}
        with pytest.raises(UnavailableError, match="no file gives the load"):
            jetson_meter(board)


@pytest.mark.parametrize(
    ("text", "mode", "problem", "why"),
    [
        (None, 0, ABSENT, ""),
        ("echo 'Error: Please run as root user'; exit 1", 0o755, NO_RIGHTS, None),
        ("echo 'NVPM ERROR: Error opening /sys/x: 13' >&2; exit 1", 0o755, NO_RIGHTS, None),
        ("echo 1", 0o600, NO_RIGHTS, None),
        ("echo 'no such board'; exit 1", 0o755, FAILED, "no such board"),
        ("i=0; while [ $i -lt 300 ]; do echo 0123456789; i=$((i+1)); done", 0o755, "", ""),
    ],
    ids=["no tool", "not root", "no rights", "not executable", "fails", "says much"],
)
def test_how_a_tool_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, mode: int, problem: str,
    why: str | None,
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    if text is not None:
        (tmp_path / "x_tool").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "x_tool").chmod(mode)
    answer = ask_tool(["x_tool"])
    assert answer.problem == problem
    assert why is None or answer.why == why
    assert run_tool(["x_tool"]) == (None if problem else answer.printed)
    assert problem or len(answer.printed) == 3300


SYSTEM = "usr/lib/python3.10/dist-packages/tensorrt/__init__.py"
AGAIN = "/usr/bin/python3.10 -m venv --system-site-packages"
INSTALL = "sudo apt install python3-libnvinfer"
VENV = AGAIN.replace("3.10", "3")
THEN = "then install dld-tui there"


@pytest.mark.parametrize(
    ("there", "prefix", "base", "python", "fix"),
    [
        (False, "/usr", "/usr", (3, 10), INSTALL),
        (False, "/home/me/my env", "/usr", (3, 10),
         f"{INSTALL} && {VENV} --without-pip '/home/me/my env'"),
        (False, "/e", "/opt/py", (3, 10),
         f"{INSTALL} && {VENV} --clear /e, {THEN}"),
        (True, "/e", "/usr", (3, 10), f"{AGAIN} --without-pip /e"),
        (True, "/e", "/opt/py", (3, 10), f"{AGAIN} --clear /e, {THEN}"),
        (True, "/e", "/opt/py", (3, 12), f"{AGAIN} --clear /e, {THEN}"),
        (True, "/opt/py", "/opt/py", (3, 12), f"{AGAIN} .venv, {THEN}"),
    ],
)  # fmt: skip
def test_how_an_environment_sees_the_tensorrt_of_jetpack(
    root: Path, there: bool, prefix: str, base: str, python: tuple[int, int], fix: str
) -> None:
    if there:
        put(root, SYSTEM, "")
    system = system_tensorrt(Jetson(root, no_tool), prefix, base, python)
    assert system is not None
    assert system[1] == fix
    assert ("JetPack's is for Python 3.10" in system[0]) is (there and python == (3, 12))
    assert there or system[0] == "not installed; JetPack brings it"


def test_where_the_tensorrt_of_jetpack_needs_no_environment(root: Path) -> None:
    put(root, "e/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n")
    system = system_tensorrt(Jetson(root, no_tool), "/e", "/usr", (3, 10))
    assert system is not None
    assert system[1] == INSTALL
    old = place(root / "old", BOARDS["AGX Orin, JetPack 5"])
    put(root / "old", SYSTEM.replace("3.10", "3.8"), "")
    system = system_tensorrt(old, "/e", "/usr", (3, 10))
    assert system is not None
    assert "cannot be used" in system[0]
    assert system[1] == ""
    assert system_tensorrt(Jetson(root / "another machine", no_tool)) is None
