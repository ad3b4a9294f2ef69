"""All that a report tells, as text: for comparison with a recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dld_tui.core.codec import encode
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from tests.support.recorded import fields_of

_MOST = 7


def report_text(report: Report) -> str:
    """Return each property, note, record of layers, passes and events, the first of many."""
    return "\n".join(_content(report))


def _some(records: Any) -> Iterator[str]:
    """Yield the first records and the last one."""
    records = [*records]
    chosen = records if len(records) <= _MOST else [*records[: _MOST - 1], records[-1]]
    yield f"{len(records)} of them"
    yield from map(fields_of, chosen)


def _content(report: Report) -> Iterator[str]:
    yield f"{report.network} | {report.backend} | {report.execution_provider} | {report.device}"
    yield f"{report.status} {report.is_order_certain} {report.joined_percent} {report.has_phases}"
    for name in ("model", "settings", "environment", "properties"):
        yield f"{name}: {json.dumps(getattr(report, name))}"
    yield from (f"{note.kind.value}: {note.text}" for note in report.notes)
    yield f"problems: {[*report.problems]}"
    yield f"latency: {encode(report.latency)}"
    yield f"profiled: {encode(report.profiled_latency)} {report.is_undistorted}"
    samples = report.latency_samples
    yield f"{len(samples)} samples {samples[:5]} typical {report.typical_pass}"
    yield from _some(report.passes)
    layers: list[Layer] = [*report.layers]
    yield from _some(layers)
    yield from (f"track {track}" for track in report.tracks)
    for pass_ in report.passes[:2]:
        yield from _some(report.pass_events(pass_.index))
        yield from _some(report.gpu_events(pass_.index))
    yield from _some(report.counters)
    measured = report.measurement
    yield (
        f"total {measured.total_ms} cost {measured.cost_ms} covered {measured.covered_percent}"
        f" between {measured.between_percent}"
    )
    yield f"ranges {[measured.range_ms(layer) for layer in layers[:3]]}"
    for by in ("type", "provider", "scope"):
        yield from _some(report.groups(by))
