"""One call of an operator, and what it demands of the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import attribute_type, text_of
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Polynomial,
    Size,
    at_least,
    chosen,
    either,
    equal,
    number_of,
    sizes_text,
    value_at,
)
from dld_tui.core.model.shapes.value import NOTHING, Dims, Elements, Value
from dld_tui.core.model.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.tensors.payloads import PayloadOwner

_A = onnx.AttributeProto


@dataclass(frozen=True, slots=True)
class Demand:
    """What an operator demands of sizes, and does not get."""

    node: Node | None
    reason: str
    """What must hold, as "the channels of the data and of the weights are equal"."""
    sizes: tuple[Size, ...] = ()
    """Those that it must hold for."""

    @property
    def text(self) -> str:
        """The demand with its sizes. Untrusted text where these are symbolic."""
        return f"{self.reason}: {sizes_text(self.sizes)}" if self.sizes else self.reason


class Demands:
    """What operators demand of sizes, as the rules record it.

    Args:
        count: The number of candidates, the length of every array.
        sample: Sizes of names, for which what cannot be decided otherwise is decided. Without
            them it is left open.
    """

    def __init__(self, count: int = 1, sample: Mapping[str, int] | None = None) -> None:
        self.count = count
        self._sample = sample
        self.broken: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes cannot do with each candidate."""
        self.shrunk: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes stretch a single element over a fixed size: allowed, but rarely meant."""
        self.refusals: list[tuple[npt.NDArray[np.bool_], Node]] = []
        """The candidates that a node cannot do with."""
        self.failed: list[Demand] = []
        """What no candidate satisfies: the sizes are numbers."""
        self.bounds: dict[str, list[tuple[Size, Node]]] = {}
        """How many rows the tables have into which an input's elements point."""
        self.node: Node | None = None
        """The node that is being looked at."""

    def cost_with(self, shrunk: int | None) -> npt.NDArray[np.int64]:
        """Return the cost of each candidate: the nodes that it breaks, then those that it shrinks.

        Args:
            shrunk: How many nodes may stretch a single element; each one more is as bad as two
                that break. None for any number.
        """
        cost = self.broken * (1 << 20) + self.shrunk
        if shrunk is not None:
            cost = cost + np.maximum(self.shrunk - shrunk, 0) * (1 << 21)
        return cost

    def first_refusing(self, candidate: int) -> Node | None:
        """Return the first node that cannot do with a candidate."""
        return next((node for mask, node in self.refusals if mask[candidate]), None)

    def state(self) -> tuple[Any, ...]:
        """Return what is demanded up to now, for :meth:`reset`."""
        return self.broken.copy(), self.shrunk.copy(), len(self.refusals), len(self.failed)

    def reset(self, state: tuple[Any, ...]) -> None:
        """Forget what was demanded since."""
        self.broken, self.shrunk = state[:2]
        del self.refusals[state[2] :], self.failed[state[3] :]

    def require(self, holds: Any, reason: str, *sizes: Size) -> None:
        """Note which candidates the present node cannot do with, or that it can do with none."""
        if holds is None or holds is True:
            return
        if isinstance(holds, np.ndarray):
            refused = ~holds
            if refused.any() and self.node is not None:
                self.broken += refused
                self.refusals.append((refused, self.node))
        elif not holds:
            self.failed.append(Demand(self.node, reason, sizes))

    def is_equal(self, first: Size, second: Size) -> Any:
        """Return whether two sizes are equal: True, False, None, or an array of these."""
        holds = equal(first, second)
        if holds is None and self._sample is not None and UNKNOWN not in (first, second):
            read = self._sample.__getitem__
            return bool(value_at(first, read) == value_at(second, read))
        return holds

    def equal(self, first: Size, second: Size, reason: str) -> Size:
        """Demand that two sizes are equal, and return the size."""
        if first is UNKNOWN or second is UNKNOWN:
            return second if first is UNKNOWN else first
        self.require(self.is_equal(first, second), reason, first, second)
        return second if isinstance(second, int) and not isinstance(first, int) else first

    def at_least(self, size: Size, least: Size, reason: str) -> None:
        """Demand that a size is as large as another, or larger."""
        self.require(at_least(size, least), reason, size, least)

    def divides(self, size: Size, part: Size, reason: str) -> None:
        """Demand that a size is a multiple of another."""
        if size is UNKNOWN or part is UNKNOWN or number_of(part) == 0:
            return
        if isinstance(size, Polynomial) or isinstance(part, Polynomial):
            return
        self.require(size % (np.maximum(part, 1) if isinstance(part, np.ndarray) else part) == 0,
                     reason, size, part)  # fmt: skip

    def broadcast(self, *shapes: Dims | None) -> Dims | None:
        """Demand that shapes can be broadcast, and return the common one."""
        if any(dims is None for dims in shapes):
            return None
        known = [dims for dims in shapes if dims is not None]
        rank = max(map(len, known), default=0)
        joined_dims = []
        for axis in range(rank):
            size: Size = 1
            for dims in known:
                at = axis - rank + len(dims)
                size = self.joined(size, dims[at]) if at >= 0 else size
            joined_dims.append(size)
        return tuple(joined_dims)

    def joined(self, first: Size, second: Size) -> Size:
        """Demand that two sizes can be broadcast, and return the common one."""
        if isinstance(first, int) and isinstance(second, int):
            if 1 in (first, second) or first == second:
                return second if first == 1 else first
            self.require(False, _BROADCAST, first, second)
            return UNKNOWN
        if isinstance(first, int) and first == 1:
            return second
        if isinstance(second, int) and second == 1:
            return first
        if first is UNKNOWN or second is UNKNOWN:
            known = first if second is UNKNOWN else second
            return UNKNOWN if isinstance(known, Polynomial) else known
        same = self.is_equal(first, second)
        if isinstance(first, Polynomial) or isinstance(second, Polynomial):
            if same is True:
                return first
            if same is False and self._sample is not None:
                one = self.is_equal(first, 1), self.is_equal(second, 1)
                self.require(any(one), _BROADCAST, first, second)
                return second if one[0] else first
            if isinstance(first, int) or isinstance(second, int):  # the other one is this, or 1
                return first if isinstance(first, int) else second
            return UNKNOWN
        self.require(either(either(same, equal(first, 1)), equal(second, 1)), _BROADCAST,
                     first, second)  # fmt: skip
        for size, fixed in ((first, second), (second, first)):
            if isinstance(fixed, int) and isinstance(size, np.ndarray):
                self.shrunk += size == 1
        return chosen(equal(first, 1), second, first)

    def bound(self, index: Value, rows: Size) -> None:
        """Note that the elements of a value point into a table."""
        if rows is UNKNOWN:
            return
        if index.source is not None and self.node is not None:
            name, added = index.source
            self.bounds.setdefault(name, []).append((rows - added, self.node))
        if index.upper_bound is not None and index.upper_bound is not UNKNOWN:
            self.at_least(rows, index.upper_bound + 1, "an index points into the table")


_BROADCAST = "sizes that are broadcast are equal, or one of them is 1"
NO_ATTRIBUTES: Mapping[str, onnx.AttributeProto] = {}


class Call:
    """One call of an operator.

    Args:
        proto: The node.
        inputs: What is known of its inputs, in order; :data:`~.value.NOTHING` for one left out.
        demands: Where to note what sizes it demands.
        version: Of the operator set of its domain; 0 where it is not known.
        outer: The attributes of the call around it, in a local function.
        owner: The document that has the payloads of its tensors.
        results: What is known of its outputs without its rule, for those who ask what it costs.
    """

    __slots__ = (
        "_outer",
        "_owner",
        "demands",
        "inputs",
        "proto",
        "results",
        "version",
    )

    def __init__(
        self,
        proto: onnx.NodeProto,
        inputs: list[Value],
        demands: Demands | None = None,
        version: int = 0,
        outer: Mapping[str, onnx.AttributeProto] = NO_ATTRIBUTES,
        owner: PayloadOwner | None = None,
        results: Sequence[Value] = (),
    ) -> None:
        self.proto, self.inputs, self.version, self.results = proto, inputs, version, results
        self.demands = Demands() if demands is None else demands
        self._outer, self._owner = outer, owner

    @property
    def operator(self) -> str:
        """Its name, as ``Conv``."""
        return text_of(self.proto.op_type)

    @property
    def outputs(self) -> int:
        """How many results the node has."""
        return len(self.proto.output)

    def has(self, at: int) -> bool:
        """Return whether something goes in there, known or not."""
        names = self.proto.input
        return at < len(names) and bool(names[at])

    def input(self, at: int) -> Value:
        """Return what is known of an input."""
        return self.inputs[at] if at < len(self.inputs) else NOTHING

    def dims(self, at: int = 0) -> Dims | None:
        """Return the sizes of an input; None where not even the rank is known."""
        return self.inputs[at].dims if at < len(self.inputs) else None

    def values(self, at: int) -> tuple[Size, ...] | None:
        """Return the elements of a small input."""
        return self.inputs[at].values() if at < len(self.inputs) else None

    def element(self, at: int) -> Size:
        """Return the only element of an input."""
        values = self.values(at)
        return UNKNOWN if values is None or len(values) != 1 else values[0]

    def array_of(self, at: int) -> Elements | None:
        """Return the elements of a small input as plain numbers in its shape, or None."""
        array = self.input(at).array()
        if array is None or not all(isinstance(n, (int, float)) for n in array.reshape(-1)):
            return None
        return array

    def whole(self, at: int) -> list[int] | None:
        """Return the elements of an input as integers, the same for all candidates, or None."""
        values = self.values(at)
        if values is None:
            return None
        numbers = [number_of(value) for value in values]
        return None if None in numbers else [int(number) for number in numbers]

    def attributes(self) -> dict[str, onnx.AttributeProto]:
        """Return them by name; references are resolved by the attributes of the call around it."""
        protos = {}
        for proto in self.proto.attribute:
            referred = text_of(proto.ref_attr_name)
            actual = self._outer.get(referred) if referred else proto
            if actual is not None:
                protos[text_of(proto.name)] = actual
        return protos

    def attribute(self, name: str) -> onnx.AttributeProto | None:
        """Return one of them, or None."""
        for proto in self.proto.attribute:
            if text_of(proto.name) == name:
                referred = text_of(proto.ref_attr_name)
                return self._outer.get(referred) if referred else proto
        return None

    def number(self, name: str, default: int) -> int:
        """Return an integer."""
        proto = self.attribute(name)
        return default if proto is None else int(proto.i)

    def numbers(self, name: str) -> list[int] | None:
        """Return a list of integers; None where there is none."""
        proto = self.attribute(name)
        return None if proto is None else list(proto.ints)

    def text(self, name: str, default: str) -> str:
        """Return a text."""
        proto = self.attribute(name)
        return default if proto is None else bytes(proto.s).decode("utf-8", "replace")

    def value_of(self, proto: onnx.AttributeProto) -> Value:
        """Return the value that an attribute has as a constant."""
        kind = proto.type or attribute_type(proto)
        if kind == _A.TENSOR:
            tensor = Tensor(proto.t, self._owner)
            return Value(tensor.shape, tensor=tensor)
        if kind == _A.SPARSE_TENSOR:
            return Value(tuple(proto.sparse_tensor.dims))
        if kind in (_A.INT, _A.FLOAT):
            return Value((), (proto.i if kind == _A.INT else proto.f,))
        if kind in (_A.INTS, _A.FLOATS):
            listed = tuple(proto.ints if kind == _A.INTS else proto.floats)
            return Value((len(listed),), listed)
        if kind in (_A.STRING, _A.STRINGS):
            return Value(() if kind == _A.STRING else (len(proto.strings),))
        return NOTHING

    def constant(self) -> Value:
        """Return the value of a Constant."""
        protos = list(self.attributes().values())
        return self.value_of(protos[0]) if protos else NOTHING
