"""The whole drawing in a few cells: where its boxes are, and which part of them is seen."""

from __future__ import annotations

from dld_tui.core.graph.layout import Box, Layout
from dld_tui.widgets.line_source import Piece

CELLS = 18
"""Columns of the map, the border at its left included."""
LEAST_WIDTH = 100
"""Columns of a view that has room for it."""
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille cell by column and row."""
_BLANK = 0x2800


class Minimap:
    """Boxes as braille dots: two columns and four rows of them in a cell; made once a drawing."""

    def __init__(self, layout: Layout, rows: int) -> None:
        self.rows = rows
        self._across = min(1.0, (CELLS - 1) * 2 / max(1, layout.width))
        self._down = min(1.0, rows * 4 / max(1, layout.height))
        self._shift = int(((CELLS - 1) * 2 - layout.width * self._across) / 2)
        cells = [[0] * (CELLS - 1) for _ in range(rows)]
        for box in layout.boxes:
            if box is not None:
                self._draw(box, cells)
        self._lines = ["".join(chr(_BLANK + bits) for bits in line) for line in cells]

    def _draw(self, box: Box, cells: list[list[int]]) -> None:
        left, top = self._x(box.x), self._y(box.y)
        right = max(left + 1, self._x(box.x + box.width))
        bottom = max(top + 1, self._y(box.y + box.height))
        for y in range(top, min(bottom, self.rows * 4)):
            for x in range(left, min(right, (CELLS - 1) * 2)):
                cells[y // 4][x // 2] |= _DOTS[x % 2][y % 4]

    def _x(self, column: int) -> int:
        return max(0, int(column * self._across) + self._shift)

    def _y(self, row: int) -> int:
        return max(0, int(row * self._down))

    def line(self, y: int, view: tuple[int, int, int, int], cursor: Box | None) -> list[Piece]:
        """Return a row of the map, exactly as wide as it is.

        Args:
            y: The row.
            view: Columns and rows of the drawing that are seen: left, top, right, bottom.
            cursor: The box that stands out.
        """
        if y >= self.rows:
            return [("│" + " " * (CELLS - 1), "guide")]
        left, top, right, bottom = view
        first, last = self._x(left) // 2, max(self._x(left) // 2 + 1, -(-self._x(right) // 2))
        is_seen = self._y(top) // 4 <= y <= max(0, self._y(bottom) - 1) // 4
        text = self._lines[y].replace(chr(_BLANK), " ")
        at = -1
        if cursor is not None and self._y(cursor.y + cursor.height // 2) // 4 == y:
            at = min(CELLS - 2, self._x(cursor.x + cursor.width // 2) // 2)
        pieces: list[Piece] = [("│", "guide")]
        for column, char in enumerate(text):
            style = "viewport" if is_seen and first <= column < last else "faint"
            pieces.append(
                ("◆" if column == at else char, f"accent {style}" if column == at else style)
            )
        return pieces

    def target(self, x: int, y: int) -> tuple[int, int]:
        """Return the column and row of the drawing that a cell of the map stands for."""
        dots = max(0, (x - 1) * 2 + 1 - self._shift)
        return int(dots / self._across), int((y * 4 + 2) / self._down)
