"""The one-line prompt of a list's search."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Label

from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.lists.line_source import LineSearch


class SearchBar(Horizontal):
    """Searches while one types; Enter stays at the match, Esc returns to where it began."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("up", "again(True)", "previous", show=False),
        Binding("down", "again", "next", show=False),
    ]

    def __init__(self, view: LineSearch) -> None:
        super().__init__()
        self.view = view
        self._start = view.cursor
        self._before = view.search_pattern

    def compose(self) -> ComposeResult:
        """Lay out the prompt."""
        yield Label("/", markup=False)
        yield TextField(placeholder="search  ↓↑ next  Enter keep  Esc back")

    def on_mount(self) -> None:
        """Take the keys, and replace a bar that is already there."""
        for bar in self.screen.query(SearchBar):
            if bar is not self:
                bar.remove()
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the first match from where the search began."""
        event.stop()
        if event.value:
            self.view.search(event.value, start=self._start)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Stay at the match; an empty search repeats the last one."""
        event.stop()
        if not event.value and self._before:
            self.view.search(self._before)
        self._close()

    def action_again(self, backwards: bool = False) -> None:
        """Go to the next match without leaving the prompt."""
        self.view.search(self.view.search_pattern, backwards)

    def action_cancel(self) -> None:
        """Go back to where the search began and forget the pattern."""
        self.view.search_pattern = self._before
        self.view.cursor = self._start
        self.view.invalidate()
        self._close()

    def on_input_blurred(self) -> None:
        """Go away when another widget is chosen."""
        self.remove()

    def _close(self) -> None:
        self.screen.set_focus(self.view)  # now: what follows the cursor looks who has the keys
        self.remove()
