"""Open files that are read at offsets, and that know when somebody else changed them.

Payloads are read with ``pread``, never mapped: a mapped file that another program cuts short kills
the process with SIGBUS, where a read only comes back short.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import FileChangedError, InputError

if TYPE_CHECKING:
    from mmap import mmap

_NULL_BYTE, _NO_NAME = "null byte", "has an empty name"
"""In what Python says of a path with a NUL byte, and of one that ends in no name."""
_TOO_LARGE = "Value out of range: "
"""What protobuf says of an integer that its field cannot hold."""

_READ_SLICE = 1 << 30
"""Linux reads at most 2 GiB - 4 KiB a call."""
_HUGE = 4 << 20
"""Bytes from which on memory in huge pages is worth asking for: two of them on most systems."""

FileContent: TypeAlias = "bytes | mmap"
"""Bytes of a file in memory; a slice of either type is ``bytes``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one state of a file from another without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """Return the identity in a ``stat`` result."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class Source:
    """An open read-only regular file.

    The descriptor stays open while any blob refers to the source, so the bytes stay readable after
    the path was replaced by another file (which is how this program and most others save).
    """

    __slots__ = ("__weakref__", "_close", "_descriptor", "identity", "path", "size")

    def __init__(self, path: Path, descriptor: int, identity: Identity) -> None:
        """Take over an open descriptor; use :meth:`open` for a path."""
        self.path = path
        self.size = identity.size
        """Size in bytes when it was opened (a spill file grows)."""
        self.identity = identity
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, follow_link: bool = True) -> Source:
        """Open a regular file for reading.

        Args:
            path: The file.
            follow_link: False refuses a symbolic link as the last part of the path.

        Raises:
            InputError: The path is missing, is not a regular file, or may not be read.
        """
        # Without O_NONBLOCK, opening a FIFO waits for a writer for ever.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        if not follow_link:
            flags |= os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise open_error(path, error) from error
        try:
            status = os.fstat(descriptor)
            _require_regular(path, status)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(Path(path), descriptor, Identity.of(status))

    @property
    def descriptor(self) -> int:
        """The open file descriptor, for calls that copy inside the kernel.

        Raises:
            ValueError: The source was closed.
        """
        if self._descriptor < 0:
            raise ValueError(f"{self.path} is closed")
        return self._descriptor

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes from `offset`.

        Raises:
            InputError: The range is not inside the file, or the device fails.
            FileChangedError: The file is shorter than when it was opened.
        """
        # Checked before the call: it allocates what is asked for.
        if offset < 0 or length < 0 or offset + length > self.size:
            raise InputError(
                f"bytes {offset} to {offset + length} are not in the file of {self.size} bytes",
                where=str(self.path),
            )
        parts: list[bytes] = []
        while length > 0:
            part = self._pread(min(length, _READ_SLICE), offset)
            if not part:
                raise self.shrank()
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_whole(self) -> FileContent:
        """Return the content of the file, for a large file in anonymous memory of huge pages.

        Most of the time of a read goes into page faults of the memory that it fills.

        Raises:
            InputError: The device fails.
            FileChangedError: The file is shorter than when it was opened.
        """
        import mmap

        if self.size < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
            return self.read(0, self.size)
        content = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # this kernel has no huge pages
            content.madvise(mmap.MADV_HUGEPAGE)
        offset = 0
        with memoryview(content) as memory:
            while offset < self.size:
                try:
                    length = os.preadv(self.descriptor, [memory[offset:]], offset)
                except OSError as error:
                    raise self._failed(offset, error) from error
                if not length:
                    raise self.shrank()
                offset += length
        return content

    def _pread(self, length: int, offset: int) -> bytes:
        try:
            return os.pread(self.descriptor, length, offset)
        except OSError as error:
            raise self._failed(offset, error) from error

    def _failed(self, offset: int, error: OSError) -> InputError:
        return InputError(f"cannot be read at byte {offset}: {reason(error)}", where=str(self.path))

    @contextmanager
    def reading_here_and_there(self) -> Iterator[None]:
        """Tell the system that reads are small and far apart, so that it reads nothing ahead."""
        if not hasattr(os, "posix_fadvise"):
            yield
            return
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        try:
            yield
        finally:
            os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_NORMAL)

    def shrank(self) -> FileChangedError:
        """Return the error to raise when a read comes back short."""
        return FileChangedError(
            "the file became shorter while it was open",
            where=str(self.path),
            hint="Another program is writing it: open it again when that is done",
        )

    def changed_on_disk(self) -> bool:
        """Return True when the path holds another file or another state of it than was opened."""
        try:
            return Identity.of(os.stat(self.path)) != self.identity
        except OSError:
            return True

    def reopened(self) -> Source:
        """Return the same open file with a descriptor of its own, which closes on its own."""
        other = Source(self.path, os.dup(self.descriptor), self.identity)
        other.size = self.size
        return other

    def close(self) -> None:
        """Close the file; blobs that refer to it cannot be read any more."""
        self._descriptor = -1
        self._close()


def reason(error: OSError | ValueError) -> str:
    """Return the operating system's words for an error, without the path in them."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)


def open_error(path: str | os.PathLike[str], error: OSError | ValueError) -> InputError:
    """Return the error that says why a path could not be opened or examined."""
    where = os.fspath(path)
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return InputError("File not found", where=where)
    if code in (errno.EACCES, errno.EPERM):
        return InputError("Permission denied", where=where)
    if code == errno.EISDIR:
        return _is_folder(where)
    if code in (errno.ENXIO, errno.ENODEV):  # a socket, or a device without a driver
        return InputError("Not a regular file", where=where)
    return InputError(reason(error), where=where)


_OF_NAMES = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG,
    errno.ELOOP, errno.EINVAL, errno.EEXIST, errno.ENOTEMPTY, errno.EROFS, errno.ENXIO,
}  # fmt: skip
"""What the operating system says of a name that cannot be, or is of something else."""


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InputError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise open_error(path, error) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error.reason}", where=str(path)) from None


def input_error(error: BaseException, texts: Iterable[str]) -> InputError | None:
    """Return the line for an error that a name or a text from outside causes; None for a bug.

    For the boundaries where anything may arrive that a library has raised.

    Args:
        error: What was raised.
        texts: What came from outside: arguments, or the settings of a request.
    """
    if isinstance(error, OSError) and error.errno in _OF_NAMES and error.filename is not None:
        found = open_error(os.fsdecode(error.filename), error)
        found.hint = found.hint or "Give another path"
        return found
    if isinstance(error, OverflowError) or (
        isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE)
    ):
        return InputError("a number is too large", hint="Give a smaller one")
    if isinstance(error, RecursionError):
        return InputError("it is nested too deeply", hint="Write it with fewer levels")
    odd = next((text for text in texts if not _is_utf8(text)), None)
    if odd is not None and isinstance(error, (UnicodeError, TypeError)):
        return InputError(
            "the name is not UTF-8, which a library needs here", where=odd,
            hint="Rename the file, or make a link to it with another name",
        )  # fmt: skip
    if isinstance(error, ValueError) and _NO_NAME in str(error):
        return InputError("the path of a file ends in no name", hint="Give the name of a file")
    if isinstance(error, ValueError) and _NULL_BYTE in str(error):
        return InputError("a name holds a NUL byte", hint="Give another name")
    return None


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_folder(where: str) -> InputError:
    return InputError("Is a folder", hint="Name a file in it", where=where)


def _require_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _is_folder(os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError("Not a regular file", where=os.fspath(path))
