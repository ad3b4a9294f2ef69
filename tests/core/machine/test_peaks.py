"""Peaks of processors: which bandwidth bounds a layer, which measurements count, data sheets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.machine.peaks import (
    FP16_SUMS,
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
        MEASURED, flops={"fp32": 1.0, "int8": 10.0}, bandwidth=2.0, launch_ms=0.1, measured_s=2.0,
        caches=(MemoryLevel(64, 5.0), MemoryLevel(512, 31.0)), busy=True,
    )  # fmt: skip
    both = best(new, MEASURED)
    assert both == replace(
        MEASURED, flops={"fp32": 9.0, "int8": 10.0}, launch_ms=0.1, measured_s=2.0,
        caches=(MemoryLevel(64, 60.0), MemoryLevel(512, 31.0)),
    )  # fmt: skip
    assert best(new, new).busy


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


def test_data_sheets_tell_the_types_apart() -> None:
    a100, rtx, turing = map(gpu_peaks, ("NVIDIA A100-SXM4-80GB", "RTX 3090", "Tesla T4"))
    assert a100 is not None
    assert rtx is not None
    assert turing is not None
    assert (a100.flops["fp32"], a100.flops["tf32"], a100.flops["fp16"]) == (19.5e12, 156e12, 312e12)
    assert (rtx.flops["fp16"], rtx.flops[FP16_SUMS]) == (71e12, 142e12)
    assert {"tf32", "bf16"}.isdisjoint(turing.flops)
    assert a100.source is PeakSource.DATA_SHEET
    assert [gpu_peaks(name).memory_bytes for name in ("GH200 480GB", "H200")] == [  # type: ignore[union-attr]
        96_000_000_000, 141_000_000_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fp16", "gbs"),
    [
        ("NVIDIA H100 80GB HBM3", 989, 3350), ("NVIDIA H200", 989, 4800),
        ("NVIDIA H200 NVL", 835, 4800), ("NVIDIA GH200 480GB", 989, 4000),
        ("NVIDIA GH200 144G HBM3e", 989, 4900), ("NVIDIA B200", 2250, 8000),
        ("NVIDIA GB200", 2500, 8000), ("Tesla V100S-PCIE-32GB", 130, 1134),
        ("Tesla V100-PCIE-16GB", 112, 900), ("NVIDIA GeForce RTX 4090", 165.2, 1008),
        ("Tesla T4", 65, 320), ("NVIDIA TITAN RTX", 130.5, 672),
    ],
)  # fmt: skip
def test_variants_have_their_own_peaks(name: str, fp16: float, gbs: float) -> None:
    peaks = known(gpu_peaks(name))
    assert (peaks.flops["fp16"], peaks.bandwidth) == (fp16 * 1e12, gbs * 1e9)
    assert peaks.flops["fp32"] > 0
    is_volta_or_turing = any(part in name for part in ("TITAN RTX", "T4", "V100"))
    assert ("bf16" not in peaks.flops) is is_volta_or_turing


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 3070 Ti", "NVIDIA GeForce RTX 2080",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A1000",
    ],
)  # fmt: skip
def test_a_variant_that_is_not_in_the_table_has_no_peaks(name: str) -> None:
    assert gpu_peaks(name) is None
