"""The row at the bottom: at most eight keys that work here and now, and where one is."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen

from dld_tui.core.commands import COMMANDS
from dld_tui.core.keys import key_name
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.commands import same_facts

MOST = 8
_ORDER = {command.id: number for number, command in enumerate(COMMANDS)}
_LAST = ("app.close", "app.palette", "app.help")
"""Commands that close the row, so that they are always found at the same place."""


class KeyBar(Rows):
    """Draws the footer commands of the focused widget, the screen and the app, in this order.

    A click runs the one that is clicked.
    """

    crumb: reactive[str] = reactive("", repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[tuple[str, str]] = []
        self._last = 0
        """How many of them close the row."""
        self._run: dict[tuple[str, str], tuple[str, DOMNode]] = {}
        """What each of them runs, and on what."""
        self._spans: list[tuple[int, int, tuple[str, str]]] = []
        """(first cell, end cell, key) of those drawn last."""

    def on_mount(self) -> None:
        """Follow the focus and the facts."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_updated)
        self._bindings_updated(self.screen)

    def _bindings_updated(self, screen: Screen[object]) -> None:
        if not self.is_attached or self.screen is not self.app.screen:
            return
        inner = self.screen.focused or self.screen
        depth = {id(node): number for number, node in enumerate(inner.ancestors_with_self)}
        with same_facts():
            bindings = self.screen.active_bindings.values()
        shown = [
            (depth.get(id(active.node), 0), _ORDER.get(active.binding.id or "", 0), active)
            for active in bindings
            if active.binding.show and active.enabled
        ]
        first: dict[str, tuple[str, str]] = {}
        last: dict[str, tuple[str, str]] = {}
        ids: dict[str, str] = {}
        self._run = {}
        for *_, active in sorted(shown, key=lambda row: row[:2]):
            binding = active.binding
            row = last if binding.id in _LAST else first
            key = row.setdefault(binding.action, (key_name(binding.key), binding.description))
            self._run.setdefault(key, (binding.action, active.node))
            ids[binding.action] = binding.id or ""
        ends = sorted(last, key=lambda action: _LAST.index(ids[action]))
        keys = [*list(first.values())[: MOST - len(last)], *(last[action] for action in ends)]
        self._last = len(last)
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def watch_crumb(self) -> None:
        """Draw the place at the right."""
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row; keys that do not fit are left out from the end of the middle."""
        pieces: list[Piece] = [(" ", "bar-row")]
        used = 1
        keys = list(self._keys)
        while sum(_cells(key) for key in keys) + 1 > width and len(keys) > 2:
            del keys[-1 - self._last if len(keys) > self._last else 0]
        self._spans = []
        for key, title in keys:
            pieces += [(key, "bar-row key"), (f" {title}  ", "bar-row")]
            self._spans.append((used, used + _cells((key, title)) - 2, (key, title)))
            used += _cells((key, title))
        room = width - used - 1
        crumb = clip(visible(self.crumb), room, keep="end") if room > 8 else ""
        padding = width - used - cell_width(crumb) - 1
        return [[*pieces, (" " * max(0, padding), "bar-row"), (crumb, "bar-row"), (" ", "bar-row")]]

    async def on_click(self, event: events.Click) -> None:
        """Run what was clicked."""
        for start, end, key in self._spans:
            if start <= event.x < end and key in self._run:
                event.stop()
                action, node = self._run[key]
                await self.app.run_action(action, node)
                return


def _cells(key: tuple[str, str]) -> int:
    return cell_width(key[0]) + cell_width(key[1]) + 3
