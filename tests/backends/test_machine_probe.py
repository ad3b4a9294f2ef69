from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dld_tui.backends.machine import probe
from dld_tui.backends.machine.jetson import Jetson
from dld_tui.backends.machine.probe import dla_checks, part_checks
from dld_tui.core.machine.health import BROKEN, GOOD, WEAK, Check
from tests.support.jetson_boards import BOARDS, Board, answers, place, put

SMI = "| NVIDIA-SMI 580.65   Driver Version: 580.65   CUDA Version: 13.0  |\n"


def test_cuda_and_clocks() -> None:
    def tool(command: Sequence[str]) -> str | None:
        return (
            SMI if len(command) == 1 else "345, 1980, 2619, Disabled\n1980, 1980, 2619, Enabled\n"
        )

    cuda, first, second = probe.cuda_checks(tool)
    assert cuda.found.startswith("13.0")
    assert (first.state, first.fix) == (WEAK, "sudo nvidia-smi -pm 1")
    assert second.state == GOOD
    assert list(probe.cuda_checks(lambda command: None)) == []


def checks_of(board: Jetson) -> dict[str, Check]:
    return {check.name: check for check in probe.board_checks(board)}


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_what_each_board_is_told(tmp_path: Path, board: Board) -> None:
    checks = checks_of(place(tmp_path / "root", board))
    number, name = board.fastest
    mode = checks["power mode"]
    if f": {name}\n" in board.printed:
        assert (mode.state, mode.fix) == (GOOD, "")
        assert "the fastest of" in mode.found
    else:
        assert (mode.state, mode.fix) == (WEAK, f"sudo nvpmodel -m {number}")
        assert f"the fastest is {name} (mode {number})" in mode.found
    clocks = checks["clocks"]
    assert (clocks.state, clocks.fix) == (
        (GOOD, "") if board.is_fixed else (WEAK, "sudo jetson_clocks")
    )
    release = checks["release"]
    assert release.state == {4: BROKEN, 5: WEAK}.get(board.jetpack, GOOD)
    assert f"JetPack {board.jetpack}" in release.found

    user = checks_of(place(tmp_path / "root", board, as_root=False))
    assert user["clocks"].state == WEAK
    assert user["clocks"].found == "unknown: only root may ask jetson_clocks"


def test_an_old_release_names_what_the_board_can_have(tmp_path: Path) -> None:
    fixes = {
        name: checks_of(place(tmp_path / "root", BOARDS[name]))["release"].fix
        for name in ("Nano", "AGX Xavier", "Xavier NX", "AGX Orin, JetPack 5")
    }
    assert "another machine" in fixes["Nano"]
    assert "JetPack 5" in fixes["AGX Xavier"]
    assert "another machine for TensorRT" in fixes["Xavier NX"]
    assert "JetPack 7" in fixes["AGX Orin, JetPack 5"]


def test_a_mode_that_cannot_be_compared_is_not_shown_as_good(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["Orin Nano Super"])
    board.tool = answers("NV Power Mode: MY_MODE\n9\n")
    mode = checks_of(board)["power mode"]
    assert mode.state == WEAK
    assert "does not list" in mode.found
    (tmp_path / "etc/nvpmodel.conf").unlink()
    mode = checks_of(board)["power mode"]
    assert (mode.state, mode.fix) == (WEAK, "")
    assert "cannot be read" in mode.found


def test_a_container_without_tools_and_files_gets_one_line_each(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", "odd\n")
    put(tmp_path, ".dockerenv", "")
    checks = checks_of(Jetson(tmp_path, answers()))
    assert {name: check.state for name, check in checks.items()} == dict.fromkeys(
        ("release", "power mode", "clocks"), WEAK
    )
    assert "no nvpmodel in this container" in checks["power mode"].found
    assert all("outside of the container" in check.fix for check in checks.values())

    (tmp_path / ".dockerenv").unlink()
    checks = checks_of(Jetson(tmp_path, answers()))
    assert checks["power mode"].fix == "sudo apt install nvidia-l4t-nvpmodel"
    assert checks["clocks"].found == "unknown: jetson_clocks is not installed"
    assert list(probe.board_checks(Jetson(tmp_path / "none", answers()))) == []


def test_clocks_that_nothing_is_known_of(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["AGX Thor"])
    for printed, found in (
        ("Online CPUs: 0-13\n", "no known line about the GPU"),
        ("gpu-gpc-0 MinFreq= MaxFreq=1575000000\n", "gpu-gpc-0 unknown to 1575 MHz, now unknown"),
    ):
        board.tool = answers(clocks=printed)
        clocks = checks_of(board)["clocks"]
        assert clocks.state == WEAK
        assert found in clocks.found


def test_what_the_driver_does_not_tell_is_unknown(tmp_path: Path) -> None:
    machine = Jetson(tmp_path, answers())

    def tool(command: Sequence[str]) -> str | None:
        if len(command) == 1:
            return "| Driver Version: N/A   CUDA Version: N/A  |\n"
        return "[N/A], [N/A], [N/A], [N/A]\n345, 1980, [N/A], [N/A]\n"

    cuda, first, second = probe.cuda_checks(tool, machine)
    assert [check.state for check in (cuda, first, second)] == [WEAK] * 3
    assert "[N/A]" not in cuda.found + first.found + second.found
    # Those of a Jetson are told by its own files, and it has no persistence mode.
    jetson = place(tmp_path, BOARDS["Orin Nano"])
    (only,) = probe.cuda_checks(lambda command: SMI, jetson)
    assert only.name == "CUDA"


def test_groups_of_a_jetson(tmp_path: Path) -> None:
    assert list(probe.group_checks(tmp_path, frozenset(), 1000)) == []
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvhost-gpu").touch()
    video, debug = probe.group_checks(tmp_path, frozenset({"video"}), 1000)
    assert video.state == GOOD
    assert debug.state == WEAK
    assert "usermod -aG debug" in debug.fix
    assert list(probe.group_checks(tmp_path, frozenset(), 0)) == []


def test_disks(tmp_path: Path) -> None:
    cache, temporary = probe.disk_checks(tmp_path / "not" / "yet")
    assert "free for" in cache.found
    assert temporary.name == "temporary disk"


def test_clocks_that_a_killed_run_left_can_be_restored(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["Orin Nano Super"])
    put(tmp_path, "run/dld-tui-jetson-clocks", "what they were\n")
    check = checks_of(board)["clocks"]
    assert check.state == WEAK
    assert check.fix == "sudo jetson_clocks --restore /run/dld-tui-jetson-clocks"
    assert "left so by one that was killed" in check.found


LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-1f4c)
GPU 1: NVIDIA H100 (UUID: GPU-5d5b)
  MIG 3g.40gb     Device  0: (UUID: MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-5d5b/1/0)
"""


def test_parts_of_gpus_are_listed_with_what_chooses_them() -> None:
    checks = list(part_checks(lambda command: LISTING))

    assert [(check.name, check.found) for check in checks] == [
        ("MIG", "3g.40gb of GPU 1: --device MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b"),
        ("MIG", "1g.10gb of GPU 1: --device MIG-GPU-5d5b/1/0"),
    ]


def test_undivided_gpus_and_no_driver_say_nothing() -> None:
    assert list(part_checks(lambda command: LISTING.partition("  MIG")[0])) == []
    assert list(part_checks(lambda command: None)) == []


def test_dla_cores_are_those_that_are_on(tmp_path: Path) -> None:
    assert list(dla_checks(tmp_path)) == []
    for name, status in (("nvdla0@15880000", b"okay\0"), ("nvdla1@158c0000", b"disabled\0")):
        node = tmp_path / "bus@0" / "host1x@13e00000" / name
        node.mkdir(parents=True)
        (node / "status").write_bytes(status)

    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0: --dla-core N"
    (tmp_path / "bus@0/host1x@13e00000/nvdla1@158c0000/status").unlink()
    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0, 1: --dla-core N"
