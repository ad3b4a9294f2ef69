"""The layer pane: a table of layers or groups, its filter, and what is marked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label

from dld_tui.core import fmt
from dld_tui.core.report.groups import has_gpu_times, whole_ms
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.text import visible
from dld_tui.widgets.dialogs.dialogs import text_field
from dld_tui.widgets.layers.columns import REPORT_COLUMNS, ColumnSet, fitted_column, group_columns
from dld_tui.widgets.layers.rows import Selection, groups_of, select, summarise_selection
from dld_tui.widgets.layers.sources import GroupSource, LayerSource
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.lists.table_view import Column, TableView
from dld_tui.widgets.shell.frame import Frame

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import PassTimes

_BETWEEN = " · "
_VALUES = 3
"""Values of a kind that are named."""
_KEYS = (
    "{report.filter} filter  {table.sort} sort  {report.group} group  {report.columns} columns  "
    "{report.csv} csv"
)


def sums_text(found: Selection) -> str:
    """Return the figures of marked layers on one line."""
    parts = [
        f"{found.count} marked",
        f"total {found.total_ms:,.3f} ms ({found.percent:.1f} % of the sum of all medians)",
        f"min {found.min_ms:,.3f}",
        f"max {found.max_ms:,.3f}",
        f"mean {found.mean_ms:,.3f}",
    ]
    if found.together_ms is not None and found.pass_percent is not None:
        parts.append(
            f"together {found.together_ms:,.3f} ms, {found.pass_percent:.1f} % of each pass"
        )
    if found.gpu_ms is not None:
        parts.append(f"GPU {found.gpu_ms:,.3f} ms")
    return _BETWEEN.join(parts)


def values_text(found: Selection) -> str:
    """Return the distinct values of marked layers by frequency, on one line."""
    parts = []
    for what, values in found.distinct:
        shown = [f"{visible(value) or fmt.UNKNOWN}×{count}" for value, count in values[:_VALUES]]
        more = f" +{len(values) - _VALUES}" if len(values) > _VALUES else ""
        parts.append(f"{what} {' '.join(shown)}{more}")
    return _BETWEEN.join(parts)


class LayerTable(TableView):
    """The rows; `/` filters instead of searching."""

    HELP = (
        "One row a layer, or a group of layers after {report.group}. {report.filter} filters "
        "while you type, {table.sort} sorts by the next column and {table.reverse} reverses, "
        "{list.mark} marks rows and the line below adds them up, {list.activate} goes to the ONNX "
        "node or into the group, {report.show} shows the layer in the timeline of a report, or in "
        "the graph of an engine. Left and Right show more columns."
    )

    def action_search(self) -> None:
        """Open the pane's filter."""
        self.query_ancestor(LayerPane).open_filter()


class LayerFilter(Horizontal):
    """The row in which the filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "drop", "clear", show=False),
        Binding("down", "keep", "to the rows", show=False),
    ]

    def __init__(self, hint: str) -> None:
        super().__init__()
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Lay out the name and the field."""
        yield Label("filter ", markup=False)
        yield text_field(placeholder=self._hint)

    def action_drop(self) -> None:
        """Show everything again."""
        self.query_one(Input).value = ""
        self.query_ancestor(LayerPane).close_filter()

    def action_keep(self) -> None:
        """Go to the rows with the filter as it is."""
        self.query_ancestor(LayerPane).close_filter()


class LayerPane(Frame, Vertical):
    """Layers as a table that can be filtered, sorted, grouped and added up."""

    @dataclass
    class LayerMoved(Message):
        """The cursor is on another layer."""

        index: int

    @dataclass
    class LayerChosen(Message):
        """Enter or a double click on a layer."""

        index: int

    def __init__(
        self, *, columns: ColumnSet = REPORT_COLUMNS, keys: str = _KEYS, id: str | None = None
    ) -> None:
        super().__init__(id=id, classes="frame")
        self.known = columns
        """What the table can show."""
        self._keys = keys
        self.all_layers: Sequence[Layer] = ()
        self.groups: Sequence[Group] = ()
        self.total_ms = 0.0
        """The sum of the layers' times."""
        self.by_pass: PassTimes | None = None
        """The layers' times by pass, where they are known so."""
        self.gpu_by_pass: PassTimes | None = None
        self.by = "layer"
        """What the rows are grouped by; ``layer`` is the plain table."""
        self.group: tuple[str, str] | None = None
        """Only layers of this (grouping, key) are shown."""
        self.filter = ""
        self.columns: tuple[str, ...] = columns.default_keys
        self._source = LayerSource((), columns=columns)

    def compose(self) -> ComposeResult:
        """Lay out the filter, the table and the line of sums."""
        yield LayerFilter(self.known.filter_help)
        yield LayerTable(self._layer_columns(), id="layer-table")
        yield Rows([[]], id="sums")

    @property
    def table(self) -> LayerTable:
        """The table view."""
        return self.query_one(LayerTable)

    def on_mount(self) -> None:
        """Start with the costliest layer on top, and without a filter row."""
        self.query_one(LayerFilter).display = False
        self.query_one("#sums").display = False
        self.table.sort_by("time", descending=True)
        self._say()

    # Content

    def set_layers(
        self,
        layers: Sequence[Layer],
        total_ms: float,
        by_pass: PassTimes | None = None,
        gpu_by_pass: PassTimes | None = None,
    ) -> None:
        """Show the layers of a report or an engine, the costliest on top.

        Args:
            layers: The layers.
            total_ms: The sum of their times.
            by_pass: Their times by pass; None when only their medians are known.
            gpu_by_pass: The same of their kernels on a GPU.
        """
        self.all_layers, self.total_ms = layers, total_ms
        self.by_pass, self.gpu_by_pass = by_pass, gpu_by_pass
        self._source = LayerSource(layers, by_pass, self.known)
        self.set_columns(self.known.telling(layers))
        self.table.empty = (
            "Nothing passes the filter. Esc clears it." if layers else self.known.none
        )
        self.table.set_marks(set())
        self._fill()
        if has_gpu_times(layers):
            self.table.sort_by("percent", descending=True)
        self.table.cursor = 0

    def set_columns(self, keys: Sequence[str]) -> None:
        """Choose the columns, by key, in the order of the list of all columns."""
        self.columns = (
            tuple(key for key in self.known.by_key if key in keys) or self.known.default_keys
        )
        if self.by == "layer":
            self.table.set_columns(self._layer_columns())

    def set_filter(self, text: str, group: tuple[str, str] | None = None) -> None:
        """Show only the layers that pass a filter, or belong to a group."""
        self.filter, self.group = text, group
        if group is not None and self.by != "layer":
            self._set_grouping("layer")
        field = self.query_one(Input)
        if field.value != text:
            field.value = text
        self.query_one(LayerFilter).display = bool(text) or field.has_focus
        self._fill()

    def set_grouping(self, by: str) -> None:
        """Group the rows; ``layer`` shows the layers themselves."""
        self.group = None
        self._set_grouping(by)
        self._fill()

    def _set_grouping(self, by: str) -> None:
        if by == self.by:
            return
        self.by = by
        table = self.table
        table.set_marks(set())
        on_gpu = has_gpu_times(self.all_layers)
        plain = by == "layer"
        table.sort_column, table.sort_descending = "percent" if on_gpu else "time", True
        table.set_columns(self._layer_columns() if plain else group_columns(by, on_gpu))

    def next_grouping(self) -> None:
        """Group by the next thing: layer, type, node, operator, scope, provider, precision."""
        order = self.known.groupings
        self.set_grouping(order[(order.index(self.by) + 1) % len(order)])

    def _layer_columns(self) -> list[Column]:
        chosen = [self.known.by_key[key] for key in self.columns]
        if not self.known.fitted:
            return [one.column for one in chosen]
        return [fitted_column(one, self.all_layers) for one in chosen]

    def _fill(self) -> None:
        if self.by == "layer":
            rows = select(self.all_layers, self.filter, self.group, self.known)
            self.table.set_table(self._source, rows)
        else:
            self.groups = groups_of(
                self.all_layers,
                self.by,
                whole_ms(self.all_layers, self.by, self.by_pass, self.gpu_by_pass),
                self.filter,
                self.known,
                self.by_pass,
                self.gpu_by_pass,
            )
            self.table.set_table(GroupSource(self.groups))
        self._say()

    # What is where

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer under the cursor; None on a group or without rows."""
        row = self.table.row_at_cursor()
        return self.all_layers[row] if row is not None and self.by == "layer" else None

    def shown_layers(self) -> list[Layer]:
        """Return the layers as they are shown: filtered and sorted; none while grouped."""
        return [self.all_layers[row] for row in self.table.order] if self.by == "layer" else []

    def shown_groups(self) -> list[Group]:
        """Return the groups as they are shown, in order; none while not grouped."""
        return [self.groups[row] for row in self.table.order] if self.by != "layer" else []

    def go_to(self, index: int, clear: bool = False) -> bool:
        """Move the cursor to a layer; `clear` gives up filter and groups when they hide it."""
        if self.by == "layer" and self.table.go_to_key(index):
            return True
        if not clear:
            return False
        self._set_grouping("layer")
        self.set_filter("")
        return self.table.go_to_key(index)

    def clear(self) -> bool:
        """Take back one thing: marks, the filter, the group, the grouping; False when none."""
        if self.table.marks:
            self.table.set_marks(set())
        elif self.filter:
            self.set_filter("", self.group)
        elif self.group is not None:
            by, key = self.group
            self.set_grouping(by)
            self.table.go_to_key(key)
        elif self.by != "layer":
            self.set_grouping("layer")
        else:
            return False
        return True

    # Filter

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(LayerFilter).display = True
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filter_typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.filter:
            self.filter = event.value
            self._fill()

    @on(Input.Submitted)
    def _filter_kept(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_filter()

    def close_filter(self) -> None:
        """Return to the table; an empty filter takes its row away."""
        self.table.focus()
        self.query_one(LayerFilter).display = bool(self.filter)

    # Messages of the table

    @on(LineView.CursorMoved)
    def _moved(self, event: LineView.CursorMoved) -> None:
        event.stop()
        layer = self.layer_at_cursor()
        if layer is not None:
            self.post_message(self.LayerMoved(layer.index))

    @on(LineView.Activated)
    def _chosen(self, event: LineView.Activated) -> None:
        event.stop()
        if self.by != "layer":
            self.set_filter(self.filter, (self.by, str(event.key)))
            self.table.cursor = 0
        elif isinstance(event.key, int):
            self.post_message(self.LayerChosen(event.key))

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
        line = self.query_one("#sums", Rows)
        texts = self.sums(event.marks)
        line.display = bool(texts)
        room = max(self.size.width - 2, 20)
        line.set_rows(
            [
                [(f" {part}", "dim" if number else "accent")]
                for number, text in enumerate(texts)
                for part in wrap(text, room)
            ]
        )

    def sums(self, marks: set[Hashable]) -> list[str]:
        """Return what the marked rows add up to, and their distinct values; nothing without any."""
        if not marks:
            return []
        if self.by != "layer":
            chosen = [group for group in self.groups if group.key in marks]
            total = sum(group.cost_ms for group in chosen)
            percent = sum(group.percent for group in chosen)
            return [f"{len(chosen)} groups  {total:,.3f} ms  {percent:.1f} %"]
        layers = [self.all_layers[key] for key in marks if isinstance(key, int)]
        found = summarise_selection(layers, self.total_ms, self.by_pass)
        return [] if found is None else [sums_text(found), values_text(found)]

    def _say(self) -> None:
        shown, whole = len(self.table.order), len(self.all_layers)
        if self.by != "layer":
            title = f"Layers by {self.by} · {fmt.count(shown)} groups"
        elif self.group is not None:
            title = f"Layers of {self.group[0]} {visible(self.group[1])} · {fmt.count(shown)}"
        else:
            of = "" if shown == whole else f" of {fmt.count(whole)}"
            title = f"Layers · {fmt.count(shown)}{of}"
        self.frame(title, self._keys)
