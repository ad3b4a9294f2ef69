"""Weights that are stored in few bits, and the floating point matrices they represent.

MatMulNBits, GatherBlockQuantized and QMoE of ONNX Runtime, and DequantizeLinear of a stored weight.
A level `q` stands for `(q - zero point) * scale`; some levels in a row, a block, share both.
Levels, scales and zero points may be behind Reshape, Transpose and the like, and scales and zero
points behind a DequantizeLinear of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import enclosing_function
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.operators.categories import REARRANGING
from dld_tui.core.model.operators.registry import CONTRIB_DOMAIN
from dld_tui.core.model.tensors.elements import is_float, native_type
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_name
from dld_tui.core.text import visible
from dld_tui.core.types import TextEnum, plain_domain

Array: TypeAlias = "np.ndarray[Any, Any]"
_PACKED = {2, 4, 8}
_PART = 1 << 22
"""Elements of a matrix that are in floating point at a time."""


class Stored(Protocol):
    """A constant, read as a :class:`Tensor` is."""

    @property
    def name(self) -> str:
        """The name of the value. Untrusted text."""

    @property
    def dtype(self) -> str:
        """The element type."""

    @property
    def bits(self) -> int | None:
        """Bits of an element."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""

    @property
    def element_count(self) -> int:
        """The product of the dimensions."""

    def read(self, start: int = 0, count: int | None = None) -> Array:
        """Return elements in flat (row-major) order."""


@dataclass(frozen=True)
class Moved:
    """A constant in another shape, or with its axes in another order."""

    name: str
    source: Stored
    shape: tuple[int, ...]
    order: tuple[int, ...] = ()
    """The axes of the source; empty where the elements keep their order."""

    @property
    def dtype(self) -> str:
        """That of the source."""
        return self.source.dtype

    @property
    def bits(self) -> int | None:
        """Those of an element of the source."""
        return self.source.bits

    @property
    def element_count(self) -> int:
        """That of the source."""
        return self.source.element_count

    @cached_property
    def _elements(self) -> Array:
        """All elements, as reading any of them takes all of the source."""
        whole = self.source.read().reshape(self.source.shape)
        return np.ascontiguousarray(whole.transpose(self.order)).reshape(-1)

    def read(self, start: int = 0, count: int | None = None) -> Array:
        """Return elements in flat (row-major) order."""
        if not self.order:
            return self.source.read(start, count)
        return self._elements[start : None if count is None else start + count]


@dataclass(frozen=True)
class Dequantized:
    """The constant that a DequantizeLinear makes, such as scales that are in few bits too."""

    name: str
    weight: BlockedWeight

    @property
    def dtype(self) -> str:
        """That of the output."""
        return self.weight.dtype

    @property
    def bits(self) -> int | None:
        """Bits of an element."""
        return native_type(self.dtype).itemsize * 8

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the levels."""
        return self.weight.shape

    @property
    def element_count(self) -> int:
        """The product of the dimensions."""
        return prod(self.shape)

    def read(self, start: int = 0, count: int | None = None) -> Array:
        """Return elements in flat (row-major) order, rounded to the type."""
        values = WeightView(self.weight, WeightPart.DEQUANTIZED).read(start, count)
        return values.astype(native_type(self.dtype))


def base_of(part: Stored) -> Tensor:
    """Return the tensor of the file that a constant is made of."""
    while not isinstance(part, Tensor):
        part = part.source if isinstance(part, Moved) else part.weight.levels  # type: ignore[attr-defined]
    return part


def identity_of(part: Stored | None) -> tuple[object, ...]:
    """Return what two constants have in common that have the same elements in the same order."""
    if part is None:
        return ()
    if isinstance(part, Moved):
        inner = identity_of(part.source)
        return (*inner, part.source.shape, part.order) if part.order else inner
    if isinstance(part, Dequantized):
        weight = part.weight
        return (*weight.identity, weight.dtype)
    return (id(base_of(part).proto),)


@dataclass(frozen=True)
class BlockedWeight:
    """A weight in few bits, as one node takes it."""

    node: Node
    levels: Stored
    scales: Stored
    zero_points: Stored | None
    bits: int
    block: int
    """Levels in a row that share a scale; 0 for all of a channel, or of the tensor."""
    shape: tuple[int, ...]
    """Of the levels, unpacked and without padding: of MatMulNBits columns x rows."""
    axis: int
    """Along which the blocks, or the channels, are."""
    packed: bool
    """Whether levels are packed in bytes of an uint8 tensor, the lowest bits first."""
    groups: Stored | None = None
    """Of MatMulNBits, the block of each row, where rows were sorted."""
    zeros_in_row: int | None = None
    """Packed zero points that share a row of bytes; None for those of the blocks along the axis."""
    position: int = 0
    """Which input of the operator in floating point takes the matrix."""

    @property
    def parts(self) -> tuple[Stored | None, ...]:
        """All that is stored of it."""
        return self.levels, self.scales, self.zero_points, self.groups

    @property
    def identity(self) -> tuple[object, ...]:
        """What weights of the same numbers in the same places have in common."""
        layout = self.shape, self.block, self.axis, self.bits, self.packed
        return (*(identity_of(part) for part in self.parts), *layout)

    @property
    def name(self) -> str:
        """The name of the tensor of the levels. Untrusted text."""
        return self.levels.name

    @property
    def format(self) -> str:
        """How it is stored, for people: `4 bits, blocks of 32, MatMulNBits`."""
        layout = f"blocks of {self.block}" if self.block else "a scale for each channel"
        if not self.block and self.scales.element_count == 1:
            layout = "one scale"
        levels = self.levels.dtype if is_float(self.levels.dtype) else f"{self.bits} bits"
        return f"{levels}, {layout}, {self.node.op_type}"

    @property
    def dtype(self) -> str:
        """The element type of the floating point matrix."""
        named = self.node.integer("output_dtype", 0)
        return dtype_name(named) if named else self.scales.dtype

    @property
    def is_transposed(self) -> bool:
        """Whether the matrix that the node multiplies by is the transposed one."""
        return self.node.op_type == "MatMulNBits"

    def load(self, first: int = 0, last: int | None = None) -> StoredRows:
        """Read the stored data of some rows of the levels; the levels stay packed.

        Args:
            first: The first row, along the first axis.
            last: The one behind the last; None for all.

        Raises:
            InputError: It cannot be read.
        """
        shape, last = [*self.shape], last if last is not None else next(iter(self.shape), 1)
        if shape:
            shape[0] = last - first
        counts = [*self.shape]
        if self.block:
            counts[self.axis] = self._count
            if len(self.scales.shape) == len(counts) and not self.packed:
                counts = [*self.scales.shape]  # some of FP8 and FP4 spread along other axes
        else:  # a scale for each channel, or one
            is_single = self.scales.element_count == 1
            counts = [
                1 if is_single or at != self.axis else size for at, size in enumerate(self.shape)
            ]
        if self.block and self.axis == 0:
            part = slice(first // self.block, -(-last // self.block))
        else:
            part = slice(first, last) if counts and counts[0] > 1 else slice(0, 1)
        if counts:
            rows, counts[0] = counts[0], part.stop - part.start
        else:
            rows = 1
        levels = _rows_of(self.levels, next(iter(self.shape), 1), slice(first, last))
        lead = prod(shape[:-1])
        if not self.packed:
            levels = levels.reshape(shape)
        else:
            levels = levels.reshape((*shape[:-1], levels.size // lead))
        zeros: Array | None = None
        if self.zero_points is not None:
            zeros = _rows_of(self.zero_points, rows, part)
            if self.packed and zeros.dtype == np.uint8:
                # Each row begins with a byte of its own.
                size = self.zeros_in_row or self._count
                zeros = unpacked(zeros.reshape(prod(counts) // size, -1), self.bits)[:, :size]
            zeros = zeros.astype(np.float32).reshape(counts)
        groups = self.groups.read().astype(np.int64) if self.groups is not None else None
        scales = _rows_of(self.scales, rows, part).astype(np.float32).reshape(counts)
        return StoredRows(self, range(first, last), levels, scales, zeros, groups)

    @property
    def _count(self) -> int:
        """How many blocks there are along the axis."""
        return -(-self.shape[self.axis] // self.block)

    def matrix_parts(self) -> Iterator[Array]:
        """Yield the rows of the floating point matrix, float32, some at a time.

        Of MatMulNBits they are those of the second operand of MatMul.

        Raises:
            InputError: A tensor cannot be read.
        """
        if not self.shape:
            yield self.load().window().reshape(1)
            return
        whole = self.load() if self.is_transposed else None
        rows = self.shape[1] if self.is_transposed else self.shape[0]
        step = max(_PART * rows // prod(self.shape), 1)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            if whole is not None:
                yield whole.window((slice(None), slice(start, stop))).T
            else:
                yield self.load(start, stop).window()

    def matrix(self) -> Array:
        """Return the whole floating point matrix, float32."""
        return np.concatenate([*self.matrix_parts()])


@dataclass(frozen=True)
class StoredRows:
    """What is stored of a weight in few bits, in memory."""

    weight: BlockedWeight
    rows: range
    """Along the first axis of the levels. Parts are counted from the first of them."""
    levels: Array
    """As they are stored: packed ones as bytes along the last axis."""
    scales: Array
    """Of each block, float32."""
    zeros: Array | None
    groups: Array | None

    def window(self, at: Sequence[slice] = ()) -> Array:
        """Return a part of the levels' matrix in floating point, float32."""
        values: Array = (self.levels_in(at) - self.zeros_in(at)) * self.scales_in(at)
        return values.astype(np.float32, copy=False)

    def levels_in(self, at: Sequence[slice] = ()) -> Array:
        """Return a part of the levels, as integers, or as float32 where they are FP8 or FP4."""
        if not self.weight.packed:
            kind = np.float32 if is_float(self.weight.levels.dtype) else np.int32
            return self.levels[tuple(at)].astype(kind)
        *lead, last = self._whole(at)
        per_byte, size = 8 // self.weight.bits, self.weight.shape[-1]
        first, end, _ = last.indices(size)
        part = self.levels[tuple([*lead, slice(first // per_byte, -(-end // per_byte))])]
        return unpacked(part, self.weight.bits)[..., first % per_byte :][..., : end - first]

    def scales_in(self, at: Sequence[slice] = ()) -> Array:
        """Return the scale of each level of a part, or arrays that spread to that."""
        return self._spread(self.scales, at)

    def zeros_in(self, at: Sequence[slice] = ()) -> Array:
        """Return the zero points of the levels of a part, as :meth:`scales_in`."""
        if self.zeros is not None:
            return self._spread(self.zeros, at)
        middle = 1 << (self.weight.bits - 1) if self.weight.packed else 0
        return np.full((1,) * len(self.weight.shape), middle, np.float32)

    def _whole(self, at: Sequence[slice]) -> list[slice]:
        return [*at, *[slice(None)] * (len(self.weight.shape) - len(at))]

    def _spread(self, values: Array, at: Sequence[slice]) -> Array:
        weight = self.weight
        shape = [len(self.rows), *weight.shape[1:]] if weight.shape else []
        for axis, part in enumerate(self._whole(at)):
            if values.shape[axis] == 1 != weight.shape[axis] and axis != weight.axis:
                continue  # spreads by itself
            if axis != weight.axis or not weight.block:
                if values.shape[axis] > 1:
                    values = values[tuple([*[slice(None)] * axis, part])]
                continue
            first = self.rows.start if axis == 0 else 0
            places = first + np.arange(shape[axis])[part]
            blocks = self.groups[places] if self.groups is not None else places // weight.block
            values = np.take(values, blocks - first // weight.block, axis=axis)
        return values


class WeightPart(TextEnum):
    """What can be shown of a weight in few bits, each of the shape of the levels."""

    LEVELS = "levels"
    SCALES = "scales"
    ZERO_POINTS = "zero points"
    DEQUANTIZED = "dequantized"


@dataclass(frozen=True)
class WeightView:
    """A part of a weight, read as a tensor is."""

    weight: BlockedWeight
    part: WeightPart

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the levels."""
        return self.weight.shape

    @property
    def dtype(self) -> str:
        """What the values are shown as."""
        if self.part is not WeightPart.LEVELS or is_float(self.weight.levels.dtype):
            return "float32"
        return "uint8" if self.weight.packed else self.weight.levels.dtype

    def read(self, start: int = 0, count: int | None = None) -> Array:
        """Return elements in row-major order; reads only the rows that they are in.

        Raises:
            InputError: They cannot be read.
        """
        total = prod(self.shape)
        stop = total if count is None else min(start + count, total)
        width = prod(self.shape[1:])
        first, last = start // width, max(-(-stop // width), start // width + 1)
        stored = self.weight.load(first, last)
        readers = {
            WeightPart.LEVELS: stored.levels_in,
            WeightPart.SCALES: stored.scales_in,
            WeightPart.ZERO_POINTS: stored.zeros_in,
            WeightPart.DEQUANTIZED: stored.window,
        }[self.part]()
        rows = (last - first, *self.shape[1:]) if self.shape else ()
        return np.broadcast_to(readers, rows).reshape(-1)[
            start - first * width : stop - first * width
        ]


def weight_views(scope: Scope, name: str) -> BlockedWeight | None:
    """Return the weight in few bits that an initializer is a part of, None for none."""
    return next(_weights_with(scope, name, name), None)


def _weights_with(scope: Scope, name: str, base: str) -> Iterator[BlockedWeight]:
    """Yield the weights of which a tensor is a part, from the uses of a value made of it on."""
    for use in scope.users(name):
        for weight in weights_of(use.node):
            if any(part is not None and base_of(part).name == base for part in weight.parts[:3]):
                yield weight
        if use.node.op_type in REARRANGING and use.node.outputs:
            yield from _weights_with(use.node.scope, use.node.outputs[0], base)


def _rows_of(tensor: Stored, count: int, rows: slice) -> Array:
    """Return some of the `count` rows of a tensor, flat."""
    width = tensor.element_count // max(count, 1)
    return tensor.read(rows.start * width, (rows.stop - rows.start) * width)


def unpacked(data: Array, bits: int) -> Array:
    """Return the levels in bytes, the lowest bits first.

    Args:
        data: Bytes.
        bits: 2, 4 or 8.

    Returns:
        8 / bits times as many along the last axis.
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    levels = (data[..., None] >> shifts) & ((1 << bits) - 1)
    return levels.reshape((*data.shape[:-1], -1)).astype(np.int16)


def blocked_weights(document: Document) -> Iterator[BlockedWeight]:
    """Yield the weights in few bits of a document, in the order of the nodes."""
    for scope in document.scopes():
        for node in scope.nodes:
            if node.op_type in _READERS:
                yield from weights_of(node)


def weights_of(node: Node) -> list[BlockedWeight]:
    """Return the weights in few bits that a node takes, none where one of them is not read.

    None, too, where their sizes do not fit.
    """
    weights = _read(node)
    if isinstance(weights, str) or not all(prod(weight.shape) for weight in weights):
        return []
    return [] if next(misfits(node), "") else weights


def blocked_weight(node: Node) -> BlockedWeight | None:
    """Return the only weight in few bits that a node takes, None where it takes none."""
    weights = weights_of(node)
    return weights[0] if len(weights) == 1 else None


def why_unread(node: Node) -> str:
    """Return why a node's weights in few bits are not read, empty where they are or it has none."""
    weights = _read(node)
    return weights if isinstance(weights, str) else ""


def _read(node: Node) -> list[BlockedWeight] | str:
    """Return the weights of a node, or why they are not read; neither where it has none."""
    domain, reader = _READERS.get(node.op_type, ("", None))
    if reader is None or plain_domain(node.domain) != domain:
        if _INTEGER_OPERATORS.search(node.op_type) and any(
            _stored(node, at) is not None for at in range(len(node.inputs))
        ):
            return f"{node.op_type} computes with them as they are stored"
        return []
    return reader(node)


_INTEGER_OPERATORS = re.compile(
    r"^QLinear|Integer(ToFloat)?$|^QGemm$|^QAttention$|^QEmbed|^QOrdered|^DynamicQuantize(LSTM|MatMul)"
    r"|Bnb4$|FpQ4$|^MatMulNBits."
)
"""Operators that compute with stored weights of few bits and have none of :data:`_READERS`."""


def constant(scope: Scope, name: str) -> Stored | None:
    """Return what a value is made of where that is stored, None where it is not."""
    definition = scope.resolve(name)
    if definition is None:
        return None
    if definition.kind == "initializer":
        return definition.scope.initializer(name)
    node = definition.node
    if node is None or plain_domain(node.domain) or not node.inputs:
        is_constant = node is not None and node.op_type == "Constant" and not node.domain
        return node.tensor("value") if is_constant and node is not None else None
    if node.op_type == "DequantizeLinear":
        weight = blocked_weight(node)
        return None if weight is None else Dequantized(name, weight)
    if node.op_type not in REARRANGING:
        return None
    source = constant(node.scope, node.inputs[0])
    if source is None:
        return None
    if node.op_type == "Transpose":
        given = node.attribute("perm")
        listed = given.value if given is not None else [*range(len(source.shape))][::-1]
        order = tuple(int(axis) for axis in listed) if isinstance(listed, (list, tuple)) else ()
        if sorted(order) != [*range(len(source.shape))]:
            return None
        return Moved(name, source, tuple(source.shape[axis] for axis in order), order)
    shape = _moved(node, source.shape)
    if shape is None or prod(shape) != source.element_count:
        return None
    return Moved(name, source, shape)


def _moved(node: Node, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that an operator gives to the elements of another shape."""
    numbers: list[int] | None = None
    if len(node.inputs) > 1:
        tensor = constant(node.scope, node.inputs[1])
        numbers = None if tensor is None else [int(number) for number in tensor.read()]
    elif (given := node.attribute("axes") or node.attribute("shape")) is not None:
        numbers = (
            [int(number) for number in given.value]
            if isinstance(given.value, (list, tuple))
            else None
        )
    rank = len(shape)
    if node.op_type == "Identity":
        return shape
    if node.op_type == "Flatten":
        axis = node.integer("axis", 1)
        axis += rank if axis < 0 else 0
        return prod(shape[:axis]), prod(shape[axis:])
    if node.op_type == "Squeeze" and numbers is None and len(node.inputs) < 2:
        return tuple(size for size in shape if size != 1)
    if numbers is None:
        return None
    if node.op_type == "Squeeze":
        gone = {axis % rank for axis in numbers} if rank else set()
        return tuple(size for at, size in enumerate(shape) if at not in gone)
    if node.op_type == "Unsqueeze":
        rank += len(numbers)
        new = {axis % rank for axis in numbers}
        sizes = iter(shape)
        return tuple(1 if at in new else next(sizes, 1) for at in range(rank))
    if not node.integer("allowzero", 0):
        numbers = [shape[at] if not size and at < rank else size for at, size in enumerate(numbers)]
    rest = prod(size for size in numbers if size != -1)
    return tuple(prod(shape) // rest if size == -1 and rest else size for size in numbers)


def _stored(node: Node, position: int) -> Stored | None:
    """Return what an input is made of where that is stored, None where it is not."""
    return constant(node.scope, node.inputs[position]) if _given(node, position) else None


def _given(node: Node, position: int) -> bool:
    return len(node.inputs) > position and bool(node.inputs[position])


def _parts(node: Node, *positions: int) -> list[Stored | None] | str:
    """Return inputs that must be stored where they are given, or which one is not."""
    parts = [_stored(node, at) for at in positions]
    for at, part in zip(positions, parts, strict=True):
        if part is None and _given(node, at):
            name = node.inputs[at]
            maker = node.scope.resolve(name)
            how = (
                f"{maker.node.op_type} makes it"
                if maker is not None and maker.node
                else "it is an input"
            )
            return f"{visible(name)} is not stored: {how}"
    if enclosing_function(node.scope) is not None:
        return "it is in a local function: inline it"
    return parts


def _of_matrix_product(node: Node) -> list[BlockedWeight] | str:
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    bits, block = node.integer("bits", 4), node.integer("block_size", 0)
    parts = _parts(node, 1, 2, 3, 4)
    if isinstance(parts, str):
        return parts
    levels, scales, zeros, groups = parts
    if node.integer("weight_prepacked", 0):
        return "its weights are arranged for one kind of device"
    if levels is None or scales is None or bits not in _PACKED or min(block, rows, columns) < 1:
        return f"K {rows}, N {columns}, {bits} bits, blocks of {block}"
    return [
        BlockedWeight(
            node, levels, scales, zeros, bits, block, (columns, rows), 1, True, groups, position=1
        )
    ]


def _of_dequantize(node: Node) -> list[BlockedWeight] | str:
    levels = _stored(node, 0)
    if levels is None or levels.bits is None:
        return []  # of activations
    parts = _parts(node, 1, 2)
    if isinstance(parts, str):
        return parts
    scales, zeros = parts
    if scales is None:
        return []
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    axis += len(levels.shape) if axis < 0 else 0
    if scales.element_count == 1 and not block:
        axis = 0  # there is one scale, whatever it says
    weight = BlockedWeight(
        node, levels, scales, zeros, levels.bits, block, levels.shape, axis, False
    )
    if weight.dtype not in _FLOATS:
        return f"its output would be {weight.dtype}: it has no output_dtype"
    return [weight]


_FLOATS = ("float32", "float16", "bfloat16")


def _of_gather(node: Node) -> list[BlockedWeight] | str:
    parts = _parts(node, 0, 2, 3)
    if isinstance(parts, str):
        return parts
    levels, scales, zeros = parts
    if levels is None or scales is None or levels.bits is None:
        return []
    packed = levels.dtype == "uint8"
    bits = node.integer("bits", 4) if packed else levels.bits
    if bits not in _PACKED:
        return f"it has {bits} bits"
    shape = levels.shape
    if packed:
        shape = (*shape[:-1], shape[-1] * 8 // bits)
    axis = node.integer("quantize_axis", 1)
    axis += len(shape) if axis < 0 else 0
    block = node.integer("block_size", 128)
    if not block and 0 <= axis < len(shape):
        block = shape[axis]
    return [BlockedWeight(node, levels, scales, zeros, bits, block, shape, axis, packed)]


_EXPERTS = ((2, 3, 11, 2), (5, 6, 12, 4), (8, 9, 13, 6))
"""Of QMoE: inputs with levels, scales and zero points, and the input of MoE that has the weight."""


def _of_experts(node: Node) -> list[BlockedWeight] | str:
    given = node.attribute("quant_type")
    if given is not None and given.value not in ("int", b"int"):
        kind = given.value
        words = kind.decode("utf-8", "replace") if isinstance(kind, bytes) else str(kind)
        return f"its weights are {visible(words)}, not integers"
    if node.integer("weights_prepacked", -1) > 0:
        return "its weights are arranged for one kind of device"
    if _given(node, 14):
        return "MoE takes no router_weights"
    weights = []
    for number, (at, scales_at, zeros_at, position) in enumerate(_EXPERTS, 1):
        parts = _parts(node, at, scales_at, zeros_at)
        if isinstance(parts, str):
            return parts
        levels, scales, zeros = parts
        if levels is None or scales is None:
            continue
        bits = _expert_bits(node, number)
        if bits not in _PACKED or len(levels.shape) != 3:
            return f"it has {bits} bits"
        shape = (*levels.shape[:2], levels.shape[2] * 8 // bits)
        block = node.integer("block_size", 0)
        weights.append(
            BlockedWeight(
                node, levels, scales, zeros, bits, block if block > 0 else shape[2], shape, 2, True,
                zeros_in_row=None if block > 0 else shape[1], position=position,
            )
        )  # fmt: skip
    return weights


def _expert_bits(node: Node, number: int) -> int:
    return node.integer(f"fc{number}_expert_weight_bits", node.integer("expert_weight_bits", 4))


_READERS: dict[str, tuple[str, Callable[[Node], list[BlockedWeight] | str]]] = {
    "MatMulNBits": (CONTRIB_DOMAIN, _of_matrix_product),
    "DequantizeLinear": ("", _of_dequantize),
    "GatherBlockQuantized": (CONTRIB_DOMAIN, _of_gather),
    "QMoE": (CONTRIB_DOMAIN, _of_experts),
}


def misfits(node: Node) -> Iterator[str]:
    """Yield what of a node's weights in few bits ONNX Runtime refuses for its size, in words."""
    domain, rule = _SIZES.get(node.op_type, ("", None))
    if rule is not None and plain_domain(node.domain) == domain:
        yield from rule(node)


def _known(node: Node, position: int) -> tuple[str, tuple[int, ...]] | None:
    """Return the element type and the shape of an input, None where they are not known."""
    if not _given(node, position):
        return None
    part = _stored(node, position)
    if part is not None:
        return part.dtype, part.shape
    known = node.scope.value_type(node.inputs[position])
    if known is None or known.dims is None:
        return None
    sizes = tuple(dim for dim in known.dims if isinstance(dim, int) and dim >= 0)
    return (known.dtype or "", sizes) if len(sizes) == len(known.dims) else None


def _shape_mismatch(
    node: Node, position: int, label: str, shapes: Sequence[tuple[int, ...]], why: str
) -> Iterator[str]:
    """Yield that an input has none of some shapes, where its shape is known."""
    known = _known(node, position)
    if known is None or known[1] in shapes:
        return
    count, fitting = prod(known[1]), prod(shapes[0])
    if count != fitting:
        yield f"its {label} are {count:,}, not {fitting:,}: {why}"
    elif _stored(node, position) is not None:
        wanted = " or ".join(fmt.shape(shape) for shape in shapes)
        yield f"its {label} are {fmt.shape(known[1])}, not {wanted}: {why}"


def _block_fault(block: int, sizes: str, *, fits: bool) -> Iterator[str]:
    if not fits:
        yield f"its blocks are of {block}: ONNX Runtime has {sizes}"


def _product_sizes(node: Node) -> Iterator[str]:
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    bits, block = node.integer("bits", 4), node.integer("block_size", 0)
    if bits not in _PACKED:
        yield f"it has {bits} bits: ONNX Runtime has 2, 4 and 8"
        return
    fits = block in (16, 32, 64, 128, 256)
    yield from _block_fault(block, "16, 32, 64, 128 and 256", fits=fits)
    if rows < 1 or columns < 1 or not fits:
        return
    blocks = -(-rows // block)
    why = f"K {rows:,} in blocks of {block}, N {columns:,}"
    yield from _shape_mismatch(
        node, 1, "packed weights", [(columns, blocks, block * bits // 8)], why
    )
    scaled = [(columns, blocks), (columns * blocks,)]
    yield from _shape_mismatch(node, 2, "scales", scaled, why)
    zeros = _known(node, 3)
    if zeros is not None and zeros[0] == "uint8":
        width = -(-blocks * bits // 8)
        scaled = [(columns, width), (columns * width,)]
        why = f"{why}, packed in bytes"
    yield from _shape_mismatch(node, 3, "zero points", scaled, why)
    groups = [(rows,), (blocks * block,)]
    if (known := _known(node, 4)) is not None and known[1] not in groups:
        yield from _shape_mismatch(node, 4, "group indices", groups, f"K {rows:,}")


def _gathered_sizes(node: Node) -> Iterator[str]:
    levels, scales = _known(node, 0), _known(node, 2)
    block = node.integer("block_size", 128)
    is_narrow = levels is not None and is_float(levels[0])
    fits = (block >= 16 and not block & (block - 1)) or (not block and is_narrow)
    yield from _block_fault(block, "powers of 2 from 16 on", fits=fits)
    if levels is None or not fits:
        return
    dtype, shape = levels
    bits, axis = node.integer("bits", 4), node.integer("quantize_axis", 1)
    gathered = node.integer("gather_axis", 0)
    if not shape or not -len(shape) <= axis < len(shape):
        yield f"its quantize_axis is {axis}: its levels have {fmt.plural(len(shape), 'dimension')}"
        return
    axis %= len(shape)
    is_packed = dtype == "uint8"
    if is_packed:
        if bits not in _PACKED:
            yield f"it has {bits} bits: ONNX Runtime has 2, 4 and 8"
            return
        if gathered % len(shape) or (bits < 8 and axis != len(shape) - 1):
            yield "its levels are packed in bytes: gather_axis must be 0, quantize_axis the last"
            return
        shape = (*shape[:-1], shape[-1] * 8 // bits)
    count = -(-shape[axis] // (block or max(shape[axis], 1)))
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    why = f"levels {fmt.shape(shape)} in blocks of {block} along axis {axis}"
    spread = is_narrow and scales is not None and len(scales[1]) == len(wanted)
    if not (spread and scales is not None and all(
        have == want or (have == 1 and at != axis)
        for at, (have, want) in enumerate(zip(scales[1], wanted, strict=True))
    )):  # fmt: skip
        yield from _shape_mismatch(node, 2, "scales", [wanted], why)
    if is_packed and bits < 8:
        wanted = (*wanted[:-1], -(-wanted[-1] * bits // 8))
    yield from _shape_mismatch(node, 3, "zero points", [wanted], why)


def _dequantized_sizes(node: Node) -> Iterator[str]:
    levels, scales = _stored(node, 0), _known(node, 1)
    if levels is None or scales is None:
        return  # of activations: a matter of shape inference
    shape, block, axis = levels.shape, node.integer("block_size", 0), node.integer("axis", 1)
    if block < 0:
        yield f"its blocks are of {block}"
        return
    if not block and scales[1] in ((), (1,)):
        if (zeros := _known(node, 2)) is not None and zeros[1] not in ((), (1,)):
            yield from _shape_mismatch(node, 2, "zero points", [scales[1]], "there is one scale")
        return
    if not -len(shape) <= axis < len(shape):
        yield f"its axis is {axis}: its levels have {fmt.plural(len(shape), 'dimension')}"
        return
    axis %= len(shape)
    size = shape[axis]
    wanted: tuple[int, ...] = (size,)
    why = f"levels {fmt.shape(shape)}, a scale for each of axis {axis}"
    if block:
        wanted = (*shape[:axis], -(-size // block), *shape[axis + 1 :])
        why = f"levels {fmt.shape(shape)} in blocks of {block} along axis {axis}"
    yield from _shape_mismatch(node, 1, "scales", [wanted], why)
    yield from _shape_mismatch(node, 2, "zero points", [wanted], why)


def _expert_sizes(node: Node) -> Iterator[str]:
    given = node.attribute("quant_type")
    if given is not None and given.value not in ("int", b"int"):
        return
    block = node.integer("block_size", 0)
    fits = block <= 0 or (block >= 16 and not block & (block - 1))
    sizes: dict[int, tuple[int, int, int]] = {}
    yield from _block_fault(block, "powers of 2 from 16 on", fits=fits)
    for number, (at, scales_at, zeros_at, _) in enumerate(_EXPERTS, 1):
        levels, bits = _known(node, at), _expert_bits(node, number)
        if bits not in _PACKED:
            yield f"it has {bits} bits: ONNX Runtime has 2, 4 and 8"
            return
        if levels is None or len(levels[1]) != 3 or not fits:
            continue
        experts, columns, width = levels[1]
        rows = width * 8 // bits
        why = f"{experts} experts of {columns:,} × {rows:,}"
        if block > 0:
            why += f" in blocks of {block}"
            if rows % block:
                yield f"{rows:,} rows of its weights {number} are not whole blocks of {block}"
                continue
            scaled: list[tuple[int, ...]] = [(experts, columns, rows // block)]
            zeros: list[tuple[int, ...]] = [(experts, columns, -(-rows // block * bits // 8))]
        else:
            scaled, zeros = [(experts, columns)], [(experts, -(-columns * bits // 8))]
        yield from _shape_mismatch(node, scales_at, f"scales {number}", scaled, why)
        yield from _shape_mismatch(node, zeros_at, f"zero points {number}", zeros, why)
        sizes[number] = experts, columns, rows
    if 1 in sizes and 2 in sizes:
        experts, columns, hidden = sizes[1]
        # Those of a gated activation may stand beside the others.
        if sizes[2] not in ((experts, hidden, columns), (experts, hidden, columns / 2)):
            texts = ("{} experts of {:,} × {:,}".format(*sizes[number]) for number in (1, 2))
            yield "its weights {} and {} do not fit together".format(*texts)


_SIZES: dict[str, tuple[str, Callable[[Node], Iterator[str]]]] = {
    "MatMulNBits": (CONTRIB_DOMAIN, _product_sizes),
    "DequantizeLinear": ("", _dequantized_sizes),
    "GatherBlockQuantized": (CONTRIB_DOMAIN, _gathered_sizes),
    "QMoE": (CONTRIB_DOMAIN, _expert_sizes),
}
