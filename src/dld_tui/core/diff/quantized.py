"""How far weights in few bits are from the floating point ones that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log10

import numpy as np

from dld_tui.core.document.blocks import Array, BlockedWeight, blocked_weight, blocked_weights
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import InputError
from dld_tui.core.tensors.elements import is_float

_PART = 1 << 22


@dataclass(frozen=True, slots=True)
class WeightNoise:
    """The error of one weight in few bits. Foreign text."""

    scope: tuple[str, ...]
    node: str
    """The node of the new model that takes it."""
    weight: str
    """How the model calls it that has it in floating point; the old one where both have bits."""
    shape: tuple[int, ...]
    format: str
    """How it is stored where it is in few bits: `4 bits, blocks of 32, MatMulNBits`."""
    snr_db: float | None
    """Power of the floating point weight over that of the error, in dB; None without an error."""
    max_abs: float
    """The largest error of an element."""


def weight_noise(old: Document, new: Document) -> Iterator[WeightNoise | str]:
    """Yield the error of each weight that one of two models has in few bits.

    Weights belong together that make the same value: names of weights differ. Where both have few
    bits, the old one counts as exact; weights of the same bytes are left out.

    Yields:
        Errors, and sentences on what cannot be read.
    """
    seen: set[tuple[tuple[str, ...], str]] = set()
    for few, whole in ((new, old), (old, new)):
        for weight in blocked_weights(few):
            scope = _scope(whole, weight.node.scope.path)
            for user, position in _users(weight):
                place = (*weight.node.scope.path,), user.outputs[0]
                twin = None if scope is None else scope.producer(user.outputs[0])
                if twin is None or place in seen:
                    continue
                seen.add(place)
                try:
                    found = _compared(weight, twin, position, is_new=few is new)
                except InputError as error:
                    yield f"{weight.name}: {error.message}"
                    break
                if found is not None:
                    yield found
                break


def _scope(document: Document, path: tuple[str, ...] | list[str]) -> Scope | None:
    return next((one for one in document.scopes() if [*one.path] == [*path]), None)


def _users(weight: BlockedWeight) -> Iterator[tuple[Node, int]]:
    """Yield the nodes that compute with a weight, and at which input."""
    if weight.node.op_type != "DequantizeLinear":
        yield weight.node, 0 if weight.node.op_type == "GatherBlockQuantized" else 1
        return
    for use in weight.node.scope.users(weight.node.outputs[0]):
        if use.node.scope is weight.node.scope and use.index is not None and use.node.outputs:
            yield use.node, use.index


def _compared(
    weight: BlockedWeight, twin: Node, position: int, *, is_new: bool
) -> WeightNoise | None:
    other = blocked_weight(twin)
    name, parts = "", None
    if other is None and len(twin.inputs) > position:
        resolved = twin.scope.resolve(twin.inputs[position])
        if resolved is None:
            return None
        if resolved.node is not None:
            other = blocked_weight(resolved.node)
        else:
            tensor = resolved.scope.initializer(twin.inputs[position])
            fits = tensor is not None and tensor.shape and tensor.shape == _shape(weight)
            if tensor is not None and fits and is_float(tensor.dtype):
                name, parts = tensor.name, _rows(tensor)
    if other is not None and _shape(other) == _shape(weight):
        if _same(weight, other):
            return None
        name, parts = other.name, other.matrix_parts()
    if parts is None:
        return None
    mine = weight.matrix_parts()
    # What is exact is the floating point weight, or the old one of two in few bits.
    exact, rounded = (parts, mine) if is_new or other is None else (mine, parts)
    signal = noise = worst = 0.0
    for one, two in _in_step(exact, rounded):
        error = one.astype(np.float64) - two
        signal += float(np.square(one, dtype=np.float64).sum())
        noise += float(np.square(error).sum())
        worst = max(worst, float(np.abs(error).max(initial=0.0)))
    ratio = signal / noise if noise else inf
    snr = None if ratio == inf else 10 * log10(ratio) if ratio else -inf
    user = weight.node if is_new else twin
    return WeightNoise(
        tuple(user.scope.path), user.ref, name, _shape(weight), weight.format, snr, worst
    )


def _shape(weight: BlockedWeight) -> tuple[int, ...]:
    return weight.shape[::-1] if weight.is_transposed else weight.shape


def _same(one: BlockedWeight, other: BlockedWeight) -> bool:
    """Return whether two weights are stored alike, byte for byte."""
    if one.format != other.format:
        return False
    parts = [[w.levels, w.scales, w.zero_points, w.groups] for w in (one, other)]
    return all(
        (mine is None and theirs is None)
        or (mine is not None and theirs is not None and np.array_equal(mine.read(), theirs.read()))
        for mine, theirs in zip(*parts, strict=True)
    )


def _rows(tensor: Tensor) -> Iterator[Array]:
    width = max(tensor.element_count // max(tensor.shape[0], 1), 1) if tensor.shape else 1
    step = max(_PART // width, 1)
    for start in range(0, tensor.shape[0], step):
        part = tensor.read(start * width, step * width).astype(np.float32)
        yield part.reshape(-1, *tensor.shape[1:])


def _in_step(one: Iterator[Array], other: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield parts of the same rows of two matrices that come in parts of any size."""
    left = right = np.empty((0,), np.float32)
    while True:
        if not len(left):
            left = next(one, left)
        if not len(right):
            right = next(other, right)
        count = min(len(left), len(right))
        if not count:
            return
        yield left[:count], right[:count]
        left, right = left[count:], right[count:]
