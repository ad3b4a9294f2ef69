"""The rows of a GPU in a report file, read and checked."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from dld_tui.core.report import values as v
from dld_tui.core.report.counter_blocks import STEP, block_us
from dld_tui.core.report.gpu_records import GPU_KINDS, Bucket, Counter, GpuEvent
from dld_tui.core.report.rows import Query

_BLOCKS_A_BUCKET = 2
"""Coarser blocks would be put into the wrong bucket too far."""


def read_gpu_events(
    query: Query, index: int, layers: int, tracks: dict[int, str]
) -> list[GpuEvent]:
    """Return what the GPU did in a pass, by start time.

    Args:
        query: Of the report.
        index: The pass.
        layers: How many the report has.
        tracks: Names by number.
    """
    found = query(
        "SELECT e.track, e.kind, n.name, e.start_us, e.duration_us, e.layer, e.bytes, e.details"
        " FROM gpu_events e LEFT JOIN gpu_names n ON n.id = e.name WHERE e.pass = ?"
        " ORDER BY e.start_us, e.seq",
        (index,),
    )
    return [_event(row, layers, tracks) for row in found]


def _event(row: tuple[Any, ...], layers: int, tracks: dict[int, str]) -> GpuEvent:
    track, kind, name, start, duration, layer, size, details = row
    known = None if layer is None else v.whole_of(layer, "layer of a GPU event")
    if known is not None and not 0 <= known < layers:
        raise v.WrongValue(f"a GPU event is of layer {known}, which is not there")
    number = v.whole_of(track, "track of a GPU event")
    more = {} if details is None else v.json_of(details, "GPU event")
    return GpuEvent(
        stream=tracks.get(number, f"stream {number}"),
        # What a later version knows and this one does not is work all the same.
        kind=next((word for word in GPU_KINDS if word == kind), "overhead"),
        name="" if name is None else v.text_of(name, "name of a GPU event"),
        start_us=v.number_of(start, "start of a GPU event"),
        duration_us=max(v.number_of(duration, "duration of a GPU event"), 0.0),
        layer=known,
        bytes=None if size is None else v.whole_of(size, "bytes of a GPU event"),
        details=more if isinstance(more, dict) else {},
    )


def read_counters(query: Query) -> tuple[Counter, ...]:
    """Return the counters in order, with what the writer stored about their samples."""
    found = query(
        "SELECT id, name, title, unit, maximum, source, absent, samples, first_us, last_us,"
        " highest, period_us, levels FROM counters ORDER BY id"
    )
    return tuple(_counter(row) for row in found)


def _counter(row: tuple[Any, ...]) -> Counter:
    what = "counter"
    number = v.whole_of(row[0], what)
    name, title, unit = (v.text_of(value, what) for value in row[1:4])
    return Counter(
        id=number,
        name=name,
        title=title or name,
        unit=unit,
        maximum=v.optional_number(row[4], what),
        source=v.text_of(row[5], what),
        absent=v.optional_text(row[6], what),
        samples=0 if row[7] is None else v.whole_of(row[7], what),
        first_us=v.optional_number(row[8], what) or 0.0,
        last_us=v.optional_number(row[9], what) or 0.0,
        highest=v.optional_number(row[10], what),
        period_us=max(v.optional_number(row[11], what) or 0.0, 0.0),
        levels=0 if row[12] is None else v.whole_of(row[12], what),
    )


def read_series(
    query: Query, counter: Counter, start_us: float, end_us: float, buckets: int
) -> list[Bucket | None]:
    """Return a counter in equal parts of a time; None where nothing was measured.

    Where samples are further apart than the parts, the nearest one within a period is repeated.
    """
    width = (end_us - start_us) / buckets if buckets > 0 else 0.0
    if not (width > 0 and math.isfinite(width)) or not counter.samples:
        return [None] * max(buckets, 0)
    series: list[Bucket | None] = [None] * buckets
    level = _level(counter, width)
    for place, samples, total, lowest, highest in query(
        *(_blocks(counter, level, start_us, end_us, width) if level else
          _samples(counter, start_us, end_us, width))
    ):  # fmt: skip
        count = v.whole_of(samples, "samples")
        if 0 <= v.whole_of(place, "block") < buckets and count > 0:
            mean = v.number_of(total, "counter") / count
            low, high = v.number_of(lowest, "counter"), v.number_of(highest, "counter")
            series[place] = Bucket(count, mean, low, high)
    if not level and width < 2 * counter.period_us:
        _repeat(query, series, counter, start_us, width)
    return series


def _level(counter: Counter, width: float) -> int:
    """Return the coarsest level of blocks that the parts still tell apart; 0 for the samples."""
    level = 0
    while (
        level < min(counter.levels, 20)
        and _BLOCKS_A_BUCKET * block_us(counter.period_us, level + 1) <= width
    ):
        level += 1
    return level


def _samples(
    counter: Counter, start: float, end: float, width: float
) -> tuple[str, tuple[object, ...]]:
    return (
        "SELECT CAST((time_us - ?) / ? AS INTEGER), COUNT(*), SUM(value), MIN(value), MAX(value)"
        " FROM counter_samples WHERE counter = ? AND time_us >= ? AND time_us < ? GROUP BY 1",
        (start, width, counter.id, start, end),
    )


def _blocks(
    counter: Counter, level: int, start: float, end: float, width: float
) -> tuple[str, tuple[object, ...]]:
    length = block_us(counter.period_us, level)
    first, last = ((time - counter.first_us) / length for time in (start, end))
    # By the middle of a block: (first_us + (block + 0.5) * length - start) / width.
    return (
        "SELECT CAST(((block + 0.5) * ? - ?) / ? AS INTEGER), SUM(samples), SUM(total),"
        " MIN(lowest), MAX(highest) FROM counter_blocks WHERE counter = ? AND level = ?"
        " AND block >= ? AND block < ? GROUP BY 1",
        (
            length,
            start - counter.first_us,
            width,
            counter.id,
            level,
            math.ceil(max(first, 0.0) - 0.5),
            math.ceil(min(max(last, 0.0), float(counter.samples * STEP)) - 0.5),
        ),
    )


def _repeat(
    query: Query, series: list[Bucket | None], counter: Counter, start: float, width: float
) -> None:
    if all(series):
        return
    reach = 1.5 * counter.period_us
    found = query(
        "SELECT time_us, value FROM counter_samples WHERE counter = ? AND time_us >= ?"
        " AND time_us <= ? ORDER BY time_us LIMIT ?",
        (counter.id, start - reach, start + len(series) * width + reach, 4 * len(series) + 16),
    )
    times = [v.number_of(time, "time of a sample") for time, _ in found]
    for place, bucket in enumerate(series):
        if bucket is not None:
            continue
        middle = start + (place + 0.5) * width
        after = bisect_left(times, middle)
        near = [n for n in (after - 1, after) if 0 <= n < len(times)]
        nearest = min(near, key=lambda n: abs(times[n] - middle), default=None)
        if nearest is not None and abs(times[nearest] - middle) <= counter.period_us:
            value = v.number_of(found[nearest][1], "counter")
            series[place] = Bucket(0, value, value, value)
