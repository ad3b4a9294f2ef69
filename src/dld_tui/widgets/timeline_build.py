"""From a pass of a report to a timeline."""

from __future__ import annotations

from collections.abc import Iterable

from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Layer, PassEvent, Track
from dld_tui.core.text import visible
from dld_tui.widgets.heat import heat, hottest
from dld_tui.widgets.timeline_model import Span, Timeline, layout


def short_name(name: str) -> str:
    """Return the last part of a layer's name that tells something, for a bar."""
    parts = [part for part in name.split("/") if part]
    return visible(parts[-1]) if parts else ""


def bar_names(layers: Iterable[Layer]) -> dict[int, tuple[str, ...]]:
    """Return for each layer the texts for its bar, the most telling first."""
    names: dict[int, tuple[str, ...]] = {}
    for layer in layers:
        kind = visible(layer.type)
        names[layer.index] = (visible(layer.name), short_name(layer.name), kind)
    return names


def track_title(track: Track, number: int) -> str:
    """Return a short title; thread ids are long numbers that say nothing."""
    if track.kind == "thread" and track.name.isdigit():
        return f"thread {number}"
    return visible(track.name)


def build(events: Iterable[PassEvent], report: Report, length_us: float) -> Timeline:
    """Return the timeline of a pass from its events."""
    spans: dict[int, list[Span]] = {}
    found = list(events)
    hot = hottest(event.self_us for event in found)
    for event in found:
        end = event.start_us + event.duration_us
        tone = heat(event.self_us, hot)
        spans.setdefault(event.track, []).append(
            Span(event.start_us, end, event.layer, tone, event.self_us)
        )
    tracks = [track for track in report.tracks if track.id in spans]
    titled = [(track_title(track, n), spans[track.id]) for n, track in enumerate(tracks, 1)]
    unknown = [(f"track {n}", rows) for n, rows in spans.items() if all(t.id != n for t in tracks)]
    return Timeline(layout([*titled, *unknown]), length_us, bar_names(report.layers))


def timeline_of(report: Report, index: int) -> Timeline:
    """Read a pass and return its timeline; empty when the report has no such pass."""
    found = next((one for one in report.passes if one.index == index), None)
    if found is None:
        return Timeline([], 0.0)
    return build(report.pass_events(index), report, found.duration_us)
