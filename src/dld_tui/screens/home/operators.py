"""The documentation of all operators, with a model or without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.operators.palette import OperatorPalette, newest_opsets
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser
from dld_tui.widgets.dialogs.wiring import remember_grouping, remembered_grouping
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page


class OperatorsBox(Framed, Vertical):
    """The frame of the browser."""


class OperatorsScreen(Page):
    """Browse operators by name, domain, category or version and read what they do.

    Args:
        palette: The operators; see :func:`everything`.
        start: Domain and name of the operator to begin with.
    """

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page")
    CSS_PATH = STYLES / "form.tcss"
    tab_title = "operators"
    HELP = (
        "Type to search by name, category or domain. Tab changes the grouping, Shift with ↑ ↓ "
        "scrolls the documentation, Ctrl with ↑ ↓ shows a newer or older version of the operator, "
        "Enter copies its name."
    )

    def __init__(self, palette: OperatorPalette, start: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.palette = palette
        self.start = start

    def body(self) -> Iterable[Widget]:
        browser = OperatorBrowser(self.palette, remembered_grouping(self), self.start)
        box = OperatorsBox(browser)
        box.frame.show("Operators", "Tab group  ⇧↑↓ read  ^↑↓ version  {page.close} close")
        yield box

    def on_operator_browser_grouped(self, event: OperatorBrowser.Grouped) -> None:
        """Keep how operators are listed."""
        event.stop()
        remember_grouping(self, event.grouping)

    def on_operator_browser_chosen(self, event: OperatorBrowser.Chosen) -> None:
        """Copy the operator's name."""
        event.stop()
        self.app.copy_to_clipboard(event.operator.name)


def everything() -> OperatorPalette:
    """Return all known operators in their newest versions. Imports onnx: call it on a thread."""
    return OperatorPalette(newest_opsets())
