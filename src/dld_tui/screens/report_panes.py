"""Which panes of a report are seen."""

from __future__ import annotations

from typing import ClassVar

from dld_tui.screens.panes import Panes

PANES = ("summary", "timeline", "layers", "charts", "environment")


class ReportPanes(Panes):
    """A mixin: arranges the panes of the report screen for its size."""

    PANES: ClassVar[tuple[str, ...]] = PANES
    FOCUS: ClassVar[dict[str, str]] = {"layers": "#layer-table", "charts": "#type-chart"}

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen: on a medium size summary and timeline stay."""
        if self.maximised or self.size_class == "small":
            return {self.pane}
        if self.size_class == "large":
            return set(PANES)
        lower = self.pane if self.pane in PANES[2:] else "layers"
        return {"summary", "timeline", lower}

    def place_panes(self, shown: set[str]) -> None:
        """Hide what holds nothing."""
        self.query_one("#side").display = bool(shown & {"charts", "environment"})
        self.query_one("#lower").display = bool(shown & set(PANES[2:]))
