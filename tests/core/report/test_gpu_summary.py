from __future__ import annotations

from pathlib import Path

from dld_tui.core.report.gpu_kernels import (
    busy_intervals,
    covered,
    gpu_summary,
    summarise_gpu,
    union,
)
from dld_tui.core.report.records import GpuEvent
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import busy_line
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_files import make_report


def kernel(start: float, took: float, stream: str = "s", layer: int | None = 0) -> GpuEvent:
    return GpuEvent(stream, "kernel", "k", start, took, layer)


def copy(start: float, took: float) -> GpuEvent:
    return GpuEvent("s", "memcpy", "HtoD", start, took, None, 100)


def test_union_joins_what_overlaps_or_touches() -> None:
    assert union([(5, 6), (0, 2), (1, 3), (3, 4), (8, 8)]) == [(0, 4), (5, 6)]
    assert covered([(0, 4), (5, 6)], 3, 10) == 2


def test_streams_that_run_at_once_are_busy_once() -> None:
    events = [kernel(0, 10), kernel(5, 10, "t", None), copy(12, 10), copy(60, 5)]
    found = summarise_gpu([(events, 100.0)], 3)
    assert found is not None
    assert (found.pass_index, found.kernels, found.copies, found.copied_bytes) == (3, 2, 2, 200)
    assert (found.busy_us, found.busy_percent, found.kernel_sum_us) == (15, 15, 20)
    assert (found.copy_us, found.exposed_copy_us, found.gaps_us) == (15, 12, 73)
    assert (found.attributed_us, found.attributed_percent) == (10, 50)
    assert busy_intervals(events) == [(0, 15)]


def test_copies_without_a_size_are_told() -> None:
    unsized = GpuEvent("s", "memcpy", "HtoD", 30, 5)
    some = summarise_gpu([([kernel(0, 10), copy(12, 10), unsized], 100.0)], 0)
    none = summarise_gpu([([kernel(0, 10), unsized], 100.0)], 0)
    assert some is not None
    assert none is not None
    assert (some.copied_bytes, some.unsized_copies, some.copied_text) == (100, 1, "at least 100 B")
    assert none.copied_text == "size not known"
    assert "(at least 100 B)" in busy_line(some)


def test_kernels_that_end_after_the_call_make_the_pass_longer() -> None:
    found = summarise_gpu([([kernel(90, 60)], 100.0)], 0)
    assert found is not None
    assert (found.length_us, found.busy_us, found.gaps_us) == (150, 60, 90)


def test_nothing_is_none() -> None:
    assert summarise_gpu([([], 1.0)], 0) is None
    assert summarise_gpu([([GpuEvent("s", "sync", "wait", 0, 5)], 10)], 0) is None


def test_the_median_pass_of_a_report(tmp_path: Path) -> None:
    with Report.open(make_gpu_report(tmp_path / "g.dldprof")) as report:
        found = gpu_summary(report)
        assert found is not None
        assert found.pass_index == report.median_pass
        assert 0 < found.busy_us < found.length_us
        assert found.attributed_percent == 100
    with Report.open(make_report(tmp_path / "c.dldprof")) as report:
        assert gpu_summary(report) is None
