"""The lines of a timeline that are text: overview, axis, measure, what took longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dld_tui.core.text import clip, fit
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_LEVELS, LEVELS, columns
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.timeline_model import Measure
from dld_tui.widgets.timescale import TimeScale, axis, time_text

TITLE_CELLS = 10
"""The names of the lanes, at the left."""


def overview_line(
    longest: Sequence[float | None], scale: TimeScale, title: int = TITLE_CELLS
) -> list[Piece]:
    """Return the whole pass as a sparkline with the window marked in it."""
    ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
    levels = columns(longest, 1, ramp=ramp)[0]
    per_cell = scale.total_us / max(len(levels), 1)
    first = round(scale.offset_us / per_cell)
    last = max(round(scale.end_us / per_cell), first + 1)
    window = "bar window" if scale.zoom > 1.001 else "bar"
    return [
        (fit("longest", title), "dim"),
        (levels[:first], "bar"),
        (levels[first:last], window),
        (levels[last:], "bar"),
    ]


def axis_line(scale: TimeScale, title: int = TITLE_CELLS) -> list[Piece]:
    """Return the zoom, the ticks and their unit."""
    found = axis(scale)
    line = [" "] * scale.cells
    for cell, label in found.ticks:
        line[cell : cell + len(label)] = label
    text = "".join(line).rstrip()
    room = scale.cells - len(text) - len(found.unit)
    zoom = scale.zoom
    times = "" if zoom < 1.005 else f"{zoom:.1f}x" if zoom < 10 else f"{zoom:,.0f}x"
    unit = " " * room + found.unit if room > 0 else ""
    return [(fit(times, title), "dim"), (text, "axis"), (unit, "faint")]


def measure_text(found: Measure) -> str:
    """Return how long a measure is and what was busy in it."""
    plural = "layer" if found.layers == 1 else "layers"
    busy = [] if found.on_gpu else [f"{time_text(found.self_us)} busy"]
    if found.gpu_us is not None:
        share = 100 * found.gpu_us / found.length_us if found.length_us > 0 else 0.0
        busy.append(f"GPU {time_text(found.gpu_us)} busy ({share:.0f} %)")
    return f" {time_text(found.length_us)}: {found.layers} {plural}, {', '.join(busy)} "


def measure_line(found: Measure, scale: TimeScale, title: int = TITLE_CELLS) -> list[Piece]:
    """Return a bracket between two marks, with the time and the layers between them."""
    text = measure_text(found)
    left = max(round(scale.cell_of(found.start_us)), 0)
    right = min(round(scale.cell_of(found.end_us)), scale.cells)
    width = max(right - left, 0)
    begin, line, end = "|-|" if glyphs.current().name == "ascii" else "├─┤"
    if width >= len(text) + 4:
        side = width - len(text) - 2
        bracket = begin + line * (side // 2) + text + line * (side - side // 2) + end
    else:
        bracket = (begin + line * (width - 2) + end if width >= 2 else begin) + text
        left = max(min(left, scale.cells - len(bracket)), 0)
    return [(fit("measure", title) + " " * left, "dim"), (bracket, "measure")]


def longest_lines(
    longest: Sequence[tuple[float, int]],
    names: Mapping[int, tuple[str, ...]],
    width: int,
    title: int = TITLE_CELLS,
) -> list[list[Piece]]:
    """Return a title and a line for each (self time in microseconds, key of its name)."""
    blank: Piece = (" " * title, "")
    lines: list[list[Piece]] = [[blank, ("longest in view", "dim")]]
    for length, key in longest:
        name, *_, kind = names.get(key) or ("", "")
        lines.append(
            [
                blank,
                (f"{time_text(length):>9}  ", "number"),
                (fit(kind, 18, keep="middle") + "  ", operator_style(kind)),
                (clip(name, max(width - 32 - title, 8), keep="end"), ""),
            ]
        )
    return lines
