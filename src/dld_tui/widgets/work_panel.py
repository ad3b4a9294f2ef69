"""Work that takes a while, such as opening and saving: what, how far, how fast, how long still."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Rows

_BAR_CELLS = 40
_SETTLED_S = 0.5
"""A rate is shown after so many seconds."""


class WorkPanel(Rows):
    """Three rows in the middle of the room, or one row when it is docked at an edge."""

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._title = title
        self._done = self._total = 0
        self._begun = monotonic()

    def report(self, done: int, total: int) -> None:
        """Show how many bytes are done, of how many; total 0 is unknown."""
        self._done, self._total = done, total
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return title, bar and figures."""
        cells = min(_BAR_CELLS, max(10, width - 4))
        title = clip(visible(self._title), width)
        if self.has_class("-line"):
            tail = f"  {self._figures()}  Esc stops"
            return [[(" " + clip(title, width // 2), "strong"), (tail, "dim")]]
        bar: list[Piece] = []
        if self._total:
            full = glyphs.bar(self._done / self._total, cells)
            blank = len(full) - len(full.rstrip())
            bar = [(full.rstrip(), "bar"), (glyphs.current().rest * blank, "rest")]
        figures: list[Piece] = [(self._figures(), "dim")]
        return [[(title, "strong")], [], bar, figures, [], [("Esc stops", "dim")]]

    def _figures(self) -> str:
        if not self._total:
            return "reading …" if not self._done else fmt.size(self._done)
        sizes = f"{fmt.size(self._done)} of {fmt.size(self._total)}"
        parts = [f"{self._done / self._total:.0%}", sizes]
        passed = monotonic() - self._begun
        if passed > _SETTLED_S and self._done:
            rate = self._done / passed
            parts.append(f"{fmt.size(int(rate))}/s")
            parts.append(f"{fmt.duration((self._total - self._done) / rate)} left")
        return "  ".join(parts)


class WorkLine(WorkPanel):
    """One row above the keys: what runs and the part of it that is done."""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row."""
        title = clip(visible(self._title), width // 2)
        percent = f"{self._done / self._total:.0%}  " if self._done and self._total else ""
        return [[(f" {title} …  ", "strong"), (f"{percent}Esc stops", "dim")]]
