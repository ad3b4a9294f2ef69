"""The rows of a comparison with their filter, and what is said about the whole.

A comparison as the rows of a table, and as lines of text.

Layers with another precision or tactic, as the rows of a table.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import MISMATCH, Comparison
from dld_tui.core.compare.model import Cell as Compared
from dld_tui.core.compare.model import Comparable, Row, label
from dld_tui.core.compare.noise import METHOD
from dld_tui.core.compare.text import margin, place_and_maker, ratio_text, remark, signed
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.charts.bars import Line, bar
from dld_tui.widgets.explorer.filter_dialog import FilterBar
from dld_tui.widgets.explorer.rows import PRECISION_STYLES
from dld_tui.widgets.hints import hint
from dld_tui.widgets.layers.columns import SortValue
from dld_tui.widgets.layers.sources import bar_ramp
from dld_tui.widgets.lists.line_source import ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.lists.table_view import Cell, Column, TableSource, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Frame

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
    lines += [[(row, "dim")] for row in wrap(METHOD, width)]
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


_LEAST_LAYER_NAME = 16
_TACTIC_CELLS = 24
_FIRST_MISMATCH_OUT = 5
"""Priority of the engines between the base and the one whose difference is shown."""


def mismatch_columns(comparison: Comparison) -> list[Column]:
    """Return the columns: the node, a precision and a tactic an engine, the difference."""
    shown = (comparison.base, comparison.target)
    indices = range(len(comparison.subjects))
    pair = f"{label(comparison.base)}>{label(comparison.target)}"
    return [
        Column("key", "node", min_width=_LEAST_LAYER_NAME, keep="end"),
        *(
            Column(f"precision{i}", label(i), 6, priority=0 if i in shown else _FIRST_MISMATCH_OUT)
            for i in indices
        ),
        Column("delta", f"{pair} ms", 9, "right", descending=True),
        Column("ratio", "ratio", 7, "right", priority=1, descending=True),
        *(
            Column(
                f"tactic{i}", f"{label(i)} tactic", _TACTIC_CELLS, keep="middle",
                priority=2 if i in shown else _FIRST_MISMATCH_OUT,
            )
            for i in indices
        ),
    ]  # fmt: skip


class MismatchSource:
    """Rows of a comparison whose precision or tactic is not the same everywhere."""

    def __init__(self, comparison: Comparison, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._found = comparison.mismatches
        self._target = comparison.target

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> Hashable:
        """Return the row's key."""
        return self.rows[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; a difference is coloured by its direction."""
        text = self._text(row, column)
        if column.startswith("precision"):
            return text, PRECISION_STYLES.get(text, "prec-other") if text != fmt.UNKNOWN else "dim"
        if column == "delta":
            return text, delta_style(self.rows[row].cells[self._target])
        return text, "dim" if column.startswith("tactic") else ""

    def _text(self, row: int, column: str) -> str:
        found, cell = self._found[row], self.rows[row].cells[self._target]
        if column.startswith("precision"):
            return visible(found.precision[int(column[9:])]) or fmt.UNKNOWN
        if column.startswith("tactic"):
            return visible(found.tactic[int(column[6:])]) or fmt.UNKNOWN
        if column == "delta":
            return signed(cell.delta_ms)
        return ratio_text(cell) if column == "ratio" else visible(found.node)

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by: differences with their sign."""
        cell = self.rows[row].cells[self._target]
        if column == "delta":
            return cell.delta_ms
        return cell.ratio if column == "ratio" else self._text(row, column).lower()

    def text(self, row: int) -> str:
        """Return the row, separated by tabs."""
        found = self._found[row]
        parts = (found.node, *found.precision, *found.tactic)
        delta = signed(self.rows[row].cells[self._target].delta_ms)
        return "\t".join((*map(visible, parts), delta))


_KEYS = (
    "{compare.filter} filter  {compare.group} group  {compare.sure} no noise  {table.sort} sort  "
    "{compare.csv} csv"
)
_LOOK_S = 0.1


class CompareAbout(Frame, LineView):
    """What differs, what makes it unfair, and where the time went."""

    HELP = (
        "Settings that differ and what makes the comparison unfair come first, then the times end "
        "to end, and where the time went. Tab goes to the rows."
    )
    comparison: Comparison | None = None
    _width = 0

    def show(self, comparison: Comparison) -> None:
        """Show a comparison."""
        self.comparison = comparison
        titles = ", ".join(visible(title) for title in comparison.titles)
        self.frame(f"Compare · {titles}", "{compare.base} next base")
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
        if self.view_size.width != self._width:
            self._fill()

    def _fill(self) -> None:
        self._width = self.view_size.width
        if self.comparison is not None and self._width > 0:
            lines = about_lines(self.comparison, max(20, self._width - 2))
            self.set_lines(ListSource(lines))


class CompareTable(TableView):
    """The rows; `/` filters instead of searching."""

    HELP = (
        "One row a layer, or what {compare.group} chose, the largest difference first. A layer of "
        "one report that does the work of several of another makes one row with them: 3>1. What "
        "is dim is within noise: the interval of its difference contains 0 (± is half its width), "
        "or the Mann-Whitney test of all rows together does not tell it apart, which can be so "
        "although the difference is larger than its ±. {list.activate} goes to the ONNX node, or "
        "into a group; {compare.layer} shows the layer in its report."
    )

    def action_search(self) -> None:
        """Open the pane's filter."""
        self.query_ancestor(ComparePane).open_filter()


class ComparePane(Frame, Vertical):
    """The table, its filter and its title."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.comparison: Comparison | None = None
        self.by = "layer"
        self.filter = ""
        self.sure_only = False
        self.group: tuple[str, str] | None = None
        """Only layers of this (grouping, key) are shown."""
        self._members: Collection[tuple[int, int]] = ()
        self.rows: Sequence[Row] = ()

    def compose(self) -> ComposeResult:
        """Lay out the filter and the table."""
        yield FilterBar("part of a name", "compare-filter")
        yield CompareTable([], id="compare-table")

    def on_mount(self) -> None:
        """Start without a filter row."""
        self.query_one(FilterBar).display = False

    @property
    def table(self) -> CompareTable:
        """The table view."""
        return self.query_one(CompareTable)

    def show(self, comparison: Comparison, by: str) -> None:
        """Show the rows of a comparison by something."""
        other = comparison is not self.comparison or by != self.by
        self.comparison, self.by = comparison, by
        if other:
            self.table.sort_column = None
            self.table.set_columns(
                mismatch_columns(comparison) if by == MISMATCH else compare_columns(comparison, by)
            )
        self.refill(keep=not other)

    def refill(self, keep: bool = True) -> None:
        """Show the rows that pass the filter."""
        comparison = self.comparison
        if comparison is None:
            return
        self.rows = comparison.rows(self.by)
        shown = [index for index, row in enumerate(self.rows) if self._passes(row)]
        self.table.empty = hint("Nothing passes the filter. {compare.clear} clears it.")
        source: TableSource = CompareSource(comparison, self.rows, self.by)
        if self.by == MISMATCH:
            source = MismatchSource(comparison, self.rows)
            if not self.rows:
                self.table.empty = "All layers have the same precision and tactic."
        self.table.set_table(source, shown, keep)
        if not keep:
            self.table.cursor = 0
        self._say(len(shown))

    def _passes(self, row: Row) -> bool:
        comparison = self.comparison
        if comparison is None:
            return False
        cell = row.cells[comparison.target]
        if self.sure_only:
            alone = row.state(comparison.target, comparison.base)
            if not alone and (cell.noise is not False or cell.delta_ms is None):
                return False
        if self.group is not None and not self._in_group(row):
            return False
        name = row.key.lower()
        return all(word in name for word in self.filter.lower().split())

    def _in_group(self, row: Row) -> bool:
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
        self.frame(f"{by}{place} · {fmt.count(shown)}{of}{sure} · base {base}", _KEYS)

    # What is where

    def row_at_cursor(self) -> Row | None:
        """Return the row under the cursor."""
        index = self.table.row_at_cursor() if self.comparison is not None else None
        return self.rows[index] if index is not None and index < len(self.rows) else None

    def shown_rows(self) -> list[Row]:
        """Return the rows as they are shown: filtered and sorted."""
        return [self.rows[index] for index in self.table.order]

    def open_group(self, row: Row) -> None:
        """Show the layers that a group's row is made of."""
        if self.comparison is None:
            return
        self.group = (self.by, row.key)
        self._members = {
            (report, layer) for report, cell in enumerate(row.cells) for layer in cell.layers
        }
        self.show(self.comparison, "layer")

    def clear(self) -> str | None:
        """Take back one thing; return what to group by when that changes, None when nothing was."""
        if self.filter:
            self.query_one(Input).value = ""
            self._set_filter("")
            return self.by
        if self.sure_only:
            self.sure_only = False
            return self.by
        if self.group is not None:
            by, self.group = self.group[0], None
            return by
        return "layer" if self.by != "layer" else None

    # Filter

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(FilterBar).display = True
        self.query_one(Input).focus()

    @on(FilterBar.Changed)
    def _typed(self, event: FilterBar.Changed) -> None:
        event.stop()
        if event.text != self.filter:
            self._set_filter(event.text)

    @on(FilterBar.Left)
    def _left(self, event: FilterBar.Left) -> None:
        event.stop()
        if event.clear:
            self.query_one(Input).value = ""
            self._set_filter("")
        self.table.focus()
        self.query_one(FilterBar).display = bool(self.filter)

    def _set_filter(self, text: str) -> None:
        self.filter = text
        self.refill()
        self.query_one(FilterBar).display = bool(text) or self.query_one(Input).has_focus
