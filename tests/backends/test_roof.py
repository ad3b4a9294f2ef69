"""The peaks of a processor: measured once, kept, and measured again where they may be better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime import profiling
from dld_tui.backends.onnxruntime.profiling import cpu_roof, machine_roofs, measure_roof
from dld_tui.backends.onnxruntime.session import SessionSettings
from dld_tui.core.cost.roofline import Roof
from dld_tui.core.llm.budget import _kept_roof
from dld_tui.core.settings import paths


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Return the threads of each measurement, which takes no time here."""
    threads: list[int] = []

    def measure(cpu: str, count: int) -> Roof:
        threads.append(count)
        source = (
            f"measured with ONNX Runtime{f' {profiling._BUSY}' if profiling._is_busy() else ''}"
        )
        return Roof(cpu, {"fp32": 1e9 * (count or 64)}, 1e9, levels=((1, 1e9),), source=source)

    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(profiling, "measure_roof", measure)
    monkeypatch.setattr(profiling, "_is_busy", lambda: False)
    return threads


def test_peaks_are_measured_once_for_each_number_of_threads(measured: list[int]) -> None:
    for threads in (1, 1, 8, 8, 0, 0):
        roof = cpu_roof("Some CPU", threads, "1.31")
        assert roof is not None
        assert roof.flops["fp32"] == 1e9 * (threads or 64)
    assert measured == [1, 8, 0]
    kept = _kept_roof("Some CPU")
    assert kept is not None
    assert kept.flops["fp32"] == 64e9, "those of all threads"
    assert _kept_roof("Some") is None


def test_peaks_of_a_busy_machine_are_kept_only_until_it_is_idle(
    measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "_is_busy", lambda: True)
    for _ in range(2):
        cpu_roof("Some CPU", 0, "1.31")
    assert measured == [0]
    monkeypatch.setattr(profiling, "_is_busy", lambda: False)
    for _ in range(2):
        cpu_roof("Some CPU", 0, "1.31")
    assert measured == [0, 0]


def test_peaks_without_levels_are_measured_again(
    measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = profiling.measure_roof
    old = lambda cpu, count: replace(measure(cpu, count), levels=())  # noqa: E731
    monkeypatch.setattr(profiling, "measure_roof", old)
    cpu_roof("Some CPU", 0, "1.31")
    monkeypatch.setattr(profiling, "measure_roof", measure)
    roof = cpu_roof("Some CPU", 0, "1.31")
    assert roof is not None
    assert roof.levels
    assert measured == [0, 0]


def test_a_session_without_tf32_is_compared_with_the_peak_of_fp32(measured: list[int]) -> None:
    facts = {"cpu": "Some CPU", "gpu": "NVIDIA H100 80GB HBM3"}
    by_default = machine_roofs(facts, SessionSettings())
    assert by_default["CUDAExecutionProvider"].flops["tf32"] == 494.5e12
    without = SessionSettings(provider_options={"CUDA": {"use_tf32": "0"}})
    assert "tf32" not in machine_roofs(facts, without)["CUDAExecutionProvider"].flops


def test_figures_are_rates_of_the_sizes_that_they_hold_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_best_s", lambda graph, feeds, threads: 0.001)
    roof = measure_roof("Some CPU", 1)
    assert roof.flops == {"fp32": 2 * 512**3 * 1000, "int8": 2 * 512**3 * 1000}
    # Four nodes read and write a tensor, and one reads it.
    assert roof.bandwidth == 9 * 4 * (1 << 23) * 1000
    assert roof.near_bandwidth == 9 * 4 * (1 << 16) * 1000
    assert roof.launch_ms == 1 / 5
    sizes = [size for size, _ in roof.levels]
    assert roof.near_bytes < sizes[0] < sizes[1] < 2 * 4 * (1 << 23)
    assert [rate for _, rate in roof.levels] == [9 * size / 4 * 1000 for size in sizes]


def test_measuring_again_keeps_what_was_higher(
    measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    roofs = iter(
        Roof("x", {"fp32": fp32, "int8": int8}, memory, 5.0, 8, ((64, near),), launch, "x")
        for fp32, int8, memory, near, launch in (
            (9.0, 8.0, 7.0, 6.0, 0.2),
            (1.0, 10.0, 2.0, 11.0, 0.1),
        )
    )
    monkeypatch.setattr(profiling, "_BUSY", "x")
    monkeypatch.setattr(profiling, "measure_roof", lambda cpu, threads: next(roofs))
    cpu_roof("Some CPU", 0, "1.31")
    best = cpu_roof("Some CPU", 0, "1.31")
    expected = Roof("x", {"fp32": 9.0, "int8": 10.0}, 7.0, 5.0, 8, ((64, 11.0),), 0.1, "x")
    assert best == expected
