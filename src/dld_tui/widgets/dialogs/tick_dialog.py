"""A dialog to tick some of many things, found by typing parts of their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from dld_tui.widgets.dialogs.search import PickItem, SearchDialog
from dld_tui.widgets.lists.line_source import LineSource, ListSource

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
        """Give what is ticked."""
        self.dismiss([str(item.key) for item in self.items if item.key in self.ticked])
