"""Whether two tensors hold the same values, and how far they are apart, read in parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core import protos as onnx
from dld_tui.core.document.document import Document
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob
from dld_tui.core.types import CancelCheck, ProgressCallback

PART_ELEMENTS = 1 << 19
"""Elements compared at a time; a multiple of 8, so that narrow ones fill whole bytes."""
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
    """Mean over all finite pairs, equal ones too."""
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
    """Counts the bytes that were read, says so, and stops the work on request."""

    def __init__(
        self, progress: ProgressCallback | None = None, cancelled: CancelCheck | None = None
    ) -> None:
        self.total = 0
        """Bytes that there may be to read; 0 when unknown."""
        self.done = 0
        self._progress = progress
        self._cancelled = cancelled

    def check(self) -> None:
        """Raise when the work is to stop.

        Raises:
            CancelledError: The user said so.
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
    # Varints have no fixed width: they are decoded as a whole, whoever asks.
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
    """Return a hash of a tensor's values, whatever way the file stores them.

    Raises:
        InputError: The values cannot be read.
        CancelledError: The user stopped it.
    """
    meter.check()
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    payload = _inline(tensor) or _fixed(tensor)
    if isinstance(payload, Blob):
        for part in payload.chunks(PART_ELEMENTS * 8):
            found.update(part)
            meter.add(len(part))
    elif payload is not None:
        found.update(payload)
    else:
        values = tensor.read()
        if values.dtype == np.object_:
            for text in values:
                found.update(b"%d:" % len(text) + text)
        else:
            found.update(_stored(values, tensor.bits or 8))
    return found.hexdigest()


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
