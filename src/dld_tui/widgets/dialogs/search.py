"""A dialog with a search field over a list: the base of the palettes and pickers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from time import monotonic
from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.dataclass import dataclass
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogBox
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import LineSource, ListSource, Piece, Rows

T = TypeVar("T")

_SLICE_S = 0.01
"""How long collecting keeps the event loop before it lets others run."""
_CHUNK = 200
_OTHER_ROWS = 9
"""Rows of the screen that the list leaves to frame, field and gaps."""


class SearchDialog(Dialog[T]):
    """Type to search, arrows to choose, Enter to take; override :meth:`found` and :meth:`choose`.

    The field has the keys all the time, so the list never has the focus. Many things are collected
    while one may already type: override :meth:`collect`.
    """

    KEYS = "Enter choose  Esc close"
    PLACEHOLDER = "type to search"
    EMPTY = "No match"
    MOST_ROWS = 40
    """Rows of the list on a high screen."""
    ROWS_BELOW = 1
    """Rows below the list."""
    complete = True
    """Whether everything has been collected."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(8)", show=False),
        Binding("pageup", "move(-8)", show=False),
    ]

    def body(self) -> Iterable[Widget]:
        yield text_field("", self.PLACEHOLDER)
        view = LineView(empty=self.EMPTY, classes="-chosen")
        view.can_focus = False
        room = self.app.size.height - _OTHER_ROWS - self.ROWS_BELOW
        view.styles.height = min(self.MOST_ROWS, max(4, room))
        view.styles.margin = (1, 0, 0, 0)
        yield view
        yield Rows([[]], id="count")

    def on_mount(self) -> None:
        """List what is there, and collect the rest."""
        if self.WIDTH:
            self.query_one(DialogBox).styles.width = self.text_width + 4
        self.search_again()
        if not self.complete:
            self.tasks.start(self._collect_rest(), "collect")

    def collect(self, most: int) -> None:
        """Take up to `most` more things in; sets ``complete`` when there is nothing more."""

    async def _collect_rest(self) -> None:
        deadline = monotonic() + _SLICE_S
        while not self.complete:
            self.collect(_CHUNK)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self.search_again(keep=True)

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


MOST = 200
"""Matches that are listed."""
_PICK_SLICE_S = 0.015


@dataclass(frozen=True)
class PickItem:
    """One thing that can be picked."""

    key: Hashable
    pieces: Sequence[Piece]
    """What is shown: visible text."""
    text: str
    """What is searched."""


class PickDialog(SearchDialog[Hashable]):
    """Gives the key of the thing that was picked, or None.

    Args:
        title: The question.
        items: Called for each search; its items may be made one by one, and of many things only
            the first matches are asked for.
        value: The key that the cursor begins on.
        placeholder: What can be typed.
        last: Things that stay at the end of the list whatever is typed.
    """

    MOST_ROWS = 14

    def __init__(
        self,
        title: str,
        items: Callable[[], Iterable[PickItem]],
        *,
        value: Hashable = None,
        placeholder: str = "",
        last: Sequence[PickItem] = (),
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.PLACEHOLDER = placeholder
        self.items = items
        self.value = value
        self.last = tuple(last)

    def search_again(self, keep: bool = False) -> None:
        """Look through the items, in slices, so that keys are answered meanwhile."""
        self.view.empty = "searching …"
        self.tasks.start(self._find(self.query_text.lower().split()), "pick", replace=True)

    async def _find(self, words: Sequence[str]) -> None:
        items: list[PickItem] = []
        deadline = monotonic() + _PICK_SLICE_S
        more = ""
        with collector_paused():
            for count, item in enumerate(self.items()):
                text = item.text.lower()
                if all(word in text for word in words):
                    if len(items) == MOST:
                        more = " or more: type to narrow it down"
                        break
                    items.append(item)
                if count % 64 == 63 and monotonic() > deadline:
                    await asyncio.sleep(0)
                    deadline = monotonic() + _PICK_SLICE_S
        self.view.empty = self.EMPTY
        items += self.last
        rows = [item.pieces for item in items]
        lines = ListSource(rows, [item.key for item in items])
        # What comes last must not hold the cursor when a match comes back.
        aside = self.view.key_at_cursor() in {item.key for item in self.last}
        self.show_rows(lines, keep=bool(words) and not aside, more=more)
        if not words and self.value is not None:
            self.view.go_to_key(self.value)
        self.view.invalidate()

    def choose(self, index: int) -> None:
        """Give the key of a row."""
        self.dismiss(self.view.lines.key(index))


_MOST = 500
"""Rows that are listed; typing narrows them down."""


class TickDialog(SearchDialog[list[str]]):
    """Gives the keys of the things that are ticked, in the order of the list, or None.

    Args:
        title: The question.
        items: What can be ticked; keys are texts.
        ticked: The keys that are ticked at first.
    """

    KEYS = "Enter tick  F3 all that fit  F2 done  Esc close"
    MOST_ROWS = 20
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "done", show=False, priority=True),
        Binding("f3", "tick_all", show=False, priority=True),
    ]

    def __init__(self, title: str, items: Iterable[PickItem], ticked: Collection[str] = ()) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.items = [*items]
        self.ticked = {*ticked}

    def _fitting(self) -> list[PickItem]:
        words = self.query_text.lower().split()
        texts = ((item, item.text.lower()) for item in self.items)
        return [item for item, text in texts if all(word in text for word in words)]

    def search_again(self, keep: bool = False) -> None:
        """List what fits, with a tick where it is meant."""
        fitting = self._fitting()
        self.show_rows(
            self._rows(fitting[:_MOST]),
            keep=keep,
            more=f" of {len(fitting):,}; {len(self.ticked):,} ticked",
        )

    def _rows(self, items: Sequence[PickItem]) -> LineSource:
        rows = [
            [("[x] " if item.key in self.ticked else "[ ] ", "accent"), *item.pieces]
            for item in items
        ]
        return ListSource(rows, [item.key for item in items])

    def choose(self, index: int) -> None:
        """Tick a row, or take its tick away, and go on to the next."""
        self.ticked ^= {str(self.view.lines.key(index))}
        self.search_again(keep=True)
        self.view.cursor = min(index + 1, len(self.view.lines) - 1)

    def action_tick_all(self) -> None:
        """Tick all that fit what is typed; take the ticks away where they have them already."""
        keys = {str(item.key) for item in self._fitting()}
        self.ticked = self.ticked - keys if keys <= self.ticked else self.ticked | keys
        self.search_again(keep=True)

    def action_done(self) -> None:
        self.dismiss([str(item.key) for item in self.items if item.key in self.ticked])
