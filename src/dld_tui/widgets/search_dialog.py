"""A dialog with a search field over a list: the base of the palettes and pickers."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable
from time import monotonic
from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from dld_tui.widgets.dialogs import Dialog, DialogBox, text_field
from dld_tui.widgets.line_source import LineSource, ListSource
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.styled import Rows

T = TypeVar("T")

_SLICE_S = 0.01
"""How long collecting keeps the event loop before it lets others run."""
_CHUNK = 200
_OTHER_ROWS = 10
"""Rows of the screen that the list leaves to the rest of the dialog."""


class SearchDialog(Dialog[T]):
    """Type to search, arrows to choose, Enter to take; override :meth:`found` and :meth:`choose`.

    The field has the keys all the time, so the list never has the focus.
    """

    KEYS = "Enter choose  Esc close"
    PLACEHOLDER = "type to search"
    EMPTY = "nothing fits"
    MOST_ROWS = 40
    """Rows of the list on a high screen."""
    WIDTH = 0
    """Cells of text on a wide screen; 0 for those of all dialogs."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(8)", show=False),
        Binding("pageup", "move(-8)", show=False),
    ]

    def body(self) -> Iterable[Widget]:
        """Return the field, the list and how many rows it has."""
        yield text_field("", self.PLACEHOLDER)
        view = LineView(empty=self.EMPTY, classes="-chosen")
        view.can_focus = False
        view.styles.height = min(self.MOST_ROWS, max(4, self.app.size.height - _OTHER_ROWS))
        view.styles.margin = (1, 0, 0, 0)
        yield view
        yield Rows([[]], id="count")

    @property
    def text_width(self) -> int:
        """The cells there are for text."""
        if not self.WIDTH:
            return super().text_width
        return max(20, min(self.WIDTH, self.app.size.width - 8))

    def on_mount(self) -> None:
        """List everything."""
        if self.WIDTH:
            self.query_one(DialogBox).styles.width = self.text_width + 4
        self.search_again()

    @property
    def query_text(self) -> str:
        """What is searched for."""
        return self.query_one(Input).value

    @property
    def view(self) -> LineView:
        """The list."""
        return self.query_one(LineView)

    def found(self, text: str) -> LineSource:
        """Return the rows for a text, the best first."""
        return ListSource()

    def choose(self, index: int) -> None:
        """Take the row at a place in the list."""

    def search_again(self, keep: bool = False) -> None:
        """List what fits now; `keep` holds the cursor on its row."""
        self.show_rows(self.found(self.query_text), keep=keep)

    def show_rows(self, rows: LineSource, *, keep: bool = False, more: str = "") -> None:
        """List rows and say how many they are; `more` says that there are others."""
        self.view.set_lines(rows, keep=keep)
        count = self.query_one("#count", Rows)
        count.set_rows([[(f"{len(rows):,}{more}", "dim")]])

    def on_input_changed(self, event: Input.Changed) -> None:
        """List what fits the text."""
        event.stop()
        self.search_again()

    def action_move(self, rows: int) -> None:
        """Move the list's cursor."""
        self.view.cursor += rows

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the row under the cursor."""
        event.stop()
        if self.view.cursor < len(self.view.lines):
            self.choose(self.view.cursor)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Take the row that was clicked twice."""
        event.stop()
        self.choose(event.index)


class CollectingDialog(SearchDialog[T]):
    """A search dialog for many things: they are collected while one may already type.

    Override :meth:`collect`, which sets ``complete`` when there is nothing more.
    """

    complete = False

    @abstractmethod
    def collect(self, most: int) -> None:
        """Take up to `most` more things in."""

    def on_mount(self) -> None:
        """List what is there and collect the rest."""
        super().on_mount()
        if not self.complete:
            _: Worker[None] = self.run_worker(self._collect_rest(), group="collect", name="collect")

    async def _collect_rest(self) -> None:
        deadline = monotonic() + _SLICE_S
        while not self.complete:
            self.collect(_CHUNK)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self.search_again(keep=True)
