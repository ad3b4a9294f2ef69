"""Which panes of an engine are seen: on a large screen the layers, one other, and the details."""

from __future__ import annotations

from typing import ClassVar

from textual.widget import Widget

from dld_tui.screens.panes import Panes

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

    def action_maximise_pane(self) -> None:
        """Give the focused pane all the room, or take it back."""
        super().action_maximise_pane()
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
