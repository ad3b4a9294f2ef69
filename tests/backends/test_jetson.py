from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
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
from tests.support.recorded import Recorded

no_tool = answers()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson Orin Nano Developer Kit\0")
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 1\n")
    put(tmp_path, "sys/devices/platform/17000000.gpu/load", "456\n")
    put(tmp_path, "sys/class/devfreq/17000000.gpu/cur_freq", "624750000\n")
    return tmp_path


def test_a_file_that_goes_later_leaves_the_row_out(root: Path) -> None:
    sampler = PollingSampler(jetson_meter(Jetson(root, no_tool)), clock_ns=lambda: 5)
    sampler.poll()
    (root / "sys/devices/platform/17000000.gpu/load").unlink()
    sampler.poll()
    rows = {one.spec.title: one for one in sampler.stop()}

    assert rows["GPU load"].samples == [(5, 45.6)]
    assert len(rows["GPU clock"].samples) == 3
    assert rows["Memory traffic"].absent == "the driver does not report it"


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


@pytest.mark.parametrize(
    ("mode", "problem", "why"),
    [(0o600, NO_RIGHTS, "Permission denied"), (None, FAILED, "No such file or directory")],
)
def test_a_tool_whose_interpreter_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None, problem: str, why: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if mode is not None:
        (tmp_path / "interpreter").touch(mode)
    (tmp_path / "x_tool").write_text(f"#!{tmp_path / 'interpreter'}\n")
    (tmp_path / "x_tool").chmod(0o755)
    answer = ask_tool(["x_tool"])
    assert (answer.problem, answer.why, answer.printed) == (problem, why, "")


NUMBERS: Mapping[str, Mapping[str, str | None]] = {
    "whole": {}, "no load": {"load": None}, "a load that is none": {"load": "nan"},
    "a clock that is none": {"clock": "not a number", "load": None},
    "no clock": {"clock": None}, "limits": {"lowest": "306000000", "highest": "918000000"},
    "one limit": {"lowest": "306000000"}, "another limit": {"highest": "918000000"},
    "busy memory": {"busy": "532800", "emc": "2131200000"},
    "no emc": {"busy": "532800", "emc": "0"}, "too busy": {"busy": "5328000", "emc": "2131200000"},
}  # fmt: skip
FILES = {
    "load": "sys/devices/platform/17000000.gpu/load",
    "clock": "sys/class/devfreq/17000000.gpu/cur_freq",
    "lowest": "sys/class/devfreq/17000000.gpu/min_freq",
    "highest": "sys/class/devfreq/17000000.gpu/max_freq",
    "busy": "sys/kernel/actmon_avg_activity/mc_all",
    "emc": "sys/kernel/debug/bpmp/debug/clk/emc/rate",
}


def shown(board: Jetson) -> str:
    """Return all that a board tells."""
    told = [board.model, board.board, board.environment(), board.power_mode(), board.state(),
            board.present_mode(), board.power_modes() is None, board.gpu_clocks(), board.read(),
            board.gpu_file(), board.is_container()]  # fmt: skip
    lines = map(repr, told)
    try:
        meter = jetson_meter(board)
    except UnavailableError as error:
        return "\n".join([*lines, error.message])
    return "\n".join([*lines, f"{meter.source} {[*meter.rows]} {meter.interval_s} {meter.read()}"])


def environments(root: Path) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield how environments see the TensorRT of JetPack: prefix, base, Python, what is there."""
    system = "usr/lib/python{}/dist-packages/tensorrt/__init__.py"
    for there, prefix, base, python in (
        ("", "/usr", "/usr", (3, 10)), ("", "/home/me/my env", "/usr", (3, 10)),
        ("", "/e", "/opt/py", (3, 10)), ("3.10", "/usr", "/usr", (3, 10)),
        ("3.10", "/e", "/usr", (3, 10)), ("3.10", "/e", "/opt/py", (3, 10)),
        ("3.10", "/e", "/opt/py", (3, 12)), ("3.10", "/opt/py", "/opt/py", (3, 12)),
        ("3.8 3.10", "/e", "/usr", (3, 10)), ("3.8 3.9", "/e", "/usr", (3, 10)),
        ("3", "/e", "/usr", (3, 12)), ("3.10", "/sees", "/usr", (3, 10)),
        ("3.10", "/blind", "/usr", (3, 10)), ("", "/sees", "/usr", (3, 10)),
    ):  # fmt: skip
        board = place(root, BOARDS["Orin Nano Super"])
        put(root, "sees/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = True\n")
        put(root, "blind/pyvenv.cfg", "include-system-site-packages = false\n")
        for version in there.split():
            put(root, system.format(version), "")
        title = f"{there or 'none'} installed, {prefix} of {base}, Python {python}"
        yield title, system_tensorrt(board, prefix, base, python)
    old = place(root, BOARDS["AGX Orin, JetPack 5"])
    yield "JetPack 5", system_tensorrt(old, "/e", "/usr", (3, 10))
    none = Jetson(root / "another machine", no_tool)
    yield "TensorRT of another machine", system_tensorrt(none, "/e", "/usr", (3, 10))


def test_all_that_boards_tell(recorded: Recorded, tmp_path: Path) -> None:
    root, found = tmp_path / "board", dict[str, str]()
    for name, one in BOARDS.items():
        found[name] = shown(place(root, one))
    for name, numbers in NUMBERS.items():
        place(root, BOARDS["Orin Nano"])
        given = {"load": "456", "clock": "624750000", **numbers}
        for key, text in given.items():
            if text is not None:
                put(root, FILES[key], f"{text}\n")
        found[name] = shown(Jetson(root, answers(clocks=NOT_ROOT)))
    board = place(root, BOARDS["Orin Nano Super"])
    for title, mode in (
        ("no tool", ""),
        (
            "a tool that may not read all",
            ToolAnswer("NV Power Mode: 25W\n1\n", NO_RIGHTS, "NVPM ERROR: : 13"),
        ),
    ):
        board.tool = answers(mode)
        for status in (None, "pmode:0002 fmode:quiet", "pmode:0009", "odd"):
            if status is not None:
                put(root, "var/lib/nvpmodel/status", f"{status}\n")
            found[f"{title}, status {status}"] = repr(board.present_mode())
            (root / "var/lib/nvpmodel/status").unlink(missing_ok=True)
    put(root, "var/lib/nvpmodel/status", "pmode:0002\n")
    (root / "etc/nvpmodel.conf").unlink()
    board.tool = no_tool
    found["a status without modes"] = repr(board.present_mode())
    for name, files in (
        ("another machine", {"proc/device-tree/model": "Raspberry Pi 5\0", FILES["load"]: "100"}),
        ("a release alone", {"etc/nv_tegra_release": "# R36 (release), REVISION: 4.3\n"}),
        ("a container", {"etc/nv_tegra_release": "", "run/.containerenv": ""}),
        ("of Docker, with a driver", {"etc/nv_tegra_release": "", ".dockerenv": "",
                                      "dev/nvidia0": ""}),
        ("several files of a load", {"etc/nv_tegra_release": "x", "sys/devices/gpu.0/load": "odd",
                                     "sys/devices/platform/gpu.0/load": "30",
                                     FILES["load"]: "100"}),
    ):  # fmt: skip
        shutil.rmtree(root)
        for path, text in files.items():
            put(root, path, text)
        found[name] = shown(Jetson(root, no_tool))
    found |= {title: repr(told) for title, told in environments(root)}
    recorded("jetson", found)
