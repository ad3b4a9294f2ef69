"""What is under the timeline's cursor: a layer's launch, a kernel, a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.report.layer_table import node_names
from dld_tui.core.report.records import GpuEvent, Layer
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.operators.styles import operator_style
from dld_tui.widgets.report.views import layer_lines
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.timeline.model import kernel_name
from dld_tui.widgets.timeline.timescale import time_text

if TYPE_CHECKING:
    from dld_tui.widgets.timeline.timeline import TimelineView


def span_lines(view: TimelineView, layers: Sequence[Layer], room: int) -> list[Line]:
    """Return at most `room` lines about the span under the cursor, the most telling first."""
    lane = view.timeline.lanes[view.lane]
    if view.index >= len(lane):
        return []
    key, width = lane.keys[view.index], view.size.width
    layer = layers[key] if 0 <= key < len(layers) else None
    event = view.event_at_cursor()
    if event is not None:
        return event_lines(event, layer, width)[:room]
    if layer is None:
        return []
    start, took = lane.starts[view.index], lane.self_times[view.index]
    lines = layer_lines(layer, start, took, width)
    kernels = view.timeline.kernels_of(key)
    if kernels:
        lines[2:2] = [kernels_line(kernels, width)]
    return lines[:room]


def kernels_line(kernels: Sequence[GpuEvent], width: int) -> Line:
    """Return a layer's kernels in this pass on one line, the longest first."""
    total = sum(kernel.duration_us for kernel in kernels)
    times: dict[str, list[float]] = {}
    for kernel in kernels:
        times.setdefault(kernel.name, []).append(kernel.duration_us)
    ordered = sorted(times.items(), key=lambda item: -sum(item[1]))
    parts = [
        f"{time_text(sum(took))} {visible(kernel_name(name))}{_times(len(took))}"
        for name, took in ordered
    ]
    head = f"{time_text(total)} in {fmt.plural(len(kernels), 'kernel')}"
    dot = f" {glyphs.current().dot} "
    text = clip(dot.join(parts), max(width - len(head) - 12, 8))
    return [("   GPU  ", "dim"), (head, "number"), ("  ", ""), (text, "")]


def _times(count: int) -> str:
    return f"×{count}" if count > 1 else ""


def event_lines(event: GpuEvent, layer: Layer | None, width: int) -> list[Line]:
    """Return lines about a kernel, a copy or other work of a GPU.

    Args:
        event: The work.
        layer: Whose it is, when that is known.
        width: Cells.
    """
    name = visible(event.name) or event.kind
    first: Line = [
        (f" {glyphs.current().cursor} ", "accent"),
        (f"{event.kind}  ", "dim"),
        (clip(name, max(width - 14, 8)), "strong"),
    ]
    second: Line = [
        ("   at ", "dim"),
        (time_text(event.start_us), ""),
        (" for ", "dim"),
        (time_text(event.duration_us), "number"),
        ("  on ", "dim"),
        (visible(event.stream), ""),
    ]
    if event.bytes is not None:
        rate = event.bytes / event.duration_us / 1000 if event.duration_us > 0 else None
        second += [("  ", ""), (fmt.size(event.bytes), "number")]
        second += [] if rate is None else [(f" at {rate:,.1f} GB/s", "dim")]
    details = "  ".join(f"{visible(str(k))} {_detail(v)}" for k, v in event.details.items())
    lines = [first, second]
    if layer is not None:
        lines.append(_layer_line(layer, width))
        lines.append([("   ONNX ", "dim"), (node_names(layer), "link")])
    elif event.kind == "kernel":
        lines.append([("   not attributed to a layer", "dim")])
    if details:
        lines.append([("   ", ""), (clip(details, max(width - 4, 8)), "dim")])
    return lines


def _layer_line(layer: Layer, width: int) -> Line:
    gpu = fmt.milliseconds(layer.gpu_time_ms)
    name = clip(visible(layer.name), max(width - 56, 12), keep="end")
    return [
        ("   of   ", "dim"),
        (name, ""),
        ("  ", ""),
        (clip(visible(layer.type), 20, keep="middle"), operator_style(layer.type)),
        ("  GPU ", "dim"),
        (f"{gpu} ms", "number"),
        (" a pass", "dim"),
    ]


def _detail(value: JSON) -> str:
    if isinstance(value, list):
        return "x".join(visible(str(part)) for part in value)
    return visible(str(value))
