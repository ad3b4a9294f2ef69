"""Put the payloads back into a skeleton that is to be written."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.fields import (
    DELIMITED,
    FIXED32,
    FIXED64,
    MODEL,
    VARINT,
    Kind,
    read_varint,
    varint,
)


def splice(skeleton: bytes, blobs: BlobTable, *, kind: Kind = MODEL) -> list[bytes | Blob]:
    """Return what to write for a skeleton: its bytes with every sentinel replaced by its payload.

    The lengths of the enclosing messages are those of the result. Without edits, and when the
    original was in protobuf's canonical form, the result is the original byte for byte.

    Args:
        skeleton: A serialised message; sentinels may be anywhere and in any order.
        blobs: The payloads.
        kind: What message it is, a ModelProto by default; see ``fields``.

    Raises:
        ValueError: A sentinel stands in a field that cannot hold its payload.
    """
    positions = _sentinels(skeleton, blobs)
    if not positions:
        return [skeleton]
    pieces, _ = _Splice(skeleton, blobs, positions).message(kind, 0, len(skeleton))
    return _merged(pieces)


def pieces_length(pieces: Sequence[bytes | Blob]) -> int:
    """Return how many bytes the pieces are when written."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)


def _sentinels(skeleton: bytes, blobs: BlobTable) -> list[int]:
    positions = []
    position = skeleton.find(blobs.nonce)
    while position >= 0:
        if blobs.get(skeleton[position : position + SENTINEL_LENGTH]) is None:
            raise ValueError(f"the nonce of the document at byte {position} starts no sentinel")
        positions.append(position)
        position = skeleton.find(blobs.nonce, position + SENTINEL_LENGTH)
    return positions


class _Splice:
    """One pass over a skeleton, from sentinel to sentinel."""

    def __init__(self, skeleton: bytes, blobs: BlobTable, positions: list[int]) -> None:
        self._data = skeleton
        self._blobs = blobs
        # The end is a position that no field reaches.
        self._positions = [*positions, len(skeleton) + 1]
        self._next = 0

    def message(self, kind: Kind, start: int, end: int) -> tuple[list[bytes | Blob], int]:
        """Return the pieces of one message and their length in bytes."""
        data = self._data
        pieces: list[bytes | Blob] = []
        length = 0
        copied = position = start
        sentinel = self._positions[self._next]
        while sentinel < end:
            field = position
            tag, position = read_varint(data, position)
            if tag & 7 != DELIMITED:
                position = _skip(data, tag, position)
                continue
            tag_end = position
            content_length = data[position]
            position += 1
            if content_length > 0x7F:
                content_length, position = read_varint(data, tag_end)
            content, position = position, position + content_length
            if sentinel >= position:
                continue
            child = kind.get(tag)
            if child is None:
                raise ValueError(f"a sentinel in a field at byte {field} that holds no payload")
            if isinstance(child, str):
                inner, inner_length = self._payload(child, content, position)
            else:
                inner, inner_length = self.message(child, content, position)
            header = data[copied:tag_end] + varint(inner_length)
            pieces.append(header)
            pieces += inner
            length += len(header) + inner_length
            copied = position
            sentinel = self._positions[self._next]
        pieces.append(data[copied:end])
        return pieces, length + end - copied

    def _payload(self, field: str, start: int, end: int) -> tuple[list[bytes | Blob], int]:
        # Several sentinels, or a sentinel and values, are one field when a tensor's payload came in
        # chunks.
        pieces: list[bytes | Blob] = []
        copied = start
        while (position := self._positions[self._next]) < end:
            blob = self._blobs.get(self._data[position : position + SENTINEL_LENGTH])
            assert blob is not None
            if blob.field != field and not {blob.field, field} <= FIXED_WIDTH_FIELDS:
                raise ValueError(f"a payload of {blob.field} stands in {field} at byte {position}")
            pieces += (self._data[copied:position], blob)
            copied = position + SENTINEL_LENGTH
            self._next += 1
        pieces.append(self._data[copied:end])
        return pieces, pieces_length(pieces)


def _skip(data: bytes, tag: int, position: int) -> int:
    wire_type = tag & 7
    if wire_type == VARINT:
        return read_varint(data, position)[1]
    if wire_type == FIXED64:
        return position + 8
    if wire_type == FIXED32:
        return position + 4
    # protobuf never writes groups of its own; an unknown one is kept by it as it was read.
    return _skip_group(data, tag >> 3, position)


def _skip_group(data: bytes, number: int, position: int) -> int:
    while True:
        tag, position = read_varint(data, position)
        if tag & 7 == DELIMITED:
            length, position = read_varint(data, position)
            position += length
        elif tag & 7 == 4 and tag >> 3 == number:
            return position
        else:
            position = _skip(data, tag, position)


def _merged(pieces: list[bytes | Blob]) -> list[bytes | Blob]:
    merged: list[bytes | Blob] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        if joined := b"".join(run):
            merged.append(joined)
        run = []
        merged.append(piece)
    if joined := b"".join(run):
        merged.append(joined)
    return merged
