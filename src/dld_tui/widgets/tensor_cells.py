"""The texts of a grid's cells, read in blocks: only what is seen is ever read."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

import numpy as np

from dld_tui.core.errors import DldError
from dld_tui.core.text import cell_width
from dld_tui.widgets.tensor_layout import GridLayout
from dld_tui.widgets.tensor_text import NumberFormat, style_of

ROWS, COLUMNS = 16, 16
"""Cells of a block."""
_BLOCKS = 256
_SPAN = 1 << 15
"""Elements that are read in one go to get at those that stand apart."""

Cell = tuple[str, str]
"""Text and style class."""


class Elements(Protocol):
    """What elements are read from."""

    def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
        """Return elements in flat (row-major) order."""


class CellBlocks:
    """Blocks of cells of one view of a tensor.

    Args:
        elements: What is read.
        dtype: ONNX's name of the element type.
        layout: Which element is in which cell.
        numbers: How elements are shown.
    """

    def __init__(
        self, elements: Elements, dtype: str, layout: GridLayout, numbers: NumberFormat
    ) -> None:
        self.elements = elements
        self.dtype = dtype
        self.layout = layout
        self.numbers = numbers
        self.problem = ""
        """Why elements could not be read, once that happened."""
        self.widest = 1
        """Cells that the widest text takes that has been made so far."""
        self._blocks: OrderedDict[tuple[int, int], list[list[Cell]]] = OrderedDict()

    def cell(self, row: int, column: int) -> Cell:
        """Return one cell; it is blank behind the last element."""
        block = self._block(row // ROWS, column // COLUMNS)
        return block[row % ROWS][column % COLUMNS]

    def load(self, rows: range, columns: range) -> None:
        """Read the blocks that some cells are in."""
        for down in range(rows.start // ROWS, -(-rows.stop // ROWS)):
            for across in range(columns.start // COLUMNS, -(-columns.stop // COLUMNS)):
                self._block(down, across)

    def _block(self, down: int, across: int) -> list[list[Cell]]:
        block = self._blocks.get((down, across))
        if block is None:
            block = self._blocks[down, across] = self._made(down, across)
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return block

    def _made(self, down: int, across: int) -> list[list[Cell]]:
        layout = self.layout
        rows = min(ROWS, layout.rows - down * ROWS)
        columns = min(COLUMNS, layout.columns - across * COLUMNS)
        cells: list[list[Cell]] = [[("", "")] * COLUMNS for _ in range(ROWS)]
        try:
            values = self._values(down * ROWS, across * COLUMNS, rows, columns)
        except DldError as error:
            self.problem = error.message
            return cells
        for row, line in enumerate(values):
            for column, value in enumerate(line):
                text = self.numbers.text(value, self.dtype)
                cells[row][column] = (text, style_of(value))
                self.widest = max(self.widest, cell_width(text))
        return cells

    def _values(self, row: int, column: int, rows: int, columns: int) -> list[list[Any]]:
        """Return the elements of a block; the last row of a wrapped tensor may be short."""
        down, across = self.layout.strides
        first = self.layout.origin + row * down + column * across
        if across <= down:
            return self._lines(first, rows, down, columns, across)
        lines = self._lines(first, columns, across, rows, down)
        return [list(line) for line in zip(*lines, strict=True)]

    def _lines(self, first: int, lines: int, apart: int, count: int, step: int) -> list[list[Any]]:
        """Return `lines` runs of `count` elements, one read a run where that is not too much."""
        span = (count - 1) * step + 1
        found: list[list[Any]] = []
        for line in range(lines):
            start = first + line * apart
            if span <= _SPAN:
                found.append(self.elements.read(start, span)[::step].tolist())
            else:
                at = range(start, start + count * step, step)
                found.append([self.elements.read(index, 1).tolist()[0] for index in at])
        return found
