"""Payloads that are another payload with some bytes replaced, so that an edit copies nothing.

A :class:`PatchedBlob` never changes: a further patch makes another one, which shares nearly all of
its parts, because the history keeps both. The patches are in layers, newer over older ones, and a
new layer takes in those below that are not larger: n patches one after the other make at most
log2(n) layers and are merged at most that often each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dld_tui.core.files.blobs import Blob

PATCH_LIMIT = 8 << 20
"""Bytes of patches from which on it is better to write the payload anew."""
_RUN_COST = 64
"""Bytes that a run takes besides its data."""

Run: TypeAlias = "tuple[int, bytes]"


@dataclass(frozen=True, eq=False, slots=True)
class Layer:
    """Runs of bytes with their offsets, in order, that neither touch nor overlap."""

    starts: tuple[int, ...]
    parts: tuple[bytes, ...]
    size: int
    """Bytes that it takes in memory, about."""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Layer:
        """Return a layer of runs that are in order."""
        size = sum(len(part) + _RUN_COST for _, part in runs)
        return cls(tuple(start for start, _ in runs), tuple(part for _, part in runs), size)

    def runs(self, start: int, end: int) -> Iterator[Run]:
        """Yield the runs that have bytes between two offsets."""
        index = max(bisect_right(self.starts, start) - 1, 0)
        for place in range(index, len(self.starts)):
            if self.starts[place] >= end:
                return
            if self.starts[place] + len(self.parts[place]) > start:
                yield self.starts[place], self.parts[place]


@dataclass(frozen=True, slots=True)
class PatchedBlob(Blob):
    """A payload that differs from what its file holds in a few places."""

    layers: tuple[Layer, ...] = field(default=())
    """The oldest first."""

    @property
    def is_stored(self) -> bool:
        """False: the file does not hold these bytes."""
        return False

    @property
    def patch_size(self) -> int:
        """Bytes that the patches take in memory, about."""
        return sum(layer.size for layer in self.layers)

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return the bytes from `start`; see :meth:`Blob.read`."""
        start = min(start, self.length)
        data = Blob.read(self, start, length)
        end = start + len(data)
        patched: bytearray | None = None
        for layer in self.layers:
            for offset, part in layer.runs(start, end):
                patched = patched if patched is not None else bytearray(data)
                first, last = max(offset, start), min(offset + len(part), end)
                patched[first - start : last - start] = part[first - offset : last - offset]
        return data if patched is None else bytes(patched)

    def segments(self) -> Iterator[bytes | Blob]:
        """Yield ranges of the file and patches, in order, that make up the payload."""
        position = 0
        for start, part in _flat(self.layers):
            if start > position:
                yield Blob(self.source, self.offset + position, start - position, self.field)
            yield part
            position = start + len(part)
        if position < self.length:
            yield Blob(self.source, self.offset + position, self.length - position, self.field)


def patched(blob: Blob, runs: Iterable[Run]) -> PatchedBlob:
    """Return a payload with runs of bytes replaced; `blob` stays as it is.

    Args:
        blob: The payload.
        runs: Offsets and the bytes to put there, in any order; the later ones win.

    Raises:
        ValueError: A run is not inside the payload.
    """
    layers = list(blob.layers) if isinstance(blob, PatchedBlob) else []
    for start, part in runs:
        if start < 0 or start + len(part) > blob.length:
            raise ValueError(f"{len(part)} bytes at {start} are not in {blob.length} bytes")
        if not part:
            continue
        layer = Layer.of([(start, part)])
        while layers and layers[-1].size <= layer.size:
            layer = Layer.of(_merged(layers.pop(), layer))
        layers.append(layer)
    return PatchedBlob(blob.source, blob.offset, blob.length, blob.field, tuple(layers))


def _flat(layers: tuple[Layer, ...]) -> Iterator[Run]:
    if not layers:
        return iter(())
    merged = layers[-1]
    for layer in reversed(layers[:-1]):
        merged = Layer.of(_merged(layer, merged))
    return zip(merged.starts, merged.parts, strict=True)


def _merged(older: Layer, newer: Layer) -> list[Run]:
    """Return the runs of two layers as one; where they overlap, the newer one wins."""
    pieces = [*zip(newer.starts, newer.parts, strict=True), *_uncovered(older, newer)]
    runs: list[tuple[int, list[bytes]]] = []
    end = -1
    for start, part in sorted(pieces, key=lambda piece: piece[0]):
        if start == end:
            runs[-1][1].append(part)
        else:
            runs.append((start, [part]))
        end = start + len(part)
    return [(start, parts[0] if len(parts) == 1 else b"".join(parts)) for start, parts in runs]


def _uncovered(older: Layer, newer: Layer) -> Iterator[Run]:
    """Yield what is left of the older layer's runs outside the newer one's."""
    for start, part in zip(older.starts, older.parts, strict=True):
        position, end = start, start + len(part)
        for offset, cover in newer.runs(start, end):
            if offset > position:
                yield position, part[position - start : offset - start]
            position = max(position, offset + len(cover))
        if position < end:
            yield position, part[position - start :]
