"""What is known of one layer, for the lines below the timeline."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.report.records import Layer
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.layer_columns import (
    node_names,
    precision_style,
    runs,
    shapes,
    short_precision,
    short_provider,
)
from dld_tui.widgets.operator_style import layer_style
from dld_tui.widgets.timescale import time_text


def layer_lines(layer: Layer, start_us: float, self_us: float, width: int) -> list[Line]:
    """Return lines about a layer, the most telling first.

    Args:
        layer: The layer.
        start_us: When the span under the cursor began, since the start of the pass.
        self_us: What it took itself.
        width: Cells.
    """
    figures = f"{fmt.milliseconds(layer.time_ms)} ms  {fmt.percent(layer.percent)} %"
    kind = clip(visible(layer.type), 24, keep="middle")
    room = max(width - cell_width(figures) - cell_width(kind) - 8, 8)
    name = clip(visible(layer.name), room, keep="end")
    first: Line = [
        (f" {glyphs.current().cursor} ", "accent"),
        (name, "strong"),
        ("  ", ""),
        (kind, layer_style(layer.type)),
        ("  ", ""),
        (figures, "number"),
    ]
    second: Line = [
        ("   at ", "dim"),
        (time_text(start_us), ""),
        (" for ", "dim"),
        (time_text(self_us), "number"),
        ("  min ", "dim"),
        (fmt.milliseconds(layer.min_ms), ""),
        ("  max ", "dim"),
        (fmt.milliseconds(layer.max_ms), ""),
        ("  runs ", "dim"),
        (runs(layer), ""),
        ("  ", ""),
        (short_provider(layer.provider), "dim"),
        ("  ", ""),
        (short_precision(layer.precision), precision_style(layer.precision)),
    ]
    third: Line = [("   ONNX ", "dim"), (node_names(layer), "link")]
    fourth: Line = [("   in  ", "dim"), (shapes(layer.input_dims), "")]
    fifth: Line = [("   out ", "dim"), (shapes(layer.output_dims), "")]
    return [first, second, third, fourth, fifth]
