"""A comparison as rows and lines of text, and the pane that filters them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import MISMATCH, Comparison
from dld_tui.core.compare.export import compare_table, delta_style, mismatch_table, place_and_maker
from dld_tui.core.compare.matching import METHOD
from dld_tui.core.compare.records import Cell, ComparisonRow, Subject, label
from dld_tui.core.compare.rows import margin, ratio_text, signed, time_of
from dld_tui.core.tables.table import Table
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import cut_names
from dld_tui.widgets.charts.bars import Axis, Line
from dld_tui.widgets.charts.plots import ChartView
from dld_tui.widgets.charts.report_charts import runs_picture
from dld_tui.widgets.lists.styled import ListSource, wrap
from dld_tui.widgets.lists.table_view import TablePane, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

_NAME_CELLS = 24


def about_lines(comparison: Comparison, width: int) -> list[Line]:
    """Return the end-to-end times, what is unfair, what differs, and where the time went."""
    lines: list[Line] = []
    for index, subject in enumerate(comparison.subjects):
        mark = " base " if index == comparison.base else " "
        text = _subject_text(subject, width - len(mark) - 1)
        lines.append([(label(index), "accent strong"), (mark, "key"), (text, "")])
    lines += _latency_lines(comparison, width)
    lines += _warning_lines(comparison.unfair, width)
    lines += _difference_lines(comparison, width)
    lines += _warning_lines(comparison.doubts, width)
    lines += [*(_total_line(comparison, row) for row in comparison.whole[1:]), []]
    for text in comparison.explanation():
        lines += [[(row, "")] for row in wrap(text, width)]
    lines += [[(row, "dim")] for row in wrap(METHOD, width)]
    return lines


def _latency_lines(comparison: Comparison, width: int) -> list[Line]:
    """Return the latencies as bars on one axis, with the intervals of their differences."""
    row, plain = comparison.end_to_end, glyphs.current().name == "ascii"
    estimates = [time_of(cell) for cell in row.cells]
    texts = [
        "" if index == comparison.base else _difference_text(cell)
        for index, cell in enumerate(row.cells)
    ]
    room = width - max(map(cell_width, texts)) - _FIGURE
    axis = Axis.of(estimates, row.cells[comparison.base].time_ms or 0.0)
    cells = min(max(room, 12), 60) if any(estimates) and room >= 12 else 0
    labels = axis.labels(cells, lambda value: f"{value:,.4g}", 0.0) if cells else ""
    lines: list[Line] = [[(fit(row.key, _FIGURE), "strong"), (labels, "dim")]]
    for index, (cell, estimate, text) in enumerate(zip(row.cells, estimates, texts, strict=True)):
        style = delta_style(cell) if cell.noise is False else "dim"
        lines.append([
            (f"{label(index)} ", "accent strong"),
            (f"{fmt.milliseconds(cell.time_ms):>{_FIGURE - 6}} ms ", "strong"),
            (axis.bar(estimate, cells, plain=plain) if cells else "", style),
            (text, style),
        ])  # fmt: skip
    return lines


_FIGURE = 18
"""Cells of the letter of a report and of its latency."""


def _subject_text(subject: Subject, room: int) -> str:
    """Return the end of the path, by which reports of one name differ, and what made the report."""
    path, maker = (visible(text) for text in place_and_maker(subject))
    maker = clip(f" · {maker}" if maker else "", room // 2)
    return clip(path, room - cell_width(maker), keep="end") + maker


def _warning_lines(texts: Sequence[str], width: int) -> list[Line]:
    mark = glyphs.current().warning
    return [
        [(f"{mark} " if number == 0 else "  ", "warn"), (row, "warn")]
        for text in texts
        for number, row in enumerate(wrap(text, width - 2))
    ]


def _difference_lines(comparison: Comparison, width: int) -> list[Line]:
    if not comparison.differences:
        return [[("No differences in settings and environment.", "dim")]]
    lines: list[Line] = []
    names = cut_names([visible(one.name) for one in comparison.differences], _NAME_CELLS)
    for name, difference in zip(names, comparison.differences, strict=True):
        room = max(8, (width - len(name) - 2) // len(difference.values) - 3)
        line: Line = [(f"{name}  ", "strong")]
        for number, value in enumerate(difference.values):
            if number:
                line.append((" / ", "dim"))
            line.append((clip(visible(value), room, keep="middle"), "accent"))
        lines.append(line)
    return lines


def _difference_text(cell: Cell) -> str:
    """Return how much a report differs from the base; empty where that is unknown."""
    if cell.delta_ms is None:
        return ""
    off = margin(cell)
    sure = f" ± {off}" if off else ""
    return f" {ratio_text(cell)} ({signed(cell.delta_ms)}{sure})"


def _total_line(comparison: Comparison, row: ComparisonRow) -> Line:
    line: Line = [(f"{row.key:<12}", "strong")]
    for index, cell in enumerate(row.cells):
        line += [(f"  {label(index)} ", "dim"), (f"{fmt.milliseconds(cell.time_ms)} ms", "strong")]
        if index != comparison.base:
            line.append(
                (_difference_text(cell), delta_style(cell) if cell.noise is False else "dim")
            )
    return line


_KEYS = (
    "{compare.filter} filter  {compare.group} group  {compare.sure} no noise  {table.sort} sort  "
    "{compare.csv} csv"
)
_LOOK_S = 0.1


class CompareAbout(ChartView):
    """What differs, what makes it unfair, and where the time went."""

    HELP = (
        "End-to-end times, then problems of the comparison, settings that differ, and the layers "
        "that explain the difference. Tab goes to the rows."
    )
    comparison: Comparison | None = None
    runs: Sequence[tuple[str, Sequence[float]]] = ()
    """The title of each run, untrusted text, and its latencies in milliseconds."""
    has_chart = False
    """The latencies are shown instead of the text."""
    _width = 0

    def toggle_chart(self) -> None:
        """Show the latencies of the runs over each other, or the text again."""
        self.has_chart = not self.has_chart
        self._fill()

    def show(self, comparison: Comparison) -> None:
        """Show a comparison."""
        self.comparison = comparison
        self.frame.show(comparison.headline, "{compare.base} next base")
        self._fill()
        self._look_again()

    def _look_again(self) -> None:
        # It has just been displayed: its width is known with a later layout, and an event of its
        # size does not always tell that (Textual may have looked at the new layout before).
        if not self._width and self.is_attached:
            self._fill()
            self.set_timer(_LOOK_S, self._look_again)

    def on_resize(self) -> None:
        """Break the text again for another width."""
        super().on_resize()
        if self.view_size.width != self._width:
            self._fill()

    def _fill(self) -> None:
        self._width = self.view_size.width
        if self.comparison is None or self._width <= 0:
            return
        if self.has_chart:
            self.show_chart("runs", lambda width, height: runs_picture(self.runs, width, height))
        else:
            self.show_bars(ListSource(about_lines(self.comparison, max(20, self._width - 2))))


class CompareTable(TableView):
    """The rows."""

    HELP = (
        "One row per layer, or per group of {compare.group}, the largest difference first. If one "
        "layer of a report does the work of several layers of another, they share a row: 3>1. Dim "
        "rows are within noise: the confidence interval of the difference contains 0 (± is half "
        "its width), or the Mann-Whitney test over all rows does not find it significant, even if "
        "the difference exceeds its ±. {list.activate} goes to the ONNX node, or into a group; "
        "{compare.layer} shows the layer in its report."
    )


class ComparePane(TablePane):
    """The rows, their filter and title."""

    VIEW = CompareTable
    VIEW_ID = "compare-table"
    FILTER_HELP = "part of a name"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.comparison: Comparison | None = None
        self.by = "layer"
        self.sure_only = False
        self.group: tuple[str, str] | None = None
        """Only layers of this (grouping, key) are shown."""
        self._left = ""
        """The group that was left: the cursor goes back to it."""
        self._members: Collection[tuple[int, int]] = ()
        self.rows: Sequence[ComparisonRow] = ()

    def show(self, comparison: Comparison, by: str) -> None:
        """Show the rows of a comparison by something."""
        other = by != self.by
        self.comparison, self.by = comparison, by
        if other:
            self.table.sort_column = None
        self.fill(keep=not other)
        if self._left:
            self.table.go_to_key(self._left)
            self._left = ""

    def fill(self, keep: bool = True) -> None:
        """Show the rows that pass the filter and are of the group, if there is one."""
        comparison = self.comparison
        if comparison is None:
            return
        self.rows = comparison.rows(self.by)
        self._members = self._layers_of_group(comparison)
        shown = [index for index, row in enumerate(self.rows) if self._passes(row)]
        self.table.empty = hint("No row matches the filter. {compare.clear} clears it.")
        table: Table[Any] = compare_table(comparison, self.by, self.rows, "screen")
        if self.by == MISMATCH:
            table = mismatch_table(comparison, comparison.mismatches, "screen")
            if not self.rows:
                self.table.empty = "All layers have the same precision and tactic."
        self.table.set_table(table, shown, keep)
        self._say(len(shown))

    def _passes(self, row: ComparisonRow) -> bool:
        comparison = self.comparison
        if comparison is None:
            return False
        if self.sure_only and not comparison.is_change(row, comparison.target):
            return False
        if self.group is not None and not self._in_group(row):
            return False
        name = f"{row.title} {row.key}".lower()
        return all(word in name for word in self.filter.lower().split())

    def _in_group(self, row: ComparisonRow) -> bool:
        return any(
            (report, layer) in self._members
            for report, cell in enumerate(row.cells)
            for layer in cell.layers
        )

    def _say(self, shown: int) -> None:
        whole = len(self.rows)
        of = "" if shown == whole else f" of {fmt.count(whole)}"
        place = f" of {self.group[0]} {visible(self.group[1])}" if self.group is not None else ""
        sure = ", more than noise" if self.sure_only else ""
        comparison = self.comparison
        base = label(comparison.base) if comparison is not None else ""
        by = "Other precision or tactic" if self.by == MISMATCH else f"By {self.by}"
        self.frame.show(f"{by}{place} · {fmt.count(shown)}{of}{sure} · base {base}", _KEYS)

    # What is where

    def groupings(self) -> set[str]:
        """Return by what a comparison has to be grouped to be shown."""
        return {self.by} if self.group is None else {self.by, self.group[0]}

    def row_at_cursor(self) -> ComparisonRow | None:
        """Return the row under the cursor."""
        index = self.table.row_at_cursor() if self.comparison is not None else None
        return self.rows[index] if index is not None and index < len(self.rows) else None

    def shown_rows(self) -> list[ComparisonRow]:
        """Return the rows as they are shown: filtered and sorted."""
        return [self.rows[index] for index in self.table.order]

    def open_group(self, row: ComparisonRow) -> None:
        """Show the layers that a group's row is made of."""
        if self.comparison is None:
            return
        self.group = (self.by, row.key)
        self.show(self.comparison, "layer")

    def _layers_of_group(self, comparison: Comparison) -> Collection[tuple[int, int]]:
        if self.group is None:
            return ()
        by, key = self.group
        groups = (row for row in comparison.rows(by) if row.key == key)
        return {
            (report, layer)
            for row in groups for report, cell in enumerate(row.cells) for layer in cell.layers
        }  # fmt: skip

    def take_back(self) -> str | None:
        """Take back one thing; return what to group by when that changes, None when nothing was."""
        if super().clear():
            return self.by
        if self.sure_only:
            self.sure_only = False
            return self.by
        if self.group is not None:
            (by, self._left), self.group = self.group, None
            return by
        return "layer" if self.by != "layer" else None
