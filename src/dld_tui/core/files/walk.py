"""Walk the protobuf wire format of an ONNX file, entering only what may hold large payloads.

The walk is plain Python, so its cost is in the number of fields it looks at: everything smaller
than the threshold, which is nearly every node of a model, is stepped over as one.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dld_tui.core.errors import CancelledError, CorruptFileError
from dld_tui.core.files.blobs import SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.fields import (
    DELIMITED,
    ELEMENT_WIDTH,
    FIXED32,
    FIXED64,
    GROUP_END,
    GROUP_START,
    MAX_DEPTH,
    MAX_TAG_LENGTH,
    MAX_VARINT_LENGTH,
    MODEL,
    MODEL_TAGS,
    VARINT,
    Kind,
    read_varint,
    varint,
)
from dld_tui.core.files.source import Source
from dld_tui.core.types import CancelCheck, ProgressCallback

_FIRST_WINDOW: Final = 64 << 10
_SMALL_WINDOW: Final = 4 << 10
_LARGE_WINDOW: Final = 4 << 20
_NEAR: Final = 64 << 10
"""Payloads of up to about this length are read through: a disk takes longer to answer twice."""

_HEADER: Final = MAX_TAG_LENGTH + MAX_VARINT_LENGTH

_Piece: TypeAlias = "bytes | tuple[int, int]"
"""Bytes of the skeleton, or the range of the file that they are in."""


class Walk:
    """One pass over a file, which cuts payloads out of it.

    Args:
        source: The file.
        blobs: Takes in the payloads.
        threshold: The length in bytes from which on a payload is cut out.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked at each read.
    """

    def __init__(
        self,
        source: Source,
        blobs: BlobTable,
        threshold: int,
        progress: ProgressCallback | None,
        cancelled: CancelCheck | None,
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
        self._pieces: list[_Piece] = []

    def model(self) -> int:
        """Walk the whole file and return the length of its skeleton."""
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
        # After far jumps a large window would hold payload that nobody looks at.
        if self._jumped > self._jumps * _NEAR:
            self._size = _SMALL_WINDOW
        elif self._end:
            self._size = min(self._size * 4, _LARGE_WINDOW)
        self._jumped = self._jumps = 0
        self._start = position
        self._end = min(position + self._size, self._source.size)
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
            what = (
                "the end of a group that did not start"
                if wire_type == GROUP_END
                else f"wire type {wire_type}"
            )
            raise self._corrupt(what, position)
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

    def _corrupt(self, what: str, position: int) -> CorruptFileError:
        return CorruptFileError(
            f"Not an ONNX protobuf: {what} at byte {position}", where=str(self._source.path)
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
