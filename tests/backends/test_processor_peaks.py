"""The peaks of the processors of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime import processor_peaks
from dld_tui.backends.onnxruntime.processor_peaks import machine_peaks, measure_peaks
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.machine.environment import CpuWatch
from dld_tui.core.machine.peaks import Peaks, kept_peaks
from dld_tui.core.process import paths


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep peaks in an own folder, and measure in no time."""
    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(processor_peaks, "_best_s", lambda graph, feeds, threads: 0.001)


def test_figures_are_rates_of_the_sizes_that_were_measured() -> None:
    peaks = measure_peaks("Some CPU", 1)
    assert peaks.flops == {"fp32": 2 * 512**3 * 1000, "int8": 2 * 512**3 * 1000}
    # Four nodes read and write a tensor, and one reads it.
    assert peaks.bandwidth == 9 * 4 * (1 << 23) * 1000
    assert peaks.far_bytes == 2 * 4 * (1 << 23)
    assert [level.bytes for level in peaks.caches] == [1 << 19, 1 << 21, 1 << 23]
    assert [level.bandwidth for level in peaks.caches] == [
        9 * level.bytes / 2 * 1000 for level in peaks.caches
    ]
    assert peaks.launch_ms == 1 / 5
    assert peaks.measured_s is not None


@pytest.mark.parametrize(("others", "busy"), [(0.0, False), (64.0, True), (None, False)])
def test_other_programs_make_peaks_doubtful(
    monkeypatch: pytest.MonkeyPatch, others: float | None, *, busy: bool
) -> None:
    monkeypatch.setattr(CpuWatch, "environment", lambda self: {"other_busy_threads": others})
    assert measure_peaks("Some CPU", 1).busy is busy


def test_each_device_has_its_own_peaks() -> None:
    facts = {"cpu": "Some CPU", "gpu": "NVIDIA H100 80GB HBM3"}
    found = machine_peaks(facts, SessionSettings())
    assert found["CUDAExecutionProvider"].flops["tf32"] == 494.5e12
    assert found["CPUExecutionProvider"] == kept_peaks("Some CPU")
    without = SessionSettings(provider_options={"CUDA": {"use_tf32": "0"}})
    assert "tf32" not in machine_peaks(facts, without)["CUDAExecutionProvider"].flops
    unknown = machine_peaks({"cpu": "Some CPU", "gpu": "Abacus"}, SessionSettings())
    assert [*unknown] == ["CPUExecutionProvider"]


def test_a_build_that_cannot_run_the_products_has_no_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(cpu: str, threads: int) -> Peaks:
        raise RuntimeError(cpu, threads)

    monkeypatch.setattr(processor_peaks, "measure_peaks", fail)
    assert machine_peaks({"cpu": "Some CPU"}, SessionSettings()) == {}
