"""Inspection of tensors of any size: a window of the elements, and a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, EditError, InputError
from dld_tui.core.model.tensors.elements import PART_ELEMENTS, Array, native_type, to_json
from dld_tui.core.model.tensors.literals import LiteralError, element_text, parse_element
from dld_tui.core.model.tensors.tensor import Tensor, TensorStatistics, tensor_statistics
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

# Only requested elements are read and decoded. The first look into a large payload of varints
# (`int32_data` and the like) decodes it once, to a temporary file.

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
class ParsedElement:
    """Text typed into a cell, and its value."""

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
        native_type(self.dtype)
        self._strides = _strides(self.shape)

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
        """Return the literal of an element; a string is quoted and escaped."""
        return element_text(value, self.dtype)

    def parse(self, text: str) -> ParsedElement:
        """Return the element that a text typed into a cell means.

        A string may be typed in quotes with escapes, or without quotes.

        Raises:
            EditError: It is no element of the type, or out of its range; says why.
        """
        try:
            if self.dtype == "string":
                value = _string(text)
                return ParsedElement(
                    to_json(_array([value], "string"), "string")[0], self.text(value), False
                )
            value = parse_element(text, self.dtype)
            native = _array([value], self.dtype)
            shown = self.text(native[0])
            return ParsedElement(to_json(native, self.dtype)[0], shown, _differs(text, shown))
        except LiteralError as error:
            raise EditError(error.message) from None

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
        result = np.empty(shape, native_type(self.dtype))
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
        elements = np.empty(count, native_type(self.dtype))
        for place in range(count):
            elements[place] = self.tensor.read(start + place * step, 1)[0]
        return elements

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
    elements = np.empty(len(values), native_type(dtype))
    elements[:] = values
    return elements


def _string(text: str) -> bytes:
    if text[:1] in ("'", '"'):
        value = parse_element(text, "string")
        return value if isinstance(value, bytes) else str(value).encode()
    return text.encode("utf-8", "surrogateescape")


def _differs(typed: str, shown: str) -> bool:
    """Return whether a typed number was rounded to another one."""
    try:
        return float(typed) != float(shown) and float(typed) == float(typed)
    except (ValueError, OverflowError):  # true, 0x10, 1+2j: these are never rounded
        return False


@dataclass(frozen=True)
class Histogram:
    """Counts of finite values in bins of one width; the last bin has both its ends."""

    low: float
    """Where the first bin begins."""
    high: float
    """Where the last bin ends."""
    counts: tuple[int, ...]
    below: int
    """Finite values less than `low`; only with a range that the caller chose."""
    above: int
    nans: int
    negative_infinities: int
    positive_infinities: int
    statistics: TensorStatistics


def tensor_histogram(
    tensor: Tensor,
    bins: int = 64,
    *,
    low: float | None = None,
    high: float | None = None,
    statistics: TensorStatistics | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Histogram | None:
    """Read a tensor and count its values; None where it has no finite ones, or no real numbers.

    Args:
        bins: How many bins.
        low: Where the first begins; by default at the least finite value.
        high: Where the last ends; by default at the largest finite value.
        statistics: Those of the tensor when they are known, which saves one of two readings.
        progress: Called with elements done and elements in all.
        cancelled: Asked before each part.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    total = tensor.element_count
    readings = 1 if statistics is not None else 2

    def report(done: int) -> None:
        if progress is not None:
            progress(done, total * readings)

    if statistics is None:
        statistics = tensor_statistics(
            tensor, progress=lambda done, _: report(done), cancelled=cancelled
        )
    if statistics is None or statistics.minimum is None or statistics.maximum is None:
        return None
    start = statistics.minimum if low is None else low
    end = statistics.maximum if high is None else high
    counter = _Counter(start, max(end, start), bins)
    for first in range(0, total, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        counter.add(tensor.read(first, PART_ELEMENTS).astype(np.float64))
        report(total * (readings - 1) + min(first + PART_ELEMENTS, total))
    return counter.result(statistics)


class _Counter:
    def __init__(self, low: float, high: float, bins: int) -> None:
        self._low, self._high = low, high
        self._counts = np.zeros(max(bins, 1), np.int64)
        self._outside = [0, 0]
        self._infinities = [0, 0]
        self._nans = 0

    def add(self, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        """Count a part of the values."""
        self._nans += int(np.isnan(values).sum())
        self._infinities[0] += int((values == -math.inf).sum())
        self._infinities[1] += int((values == math.inf).sum())
        known = values[np.isfinite(values)]
        self._outside[0] += int((known < self._low).sum())
        self._outside[1] += int((known > self._high).sum())
        inside = known[(known >= self._low) & (known <= self._high)]
        bins = len(self._counts)
        # Halves: the width of the range of float64 is itself no float64.
        width = self._high / 2 - self._low / 2
        if width > 0:
            places = ((inside / 2 - self._low / 2) / width * bins).astype(np.int64)
            np.clip(places, 0, bins - 1, out=places)
        else:
            places = np.zeros(len(inside), np.int64)
        self._counts += np.bincount(places, minlength=bins)

    def result(self, statistics: TensorStatistics) -> Histogram:
        """Return what was counted."""
        return Histogram(
            low=self._low,
            high=self._high,
            counts=tuple(int(count) for count in self._counts),
            below=self._outside[0],
            above=self._outside[1],
            nans=self._nans,
            negative_infinities=self._infinities[0],
            positive_infinities=self._infinities[1],
            statistics=statistics,
        )
