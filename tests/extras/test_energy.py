from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.backends.machine.meters import Energy
from dld_tui.extras.energy import counters
from dld_tui.extras.energy.counters import EnergyWatch
from dld_tui.extras.energy.rails import energy, energy_of

SECOND = 1_000_000_000


def rapl(root: Path, folder: str, name: str, microjoules: int) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    texts = {"name": name, "energy_uj": microjoules, "max_energy_range_uj": 1_000_000_000}
    for file, text in texts.items():
        (root / folder / file).write_text(f"{text}\n")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(counters, "monotonic", lambda: now[0])
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


def test_a_counter_that_appears_later_is_left_out(tmp_path: Path, clock: list[float]) -> None:
    rapl(tmp_path, "intel-rapl:1", "package-1", 0)
    watch = EnergyWatch(root=tmp_path)
    clock[0] += 2.0
    rapl(tmp_path, "intel-rapl:0", "package-0", 7_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", 8_000_000)
    found = watch.read(passes=4)
    assert found is not None
    assert (found.energy_per_inference_j, found.energy_rails) == (2.0, "package-1 (RAPL)")


def test_nothing_is_said_where_nothing_can_be_read(tmp_path: Path, clock: list[float]) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("not for you")
    watch = EnergyWatch(lambda: None, tmp_path)
    clock[0] += 1.0
    assert watch.read(3) is None
    rapl(tmp_path, "intel-rapl:1", "", 0)  # behind the one that cannot be read
    watch = EnergyWatch(lambda: None, tmp_path)
    assert watch.read(3) is None  # no time has passed
    clock[0] += 1.0
    rapl(tmp_path, "intel-rapl:1", "", 6_000_000)
    assert watch.read(0) is None
    assert watch.read(3) == Energy(2.0, 6.0, "intel-rapl:1 (RAPL)")
    assert EnergyWatch(root=tmp_path / "none").read(3) is None


def test_the_platform_does_not_count_its_packages_again(tmp_path: Path, clock: list[float]) -> None:
    for name, start in (("package-0", 1_000_000), ("psys", 5_000_000)):
        rapl(tmp_path, f"intel-rapl:{int(name == 'psys')}", name, start)
    watch = EnergyWatch(root=tmp_path)
    clock[0] += 1.0
    rapl(tmp_path, "intel-rapl:0", "package-0", 4_000_000)
    rapl(tmp_path, "intel-rapl:1", "psys", 15_000_000)
    found = watch.read(1)
    assert found is not None
    assert (found.energy_per_inference_j, found.energy_rails) == (3.0, "package-0 (RAPL)")


def test_a_counter_that_wraps_around_several_times_loses_nothing(
    tmp_path: Path, clock: list[float]
) -> None:
    """A package of 300 W whose counter wraps at 1000 J, for 20 s."""
    rapl(tmp_path, "intel-rapl:0", "package-0", 0)
    watch = EnergyWatch(root=tmp_path)
    for second in range(1, 21):
        clock[0] += 1.0
        rapl(tmp_path, "intel-rapl:0", "package-0", 300_000_000 * second % 1_000_000_000)
        watch.mark(second)
    found = watch.read(20)
    assert found is not None
    assert found.energy_per_inference_j == pytest.approx(300)
    assert found.board_power_w == pytest.approx(300)
    assert found.energy_repeats_j == pytest.approx((300,) * 10)


def test_a_reading_that_fails_between_loses_nothing_either(
    tmp_path: Path, clock: list[float]
) -> None:
    gpu: list[int | None] = [1_000]
    rapl(tmp_path, "intel-rapl:0", "package-0", 0)
    watch = EnergyWatch(lambda: gpu[0], tmp_path)
    for at, (millijoules, microjoules) in enumerate(
        [(2_000, "?"), (None, 2_000_000), (4_000, 3_000_000)], 1
    ):
        clock[0] += 1.0
        gpu[0] = millijoules
        (tmp_path / "intel-rapl:0" / "energy_uj").write_text(str(microjoules))
        watch.mark(at)
    found = watch.read(3)
    assert found is not None
    assert found.energy_per_inference_j == pytest.approx((3 + 3) / 3)


@pytest.mark.parametrize("last", [None, 10])
def test_a_rail_that_is_not_known_to_the_end_is_left_out(
    tmp_path: Path, clock: list[float], last: int | None
) -> None:
    """The counter of a GPU that is gone, or that started again at 0 with its driver."""
    gpu: list[int | None] = [5_000]
    rapl(tmp_path, "intel-rapl:0", "package-0", 0)
    watch = EnergyWatch(lambda: gpu[0], tmp_path)
    clock[0] += 1.0
    gpu[0] = last
    rapl(tmp_path, "intel-rapl:0", "package-0", 8_000_000)
    found = watch.read(4)
    assert found is not None
    assert (found.energy_per_inference_j, found.energy_rails) == (2.0, "package-0 (RAPL)")


def test_energy_is_the_area_under_the_power() -> None:
    """Against NumPy's interpolation, which is constant before the first and after the last."""
    ramp = [(second * SECOND, 2.0 * second) for second in range(11)]
    assert energy(ramp, (2 * SECOND, 5 * SECOND)) == pytest.approx(25 - 4)  # of t squared
    random = np.random.default_rng(4)
    for _ in range(300):
        times = sorted({int(time) for time in random.integers(0, 12, random.integers(1, 9))})
        watts = [float(value) for value in random.integers(0, 50, len(times))]
        begin, end = (int(time) for time in random.integers(-2, 14, 2))
        window = (begin * SECOND, end * SECOND)
        found = energy([(time * SECOND, w) for time, w in zip(times, watts, strict=True)], window)
        if begin >= end:
            assert found is None
            continue
        power = np.interp(range(begin, end + 1), times, watts)
        assert found == pytest.approx(float((power[1:] + power[:-1]).sum() / 2))
    assert energy([], (0, SECOND)) is None


def test_the_energy_of_a_board_is_that_of_all_its_rails() -> None:
    rails = {"CPU": [(0, 4.0), (SECOND, 8.0)], "GPU": [(0, 10.0)]}
    assert energy_of(rails, (0, 2 * SECOND), 0.5) == Energy(8.5, 17.0, "CPU + GPU")
    assert energy_of({**rails, "lost": []}, (0, 2 * SECOND), 0.5) is None
