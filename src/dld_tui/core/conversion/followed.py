"""What is known of a value at the old sizes of the dimensions, and with their names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import onnx
from onnx import numpy_helper

from dld_tui.core.conversion.regrouping import Factor, Sizes
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.shapes.size import (
    Polynomial,
)
from dld_tui.core.model.shapes.value import MOST_ELEMENTS, Dims, Value, of_array

_PRIMES = (7, 11, 13, 17, 19, 23)


@dataclass
class Followed:
    """What is known of a value at the old sizes of the dimensions, and with their names."""

    old: Value
    new: Value
    factors: dict[int, tuple[Factor, ...]] = field(default_factory=dict)
    """By axis: what stands one in the other in it, the outermost first, where that is known."""

    @property
    def sizes(self) -> Sizes:
        """The old shape."""
        return self.old.dims or ()

    @property
    def dims(self) -> Dims:
        """The new shape."""
        return self.new.dims or ()

    @property
    def changed(self) -> list[int]:
        """The axes that depend on a dimension."""
        return [axis for axis, size in enumerate(self.dims) if isinstance(size, Polynomial)]

    @property
    def differs(self) -> bool:
        """Whether the elements depend on a dimension, or are not known with names any more."""
        return self.old.values() != self.new.values()

    @property
    def constant(self) -> tuple[Any, ...] | None:
        """The elements, where they are known and depend on no dimension."""
        return None if self.differs else self.old.values()

    def parts(self, axis: int) -> tuple[Factor, ...]:
        """Return what stands one in the other in an axis, the outermost first."""
        return self.factors.get(axis) or (Factor(self.sizes[axis], self.dims[axis]),)


def sample_sizes(olds: Mapping[str, int], batches: frozenset[str]) -> dict[str, int]:
    """Return a size of each dimension, as different from each other and from the old one as can be.

    Lengths stay multiples of the old ones, which strides and blocks may need.
    """
    sample: dict[str, int] = {}
    for at, (name, old) in enumerate(olds.items()):
        choices = _PRIMES if name in batches else range(2 * (at + 1), 1 << 16, 2)
        taken = {*sample.values(), *olds.values()}
        sample[name] = next(
            old * times
            for times in choices
            if old * times not in taken and (name not in batches or old % times)
        )
    return sample


def depend(values: Sequence[Followed | None]) -> bool:
    """Return whether one of some values depends on a dimension."""
    return any(value is not None and (value.changed or value.differs) for value in values)


def value_of_tensor(tensor: onnx.TensorProto) -> Value:
    """Return the shape of a tensor, with the elements of a small one that is here."""
    if tensor.data_location == tensor.EXTERNAL or math.prod(tensor.dims) > MOST_ELEMENTS:
        return Value(tuple(tensor.dims))
    try:
        return of_array(numpy_helper.to_array(tensor))
    except (ValueError, TypeError):
        return Value(tuple(tensor.dims))  # cut out


def shape_only(value: Followed) -> Followed:
    """Return what is known of a value without its elements."""
    return Followed(
        Value(value.old.dims, is_sequence=value.old.is_sequence),
        Value(value.new.dims, is_sequence=value.new.is_sequence),
        dict(value.factors),
    )


def by_axis(groups: Sequence[Sequence[Factor]]) -> dict[int, tuple[Factor, ...]]:
    """Return the factors of axes that have several."""
    return {axis: tuple(group) for axis, group in enumerate(groups) if len(group) > 1}


def inherited(value: Followed, inputs: Sequence[Followed | None]) -> dict[int, tuple[Factor, ...]]:
    """Return what is in the axes of an output, as in those of an input that are alike."""
    return {
        axis: parts
        for axis in value.changed
        for other in inputs
        for place, parts in (other.factors if other is not None else {}).items()
        if other is not None and other.dims[place] == value.dims[axis]
    }
