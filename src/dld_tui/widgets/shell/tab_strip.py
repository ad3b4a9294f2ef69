"""The row of tabs at the top: models and reports alike, and a status at its right."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.host import host

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
            name = visible(path.name) if path else "dld-tui"
            return [(f" {clip(name, room - 2)} ", "bar-row strong accent")]
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
