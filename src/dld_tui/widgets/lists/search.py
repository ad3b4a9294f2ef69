"""Searching and filtering a list: the search, and the lines in which one types."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from dld_tui.core.dataclass import dataclass
from dld_tui.widgets.forms.text_field import TextField, text_field
from dld_tui.widgets.lists.styled import compiled

_SLICE_S = 0.02
"""How long a search may keep the event loop before it lets others run."""


class LineSearch:
    """The search in a view, its ``finder``.

    Args:
        view: A widget with ``lines``, a ``cursor`` and ``tasks``.
    """

    def __init__(self, view: Any) -> None:
        self.view = view
        self.pattern = ""
        self.open_filter: Callable[[], None] | None = None
        """What asking does where a pane filters the rows, instead of searching them."""
        self.ask_missing: Callable[[], str] = str
        """Says what the view does not show, where nothing was found. Fit for a terminal."""

    @property
    def has_keys(self) -> bool:
        """Whether the keys go to the line that asks what to search for."""
        focused = self.view.screen.focused
        return focused is not None and getattr(focused.parent, "finder", None) is self

    def start(self, pattern: str, backwards: bool = False, *, first: int | None = None) -> None:
        """Move to the next row whose text has `pattern`, from `first` or after the cursor.

        A pattern in lower case ignores case. A long list is searched in slices between events;
        :meth:`end` is told the result.
        """
        if pattern != self.pattern:
            self.pattern = pattern
            self.view.refresh()
        if pattern:
            steps = self._steps(pattern, backwards, first)
            self.view.tasks.start(self._run(steps), "search", replace=True)

    async def _run(self, steps: Iterator[int | None]) -> None:
        deadline = monotonic() + _SLICE_S
        for index in steps:
            if index is not None:
                return self.end(index)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        return self.end(None)

    def _steps(self, pattern: str, backwards: bool, first: int | None) -> Iterator[int | None]:
        """Yield None every few hundred rows, and the index once found."""
        is_match = compiled(pattern).search
        count = len(self.view.lines)
        step = -1 if backwards else 1
        first = self.view.cursor + step if first is None else first
        for done in range(count):
            index = (first + done * step) % count
            if index >= len(self.view.lines):  # the list got shorter meanwhile
                return
            if is_match(self.view.lines.text(index)):
                yield index
                return
            if done % 256 == 255:
                yield None

    def end(self, index: int | None) -> None:
        """Move to the match, or show that there is none."""
        if index is not None:
            self.view.cursor = index
        else:
            text = ". ".join(filter(None, (f"Not found: {self.pattern[:60]}", self.ask_missing())))
            self.view.notify(text, timeout=3, markup=False)

    def ask(self) -> None:
        """Ask what to search for, in a line below the view, or open the pane's filter."""
        if self.open_filter is None:
            self.view.screen.mount(SearchBar(self))
        else:
            self.open_filter()

    def next(self) -> None:
        """Go to the next match."""
        self.start(self.pattern)

    def previous(self) -> None:
        """Go to the previous match."""
        self.start(self.pattern, backwards=True)


class SearchBar(Horizontal):
    """Searches while one types; Enter stays at the match, Esc returns to where it began."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("up", "again(True)", "previous", show=False),
        Binding("down", "again", "next", show=False),
    ]

    def __init__(self, finder: LineSearch) -> None:
        super().__init__()
        self.finder = finder
        self._start = finder.view.cursor
        self._before = finder.pattern

    def compose(self) -> ComposeResult:
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
            self.finder.start(event.value, first=self._start)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Stay at the match; an empty search repeats the last one."""
        event.stop()
        if not event.value and self._before:
            self.finder.start(self._before)
        self._close()

    def action_again(self, backwards: bool = False) -> None:
        self.finder.start(self.finder.pattern, backwards)

    def action_cancel(self) -> None:
        self.finder.pattern = self._before
        self.finder.view.cursor = self._start
        self.finder.view.invalidate()
        self._close()

    def on_input_blurred(self) -> None:
        """Go away when another widget is chosen."""
        self.remove()

    def _close(self) -> None:
        # Now: what follows the cursor looks who has the keys.
        self.screen.set_focus(self.finder.view)
        self.remove()


class FilterBar(Horizontal):
    """The line in which the filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", "clear", show=False),
        Binding("down", "leave", "to the list", show=False),
    ]

    @dataclass
    class Changed(Message):
        """Another text was typed."""

        text: str

    @dataclass
    class Left(Message):
        """The keys go back to the list."""

        clear: bool

    def __init__(self, hint: str) -> None:
        super().__init__()
        self.display = False
        self._hint = hint

    def ask(self, text: str) -> None:
        """Take the keys; `text` is the filter so far."""
        self.display = True
        self._write(text).focus()

    def show(self, text: str) -> None:
        """Show the filter, without taking the keys; nothing when it is blank."""
        if text or self.children:
            self._write(text)
        self.display = bool(text.strip())

    def _write(self, text: str) -> Input:
        if self.children:
            field = self.query_one(Input)
            field.value = text
        else:  # made late: its styles are long, and a page has several of these lines
            field = text_field(text, self._hint)
            self.mount(Label("/", markup=False), field)
        return field

    @on(Input.Changed)
    def text_changed(self, event: Input.Changed) -> None:
        """Pass the text on."""
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Keep the filter."""
        event.stop()
        self.post_message(self.Left(clear=False))

    def action_leave(self) -> None:
        self.post_message(self.Left(clear=False))

    def action_clear(self) -> None:
        self.post_message(self.Left(clear=True))
