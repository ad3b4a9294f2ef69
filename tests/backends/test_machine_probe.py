from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dld_tui.backends import machine_probe
from dld_tui.backends.jetson import Jetson
from dld_tui.core.health import GOOD, WEAK

SMI = "| NVIDIA-SMI 580.65   Driver Version: 580.65   CUDA Version: 13.0  |\n"
CLOCKS = "GPU MinFreq=306000000 MaxFreq=1300500000 CurrentFreq=306000000\n"


def test_cuda_and_clocks() -> None:
    def tool(command: Sequence[str]) -> str | None:
        return (
            SMI if len(command) == 1 else "345, 1980, 2619, Disabled\n1980, 1980, 2619, Enabled\n"
        )

    cuda, first, second = machine_probe.cuda_checks(tool)
    assert cuda.found.startswith("13.0")
    assert (first.state, first.fix) == (WEAK, "sudo nvidia-smi -pm 1")
    assert second.state == GOOD
    assert list(machine_probe.cuda_checks(lambda command: None)) == []


def board(root: Path, mode: str, clocks: str | None) -> Jetson:
    for name, text in (
        ("proc/device-tree/model", "NVIDIA Jetson Orin"),
        ("etc/nv_tegra_release", "# R36"),
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def tool(command: Sequence[str]) -> str | None:
        return f"NV Power Mode: {mode}\n0\n" if command[0] == "nvpmodel" else clocks

    return Jetson(root, tool)


def test_a_board_that_is_not_at_its_fastest(tmp_path: Path) -> None:
    found = {c.name: c for c in machine_probe.board_checks(board(tmp_path, "15W", CLOCKS))}
    assert found["power mode"].fix == "sudo nvpmodel -m 0"
    assert found["clocks"].fix == "sudo jetson_clocks"
    fixed = CLOCKS.replace("306000000 Max", "1300500000 Max")
    found = {c.name: c for c in machine_probe.board_checks(board(tmp_path, "MAXN", fixed))}
    assert found["power mode"].state == found["clocks"].state == GOOD
    unknown = {c.name: c for c in machine_probe.board_checks(board(tmp_path, "MAXN", None))}
    assert unknown["clocks"].state == WEAK


def test_groups_of_a_jetson(tmp_path: Path) -> None:
    assert list(machine_probe.group_checks(tmp_path, frozenset(), 1000)) == []
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvhost-gpu").touch()
    video, debug = machine_probe.group_checks(tmp_path, frozenset({"video"}), 1000)
    assert video.state == GOOD
    assert debug.state == WEAK
    assert "usermod -aG debug" in debug.fix
    assert list(machine_probe.group_checks(tmp_path, frozenset(), 0)) == []


def test_disks(tmp_path: Path) -> None:
    cache, temporary = machine_probe.disk_checks(tmp_path / "not" / "yet")
    assert "free for" in cache.found
    assert temporary.name == "temporary disk"
