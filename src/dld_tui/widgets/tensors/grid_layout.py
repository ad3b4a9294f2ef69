"""Where the elements of a tensor are on a grid, their texts, and the blocks that are read."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.model.tensors.literals import element_text, format_string
from dld_tui.core.text import cell_width, clip, visible

_LONGEST_STRING = 24
_HEX_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}
MOST_DIGITS = 17


@dataclass(frozen=True)
class NumberFormat:
    """How elements are shown."""

    digits: int = 5
    """Significant digits of a floating point number."""
    hexadecimal: bool = False
    """Integers by their bits."""

    def text(self, value: Any, dtype: str) -> str:
        """Return one element in a few cells; `value` is what ``array.tolist()`` gives."""
        if isinstance(value, bytes | str):
            return clip(visible(format_string(value[: 4 * _LONGEST_STRING])), _LONGEST_STRING)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return _hex(value, dtype) if self.hexadecimal else str(value)
        if isinstance(value, complex):
            return f"{value:.{self.digits}g}"
        return f"{float(value):.{self.digits}g}"


def _hex(value: int, dtype: str) -> str:
    bits = _HEX_BITS.get(dtype) or int("".join(filter(str.isdigit, dtype)) or "64")
    return f"{value % (1 << bits):0{bits // 4 or 1}x}"


def style_of(value: Any) -> str:
    """Return the style class of an element: zeros are quiet, NaN and infinities stand out."""
    if isinstance(value, float | complex | np.floating) or hasattr(value, "dtype"):
        number = abs(complex(value)) if isinstance(value, complex) else float(value)
        if not math.isfinite(number):
            return "bad"
        return "faint" if number == 0 else "number"
    if isinstance(value, int):
        return "number" if value else "faint"
    return ""


def exact_text(array: np.ndarray[Any, Any], dtype: str) -> str:
    """Return the first element of an array as it is typed; reading it back gives the same value."""
    return element_text(array[0] if array.dtype.kind in "OV" else array[:1].tolist()[0], dtype)


_NICE = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100)
"""Elements in a row of a tensor of one dimension."""


@dataclass(frozen=True)
class GridLayout:
    """A view of a tensor as rows and columns. Make one with :func:`layout_of`."""

    shape: tuple[int, ...]
    row_axis: int = 0
    column_axis: int = 0
    fixed: tuple[int, ...] = ()
    """An index for each axis; those of the rows and the columns are not looked at."""
    wrap: int = 1
    """Elements in a row of a tensor with one dimension."""

    @property
    def is_wrapped(self) -> bool:
        """True for tensors of one dimension, which are shown as rows of a few elements."""
        return len(self.shape) == 1

    @property
    def count(self) -> int:
        """Elements of the tensor."""
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """Rows of the grid."""
        if not self.count:
            return 0
        if not self.shape:
            return 1
        return -(-self.shape[0] // self.wrap) if self.is_wrapped else self.shape[self.row_axis]

    @property
    def columns(self) -> int:
        """Columns of the grid."""
        if not self.count:
            return 0
        if not self.shape:
            return 1
        return min(self.wrap, self.shape[0]) if self.is_wrapped else self.shape[self.column_axis]

    @property
    def free_axes(self) -> tuple[int, ...]:
        """The axes that are neither rows nor columns."""
        if len(self.shape) < 3:
            return ()
        shown = (self.row_axis, self.column_axis)
        return tuple(axis for axis in range(len(self.shape)) if axis not in shown)

    @property
    def strides(self) -> tuple[int, int]:
        """How far apart neighbours in a column and in a row are, in elements."""
        if not self.shape:
            return 1, 1
        if self.is_wrapped:
            return self.wrap, 1
        return self._stride(self.row_axis), self._stride(self.column_axis)

    def _stride(self, axis: int) -> int:
        return math.prod(self.shape[axis + 1 :])

    @property
    def origin(self) -> int:
        """The flat index of the first cell."""
        return sum(self.fixed[axis] * self._stride(axis) for axis in self.free_axes)

    def flat(self, row: int, column: int) -> int | None:
        """Return the flat (row-major) index of a cell; None behind the last element."""
        down, across = self.strides
        index = self.origin + row * down + column * across
        return index if index < self.count else None

    def indexes(self, row: int, column: int) -> tuple[int, ...]:
        """Return the index of a cell along each axis."""
        if not self.shape:
            return ()
        if self.is_wrapped:
            return (row * self.wrap + column,)
        indexes = list(self.fixed)
        indexes[self.row_axis], indexes[self.column_axis] = row, column
        return tuple(indexes)

    def row_label(self, row: int) -> str:
        """Return the heading of a row: its index, that of its first element when wrapped."""
        return "" if not self.shape else str(row * self.wrap if self.is_wrapped else row)

    def column_label(self, column: int) -> str:
        """Return the heading of a column."""
        if not self.shape:
            return ""
        return f"+{column}" if self.is_wrapped else str(column)

    def at(self, indexes: tuple[int, ...]) -> tuple[GridLayout, int, int]:
        """Return the slice that shows an element, and its row and column there."""
        if not self.shape:
            return self, 0, 0
        if self.is_wrapped:
            return (self, *divmod(indexes[0], self.wrap))
        return (replace(self, fixed=indexes), indexes[self.row_axis], indexes[self.column_axis])

    def stepped(self, axis: int, step: int) -> GridLayout:
        """Return the slice next to this one along an axis; the last is followed by the first."""
        fixed = list(self.fixed)
        fixed[axis] = (fixed[axis] + step) % self.shape[axis]
        return replace(self, fixed=tuple(fixed))

    def turned(self) -> GridLayout:
        """Return the view with rows and columns exchanged."""
        return replace(self, row_axis=self.column_axis, column_axis=self.row_axis)

    def with_axis(self, rows: int | None = None, columns: int | None = None) -> GridLayout:
        """Return the view with another axis as rows or columns; an axis in use is exchanged."""
        row_axis, column_axis = self.row_axis, self.column_axis
        if rows is not None:
            column_axis = row_axis if rows == column_axis else column_axis
            row_axis = rows
        if columns is not None:
            row_axis = column_axis if columns == row_axis else row_axis
            column_axis = columns
        return replace(self, row_axis=row_axis, column_axis=column_axis)

    def resized(self, shape: tuple[int, ...]) -> GridLayout:
        """Return the view of a tensor with as many dimensions, at the slice nearest to this one."""
        fixed = (max(0, min(pair)) for pair in zip(self.fixed, (s - 1 for s in shape), strict=True))
        return replace(self, shape=shape, fixed=tuple(fixed))

    def wrapped_for(self, fitting: int) -> GridLayout:
        """Return the view with as many elements in a row as fit, when it is wrapped."""
        if not self.is_wrapped:
            return self
        return replace(self, wrap=max(nice for nice in _NICE if nice <= max(1, fitting)))


def layout_of(shape: tuple[int, ...]) -> GridLayout:
    """Return the first view of a tensor: its last two axes that have more than one element."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    others = [axis for axis in range(len(shape) - 1, -1, -1) if axis not in axes]
    chosen = sorted((axes[-2:] + others)[:2]) if len(shape) > 1 else [0, 0]
    return GridLayout(shape, chosen[0], chosen[1], (0,) * len(shape), wrap=10)


def parse_index(text: str, shape: tuple[int, ...]) -> tuple[int, ...] | str:
    """Return the index that a text such as ``3, 0, 17`` names, or what is wrong with it.

    One number is a flat index. A negative index counts from the end.
    """
    words = text.strip().strip("[]()").replace(",", " ").split()
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        return "Write whole numbers, such as 3, 0, 17"
    count = math.prod(shape)
    if len(numbers) == 1 and len(shape) != 1:
        flat = numbers[0] + (count if numbers[0] < 0 else 0)
        if not 0 <= flat < count:
            return f"The flat index goes from 0 to {count - 1:,}"
        return unravel(flat, shape)
    if len(numbers) != len(shape):
        many = f"{len(shape)} numbers are needed, or one flat index"
        return many if len(shape) > 1 else "One number is needed"
    indices = []
    for axis, (number, size) in enumerate(zip(numbers, shape, strict=True)):
        index = number + (size if number < 0 else 0)
        if not 0 <= index < size:
            return f"Axis {axis} goes from 0 to {size - 1:,}"
        indices.append(index)
    return tuple(indices)


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index along each axis of a flat (row-major) index."""
    indices = []
    for size in reversed(shape):
        flat, index = divmod(flat, size)
        indices.append(index)
    return tuple(reversed(indices))


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

    def _lines(self, first: int, lines: int, stride: int, count: int, step: int) -> list[list[Any]]:
        """Return `lines` runs of `count` elements, one read a run where that is not too much."""
        span = (count - 1) * step + 1
        found: list[list[Any]] = []
        for line in range(lines):
            start = first + line * stride
            if span <= _SPAN:
                found.append(self.elements.read(start, span)[::step].tolist())
            else:
                at = range(start, start + count * step, step)
                found.append([self.elements.read(index, 1).tolist()[0] for index in at])
        return found


def moved(first: int, cursor: int, seen: int, count: int) -> int:
    """Return the first of `seen` places out of `count`, moved so that the cursor is seen."""
    jump = seen // 3
    if cursor < first:
        first = cursor - jump
    elif cursor >= first + seen:
        first = cursor - seen + 1 + jump
    return max(0, min(first, count - seen))


@dataclass(frozen=True)
class GridPlace:
    """Where the cursor of a grid was."""

    view: GridLayout
    row: int
    column: int
    corner: tuple[int, int] | None
