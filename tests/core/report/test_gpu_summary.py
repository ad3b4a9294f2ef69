from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.report import schema
from dld_tui.core.report.gpu_kernels import (
    busy_intervals,
    covered,
    gpu_summary,
    summarise_gpu,
    union,
)
from dld_tui.core.report.records import GpuEvent
from dld_tui.core.report.report import Report
from dld_tui.core.report.schema import extent_of, store_counters
from dld_tui.core.report.triage import busy_line
from tests.support.gpu_reports import make_gpu_report
from tests.support.known import known
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
    found = known(summarise_gpu([(events, 100.0)], 3))
    assert (found.pass_index, found.kernels, found.copies, found.copied_bytes) == (3, 2, 2, 200)
    assert (found.busy_us, found.busy_percent, found.kernel_sum_us) == (15, 15, 20)
    assert (found.copy_us, found.exposed_copy_us, found.gaps_us) == (15, 12, 73)
    assert (found.attributed_us, found.attributed_percent) == (10, 50)
    assert busy_intervals(events) == [(0, 15)]


def test_copies_without_a_size_are_told() -> None:
    unsized = GpuEvent("s", "memcpy", "HtoD", 30, 5)
    some = known(summarise_gpu([([kernel(0, 10), copy(12, 10), unsized], 100.0)], 0))
    none = known(summarise_gpu([([kernel(0, 10), unsized], 100.0)], 0))
    assert (some.copied_bytes, some.unsized_copies, some.copied_text) == (100, 1, "at least 100 B")
    assert none.copied_text == "size not known"
    assert "(at least 100 B)" in busy_line(some)


def test_kernels_that_end_after_the_call_make_the_pass_longer() -> None:
    found = known(summarise_gpu([([kernel(90, 60)], 100.0)], 0))
    assert (found.length_us, found.busy_us, found.gaps_us) == (150, 60, 90)
    assert summarise_gpu([([], 1.0)], 0) is None
    assert summarise_gpu([([GpuEvent("s", "sync", "wait", 0, 5)], 10)], 0) is None


def test_the_typical_pass_of_a_report(tmp_path: Path) -> None:
    with Report.open(make_gpu_report(tmp_path / "g.dldprof")) as report:
        found = known(gpu_summary(report))
        assert found.pass_index == report.typical_pass
        assert 0 < found.busy_us < found.length_us
        assert found.attributed_percent == 100
    with Report.open(make_report(tmp_path / "c.dldprof")) as report:
        assert gpu_summary(report) is None


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(made)
    yield made
    made.close()


def add(database: sqlite3.Connection, counter: int, samples: list[tuple[float, float]]) -> None:
    row = (counter, "c", "C", "%", None, "nvml", None, *(None,) * 6)
    database.execute(schema.insertion("counters"), row)
    database.executemany(
        schema.insertion("counter_samples"), [(counter, *sample) for sample in samples]
    )


def test_extent_of_few_samples(database: sqlite3.Connection) -> None:
    add(database, 0, [(5.0, 2.0)])
    add(database, 1, [])
    one = known(extent_of(database, 0))
    assert (one.samples, one.first_us, one.last_us, one.highest, one.period_us) == (1, 5, 5, 2, 0)
    assert extent_of(database, 1) is None


def test_the_period_is_the_usual_one_and_not_the_gaps(database: sqlite3.Connection) -> None:
    add(database, 0, [(n * 10.0 + (5000 if n > 50 else 0), 1.0) for n in range(100)])
    found = known(extent_of(database, 0))
    assert found.period_us == 10.0


def test_every_level_holds_every_sample(database: sqlite3.Connection) -> None:
    add(database, 0, [(float(n), n % 10) for n in range(100_000)])
    store_counters(database)
    (levels,) = database.execute("SELECT levels FROM counters").fetchone()
    assert levels == 3
    for level in range(1, levels + 1):
        row = database.execute(
            "SELECT SUM(samples), SUM(total), MIN(lowest), MAX(highest) FROM counter_blocks"
            " WHERE level = ?",
            (level,),
        ).fetchone()
        assert row == (100_000, 450_000.0, 0.0, 9.0)


def test_short_series_have_no_blocks_and_twice_is_once(database: sqlite3.Connection) -> None:
    add(database, 0, [(float(n), 1.0) for n in range(100)])
    add(database, 1, [(float(n), 1.0) for n in range(10_000)])
    store_counters(database)
    once = database.execute("SELECT COUNT(*) FROM counter_blocks").fetchone()
    store_counters(database)
    assert database.execute("SELECT COUNT(*) FROM counter_blocks").fetchone() == once
    assert database.execute("SELECT DISTINCT counter FROM counter_blocks").fetchall() == [(1,)]
