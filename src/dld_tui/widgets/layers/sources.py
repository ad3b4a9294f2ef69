"""Layers and groups as the rows of a table view."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.report.groups import priced
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.text import visible
from dld_tui.widgets.charts.bars import ASCII_EIGHTHS, EIGHTHS, HEATS, bar, heat, hottest
from dld_tui.widgets.layers.columns import (
    COMPUTED,
    REPORT_COLUMNS,
    ColumnSet,
    SortValue,
    precision_style,
)
from dld_tui.widgets.lists.table_view import Cell
from dld_tui.widgets.operators.browser import layer_style
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import PassTimes


def bar_ramp() -> str:
    """Return the glyphs of a horizontal bar in the glyph set in use."""
    return ASCII_EIGHTHS if glyphs.current().name == "ascii" else EIGHTHS


class LayerSource:
    """Layers as rows; the key of a row is the layer's index.

    Args:
        layers: The rows.
        by_pass: Their times by pass, for the share of it; None when there was none.
        columns: What the table can show.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        by_pass: PassTimes | None = None,
        columns: ColumnSet = REPORT_COLUMNS,
    ) -> None:
        self.layers = layers
        self.columns = columns
        self.by_pass = by_pass
        self._hot, _ = _extremes(layer.time_ms for layer in layers)
        self._gpu_hot, _ = _extremes(layer.gpu_time_ms for layer in layers)
        self._gpu_total = sum(layer.gpu_time_ms or 0.0 for layer in layers)
        # A bar is of what the layer costs: kernels where they are known.
        self._costs = [layer.time_ms for layer in priced(layers)]
        self._cost_hot, self._costliest = _extremes(self._costs)

    def __len__(self) -> int:
        return len(self.layers)

    def key(self, row: int) -> Hashable:
        """Return the layer's index."""
        return self.layers[row].index

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; times carry their heat."""
        layer = self.layers[row]
        about = self.columns.by_key[column]
        if column == "heat":
            cost = self._costs[row]
            return _bar(cost, self._costliest, width), HEATS[heat(cost, self._cost_hot)]
        if column in COMPUTED:
            return self._share(layer, column), "dim" if column == "of_pass" else ""
        if column == "gpu_time":
            return about.text(layer), HEATS[heat(layer.gpu_time_ms, self._gpu_hot)]
        if column == "percent":
            return about.text(layer), HEATS[heat(self._costs[row], self._cost_hot)]
        if column == "time":
            return about.text(layer), self.heat_style(layer.time_ms)
        if column == "precision":
            return about.text(layer), precision_style(layer.precision)
        if about.style_of is not None:
            return about.text(layer), about.style_of(layer)
        if column == "type":
            return about.text(layer), layer_style(layer.type)
        return about.text(layer), about.style

    def _share(self, layer: Layer, column: str) -> str:
        if column == "of_pass":
            times = self.by_pass
            return fmt.percent(None if times is None else times.of_pass_percent([layer.index]))
        part, whole = layer.gpu_time_ms, self._gpu_total
        return fmt.percent(100 * part / whole if part is not None and whole else None)

    def heat_style(self, time_ms: float | None) -> str:
        """Return the style class of a time."""
        return HEATS[heat(time_ms, self._hot)]

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by."""
        return self.columns.by_key[column].value(self.layers[row])

    def text(self, row: int) -> str:
        """Return all columns, separated by tabs."""
        layer = self.layers[row]
        columns = self.columns.columns
        return "\t".join(column.text(layer) for column in columns if column.key not in COMPUTED)


class GroupSource:
    """Groups as rows; the key of a row is the group's key."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self._hot = hottest(group.cost_ms for group in groups)
        self._longest = max((group.cost_ms for group in groups), default=0.0)

    def __len__(self) -> int:
        return len(self.groups)

    def key(self, row: int) -> Hashable:
        """Return the group's key."""
        return self.groups[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; ``~`` marks a time that had to be shared between nodes."""
        group = self.groups[row]
        style = HEATS[heat(group.cost_ms, self._hot)]
        if column == "heat":
            return _bar(group.cost_ms, self._longest, width), style
        if column == "time":
            return ("~" if group.estimate else "") + fmt.milliseconds(group.time_ms), style
        if column == "percent":
            return fmt.percent(group.percent), style
        if column == "gpu_time":
            return fmt.milliseconds(group.gpu_time_ms), ""
        if column == "count":
            return fmt.count(group.count), "dim"
        return visible(group.key)

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by."""
        group = self.groups[row]
        if column == "count":
            return group.count
        if column == "gpu_time":
            return group.gpu_time_ms
        if column == "percent":
            return group.percent
        return group.key.lower() if column == "key" else group.time_ms

    def text(self, row: int) -> str:
        """Return the columns, separated by tabs."""
        group = self.groups[row]
        time, percent = fmt.milliseconds(group.time_ms), fmt.percent(group.percent)
        return "\t".join((visible(group.key), time, percent, fmt.count(group.count)))


def _extremes(times: Iterable[float | None]) -> tuple[float, float]:
    """Return the time that counts as hot, and the longest."""
    known = [time for time in times if time is not None]
    return hottest(known), max(known, default=0.0)


def _bar(time_ms: float | None, longest: float, width: int) -> str:
    share = time_ms / longest if time_ms is not None and longest > 0 else None
    return bar(share, width, bar_ramp())
