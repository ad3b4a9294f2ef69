"""The layer pane: a table of layers or groups, its filter, and what is marked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.groups import has_gpu_times
from dld_tui.core.report.layer_table import (
    ENGINE_FILTER,
    REPORT_FILTER,
    LayerSelection,
    findings_text,
    group_table,
    groups_of,
    informative_columns,
    layer_table,
    select,
    summarise_selection,
)
from dld_tui.core.report.records import LAYER_MEANS, Group, Layer, Wording
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, layer_style
from dld_tui.widgets.lists.table_view import TablePane, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

if TYPE_CHECKING:
    from dld_tui.core.report.measurement import Measurement

_BETWEEN = " · "
_VALUES = 3
"""Values of a kind that are named."""
_EARLIER = {
    "time": "time_ms", "heat": "cost", "gpu_time": "gpu_time_ms", "min": "min_ms", "max": "max_ms",
    "mean": "mean_ms", "median": "median_ms", "input": "input_dims", "output": "output_dims",
}  # fmt: skip
_KEYS = (
    "{report.filter} filter  {table.sort} sort  {report.group} group  {report.columns} columns  "
    "{report.csv} csv"
)


def sums_text(selection: LayerSelection, wording: Wording) -> str:
    """Return the figures of marked layers on one line."""
    part = f"{fmt.percent(selection.percent)} % of all {wording.rows}"
    parts = [
        f"{selection.count} marked",
        f"total {selection.total_ms:,.3f} ms ({part})",
        f"min {selection.min_ms:,.3f}",
        f"max {selection.max_ms:,.3f}",
        f"mean {selection.mean_ms:,.3f}",
    ]
    if selection.gpu_ms is not None:
        parts.append(f"GPU {selection.gpu_ms:,.3f} ms")
    return _BETWEEN.join(parts)


def values_text(selection: LayerSelection) -> str:
    """Return the distinct values of marked layers by frequency, on one line."""
    parts = []
    for name, values in selection.distinct:
        shown = [f"{visible(value) or fmt.UNKNOWN}×{count:,}" for value, count in values[:_VALUES]]
        more = f" +{len(values) - _VALUES}" if len(values) > _VALUES else ""
        parts.append(f"{name} {' '.join(shown)}{more}")
    return _BETWEEN.join(parts)


def _findings(layer: Layer) -> str:
    return findings_text(layer, glyphs.current().warning)


def screen_table(
    layers: Sequence[Layer],
    measurement: Measurement | None = None,
    wording: Wording | None = None,
    *,
    engine: bool = False,
) -> Table[Layer]:
    """Return the layers with all columns that a screen can show."""
    view = "engine screen" if engine else "report screen"
    table = layer_table(layers, view, measurement, wording)
    own: dict[str, dict[str, Any]] = {
        "type": {"style": lambda layer: layer_style(layer.type)},
        "findings": {"text": _findings},
    }
    columns = [replace(column, **own.get(column.key, {})) for column in table.columns]
    return replace(table, columns=columns)


class LayerTable(TableView):
    """The rows."""

    FITTED = True
    HELP = (
        "One row per layer, or per group after {report.group}. {report.filter} filters as you "
        "type, {table.sort} sorts by the next column and {table.reverse} reverses, {list.mark} "
        "marks rows and the line below shows their sum, {list.activate} goes to the ONNX node or "
        "into the group, {report.show} shows the layer in the timeline of a report, or in the "
        "graph of an engine. Left and Right show more columns."
    )


class LayerPane(TablePane):
    """Layers as a table that can be filtered, sorted, grouped and added up.

    Args:
        engine: The layers are of an engine, not of a report.
        keys: What the frame says of keys.
        id: The widget's.
    """

    VIEW = LayerTable
    VIEW_ID = "layer-table"

    @dataclass
    class LayerMoved(Message):
        """The cursor is on another layer."""

        index: int

    @dataclass
    class LayerChosen(Message):
        """Enter or a double click on a layer."""

        index: int

    def __init__(self, *, engine: bool = False, keys: str = _KEYS, id: str | None = None) -> None:
        super().__init__(id=id)
        self.engine = engine
        self.FILTER_HELP = ENGINE_FILTER if engine else REPORT_FILTER  # type: ignore[misc]
        self._keys = keys
        self.all_layers: Sequence[Layer] = ()
        self.groups: Sequence[Group] = ()
        self.wording = LAYER_MEANS if engine else Wording()
        """What the rows and their times are."""
        self.by = "layer"
        """What the rows are grouped by; ``layer`` is the plain table."""
        self.group: tuple[str, str] | None = None
        """Only layers of this (grouping, key) are shown."""
        self.known = screen_table((), engine=engine)
        """What the table can show."""
        self.columns: tuple[str, ...] = informative_columns(self.known)

    def on_mount(self) -> None:
        """Start with the costliest layer on top."""
        super().on_mount()
        self.table.sort_by("time_ms", descending=True)
        self._say()

    # Content

    def set_layers(
        self,
        layers: Sequence[Layer],
        measurement: Measurement | None = None,
        wording: Wording | None = None,
    ) -> None:
        """Show the layers of a report or an engine, the costliest on top.

        Where layers are shown already, cursor, order and chosen columns stay.

        Args:
            layers: The layers.
            measurement: What they are of; None when only one figure of each is known.
            wording: What the rows and their times are; by default those of layers.
        """
        is_first, is_usual = not self.all_layers, self.columns == informative_columns(self.known)
        self.all_layers = layers
        self.known = screen_table(layers, measurement, wording, engine=self.engine)
        self.wording = wording or self.wording
        if is_usual:
            self.columns = informative_columns(self.known)
        none = "The file has no layers." if self.engine else "No layer was measured in this report."
        self.table.empty = (
            hint("No layer matches the filter. {report.clear} clears it.") if layers else none
        )
        self.table.set_marks(set())
        self.fill()
        if not is_first:
            return
        if has_gpu_times(layers):
            self.table.sort_by("percent", descending=True)
        self.table.cursor = 0

    def set_columns(self, keys: Sequence[str]) -> None:
        """Choose the columns, by key, in the order of the list of all columns.

        Keys that earlier versions stored are known, too.
        """
        keys = [_EARLIER.get(key, key) for key in keys]
        self.columns = tuple(key for key in self.known.keys if key in keys) or informative_columns(
            self.known
        )
        self.fill()

    def set_filter(self, text: str, group: tuple[str, str] | None = None) -> None:
        """Show only the layers that pass a filter, or belong to a group."""
        self.group = group
        if group is not None:
            self._set_grouping("layer")
        self.change_filter(text)

    def set_grouping(self, by: str) -> None:
        """Group the rows; ``layer`` shows the layers themselves."""
        self.group = None
        self._set_grouping(by)
        self.fill()

    def _set_grouping(self, by: str) -> None:
        if by != self.by:
            self.by = by
            self.table.set_marks(set())
            on_gpu = has_gpu_times(self.all_layers)
            self.table.sort_column = "percent" if on_gpu else "time_ms"
            self.table.sort_descending = True

    def next_grouping(self) -> None:
        """Group by the next thing: layer, type, node, operator, scope, provider, precision."""
        order = self.known.groups
        self.set_grouping(order[(order.index(self.by) + 1) % len(order)])

    def fill(self) -> None:
        """Show the layers or groups that pass the filter."""
        if self.by == "layer":
            rows = select(self.all_layers, self.filter, self.group, engine=self.engine)
            self.table.set_table(self.known.pick(self.columns), rows)
        else:
            self.groups = groups_of(self.all_layers, self.by, self.filter, engine=self.engine)
            self.table.set_table(group_table(self.groups, self.by, "screen", self.all_layers))
        self._say()

    # What is where

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer under the cursor; None on a group or without rows."""
        row = self.table.row_at_cursor()
        return self.all_layers[row] if row is not None and self.by == "layer" else None

    def shown_layers(self) -> list[Layer]:
        """Return the layers as they are shown: filtered and sorted; none while grouped."""
        return self.table.shown_rows() if self.by == "layer" else []

    def shown_groups(self) -> list[Group]:
        """Return the groups as they are shown, in order; none while not grouped."""
        return self.table.shown_rows() if self.by != "layer" else []

    def csv(self) -> tuple[str, int, str]:
        """Return what is shown: the end of a file's name, how many rows, and these as CSV."""
        if self.by != "layer":
            groups = self.shown_groups()
            return f"-by-{self.by}", len(groups), csv_of(group_table(groups, "", "csv"))
        layers = self.shown_layers()
        view = "engine csv" if self.engine else "report csv"
        return "", len(layers), csv_of(layer_table(layers, view))

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
        if super().clear():
            return True
        if self.group is not None:
            by, key = self.group
            self.set_grouping(by)
            self.table.go_to_key(key)
        elif self.by != "layer":
            self.set_grouping("layer")
        else:
            return False
        return True

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

    def sums(self, marks: set[Hashable]) -> list[str]:
        """Return what the marked rows add up to, and their distinct values."""
        if self.by != "layer":
            chosen = [group for group in self.groups if group.key in marks]
            total = sum(group.cost_ms for group in chosen)
            percent = sum(group.percent for group in chosen)
            return [f"{len(chosen)} groups  {total:,.3f} ms  {fmt.percent(percent)} %"]
        layers = [self.all_layers[key] for key in marks if isinstance(key, int)]
        selection = summarise_selection(layers)
        return (
            []
            if selection is None
            else [sums_text(selection, self.wording), values_text(selection)]
        )

    def _say(self) -> None:
        shown, whole = len(self.table.order), len(self.all_layers)
        rows = self.wording.rows.capitalize()
        if self.by != "layer":
            title = f"{rows} by {self.by.replace('_', ' ')} · {fmt.plural(shown, 'group')}"
        elif self.group is not None:
            title = f"{rows} of {self.group[0]} {visible(self.group[1])} · {fmt.count(shown)}"
        else:
            of = "" if shown == whole else f" of {fmt.count(whole)}"
            title = f"{rows} · {fmt.count(shown)}{of}"
        self.frame.show(title, self._keys)


def column_title(column: Column[Any]) -> str:
    """Return what a column is called where it has no title."""
    return column.title or {"cost": "bar"}.get(column.key, column.key)


class ColumnList(LineView):
    """One row a column; Space and Enter switch it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "activate", "switch", show=False)]
    HELP = "Space shows or hides a column, \\ restores the default columns, Esc closes the list."


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """Which columns to show; changes are kept when it is closed."""

    TITLE_TEXT = "Columns"
    KEYS = "Space switch  \\ default  Esc done"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "done", show=False),
        Binding("C", "close", "done", show=False),
        Binding("backslash", "defaults", "default", show=False),
    ]

    def __init__(self, chosen: Sequence[str], known: Table[Layer]) -> None:
        super().__init__()
        self.chosen = set(chosen)
        self.known = known

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = ColumnList(self._rows())
        view.styles.height = min(len(self.known.columns), max(self.app.size.height - 6, 4))
        yield view

    def _rows(self) -> ListSource:
        shown = glyphs.current()
        rows: list[list[Piece]] = []
        for column in self.known.columns:
            on = column.key in self.chosen
            rows.append(
                [
                    (shown.on if on else shown.off, "accent" if on else "dim"),
                    (f" {column_title(column):<14}", "strong" if on else ""),
                    (f" {column.help}", "dim"),
                ]
            )
        return ListSource(rows, self.known.keys)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Show or hide the column at the cursor."""
        event.stop()
        self.chosen ^= {str(event.key)}
        self.query_one(ColumnList).set_lines(self._rows())

    def action_defaults(self) -> None:
        """Take the columns that a new user sees."""
        self.chosen = {column.key for column in self.known.columns if column.shown}
        self.query_one(ColumnList).set_lines(self._rows())

    def go_back(self) -> None:
        """Give the chosen columns, in the order of the table."""
        self.dismiss(tuple(key for key in self.known.keys if key in self.chosen))
