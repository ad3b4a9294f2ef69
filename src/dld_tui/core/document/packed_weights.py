"""Weights that are stored in few bits, and the floating point matrices they represent.

MatMulNBits and GatherBlockQuantized of ONNX Runtime, and DequantizeLinear of a stored weight. A
level `q` stands for `(q - zero point) * scale`; some levels in a row, a block, share both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.types.value_types import dtype_name
from dld_tui.core.operators.registry import CONTRIB_DOMAIN
from dld_tui.core.types import TextEnum

Array: TypeAlias = "np.ndarray[Any, Any]"
_PACKED = {2, 4, 8}
_PART = 1 << 22
"""Elements of a matrix that are in floating point at a time."""


@dataclass(frozen=True)
class BlockedWeight:
    """A weight in few bits, as one node takes it."""

    node: Node
    levels: Tensor
    scales: Tensor
    zero_points: Tensor | None
    bits: int
    block: int
    """Levels in a row that share a scale; 0 for all of a channel, or of the tensor."""
    shape: tuple[int, ...]
    """Of the levels, unpacked and without padding: of MatMulNBits columns x rows."""
    axis: int
    """Along which the blocks, or the channels, are."""
    packed: bool
    """Whether levels are packed in bytes of an uint8 tensor, the lowest bits first."""
    groups: Tensor | None = None
    """Of MatMulNBits, the block of each row, where rows were sorted."""

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
        return f"{self.bits} bits, {layout}, {self.node.op_type}"

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
                # Each row of blocks begins with a byte of its own.
                zeros = unpacked(zeros.reshape(lead, -1), self.bits)[:, : self._count]
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
        """Return a part of the levels, as integers."""
        if not self.weight.packed:
            return self.levels[tuple(at)].astype(np.int32)
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
        if self.part is not WeightPart.LEVELS:
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
    for use in scope.users(name):
        weight = blocked_weight(use.node)
        if weight is None:
            continue
        parts = (weight.levels, weight.scales, weight.zero_points)
        if any(part is not None and part.name == name for part in parts):
            return weight
    return None


def _rows_of(tensor: Tensor, count: int, rows: slice) -> Array:
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
            if node.op_type in _READERS and (weight := blocked_weight(node)) is not None:
                yield weight


def blocked_weight(node: Node) -> BlockedWeight | None:
    """Return the weight in few bits that a node takes, None where it takes none.

    None, too, where parts of it are computed, or where their sizes do not fit.
    """
    reader = _READERS.get(node.op_type)
    weight = reader(node) if reader is not None else None
    if weight is None:
        return None
    count = weight.levels.element_count * (8 // weight.bits if weight.packed else 1)
    return weight if count >= prod(weight.shape) > 0 else None


def _stored(node: Node, position: int) -> Tensor | None:
    """Return the initializer that is an input, None where there is none."""
    if len(node.inputs) <= position or not node.inputs[position]:
        return None
    resolved = node.scope.resolve(node.inputs[position])
    if resolved is None or resolved.kind != "initializer":
        return None
    return resolved.scope.initializer(node.inputs[position])


def _given(node: Node, position: int) -> bool:
    return len(node.inputs) > position and bool(node.inputs[position])


def _parts(node: Node, first: int) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Return levels, scales and zero points where all that are given are stored."""
    levels, scales, zeros = (_stored(node, first + at) for at in range(3))
    if levels is None or scales is None or (zeros is None and _given(node, first + 2)):
        return None
    return levels, scales, zeros


def _of_matrix_product(node: Node) -> BlockedWeight | None:
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    bits, block = node.integer("bits", 4), node.integer("block_size", 0)
    levels, scales, zeros = (_stored(node, at) for at in (1, 2, 3))
    groups = _stored(node, 4)
    if node.domain != CONTRIB_DOMAIN or levels is None or scales is None or bits not in _PACKED:
        return None
    if (zeros is None and _given(node, 3)) or (groups is None and _given(node, 4)) or block <= 0:
        return None
    if levels.dtype != "uint8":
        return None
    return BlockedWeight(node, levels, scales, zeros, bits, block, (columns, rows), 1, True, groups)


def _of_dequantize(node: Node) -> BlockedWeight | None:
    parts = _parts(node, 0)
    if parts is None or parts[0].dtype.startswith("float"):
        return None
    levels, scales, zeros = parts
    if levels.bits is None:
        return None
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    axis += len(levels.shape) if axis < 0 else 0
    if axis >= len(levels.shape):
        if scales.element_count != 1:
            return None
        axis = 0  # there is one scale, whatever it says
    return BlockedWeight(node, levels, scales, zeros, levels.bits, block, levels.shape, axis, False)


def _of_gather(node: Node) -> BlockedWeight | None:
    levels, _, scales, zeros = (_stored(node, at) for at in range(4))
    if node.domain != CONTRIB_DOMAIN or levels is None or scales is None:
        return None
    if (zeros is None and _given(node, 3)) or levels.bits is None:
        return None
    packed = levels.dtype == "uint8"
    bits = node.integer("bits", 4) if packed else levels.bits
    shape = levels.shape
    if packed:
        shape = (*shape[:-1], shape[-1] * 8 // bits)
    axis = node.integer("quantize_axis", 1)
    axis += len(shape) if axis < 0 else 0
    if bits not in _PACKED or (packed and axis != len(shape) - 1):
        return None
    block = node.integer("block_size", 128)
    return BlockedWeight(node, levels, scales, zeros, bits, block, shape, axis, packed)


_READERS = {
    "MatMulNBits": _of_matrix_product,
    "DequantizeLinear": _of_dequantize,
    "GatherBlockQuantized": _of_gather,
}
