"""Random access to the elements of a tensor of any size, for grids that show a part of it.

Only what is asked for is read and decoded. The first look into a large payload of varints
(``int32_data`` and the like) decodes it once, to a temporary file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dld_tui.core.document.literals import LiteralError, element_text, parse_element
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.tensors.elements import Array, numpy_type, to_json
from dld_tui.core.types import JSON

_SPAN = 1 << 16
"""Elements that are read in one go where the wanted ones lie scattered among them."""


@dataclass(frozen=True)
class Slice:
    """A plane of a tensor: two of its dimensions, the others held at one index each."""

    rows: int | None
    """The dimension that goes down; None for a single row."""
    columns: int | None
    """The dimension that goes right; None for a single column."""
    fixed: tuple[int, ...]
    """An index for each dimension of the tensor; those of `rows` and `columns` are not used."""


@dataclass(frozen=True)
class Typed:
    """What was typed into a cell."""

    value: JSON
    """As ``set_elements`` takes it."""
    text: str
    """What the cell will show."""
    rounded: bool
    """True when the element type cannot hold just the number that was typed."""


class TensorWindow:
    """The elements of one state of a tensor. Make another one after each edit.

    Raises:
        InputError: The values cannot be read; says why.
    """

    def __init__(self, tensor: Tensor) -> None:
        problem = tensor.problem
        if problem is not None:
            raise InputError(problem, where=tensor.name or None)
        self.tensor = tensor
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.count = tensor.element_count
        numpy_type(self.dtype)
        self._strides = _strides(self.shape)

    # --- single elements ------------------------------------------------------------------------

    def value(self, index: int) -> Any:
        """Return one element by its place in row order.

        Raises:
            IndexError: There is no such element.
        """
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.tensor.read(index, 1)[0]

    def values(self, start: int, count: int) -> Array:
        """Return elements in row order, fewer where the tensor ends."""
        return self.tensor.read(max(start, 0), max(count, 0))

    def text(self, value: Any) -> str:
        """Return how an element is written; a string is quoted and escaped."""
        return element_text(value, self.dtype)

    def parse(self, text: str) -> Typed:
        """Return the element that a text typed into a cell means.

        A string may be typed in quotes with escapes, or just as it is.

        Raises:
            EditError: It is no element of the type, or out of its range; says why.
        """
        try:
            if self.dtype == "string":
                value = _string(text)
                return Typed(
                    to_json(_array([value], "string"), "string")[0], self.text(value), False
                )
            value = parse_element(text, self.dtype)
            native = _array([value], self.dtype)
            shown = self.text(native[0])
            return Typed(to_json(native, self.dtype)[0], shown, _differs(text, shown))
        except LiteralError as error:
            raise EditError(error.message) from None

    # --- planes ---------------------------------------------------------------------------------

    def plane(
        self, rows: int | None = None, columns: int | None = None, fixed: Sequence[int] = ()
    ) -> Slice:
        """Return a plane, by default of the last two dimensions at index 0 of all others.

        A tensor of one dimension is a single column, a scalar a single cell.

        Args:
            rows: The dimension that goes down.
            columns: The dimension that goes right.
            fixed: An index for each dimension, or none.

        Raises:
            IndexError: There is no such dimension or index, or both are the same dimension.
        """
        rank = len(self.shape)
        if rows is None and columns is None:
            rows = rank - 2 if rank > 1 else (0 if rank else None)
            columns = rank - 1 if rank > 1 else None
        at = tuple(fixed) or (0,) * rank
        if len(at) != rank or (rows is not None and rows == columns):
            raise IndexError("not a plane of this tensor")
        for axis in (rows, columns):
            if axis is not None and not 0 <= axis < rank:
                raise IndexError(f"there is no dimension {axis}")
        for axis, index in enumerate(at):
            if axis not in (rows, columns) and not 0 <= index < max(self.shape[axis], 1):
                raise IndexError(f"dimension {axis} has no index {index}")
        return Slice(rows, columns, at)

    def size(self, plane: Slice) -> tuple[int, int]:
        """Return how many rows and columns a plane has."""
        if not self.count:
            return 0, 0
        rows = 1 if plane.rows is None else self.shape[plane.rows]
        return rows, 1 if plane.columns is None else self.shape[plane.columns]

    def index(self, plane: Slice, row: int, column: int) -> int:
        """Return the place in row order of a cell, as ``set_elements`` takes it."""
        return self._base(plane) + row * self._step(plane.rows) + column * self._step(plane.columns)

    def coordinates(self, index: int) -> tuple[int, ...]:
        """Return the indices of an element by its place in row order."""
        coordinates = []
        for size, stride in zip(self.shape, self._strides, strict=True):
            coordinates.append(index // stride % size)
        return tuple(coordinates)

    def cells(
        self, plane: Slice, row: int, rows: int, column: int = 0, columns: int | None = None
    ) -> Array:
        """Return a rectangle of a plane, cut at its edges.

        Args:
            row: The first row.
            rows: How many.
            column: The first column.
            columns: How many; the rest when None.

        Returns:
            An array of shape [rows, columns] of native elements.
        """
        height, width = self.size(plane)
        last_row = min(row + rows, height)
        last_column = width if columns is None else min(column + columns, width)
        shape = (max(last_row - row, 0), max(last_column - column, 0))
        result = np.empty(shape, numpy_type(self.dtype))
        down, right = self._step(plane.rows), self._step(plane.columns)
        start = self.index(plane, row, column)
        if plane.columns is not None and down < right:  # transposed: read along the rows' dimension
            for place in range(shape[1]):
                result[:, place] = self._line(start + place * right, down, shape[0])
        else:
            for place in range(shape[0]):
                result[place] = self._line(start + place * down, right, shape[1])
        return result

    def rows(self, plane: Slice, first: int, count: int) -> list[Array]:
        """Return whole rows of a plane, cut at its end."""
        return list(self.cells(plane, first, count))

    def _line(self, start: int, step: int, count: int) -> Array:
        """Return `count` elements that are `step` apart."""
        if count == 0 or step <= 1:
            return self.values(start, count)
        if (count - 1) * step < _SPAN:
            return self.values(start, (count - 1) * step + 1)[::step]
        found = np.empty(count, numpy_type(self.dtype))
        for place in range(count):
            found[place] = self.tensor.read(start + place * step, 1)[0]
        return found

    def _base(self, plane: Slice) -> int:
        pairs = enumerate(zip(plane.fixed, self._strides, strict=True))
        return sum(
            at * stride for axis, (at, stride) in pairs if axis not in (plane.rows, plane.columns)
        )

    def _step(self, axis: int | None) -> int:
        return 0 if axis is None else self._strides[axis]


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how far apart neighbours along each dimension are, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _array(values: list[Any], dtype: str) -> Array:
    found = np.empty(len(values), numpy_type(dtype))
    found[:] = values
    return found


def _string(text: str) -> bytes:
    if text[:1] in ("'", '"'):
        value = parse_element(text, "string")
        return value if isinstance(value, bytes) else str(value).encode()
    return text.encode("utf-8", "surrogateescape")


def _differs(typed: str, shown: str) -> bool:
    """Return whether a number that was typed and what became of it are different numbers."""
    try:
        return float(typed) != float(shown) and float(typed) == float(typed)
    except (ValueError, OverflowError):  # true, 0x10, 1+2j: these are never rounded
        return False
