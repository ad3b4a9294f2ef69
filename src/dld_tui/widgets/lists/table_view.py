"""A line view with columns: header, sorting, and scrolling sideways by column.

A table begins with the columns that fit; those with the highest ``priority`` number wait at the
right end. Scrolling moves by column: the columns with the name stay, the first of the others
leave at the left, and at each step at least one that was not seen before comes in at the right.

``set_table(table, rows)`` shows a :class:`~dld_tui.core.tables.table.Table`, or some of its rows.
``order[i]`` is the table's row that is shown at line i. A header click or ``o`` sorts; the cursor
stays on its row. Where not all columns fit, those with the highest ``priority`` number wait at
the right end (see ``table_columns``), and a sign at the end of the header tells of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import (
    BAR,
    Column,
    IntervalUnit,
    Table,
    sort_places,
)
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import MOST_SHARE, ListedNames, SharedEnds, shared_ends
from dld_tui.widgets.charts.bars import HEATS, Axis, bar, bar_ramp, heat, hottest
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.search import FilterBar
from dld_tui.widgets.lists.styled import Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed

GAP = 1
"""Blank cells between two columns."""
_SIGN = 1
"""Cells at the right that a table needs for the sign that there are more columns."""
_LEAST_NAME = 8
"""A narrower column does not name the row."""


@dataclass(frozen=True)
class Window:
    """The columns that are seen at once."""

    columns: tuple[Column[Any], ...]
    sizes: tuple[tuple[Column[Any], int], ...]
    """The columns in order, each with its cells."""
    last: str
    """The key of the column that this window was scrolled for; empty for the first window."""
    before: bool = False
    """There are columns to the left."""
    after: bool = False
    """There are columns to the right."""


def windows(columns: Sequence[Column[Any]], width: int) -> list[Window]:
    """Return what is seen in `width` cells at each step to the right, the first step first."""
    if _needed(columns) <= width or len(columns) < 2:
        return [Window(tuple(columns), _sizes(columns, width), "")]
    room = max(width - _SIGN, 1)
    pinned = _pinned(columns)
    first = _first(columns, pinned, room)
    shown = [column for column in first if column not in pinned]
    waiting = [column for column in columns if column not in first]
    line = [*shown, *waiting]
    steps = [(0, len(shown))]
    while steps[-1][1] < len(line):
        steps.append(_step(line, pinned, steps[-1], room))
    fitted = []
    for number, (start, end) in enumerate(steps):
        seen = set(first if not number else (*pinned, *line[start:end]))
        # Those that were seen first keep their places; what waited follows at the right.
        order = [column for column in columns if column in seen and column in first]
        order += [column for column in line[start:end] if column in waiting]
        fitted.append(
            Window(
                tuple(order),
                _sizes(order, room),
                line[end - 1].key if number else "",
                before=number > 0,
                after=number + 1 < len(steps),
            )
        )
    return fitted


def _pinned(columns: Sequence[Column[Any]]) -> list[Column[Any]]:
    declared = [column for column in columns if column.pinned]
    if declared:
        return declared
    names = (
        column
        for column in columns
        if not column.priority and not column.is_right and column.least_cells >= _LEAST_NAME
    )
    return [next(names, columns[0])]


def _first(
    columns: Sequence[Column[Any]], pinned: Sequence[Column[Any]], room: int
) -> list[Column[Any]]:
    """Return the columns that are seen before any scrolling."""
    shown = list(columns)
    while len(shown) > len(pinned) and _needed(shown) > room:
        others = [column for column in shown if column not in pinned]
        highest = max(column.priority for column in others)
        if not highest and len(others) == 1:
            break
        shown.remove(next(column for column in reversed(others) if column.priority == highest))
    return shown


def _step(
    line: Sequence[Column[Any]], pinned: Sequence[Column[Any]], before: tuple[int, int], room: int
) -> tuple[int, int]:
    """Return the window after another one, as (start, end) of the columns that scroll."""
    start, end = before[0], before[1] + 1
    while start < end - 1 and _needed([*pinned, *line[start:end]]) > room:
        start += 1
    while end < len(line) and _needed([*pinned, *line[start : end + 1]]) <= room:
        end += 1
    return start, end


def _needed(columns: Sequence[Column[Any]]) -> int:
    return sum(column.least_cells for column in columns) + GAP * (len(columns) - 1)


def _sizes(columns: Sequence[Column[Any]], room: int) -> tuple[tuple[Column[Any], int], ...]:
    fixed = sum(column.width or 0 for column in columns) + GAP * (len(columns) - 1)
    shares = _shares([column for column in columns if column.width is None], room - fixed)
    sizes = [(column, column.width or shares.get(column.key, 0)) for column in columns]
    return tuple(_squeezed(sizes, room))


def _shares(flexible: list[Column[Any]], rest: int) -> dict[str, int]:
    """Share cells out equally, but none gets less than its least."""
    shares: dict[str, int] = {}
    while flexible:
        share = max(rest, 0) // len(flexible)
        short = [column for column in flexible if column.least > share]
        if not short:
            shares |= {column.key: share for column in flexible}
            # The last one takes what the division leaves.
            shares[flexible[-1].key] += rest - share * len(flexible)
            break
        for column in short:
            shares[column.key] = column.least
            rest -= column.least
        flexible = [column for column in flexible if column not in short]
    return shares


def _squeezed(sizes: list[tuple[Column[Any], int]], room: int) -> list[tuple[Column[Any], int]]:
    """Return the sizes with the widest columns narrowed until all of them can be seen."""
    cells = [size for _, size in sizes]
    room -= GAP * (len(cells) - 1)
    while sum(cells) > room and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return [(column, size) for (column, _), size in zip(sizes, cells, strict=True)]


_MOST_FITTED = 2_000
"""Rows whose texts are looked at for the width of columns."""
_SORT_MARK = 1
_WIDE_NAME = 32
"""Cells of names that other columns make room for."""


class TableLines:
    """The rows of a table in an order, as lines; only seen cells are made."""

    def __init__(self, view: TableView) -> None:
        self.view = view
        self.table = view.table
        self.order = view.order
        self._scales = view.scales

    def __len__(self) -> int:
        return len(self.order)

    def key(self, index: int) -> Hashable:
        return self.table.key(self.order[index])

    def text(self, index: int) -> str:
        return visible(self.table.text(self.order[index]))

    def line(self, index: int, width: int) -> list[Piece]:
        row = self.table.rows[self.order[index]]
        pieces: list[Piece] = []
        for column, cells in self.view.layout_columns(width):
            if pieces:
                pieces.append((" " * GAP, ""))
            text, style = self.cell(row, column, cells)
            if column.keep != "start":
                text = self.view.cut_text(column, row, cells)
            align = "right" if column.is_right else "left"
            pieces.append((fit(text, cells, align=align, keep=column.keep), style))
        return pieces

    def cell(self, row: Any, column: Column[Any], cells: int) -> Piece:
        """Return the text of a cell, or its bar, and the style of it; figures carry their heat."""
        style = column.style_of(row)
        value: Any = column.value(row)
        if isinstance(column.unit, IntervalUnit):
            plain = glyphs.current().name == "ascii"
            return self.view.axis(column).bar(value, cells, plain=plain), style
        if column.unit is not BAR and not column.heat:
            return visible(column.shown_text(row)), style
        hot, largest = self._scale(column)
        if column.heat:
            style = HEATS[heat(value, hot)]
        if column.unit is BAR:
            share = value / largest if value is not None and largest > 0 else None
            return bar(share, cells, bar_ramp()), style
        return visible(column.shown_text(row)), style

    def _scale(self, column: Column[Any]) -> tuple[float, float]:
        """Return the value that counts as hot, and the largest one."""
        scale = self._scales.get(column.key)
        if scale is None:
            values: list[Any] = [column.value(row) for row in self.table.rows]
            known = [value for value in values if value is not None]
            scale = self._scales[column.key] = hottest(known), max(known, default=0.0)
        return scale


class TableView(LineView):
    """A table of any length with a fixed header."""

    SCOPE = "table"
    COMMAND_TABLE = (
        *table(
            "table",
            ("table.sort", "sort_next", "o", "", "sort", "Sort by the next column."),
            ("table.reverse", "sort_reverse", "tilde", "", "reverse order",
             "Reverse the sort order."),
        ),
        *table(
            "table",
            ("table.left", "columns_left", "left,h,shift+left", "", "columns left",
             "Show the columns to the left."),
            ("table.right", "columns_right", "right,l,shift+right", "", "columns right",
             "Show one more column to the right; the name column stays."),
            palette=False,
        ),
    )  # fmt: skip
    FITTED: ClassVar[bool] = False
    """Columns are only as wide as what stands in them: names get the room."""

    def __init__(
        self,
        table: Table[Any] | None = None,
        *,
        empty: str = "",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(empty=empty, name=name, id=id, classes=classes)
        self.table: Table[Any] = Table((), ()) if table is None else table
        self.columns: tuple[Column[Any], ...] = self._fitted()
        self.order: Sequence[int] = range(len(self.table))
        self.sort_column: str | None = None
        self.sort_descending = False
        self.header_rows = 1
        self._rows: Sequence[int] = self.order
        self._windows: dict[int, list[Window]] = {}
        self.scales: dict[str, tuple[float, float]] = {}
        """By column, the value that counts as hot, and the largest one."""
        self._axes: dict[str, Axis] = {}
        self._ends: dict[str, tuple[SharedEnds, int]] = {}
        """By column of names, what all share, and the cells of the longest."""
        self._cut: dict[tuple[str, str, str], ListedNames] = {}
        """By column of names, its cells, and the texts in so many by the whole ones."""
        self._reached = ""
        """The key of the column that scrolling brought in last; empty while nothing scrolled."""
        self.lines = TableLines(self)
        self._resize_virtual()

    def set_table(
        self, table: Table[Any], rows: Sequence[int] | None = None, keep: bool = True
    ) -> None:
        """Show a table, or only some `rows` of it, in the order that is chosen.

        With `keep` the cursor stays on its row. Where that is gone from the table the next one
        that is left takes its place; where it is only not among `rows`, the first that is shown.
        """
        is_same = keep and table.keys == self.table.keys
        key = self.key_at_cursor() if keep else None
        # Only other rows or columns are measured: while one types a filter, both stay.
        other = table.rows is not self.table.rows or table.keys != self.table.keys
        self.table = table
        if other:
            self.scales, self._ends, self._axes, self._cut = {}, {}, {}, {}
        if other or not self.FITTED:
            self.columns = self._fitted()
            self._windows.clear()
        self._rows = range(len(table)) if rows is None else rows
        self._sort()
        self._show(key, is_same)

    def _fitted(self) -> tuple[Column[Any], ...]:
        """Return the columns, no wider than their titles and texts where that is asked for."""
        rows = self.table.rows
        if not self.FITTED or not 0 < len(rows) <= _MOST_FITTED:
            return tuple(self.table.columns)
        fitted = []
        for column in self.table.columns:
            texts = [column.shown_text(row) for row in rows]
            if column.width is not None and column.title:
                shown = (visible(text[: column.width + 1]) for text in texts)
                longest = max(len(column.title) + _SORT_MARK, *map(cell_width, shown))
                column = replace(column, width=min(column.width, longest))
            elif column.width is None and column.pinned:
                ends = shared_ends(texts, MOST_SHARE)
                longest = max(cell_width(visible(ends.without(text))) for text in texts)
                column = replace(column, least=max(column.least, min(longest, _WIDE_NAME)))
            fitted.append(column)
        return tuple(fitted)

    def ends(self, column: Column[Any], cells: int) -> SharedEnds | None:
        """Return what most names of a column share, which is left out where not all of them fit.

        The title says it then. Only columns of names have it, where there are few enough rows.
        """
        rows = self.table.rows
        if column.keep == "start" or column.width is not None:
            return None
        if not 1 < len(rows) <= _MOST_FITTED:
            return None
        known = self._ends.get(column.key)
        if known is None:
            names = [column.shown_text(row) for row in rows]
            longest = max(cell_width(visible(name)) for name in names)
            known = self._ends[column.key] = shared_ends(names, MOST_SHARE), longest
        ends, longest = known
        return ends if longest > cells and ends.gapped else None

    def cut_text(self, column: Column[Any], row: Any, cells: int) -> str:
        """Return the text of a cell in a column of names, cut among all of them."""
        ends = self.ends(column, cells) or SharedEnds()
        key = column.key, *ends
        if key not in self._cut:
            self._cut[key] = ListedNames(
                visible(ends.without(column.shown_text(row))) for row in self.table.rows
            )
        text = visible(ends.without(column.shown_text(row)))
        return self._cut[key].cut(text, cells, keep=column.keep)

    def axis(self, column: Column[Any]) -> Axis:
        """Return the axis that the figures of a column are drawn on."""
        axis = self._axes.get(column.key)
        if axis is None:
            unit = column.unit
            reference = unit.reference if isinstance(unit, IntervalUnit) else 0.0
            figures: list[Any] = [column.value(row) for row in self.table.rows]
            axis = self._axes[column.key] = Axis.of(figures, reference)
        return axis

    def row_at_cursor(self) -> int | None:
        """Return the place of the row under the cursor, or None when there are no rows."""
        return self.order[self.cursor] if self.cursor < len(self.order) else None

    def item_at_cursor(self) -> Any:
        """Return the table's row under the cursor, or None when there are no rows."""
        at = self.row_at_cursor()
        return None if at is None else self.table.rows[at]

    def shown_rows(self) -> list[Any]:
        """Return the rows as they are shown: filtered and sorted."""
        return [self.table.rows[at] for at in self.order]

    # Sorting

    def sort_by(self, column: str | None, descending: bool = False) -> None:
        """Sort by a column, or return to the table's own order with None."""
        key = self.key_at_cursor()
        self.sort_column, self.sort_descending = column, descending
        self._sort()
        self._show(key)

    def _sort(self) -> None:
        column = self.sort_column
        self.order = self._rows
        if column in self.table.keys:
            self.order = sort_places(self.table, column, self.sort_descending, self._rows)

    def _show(self, key: Hashable | None, is_same: bool = False) -> None:
        # The rows were exchanged under the view, so it could not note the cursor's key itself;
        # its lines are still the former ones.
        before, place = self.lines, self.cursor
        self.set_lines(TableLines(self), keep=False)
        if key is None or self.go_to_key(key) or not is_same:
            return
        if all(self.table.key(at) != key for at in range(len(self.table))):
            shown = {self.lines.key(at): at for at in range(len(self.lines))}
            after = (shown.get(before.key(at)) for at in range(place, len(before)))
            self.cursor = next((at for at in after if at is not None), len(shown) - 1)

    def action_sort_next(self) -> None:
        """Sort by the column after the sorted one; after the last, by none."""
        keys = [column.key for column in self.columns if column.sortable]
        if not keys:
            return
        at = keys.index(self.sort_column) + 1 if self.sort_column in keys else 0
        if at < len(keys):
            self.show_column(keys[at])
        self._sort_first(keys[at] if at < len(keys) else None)

    def action_sort_reverse(self) -> None:
        if self.sort_column is not None:
            self.sort_by(self.sort_column, not self.sort_descending)

    def _sort_first(self, key: str | None) -> None:
        column = next((column for column in self.columns if column.key == key), None)
        self.sort_by(key, descending=column.falls if column else False)

    def header_clicked(self, cell: int) -> None:
        """Sort by the column that was clicked, reverse it, or scroll where the signs are."""
        width = self._cells
        window = self.window(width)
        if cell < 0:
            self.action_columns_left()
        elif window.after and cell == width - 1:
            self.action_columns_right()
        left = 0
        for column, cells in window.sizes:
            if left <= cell < left + cells and column.sortable:
                if column.key == self.sort_column:
                    self.action_sort_reverse()
                else:
                    self._sort_first(column.key)
                return
            left += cells + GAP

    # Columns

    @property
    def _cells(self) -> int:
        return max(self.view_size.width - self._gutter_cells, 1)

    def windows(self, width: int) -> list[Window]:
        """Return what is seen in `width` cells at each step to the right."""
        column_windows = self._windows.get(width)
        if column_windows is None:
            column_windows = self._windows[width] = windows(self.columns, width)
        return column_windows

    def window(self, width: int) -> Window:
        """Return the columns that are seen in `width` cells now."""
        steps = self.windows(width)
        return steps[self._step_of(self._reached, steps)]

    def layout_columns(self, width: int) -> Sequence[tuple[Column[Any], int]]:
        """Return the columns that are seen in `width` cells, each with its width."""
        return self.window(width).sizes

    def _step_of(self, key: str, steps: Sequence[Window]) -> int:
        """Return the first step that shows a column; 0 for a column that is not there."""
        for number, window in enumerate(steps):
            if any(column.key == key for column in window.columns):
                return number
        return 0

    def _scroll_columns(self, steps: int) -> None:
        column_windows = self.windows(self._cells)
        now = self._step_of(self._reached, column_windows)
        target = max(0, min(now + steps, len(column_windows) - 1))
        if target != now:
            self._reached = column_windows[target].last
            self.invalidate()

    def show_column(self, key: str) -> None:
        """Scroll sideways until a column is seen."""
        column_windows = self.windows(self._cells)
        now = self._step_of(self._reached, column_windows)
        if all(column.key != key for column in column_windows[now].columns):
            self._scroll_columns(self._step_of(key, column_windows) - now)

    def action_columns_left(self) -> None:
        self._scroll_columns(-1)

    def action_columns_right(self) -> None:
        self._scroll_columns(1)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        if not (event.shift or event.ctrl):
            super()._wheel(event, rows)
            return
        self._scroll_columns(1 if rows > 0 else -1)
        event.stop()

    def _on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        self._scroll_columns(1)
        event.stop()

    def _on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        self._scroll_columns(-1)
        event.stop()

    # Drawing

    def header_line(self, width: int) -> list[Piece]:
        """Return the titles, an arrow at the sorted one, and the sign of more to the right."""
        window = self.window(width)
        pieces: list[Piece] = []
        for column, cells in window.sizes:
            if pieces:
                pieces.append((" " * GAP, ""))
            align = "right" if column.is_right else "left"
            ends = self.ends(column, cells)
            title = f"{column.title}  {visible(ends.gapped)}" if ends else column.title
            if isinstance(column.unit, IntervalUnit):
                title = self.axis(column).labels(cells, column.unit.mark)
            if column.key != self.sort_column:
                pieces.append((fit(title, cells, align=align), ""))
                continue
            arrow = glyphs.current().down if self.sort_descending else glyphs.current().up
            title = clip(title, cells - 1) + arrow
            pieces.append((fit(title, cells, align=align), "header-sort"))
        if window.after:
            return [*_until(pieces, width - 1), (glyphs.current().more_right, "accent")]
        return pieces

    def _gutter_glyph(self, states: tuple[str, ...]) -> str:
        if "header" in states and self.window(self._cells).before:
            return glyphs.current().more_left
        return super()._gutter_glyph(states)


def _until(pieces: Sequence[Piece], cells: int) -> list[Piece]:
    """Return pieces cut or padded to a number of cells."""
    cut: list[Piece] = []
    for text, style in pieces:
        part = clip(text, cells)
        cells -= cell_width(part)
        cut.append((part, style))
    return [*cut, (" " * cells, "")]


class ListTable(TableView):
    """The rows of a list page."""


class TablePane(Framed, Vertical):
    """Override :meth:`fill`, which shows the rows that pass :attr:`filter`."""

    VIEW: ClassVar[type[TableView]] = TableView
    VIEW_ID: ClassVar[str | None] = None
    FILTER_HELP: ClassVar[str] = ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.filter = ""

    def compose(self) -> ComposeResult:
        yield FilterBar(self.FILTER_HELP)
        view = self.VIEW(id=self.VIEW_ID)
        view.finder.open_filter = self.open_filter
        yield view
        yield Rows([[]], id="sums")

    @property
    def table(self) -> TableView:
        """The table view."""
        return self.query_one(TableView)

    def on_mount(self) -> None:
        """Start without a filter, and with nothing marked."""
        self.query_one("#sums").display = False

    def fill(self) -> None:
        """Show the rows that pass the filter."""
        raise NotImplementedError

    def clear(self) -> bool:
        """Take back one thing: the marks or the filter; False when there is none."""
        if self.table.marks:
            self.table.set_marks(set())
        elif self.filter:
            self.change_filter("")
        else:
            return False
        return True

    # The filter

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(FilterBar).ask(self.filter)

    def change_filter(self, text: str) -> None:
        """Show only the rows that pass a filter."""
        self.filter = text
        self.query_one(FilterBar).show(text)
        self.fill()

    @on(FilterBar.Changed)
    def _filter_typed(self, event: FilterBar.Changed) -> None:
        event.stop()
        if event.text != self.filter:
            self.filter = event.text
            self.fill()

    @on(FilterBar.Left)
    def _filter_left(self, event: FilterBar.Left) -> None:
        event.stop()
        if event.clear:
            self.change_filter("")
        self.table.focus()
        self.query_one(FilterBar).show(self.filter)

    # What is marked

    def sums(self, marks: set[Hashable]) -> Sequence[str]:
        """Return what the marked rows add up to, in lines; nothing without any."""
        return ()

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
        self.say_sums(event.marks)

    def say_sums(self, marks: set[Hashable]) -> None:
        """Say what the marked rows add up to."""
        texts = self.sums(marks) if marks else ()
        line = self.query_one("#sums", Rows)
        line.display = bool(texts)
        room = max(self.size.width - 2, 20)
        line.set_rows(
            [
                [(f" {part}", "dim" if number else "accent")]
                for number, text in enumerate(texts)
                for part in wrap(text, room)
            ]
        )
