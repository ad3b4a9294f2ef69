"""The meaning of colours in the graph: kind of work, precision, findings, weights, time.

An overlay answers for a range of rows, so that a fold shows the sum of what is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.text import visible
from dld_tui.widgets.charts.bars import HEATS, heat, hottest
from dld_tui.widgets.graph.state import LEVEL_STYLES, LEVELS, GraphNotes, ViewedGraph
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell import glyphs

_MOST_ROWS = 400
"""Rows of a fold whose precisions are looked at, the first ones."""


class Overlay:
    """The colours of operators, which is what the graph shows when nothing else is asked for."""

    name = "operators"
    has_text = False
    """Whether rows end with :meth:`text`."""
    figures: Mapping[Any, float] = MappingProxyType({})
    """The figures of nodes, where it shows such of each."""
    has_bar = False
    """Whether :meth:`value` is the length of a bar."""

    def value(self, start: int, end: int) -> float:
        """Return the figure of some rows, 0 for none."""
        return 0.0

    def shown(self, value: float) -> str:
        """Return a figure as text."""
        return f"{value:g}"

    def style(self, start: int, end: int) -> str | None:
        """Return the style of some rows; None for the colour of the operator."""
        return None

    def text(self, start: int, end: int) -> str:
        return ""

    @property
    def legend(self) -> str:
        """What the colours mean, for the title; empty when it needs no words."""
        return ""

    def forget_types(self) -> None:
        """Ask for the types of values again."""


class PrecisionOverlay(Overlay):
    """The precision that layers are set to, else the type that they make."""

    name = "precision"
    has_text = True

    def __init__(self, model: ViewedGraph) -> None:
        self.model = model
        self._known: dict[tuple[int, int], Counter[Piece]] = {}

    def forget_types(self) -> None:
        """Ask for the types of values again."""
        self._known.clear()

    def style(self, start: int, end: int) -> str | None:
        """Return the style of the precision; of several, of the most common one."""
        counts = self._counts(start, end)
        return counts.most_common(1)[0][0][1] if counts else "faint"

    def text(self, start: int, end: int) -> str:
        counts = self._counts(start, end)
        if not counts:
            return ""
        more = f" +{len(counts) - 1}" if len(counts) > 1 else ""
        return counts.most_common(1)[0][0][0][: 9 - len(more)] + more

    def _counts(self, start: int, end: int) -> Counter[Piece]:
        known = self._known.get((start, end))
        if known is None:
            model = self.model
            rows = range(start, min(end, start + _MOST_ROWS))
            precisions = (model.precision(model.overview.rails.order[row]) for row in rows)
            known = self._known[start, end] = Counter(
                precision for precision in precisions if precision is not None
            )
        return known


class FindingsOverlay(Overlay):
    """Where the faults are."""

    name = "findings"

    def __init__(self, notes: GraphNotes) -> None:
        self.notes = notes

    def style(self, start: int, end: int) -> str | None:
        """Return the style of the worst finding."""
        return LEVEL_STYLES.get(self.notes.level(start, end), "faint")

    @property
    def legend(self) -> str:
        """How many nodes have errors, and warnings."""
        shown = glyphs.current()
        count = len(self.notes.model.overview.rails.order)
        signs = zip(LEVELS, (shown.error, shown.warning), strict=True)
        return "  ".join(f"{sign} {self.notes.findings(level, 0, count)}" for level, sign in signs)


class HeatOverlay(Overlay):
    """A figure of each row, as heat; folds have the sum of theirs."""

    has_text = has_bar = True

    def __init__(
        self, name: str, legend: str, own: Sequence[float], parts: Sequence[float]
    ) -> None:
        self.name = name
        self._legend = legend
        self._own = own
        self._before = list(accumulate(parts, initial=0.0))
        self._hot = hottest(value for value in own if value)

    def value(self, start: int, end: int) -> float:
        """Return the sum of some rows."""
        if end - start == 1:
            return self._own[start]
        return self._before[end] - self._before[start]

    def style(self, start: int, end: int) -> str | None:
        """Return the heat."""
        value = self.value(start, end)
        return HEATS[heat(value, self._hot)] if value else "faint"

    def text(self, start: int, end: int) -> str:
        value = self.value(start, end)
        return self.shown(value) if value else ""

    def shown(self, value: float) -> str:
        return fmt.size(round(value))

    @property
    def legend(self) -> str:
        """The sum, and what it is the sum of."""
        return f"{self.shown(self._before[-1])}{self._legend}"


class TimeOverlay(HeatOverlay):
    """The time of each node in a report."""

    name = "time"

    def shown(self, value: float) -> str:
        """Return milliseconds; ``fused`` for a node whose time another one of its layer has."""
        if not value:
            return "fused"
        return f"{value:.3f} ms" if value < 100 else f"{value:,.0f} ms"


class CostOverlay(HeatOverlay):
    """The operations that each node computes, by the shapes."""

    name = "FLOPs"

    def shown(self, value: float) -> str:
        """Return the operations."""
        return fmt.short_count(value)


class ErrorOverlay(HeatOverlay):
    """How far each node's results are from a reference, in parts of their size."""

    def value(self, start: int, end: int) -> float:
        """Return the largest of some rows."""
        return max(self._own[start:end], default=0.0)  # a sum of errors would say nothing

    def shown(self, value: float) -> str:
        """Return the error; what is as large as the values, or NaN, is ``100 %``."""
        return "100 %" if value >= 1 else f"{value:.1e}"

    @property
    def legend(self) -> str:
        """The largest error, and where it comes from."""
        return f"up to {self.shown(max(self._own, default=0.0))}{self._legend}"


class QuantizedOverlay(Overlay):
    """Around which nodes tensors are quantized, or would be."""

    name = "quantized"
    has_text = True

    def __init__(self, own: Sequence[float], title: str) -> None:
        self._own = own
        self._title = title

    def style(self, start: int, end: int) -> str | None:
        """Return that of what is quantized."""
        return "accent" if any(self._own[start:end]) else "faint"

    def text(self, start: int, end: int) -> str:
        """Return how many tensors of one node are, or of how many nodes of a fold some are."""
        values = self._own[start:end]
        count = round(values[0]) if len(values) == 1 else sum(map(bool, values))
        if not count:
            return ""
        return f"{count} Q/DQ" if len(values) == 1 else f"{count:,} of {len(values):,}"[:9]

    @property
    def legend(self) -> str:
        """Of how many nodes tensors are quantized."""
        return f"{fmt.plural(sum(map(bool, self._own)), 'node')}{self._title}"


def quantized_overlay(
    model: ViewedGraph, counts: Mapping[Any, float], title: str
) -> QuantizedOverlay | None:
    """Return around which nodes tensors are quantized; None when there is none in this graph."""
    own = model.row_times(counts)
    return QuantizedOverlay(own, title) if any(own) else None


def memory_overlay(model: ViewedGraph) -> HeatOverlay | None:
    """Return the bytes as heat; None when there are none, or they are not known yet."""
    known = model.memory_heat
    if isinstance(known, HeatOverlay):
        return known
    memory = model.memory()
    if memory is None:
        return None
    model.memory_heat = overlay = HeatOverlay(model.memory_name, "", *memory)
    return overlay


def time_overlay(model: ViewedGraph, times: Mapping[Any, float], title: str) -> TimeOverlay | None:
    """Return the times of nodes, in milliseconds, as heat; None when none is known of this graph.

    Args:
        model: The graph.
        times: By what its vertices stand for, and what is inside of that.
        title: Where they come from. Untrusted text.
    """
    own = model.row_times(times)
    overlay = TimeOverlay(TimeOverlay.name, f" in {visible(title)}", own, own)
    overlay.figures = times
    return overlay if any(own) else None


def cost_overlay(model: ViewedGraph, flops: Mapping[Any, float], title: str) -> CostOverlay | None:
    """Return the operations of nodes as heat; None when none is known of this graph."""
    own = model.row_times(flops)
    overlay = CostOverlay(CostOverlay.name, f" FLOPs{title}", own, own)
    overlay.figures = flops
    return overlay if any(own) else None


def error_overlay(
    model: ViewedGraph, errors: Mapping[Any, float], title: str
) -> ErrorOverlay | None:
    """Return the errors of nodes as heat; None when none is known of this graph."""
    own = model.row_times(errors)
    overlay = ErrorOverlay("errors", f" in {visible(title)}", own, own)
    overlay.figures = errors
    return overlay if any(own) else None


def overlays_of(
    model: ViewedGraph,
    notes: GraphNotes,
    times: Mapping[Any, float],
    title: str,
    errors: tuple[Mapping[Any, float], str] = ({}, ""),
    quantized: tuple[Mapping[Any, float], str] = ({}, ""),
    flops: tuple[Mapping[Any, float], str] = ({}, ""),
) -> list[Overlay]:
    """Return what can be shown of a graph, in the order of the key."""
    overlays: list[Overlay | None] = [
        Overlay(),
        PrecisionOverlay(model),
        FindingsOverlay(notes) if notes.has_findings else None,
        memory_overlay(model),
        cost_overlay(model, *flops) if flops[0] else None,
        time_overlay(model, times, title) if times else None,
        error_overlay(model, *errors) if errors[0] else None,
        quantized_overlay(model, *quantized) if quantized[0] else None,
    ]
    return [overlay for overlay in overlays if overlay is not None]
