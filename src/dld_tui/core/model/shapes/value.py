"""What is known of a value: its shape, the elements of a small tensor, the items of a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.model.shapes.size import UNKNOWN, Size, equal, plain
from dld_tui.core.model.tensors.tensor import Tensor

Dims: TypeAlias = "tuple[Size, ...]"
Elements: TypeAlias = "npt.NDArray[Any]"
"""An array of objects: the elements of a small tensor, each a :data:`~.size.Size`."""
MOST_ELEMENTS = 256
"""Elements of a tensor that is followed by value."""


@dataclass(slots=True)
class Value:
    """The known shape and elements of a value."""

    dims: Dims | None = None
    """None where not even the rank is known. Of a sequence, what all its items have in common."""
    elements: tuple[Size, ...] | None = None
    """Those of a small tensor in row-major order: numbers, or what shapes were computed to."""
    source: tuple[str, int] | None = None
    """The input that the elements come from, and the number added to each."""
    upper_bound: Size | None = None
    """No element is greater."""
    tensor: Tensor | None = None
    """Where constant values are."""
    items: tuple[Value, ...] | None = None
    """The tensors of a sequence whose length is known."""
    is_sequence: bool = False

    def values(self) -> tuple[Size, ...] | None:
        """Return the elements in row-major order, where they are known and few."""
        tensor = self.tensor
        if self.elements is not None or tensor is None:
            return self.elements
        if tensor.dtype.startswith("uint"):  # what is computed of these wraps around
            self.tensor = None
        elif tensor.element_count <= MOST_ELEMENTS:
            try:
                self.elements = tuple(tensor.read().reshape(-1).tolist())
            except (DldError, ValueError):
                self.tensor = None
        return self.elements

    def array(self) -> Elements | None:
        """Return the elements of a small tensor in its shape; None where they are not known."""
        values, dims = self.values(), self.dims
        if values is None or dims is None or not all(isinstance(size, int) for size in dims):
            return None
        array = np.empty(len(values), object)
        for at, number in enumerate(values):
            array[at] = number
        return array.reshape(dims)

    @property
    def is_known(self) -> bool:
        """Whether all of its sizes are known."""
        return self.dims is not None and UNKNOWN not in self.dims


NOTHING = Value()
"""A value of which nothing is known."""


def scalar(size: Size) -> Value:
    """Return a scalar with a value."""
    return Value((), (size,))


def vector(sizes: Iterable[Size]) -> Value:
    """Return a tensor of one dimension with its elements."""
    elements = tuple(sizes)
    return Value((len(elements),), elements)


def of_array(array: Any) -> Value:
    """Return a value with the elements of an array, if these are few."""
    array = np.asarray(array)
    if array.size > MOST_ELEMENTS or array.dtype.kind == "u":
        return Value(array.shape)
    return Value(array.shape, tuple(map(plain, array.reshape(-1).tolist())))


def sequence(items: Sequence[Value]) -> Value:
    """Return a sequence of values."""
    kept = tuple(items)
    dims = in_common(kept).dims if kept else None
    return Value(dims, items=kept, is_sequence=True)


def alike(first: Dims | None, second: Dims | None) -> bool:
    """Return whether two shapes are known, and the same for all candidates."""
    if first is None or second is None or len(first) != len(second):
        return False
    return all(map(is_same, first, second))


def is_same(first: Size, second: Size) -> bool:
    """Return whether two sizes are known and equal, for all candidates."""
    holds = equal(first, second)
    return holds is not None and bool(np.all(holds))


def contradict(first: Dims | None, second: Dims | None) -> bool:
    """Return whether two shapes cannot be of one value."""
    if first is None or second is None:
        return False
    return len(first) != len(second) or any(
        equal(*pair) is False for pair in zip(first, second, strict=True)
    )


def in_common(values: Sequence[Value]) -> Value:
    """Return what is known of a value that is one of some."""
    first = values[0]
    if any(v.dims is None or first.dims is None or len(v.dims) != len(first.dims) for v in values):
        return Value(is_sequence=first.is_sequence)
    shapes = [value.dims for value in values if value.dims is not None]
    dims = tuple(
        sizes[0] if all(is_same(sizes[0], size) for size in sizes[1:]) else UNKNOWN
        for sizes in zip(*shapes, strict=True)
    )
    return Value(dims, is_sequence=first.is_sequence)
