"""A dialog to pick one of many things by typing parts of its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from textual.worker import Worker

from dld_tui.core.collector import collector_paused
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.search_dialog import SearchDialog

MOST = 200
"""Matches that are listed."""
_SLICE_S = 0.015


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
        find = partial(self._find, self.query_text.lower().split())
        _: Worker[None] = self.run_worker(find, exclusive=True, group="pick", name="pick")

    async def _find(self, words: Sequence[str]) -> None:
        found: list[PickItem] = []
        deadline = monotonic() + _SLICE_S
        more = ""
        with collector_paused():
            for count, item in enumerate(self.items()):
                text = item.text.lower()
                if all(word in text for word in words):
                    if len(found) == MOST:
                        more = " or more: type to narrow it down"
                        break
                    found.append(item)
                if count % 64 == 63 and monotonic() > deadline:
                    await asyncio.sleep(0)
                    deadline = monotonic() + _SLICE_S
        self.view.empty = self.EMPTY
        found += self.last
        rows = [item.pieces for item in found]
        lines = ListSource(rows, [item.key for item in found])
        # What comes last must not hold the cursor when a match comes back.
        aside = self.view.key_at_cursor() in {item.key for item in self.last}
        self.show_rows(lines, keep=bool(words) and not aside, more=more)
        if not words and self.value is not None:
            self.view.go_to_key(self.value)
        self.view.invalidate()

    def choose(self, index: int) -> None:
        """Give the key of a row."""
        self.dismiss(self.view.lines.key(index))
