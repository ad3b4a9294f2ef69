from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.machine import board_watch
from dld_tui.backends.machine.board_watch import EnergyWatch


def rapl(root: Path, folder: str, name: str, microjoules: int) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    texts = {"name": name, "energy_uj": microjoules, "max_energy_range_uj": 1_000_000_000}
    for file, text in texts.items():
        (root / folder / file).write_text(f"{text}\n")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(board_watch, "monotonic", lambda: now[0])
    return now


def test_packages_and_the_gpu_add_up(tmp_path: Path, clock: list[float]) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 1)
    rapl(tmp_path, "intel-rapl:1", "package-1", 999_000_000)  # starts over meanwhile
    gpu = iter((7_000, 8_000))
    watch = EnergyWatch(lambda: next(gpu), tmp_path)
    clock[0] += 2.0
    rapl(tmp_path, "intel-rapl:0", "package-0", 11_000_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 900_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", 2_000_000)
    found = watch.read(passes=5)
    assert found is not None
    # 6 J, 3 J and 1 J in 2 s and 5 passes.
    assert found.energy_per_inference_j == pytest.approx(2.0)
    assert found.board_power_w == pytest.approx(5.0)
    assert found.energy_rails == "package-0 (RAPL) + package-1 (RAPL) + GPU (NVML)"


def test_nothing_is_said_where_nothing_can_be_read(tmp_path: Path, clock: list[float]) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("not for you")
    watch = EnergyWatch(lambda: None, tmp_path)
    clock[0] += 1.0
    assert watch.read(3) is None
    assert EnergyWatch(root=tmp_path / "none").read(3) is None
