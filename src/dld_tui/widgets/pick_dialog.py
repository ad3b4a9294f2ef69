"""A dialog to pick one of many things by typing parts of its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from dld_tui.core.document.index import collector_paused
from dld_tui.widgets.dialogs import Dialog, text_field
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.styled import Rows

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


class PickDialog(Dialog[Hashable]):
    """Gives the key of the thing that was picked, or None.

    Args:
        title: The question.
        items: Called for each search; its items may be made one by one, and of many things only
            the first matches are asked for.
        value: The key that the cursor begins on.
        placeholder: What can be typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "down", show=False),
        Binding("up", "move(-1)", "up", show=False),
        Binding("pagedown", "move(8)", "page down", show=False),
        Binding("pageup", "move(-8)", "page up", show=False),
    ]
    KEYS = "type to search  Enter choose  Esc close"

    def __init__(
        self,
        title: str,
        items: Callable[[], Iterable[PickItem]],
        *,
        value: Hashable = None,
        placeholder: str = "",
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.items = items
        self.value = value
        self.placeholder = placeholder

    def body(self) -> Iterable[Widget]:
        """Return the field, the matches and how many there are."""
        yield text_field("", self.placeholder)
        view = LineView(empty="searching …", classes="-chosen")
        view.can_focus = False
        view.styles.height = max(3, min(14, self.app.size.height - 9))
        yield view
        yield Rows([[]], id="count")

    def on_mount(self) -> None:
        """List the first things."""
        self._search("")

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """List what matches."""
        event.stop()
        self._search(event.value)

    def _search(self, text: str) -> None:
        find = partial(self._find, text.lower().split())
        _: Worker[None] = self.run_worker(find, exclusive=True, group="pick", name="pick")

    async def _find(self, words: Sequence[str]) -> None:
        """Look through the items in slices, so that keys are answered meanwhile."""
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
        view = self.query_one(LineView)
        view.empty = "Nothing matches."
        rows = [item.pieces for item in found]
        view.set_lines(ListSource(rows, [item.key for item in found]), keep=bool(words))
        if not words and self.value is not None:
            view.go_to_key(self.value)
        view.invalidate()
        said = f"{len(found):,}{more}"
        self.query_one("#count", Rows).set_rows([[(said, "dim")]])

    def action_move(self, step: int) -> None:
        """Move in the list while the field has the keys."""
        self.query_one(LineView).cursor += step

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Give what the cursor is on."""
        event.stop()
        self._give(self.query_one(LineView).key_at_cursor())

    @on(LineView.Activated)
    def activated(self, event: LineView.Activated) -> None:
        """Give what was clicked twice."""
        event.stop()
        self._give(event.key)

    def _give(self, key: Hashable | None) -> None:
        if key is not None:
            self.dismiss(key)
