"""Comparison of two tensors, read in parts: equality, and the size of differences.

Weights in few bits are compared with the floating point ones that they stand for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from math import inf, log10
from typing import Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.packed_weights import (
    Array,
    BlockedWeight,
    blocked_weight,
    blocked_weights,
    weights_of,
)
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.elements import is_float
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import CancelCheck, ProgressCallback

PART_ELEMENTS = 1 << 19
"""Elements compared together; a multiple of 8, so that narrow types fill whole bytes."""
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """How far the values of two tensors of one type and shape are apart."""

    count: int
    """All elements."""
    different: int
    """Elements whose bits differ."""
    max_abs: float | None
    """Largest absolute difference of the pairs that are finite; None for strings, or without."""
    mean_abs: float | None
    """Mean over all finite pairs, including equal ones."""
    not_finite: int = 0
    """Elements that differ and are infinite or NaN on one side at least."""

    @property
    def text(self) -> str:
        """Return for example ``12 of 9,408 elements differ, max |Δ| 0.5, mean |Δ| 0.001``."""
        parts = [f"{fmt.count(self.different)} of {fmt.count(self.count)} elements differ"]
        if self.max_abs is not None:
            parts.append(f"max |Δ| {self.max_abs:.4g}")
        if self.mean_abs is not None:
            parts.append(f"mean |Δ| {self.mean_abs:.4g}")
        if self.not_finite:
            parts.append(f"{fmt.count(self.not_finite)} with NaN or infinity")
        return ", ".join(parts)


class Meter:
    """Counts bytes read, reports progress, and checks for cancellation."""

    def __init__(
        self, progress: ProgressCallback | None = None, cancelled: CancelCheck | None = None
    ) -> None:
        self.total = 0
        """Bytes that there may be to read; 0 when unknown."""
        self.done = 0
        self._progress = progress
        self._cancelled = cancelled

    def check(self) -> None:
        """Raise if the work was cancelled.

        Raises:
            CancelledError: The user cancelled.
        """
        if self._cancelled is not None and self._cancelled():
            raise CancelledError

    def add(self, count: int) -> None:
        """Take note of bytes that were read."""
        self.check()
        self.done += count
        if self._progress is not None:
            done = min(self.done, self.total) if self.total else self.done
            self._progress(done, self.total)


def same_range(old: Blob, new: Blob) -> bool:
    """Return whether two payloads are the very same bytes of the same file."""
    return (
        old.is_stored
        and new.is_stored
        and old.source.identity == new.source.identity
        and (old.offset, old.length) == (new.offset, new.length)
        and (old.field == new.field or {old.field, new.field} <= FIXED_WIDTH_FIELDS)
    )


def _inline(tensor: Tensor) -> bytes | None:
    """Return ``raw_data`` that is in the message itself."""
    proto = tensor.proto
    if proto.data_location == onnx.TensorProto.EXTERNAL or not proto.HasField("raw_data"):
        return None
    data = bytes(proto.raw_data)
    if tensor.document is not None and tensor.document.blobs.get(data) is not None:
        return None
    return data


def same_inline(old: Tensor, new: Tensor) -> bool:
    """Return True for small tensors of one type and shape with the same bytes; quick."""
    data = _inline(old)
    return data is not None and data == _inline(new)


def tensor_difference(old: Tensor, new: Tensor, meter: Meter) -> TensorDifference | None:
    """Compare two tensors of the same type and shape; None when all bits are the same.

    Raises:
        InputError: The values of one cannot be read.
        CancelledError: The user stopped it.
    """
    meter.check()
    if old.proto is new.proto and old.document is new.document:
        return None
    tally = _Tally(old.element_count)
    payloads = _fixed(old), _fixed(new)
    if None in payloads:
        _compare_whole(old, new, tally)
    else:
        _compare_parts(old, new, payloads, tally, meter)
    return tally.result()


def _fixed(tensor: Tensor) -> Blob | bytes | None:
    """Return the encoded elements, None when they have no fixed width in the file."""
    if tensor.location == "none":
        raise InputError("has no data (weightless model?)", where=tensor.name or None)
    if tensor.is_external or set(tensor.fields) <= FIXED_WIDTH_FIELDS:
        return tensor.payload() if tensor.element_count else b""
    return None


def _compare_whole(old: Tensor, new: Tensor, tally: _Tally) -> None:
    # Varints have no fixed width: they are always decoded as a whole.
    first, second = old.read(), new.read()
    for start in range(0, len(first), PART_ELEMENTS):
        end = start + PART_ELEMENTS
        tally.add(first[start:end], lambda s=start, e=end: second[s:e])  # type: ignore[misc]


def _compare_parts(
    old: Tensor,
    new: Tensor,
    payloads: tuple[Blob | bytes | None, Blob | bytes | None],
    tally: _Tally,
    meter: Meter,
) -> None:
    first, second = payloads
    if isinstance(first, Blob) and isinstance(second, Blob) and same_range(first, second):
        meter.add(first.length)
        return
    bits = old.bits or 8
    step = PART_ELEMENTS * bits // 8
    for start in range(0, old.element_count, PART_ELEMENTS):
        offset = start * bits // 8
        part, other = _cut(first, offset, step), _cut(second, offset, step)
        meter.add(len(part))
        if part == other:
            tally.same(min(PART_ELEMENTS, old.element_count - start))
        else:
            tally.add(
                old.read(start, PART_ELEMENTS),
                lambda s=start: new.read(s, PART_ELEMENTS),  # type: ignore[misc]
            )


def _cut(payload: Blob | bytes | None, offset: int, length: int) -> bytes:
    if isinstance(payload, Blob):
        return payload.read(offset, length)
    return (payload or b"")[offset : offset + length]


class _Tally:
    """Adds up what differs, part by part."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.different = 0
        self.not_finite = 0
        self.finite = 0
        self.total = 0.0
        self.maximum: float | None = None

    def same(self, count: int) -> None:
        """Take note of elements that are the same."""
        self.finite += count

    def add(self, first: np.ndarray[Any, Any], other: Callable[[], np.ndarray[Any, Any]]) -> None:
        """Compare a part of the elements."""
        second = other()
        if first.dtype == np.object_:
            self.different += sum(map(bytes.__ne__, first, second))
            return
        unequal = _bits(first) != _bits(second)
        if unequal.ndim > 1:
            unequal = unequal.any(axis=1)
        self.different += int(unequal.sum())
        wide = np.complex128 if first.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            apart = np.abs(first.astype(wide) - second.astype(wide))
        finite = np.isfinite(apart)
        self.not_finite += int((unequal & ~finite).sum())
        known = apart[finite]
        self.finite += len(known)
        if len(known):
            self.total += float(known.sum())
            self.maximum = max(self.maximum or 0.0, float(known.max()))

    def result(self) -> TensorDifference | None:
        """Return the sums, None when nothing differs."""
        if not self.different:
            return None
        known = self.maximum is not None
        return TensorDifference(
            self.count,
            self.different,
            self.maximum,
            self.total / self.finite if known and self.finite else None,
            self.not_finite,
        )


def _bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = np.ascontiguousarray(values)
    if values.dtype.itemsize <= 8:
        return values.view(f"u{values.dtype.itemsize}")
    return values.view(np.uint64).reshape(len(values), -1)


def digest(tensor: Tensor, meter: Meter) -> str:
    """Return a hash of a tensor's values, however the file stores them.

    Raises:
        InputError: The values cannot be read.
        CancelledError: The user cancelled.
    """
    meter.check()
    hasher = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    payload = _inline(tensor) or _fixed(tensor)
    if isinstance(payload, Blob):
        for part in payload.chunks(PART_ELEMENTS * 8):
            hasher.update(part)
            meter.add(len(part))
    elif payload is not None:
        hasher.update(payload)
    else:
        values = tensor.read()
        if values.dtype == np.object_:
            for text in values:
                hasher.update(b"%d:" % len(text) + text)
        else:
            hasher.update(_stored(values, tensor.bits or 8))
    return hasher.hexdigest()


def _stored(values: np.ndarray[Any, Any], bits: int) -> bytes:
    """Return elements as ``raw_data`` has them."""
    if bits >= 8:
        return values.tobytes()
    codes = values.view(np.uint8) & np.uint8((1 << bits) - 1)
    rows = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :bits]
    return np.packbits(rows.reshape(-1), bitorder="little").tobytes()


def payload_bytes(document: Document) -> int:
    """Return the bytes of the initializers that are not in the messages themselves."""
    total = 0
    for scope in document.scopes():
        for proto in scope.records.get("initializer", ()):
            if proto.data_location == onnx.TensorProto.EXTERNAL:
                total += Tensor(proto, document).nbytes or 0
            elif len(proto.raw_data) == SENTINEL_LENGTH:
                blob = document.blobs.get(proto.raw_data)
                total += blob.length if blob is not None else 0
    return total


_PART = 1 << 22


@dataclass(frozen=True, slots=True)
class WeightNoise:
    """The error of one weight in few bits. Untrusted text."""

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
    seen: set[tuple[tuple[str, ...], str, int]] = set()
    for few, whole in ((new, old), (old, new)):
        for weight in blocked_weights(few):
            scope = _scope(whole, weight.node.scope.path)
            for user, position in _users(weight):
                place = (*weight.node.scope.path,), user.outputs[0], position
                if place in seen:
                    break  # both have it in few bits
                twin = None if scope is None else scope.producer(user.outputs[0])
                if twin is None:
                    continue
                seen.add(place)
                try:
                    noise = _compared(weight, twin, position, is_new=few is new)
                except InputError as error:
                    yield f"{weight.name}: {error.message}"
                    break
                if noise is not None:
                    yield noise
                break


def _scope(document: Document, path: tuple[str, ...] | list[str]) -> Scope | None:
    return next((scope for scope in document.scopes() if [*scope.path] == [*path]), None)


def _users(weight: BlockedWeight) -> Iterator[tuple[Node, int]]:
    """Yield the nodes that compute with a weight, and at which input."""
    if weight.node.op_type != "DequantizeLinear":
        yield weight.node, weight.position
        return
    for use in weight.node.scope.users(weight.node.outputs[0]):
        if use.node.scope is weight.node.scope and use.index is not None and use.node.outputs:
            yield use.node, use.index


def _compared(
    weight: BlockedWeight, twin: Node, position: int, *, is_new: bool
) -> WeightNoise | None:
    other = next((one for one in weights_of(twin) if one.position == position), None)
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
    # The reference is the floating-point weight, or the old one of two quantized ones.
    exact, rounded = (parts, mine) if is_new or other is None else (mine, parts)
    signal = noise = worst = 0.0
    for reference, rounded_part in _in_step(exact, rounded):
        error = reference.astype(np.float64) - rounded_part
        signal += float(np.square(reference, dtype=np.float64).sum())
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


def _same(weight: BlockedWeight, other: BlockedWeight) -> bool:
    """Return whether two weights are stored alike, byte for byte."""
    if weight.format != other.format:
        return False
    parts = [w.parts for w in (weight, other)]
    return all(
        (mine is None and theirs is None)
        or (mine is not None and theirs is not None and np.array_equal(mine.read(), theirs.read()))
        for mine, theirs in zip(*parts, strict=True)
    )


def _rows(tensor: Tensor) -> Iterator[Array]:
    width = max(tensor.element_count // max(tensor.shape[0], 1), 1)
    step = max(_PART // width, 1)
    for start in range(0, tensor.shape[0], step):
        part = tensor.read(start * width, step * width).astype(np.float32)
        yield part.reshape(-1, *tensor.shape[1:])


def _in_step(first: Iterator[Array], second: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield parts of the same rows of two matrices that come in parts of any size."""
    left = right = np.empty((0,), np.float32)
    while True:
        if not len(left):
            left = next(first, left)
        if not len(right):
            right = next(second, right)
        count = min(len(left), len(right))
        if not count:
            return
        yield left[:count], right[:count]
        left, right = left[count:], right[count:]
