"""The result of a sweep: the answer, a chart over sizes with the knees, and a row a point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dld_tui.core.compare.matching import METHOD
from dld_tui.core.compare.records import label
from dld_tui.core.compare.sweeps import SweepComparison, point_table
from dld_tui.core.report.sweep import (
    BATCH,
    PROMPT,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    knee_axis,
    knees,
    load_sweep,
)
from dld_tui.core.report.sweep_export import drawn_axis, place_text, sweep_lines, sweep_table
from dld_tui.core.tables.table import figure_text
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.results.table import TableResult
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.charts.plots import Axis, Marks, Plot, Spot


def of_sweep(result: Sweep, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of what a job found."""
    page = TableResult(
        f"sweep of {Path(result.model).name}", sweep_lines(result), sweep_table(result),
        _plot(result), about_row=lambda point: point.problem,
    )  # fmt: skip
    page.path = Path(result.report) if result.report else None
    return page


def open_sweep(path: Path) -> TableResult:
    """Return the page of a file.

    Raises:
        InputError: It cannot be read.
    """
    return of_sweep(load_sweep(path), {})


def compare_page(paths: Sequence[Path]) -> TableResult:
    """Return the page of two or more sweeps side by side.

    Raises:
        InputError: A file cannot be read.
        UsageError: They have no point in common.
    """
    compared = SweepComparison([load_sweep(path) for path in paths])
    titles = [subject.title for subject in compared.subjects]
    named = [f"{label(at)}: {visible(title)}" for at, title in enumerate(titles)]
    differing = [
        f"{visible(one.name)}: {' / '.join(map(visible, one.values))}"
        for one in compared.differences
    ]
    lines = [*compared.lines, "; ".join(named), *differing, METHOD]
    shown = replace(point_table(compared, compared.rows, "screen"), title="Points")
    return TableResult(
        " and ".join(map(visible, titles)), lines, shown,
        written=point_table(compared, compared.rows, "csv"),
    )  # fmt: skip


_STYLES = ("bar", "warn", "good", "accent", "bad")
_BY_FACTORS = 4.0
"""From this ratio of the largest to the smallest size on, sizes are drawn by their logarithm."""


def _plot(sweep: Sweep) -> Plot | None:
    """Return throughput over batch or threads with latency beside it; over other sizes latency.

    Each combination of the other values is a line.
    """
    axis = drawn_axis(sweep)
    if axis is None:
        return None
    if axis.name == PROMPT:
        return _chart(sweep, axis, "ms to the first token", lambda point: point.first_ms)
    latency = _chart(sweep, axis, "ms a token" if sweep.tokens else "ms", lambda one: one.ms)
    if axis.name not in (BATCH, THREADS):
        return latency
    return replace(_chart(sweep, axis, sweep.unit, sweep.throughput), beside=latency)


def _chart(
    sweep: Sweep, axis: SweepAxis, unit: str, figure_of: Callable[[SweepPoint], float | None]
) -> Plot:
    marks, spots = list[Marks](), list[Spot]()
    below: Line = []
    groups = sweep.alike(axis.name)
    values = Counter(pair for fixed in groups for pair in fixed)
    for at, (fixed, points) in enumerate(groups.items()):
        line = []
        for point in points:
            size, figure = sweep.value(point, axis.name), figure_of(point)
            assert isinstance(size, int)
            assert figure is not None
            named = place_text([(axis.name, size), *fixed])
            line.append(Spot(size, figure, f"{named}: {figure_text(figure)} {unit}"))
        line.sort(key=lambda spot: spot.x)
        style = _STYLES[at % len(_STYLES)]
        marks.append(Marks([spot.x for spot in line], [spot.y for spot in line], "line", style))
        if 1 < len(groups) <= len(_STYLES):
            own = [pair for pair in fixed if values[pair] < len(groups)]
            below += [(" ■ ", style), (place_text(own), "dim")]
        spots += line
    knee_sizes = sorted({knee.at for knee in knees(sweep)}) if axis.name == knee_axis(sweep) else []
    if knee_sizes:
        sizes = ", ".join(f"{size:,}" for size in knee_sizes)
        below += [(f" │ {'knee' if len(knee_sizes) == 1 else 'knees'} at {sizes}", "warn")]
    marked = sorted({spot.x for spot in spots})
    return Plot(
        marks,
        Axis(f"{unit} over {visible(axis.name)}", lambda size: f"{size:,.0f}", marked=marked,
             log=marked[-1] >= _BY_FACTORS * marked[0]),
        Axis(unit, figure_text, least=0.0), spots, [(at, "warn") for at in knee_sizes],
        [below] if below else (),
    )  # fmt: skip
