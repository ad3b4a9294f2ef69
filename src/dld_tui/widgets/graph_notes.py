"""What the graph says of a node besides what it is: marks, findings, precision, weights.

All of it is asked for by ranges of rows, so that a fold answers as quickly as a node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any

from dld_tui.core import fmt
from dld_tui.widgets import glyphs
from dld_tui.widgets.graph_viewed import ViewedGraph
from dld_tui.widgets.line_source import Piece

LEVELS = ("error", "warning")
"""Findings that are shown, the worst first."""
LEVEL_STYLES = {"error": "bad", "warning": "warn"}
_HEAVY = 0.01
"""A node with this part of all weights says how large they are."""


class GraphNotes:
    """Notes on the rows of one graph."""

    def __init__(self, model: ViewedGraph) -> None:
        self.model = model
        self.has_precisions = False
        """Whether to leave room for the precision that layers are set to."""
        self._levels: dict[str, list[int]] = {}
        self._marked: list[int] = []

    # --- setting --------------------------------------------------------------------------------

    def set_marks(self, marks: Iterable[Hashable]) -> None:
        """Take note of what is marked: subjects, and vertices that are no nodes."""
        rows = self.model.overview.rails.rows
        vertices = [self._vertex(mark) for mark in marks]
        self._marked = sorted(rows[v] for v in vertices if v is not None and v < len(rows))

    def _vertex(self, mark: Hashable) -> int | None:
        return mark if isinstance(mark, int) else self.model.vertex(mark)

    def set_findings(self, findings: Iterable[Any]) -> None:
        """Take note of what is wrong; the graph knows which vertex a finding is of."""
        rows = self.model.overview.rails.rows
        found: dict[str, set[int]] = {level: set() for level in LEVELS}
        for level, vertex in self.model.levels(findings):
            if level in found:
                found[level].add(rows[vertex])
        self._levels = {level: sorted(places) for level, places in found.items() if places}

    # --- asking ---------------------------------------------------------------------------------

    def marked(self, start: int, end: int) -> int:
        """Return how many of some rows are marked."""
        return _count(self._marked, start, end)

    @property
    def marked_vertices(self) -> list[int]:
        """The vertices that are marked, from top to bottom."""
        order = self.model.overview.rails.order
        return [order[row] for row in self._marked]

    @property
    def has_findings(self) -> bool:
        """Whether to leave room for the glyphs of findings."""
        return bool(self._levels)

    def findings(self, level: str, start: int, end: int) -> int:
        """Return how many of some rows have a finding of a level."""
        return _count(self._levels.get(level, []), start, end)

    def level(self, start: int, end: int) -> str:
        """Return the worst level of some rows; empty when nothing was found."""
        return next((level for level in LEVELS if self.findings(level, start, end)), "")

    def finding_badge(self, start: int, end: int) -> Piece:
        """Return the glyph of the worst finding of some rows, one cell."""
        level = self.level(start, end)
        shown = glyphs.current()
        glyph = {"error": shown.error, "warning": shown.warning}.get(level, " ")
        return glyph, LEVEL_STYLES.get(level, "")

    def weight(self, start: int, end: int) -> tuple[str, str]:
        """Return the size of the weights of some rows and their share; empty when there are none.

        A single node says so only when it is heavy.
        """
        weights = self.model.weights
        if weights is None:
            return "", ""
        size = weights.between(start, end) if end - start > 1 else weights.used[start]
        share = size / weights.total if weights.total else 0.0
        if not size or (end - start == 1 and share < _HEAVY):
            return "", ""
        return fmt.size(size), f"{share:.0%}".replace("%", " %") if share >= 0.005 else "<1 %"


def _count(places: list[int], start: int, end: int) -> int:
    return bisect_left(places, end) - bisect_left(places, start)
