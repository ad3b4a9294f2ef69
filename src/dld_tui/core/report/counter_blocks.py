"""Counters in coarser steps: a long stretch of samples is drawn from few rows of a report.

Level 1 has blocks of `STEP` sampling periods, each level after it blocks of `STEP` times the length
of those before. Blocks are cut by time and not by number of samples, so none hides a gap in which
nothing was measured.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import pairwise

from dld_tui.core.report import schema
from dld_tui.core.report.statistics import median

STEP = 8
_ENOUGH = 512
"""A level with no more blocks than this is the last one."""
_PERIODS = 1000
"""How many samples the sampling period is estimated from."""


@dataclass(frozen=True)
class Extent:
    """What is known of a counter's samples."""

    samples: int
    first_us: float
    last_us: float
    highest: float
    period_us: float


def block_us(period_us: float, level: int) -> float:
    """Return the length of the blocks of a level, 1 being the finest."""
    return float(period_us * STEP**level)


def extent_of(database: sqlite3.Connection, counter: int) -> Extent | None:
    """Return the extent of a counter's samples, or None when there are none."""
    samples, first, last, highest = database.execute(
        "SELECT COUNT(*), MIN(time_us), MAX(time_us), MAX(value) FROM counter_samples"
        " WHERE counter = ?",
        (counter,),
    ).fetchone()
    if not samples:
        return None
    rows = database.execute(
        "SELECT time_us FROM counter_samples WHERE counter = ? ORDER BY time_us LIMIT ?",
        (counter, _PERIODS + 1),
    ).fetchall()
    times = [schema.number_of(row[0], "time of a sample") for row in rows]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    ends = (schema.number_of(first, "time of a sample"), schema.number_of(last, "time of a sample"))
    top = schema.number_of(highest, "value of a sample")
    return Extent(samples, *ends, top, median(gaps) if gaps else 0.0)


def store_counters(database: sqlite3.Connection) -> None:
    """Fill the computed columns of the counters, and the blocks, of a report being written."""
    database.execute("BEGIN IMMEDIATE")
    database.execute("DELETE FROM counter_blocks")
    for (counter,) in database.execute("SELECT id FROM counters").fetchall():
        found = extent_of(database, counter)
        if found is None:
            continue
        levels = _store_blocks(database, counter, found)
        database.execute(
            "UPDATE counters SET samples = ?, first_us = ?, last_us = ?, highest = ?,"
            " period_us = ?, levels = ? WHERE id = ?",
            (
                found.samples,
                found.first_us,
                found.last_us,
                found.highest,
                found.period_us,
                levels,
                counter,
            ),
        )
    database.execute("COMMIT")


def _store_blocks(database: sqlite3.Connection, counter: int, found: Extent) -> int:
    if found.period_us <= 0 or found.samples <= _ENOUGH:
        return 0
    length = block_us(found.period_us, 1)
    made = database.execute(
        "INSERT INTO counter_blocks SELECT counter, 1, CAST((time_us - ?) / ? AS INTEGER),"
        " COUNT(*), SUM(value), MIN(value), MAX(value) FROM counter_samples WHERE counter = ?"
        " GROUP BY 3",
        (found.first_us, length, counter),
    ).rowcount
    level = 1
    while made > _ENOUGH:
        made = database.execute(
            "INSERT INTO counter_blocks SELECT counter, level + 1, block / ?, SUM(samples),"
            " SUM(total), MIN(lowest), MAX(highest) FROM counter_blocks"
            " WHERE counter = ? AND level = ? GROUP BY 3",
            (STEP, counter, level),
        ).rowcount
        level += 1
    return level
