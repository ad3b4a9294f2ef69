from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from dld_tui.core.report import schema
from dld_tui.core.report.gpu_kernels import (
    covered,
    summarise_gpu,
    union,
)
from dld_tui.core.report.records import GpuEvent
from dld_tui.core.report.schema import extent_of, store_counters
from dld_tui.core.report.triage import busy_line
from tests.support.known import known


def kernel(start: float, took: float, stream: str = "s", layer: int | None = 0) -> GpuEvent:
    return GpuEvent(stream, "kernel", "k", start, took, layer)


def copy(start: float, took: float) -> GpuEvent:
    return GpuEvent("s", "memcpy", "HtoD", start, took, None, 100)


def test_union_joins_what_overlaps_or_touches() -> None:
    assert union([(5, 6), (0, 2), (1, 3), (3, 4), (8, 8)]) == [(0, 4), (5, 6)]
    assert covered([(0, 4), (5, 6)], 3, 10) == 2


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


def test_short_series_have_no_blocks_and_twice_is_once(database: sqlite3.Connection) -> None:
    add(database, 0, [(float(n), 1.0) for n in range(100)])
    add(database, 1, [(float(n), 1.0) for n in range(10_000)])
    store_counters(database)
    once = database.execute("SELECT COUNT(*) FROM counter_blocks").fetchone()
    store_counters(database)
    assert database.execute("SELECT COUNT(*) FROM counter_blocks").fetchone() == once
    assert database.execute("SELECT DISTINCT counter FROM counter_blocks").fetchall() == [(1,)]
