"""What the tables of a report file hold, as the records of a report."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.details import details_fields
from dld_tui.core.report.records import (
    GPU_KINDS,
    Bucket,
    Confidence,
    Counter,
    GpuEvent,
    Layer,
    NodeLink,
    PassEvent,
    PassState,
    ReportPass,
    Track,
)
from dld_tui.core.report.schema import (
    STEP,
    WrongValue,
    block_us,
    column_names,
    json_of,
    number_of,
    number_or_nan,
    one_of,
    optional_number,
    optional_text,
    optional_time,
    shapes_of,
    text_of,
    texts_of,
    whole_of,
)
from dld_tui.core.types import JSON

Query: TypeAlias = Callable[..., "list[tuple[Any, ...]]"]
"""Runs SQL with its values and returns all rows."""
_CONFIDENCES: tuple[Confidence, ...] = ("tensor", "name", "rule", "none")


def read_properties(query: Query, table: str, key: str) -> dict[str, JSON]:
    """Return the rows of a table of names and JSON values."""
    rows = query(f"SELECT {key}, value FROM {table}")
    return {text_of(name, "key"): json_of(value, f"{table} {name!r}") for name, value in rows}


def read_notes(query: Query) -> tuple[Note, ...]:
    """Return the remarks of the run, in order."""
    rows = query("SELECT text, level FROM notes ORDER BY id")
    kinds = (NoteKind.INFO, NoteKind.WARNING)
    return tuple(Note(one_of(w, kinds, NoteKind.INFO), text_of(text, "note")) for text, w in rows)


def read_tracks(query: Query) -> tuple[Track, ...]:
    """Return the rows of the timeline."""
    rows = query("SELECT id, kind, name FROM tracks ORDER BY id")
    return tuple(
        Track(whole_of(index, "track"), text_of(kind, "track"), text_of(name, "track"))
        for index, kind, name in rows
    )


def read_passes(query: Query, version: int) -> tuple[ReportPass, ...]:
    """Return the profiled passes of a report of a version, in order."""
    known = "counter_start_us" in column_names("passes", version)
    counters = "counter_start_us" if known else "NULL"
    rows = query(f"SELECT pass, start_us, duration_us, state, {counters} FROM passes ORDER BY pass")
    return tuple(
        # An invalid duration becomes NaN; callers leave such passes out.
        ReportPass(
            whole_of(index, "pass"),
            number_or_nan(start, "start"),
            number_or_nan(duration, "duration"),
            one_of(state, [*PassState], PassState.INCOMPLETE),
            optional_number(counter_start, "start of the counters"),
        )
        for index, start, duration, state, counter_start in rows
    )


def read_layers(query: Query, version: int) -> tuple[Layer, ...]:
    """Return the layers in order, with the statistics that the writer stored."""
    links = _read_links(query)
    gpu = "gpu_time_ms" if "gpu_time_ms" in column_names("layers", version) else "NULL"
    rows = query(
        "SELECT id, name, type, provider, precision, input_dims, output_dims, input_types,"
        f" output_types, confidence, details, passes, {', '.join(_FIGURES)}, {gpu}"
        " FROM layers ORDER BY id"
    )
    return tuple(_layer(row, index, links) for index, row in enumerate(rows))


_FIGURES = ("time_ms", "percent", "min_ms", "max_ms", "mean_ms", "count")
"""Columns of layers that are figures, and fields of `Layer`."""


def _layer(row: tuple[Any, ...], index: int, links: dict[int, list[NodeLink]]) -> Layer:
    if row[0] != index:
        raise WrongValue("the layers are not numbered in order")
    place = f"layer {index}"
    details = json_of(row[10], place)
    names = (*_FIGURES, "gpu_time_ms")
    figures: dict[str, Any] = {
        name: optional_time(value, place) for name, value in zip(names, row[12:], strict=True)
    }
    return Layer(
        name=text_of(row[1], place),
        type=text_of(row[2], place),
        provider=optional_text(row[3], place),
        precision=optional_text(row[4], place),
        input_dims=shapes_of(row[5], place),
        output_dims=shapes_of(row[6], place),
        input_types=texts_of(row[7], place),
        output_types=texts_of(row[8], place),
        nodes=tuple(links.get(index, ())),
        confidence=_confidence(row[9]),
        **(details_fields(details) if isinstance(details, dict) else {}),
        index=index,
        passes=0 if row[11] is None else whole_of(row[11], place),
        **figures,
    )


def _confidence(value: object) -> Confidence:
    return one_of(value, _CONFIDENCES, "rule")


def _read_links(query: Query) -> dict[int, list[NodeLink]]:
    links: dict[int, list[NodeLink]] = {}
    rows = query(
        "SELECT layer, scope, node, name, op_type, confidence, share FROM layer_nodes"
        " ORDER BY layer, position"
    )
    for layer, scope, node, name, op_type, confidence, share in rows:
        place = f"node of layer {layer!r}"
        link = NodeLink(
            texts_of(scope, place),
            text_of(node, place),
            text_of(name, place),
            text_of(op_type, place),
            _confidence(confidence),
            number_of(share, place),
        )
        links.setdefault(whole_of(layer, place), []).append(link)
    return links


def with_whole_shares(layer: Layer) -> Layer:
    """Return a layer with shares of its nodes that add up to 1."""
    shares = [link.share for link in layer.nodes]
    if not shares or (min(shares) >= 0 and abs(sum(shares) - 1) < _WHOLE):
        return layer
    nodes = tuple(replace(link, share=1 / len(shares)) for link in layer.nodes)
    return replace(layer, nodes=nodes, shared_by="equal" if len(shares) > 1 else None)


_WHOLE = 1e-6


def read_latencies(query: Query) -> tuple[float, ...]:
    """Return the inferences of the latency loop in milliseconds, in order; NaN is missing."""
    return tuple(
        number_or_nan(ms, "latency") for (ms,) in query("SELECT ms FROM latencies ORDER BY pass")
    )


def read_events(query: Query, index: int, origin_us: float, layers: int) -> list[PassEvent]:
    """Return the samples of a pass by start time, times since `origin_us`."""
    rows = query(
        "SELECT layer, start_us, duration_us, self_us, track FROM samples WHERE pass = ?"
        " ORDER BY start_us, duration_us DESC, seq DESC",
        (index,),
    )
    events = []
    for layer, start, duration, own, track in rows:
        if not 0 <= whole_of(layer, "layer") < layers:
            raise WrongValue(f"a sample belongs to layer {layer}, which does not exist")
        events.append(
            PassEvent(
                layer,
                number_of(start, "start") - origin_us,
                number_of(duration, "duration"),
                number_of(own, "self time"),
                whole_of(track, "track"),
            )
        )
    return events


_BLOCKS_A_BUCKET = 2
"""Coarser blocks would be assigned to wrong buckets."""


def read_gpu_events(
    query: Query, index: int, layers: int, tracks: dict[int, str]
) -> list[GpuEvent]:
    """Return the GPU work of a pass, by start time.

    Args:
        query: Of the report.
        index: The pass.
        layers: The number of layers of the report.
        tracks: Names by number.
    """
    rows = query(
        "SELECT e.track, e.kind, n.name, e.start_us, e.duration_us, e.layer, e.bytes, e.details"
        " FROM gpu_events e LEFT JOIN gpu_names n ON n.id = e.name WHERE e.pass = ?"
        " ORDER BY e.start_us, e.seq",
        (index,),
    )
    return [_event(row, layers, tracks) for row in rows]


def _event(row: tuple[Any, ...], layers: int, tracks: dict[int, str]) -> GpuEvent:
    track, kind, name, start, duration, layer, size, details = row
    known = None if layer is None else whole_of(layer, "layer of a GPU event")
    if known is not None and not 0 <= known < layers:
        raise WrongValue(f"a GPU event belongs to layer {known}, which does not exist")
    number = whole_of(track, "track of a GPU event")
    more = {} if details is None else json_of(details, "GPU event")
    return GpuEvent(
        stream=tracks.get(number, f"stream {number}"),
        # A kind that a later version added is work all the same.
        kind=next((word for word in GPU_KINDS if word == kind), "overhead"),
        name="" if name is None else text_of(name, "name of a GPU event"),
        start_us=number_of(start, "start of a GPU event"),
        duration_us=max(number_of(duration, "duration of a GPU event"), 0.0),
        layer=known,
        bytes=None if size is None else whole_of(size, "bytes of a GPU event"),
        details=more if isinstance(more, dict) else {},
    )


def read_counters(query: Query) -> tuple[Counter, ...]:
    """Return the counters in order, with what the writer stored about their samples."""
    rows = query(
        "SELECT id, name, title, unit, maximum, source, absent, samples, first_us, last_us,"
        " highest, period_us, levels FROM counters ORDER BY id"
    )
    return tuple(_counter(row) for row in rows)


def _counter(row: tuple[Any, ...]) -> Counter:
    place = "counter"
    number = whole_of(row[0], place)
    name, title, unit = (text_of(value, place) for value in row[1:4])
    return Counter(
        id=number,
        name=name,
        title=title or name,
        unit=unit,
        maximum=optional_number(row[4], place),
        source=text_of(row[5], place),
        absent=optional_text(row[6], place),
        samples=0 if row[7] is None else whole_of(row[7], place),
        first_us=optional_number(row[8], place) or 0.0,
        last_us=optional_number(row[9], place) or 0.0,
        highest=optional_number(row[10], place),
        period_us=max(optional_number(row[11], place) or 0.0, 0.0),
        levels=0 if row[12] is None else whole_of(row[12], place),
    )


def read_series(
    query: Query, counter: Counter, start_us: float, end_us: float, buckets: int
) -> list[Bucket | None]:
    """Return a counter in equal time buckets; None where nothing was measured.

    Where samples are further apart than buckets, the nearest one within a period is repeated.
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
        count = whole_of(samples, "samples")
        if 0 <= whole_of(place, "block") < buckets and count > 0:
            mean = number_of(total, "counter") / count
            low, high = number_of(lowest, "counter"), number_of(highest, "counter")
            series[place] = Bucket(count, mean, low, high)
    if not level and width < 2 * counter.period_us:
        _repeat(query, series, counter, start_us, width)
    return series


def _level(counter: Counter, width: float) -> int:
    """Return the coarsest level of blocks finer than the buckets; 0 for the samples."""
    level = 0
    while (
        level < min(counter.levels, 20)
        and counter.period_us > 0
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
    most = min(float(counter.samples * STEP), 2.0**62)
    first, last = (
        math.ceil(min(max((time - counter.first_us) / length, 0.0), most) - 0.5)
        for time in (start, end)
    )
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
            first,
            last,
        ),
    )


def _repeat(
    query: Query, series: list[Bucket | None], counter: Counter, start: float, width: float
) -> None:
    if all(series):
        return
    reach = 1.5 * counter.period_us
    rows = query(
        "SELECT time_us, value FROM counter_samples WHERE counter = ? AND time_us >= ?"
        " AND time_us <= ? ORDER BY time_us LIMIT ?",
        (counter.id, start - reach, start + len(series) * width + reach, 4 * len(series) + 16),
    )
    times = [number_of(time, "time of a sample") for time, _ in rows]
    for place, bucket in enumerate(series):
        if bucket is not None:
            continue
        middle = start + (place + 0.5) * width
        after = bisect_left(times, middle)
        adjacent = [n for n in (after - 1, after) if 0 <= n < len(times)]
        nearest = min(adjacent, key=lambda n: abs(times[n] - middle), default=None)
        if nearest is not None and abs(times[nearest] - middle) <= counter.period_us:
            value = number_of(rows[nearest][1], "counter")
            series[place] = Bucket(0, value, value, value)
