"""The timeline of a pass as inline SVG: threads, GPU streams, and counters under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dld_tui.core.report.html.charts import WIDTH, axis_marks, scale, svg
from dld_tui.core.report.html.page import number, short, text

_LEFT, _RIGHT = 150, WIDTH - 10
_TALL, _GAP = 20, 3
_THIN = 0.8
"""Spans narrower than this are drawn together."""
_LETTER = 6.6
_MOST_DEPTHS = 16
_GRAPH_TALL = 44
_DARK = frozenset({"h3", "h4", "s0", "s1", "s2", "s3"})
"""Styles that text needs the page's other colour on."""


@dataclass(frozen=True)
class Span:
    """One bar; times in microseconds since the start of the pass."""

    start_us: float
    duration_us: float
    name: str
    """Foreign text."""
    style: str
    """A class of the page: h0 to h4 by cost, s0 to s3, or quiet."""
    depth: int = 0


@dataclass(frozen=True)
class Lane:
    """A thread or a stream."""

    title: str
    spans: Sequence[Span]


@dataclass(frozen=True)
class Graph:
    """A counter over the pass: a value or None for each of equally long parts."""

    title: str
    values: Sequence[float | None]
    top: float
    """The value at full height."""
    shown: str
    """The highest value as people read it."""


def timeline(lanes: Sequence[Lane], graphs: Sequence[Graph], length_us: float) -> str:
    """Return a drawing; empty text when nothing ran."""
    lanes = [lane for lane in lanes if lane.spans]
    if not lanes or length_us <= 0:
        return ""
    axis = scale(0.0, length_us / 1000, _LEFT, _RIGHT)
    parts, top = [], 4.0
    for lane in lanes:
        parts.append(_title(lane.title, top))
        deepest = min(_MOST_DEPTHS, max(span.depth for span in lane.spans) + 1)
        for depth in range(deepest):
            row = [span for span in lane.spans if span.depth == depth]
            parts += _row(row, length_us, top)
            top += _TALL + _GAP
        top += _GAP
    for graph in graphs:
        parts += [_title(graph.title, top), _area(graph, top)]
        parts.append(f'<text class="soft" x="{_LEFT - 8}" y="{number(top + 28)}"'
                     f' text-anchor="end">{text(graph.shown)}</text>')  # fmt: skip
        top += _GRAPH_TALL + 2 * _GAP
    parts.append(axis_marks(axis, top + 2, "ms"))
    return svg(top + 36, parts, "timeline")


def _title(title: str, top: float) -> str:
    return (
        f'<text x="{_LEFT - 8}" y="{number(top + 14)}" text-anchor="end">'
        f"<title>{text(title)}</title>{text(short(title, 22))}</text>"
    )


def _row(spans: Sequence[Span], length_us: float, top: float) -> list[str]:
    """Draw spans of one depth; neighbours too narrow to be seen become one quiet bar."""
    axis = scale(0.0, length_us, _LEFT, _RIGHT)
    parts: list[str] = []
    thin: list[Span] = []
    end = 0.0

    def flush() -> None:
        if not thin:
            return
        left, right = axis.at(thin[0].start_us), max(end, axis.at(thin[0].start_us) + _THIN)
        title = thin[0].name if len(thin) == 1 else f"{len(thin):,} short ones"
        total = sum(span.duration_us for span in thin)
        style = thin[0].style if len(thin) == 1 else "quiet"
        parts.append(_rect(left, right - left, top, style, f"{title}: {total / 1000:.4g} ms"))
        thin.clear()

    for span in sorted(spans, key=lambda one: (one.start_us, -one.duration_us)):
        left, right = axis.at(span.start_us), axis.at(span.start_us + span.duration_us)
        if right - left < _THIN:
            if thin and left - end > _THIN:
                flush()
            thin.append(span)
            end = max(end, right) if len(thin) > 1 else right
            continue
        flush()
        title = f"{span.name}: {span.duration_us / 1000:.4g} ms"
        parts.append(_rect(left, right - left, top, span.style, title))
        letters = int((right - left - 6) / _LETTER)
        if letters >= 4:
            style = ' class="on"' if span.style in _DARK else ""
            name = span.name.rstrip("/").rpartition("/")[2] or span.name
            parts.append(
                f'<text{style} x="{number(left + 3)}" y="{number(top + 14)}">'
                f"{text(short(name, letters))}</text>"
            )
    flush()
    return parts


def _rect(left: float, width: float, top: float, style: str, title: str) -> str:
    return (
        f'<rect class="{text(style)}" x="{number(left)}" y="{number(top)}"'
        f' width="{number(max(width, 0.3))}" height="{_TALL}"><title>{text(title)}</title></rect>'
    )


def _area(graph: Graph, top: float) -> str:
    """Draw a counter; parts without a sample stay open."""
    step = (_RIGHT - _LEFT) / max(1, len(graph.values))
    base = top + _GRAPH_TALL
    places = [
        (_LEFT + (at + 0.5) * step, base - _GRAPH_TALL * min(1.0, max(0.0, value / graph.top)))
        for at, value in enumerate(graph.values)
        if value is not None
    ]
    runs: list[list[tuple[float, float]]] = [places[:1]] if places else []
    for before, now in pairwise(places):
        if now[0] - before[0] > 1.5 * step:
            runs.append([])
        runs[-1].append(now)
    made = []
    for run in runs:
        first, last = run[0][0] - step / 2, run[-1][0] + step / 2
        points = [(first, base), (first, run[0][1]), *run, (last, run[-1][1]), (last, base)]
        drawn = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        made.append(f'<polygon class="area" points="{drawn}"/>')
    return "".join(made)
