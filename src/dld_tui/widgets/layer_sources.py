"""Layers and groups as the rows of a table view."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_EIGHTHS, EIGHTHS, bar
from dld_tui.widgets.heat import HEATS, heat, hottest
from dld_tui.widgets.layer_columns import BY_KEY, COLUMNS, SortValue, precision_style
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.table_view import Cell


def bar_ramp() -> str:
    """Return the glyphs of a horizontal bar in the glyph set in use."""
    return ASCII_EIGHTHS if glyphs.current().name == "ascii" else EIGHTHS


class LayerSource:
    """Layers as rows; the key of a row is the layer's index."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers
        times = [layer.time_ms for layer in layers if layer.time_ms is not None]
        self._hot = hottest(times)
        self._longest = max(times, default=0.0)

    def __len__(self) -> int:
        return len(self.layers)

    def key(self, row: int) -> Hashable:
        """Return the layer's index."""
        return self.layers[row].index

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; times carry their heat."""
        layer = self.layers[row]
        about = BY_KEY[column]
        if column == "heat":
            return _bar(layer.time_ms, self._longest, width), self.heat_style(layer.time_ms)
        if column in ("time", "percent"):
            return about.text(layer), self.heat_style(layer.time_ms)
        if column == "precision":
            return about.text(layer), precision_style(layer.precision)
        if column == "type":
            return about.text(layer), operator_style(layer.type)
        return about.text(layer), about.style

    def heat_style(self, time_ms: float | None) -> str:
        """Return the style class of a time."""
        return HEATS[heat(time_ms, self._hot)]

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by."""
        return BY_KEY[column].value(self.layers[row])

    def text(self, row: int) -> str:
        """Return all columns, separated by tabs."""
        layer = self.layers[row]
        return "\t".join(column.text(layer) for column in COLUMNS if column.key != "heat")


class GroupSource:
    """Groups as rows; the key of a row is the group's key."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self._hot = hottest(group.time_ms for group in groups)
        self._longest = max((group.time_ms for group in groups), default=0.0)

    def __len__(self) -> int:
        return len(self.groups)

    def key(self, row: int) -> Hashable:
        """Return the group's key."""
        return self.groups[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; ``~`` marks a time that had to be shared between nodes."""
        group = self.groups[row]
        style = HEATS[heat(group.time_ms, self._hot)]
        if column == "heat":
            return _bar(group.time_ms, self._longest, width), style
        if column == "time":
            return ("~" if group.estimate else "") + fmt.milliseconds(group.time_ms), style
        if column == "percent":
            return fmt.percent(group.percent), style
        if column == "count":
            return fmt.count(group.count), "dim"
        return visible(group.key)

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by."""
        group = self.groups[row]
        if column == "count":
            return group.count
        return group.key.lower() if column == "key" else group.time_ms

    def text(self, row: int) -> str:
        """Return the columns, separated by tabs."""
        group = self.groups[row]
        time, percent = fmt.milliseconds(group.time_ms), fmt.percent(group.percent)
        return "\t".join((visible(group.key), time, percent, fmt.count(group.count)))


def _bar(time_ms: float | None, longest: float, width: int) -> str:
    share = time_ms / longest if time_ms is not None and longest > 0 else None
    return bar(share, width, bar_ramp())
