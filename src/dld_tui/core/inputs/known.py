"""What is known of a value while shapes go through a graph, and the attributes of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx

from dld_tui.core.document.node import attribute_type
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import DldError

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.inputs.propagation import Propagation

Number: TypeAlias = Any
"""An int, a float, an array with one number a candidate, or None where nothing is known."""
Dims: TypeAlias = "tuple[Number, ...]"
MOST_NUMBERS = 256
"""Elements of a tensor that is followed by value."""
_A = onnx.AttributeProto


@dataclass(slots=True)
class Known:
    """What is known of a value."""

    dims: Dims | None = None
    numbers: tuple[Number, ...] | None = None
    """The elements of a small tensor."""
    source: tuple[str, int] | None = None
    """The input whose elements these are, and what is added to each."""
    most: Number = None
    """No element is greater."""
    tensor: Tensor | None = None
    """Where constant values are."""

    def values(self) -> tuple[Number, ...] | None:
        """Return the elements, where they are known and few."""
        tensor = self.tensor
        if self.numbers is not None or tensor is None:
            return self.numbers
        if tensor.element_count <= MOST_NUMBERS and len(tensor.shape) <= 1:
            try:
                self.numbers = tuple(tensor.read().reshape(-1).tolist())
            except (DldError, ValueError):
                self.tensor = None
        return self.numbers


UNKNOWN = Known()


class Attributes:
    """The attributes of a node, those of the call in place of references to them."""

    def __init__(self, node: Node, outer: Mapping[str, onnx.AttributeProto]) -> None:
        self.node, self._outer = node, outer

    def protos(self) -> dict[str, onnx.AttributeProto]:
        """Return them by name."""
        found = {}
        for proto in self.node.proto.attribute:
            referred = text_of(proto.ref_attr_name)
            actual = self._outer.get(referred) if referred else proto
            if actual is not None:
                found[text_of(proto.name)] = actual
        return found

    def proto(self, name: str) -> onnx.AttributeProto | None:
        """Return one of them, or None."""
        for proto in self.node.proto.attribute:
            if text_of(proto.name) == name:
                referred = text_of(proto.ref_attr_name)
                return self._outer.get(referred) if referred else proto
        return None

    def number(self, name: str, default: int) -> int:
        """Return an integer."""
        proto = self.proto(name)
        return default if proto is None else int(proto.i)

    def numbers(self, name: str) -> list[int] | None:
        """Return a list of integers; None where there is none."""
        proto = self.proto(name)
        return None if proto is None else list(proto.ints)

    def text(self, name: str, default: str) -> str:
        """Return a text."""
        proto = self.proto(name)
        return default if proto is None else bytes(proto.s).decode("utf-8", "replace")

    def constant(self) -> Known:
        """Return the value of a Constant."""
        document = self.node.scope.document
        for proto in self.protos().values():
            kind = proto.type or attribute_type(proto)
            if kind == _A.TENSOR:
                tensor = Tensor(proto.t, document)
                return Known(tensor.shape, tensor=tensor)
            if kind in (_A.INT, _A.FLOAT):
                return Known((), (proto.i if kind == _A.INT else proto.f,))
            if kind in (_A.INTS, _A.FLOATS):
                listed = tuple(proto.ints if kind == _A.INTS else proto.floats)
                return Known((len(listed),), listed)
        return UNKNOWN

    @property
    def outputs(self) -> int:
        """How many results the node has."""
        return len(self.node.proto.output)


Rule: TypeAlias = "Callable[[Propagation, list[Known], Attributes], Sequence[Known]]"
"""Returns what is known of the results of a node, and notes what the node demands."""


def only(values: Sequence[Number] | None) -> Number:
    """Return the one number that there is, the same for all candidates; None where it is not."""
    if values is None or len(values) != 1:
        return None
    value = values[0]
    if isinstance(value, np.ndarray):
        return value[0].item() if value.size and (value == value[0]).all() else None
    return value


def product(dims: Sequence[Number]) -> Number:
    """Return the product; None where a number is not known."""
    total: Number = 1
    for dim in dims:
        if dim is None:
            return None
        total = total * dim
    return total


def plain(value: Number) -> Number:
    """Return Python's number for one of NumPy, so that it counts as the same for all."""
    return value.item() if isinstance(value, np.generic) else value


def whole(known: Known) -> list[int] | None:
    """Return the elements as integers, which are the same for all candidates; None if unknown."""
    values = known.values()
    if values is None:
        return None
    return [int(only((value,))) for value in values]


def lacks(numbers: Sequence[Number]) -> bool:
    """Return whether one of them is not known."""
    return any(number is None for number in numbers)
