"""The rows of a report file, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias, cast

from dld_tui.core.report import schema
from dld_tui.core.report import values as v
from dld_tui.core.report.aggregate import (
    ATTRIBUTED_PASSES,
    GPU_TIMES,
    KERNELS_ALONE,
    collect,
    counted_passes,
    gpu_medians,
    gpu_passes,
    summarise_layers,
)
from dld_tui.core.report.records import (
    Confidence,
    Layer,
    NodeLink,
    Note,
    PassEvent,
    PassState,
    ReportPass,
    Track,
)
from dld_tui.core.types import JSON

Query: TypeAlias = Callable[..., "list[tuple[Any, ...]]"]
"""Runs SQL with its values and returns all rows."""
Stream: TypeAlias = Callable[[str], "Iterable[tuple[Any, ...]]"]
"""Runs SQL and returns its rows one by one: there may be millions."""

_CONFIDENCES = ("tensor", "name", "rule", "none")
_STATES = ("measured", "warm-up", "incomplete", KERNELS_ALONE)

LAYERS_ONLY = "layers_only"
"""The row of the table ``report`` of which true says that a pass is but the sum of its layers: what
another program measured has no latency from end to end."""


def read_facts(query: Query, table: str, key: str) -> dict[str, JSON]:
    """Return the rows of a table of names and JSON values."""
    rows = query(f"SELECT {key}, value FROM {table}")
    return {v.text_of(name, "key"): v.json_of(value, f"{table} {name!r}") for name, value in rows}


def read_notes(query: Query) -> tuple[Note, ...]:
    """Return the remarks of the run, in order."""
    rows = query("SELECT text, level FROM notes ORDER BY id")
    levels = ("info", "warning")
    return tuple(Note(v.text_of(text, "note"), v.one_of(w, levels, "info")) for text, w in rows)


def read_tracks(query: Query) -> tuple[Track, ...]:
    """Return the rows of the timeline."""
    rows = query("SELECT id, kind, name FROM tracks ORDER BY id")
    return tuple(
        Track(v.whole_of(index, "track"), v.text_of(kind, "track"), v.text_of(name, "track"))
        for index, kind, name in rows
    )


def read_passes(query: Query, version: int) -> tuple[ReportPass, ...]:
    """Return the profiled passes of a report of a version, in order."""
    known = "counter_start_us" in schema.column_names("passes", version)
    counters = "counter_start_us" if known else "NULL"
    rows = query(f"SELECT pass, start_us, duration_us, state, {counters} FROM passes ORDER BY pass")
    return tuple(
        # A duration that is none shows as NaN, and is left out by who reads the passes.
        ReportPass(
            v.whole_of(index, "pass"),
            v.number_or_nan(start, "start"),
            v.number_or_nan(duration, "duration"),
            cast("PassState", v.one_of(state, _STATES, "incomplete")),
            v.optional_number(counter_start, "start of the counters"),
        )
        for index, start, duration, state, counter_start in rows
    )


def read_layers(query: Query, version: int) -> tuple[Layer, ...]:
    """Return the layers in order, with the statistics that the writer stored."""
    links = _read_links(query)
    gpu = "gpu_time_ms" if "gpu_time_ms" in schema.column_names("layers", version) else "NULL"
    rows = query(
        "SELECT id, name, type, provider, precision, input_dims, output_dims, input_types,"
        " output_types, confidence, details, time_ms, percent, min_ms, max_ms, mean_ms, count,"
        f" passes, {gpu} FROM layers ORDER BY id"
    )
    return tuple(_layer(row, index, links) for index, row in enumerate(rows))


def _layer(row: tuple[Any, ...], index: int, links: dict[int, list[NodeLink]]) -> Layer:
    if row[0] != index:
        raise v.WrongValue("the layers are not numbered in order")
    what = f"layer {index}"
    details = v.json_of(row[10], what)
    return Layer(
        name=v.text_of(row[1], what),
        type=v.text_of(row[2], what),
        provider=v.optional_text(row[3], what),
        precision=v.optional_text(row[4], what),
        input_dims=v.shapes_of(row[5], what),
        output_dims=v.shapes_of(row[6], what),
        input_types=v.texts_of(row[7], what),
        output_types=v.texts_of(row[8], what),
        nodes=tuple(links.get(index, ())),
        confidence=_confidence(row[9]),
        details=details if isinstance(details, dict) else {},
        index=index,
        time_ms=v.optional_time(row[11], what),
        percent=v.optional_time(row[12], what),
        min_ms=v.optional_time(row[13], what),
        max_ms=v.optional_time(row[14], what),
        mean_ms=v.optional_time(row[15], what),
        count=v.optional_time(row[16], what),
        passes=0 if row[17] is None else v.whole_of(row[17], what),
        gpu_time_ms=v.optional_time(row[18], what),
    )


def _confidence(value: object) -> Confidence:
    return cast("Confidence", v.one_of(value, _CONFIDENCES, "rule"))


def _read_links(query: Query) -> dict[int, list[NodeLink]]:
    links: dict[int, list[NodeLink]] = {}
    rows = query(
        "SELECT layer, scope, node, name, op_type, confidence, share FROM layer_nodes"
        " ORDER BY layer, position"
    )
    for layer, scope, node, name, op_type, confidence, share in rows:
        what = f"node of layer {layer!r}"
        link = NodeLink(
            v.texts_of(scope, what),
            v.text_of(node, what),
            v.text_of(name, what),
            v.text_of(op_type, what),
            _confidence(confidence),
            v.number_of(share, what),
        )
        links.setdefault(v.whole_of(layer, what), []).append(link)
    return links


def read_latencies(query: Query) -> tuple[float, ...]:
    """Return the inferences of the latency loop in milliseconds, in order; NaN is missing."""
    return tuple(
        v.number_or_nan(ms, "latency") for (ms,) in query("SELECT ms FROM latencies ORDER BY pass")
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
        if not 0 <= v.whole_of(layer, "layer") < layers:
            raise v.WrongValue(f"a sample is of layer {layer}, which is not there")
        events.append(
            PassEvent(
                layer,
                v.number_of(start, "start") - origin_us,
                v.number_of(duration, "duration"),
                v.number_of(own, "self time"),
                v.whole_of(track, "track"),
            )
        )
    return events


def read_history(query: Query, layer: int) -> list[tuple[int, float]]:
    """Return (pass, self time in milliseconds) of a layer."""
    rows = query(
        "SELECT pass, SUM(self_us) FROM samples WHERE layer = ? GROUP BY pass ORDER BY pass",
        (layer,),
    )
    return [(v.whole_of(i, "pass"), v.number_of(own, "self time") / 1000) for i, own in rows]


def add_statistics(
    stream: Stream, layers: tuple[Layer, ...], passes: tuple[ReportPass, ...], version: int
) -> tuple[Layer, ...]:
    """Compute what the writer of a partial report did not get to.

    Args:
        stream: Of the report.
        layers: Without statistics.
        passes: All of them.
        version: Of the report.
    """
    states = {found.index: found.state for found in passes}
    counted = counted_passes(states)
    samples = _times(stream("SELECT pass, layer, self_us FROM samples ORDER BY pass, seq"))
    found = summarise_layers(collect(samples, counted))
    gpu = {}
    if version > 1:
        chosen = gpu_passes(states, (index for (index,) in stream(ATTRIBUTED_PASSES)))
        gpu = gpu_medians(_times(stream(GPU_TIMES)), chosen)
    timed = (
        replace(layer, **vars(found[layer.index])) if layer.index in found else layer
        for layer in layers
    )
    return tuple(replace(layer, gpu_time_ms=gpu.get(layer.index)) for layer in timed)


def _times(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int, float | None]]:
    for index, layer, time_us in rows:
        numbers = (v.whole_of(index, "pass"), v.whole_of(layer, "layer"))
        yield (*numbers, v.optional_number(time_us, "time"))
