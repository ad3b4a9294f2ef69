"""The protobuf wire format: walked, cut so that no payload is read, and put together again.

A message kind is the table of those of its length-delimited fields that lead to payloads: the key
is the field's tag, the value is another table to descend into or, for a payload, the field's
name. All other fields are copied as they are, so unknown ones survive.

The walk is plain Python, so its cost is in the number of fields it looks at: everything smaller
than the threshold, which is nearly every node of a model, is stepped over as one.

:func:`cut` walks the protobuf wire format of a file and leaves a 32-byte sentinel in the place of
every large payload; what remains, the skeleton, is a small valid ModelProto. :func:`splice` does
the opposite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dld_tui.core.errors import CancelledError, CorruptFileError, InputError
from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.columns import ModelParts
from dld_tui.core.files.proto_fields import (
    DELIMITED,
    FIXED32,
    FIXED64,
    GROUP_END,
    GROUP_START,
    MAX_TAG_LENGTH,
    MAX_VARINT_LENGTH,
    MODEL_TAGS,
    VARINT,
    read_varint,
    tag_of,
    varint,
)
from dld_tui.core.files.source import Source
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    import numpy as np

_LONGEST = 10
"""Bytes of the longest varint: 64 bits in groups of seven."""


def fixed_width(parts: Iterable[bytes], width: int) -> Iterator[bytes]:
    """Yield packed varints as little-endian numbers of `width` bytes, higher bits cut off.

    That is what ``raw_data`` holds where a tensor has ``int32_data`` and the like.

    Args:
        parts: The varints in parts, cut anywhere.
        width: 1, 2, 4 or 8.

    Raises:
        InputError: The bytes are no varints.
    """
    import numpy as np

    rest = b""
    for part in parts:
        data = np.frombuffer(rest + part, np.uint8)
        ends = np.flatnonzero(data < 0x80)
        whole = int(ends[-1]) + 1 if len(ends) else 0
        if len(data) - whole > _LONGEST:
            raise InputError("the data is not a list of varints")
        yield _numbers(data[:whole], ends).astype(f"<u{width}").tobytes()
        rest = data[whole:].tobytes()
    if rest:
        raise InputError("the data is not a list of varints: the last one is cut short")


def _numbers(data: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    if not len(ends):
        return np.empty(0, np.uint64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _LONGEST:
        raise InputError("the data is not a list of varints")
    numbers = np.zeros(len(ends), np.uint64)
    # One pass for each group of seven bits: a tenth of the memory of one pass over all bytes.
    for group in range(longest):
        present = np.flatnonzero(lengths > group)
        bits = (data[starts[present] + group] & 0x7F).astype(np.uint64)
        numbers[present] |= bits << np.uint64(7 * group)
    return numbers


MAX_DEPTH: Final = 100
"""Levels of messages that protobuf parses; deeper ones are refused by it."""

MAX_MESSAGE: Final = 2**31 - 1
"""Bytes of the largest message that protobuf reads or writes."""

Kind: TypeAlias = "dict[int, Kind | str]"


TENSOR: Final[Kind] = {
    tag_of(4): "float_data",
    tag_of(5): "int32_data",
    tag_of(7): "int64_data",
    tag_of(9): "raw_data",
    tag_of(10): "double_data",
    tag_of(11): "uint64_data",
}
SPARSE_TENSOR: Final[Kind] = {tag_of(1): TENSOR, tag_of(2): TENSOR}
ATTRIBUTE: Final[Kind] = {
    tag_of(4): "s",
    tag_of(5): TENSOR,
    tag_of(10): TENSOR,
    tag_of(22): SPARSE_TENSOR,
    tag_of(23): SPARSE_TENSOR,
}
NODE: Final[Kind] = {tag_of(5): ATTRIBUTE}
GRAPH: Final[Kind] = {tag_of(1): NODE, tag_of(5): TENSOR, tag_of(15): SPARSE_TENSOR}
ATTRIBUTE[tag_of(6)] = GRAPH
ATTRIBUTE[tag_of(11)] = GRAPH
FUNCTION: Final[Kind] = {tag_of(7): NODE, tag_of(11): ATTRIBUTE}
TRAINING: Final[Kind] = {tag_of(1): GRAPH, tag_of(2): GRAPH}
MODEL: Final[Kind] = {tag_of(7): GRAPH, tag_of(20): TRAINING, tag_of(25): FUNCTION}

ELEMENT_WIDTH: Final = {"float_data": 4, "double_data": 8}
"""Bytes of one value in the packed fields of fixed width; protobuf refuses a length that is no
multiple."""


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
                raise ValueError(f"a sentinel in a field at byte {field} that holds no tensor data")
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
                raise ValueError(
                    f"tensor data of {blob.field} stands in {field} at byte {position}"
                )
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


_FIRST_WINDOW: Final = 64 << 10
_SMALL_WINDOW: Final = 4 << 10
_LARGE_WINDOW: Final = 4 << 20
_NEAR: Final = 64 << 10
"""Payloads of up to about this length are read through: a disk takes longer to answer twice."""

_LONG: Final = 256 << 10
"""So much of a file says what the rest is like."""

_HEADER: Final = MAX_TAG_LENGTH + MAX_VARINT_LENGTH

_Piece: TypeAlias = "bytes | tuple[int, int]"
"""Bytes of the skeleton, or the range of the file that they are in."""


class OnlySmallFieldsError(Exception):
    """What was walked over so far holds no payload, but many fields."""


class Walk:
    """One pass over a file, which cuts payloads out of it.

    Args:
        source: The file.
        blobs: Takes in the payloads.
        threshold: The length in bytes from which on a payload is cut out.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked at each read.
        to_the_end: Else give up where a file that fits into memory shows only small fields for
            long: protobuf looks at these ten times faster.
    """

    def __init__(
        self,
        source: Source,
        blobs: BlobTable,
        threshold: int,
        progress: ProgressCallback | None,
        cancelled: CancelCheck | None,
        *,
        to_the_end: bool = True,
    ) -> None:
        self._source = source
        self._blobs = blobs
        self._threshold = max(threshold, SENTINEL_LENGTH + 1)
        self._progress = progress
        self._cancelled = cancelled
        self._reported = 0
        self._window = b""
        self._start = 0
        self._end = 0
        self._size = _FIRST_WINDOW
        self._jumps = 0
        self._jumped = 0
        self._to_the_end = to_the_end or source.size > _LARGE_SKELETON
        self._glance = max(_LONG, source.size // 16)
        self._pieces: list[_Piece] = []

    def model(self) -> int:
        """Walk the whole file and return the length of its skeleton.

        Raises:
            OnlySmallFieldsError: What was walked over so far holds no payload, but many fields.
        """
        with self._source.reading_here_and_there():
            self._pieces, length = self._message(MODEL, 0, self._source.size, 0)
        return length

    def skeleton(self) -> bytes:
        """Return the skeleton of the file walked."""
        return b"".join(
            piece if isinstance(piece, bytes) else self._source.read(piece[0], piece[1] - piece[0])
            for piece in self._pieces
        )

    def _load(self, position: int) -> bytes:
        """Move the window to `position`, a small one where payloads are large."""
        if self._cancelled is not None and self._cancelled():
            raise CancelledError(where=str(self._source.path))
        if self._progress is not None and position - self._reported >= _LARGE_WINDOW:
            self._reported = position
            self._progress(position, self._source.size)
        if not self._to_the_end and position >= self._glance - _HEADER:
            raise OnlySmallFieldsError
        # After far jumps a large window would hold payload that nobody looks at.
        if self._jumped > self._jumps * _NEAR:
            self._size = _SMALL_WINDOW
        elif self._end:
            self._size = min(self._size * 4, _LARGE_WINDOW)
        self._jumped = self._jumps = 0
        self._start = position
        end = self._source.size if self._to_the_end else self._glance
        self._end = min(position + self._size, end, self._source.size)
        self._window = self._source.read(position, self._end - position)
        return self._window

    def _message(self, kind: Kind, start: int, end: int, depth: int) -> tuple[list[_Piece], int]:
        """Return the pieces of one message without its payloads, and their length in bytes."""
        if depth > MAX_DEPTH:
            raise self._corrupt(f"messages nested deeper than {MAX_DEPTH} levels", start)
        pieces: list[_Piece] = []
        length = 0
        copied = start
        position = start
        threshold = self._threshold
        file_size = self._source.size
        window, base = self._window, self._start
        # The last position where a whole field header is surely in the window.
        safe = self._end - _HEADER if self._end < file_size else file_size
        while position < end:
            if position > safe:
                window = self._load(position)
                base = position
                safe = self._end - _HEADER if self._end < file_size else file_size
            index = position - base
            try:
                tag = window[index]
                index += 1
                if tag > 0x7F:
                    tag, index = read_varint(window, index - 1, MAX_TAG_LENGTH)
                if tag & 7 != DELIMITED or tag < 8:
                    if not tag & 7 and tag >= 8 and window[index] < 0x80 and base + index < end:
                        position = base + index + 1
                        continue
                    position = self._skip(tag, position, base + index, end, depth)
                    window, base = self._window, self._start
                    safe = self._end - _HEADER if self._end < file_size else file_size
                    continue
                content_length = window[index]
                after_tag = index
                index += 1
                if content_length > 0x7F:
                    if window[index] < 0x80:
                        content_length += (window[index] - 1) << 7
                        index += 1
                    else:
                        content_length, index = read_varint(window, after_tag)
            except (IndexError, ValueError) as error:
                raise self._bad_header(error, position) from None
            content = base + index
            field_end = content + content_length
            if field_end > end:
                raise self._overrun(tag, position, content_length, end - content, depth)
            if content_length < threshold or tag not in kind:
                position = field_end
                continue
            child = kind[tag]
            if isinstance(child, str):
                inner: list[_Piece] = [self._take(child, content, content_length)]
                inner_length = SENTINEL_LENGTH
            else:
                inner, inner_length = self._message(child, content, field_end, depth + 1)
                window, base = self._window, self._start
                safe = self._end - _HEADER if self._end < file_size else file_size
                if inner_length == content_length:  # nothing was cut out of it
                    position = field_end
                    continue
            header = varint(inner_length)
            tag_end = content - (index - after_tag)
            pieces.append(self._range(copied, tag_end))
            pieces.append(header)
            pieces += inner
            length += tag_end - copied + len(header) + inner_length
            copied = position = field_end
        if copied < end:
            pieces.append(self._range(copied, end))
            length += end - copied
        return pieces, length

    def _range(self, start: int, end: int) -> _Piece:
        if start >= self._start and end <= self._end:
            return self._window[start - self._start : end - self._start]
        return start, end

    def _take(self, field: str, offset: int, length: int) -> bytes:
        self._jumps += 1
        self._jumped += length
        self._to_the_end = True
        width = ELEMENT_WIDTH.get(field, 1)
        if length % width:
            raise self._corrupt(
                f"{length} bytes of {field} are not a whole number of values", offset
            )
        return self._blobs.add(Blob(self._source, offset, length, field))

    def _skip(self, tag: int, position: int, after: int, end: int, depth: int) -> int:
        """Return the position after a field that is not length-delimited."""
        wire_type = tag & 7
        if tag < 8:
            raise self._corrupt("field number 0", position)
        if wire_type == VARINT:
            after = self._skip_varint(after, position)
        elif wire_type == FIXED64:
            after += 8
        elif wire_type == FIXED32:
            after += 4
        elif wire_type == GROUP_START:
            after = self._skip_group(tag, after, end, depth + 1)
        else:
            problem = (
                "the end of a group that did not start"
                if wire_type == GROUP_END
                else f"wire type {wire_type}"
            )
            raise self._corrupt(problem, position)
        if after > end:
            raise self._overrun(tag, position, after - position, end - position, depth)
        return after

    def _skip_varint(self, start: int, field: int) -> int:
        for position in range(start, start + MAX_VARINT_LENGTH):
            if self._byte(position) < 0x80:
                return position + 1
        raise self._corrupt(f"a number of more than {MAX_VARINT_LENGTH} bytes", field)

    def _byte(self, position: int) -> int:
        if position >= self._source.size:
            raise self._incomplete(position + 1)
        if not self._start <= position < self._end:
            self._load(position)
        return self._window[position - self._start]

    def _skip_group(self, group_tag: int, start: int, end: int, depth: int) -> int:
        """Return the position after a group, which ONNX does not use and protobuf ignores."""
        if depth > MAX_DEPTH:
            raise self._corrupt(f"messages nested deeper than {MAX_DEPTH} levels", start)
        position = start
        while position < end:
            tag, after = self._number(position, MAX_TAG_LENGTH)
            if tag & 7 == GROUP_END and tag >> 3 == group_tag >> 3:
                return after
            if tag & 7 == DELIMITED and tag >= 8:
                length, after = self._number(after, MAX_VARINT_LENGTH)
                if after + length > end:
                    raise self._overrun(tag, position, length, end - after, depth)
                position = after + length
            else:
                position = self._skip(tag, position, after, end, depth)
        raise self._corrupt("a group without an end", start)

    def _number(self, start: int, max_length: int) -> tuple[int, int]:
        value = 0
        for index in range(max_length):
            byte = self._byte(start + index)
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value, start + index + 1
        raise self._corrupt(f"a number of more than {max_length} bytes", start)

    def _corrupt(self, problem: str, position: int) -> CorruptFileError:
        return CorruptFileError(
            f"Not an ONNX protobuf: {problem} at byte {position}", where=str(self._source.path)
        )

    def _incomplete(self, needed: int) -> CorruptFileError:
        return CorruptFileError(
            f"Not a complete ONNX file: protobuf ends early at byte {self._source.size} "
            f"of {needed}",
            where=str(self._source.path),
            hint="Copy or download it again",
        )

    def _bad_header(self, error: Exception, position: int) -> CorruptFileError:
        if isinstance(error, ValueError):
            return self._corrupt(str(error), position)
        return self._incomplete(self._source.size + 1)

    def _overrun(
        self, tag: int, position: int, length: int, room: int, depth: int
    ) -> CorruptFileError:
        number = tag >> 3
        if depth == 0 and MODEL_TAGS.get(number) == tag and length <= 1 << 48:
            return self._incomplete(self._source.size - room + length)
        return CorruptFileError(
            f"Not an ONNX protobuf: field {number} at byte {position} says {length} bytes"
            f" but only {max(room, 0)} are left",
            where=str(self._source.path),
        )


THRESHOLD: Final = 4096
"""Payloads of fewer bytes stay in the skeleton: an extra blob would cost more than they do."""

_SMALL_THRESHOLD: Final = 256
_LARGE_SKELETON: Final = 64 << 20


def cut(
    source: Source,
    blobs: BlobTable,
    *,
    threshold: int = THRESHOLD,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> ModelParts:
    """Return the file's ModelProto with a sentinel in the place of every large payload.

    Args:
        source: The file; it must stay open for as long as the blobs are used.
        blobs: Takes in the payloads.
        threshold: The length in bytes from which on a payload is large, at least 33. When more
            than 64 MB remain, it is lowered to 256.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        CorruptFileError: The file is empty, cut short, or not protobuf of a model.
        InputError: What remains is more than protobuf can hold.
        CancelledError: `cancelled` said so.
        FileChangedError: The file became shorter meanwhile.
    """
    if source.size == 0:
        raise CorruptFileError("File is empty (0 bytes)", where=str(source.path))
    mark = len(blobs)
    try:
        walk = Walk(source, blobs, threshold, progress, cancelled, to_the_end=False)
        try:
            skeleton_length = walk.model()
        except OnlySmallFieldsError:
            whole = ModelParts(source.read_whole())
            if not whole.has_long_piece(threshold):
                if progress is not None:
                    progress(source.size, source.size)
                return whole
            walk = Walk(source, blobs, threshold, progress, cancelled)
            skeleton_length = walk.model()
        if skeleton_length > _LARGE_SKELETON and threshold > _SMALL_THRESHOLD:
            blobs.forget_from(mark)
            walk = Walk(source, blobs, _SMALL_THRESHOLD, progress, cancelled)
            skeleton_length = walk.model()
        if skeleton_length > MAX_MESSAGE:
            raise InputError(
                f"{skeleton_length} bytes of the model are not tensor data, more than the 2 GiB "
                "that protobuf can hold",
                where=str(source.path),
            )
        skeleton = walk.skeleton()
        if progress is not None:
            progress(source.size, source.size)
        return ModelParts(skeleton)
    except BaseException:
        blobs.forget_from(mark)
        raise


def verify_model(path: str | os.PathLike[str]) -> None:
    """Check that a file can be opened again, by walking its structure; payloads are not read.

    Raises:
        CorruptFileError: It cannot.
    """
    source = Source.open(path)
    try:
        cut(source, BlobTable())
    finally:
        source.close()


__all__ = ["THRESHOLD", "cut", "pieces_length", "splice", "verify_model"]
