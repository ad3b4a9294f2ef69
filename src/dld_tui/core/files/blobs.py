"""Payloads that stay in their file, and the sentinels that stand for them in a protobuf message.

A sentinel is 32 bytes of ASCII: a random nonce of the document and a number. As all its bytes are
below 0x80 it is a valid value of every payload field: of ``bytes``, of packed floats and doubles,
and of packed varints.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import SaveError
from dld_tui.core.files.source import Identity, Source, reason

SENTINEL_LENGTH = 32
_NONCE_LENGTH = 20
_CHUNK = 8 << 20

FIXED_WIDTH_FIELDS = frozenset({"raw_data", "float_data", "double_data", "s"})
"""Fields whose bytes are the values themselves, little-endian; the others hold varints."""

PAYLOAD_FIELDS = FIXED_WIDTH_FIELDS | {"int32_data", "int64_data", "uint64_data"}
"""Fields that a payload can be cut out of."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A payload in a file: `length` bytes at `offset`."""

    source: Source
    offset: int
    length: int
    field: str
    """The protobuf field that it is the content of, e.g. ``raw_data`` or ``int32_data``."""

    @property
    def is_stored(self) -> bool:
        """True when the file holds just these bytes at the offset."""
        return True

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return the bytes from `start`, all that follow when `length` is None.

        Raises:
            FileChangedError: The file is shorter than when it was opened.
        """
        start = min(start, self.length)
        room = self.length - start
        return self.source.read(self.offset + start, room if length is None else min(length, room))

    def chunks(self, size: int = _CHUNK) -> Iterator[bytes]:
        """Yield all bytes in parts of at most `size` bytes."""
        for start in range(0, self.length, size):
            yield self.read(start, size)

    def segments(self) -> Iterator[bytes | Blob]:
        """Yield bytes and ranges of files that make up the payload, for copying it."""
        yield self


class BlobTable:
    """The payloads of one document by their sentinel."""

    def __init__(self) -> None:
        self._nonce = secrets.token_hex(_NONCE_LENGTH // 2).encode("ascii")
        self._blobs: list[Blob] = []

    @property
    def nonce(self) -> bytes:
        """The bytes that every sentinel of this table starts with."""
        return self._nonce

    def __len__(self) -> int:
        """Return how many payloads were added."""
        return len(self._blobs)

    def add(self, blob: Blob) -> bytes:
        """Take in a payload and return its sentinel, the value for the protobuf field."""
        self._blobs.append(blob)
        return b"%b%012d" % (self._nonce, len(self._blobs) - 1)

    def get(self, sentinel: bytes) -> Blob | None:
        """Return the payload of a sentinel, None when the bytes are something else."""
        if len(sentinel) != SENTINEL_LENGTH or not sentinel.startswith(self._nonce):
            return None
        digits = sentinel[_NONCE_LENGTH:]
        if not digits.isdigit() or int(digits) >= len(self._blobs):
            return None
        return self._blobs[int(digits)]

    def again(self) -> BlobTable:
        """Return another table with the same sentinels, for a model made of parts of this one."""
        other = BlobTable()
        other._nonce = self._nonce
        other._blobs = list(self._blobs)
        return other

    def forget_from(self, mark: int) -> None:
        """Drop the payloads that were added since the table had `mark` of them."""
        del self._blobs[mark:]

    def repoint(self, pieces: Sequence[bytes | Blob], source: Source) -> None:
        """Make the payloads of a file just written refer to that file.

        Payloads that are not among `pieces` (only the undo history needs them) keep their old file
        open.

        Args:
            pieces: What was written, from its first byte.
            source: The file that now holds it.
        """
        written: dict[Blob, Blob] = {}
        offset = 0
        for piece in pieces:
            if isinstance(piece, bytes):
                offset += len(piece)
            else:
                written[piece] = Blob(source, offset, piece.length, piece.field)
                offset += piece.length
        self._blobs = [written.get(blob, blob) for blob in self._blobs]


class SpillFile:
    """New payloads made by edits, in a temporary file without a name.

    Args:
        folder: Where to make it; by default a folder that is on a disk rather than in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or spill_folder()
        self._source: Source | None = None

    def append(self, data: bytes | Iterable[bytes], field: str = "raw_data") -> Blob:
        """Write a payload at the end and return it.

        Raises:
            SaveError: The disk is full or cannot be written; the file is as before.
        """
        source = self._open()
        start = offset = source.size
        try:
            for part in (data,) if isinstance(data, bytes) else data:
                view = memoryview(part)
                while view:
                    count = os.pwrite(source.descriptor, view, offset)
                    offset += count
                    view = view[count:]
        except OSError as error:
            raise SaveError(
                f"cannot hold the new data of an edit: {reason(error)}", where=str(self._folder)
            ) from error
        source.size = offset
        return Blob(source, start, offset - start, field)

    def _open(self) -> Source:
        if self._source is None:
            try:
                with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                    descriptor = os.dup(file.fileno())
            except OSError as error:
                raise SaveError(
                    f"cannot hold the new data of an edit: {reason(error)}",
                    where=str(self._folder),
                    hint="Set TMPDIR to a folder with free space",
                ) from error
            self._source = Source(
                self._folder / "(edits)", descriptor, Identity.of(os.fstat(descriptor))
            )
        return self._source

    def close(self) -> None:
        """Close the file and free its space; its payloads cannot be read any more."""
        if self._source is not None:
            self._source.close()
            self._source = None


def spill_folder() -> Path:
    """Return the folder for large temporary files."""
    # /tmp is often in memory, which is what a payload should not be in.
    if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())
