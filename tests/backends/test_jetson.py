from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dld_tui.backends.gpu_meter import PollingSampler, jetson_meter
from dld_tui.backends.jetson import Jetson, run_tool
from dld_tui.core.errors import UnavailableError

NVPMODEL = "NV Power Mode: MAXN\n0\n"


def no_tool(command: Sequence[str]) -> None:
    return None


def tools(command: Sequence[str]) -> str | None:
    return {"nvpmodel": NVPMODEL, "jetson_clocks": "SOC family: tegra234\n"}.get(command[0])


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson Orin Nano Developer Kit\0")
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 1\n")
    put(tmp_path, "sys/devices/platform/17000000.gpu/load", "456\n")
    put(tmp_path, "sys/class/devfreq/17000000.gpu/cur_freq", "624750000\n")
    return tmp_path


def test_the_board_its_mode_and_clocks(root: Path) -> None:
    board = Jetson(root, tools)

    assert board.facts() == {
        "jetson": "NVIDIA Jetson Orin Nano Developer Kit",
        "jetson_release": "R36 (release), REVISION: 4.0, GCID: 1",
        "jetson_power_mode": "MAXN",
        "jetson_clocks": "SOC family: tegra234",
    }
    assert board.state() == {"gpu_sm_mhz": 624.75}


def test_load_and_clock(root: Path) -> None:
    board = Jetson(root, no_tool)
    assert board.read() == {"gpu": 45.6, "gpu_mhz": 624.75}

    put(root, "sys/kernel/actmon_avg_activity/mc_all", "532800\n")
    put(root, "sys/kernel/debug/bpmp/debug/clk/emc/rate", "2131200000\n")
    assert board.read()["memory"] == pytest.approx(25.0)


def test_what_cannot_be_read_is_left_out(root: Path) -> None:
    (root / "sys/devices/platform/17000000.gpu/load").unlink()
    put(root, "sys/class/devfreq/17000000.gpu/cur_freq", "not a number\n")
    board = Jetson(root, no_tool)

    assert board.read() == {}
    assert board.state() == {}
    assert "jetson_power_mode" not in board.facts()
    with pytest.raises(UnavailableError, match="no file that tells the load"):
        jetson_meter(board)


def test_a_file_that_goes_later_leaves_the_row_out(root: Path) -> None:
    sampler = PollingSampler(jetson_meter(Jetson(root, no_tool)), clock_ns=lambda: 5)
    sampler.poll()
    (root / "sys/devices/platform/17000000.gpu/load").unlink()
    sampler.poll()
    rows = {one.spec.title: one for one in sampler.stop()}

    assert rows["GPU load"].samples == [(5, 45.6)]
    assert len(rows["GPU clock"].samples) == 3
    assert rows["Memory traffic"].absent == "the driver does not tell it"


def test_another_machine_is_no_jetson(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", "Raspberry Pi 5\0")
    put(tmp_path, "sys/devices/gpu.0/load", "100\n")
    board = Jetson(tmp_path, tools)

    assert (board.board, board.facts(), board.read()) == (None, {}, {})


def test_tools_that_are_not_there_or_fail() -> None:
    assert run_tool(["no-such-tool-anywhere"]) is None
    assert run_tool([sys.executable, "-c", "raise SystemExit(1)"]) is None
    assert run_tool([sys.executable, "-c", "print('mode')"]) == "mode\n"
