"""Shapes and small values through single operators, and the constraints of each.

Every dimension is a number, or an array with one number a candidate, so that one call of a rule
tells for all candidates whether a Concat, a Reshape, a MatMul or a broadcast works out. Small
integer and float tensors are followed by value, since shapes are computed from shapes. What is not
known, such as the output of an operator without a rule, is None and constrains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx

from dld_tui.core.document.node import attribute_type
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import DldError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.operators.einsum import einsum_labels

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node


Number: TypeAlias = Any
"""An int, a float, an array with one number a candidate, or None where nothing is known."""
Dims: TypeAlias = "tuple[Number, ...]"
MOST_NUMBERS = 256
"""Elements of a tensor that is followed by value."""
_A = onnx.AttributeProto


@dataclass(slots=True)
class Value:
    """The known shape and elements of a value."""

    dims: Dims | None = None
    numbers: tuple[Number, ...] | None = None
    """The elements of a small tensor."""
    source: tuple[str, int] | None = None
    """The input that the elements come from, and the number added to each."""
    most: Number = None
    """No element is greater."""
    tensor: Tensor | None = None
    """Where constant values are."""
    rows: tuple[Number, ...] | None = None
    """The elements of a small matrix, row by row: exporters turn lists of pads in matrices."""

    def matrix(self) -> npt.NDArray[Any] | None:
        """Return the elements of a small matrix as objects; None where they are not known."""
        if self.rows is None or self.dims is None or len(self.dims) != 2:
            return None
        if not all(isinstance(size, int) for size in self.dims):
            return None
        elements = np.empty(len(self.rows), object)
        for at, number in enumerate(self.rows):
            elements[at] = number
        return elements.reshape([int(size) for size in self.dims if isinstance(size, int)])

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


UNKNOWN = Value()


class Attributes:
    """The attributes of a node; references are resolved by the attributes of the call."""

    def __init__(self, node: Node, outer: Mapping[str, onnx.AttributeProto]) -> None:
        self.node, self._outer = node, outer

    def protos(self) -> dict[str, onnx.AttributeProto]:
        """Return them by name."""
        protos = {}
        for proto in self.node.proto.attribute:
            referred = text_of(proto.ref_attr_name)
            actual = self._outer.get(referred) if referred else proto
            if actual is not None:
                protos[text_of(proto.name)] = actual
        return protos

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

    def constant(self) -> Value:
        """Return the value of a Constant."""
        document = self.node.scope.document
        for proto in self.protos().values():
            kind = proto.type or attribute_type(proto)
            if kind == _A.TENSOR:
                tensor = Tensor(proto.t, document)
                return Value(tensor.shape, tensor=tensor)
            if kind in (_A.INT, _A.FLOAT):
                return Value((), (proto.i if kind == _A.INT else proto.f,))
            if kind in (_A.INTS, _A.FLOATS):
                listed = tuple(proto.ints if kind == _A.INTS else proto.floats)
                return Value((len(listed),), listed)
        return UNKNOWN

    def has_input(self, at: int) -> bool:
        """Return whether something goes in there, known or not."""
        names = self.node.proto.input
        return at < len(names) and bool(names[at])

    @property
    def outputs(self) -> int:
        """How many results the node has."""
        return len(self.node.proto.output)


class Constraints:
    """The constraints of operators on the candidates, as the rules record them.

    Args:
        count: The number of candidates, the length of every array.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.broken: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes cannot do with each candidate."""
        self.shrunk: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes stretch a single element over a fixed size: allowed, but rarely meant."""
        self.refusals: list[tuple[npt.NDArray[np.bool_], Node]] = []
        """The candidates that a node cannot do with."""
        self.bounds: dict[str, list[tuple[Number, Node]]] = {}
        """How many rows the tables have into which an input's elements point."""
        self.compared: dict[str, list[Number]] = {}
        """Constants that an input is compared with, in the order of the nodes."""
        self.factors: dict[str, list[float]] = {}
        """Constants that an input is multiplied with."""
        self._node: Node | None = None
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

    def require(self, holds: Any) -> None:
        """Note which candidates the present node cannot do with; the same for all says nothing."""
        if isinstance(holds, np.ndarray):
            refused = ~holds
            if refused.any() and self._node is not None:
                self.broken += refused
                self.refusals.append((refused, self._node))

    def equal(self, first: Number, second: Number) -> Number:
        """Demand that two sizes are equal, and return the size."""
        if first is None or second is None:
            return second if first is None else first
        self.require(first == second)
        return first if isinstance(first, int) else second if isinstance(second, int) else first

    def broadcast(self, *shapes: Dims | None) -> Dims | None:
        """Demand that shapes can be broadcast, and return the common one."""
        if any(dims is None for dims in shapes):
            return None
        known = [dims for dims in shapes if dims is not None]
        rank = max(map(len, known), default=0)
        joined_dims = []
        for axis in range(rank):
            size: Number = 1
            for dims in known:
                at = axis - rank + len(dims)
                size = self.joined(size, dims[at]) if at >= 0 else size
            joined_dims.append(size)
        return tuple(joined_dims)

    def joined(self, first: Number, second: Number) -> Number:
        """Demand that two sizes can be broadcast, and return the common one."""
        if isinstance(first, int) and first == 1:
            return second
        if isinstance(second, int) and second == 1:
            return first
        if first is None or second is None:
            return first if second is None else second
        if isinstance(first, int) and isinstance(second, int):
            return first
        self.require((first == second) | (first == 1) | (second == 1))
        for size, fixed in ((first, second), (second, first)):
            if isinstance(fixed, int) and isinstance(size, np.ndarray):
                self.shrunk += size == 1
        return np.where(first == 1, second, first)

    def bound(self, index: Value, rows: Number) -> None:
        """Note that the elements of a value point into a table."""
        if rows is None:
            return
        if index.source is not None and self._node is not None:
            name, added = index.source
            self.bounds.setdefault(name, []).append((rows - added, self._node))
        if index.most is not None:
            self.require(index.most < rows)


Rule: TypeAlias = "Callable[[Constraints, list[Value], Attributes], Sequence[Value]]"
"""Returns the known shapes and values of a node's outputs, and records its constraints."""


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


def whole(known: Value) -> list[int] | None:
    """Return the elements as integers, which are the same for all candidates; None if unknown."""
    values = known.values()
    if values is None:
        return None
    return [int(only((value,))) for value in values]


def lacks(numbers: Sequence[Number]) -> bool:
    """Return whether one of them is not known."""
    return any(number is None for number in numbers)


# --- shapes and small values through single operators, for many sizes at once --------------------

_MOST_CLASSES = 1 << 16


def _copied(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    value = i[0]
    return [Value(value.dims, value.values(), value.source, value.most)]


def _cast(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    value, to = i[0], a.number("to", 0)
    numbers = value.values()
    if numbers is not None and to in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        numbers = tuple(None if n is None else _integer(n) for n in numbers)
    elif numbers is not None and to == onnx.TensorProto.BOOL:
        numbers = tuple(None if n is None else n != 0 for n in numbers)
    elif numbers is not None and to in (1, 10, 11):
        numbers = tuple(None if n is None else n * 1.0 for n in numbers)
    rows = value.rows if to in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) else None
    return [Value(value.dims, numbers, value.source, value.most, rows=rows)]


def _integer(value: Number) -> Number:
    return np.trunc(value).astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _reduced(dims: Dims, axes: Sequence[int] | None, keep: bool) -> Dims:
    chosen = range(len(dims)) if not axes else [axis % len(dims) for axis in axes]
    if keep:
        return tuple(1 if at in chosen else dim for at, dim in enumerate(dims))
    return tuple(dim for at, dim in enumerate(dims) if at not in chosen)


def _reduce(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    axes = a.numbers("axes")
    if axes is None and len(i) > 1 and i[1] is not UNKNOWN:
        values = i[1].values()
        if values is None:
            return []
        axes = [int(value) for value in values]
    if i[0].dims is None or (not axes and a.number("noop_with_empty_axes", 0)):
        return [Value(i[0].dims)]
    numbers = None
    listed = i[0].values()
    if listed is not None and len(i[0].dims) == 1 and not lacks(listed):
        if a.node.op_type == "ReduceProd":
            numbers = (product(listed),)
        elif a.node.op_type == "ReduceSum":
            numbers = (sum(listed),)
        elif a.node.op_type in ("ReduceMax", "ReduceMin") and len(listed) == 1:
            numbers = (listed[0],)
    return [Value(_reduced(i[0].dims, axes, bool(a.number("keepdims", 1))), numbers)]


def _arg(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    if i[0].dims is None:
        return []
    return [Value(_reduced(i[0].dims, [a.number("axis", 0)], bool(a.number("keepdims", 1))))]


def _divided(x: Number, y: Number) -> Number:
    whole = all(isinstance(n, (int, np.integer)) or getattr(n, "dtype", None) == np.int64
                for n in (x, y))  # fmt: skip
    if whole:
        if not isinstance(y, np.ndarray) and y == 0:
            return None
        return np.sign(x) * np.sign(y) * (abs(x) // np.maximum(abs(y), 1))
    return None if not isinstance(y, np.ndarray) and y == 0 else x / y


_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Max": np.maximum,
    "Min": np.minimum,
    "Pow": lambda x, y: x**y,
    "Mod": lambda x, y: x % y,
    "Equal": lambda x, y: x == y,
    "Greater": lambda x, y: x > y,
    "GreaterOrEqual": lambda x, y: x >= y,
    "Less": lambda x, y: x < y,
    "LessOrEqual": lambda x, y: x <= y,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Div": _divided,
}


def _elementwise(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = d.broadcast(*(left.dims for left in i))
    kind = a.node.op_type
    numbers = None
    combine = _ARITHMETIC.get(kind)
    if combine is not None and len(i) == 2 and dims is not None and len(dims) <= 1:
        left, right = i[0].values(), i[1].values()
        if left is not None and right is not None and 1 in (len(left), len(right)):
            many = max(len(left), len(right))
            pairs = zip(left * (many // len(left)) if len(left) == 1 else left,
                        right * (many // len(right)) if len(right) == 1 else right,
                        strict=False)  # fmt: skip
            numbers = tuple(
                None if x is None or y is None else plain(combine(x, y)) for x, y in pairs
            )
        elif left is not None and right is not None and len(left) == len(right):
            numbers = tuple(
                None if x is None or y is None else plain(combine(x, y))
                for x, y in zip(left, right, strict=True)
            )
    if kind == "Mul" and len(i) == 2:
        for value, constant in ((i[0], i[1]), (i[1], i[0])):
            factor = only(constant.values()) if value.source is not None else None
            if value.source is not None and factor is not None and constant.source is None:
                d.factors.setdefault(value.source[0], []).append(float(factor))
    if kind == "Equal" and len(i) == 2:
        for value, constant in ((i[0], i[1]), (i[1], i[0])):
            compared = only(constant.values())
            if value.source is not None and (classes := _classes(constant)):
                d.bound(Value(source=value.source), classes)
            if value.source is not None and compared is not None and constant.source is None:
                d.compared.setdefault(value.source[0], []).append(compared)
    return [Value(dims, numbers, _shifted(kind, i), _most(kind, i))]


def _classes(constant: Value) -> int | None:
    """Return how many classes are compared with, where a constant lists them, as in a one-hot."""
    tensor = constant.tensor
    if tensor is None or not 1 < tensor.element_count <= _MOST_CLASSES:
        return None
    try:
        listed = tensor.read().reshape(-1)
    except (DldError, ValueError):
        return None
    is_counted = listed.dtype.kind in "iu" and int(listed.min()) >= 0
    return int(listed.max()) + 1 if is_counted else None


def _shifted(kind: str, i: list[Value]) -> tuple[str, int] | None:
    """Return where elements come from that a constant is added to."""
    if kind not in ("Add", "Sub") or len(i) != 2:
        return None
    for value, constant, sign in ((i[0], i[1], 1 if kind == "Add" else -1), (i[1], i[0], 1)):
        number = only(constant.values())
        if value.source is not None and isinstance(number, int) and constant.source is None:
            name, added = value.source
            return (name, added + sign * number) if kind == "Add" or value is i[0] else None
    return None


def _most(kind: str, i: list[Value]) -> Number:
    if kind == "Add" and len(i) == 2:
        mosts = [value.most if value.most is not None else only(value.values()) for value in i]
        if not lacks(mosts) and any(value.most is not None for value in i):
            return mosts[0] + mosts[1]
    return None


def _where(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = d.broadcast(*(value.dims for value in i))
    listed = [value.values() for value in i]
    numbers = None
    if dims is not None and len(dims) <= 1 and all(value is not None for value in listed):
        many = max(len(value) for value in listed if value is not None)
        rows = [value * many if len(value) == 1 else value for value in listed if value is not None]
        if all(len(row) == many for row in rows):
            numbers = tuple(
                None if lacks((c, x, y)) else plain(np.where(c, x, y)[()])
                for c, x, y in zip(*rows, strict=True)
            )
    return [Value(dims, numbers)]


def _not(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    numbers = i[0].values()
    if numbers is not None:
        numbers = tuple(None if n is None else plain(np.logical_not(n)) for n in numbers)
    return [Value(i[0].dims, numbers)]


def _rounded(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    how: Any = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Neg": np.negative,
           "Sqrt": np.sqrt, "Abs": np.abs}[a.node.op_type]  # fmt: skip
    numbers = i[0].values()
    if numbers is not None:
        numbers = tuple(None if n is None else plain(how(n)) for n in numbers)
    return [Value(i[0].dims, numbers)]


def _shape(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    part = dims[a.number("start", 0) : a.number("end", len(dims))]
    return [Value((len(part),), tuple(part))]


def _size(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [Value((), (None if i[0].dims is None else product(i[0].dims),))]


def _constant(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [a.constant()]


def _constant_of_shape(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    sizes = i[0].values()
    if sizes is None:
        rank = i[0].dims[0] if i[0].dims else None
        return [Value((None,) * rank if isinstance(rank, int) else None)]
    numbers = None
    count = None if lacks(sizes) else only((product(sizes),))
    if len(sizes) <= 1 and isinstance(count, int) and 0 <= count <= MOST_NUMBERS:
        values = a.constant().values() if a.node.proto.attribute else (0.0,)
        value = values[0] if values else 0.0
        numbers = (value,) * count
    return [Value(tuple(sizes), numbers)]


def _range(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    start, limit, delta = (None if value.values() is None else value.values()[0] for value in i)  # type: ignore[index]
    if start is None or limit is None or delta is None:
        return [Value((None,))]
    if isinstance(delta, np.ndarray) or not delta:
        return [Value((None,))]
    count = np.maximum(np.ceil((limit - start) / delta), 0)
    count = count.astype(np.int64) if isinstance(count, np.ndarray) else int(count)
    numbers = None
    if isinstance(count, int) and count <= MOST_NUMBERS and not isinstance(start, np.ndarray):
        numbers = tuple(start + at * delta for at in range(count))
    return [Value((count,), numbers, None, limit - 1 if delta > 0 else None)]


def _cumulated(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """CumSum: of ones, it counts to the length."""
    axis = i[1].values() if len(i) > 1 else None
    dims = i[0].dims
    most = dims[int(axis[0])] if dims and axis and isinstance(axis[0], int) else None
    return [Value(dims, None, None, most)]


def _non_zero(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [Value((None if i[0].dims is None else len(i[0].dims), None))]


NUMBER_RULES: dict[str, Rule] = {
    "Constant": _constant, "Identity": _copied, "Cast": _cast, "Shape": _shape, "Size": _size,
    "ConstantOfShape": _constant_of_shape, "Range": _range, "Where": _where, "Not": _not,
    "ArgMax": _arg, "ArgMin": _arg, "CumSum": _cumulated, "NonZero": _non_zero,
    **dict.fromkeys(("Floor", "Ceil", "Round", "Neg", "Sqrt", "Abs"), _rounded),
    **dict.fromkeys((*_ARITHMETIC, "Sum", "Mean", "Xor", "PRelu", "BitShift", "BitwiseAnd",
                     "BitwiseOr", "BitwiseXor"), _elementwise),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                     "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), _reduce),
}  # fmt: skip
"""By operator."""


def _gather(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    data, index, axis = i[0], i[1], a.number("axis", 0)
    if data.dims is not None and data.dims:
        d.bound(index, data.dims[axis])
    listed, at = data.values(), index.values()
    numbers, source = None, None
    if listed is not None and at is not None and data.dims is not None and len(data.dims) == 1:
        if all(isinstance(position, int) for position in at):
            numbers = tuple(listed[position] for position in at)
    elif data.source is not None and axis == 0 and index.dims in ((), (1,)):
        source = data.source
    if data.dims is None or index.dims is None:
        return [Value(None, numbers, source)]
    axis %= len(data.dims)
    return [Value((*data.dims[:axis], *index.dims, *data.dims[axis + 1 :]), numbers, source)]


def _gather_quantized(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """GatherBlockQuantized of 4 bits in bytes: the last axis holds two elements a byte."""
    gathered = _gather(d, i[:2], a)
    data, scales = i[0].dims, i[2].dims if len(i) > 2 else None
    if data is None or scales is None or gathered[0].dims is None:
        return [Value()]
    bits, axis = a.number("bits", 4), a.number("gather_axis", 0) % len(data)
    if axis == len(data) - 1 or gathered[0].dims[-1] is None:
        return [Value()]
    block = a.number("block_size", 128)
    packed = scales[-1] is not None and data[-1] is not None and bits == 4
    is_packed = packed and bool(np.all(data[-1] * 2 <= scales[-1] * block))
    return [Value((*gathered[0].dims[:-1], gathered[0].dims[-1] * (2 if is_packed else 1)))]


def _gather_elements(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    if i[0].dims is not None:
        d.bound(i[1], i[0].dims[a.number("axis", 0)])
    return [Value(i[1].dims)]


def _concat(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    axis = a.number("axis", 0)
    listed = [value.values() for value in i]
    numbers = None
    if (
        all(value is not None for value in listed)
        and sum(len(value or ()) for value in listed) <= 256
    ):
        numbers = tuple(number for value in listed for number in value or ())
    known = [value.dims for value in i if value.dims is not None]
    if len(known) < len(i) or not known:
        return [Value((len(numbers),) if numbers is not None else None, numbers)]
    rank = len(known[0])
    axis %= rank
    dims: list[Number] = list(known[0])
    for other in known[1:]:
        for at in range(rank):
            if at == axis:
                both = (dims[at], other[at])
                dims[at] = None if lacks(both) else both[0] + both[1]
            else:
                dims[at] = d.equal(dims[at], other[at])
    return [Value(tuple(dims), numbers if rank == 1 else None)]


def _squeezed(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    value = i[0]
    axes = a.numbers("axes")
    if axes is None and len(i) > 1:
        axes = whole(i[1])
    if value.dims is None or (axes is None and any(dim is None for dim in value.dims)):
        return [Value(None, value.values(), value.source, value.most)]
    if axes is None:
        dims = tuple(dim for dim in value.dims if not (isinstance(dim, int) and dim == 1))
        return [Value(dims, value.values(), value.source, value.most)]
    chosen = {axis % len(value.dims) for axis in axes}
    for axis in chosen:
        if value.dims[axis] is not None:
            d.require(value.dims[axis] == 1)
    dims = tuple(dim for at, dim in enumerate(value.dims) if at not in chosen)
    return [Value(dims, value.values(), value.source, value.most)]


def _unsqueezed(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    value = i[0]
    axes = a.numbers("axes")
    if axes is None and len(i) > 1:
        axes = whole(i[1])
    if value.dims is None or axes is None:
        return [Value(None, value.values(), value.source, value.most)]
    rank = len(value.dims) + len(axes)
    chosen, rest = {axis % rank for axis in axes}, iter(value.dims)
    dims = tuple(1 if at in chosen else next(rest) for at in range(rank))
    return [Value(dims, value.values() if rank <= 1 else None, value.source, value.most)]


def _reshape(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    value = i[0]
    target = i[1].values() if len(i) > 1 else None
    if len(i) < 2:
        listed = a.numbers("shape")
        target = None if listed is None else tuple(listed)
    if target is None:
        rank = i[1].dims[0] if len(i) > 1 and i[1].dims else None
        unknown = (None,) * rank if isinstance(rank, int) else None
        return [Value(unknown, None, value.source, value.most)]
    dims: list[Number] = []
    for at, size in enumerate(target):
        if isinstance(size, (int, float)) and size == 0 and not a.number("allowzero", 0):
            dims.append(value.dims[at] if value.dims is not None and at < len(value.dims) else None)
        else:
            dims.append(size)
    filled = tuple(map(plain, _filled(d, value.dims, dims)))
    elements = value.rows if value.rows is not None else value.values()
    numbers = elements if len(filled) <= 1 else None
    rows = elements if len(filled) == 2 else None
    return [Value(filled, numbers, value.source, value.most, rows=rows)]


def _filled(d: Constraints, before: Dims | None, dims: list[Number]) -> Dims:
    """Return a target shape with the size in place of -1, and demand that the elements fit."""
    total = None if before is None else product(before)
    open_at = [at for at, dim in enumerate(dims) if isinstance(dim, int) and dim == -1]
    rest = product([dim for at, dim in enumerate(dims) if at not in open_at])
    if total is None or rest is None:
        return tuple(None if at in open_at else dim for at, dim in enumerate(dims))
    if not open_at:
        d.require(total == rest)
        return tuple(dims)
    safe = np.maximum(rest, 1) if isinstance(rest, np.ndarray) else max(rest, 1)
    d.require(total % safe == 0)
    return tuple(total // safe if at in open_at else dim for at, dim in enumerate(dims))


def _transpose(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return [Value(None, None, i[0].source, i[0].most)]
    order = a.numbers("perm") or list(reversed(range(len(dims))))
    matrix = i[0].matrix()
    rows = None if matrix is None else tuple(matrix.transpose(order).reshape(-1))
    turned = tuple(dims[at] for at in order)
    return [Value(turned, None, i[0].source, i[0].most, rows=rows)]


def _flatten(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return [Value((None, None), None, i[0].source)]
    axis = a.number("axis", 1)
    axis = axis if axis >= 0 else axis + len(dims)
    return [Value((product(dims[:axis]), product(dims[axis:])), None, i[0].source)]


def _expand(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    target = i[1].values()
    value = i[0]
    if target is None:
        return [Value(None, None, value.source, value.most)]
    numbers = value.values()
    repeated = None
    if numbers is not None and len(numbers) == 1 and len(target) == 1:
        count = only(target)
        if isinstance(count, int) and 0 <= count <= MOST_NUMBERS:
            repeated = numbers * count
    return [Value(d.broadcast(value.dims, tuple(target)), repeated, value.source, value.most)]


def _tile(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, repeats = i[0].dims, i[1].values()
    if dims is None or repeats is None or len(dims) != len(repeats):
        return [Value(None if dims is None else (None,) * len(dims), None, i[0].source)]
    tiled = tuple(None if lacks(pair) else pair[0] * pair[1]
                  for pair in zip(dims, repeats, strict=True))  # fmt: skip
    return [Value(tiled, None, i[0].source, i[0].most)]


def _slice(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return [Value(None, None, i[0].source)]
    if len(i) > 1:
        starts, ends = i[1].values(), i[2].values()
        axes = whole(i[3]) if len(i) > 3 and i[3] is not UNKNOWN else None
        steps = whole(i[4]) if len(i) > 4 and i[4] is not UNKNOWN else None
        has_axes = len(i) > 3 and i[3] is not UNKNOWN
        if has_axes and axes is None:
            return [Value((None,) * len(dims), None, i[0].source)]
    else:
        listed, last = a.numbers("starts"), a.numbers("ends")
        starts = None if listed is None else tuple(listed)
        ends = None if last is None else tuple(last)
        axes, steps = a.numbers("axes"), None
    count = len(starts or ends or ())
    chosen = [axis % len(dims) for axis in (axes if axes is not None else range(count))]
    sizes: list[Number] = list(dims)
    numbers = i[0].values() if len(dims) == 1 else None
    matrix = i[0].matrix()
    for at, axis in enumerate(chosen):
        begin = None if starts is None else starts[at]
        end = None if ends is None else ends[at]
        step = 1 if steps is None else steps[at]
        sizes[axis] = plain(_sliced(dims[axis], begin, end, step))
        is_known = isinstance(begin, int) and isinstance(end, int)
        part = slice(_edge(begin, step), _edge(end, step), step)
        if numbers is not None:
            numbers = numbers[part] if is_known else None
        if matrix is not None:
            matrix = matrix[(slice(None),) * axis + (part,)] if is_known else None
    rows = None if matrix is None else tuple(matrix.reshape(-1))
    return [Value(tuple(sizes), numbers, i[0].source, i[0].most, rows=rows)]


def _edge(value: Number, step: int) -> int | None:
    if not isinstance(value, int) or (abs(value) > 1 << 30 and step < 0):
        return None
    return value


def _sliced(size: Number, begin: Number, end: Number, step: int) -> Number:
    if size is None or begin is None or end is None:
        return None
    begin = np.where(begin < 0, begin + size, begin)
    end = np.where(end < 0, end + size, end)
    if step > 0:
        low, high = np.clip(begin, 0, size), np.clip(end, 0, size)
        count = np.maximum(0, -((low - high) // step))
    else:
        low, high = np.clip(begin, -1, size - 1), np.clip(end, -1, size - 1)
        count = np.maximum(0, -((high - low) // -step))
    return int(count) if count.ndim == 0 else count


def _split(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    axis = a.number("axis", 0) % len(dims)
    parts: list[Number] | None = a.numbers("split")
    if parts is None and len(i) > 1:
        listed = i[1].values()
        parts = None if listed is None else list(listed)
    count = a.outputs
    if parts is None:
        size = dims[axis]
        even: Number = None if size is None else size // count
        parts = [even] * count
    elif dims[axis] is not None and not lacks(parts):
        total = sum(parts)
        d.require(dims[axis] == total)
    return [Value((*dims[:axis], part, *dims[axis + 1 :])) for part in parts]


def _pad(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    listed = a.numbers("pads") or a.numbers("paddings")
    pads: Sequence[Number] | None = listed
    if pads is None and len(i) > 1:
        pads = i[1].values()
    if pads is None:
        return [Value((None,) * len(dims))]
    axes = whole(i[3]) if len(i) > 3 and i[3] is not UNKNOWN else list(range(len(dims)))
    padded = list(dims)
    is_reflected = a.text("mode", "constant") == "reflect"
    for at, axis in enumerate(axes or []):
        before, after = pads[at], pads[at + len(axes or [])]
        size = dims[axis]
        if size is None or before is None or after is None:
            padded[axis] = None
            continue
        if is_reflected:
            d.require((size > before) & (size > after))
        padded[axis] = size + before + after
        d.require(padded[axis] >= 0)
    return [Value(tuple(padded))]


def _top(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    axis = a.number("axis", -1) % len(dims)
    values = i[1].values() if len(i) > 1 else (a.number("k", 1),)
    count = values[0] if values else None
    if count is not None and dims[axis] is not None:
        d.require(dims[axis] >= count)
    return [Value((*dims[:axis], count, *dims[axis + 1 :]))] * 2


def _one_hot(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    values = i[1].values()
    depth = values[0] if values else None
    d.bound(i[0], depth)
    if i[0].dims is None:
        return []
    axis = a.number("axis", -1)
    at = axis if axis >= 0 else axis + len(i[0].dims) + 1
    return [Value((*i[0].dims[:at], depth, *i[0].dims[at:]))]


def _space_to_depth(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, block = i[0].dims, a.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return []
    for dim in dims[2:]:
        if dim is not None:
            d.require(dim % block == 0)
    count = None if dims[1] is None else dims[1] * block * block
    return [Value((dims[0], count, *(None if d is None else d // block for d in dims[2:])))]


def _depth_to_space(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, block = i[0].dims, a.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return []
    count = None if dims[1] is None else dims[1] // (block * block)
    return [Value((dims[0], count, *(None if d is None else d * block for d in dims[2:])))]


LAYOUT_RULES: dict[str, Rule] = {
    "Gather": _gather, "GatherElements": _gather_elements, "Concat": _concat,
    "Squeeze": _squeezed, "Unsqueeze": _unsqueezed, "Reshape": _reshape,
    "Transpose": _transpose, "Flatten": _flatten, "Expand": _expand, "Tile": _tile,
    "Slice": _slice, "Split": _split, "Pad": _pad, "TopK": _top, "OneHot": _one_hot,
    "SpaceToDepth": _space_to_depth, "DepthToSpace": _depth_to_space,
}  # fmt: skip
"""By operator."""


def _gather_nd(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    data, index, shared = i[0].dims, i[1].dims, a.number("batch_dims", 0)
    if data is None or not index or not isinstance(index[-1], int):
        return []
    return [Value((*index[:-1], *data[shared + index[-1] :]))]


def _same(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [Value(i[0].dims)] * a.outputs


def _window(
    d: Constraints, dims: Dims, kernel: Sequence[Number], a: Attributes, *, ceil: bool = False
) -> list[Number]:
    """Return the spatial sizes after a convolution or a pooling."""
    rank = len(kernel)
    strides = a.numbers("strides") or [1] * rank
    dilations = a.numbers("dilations") or [1] * rank
    pads = a.numbers("pads") or [0] * (2 * rank)
    how = a.text("auto_pad", "NOTSET")
    numbers: list[Number] = []
    for at, size in enumerate(dims):
        if size is None or kernel[at] is None:
            numbers.append(None)
            continue
        reach = (kernel[at] - 1) * dilations[at] + 1
        if how.startswith("SAME"):
            numbers.append(-(-size // strides[at]))
            continue
        padding = 0 if how == "VALID" else pads[at] + pads[at + rank]
        room = size + padding - reach
        d.require(room >= 0)
        numbers.append(-(-room // strides[at]) + 1 if ceil else room // strides[at] + 1)
    return numbers


def _conv(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    weight = i[3] if a.node.op_type == "QLinearConv" else i[1]
    dims, shape = i[0].dims, weight.dims
    if dims is None or shape is None:
        return [Value(None if shape is None else (None,) * len(shape))]
    channels = None if shape[1] is None else shape[1] * a.number("group", 1)
    if a.number("channels_last", 0):
        d.equal(dims[-1], channels)
        return [Value((dims[0], *_window(d, dims[1:-1], shape[2:], a), shape[0]))]
    d.equal(dims[1], channels)
    return [Value((dims[0], shape[0], *_window(d, dims[2:], shape[2:], a)))]


def _deformed_conv(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, shape = i[0].dims, i[1].dims
    if dims is None or shape is None:
        return []
    return [Value((dims[0], shape[0], *_window(d, dims[2:], shape[2:], a)))]


def _grid_sample(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, grid = i[0].dims, i[1].dims
    if dims is None or grid is None:
        return []
    return [Value((d.equal(dims[0], grid[0]), dims[1], *grid[1:-1]))]


def _roi_pool(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, rois, shape = i[0].dims, i[1].dims, a.numbers("pooled_shape")
    if dims is None or rois is None or shape is None:
        return []
    return [Value((rois[0], dims[1], *shape))]


def _einsum(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    shapes = [known.dims for known in i if known.dims is not None]
    if len(shapes) < len(i):
        return []
    terms, output = einsum_labels(a.text("equation", ""), [*map(len, shapes)])
    sizes: dict[str, Number] = {}
    for labels, dims in zip(terms, shapes, strict=True):
        for label, size in zip(labels, dims, strict=True):
            sizes[label] = d.joined(sizes.get(label, 1), size)
    return [Value(tuple(sizes[label] for label in output))]


def _matrices(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [Value(None if i[0].dims is None else i[0].dims[:-2])]


def _conv_transpose(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, shape = i[0].dims, i[1].dims
    if dims is None or shape is None:
        return []
    d.equal(dims[1], shape[0])
    rank = len(shape) - 2
    strides = a.numbers("strides") or [1] * rank
    dilations = a.numbers("dilations") or [1] * rank
    pads = a.numbers("pads") or [0] * (2 * rank)
    extra = a.numbers("output_padding") or [0] * rank
    fixed = a.numbers("output_shape")
    how = a.text("auto_pad", "NOTSET")
    numbers: list[Number] = []
    for at, size in enumerate(dims[2:]):
        if fixed:
            numbers.append(fixed[at] if len(fixed) == rank else fixed[at + 2])
        elif size is None or shape[at + 2] is None:
            numbers.append(None)
        elif how.startswith("SAME"):
            numbers.append(size * strides[at])
        else:
            reach = (shape[at + 2] - 1) * dilations[at] + 1
            padding = 0 if how == "VALID" else pads[at] + pads[at + rank]
            numbers.append(strides[at] * (size - 1) + extra[at] + reach - padding)
    channels = None if shape[1] is None else shape[1] * a.number("group", 1)
    return [Value((dims[0], channels, *numbers))]


def _pool(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, kernel = i[0].dims, a.numbers("kernel_shape")
    if dims is None or kernel is None:
        return []
    ceil = bool(a.number("ceil_mode", 0))
    if a.number("channels_last", 0) or a.node.op_type == "NhwcMaxPool":
        places = _window(d, dims[1:-1], kernel, a, ceil=ceil)
        return [Value((dims[0], *places, dims[-1]))] * a.outputs
    return [Value((*dims[:2], *_window(d, dims[2:], kernel, a, ceil=ceil)))] * a.outputs


def _global_pool(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    ones = (1 for _ in dims[2:])
    return [
        Value((dims[0], *ones, dims[-1]) if a.number("channels_last", 0) else (*dims[:2], *ones))
    ]


def _resize(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is None:
        return []
    axes = [axis % len(dims) for axis in a.numbers("axes") or range(len(dims))]
    sizes = i[3].values() if len(i) > 3 else None
    scales_at = 1 if len(i) == 2 else 2
    scales = i[scales_at].values() if len(i) > scales_at else None
    if not scales:
        proto = a.proto("scales")
        scales = tuple(proto.floats) if proto is not None else None
    resized = list(dims)
    for at, axis in enumerate(axes):
        if sizes:
            resized[axis] = sizes[at]
        elif scales and dims[axis] is not None and scales[at] is not None:
            scaled = np.floor(dims[axis] * np.float64(scales[at]) + 1e-6)
            resized[axis] = scaled.astype(np.int64) if scaled.ndim else int(scaled)
        else:
            resized[axis] = None
        if resized[axis] is not None:
            d.require(resized[axis] >= 1)
    return [Value(tuple(resized))]


def _matmul(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    other = i[3] if a.node.op_type == "QLinearMatMul" else i[1]
    a_dims, b_dims = i[0].dims, other.dims
    if not a_dims or not b_dims:
        return []
    d.equal(a_dims[-1], b_dims[-2] if len(b_dims) > 1 else b_dims[0])
    head = d.broadcast(a_dims[:-2], b_dims[:-2]) or ()
    left = a_dims[-2:-1]
    right = b_dims[-1:] if len(b_dims) > 1 else ()
    return [Value((*head, *left, *right))]


def _fused_matmul(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """FusedMatMul: a product of matrices that may be transposed, with or without the batches."""
    left, right = (
        Value(_turned(known.dims, a.number(f"trans{which}", 0), a.number(f"transBatch{which}", 0)))
        for known, which in zip(i[:2], "AB", strict=True)
    )
    return _matmul(d, [left, right], a)


def _turned(dims: Dims | None, matrix: int, batches: int) -> Dims | None:
    if dims is None or len(dims) < 2:
        return dims
    if batches:  # the batches are behind the first dimension of the matrix
        dims = (*dims[1:-1], dims[0], dims[-1])
    return (*dims[:-2], dims[-1], dims[-2]) if matrix else dims


def _gemm(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    other = i[3] if a.node.op_type == "QGemm" else i[1]  # after scale and zero point
    left, right = i[0].dims, other.dims
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return []
    left = left[::-1] if a.number("transA", 0) else left
    right = right[::-1] if a.number("transB", 0) else right
    d.equal(left[1], right[0])
    return [Value((left[0], right[1]))]


def _matmul_bits(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if not dims:
        return []
    d.equal(dims[-1], a.number("K", 0) or None)
    return [Value((*dims[:-1], a.number("N", 0) or None))]


def _normalised(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    axis = a.number("axis", -1)
    if dims and len(i) > 1 and i[1].dims and len(i[1].dims) == 1 and axis in (-1, len(dims) - 1):
        d.equal(dims[-1], i[1].dims[0])
    return [Value(dims)]


def _skip_normalised(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = d.broadcast(i[0].dims, i[1].dims)
    return [Value(dims), UNKNOWN, UNKNOWN, Value(dims)]


def _channel_normalised(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims = i[0].dims
    if dims is not None and len(dims) > 1 and len(i) > 1 and i[1].dims:
        d.equal(dims[1], i[1].dims[0])
    return [Value(dims)]


def _recurrent(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    dims, weights, recurrence = i[0].dims, i[1].dims, i[2].dims
    if dims is None or weights is None or recurrence is None:
        return []
    is_quantised = a.node.op_type.startswith("DynamicQuantize")
    d.equal(dims[2], weights[1 if is_quantised else 2])
    directions, hidden = weights[0], recurrence[1 if is_quantised else 2]
    batch_first = a.number("layout", 0)
    length, batch = (dims[1], dims[0]) if batch_first else (dims[0], dims[1])
    state: Dims = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    for at in (5, 6):
        given = i[at].dims if len(i) > at else None
        if given is not None and len(given) == 3:
            for given_dim, state_dim in zip(given, state, strict=True):
                d.equal(given_dim, state_dim)
    whole: Dims = ((batch, length, directions, hidden) if batch_first
                   else (length, directions, batch, hidden))  # fmt: skip
    return [Value(whole), Value(state), Value(state)]


def _region_align(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    data, rois = i[0].dims, i[1].dims
    if data is None or rois is None:
        return []
    d.bound(i[2], data[0])
    if i[2].dims:
        d.equal(rois[0], i[2].dims[0])
    size = (a.number("output_height", 1), a.number("output_width", 1))
    return [Value((rois[0], data[1], *size))]


def _embedded(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """EmbedLayerNormalization: ids, segments, then the tables of words, positions, segments."""
    ids, words = i[0].dims, i[2].dims
    for index, table in ((0, 2), (1, 4), (8, 3)):
        if len(i) > max(index, table) and i[table].dims:
            d.bound(i[index], i[table].dims[0])  # type: ignore[index]
    if ids is None or words is None or len(ids) != 2:
        return []
    if i[3].dims and ids[1] is not None and i[3].dims[0] is not None:
        d.require(ids[1] <= i[3].dims[0])
    return [Value((*ids, words[1])), Value((ids[0],))]


def _grouped_attention(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """GroupQueryAttention: query, key, value, past key and value, lengths, total, cos and sin."""
    query = i[0].dims
    past = i[3].dims if len(i) > 3 else None
    values = i[6].values() if len(i) > 6 else None
    total = values[0] if values else None
    length = query[1] if query is not None and len(query) == 3 else None
    windowed = bool(a.number("sliding_window_cache", 0))
    if past is not None and len(past) == 4:
        if windowed and past[2] is not None:
            d.require(past[2] >= a.number("local_window_size", 0))
        elif not windowed and not lacks((total, length, past[2])):
            d.require(total == length + past[2])
        if query is not None:
            d.equal(query[0], past[0])
    rows = i[7].dims[0] if len(i) > 7 and i[7].dims else None
    if rows is not None and total is not None:
        d.require(total <= rows)
    present: Dims | None = None
    if past is not None and len(past) == 4:
        present = past if windowed else (*past[:2], total, past[3])
    heads, groups = a.number("num_heads", 0), a.number("kv_num_heads", 0)
    if past is not None and len(past) == 4 and heads and groups:
        size = None
        if query is not None and len(query) == 3:
            size = _share(query[2], 1, heads if a.has_input(1) else heads + 2 * groups)
        if size is not None and a.number("kv_cache_bit_width", 0) == 4:
            size = (size + 1) // 2  # two elements are one byte of the cache
        d.equal(past[1], groups)
        d.equal(past[3], size)
    out = None
    if query is not None and len(query) == 3:
        width = query[2] if a.has_input(1) else _share(query[2], heads, heads + 2 * groups)
        out = (*query[:2], width)
    return [Value(out), Value(present), Value(present)]


def _share(width: Number, heads: int, of: int) -> Number:
    """Return how wide some of the heads are that stand in one row."""
    return width // of * heads if width is not None and heads and of else None


def _heads_of(d: Constraints, cache: Dims, width: Number, heads: int) -> None:
    """Demand that a cache of heads, length and head size fits what is added to it."""
    if heads and len(cache) == 3:
        d.equal(cache[0], heads)
        d.equal(cache[2], _share(width, 1, heads))


def _projected_attention(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """Attention of com.microsoft, and QAttention: past is the fifth or the ninth input."""
    dims, weights = i[0].dims, i[1].dims
    if dims is None or len(dims) != 3:
        return []
    width = None
    if weights is not None and len(weights) == 2:
        d.equal(dims[2], weights[0])
        width = None if weights[1] is None else weights[1] // 3
    listed = a.numbers("qkv_hidden_sizes")
    if listed is not None and len(listed) == 3:
        width = listed[2]
    past_at = 8 if a.node.op_type == "QAttention" else 4
    past = i[past_at].dims if len(i) > past_at else None
    present: Dims | None = None
    if past is not None and len(past) == 5:
        d.equal(past[1], dims[0])
        _heads_of(d, past[2:], width, a.number("num_heads", 0))
        total = None if lacks((past[3], dims[1])) else past[3] + dims[1]
        if a.number("past_present_share_buffer", 0):
            total = past[3]
        present = (*past[:3], total, past[4])
    elif not a.has_input(past_at):
        # What is made of these tokens alone.
        heads = a.number("num_heads", 0)
        size = None if width is None or not heads else width // heads
        present = (2, dims[0], heads or None, dims[1], size)
    return [Value((*dims[:2], width)), Value(present)]


def _sparse_attention(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """SparseAttention: query, key, value, or all in one; past key and value of full length."""
    query, past = i[0].dims, [value.dims for value in i[3:5]]
    heads, groups = a.number("num_heads", 0), a.number("kv_num_heads", 0)
    out = None
    if query is not None and len(query) == 3:
        width = query[2] if a.has_input(1) else _share(query[2], heads, heads + 2 * groups)
        out = (*query[:2], width)
    return [Value(out), *map(Value, past)]


def _linear_attention(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """LinearAttention: packed query, key and value, past state."""
    query, key, value = (item.dims for item in i[:3])
    heads, groups = a.number("q_num_heads", 0), a.number("kv_num_heads", 0)
    if query is None or key is None or value is None or not (heads and groups):
        return []
    sizes = [None if item[-1] is None else item[-1] // groups for item in (key, value)]
    width = None if sizes[1] is None else max(heads, groups) * sizes[1]
    state: Dims = (query[0], groups, *sizes)
    return [Value((*query[:2], width)), _state(state, a)]


def _causal_convolution(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """CausalConvWithState of one dimension: input, weights, bias, past state."""
    dims, weights = i[0].dims, i[1].dims
    if dims is None or weights is None or len(dims) != 3 or a.number("channels_last", 0):
        return [Value(dims)]
    d.equal(dims[1], weights[0])
    wide = weights[-1]
    length = None if wide is None else (wide - 1) * a.number("dilation", 1)
    return [Value(dims), _state((*dims[:2], length), a)]


def _state(dims: Dims, a: Attributes) -> Value:
    """Return the length carried to the next call; with a window, that of the last tokens."""
    return UNKNOWN if a.number("state_window", 0) else Value(dims)


def _attention(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """Attention of ai.onnx: query, key, value, mask, past key and value; 3 or 4 dimensions."""
    if a.node.domain:
        return _projected_attention(d, i, a)
    query, key, value = (item.dims for item in i[:3])
    if query is None or key is None or value is None:
        return []
    at = 1 if len(query) == 3 else 2
    d.equal(query[0], key[0])
    d.equal(key[at], value[at])
    total = key[at]
    past = i[4].dims if len(i) > 4 else None
    if past is not None and len(past) == 4:
        d.equal(query[0], past[0])
        if len(key) == 4:
            d.equal(past[1], key[1])
            d.equal(past[3], key[3])
        else:
            _heads_of(d, past[1:], key[2], a.number("kv_num_heads", 0))
        both = (total, past[2])
        total = None if lacks(both) else both[0] + both[1]
    mask = i[3].dims if len(i) > 3 else None
    if mask:
        d.joined(mask[-1], total)
        if len(mask) > 1:
            d.joined(mask[-2], query[at])
    heads, own = a.number("q_num_heads", 0), a.number("kv_num_heads", 0)
    width = value[-1]
    if len(query) == 3 and width is not None and own:
        width = heads * (width // own)
    present = None if past is None else (*past[:2], total, past[3])
    return [Value((*query[:-1], width)), Value(present), Value(present)]


def _multi_head(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """MultiHeadAttention: query, key, value, three that change no shape, past key and value."""
    query, key, value = ([item.dims for item in i[:3]] + [None, None])[:3]
    if query is None:
        return []
    width = None
    for packed in (query, key, value):  # one of five dimensions has the values, too
        if packed is not None and len(packed) == 5:
            width = product((packed[2], packed[4]))
    if value is not None:
        width = value[2] if len(value) == 3 else product((value[1], value[3]))
    results = [Value((*query[:2], width))]
    for new, at in ((key, 6), (value, 7)):
        past = i[at].dims if len(i) == 8 else None  # more inputs: the cache has its full length
        total = None
        if past is not None and new is not None and len(new) == 3:
            _heads_of(d, past[1:], new[2], a.number("num_heads", 0))
            total = None if lacks((past[2], new[1])) else past[2] + new[1]
        results.append(Value(None if past is None else (*past[:2], total, past[3])))
    return results


def _scattered_cache(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """TensorScatter: a cache, what is written into it, where that begins."""
    cache, new = i[0].dims, i[1].dims
    if cache is not None and new is not None and len(cache) == len(new):
        axis = a.number("axis", -2)
        for at, (room, size) in enumerate(zip(cache, new, strict=True)):
            if at != axis % len(cache):
                d.equal(room, size)
            elif not lacks((room, size)):
                d.require(size <= room)
    return [Value(cache)]


def _rotary(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    index, table = (i[1], i[2]) if a.node.domain else (i[3] if len(i) > 3 else UNKNOWN, i[1])
    if table.dims and len(table.dims) == 2:
        d.bound(index, table.dims[0])
    return [Value(i[0].dims)]


def _quantized_pair(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """QLinearAdd and the like: each of two operands has a scale and a zero point."""
    return [Value(d.broadcast(i[0].dims, i[3].dims))]


def _quantized_where(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """QLinearWhere: condition, then two operands, each with a scale and a zero point."""
    return [Value(d.broadcast(i[0].dims, i[1].dims, i[4].dims))]


def _attention_gate(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """LinearAttentionGate: decay and update rate, each with the shape of its input."""
    return [Value(i[0].dims), Value(i[0].dims)]


def _quantized_concat(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    """QLinearConcat: scale and zero point of the result, then parts with theirs."""
    return _concat(d, i[2::3], a)


def _dynamic_quantize(d: Constraints, i: list[Value], a: Attributes) -> Sequence[Value]:
    return [Value(i[0].dims), Value(()), Value(())]


_ONE_TO_ONE = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BiasGelu", "BitwiseNot",
    "BranchwiseRMSNorm", "CastLike", "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear", "Dropout",
    "Elu", "Erf", "Exp", "FastGelu", "GatedAdd", "GatedRMSNorm", "Gelu", "GroupNormalization",
    "HardSigmoid", "HardSwish", "Hardmax", "IsInf", "IsNaN", "LRN", "LeakyRelu", "Log",
    "LogSoftmax", "LpNormalization", "MRotaryEmbedding", "MeanVarianceNormalization", "Mish", "MoE",
    "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuantizeLinear", "QuickGelu",
    "Reciprocal", "Relu", "ReverseSequence", "ScaledSiLU", "Scatter", "ScatterElements",
    "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
    "Softsign", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
"""Operators whose results have the shape of the first input."""

LAYER_RULES: dict[str, Rule] = {
    "Conv": _conv, "ConvInteger": _conv, "QLinearConv": _conv, "FusedConv": _conv,
    "ConvTranspose": _conv_transpose, "DeformConv": _deformed_conv, "GridSample": _grid_sample,
    "MaxRoiPool": _roi_pool, "Einsum": _einsum, "Det": _matrices, "GatherND": _gather_nd,
    **dict.fromkeys((
        "Bernoulli", "BitCast", "CumProd", "EyeLike", "RandomNormalLike", "RandomUniformLike",
        "SwiGLU",
    ), _same),
    "MaxPool": _pool, "AveragePool": _pool, "LpPool": _pool,
    "Resize": _resize, "Upsample": _resize, "MatMul": _matmul, "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul, "DynamicQuantizeMatMul": _matmul, "Gemm": _gemm,
    "MatMulNBits": _matmul_bits, "LSTM": _recurrent, "GRU": _recurrent, "RNN": _recurrent,
    "DynamicQuantizeLSTM": _recurrent, "RoiAlign": _region_align,
    "LayerNormalization": _normalised, "RMSNormalization": _normalised,
    "SimplifiedLayerNormalization": _normalised, "SkipLayerNormalization": _skip_normalised,
    "SkipSimplifiedLayerNormalization": _skip_normalised,
    "BatchNormalization": _channel_normalised, "InstanceNormalization": _channel_normalised,
    "EmbedLayerNormalization": _embedded, "GatherBlockQuantized": _gather_quantized,
    "GroupQueryAttention": _grouped_attention, "MultiHeadAttention": _multi_head,
    "Attention": _attention, "QAttention": _projected_attention, "RotaryEmbedding": _rotary,
    "SparseAttention": _sparse_attention, "LinearAttention": _linear_attention,
    "CausalConvWithState": _causal_convolution, "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul, "FusedGemm": _gemm, "QGemm": _gemm,
    "MatMulIntegerToFloat": _matmul, "MatMulInteger16": _matmul, "MatMulBnb4": _matmul_bits,
    "QLinearAdd": _quantized_pair, "QLinearMul": _quantized_pair,
    "QLinearConcat": _quantized_concat, "QLinearWhere": _quantized_where,
    "LinearAttentionGate": _attention_gate, "QLinearAveragePool": _pool, "NhwcMaxPool": _pool,
    "QLinearGlobalAveragePool": _global_pool, "TensorScatter": _scattered_cache,
    "DynamicQuantizeLinear": _dynamic_quantize,
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    **dict.fromkeys(_ONE_TO_ONE, _same),
}  # fmt: skip
"""By operator, whatever its domain is."""

RULES: dict[str, Rule] = {**NUMBER_RULES, **LAYOUT_RULES, **LAYER_RULES}
