"""What is beside a tensor's grid: its statistics and the histogram of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dld_tui.core import fmt
from dld_tui.core.document.statistics import TensorStatistics
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.tensors.histogram import Histogram, tensor_histogram
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_LEVELS, LEVELS, columns
from dld_tui.widgets.blocks import Line, block, flow
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.tensor_preview import number

_BINS = 240
"""Bins of a histogram: many, so that charts of different widths can bring them together evenly."""
_MOST_INTEGERS = 1024
"""Integers in so small a range get a bin each."""
_LABEL = 8
_CHART_ROWS = 8
_LEAST_CHART_ROWS = 3


@dataclass
class SideState:
    """How far the reading of the statistics is, and what came of it."""

    state: str = "new"
    """``new``, ``ask`` (large: read on request), ``reading``, ``done`` or ``failed``."""
    fraction: float = 0.0
    statistics: TensorStatistics | None = None
    histogram: Histogram | None = None
    problem: str = ""
    size: int | None = None
    """Bytes that are to be read."""


class TensorSide(Frame, Rows):
    """The pane."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = SideState()

    def on_mount(self) -> None:
        """Draw the frame."""
        self.frame("Statistics")

    def show(self, state: SideState) -> None:
        """Show how far it is, or the figures."""
        self.state = state
        self.refresh()

    def content(self, width: int) -> Sequence[Line]:
        """Return the figures, and the histogram below or beside them."""
        state, shown = self.state, glyphs.current()
        if state.state == "failed":
            return [[(f"{shown.error} ", "bad"), (visible(state.problem), "bad")]]
        if state.state == "ask":
            return [[("s", "key"), (f" reads {fmt.size(state.size)}", "dim")]]
        if state.state in ("new", "reading"):
            return [[(f"reading … {state.fraction:.0%}", "dim")], [("Esc stops", "faint")]]
        if state.statistics is None:
            return [[("No figures for this element type", "dim")]]
        figures = figure_lines(state.statistics)
        height = self.size.height
        beside = width >= 70
        rows = height - 3 if beside else height - len(figures) - 4
        is_flat = state.statistics.minimum == state.statistics.maximum
        if state.histogram is None or is_flat or rows < _LEAST_CHART_ROWS:
            return figures
        room = width - 30 if beside else width
        chart = chart_lines(state.histogram, room, min(_CHART_ROWS, rows))
        if beside:
            return flow([block(figures, 27), block(chart, room)], width)
        return [*figures, [], *chart]


def figure_lines(found: TensorStatistics) -> list[Line]:
    """Return the figures, one a line."""
    if not found.count:
        return [[("No elements", "dim")]]
    share = f" ({found.zeros / found.count:.1%})" if found.zeros else ""
    rows: list[tuple[str, str, str]] = [
        ("min", number(found.minimum), ""),
        ("max", number(found.maximum), ""),
        ("mean", number(found.mean), ""),
        ("std", number(found.std), ""),
        ("zeros", f"{found.zeros:,}{share}", "" if found.zeros else "faint"),
        ("NaN", f"{found.nans:,}", "warn" if found.nans else "faint"),
        ("Inf", f"{found.infinities:,}", "warn" if found.infinities else "faint"),
        ("count", f"{found.count:,}", ""),
    ]
    return [[(label.ljust(_LABEL), "dim"), (text, style)] for label, text, style in rows]


def chart_lines(found: Histogram, width: int, rows: int) -> list[Line]:
    """Return the histogram, its axis and what its highest bar counts."""
    ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
    counts = merged(found.counts, width)
    bars = columns([float(count) or None for count in counts], rows, ramp=ramp)
    low, high = number(found.statistics.minimum), number(found.statistics.maximum)
    gap = max(1, len(counts) - len(low) - len(high))
    top = max(counts, default=0)
    lines: list[Line] = [[(f"at most {fmt.short_count(top)} a bar", "faint")]]
    lines += [[(bar, "bar")] for bar in bars]
    lines.append([(low + " " * gap + high, "dim")])
    return lines


def merged(counts: Sequence[int], most: int) -> list[int]:
    """Return at most `most` counts, each of the same number of neighbouring bins."""
    if most <= 0:
        return []
    each = -(-len(counts) // most)
    return [sum(counts[at : at + each]) for at in range(0, len(counts), each)]


def read_histogram(
    tensor: Tensor,
    found: TensorStatistics,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Histogram | None:
    """Count a tensor's values; integers in a small range get a bin each.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    low, high = found.minimum, found.maximum
    is_whole = "float" not in tensor.dtype
    if low is None or high is None or not is_whole or high - low >= _MOST_INTEGERS:
        return tensor_histogram(
            tensor, _BINS, statistics=found, progress=progress, cancelled=cancelled
        )
    return tensor_histogram(
        tensor,
        int(high - low) + 1,
        low=low - 0.5,
        high=high + 0.5,
        statistics=found,
        progress=progress,
        cancelled=cancelled,
    )
