"""Quick add: choose an operator by fuzzy search, reading its documentation."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from dld_tui.core.operators.palette import Grouping, OperatorPalette, PaletteOperator
from dld_tui.core.text import visible
from dld_tui.widgets.dialogs import Dialog, DialogBox
from dld_tui.widgets.host import host
from dld_tui.widgets.operator_browser import OperatorBrowser

_WIDTH = 150
_STATE = ("layouts", "operators")


class AddNode(Dialog[PaletteOperator]):
    """Gives the operator to add, or None."""

    TITLE_TEXT = "Add an operator"
    KEYS = "Enter add  Tab group  ⇧↑↓ read  Esc close"

    def __init__(self, palette: OperatorPalette, title: str = "") -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title) or self.TITLE_TEXT
        self.palette = palette

    def body(self) -> Iterable[Widget]:
        """Return the browser."""
        browser = OperatorBrowser(self.palette, remembered_grouping(self))
        browser.styles.height = max(8, int(self.app.size.height * 0.9) - 4)
        yield browser

    def on_mount(self) -> None:
        """Take the room there is."""
        self.query_one(DialogBox).styles.width = min(_WIDTH, self.app.size.width - 2)

    def on_operator_browser_chosen(self, event: OperatorBrowser.Chosen) -> None:
        """Give the operator, or say why the model cannot take it."""
        event.stop()
        item = event.operator
        if item.too_new is not None:
            present = self.palette.imports.get(item.domain)
            self.notify(
                f"{visible(item.name)} needs opset {item.too_new}; {present} is imported",
                severity="warning",
                timeout=4,
                markup=False,
            )
        else:
            self.dismiss(item)

    def on_operator_browser_grouped(self, event: OperatorBrowser.Grouped) -> None:
        """Keep how operators are listed."""
        event.stop()
        remember_grouping(self, event.grouping)


def remembered_grouping(node: Widget) -> Grouping:
    """Return how operators were listed the last time."""
    name = host(node).state.get(*_STATE).get("grouping")
    return next((item for item in Grouping if item.value == name), Grouping.CATEGORY)


def remember_grouping(node: Widget, grouping: Grouping) -> None:
    """Keep how operators are listed for the next time."""
    host(node).state.put(*_STATE, {"grouping": grouping.value})
