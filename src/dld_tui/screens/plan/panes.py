"""Which panes of an engine are seen, and what its layers are narrowed to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.report.groups import UNKNOWN, group_layers
from dld_tui.core.report.layer_table import precision_style, short_precision
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.screens.panes import Panes
from dld_tui.widgets.dialogs.search import PickItem
from dld_tui.widgets.operators.styles import layer_style

PANES = ("summary", "layers", "findings", "graph", "charts", "tables")
_BESIDE = ("findings", "graph", "charts", "tables")
"""Panes that a large screen shows beside the layers, one at a time."""
_DETAILED = ("layers", "findings", "graph", "tables")
"""Panes whose cursor is on a layer."""


class PlanPanes(Panes):
    """A mixin: arranges the panes of the plan screen for its size."""

    PANES: ClassVar[tuple[str, ...]] = PANES
    FOCUS: ClassVar[dict[str, str]] = {
        "layers": "#layer-table", "charts": "#type-chart", "tables": "#special-table",
    }  # fmt: skip
    beside = "graph"
    """The pane beside the layers, on a large screen."""

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen."""
        if self.pane in _BESIDE:
            self.beside = self.pane
        if self.maximised or self.size_class == "small":
            return {self.pane}
        if self.size_class == "large":
            return {"summary", "layers", self.beside}
        return {self.pane}

    def place_panes(self, shown: set[str]) -> None:
        """Show the details under what has layers, unless one pane has all the room."""
        detailed = not self.maximised and not shown.isdisjoint(_DETAILED)
        self.query_one("#details").display = detailed
        self.query_one("#side").display = detailed or not shown.isdisjoint(_BESIDE)
        self.query_one("#main").display = shown != {"summary"}
        self.set_class(shown.isdisjoint(_BESIDE), "-only-details")

    def maximise(self, maximised: bool) -> None:
        """Give the focused pane all the room, or take it back."""
        super().maximise(maximised)
        self.place_panes(self.visible_panes())

    def focus_pane(self) -> None:
        """Put the focus into the chosen pane; of the graph, into the view that is seen."""
        if self.pane == "graph":
            self.focus_graph()
        else:
            super().focus_pane()

    def focus_graph(self) -> None:
        """Put the focus into the graph."""
        raise NotImplementedError

    def details(self) -> Widget:
        """Return the details, which have a focus of their own."""
        return self.query_one("#details")


_Filter: TypeAlias = "tuple[str, tuple[str, str] | None]"
"""(text of the filter, (grouping, key) that the layers belong to)."""
_MOST_TACTICS = 200


def narrowings(layers: Sequence[Layer]) -> tuple[list[PickItem], dict[str, _Filter]]:
    """Return what to choose from, and the filter of each by its key."""
    items: list[PickItem] = []
    filters: dict[str, _Filter] = {}

    def add(what: str, shown: str, style: str, count: int, chosen: _Filter) -> None:
        key = f"{what} {len(items)}"
        row = [
            (f"{what:<10} ", "dim"), (shown, style), (f"  {fmt.plural(count, 'layer')}", "dim"),
        ]  # fmt: skip
        items.append(PickItem(key, row, f"{what} {shown}"))
        filters[key] = chosen

    wrong = sum(bool(layer.details.get("findings")) for layer in layers)
    if wrong:
        add("finding", "any", "warn", wrong, ("findings>0", None))
    for group in group_layers(layers, "type"):
        shown, style = visible(group.key), layer_style(group.key)
        add("type", shown, style, group.count, ("", ("type", group.key)))
    for group in group_layers(layers, "precision"):
        if group.key != UNKNOWN:
            shown, style = short_precision(group.key), precision_style(group.key)
            add("precision", shown, style, group.count, ("", ("precision", group.key)))
    tactics = Counter(str(layer.details.get("tactic") or "") for layer in layers)
    del tactics[""]
    for tactic, count in tactics.most_common(_MOST_TACTICS):
        add("tactic", visible(tactic), "", count, ("", ("tactic", tactic)))
    return items, filters
