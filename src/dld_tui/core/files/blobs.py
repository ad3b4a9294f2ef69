"""Payloads that stay in their file, the sentinels that stand for them, and copying them.

A sentinel is 32 bytes of ASCII: a random nonce of the document and a number. As all its bytes are
below 0x80 it is a valid value of every payload field: of ``bytes``, of packed floats and doubles,
and of packed varints.

A :class:`PatchedBlob` never changes: a further patch makes another one, which shares nearly all
of its parts, because the history keeps both. The patches are in layers, newer over older ones,
and a new layer takes in those below that are not larger: n patches one after the other make at
most log2(n) layers and are merged at most that often each.
"""

from __future__ import annotations

import errno
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, SaveError
from dld_tui.core.files.source import Identity, Source, reason
from dld_tui.core.types import CancelCheck, ProgressCallback

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


def payload_digest(payload: Blob | bytes, cancelled: CancelCheck | None = None) -> str:
    """Return the SHA-256 of a payload.

    Raises:
        CancelledError: `cancelled` returned True.
    """
    import hashlib  # with OpenSSL, which takes 4 MB

    digest = hashlib.sha256()
    for part in (payload,) if isinstance(payload, bytes) else payload.chunks():
        if cancelled is not None and cancelled():
            raise CancelledError
        digest.update(part)
    return digest.hexdigest()


class BlobTable:
    """The payloads of one document by their sentinel."""

    def __init__(self) -> None:
        self._nonce = os.urandom(_NONCE_LENGTH // 2).hex().encode("ascii")
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

    def reopened(self) -> BlobTable:
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
        new_blobs: dict[Blob, Blob] = {}
        offset = 0
        for piece in pieces:
            if isinstance(piece, bytes):
                offset += len(piece)
            else:
                new_blobs[piece] = Blob(source, offset, piece.length, piece.field)
                offset += piece.length
        self._blobs = [new_blobs.get(blob, blob) for blob in self._blobs]


_SPARE = 1 << 20


def require_space(folder: Path, length: int, where: Path) -> None:
    """Refuse to write more bytes to a folder than its disk has room for.

    Raises:
        SaveError: There is less room.
    """
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    # Some network file systems say 0 of 0.
    if space.f_blocks and length + _SPARE > free:
        raise SaveError(
            f"{fmt.size(length)} and a spare of {fmt.size(_SPARE)} are needed and only"
            f" {fmt.size(free)} are free on its disk",
            where=str(where),
            hint="Free some space or save to another disk",
        )


class SpillFile:
    """New payloads made by edits, in a temporary file without a name.

    Args:
        folder: Where to make it; by default a folder that is on a disk rather than in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or spill_folder()
        self._source: Source | None = None

    def append(
        self, data: bytes | Iterable[bytes], field: str = "raw_data", length: int = 0
    ) -> Blob:
        """Write a payload at the end and return it.

        Args:
            data: The payload, perhaps in parts.
            field: That it is the payload of.
            length: Its bytes, where they are known before.

        Raises:
            SaveError: The disk is full or cannot be written; the file is as before.
        """
        source = self._open()
        if length:
            require_space(self._folder, length, self._folder)
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


_COPY_CHUNK = 16 << 20
_BUFFER = 1 << 20
_KERNEL_COPY = 64 << 10
"""From this length on a payload is copied inside the kernel, which on some file systems shares its
blocks."""

_NO_KERNEL_COPY = frozenset(
    {
        errno.EXDEV,
        errno.EINVAL,
        errno.ENOSYS,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.ETXTBSY,
        errno.EBADF,
    }
)


class ByteCount:
    """How much is written, over one or several files, and whether to go on.

    Args:
        total: Bytes to write in all.
        progress: Called with bytes done and in all.
        cancelled: Asked before each step.
    """

    def __init__(
        self,
        total: int,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
    ) -> None:
        self._total = total
        self._done = 0
        self._progress = progress
        self._cancelled = cancelled

    def add(self, count: int) -> None:
        """Count bytes just written.

        Raises:
            CancelledError: The work should stop.
        """
        self._done += count
        if self._cancelled is not None and self._cancelled():
            raise CancelledError
        if self._progress is not None:
            self._progress(self._done, self._total)


def stream(descriptor: int, pieces: Sequence[bytes | Blob], count: ByteCount) -> None:
    """Write the pieces to a file, at its position.

    Raises:
        OSError: The file cannot be written.
        FileChangedError: A file that payloads are read from became shorter.
        CancelledError: The count says so.
    """
    count.add(0)
    buffer: list[bytes] = []
    buffered = 0
    for piece in _segments(pieces):
        if isinstance(piece, Blob) and piece.length >= _KERNEL_COPY:
            _write(descriptor, b"".join(buffer), count)
            buffer, buffered = [], 0
            _copy(descriptor, piece, count)
            continue
        data = piece if isinstance(piece, bytes) else piece.read()
        buffer.append(data)
        buffered += len(data)
        if buffered >= _BUFFER:
            _write(descriptor, b"".join(buffer), count)
            buffer, buffered = [], 0
    _write(descriptor, b"".join(buffer), count)
    if os.lseek(descriptor, 0, os.SEEK_CUR) > os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))  # it ends with a hole


def stored_length(pieces: Sequence[bytes | Blob]) -> int:
    """Return how many bytes :func:`stream` puts on a disk: holes of large payloads stay holes."""
    total = 0
    for piece in _segments(pieces):
        if isinstance(piece, bytes):
            total += len(piece)
        elif piece.length < _KERNEL_COPY:
            total += piece.length
        else:
            total += sum(length for length, is_hole in _extents(piece) if not is_hole)
    return total


def _extents(blob: Blob) -> Iterator[tuple[int, bool]]:
    """Yield the lengths of the parts of a payload, and whether each is a hole of its file."""
    at, end = blob.offset, blob.offset + blob.length
    while at < end:
        try:
            data = os.lseek(blob.source.descriptor, at, os.SEEK_DATA)
            hole = os.lseek(blob.source.descriptor, data, os.SEEK_HOLE)
        except OSError as error:
            # A hole to the end of the file, a file that became shorter, or one that cannot tell.
            is_there = os.fstat(blob.source.descriptor).st_size >= end
            yield end - at, error.errno == errno.ENXIO and is_there
            return
        if data > at:
            yield min(data, end) - at, True
        if data < end:
            yield min(hole, end) - data, False
        at = hole


def _segments(pieces: Sequence[bytes | Blob]) -> Iterator[bytes | Blob]:
    for piece in pieces:
        if isinstance(piece, Blob):
            yield from piece.segments()
        else:
            yield piece


def _write(descriptor: int, data: bytes, count: ByteCount) -> None:
    view = memoryview(data)
    while view:
        written_bytes = os.write(descriptor, view[:_COPY_CHUNK])
        count.add(written_bytes)
        view = view[written_bytes:]


def _copy(descriptor: int, blob: Blob, count: ByteCount) -> None:
    at = blob.offset
    for length, is_hole in _extents(blob):
        if is_hole:
            os.lseek(descriptor, length, os.SEEK_CUR)
            count.add(length)
        else:
            _copy_data(descriptor, Blob(blob.source, at, length, blob.field), count)
        at += length


def _copy_data(descriptor: int, blob: Blob, count: ByteCount) -> None:
    done = _copy_in_kernel(descriptor, blob, count) if hasattr(os, "copy_file_range") else 0
    while done < blob.length:
        data = blob.read(done, _COPY_CHUNK // 2)
        _write(descriptor, data, count)
        done += len(data)


def _copy_in_kernel(descriptor: int, blob: Blob, count: ByteCount) -> int:
    """Return how many bytes were copied; fewer than all when the kernel cannot."""
    done = 0
    while done < blob.length:
        size = min(_COPY_CHUNK, blob.length - done)
        try:
            copied = os.copy_file_range(
                blob.source.descriptor, descriptor, size, blob.offset + done
            )
        except OSError as error:
            if error.errno in _NO_KERNEL_COPY:
                break
            raise
        if copied == 0:  # the end of the source, which the plain read then reports
            break
        done += copied
        count.add(copied)
    return done
