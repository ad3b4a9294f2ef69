"""Copy bytes and payloads to an open file, inside the kernel where it can."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

from dld_tui.core.errors import CancelledError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.types import CancelCheck, ProgressCallback

_CHUNK = 16 << 20
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
    held = 0
    for piece in _segments(pieces):
        if isinstance(piece, Blob) and piece.length >= _KERNEL_COPY:
            _write(descriptor, b"".join(buffer), count)
            buffer, held = [], 0
            _copy(descriptor, piece, count)
            continue
        data = piece if isinstance(piece, bytes) else piece.read()
        buffer.append(data)
        held += len(data)
        if held >= _BUFFER:
            _write(descriptor, b"".join(buffer), count)
            buffer, held = [], 0
    _write(descriptor, b"".join(buffer), count)


def _segments(pieces: Sequence[bytes | Blob]) -> Iterator[bytes | Blob]:
    for piece in pieces:
        if isinstance(piece, Blob):
            yield from piece.segments()
        else:
            yield piece


def _write(descriptor: int, data: bytes, count: ByteCount) -> None:
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view[:_CHUNK])
        count.add(written)
        view = view[written:]


def _copy(descriptor: int, blob: Blob, count: ByteCount) -> None:
    done = _copy_in_kernel(descriptor, blob, count) if hasattr(os, "copy_file_range") else 0
    while done < blob.length:
        data = blob.read(done, _CHUNK // 2)
        _write(descriptor, data, count)
        done += len(data)


def _copy_in_kernel(descriptor: int, blob: Blob, count: ByteCount) -> int:
    """Return how many bytes were copied; fewer than all when the kernel cannot."""
    done = 0
    while done < blob.length:
        size = min(_CHUNK, blob.length - done)
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
