"""Which panes of a report are seen, and going from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from dld_tui.widgets.blocks import Line
from dld_tui.widgets.styled import Rows

if TYPE_CHECKING:
    from textual.screen import Screen

    class _Base(Screen[None]):
        pane: str
        maximised: bool

        def check_facts(self) -> None: ...
else:
    _Base = object

PANES = ("summary", "timeline", "layers", "charts", "environment")
_LARGE = (150, 40)
"""Columns and rows from which all panes are seen at once."""
_MEDIUM = (100, 32)
"""Columns and rows from which summary and timeline stay beside the chosen pane."""


class PaneStrip(Rows):
    """The row that names the panes and shows which one is chosen."""

    current: str = PANES[0]

    def content(self, width: int) -> list[Line]:
        """Return the row."""
        line: Line = [(" ", "bar-row")]
        for number, name in enumerate(PANES, 1):
            chosen = name == self.current
            line.append((f" {number} ", "current key" if chosen else "bar-row key"))
            line.append((f"{name} ", "current" if chosen else "bar-row"))
        return [[*line, (" " * width, "bar-row")]]


class ReportPanes(_Base):
    """A mixin: arranges the panes of the report screen for its size."""

    _arranged: tuple[set[str], bool] | None = None

    @property
    def size_class(self) -> str:
        """``large``, ``medium`` or ``small``."""
        width, height = self.app.size
        for name, (columns, rows) in (("large", _LARGE), ("medium", _MEDIUM)):
            if width >= columns and height >= rows:
                return name
        return "small"

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen at this size."""
        if self.maximised or self.size_class == "small":
            return {self.pane}
        if self.size_class == "large":
            return set(PANES)
        lower = self.pane if self.pane in PANES[2:] else "layers"
        return {"summary", "timeline", lower}

    def on_resize(self, event: events.Resize) -> None:
        """Show what fits."""
        self.arrange_panes()

    def arrange_panes(self) -> None:
        """Show the panes that fit."""
        shown = self.visible_panes()
        large = self.size_class == "large"
        if (shown, large) != self._arranged:
            self._arranged = (shown, large)
            for name in PANES:
                self.query_one(f"#{name}").display = name in shown
            self.query_one("#side").display = bool(shown & {"charts", "environment"})
            self.query_one("#lower").display = bool(shown & set(PANES[2:]))
            self.set_class(len(shown) == 1, "-single")
            self.set_class(large, "-large")
        self._name_pane()

    def _name_pane(self) -> None:
        strip = self.query_one(PaneStrip)
        if strip.current != self.pane:
            strip.current = self.pane
            strip.refresh()

    def action_pane(self, number: str) -> None:
        """Go to a pane by its number."""
        self.show_pane(PANES[int(number) - 1])

    def show_pane(self, name: str) -> None:
        """Show a pane and put the focus into it."""
        self.pane = name
        self.arrange_panes()
        self.focus_pane()
        self.check_facts()

    def focus_pane(self) -> None:
        """Put the focus into the chosen pane."""
        inner = {"layers": "#layer-table", "charts": "#type-chart"}.get(self.pane, f"#{self.pane}")
        self.query_one(inner).focus()

    def action_maximise_pane(self) -> None:
        """Give the focused pane all the room, or take it back."""
        self.maximised = not self.maximised
        self.arrange_panes()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Name the pane that has the focus."""
        for node in event.widget.ancestors_with_self:
            if node.id in PANES and node.id != self.pane:
                self.pane = str(node.id)
                self._name_pane()
