from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from dld_tui.core.report import schema
from dld_tui.core.report.schema import STEP, block_us, extent_of, store_counters


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


def test_lengths_of_blocks() -> None:
    assert [block_us(2.0, level) for level in (1, 2)] == [2.0 * STEP, 2.0 * STEP**2]


def test_extent_of_few_samples(database: sqlite3.Connection) -> None:
    add(database, 0, [(5.0, 2.0)])
    add(database, 1, [])
    one = extent_of(database, 0)
    assert one is not None
    assert (one.samples, one.first_us, one.last_us, one.highest, one.period_us) == (1, 5, 5, 2, 0)
    assert extent_of(database, 1) is None


def test_the_period_is_the_usual_one_and_not_the_gaps(database: sqlite3.Connection) -> None:
    add(database, 0, [(n * 10.0 + (5000 if n > 50 else 0), 1.0) for n in range(100)])
    found = extent_of(database, 0)
    assert found is not None
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
