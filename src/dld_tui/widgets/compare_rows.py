"""A comparison as the rows of a table, and as lines of text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.model import Cell as Compared
from dld_tui.core.compare.model import Comparable, Row, label
from dld_tui.core.compare.noise import METHOD
from dld_tui.core.compare.text import margin, place_and_maker, ratio_text, remark, signed
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import bar
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.layer_columns import SortValue
from dld_tui.widgets.layer_sources import bar_ramp
from dld_tui.widgets.table_view import Cell, Column
from dld_tui.widgets.wrap import wrap

_FIRST_OUT = 7
"""Priority of the columns between the base and the report whose difference is shown."""
_LEAST_NAME = 16
_NAME_CELLS = 24


def compare_columns(comparison: Comparison, by: str) -> list[Column]:
    """Return the columns: a time a report, then the difference of one against the base."""
    shown = (comparison.base, comparison.target)
    times = [
        Column(
            f"time{index}", f"{label(index)} ms", 9, "right", descending=True,
            priority=0 if index in shown else _FIRST_OUT,
        )
        for index in range(len(comparison.subjects))
    ]  # fmt: skip
    pair = f"{label(comparison.base)}>{label(comparison.target)}"
    return [
        Column("key", by, min_width=_LEAST_NAME, keep="end"),
        *times,
        Column("delta", f"{pair} ms", 9, "right", descending=True),
        Column("bar", "", 12, priority=4, sortable=False),
        Column("ratio", "ratio", 7, "right", priority=1, descending=True),
        Column("margin", "±", 6, "right", priority=3, sortable=False),
        Column("share", "%", 5, "right", priority=2, descending=True),
        Column("remark", "", 11, sortable=False),
    ]


class CompareSource:
    """Rows of a comparison; the key of a row is its key."""

    def __init__(self, comparison: Comparison, rows: Sequence[Row], by: str) -> None:
        self.rows = rows
        self._by = by
        self._base, self._target = comparison.base, comparison.target
        deltas = (abs(row.cells[self._target].delta_ms or 0.0) for row in rows)
        self._largest = max(deltas, default=0.0)

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> Hashable:
        """Return the row's key."""
        return self.rows[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; a difference is coloured when it is more than noise."""
        found = self.rows[row]
        target = found.cells[self._target]
        style = self._style(found)
        if column.startswith("time"):
            cell = found.cells[int(column[4:])]
            mark = "~" if found.estimate and cell.time_ms is not None else ""
            return mark + fmt.milliseconds(cell.time_ms)
        if column == "bar":
            share = abs(target.delta_ms or 0.0) / self._largest if self._largest > 0 else None
            return bar(share, width, bar_ramp()), style
        if column == "key":
            return visible(found.key)
        return self._text(column, found), "dim" if column in ("margin", "share") else style

    def _text(self, column: str, row: Row) -> str:
        target = row.cells[self._target]
        if column == "delta":
            return signed(target.delta_ms)
        if column == "ratio":
            return ratio_text(target)
        if column == "margin":
            return margin(target)
        if column == "share":
            return fmt.percent(target.share_percent)
        return remark(row, self._target, self._base, counted=self._by == "layer")

    def _style(self, row: Row) -> str:
        target = row.cells[self._target]
        sure = target.noise is False or bool(row.state(self._target, self._base))
        return delta_style(target) if sure else "dim"

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by: differences with their sign."""
        found = self.rows[row]
        target = found.cells[self._target]
        if column.startswith("time"):
            return found.cells[int(column[4:])].time_ms
        if column == "key":
            return found.key.lower()
        values = {"ratio": target.ratio, "share": target.share_percent}
        return values.get(column, target.delta_ms)

    def text(self, row: int) -> str:
        """Return the row, separated by tabs."""
        found = self.rows[row]
        times = (fmt.milliseconds(cell.time_ms) for cell in found.cells)
        names = ("delta", "ratio", "margin", "share", "remark")
        return "\t".join((visible(found.key), *times, *(self._text(n, found) for n in names)))


def delta_style(cell: Compared) -> str:
    """Return the style class of a difference: ``good`` is faster."""
    if not cell.delta_ms:
        return "dim"
    return "good" if cell.delta_ms < 0 else "bad"


def about_lines(comparison: Comparison, width: int) -> list[Line]:
    """Return what differs, what is unfair, the end-to-end times and where the time went."""
    lines: list[Line] = []
    for index, subject in enumerate(comparison.subjects):
        mark = " base " if index == comparison.base else " "
        text = _subject_text(subject, width - len(mark) - 1)
        lines.append([(label(index), "accent strong"), (mark, "key"), (text, "")])
    lines += _difference_lines(comparison, width)
    lines += _warning_lines(comparison.unfair, width)
    lines.append(_total_line(comparison, comparison.end_to_end))
    lines += _warning_lines(comparison.doubts, width)
    lines += [_total_line(comparison, comparison.layer_sum), []]
    for text in comparison.explanation():
        lines += [[(row, "")] for row in wrap(text, width)]
    lines += [[(row, "dim")] for row in wrap(f"noise, ±: {METHOD}", width)]
    return lines


def _subject_text(subject: Comparable, room: int) -> str:
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
        return [[("No setting and nothing in the environment differs.", "dim")]]
    lines: list[Line] = []
    for found in comparison.differences:
        name = clip(visible(found.name), _NAME_CELLS)
        room = max(8, (width - len(name) - 2) // len(found.values) - 3)
        line: Line = [(f"{name}  ", "strong")]
        for number, value in enumerate(found.values):
            if number:
                line.append((" / ", "dim"))
            line.append((clip(visible(value), room, keep="middle"), "accent"))
        lines.append(line)
    return lines


def _total_line(comparison: Comparison, row: Row) -> Line:
    line: Line = [(f"{row.key:<12}", "strong")]
    for index, cell in enumerate(row.cells):
        line += [(f"  {label(index)} ", "dim"), (f"{fmt.milliseconds(cell.time_ms)} ms", "strong")]
        if index != comparison.base and cell.delta_ms is not None:
            style = delta_style(cell) if cell.noise is False else "dim"
            off = margin(cell)
            sure = f" ± {off}" if off else ""
            line.append((f" {ratio_text(cell)} ({signed(cell.delta_ms)}{sure})", style))
    return line
