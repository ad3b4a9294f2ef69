"""Peaks of processors: which bandwidth bounds a layer, which measurements count, data sheets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.machine.peaks import (
    MemoryLevel,
    Peaks,
    PeakSource,
    Setup,
    best,
    gpu_peaks,
    kept_peaks,
    measured_peaks,
)
from dld_tui.core.process import paths
from tests.support.known import known
from tests.support.recorded import Recorded, fields_of

SETUP = Setup("Some CPU", 0, "1.31")
MEASURED = Peaks(
    "Some CPU", {"fp32": 9.0, "int8": 8.0}, 7.0, (MemoryLevel(64, 60.0), MemoryLevel(512, 30.0)),
    4096, 0.2, PeakSource.MEASURED, 1.0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the file with kept peaks."""
    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    return tmp_path / "peaks.json"


def test_the_bandwidth_is_that_of_a_size_that_is_at_least_as_fast() -> None:
    sizes = (1, 64, 511, 512, 4095, 4096, 1 << 40)
    assert [MEASURED.bandwidth_of(size) for size in sizes] == [60, 60, 60, 30, 30, 7, 7]
    assert Peaks("x", {}, 5.0).bandwidth_of(1) == 5.0, "nothing is known of its caches"
    slow = replace(MEASURED, caches=(MemoryLevel(64, 1.0), MemoryLevel(512, 30.0)))
    assert slow.bandwidth_of(64) == 30.0, "what a larger size reaches, a smaller one can"


def test_the_best_of_two_measurements_counts() -> None:
    new = replace(
        MEASURED, flops={"fp32": 1.0, "int8": 10.0}, bandwidth=2.0, launch_ms=0.3, measured_s=2.0,
        caches=(MemoryLevel(64, 5.0), MemoryLevel(512, 31.0)), busy=True,
    )  # fmt: skip
    both = best(new, MEASURED)
    assert both == replace(
        MEASURED, flops={"fp32": 9.0, "int8": 10.0}, measured_s=2.0,
        caches=(MemoryLevel(64, 60.0), MemoryLevel(512, 31.0)),
    )  # fmt: skip
    assert best(new, new).busy
    assert best(new, replace(MEASURED, launch_ms=0.0)).launch_ms == 0.3, "one of no launches"


def test_peaks_of_a_busy_machine_are_measured_at_each_run_and_those_of_an_idle_one_kept() -> None:
    runs = [
        replace(MEASURED, bandwidth=5.0, busy=True),
        replace(MEASURED, bandwidth=3.0, busy=True),
        replace(MEASURED, bandwidth=4.0),
        replace(MEASURED, bandwidth=99.0),
    ]
    found = [measured_peaks(SETUP, lambda: runs.pop(0)) for _ in range(4)]
    assert [(peaks.bandwidth, peaks.busy) for peaks in found] == [
        (5.0, True), (5.0, True), (5.0, False), (5.0, False),
    ]  # fmt: skip
    assert len(runs) == 1


def test_peaks_of_most_threads_are_those_of_a_machine() -> None:
    for threads, rate in ((8, 8.0), (0, 64.0), (1, 1.0)):
        setup = replace(SETUP, threads=threads)
        measured_peaks(setup, lambda rate=rate: replace(MEASURED, bandwidth=rate))  # type: ignore[misc]
    kept = known(kept_peaks("Some CPU"))
    assert kept.bandwidth == 64.0
    for version, when in (("1.32", 3.0), ("1.33", None), ("1.30", 2.0)):
        peaks = replace(MEASURED, bandwidth=when or 0.0, measured_s=when)
        measured_peaks(replace(SETUP, version=version), lambda peaks=peaks: peaks)  # type: ignore[misc]
    assert known(kept_peaks("Some CPU")).bandwidth == 3.0, "the latest of them"
    assert kept_peaks("Some") is None
    assert kept_peaks("") is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"Some CPU, 0 threads": {"device": "x"}}'])
def test_what_cannot_be_read_is_measured_again(cache: Path, text: str) -> None:
    cache.write_text(text)
    assert kept_peaks("Some CPU") is None
    assert measured_peaks(SETUP, lambda: MEASURED) == MEASURED
    assert kept_peaks("Some CPU") == MEASURED
    assert json.loads(cache.read_text())[0]["setup"] == {
        "cpu": "Some CPU", "threads": 0, "version": "1.31",
    }  # fmt: skip


NAMES = (
    "NVIDIA GB200", "NVIDIA B200", "NVIDIA GH200 144G HBM3e", "NVIDIA GH200 480GB",
    "NVIDIA H200 NVL", "NVIDIA H200", "NVIDIA H100 PCIe", "NVIDIA H100 NVL",
    "NVIDIA H100 80GB HBM3", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB",
    "NVIDIA A100-PCIE-40GB", "NVIDIA A30", "NVIDIA A10", "NVIDIA A2", "NVIDIA L40S", "NVIDIA L40",
    "NVIDIA L4", "Tesla T4", "Tesla V100S-PCIE-32GB", "Tesla V100-PCIE-16GB",
    "Tesla V100-SXM2-32GB", "NVIDIA TITAN RTX", "NVIDIA GeForce RTX 2080 Ti",
    "NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 3090",
    "NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 4090",
    "nvidia geforce rtx 4080", "Jetson AGX Orin", "x" * 196 + " A30x",
    "NVIDIA GeForce RTX 4090 Laptop GPU", "Quadro RTX 3080 with Max-Q", "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 3070 Ti", "NVIDIA GeForce RTX 2080",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A1000", "",
)  # fmt: skip


def test_data_sheets(recorded: Recorded) -> None:
    """A variant that is not in the table has no peaks; types that a GPU lacks have none."""
    found = {name: gpu_peaks(name) for name in NAMES}
    texts = {name or "no name": fields_of(peaks) if peaks else "-" for name, peaks in found.items()}
    recorded("data_sheets", texts)
