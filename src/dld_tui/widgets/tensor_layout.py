"""Where the elements of a tensor stand in a grid: rows, columns, and what is fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        found = list(self.fixed)
        found[self.row_axis], found[self.column_axis] = row, column
        return tuple(found)

    def row_label(self, row: int) -> str:
        """Return the heading of a row: its index, that of its first element when wrapped."""
        return "" if not self.shape else str(row * self.wrap if self.is_wrapped else row)

    def column_label(self, column: int) -> str:
        """Return the heading of a column."""
        if not self.shape:
            return ""
        return f"+{column}" if self.is_wrapped else str(column)

    # --- other views ----------------------------------------------------------------------------

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
        return f"{len(shape)} numbers are needed, or one flat index"
    found = []
    for axis, (number, size) in enumerate(zip(numbers, shape, strict=True)):
        index = number + (size if number < 0 else 0)
        if not 0 <= index < size:
            return f"Axis {axis} goes from 0 to {size - 1:,}"
        found.append(index)
    return tuple(found)


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index along each axis of a flat (row-major) index."""
    found = []
    for size in reversed(shape):
        flat, index = divmod(flat, size)
        found.append(index)
    return tuple(reversed(found))
