"""The bars of a page: the tabs above it, and the keys that work here and now below it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen

from dld_tui.commands import COMMANDS
from dld_tui.commands.key_names import key_name
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import same_facts
from dld_tui.widgets.shell.host import host

MOST = 5
"""Commands before those at the end."""
_ORDER = {command.id: number for number, command in enumerate(COMMANDS)}
_LAST = (
    "menu.open", "report.menu", "plan.menu", "page.close", "app.close", "app.palette", "app.help",
)  # fmt: skip
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
        keys = [*list(first.values())[:MOST], *(last[action] for action in ends)]
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


_LEAST = 14
"""A name is not cut below this many cells; tabs far from the shown one are left out instead."""


class TabStrip(Rows):
    """Draws ``host.pages``; a click shows a tab."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[int, int, int]] = []
        """(first cell, end cell, index of the page) of the tabs drawn last."""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row: tabs at the left, the page's status at the right."""
        status = visible(getattr(self.screen, "tab_status", ""))
        pieces = self._tabs(width - min(cell_width(status) + 2, width // 3))
        room = width - sum(cell_width(text) for text, _ in pieces)
        shown = fit(status, room - 2, align="right") + " " if room > 3 else ""
        return [[*pieces, (" " * (room - cell_width(shown)), "bar-row"), (shown, "bar-row")]]

    def _tabs(self, room: int) -> list[Piece]:
        owner = host(self)
        self._spans = []
        if not owner.pages:
            path = getattr(self.screen, "path", None)
            name = clip(visible(path.name) if path else "dld", room - 2)
            place = "" if path else visible(getattr(self.screen, "tab_place", ""))
            rest = clip(place, max(room - cell_width(name) - 4, 0), keep="end")
            return [
                (f" {name} ", "bar-row strong accent"),
                (f" {rest} " if rest else "", "bar-row"),
            ]
        labels = [visible(page.tab_title[:200]) or "untitled" for page in owner.pages]
        current = owner.pages.index(owner.page) if owner.page in owner.pages else -1
        first, last, most = _shown(labels, max(current, 0), room)
        shown = glyphs.current()
        pieces: list[Piece] = []
        cell = 0
        if first:
            pieces.append((f" +{first} ", "bar-row"))
            cell = cell_width(pieces[0][0])
        for index in range(first, last + 1):
            page = owner.pages[index]
            mark = f" {shown.dirty}" if page.tab_dirty else ""
            text = f" {clip(labels[index], most, keep='middle')}"
            start = cell
            look = "bar-row current" if index == current else "bar-row"
            pieces += [(text, look), (mark, f"{look} warn"), (" ", look)]
            cell += cell_width(text) + cell_width(mark) + 1
            self._spans.append((start, cell, index))
            if index < last:
                pieces.append((shown.separator, "bar-row faint"))
                cell += 1
        if last < len(labels) - 1:
            pieces.append((f" +{len(labels) - 1 - last}", "bar-row"))
        return pieces

    def on_click(self, event: events.Click) -> None:
        """Show the tab that was clicked."""
        for start, end, index in self._spans:
            if start <= event.x < end:
                host(self).show_page(host(self).pages[index])
                return


def _shown(labels: list[str], current: int, room: int) -> tuple[int, int, int]:
    """Return the first and last tab to draw, and the most cells of a name."""
    extra = 5  # blanks, the unsaved mark and the separator
    most = max(_LEAST, room // max(1, len(labels)) - extra)
    widths = [min(cell_width(label), most) + extra for label in labels]
    if sum(min(cell_width(label), 60) + extra for label in labels) <= room:
        return 0, len(labels) - 1, 60
    first = last = current
    used = widths[current] + 10  # the counts of those left out
    while True:
        if last + 1 < len(labels) and used + widths[last + 1] <= room:
            last += 1
            used += widths[last]
        elif first > 0 and used + widths[first - 1] <= room:
            first -= 1
            used += widths[first]
        else:
            return first, last, min(most, max(1, room - 10))
