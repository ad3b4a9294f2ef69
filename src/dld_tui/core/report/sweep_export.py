"""A sweep for people: its lines and table, and the table as HTML and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.report.sweep import (
    BATCH,
    THREADS,
    Knee,
    Sweep,
    SweepAxis,
    SweepPoint,
    knees,
)
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.html_page import Bar, Section, bars, page, paragraphs
from dld_tui.core.tables.rendering import html_of, markdown_of, markdown_plain
from dld_tui.core.tables.table import BYTES, COUNT, MS, NOTE, RATE, TEXT, Column, Table, figure_text
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_FIGURES = ("first_ms", "ms", "low_ms", "high_ms", "per_second")
"""Columns that JSON has, too."""
_MOST_SERIES = 16
"""Combinations in a picture."""
_MOST_LINES = 3
"""Groups of points, and knees, that are told in sentences; the table has the others."""


def drawn_axis(sweep: Sweep) -> SweepAxis | None:
    """Return the axis to draw over: the batch, else that of most sizes; None without any."""
    ran = [point for point in sweep.points if point.ms is not None]
    sizes = {axis: len({sweep.value(point, axis.name) for point in ran}) for axis in sweep.axes}
    axes = [axis for axis in sweep.axes if axis.has_sizes and sizes[axis] > 1]
    return max(axes, key=lambda axis: (axis.name == BATCH, sizes[axis]), default=None)


def sweep_table(sweep: Sweep) -> Table[SweepPoint]:
    """Return a row a point: its values, latency with interval, throughput, and what to know."""
    turning = {knee.point for knee in knees(sweep)}
    columns: list[Column[SweepPoint]] = [
        Column(
            axis.name,
            visible(axis.name),
            lambda point, at=at: point.at[at],  # type: ignore[misc]
            COUNT if axis.has_sizes else TEXT,
            max(8, len(visible(axis.name))),
        )
        for at, axis in enumerate(sweep.axes)
    ]
    if sweep.tokens:
        columns.append(
            Column("first_ms", "first token", lambda point: point.first_ms, MS, 11, heat=True)
        )
    columns += [
        Column("ms", "a token" if sweep.tokens else "ms", lambda point: point.ms, MS, 10,
               heat=True),
        Column("low_ms", "from", lambda point: point.low_ms, MS, 10, priority=2),
        Column("high_ms", "to", lambda point: point.high_ms, MS, 10, priority=2),
        Column("per_second", sweep.unit, sweep.throughput, RATE, 10),
        Column("memory_bytes", "memory", lambda point: point.memory_bytes, BYTES, 9,
               help="Activations at the peak of a pass."),
        Column("knee", "", lambda point: "knee" if point in turning else "", NOTE, 4,
               priority=1),
        Column("problem", "why not", lambda point: point.problem, NOTE, least=12),
    ]  # fmt: skip
    has_memory = any(point.memory_bytes is not None for point in sweep.points)
    present = {
        "knee": bool(turning),
        "memory_bytes": has_memory,
        "problem": any(point.problem for point in sweep.points),
    }
    shown = [column for column in columns if present.get(column.key, True)]
    return Table(tuple(shown), sweep.points, name="sweep", title="Points")


def sweep_document(sweep: Sweep) -> dict[str, JSON]:
    """Return what ``--json`` prints: the sweep with its lines, and with the figures of its table.

    Those are ``ms``, ``low_ms`` and ``high_ms``, ``per_second``, ``first_ms`` of decoders, and
    whether a point is a ``knee``.
    """
    turning = {knee.point for knee in knees(sweep)}
    figures = [column for column in sweep_table(sweep).columns if column.key in _FIGURES]
    points = [
        encode(point)
        | {column.key: column.value(point) for column in figures}
        | {"knee": point in turning}
        for point in sweep.points
    ]
    document: dict[str, JSON] = {
        **encode(sweep), "points": points, "lines": [*sweep_lines(sweep)]
    }  # fmt: skip
    return document


def sweep_lines(sweep: Sweep) -> list[str]:
    """Return the answer first: the best points and the knees; then what failed and how it ran."""
    groups = [*sweep.same_work.items()]
    lines = [_best(sweep, work, points) for work, points in groups[:_MOST_LINES]]
    more = len(groups) - _MOST_LINES
    if more > 0:
        lines.append(
            f"{fmt.plural(more, 'more size')} in the table; items of other sizes are other work,"
            " and their throughputs are not compared."
        )
    all_knees = knees(sweep)
    lines += [_knee_line(sweep, one) for one in all_knees[:_MOST_LINES]]
    if len(all_knees) > _MOST_LINES:
        lines.append(
            f"{fmt.plural(len(all_knees) - _MOST_LINES, 'more knee')} (a {all_knees[0].axis} each,"
            " all else fixed): marked in the table."
        )
    failed = [point for point in sweep.points if point.problem]
    if failed:
        text = f"{fmt.plural(len(failed), 'point')} not measured: {failed[0].problem}"
        lines.append(f"{text}{', …' if len({point.problem for point in failed}) > 1 else ''}")
    ran = sum(map(len, sweep.same_work.values()))
    lines.append(
        f"{fmt.plural(ran, 'point')} in turns, {visible(sweep.backend)};"
        f" {fmt.duration(sweep.seconds)}, of these {fmt.duration(sweep.measured_s)} measuring"
        + (f"; first point {sweep.fixed}" if sweep.fixed else "")
    )
    return lines


def _best(
    sweep: Sweep, work: tuple[tuple[str, int | str], ...], points: Sequence[SweepPoint]
) -> str:
    """Return the lowest latency and the highest throughput among items of the same work.

    Each is called not certain where the interval of another point reaches into its own.
    """
    names = [name for name, _ in work]
    fastest = min(points, key=lambda point: point.ms or 0.0)
    most = max(points, key=lambda point: sweep.throughput(point) or 0.0)
    at, others = place_text(work), place_text(sweep.others(fastest, *names))
    text = f"At {at}: lowest latency" if at else "Lowest latency"
    text += f" {fmt.milliseconds(fastest.ms or 0.0)} ms{' a token' if sweep.tokens else ''}"
    text += f" at {others}" if others else ""
    text += _doubt(points, fastest, lambda point: 1)
    if fastest.first_ms is not None:
        text += f" (first token after {fmt.milliseconds(fastest.first_ms)} ms)"
    if any(axis.name == BATCH for axis in sweep.axes):
        rate = _rate(sweep, sweep.throughput(most) or 0.0)
        text += f"; highest throughput {rate} at {place_text(sweep.others(most, *names))}"
        text += _doubt(points, most, sweep.items)
    return f"{text}."


def _doubt(
    points: Sequence[SweepPoint], best: SweepPoint, items: Callable[[SweepPoint], int]
) -> str:
    """Return that another point may be as good as the best one, by the intervals of both.

    Args:
        points: The best one among them.
        best: Takes the least time for an item.
        items: Returns how many a pass is to count for.
    """
    limit = (best.high_ms or 0.0) / items(best)
    others = (point for point in points if point is not best and point.low_ms is not None)
    return " (not certain)" if any((p.low_ms or 0.0) / items(p) < limit for p in others) else ""


def _knee_line(sweep: Sweep, knee: Knee) -> str:
    more = {BATCH: "larger batches", THREADS: "more threads"}[knee.axis]
    beyond = f"; {more} may give more" if knee.is_last else ""
    named = f"Batch {knee.at}" if knee.axis == BATCH else fmt.plural(knee.at, "thread")
    fixed = f" ({place_text(knee.fixed)})" if knee.fixed else ""
    verb = "has" if knee.axis == BATCH or knee.at == 1 else "have"
    doubt = "" if knee.is_certain else " (not certain)"
    if knee.throughput == knee.best:
        part = f"the highest throughput, {_rate(sweep, knee.best)}"
    else:
        percent = fmt.percent(share_percent(knee.throughput, knee.best))
        rates = f"{figure_text(knee.throughput)} of {_rate(sweep, knee.best)}"
        part = f"{percent} % of the highest throughput, {rates}"
    return f"{named}{fixed} {verb} {part}{doubt}{beyond}."


def place_text(values: Sequence[tuple[str, int | str]]) -> str:
    """Return (axis, value) pairs in words, fit for a terminal."""
    return ", ".join(f"{visible(name)} {visible(str(value))}" for name, value in values)


def _rate(sweep: Sweep, rate: float) -> str:
    return f"{figure_text(rate)} {sweep.unit}"


def _title(sweep: Sweep) -> str:
    return f"Sweep of {Path(sweep.model).name}"


def sweep_page(sweep: Sweep) -> str:
    """Return the result as one HTML page. The same result gives the same bytes."""
    lines = [(line, "info") for line in sweep_lines(sweep)]
    latency = _bars(sweep, "ms", lambda point: point.ms)
    first = _bars(sweep, "ms", lambda point: point.first_ms)
    sections = [
        Section("answer", "In short", paragraphs(lines)),
        Section("throughput", "Throughput", _bars(sweep, sweep.unit, sweep.throughput)),
        Section("first", "Time to the first token", first),
        Section("latency", "Time of a token" if sweep.tokens else "Latency", latency),
        Section("points", "Points", html_of("sweep-table", sweep_table(sweep))),
    ]
    return page(_title(sweep), [sweep.backend], "", sections)


def _bars(sweep: Sweep, unit: str, figure_of: Callable[[SweepPoint], float | None]) -> str:
    """Return a row of bars a size, with a bar for each combination of the other values."""
    axis = drawn_axis(sweep)
    groups = {} if axis is None else sweep.alike(axis.name)
    if axis is None or not 0 < len(groups) <= _MOST_SERIES:
        return ""
    figures = [
        {sweep.value(point, axis.name): figure_of(point) for point in points}
        for points in groups.values()
    ]
    rows = []
    for size in axis.values:
        values = tuple(own.get(size) for own in figures)
        shown = tuple("" if one is None else f"{figure_text(one)} {unit}" for one in values)
        rows.append(Bar(place_text([(axis.name, size)]), values, shown))
    return bars(rows, [place_text(fixed) for fixed in groups])


def sweep_markdown(sweep: Sweep) -> str:
    """Return the result as Markdown."""
    lines = [f"### {markdown_plain(_title(sweep))}", ""]
    for line in sweep_lines(sweep):
        lines += [markdown_plain(line), ""]
    return "\n".join(lines) + "\n" + markdown_of(sweep_table(sweep))
