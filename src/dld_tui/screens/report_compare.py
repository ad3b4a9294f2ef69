"""A report's part in comparing: choosing the other one, and showing a layer when asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.screens.compare_ask import ask_reports

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report
    from dld_tui.widgets.page import Page

    class _Base(Page):
        path: Path | None
        report: Report | None

        def show_in_table(self, index: int) -> None: ...
else:
    _Base = object


class ReportCompare(_Base):
    """A mixin of the report screen."""

    _awaited_layer: int | None = None

    def action_compare_with(self) -> None:
        """Choose another report and compare this one with it."""
        ask_reports(self.app, self.path)

    def reveal_layer(self, index: int) -> None:
        """Go to a layer in the table, as soon as the report is read."""
        self._awaited_layer = index
        self.show_awaited_layer()

    def show_awaited_layer(self) -> None:
        """Go to the layer that was asked for before the report was read."""
        index, report = self._awaited_layer, self.report
        if index is not None and report is not None:
            self._awaited_layer = None
            if 0 <= index < len(report.layers):
                self.show_in_table(index)
