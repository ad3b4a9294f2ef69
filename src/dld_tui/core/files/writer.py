"""Write files so that a reader sees the old file or the new one, never half of it.

Everything that this program writes for the user goes through here: a temporary file in the same
folder, flushed to the disk, checked, and renamed over the target.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, FileChangedError, SaveError
from dld_tui.core.files import permission
from dld_tui.core.files.attributes import mode_of, take_over
from dld_tui.core.files.blobs import Blob, ByteCount, require_space, stored_length, stream
from dld_tui.core.files.source import Source, reason
from dld_tui.core.files.temporary import hold_open, release, staging_path, sweep
from dld_tui.core.files.wire import pieces_length
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback

"""Bytes to leave free for the file system's own bookkeeping."""


_HAS_UNNAMED = hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")
_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
"""What file systems and kernels say that cannot make a file without a name."""


class StagedFile:
    """A context in which a file is written, checked and renamed over its target, or removed.

    Args:
        path: The target. A symbolic link stays, the file that it leads to is replaced.
        length: How many bytes will be written.
        overwrite: Replace a target that exists: it is the program's own, or the user has agreed.
            Else :mod:`~dld_tui.core.files.permission` says whether it may be replaced.
        like: The file that the content was made from; see
            :func:`~dld_tui.core.files.writer.write_pieces`.
        durable: Whether the disk has it when it is committed, come what may.
        private: Whether nobody but its owner may read it, whoever could before.

    Raises:
        SaveError: It cannot be written there.
        UsageError: It may not be written there; see :mod:`dld_tui.core.process.confinement`.
        FileChangedError: The target is `like` and was changed by another program.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        length: int,
        *,
        overwrite: bool = False,
        like: Source | None = None,
        durable: bool = True,
        private: bool = False,
    ) -> None:
        self.path = Path(path)
        self._durable = durable
        self._private = private
        self._like = like
        self._lost: list[str] = []
        self._descriptor = -1
        self._temporary: Path | None = None
        self._unnamed = False
        with save_errors(self.path):
            try:
                self._target = Path(os.path.realpath(path))
                require_allowed(self._target)
                self._overwrite = overwrite or permission.may_replace(self.path)
                self._existing = self._examine()
            except ValueError as error:  # a path that no file can have
                raise SaveError(f"cannot be written: {error}", where=str(path)) from None
            require_space(self._target.parent, length, self.path)

    def __enter__(self) -> StagedFile:
        """Create the temporary file; where it can be one without a name, a kill leaves nothing."""
        # What replaces a private file is private from its first byte; else the umask decides.
        mode = 0o666 if self._existing is None and not self._private else 0o600
        folder = self._target.parent
        with save_errors(self.path):
            try:
                if not _HAS_UNNAMED:
                    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
                self._descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode)
                self._unnamed = True
            except OSError as error:
                if error.errno not in _NO_UNNAMED:
                    raise
                self._create_named(mode)
        return self

    def _create_named(self, mode: int) -> None:
        folder = self._target.parent
        sweep(folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while self._temporary is None:
            path = staging_path(folder)
            self._descriptor = os.open(path, flags, mode)
            if hold_open(path, self._descriptor):
                self._temporary = path
            else:
                self._close()

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file unless it became the target."""
        with suppress(OSError):  # the file is removed anyway
            self._close()
        if self._temporary is not None:
            with suppress(OSError):  # an error is already on its way to the user
                os.unlink(self._temporary)
            release(self._temporary)

    def _close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def write(self, pieces: Sequence[bytes | Blob], count: ByteCount) -> None:
        """Write the content.

        Raises:
            SaveError: The disk is full or fails.
            CancelledError: The count says so.
        """
        with save_errors(self.path):
            stream(self._descriptor, pieces, count)

    def seal(self, verify: Callable[[Path], None] | None = None) -> None:
        """Give the file what the one that it replaces has, flush it to the disk and check it.

        Raises:
            SaveError: One of these failed.
        """
        with save_errors(self.path):
            self._take_over()
            if self._durable:
                with suppress_unsupported():
                    os.fsync(self._descriptor)
        if verify is None:
            return
        try:
            verify(self._temporary or Path(f"/proc/self/fd/{self._descriptor}"))
        except CancelledError:
            raise
        except DldError as error:
            raise SaveError(
                f"what was written cannot be read back: {error.message}",
                where=str(self.path),
                hint="The file that was there is untouched",
            ) from error

    def commit(self) -> list[str]:
        """Rename the file over its target and return remarks for the user.

        Raises:
            SaveError: It cannot be renamed.
            FileChangedError: The target was changed by another program.
        """
        self._require_unchanged()
        with save_errors(self.path):
            if self._unnamed:
                self._give_name()
            self._close()
            assert self._temporary is not None
            move(self._temporary, self._target, overwrite=self._overwrite)
        release(self._temporary)
        self._temporary = None
        if self._durable:
            self._flush_folder()
        remarks = not_kept(self.path, self._lost)
        links = self._existing.st_nlink if self._existing is not None else 1
        if links > 1:
            others = "another hard link" if links == 2 else f"{links - 1} other hard links"
            remarks.append(f"{self.path}: {others} of it still has the old content")
        return remarks

    def retract(self) -> None:
        """Remove the target again, after a commit that made it: a file of its set failed."""
        if self._existing is None:
            with suppress(OSError):  # an error is already on its way to the user
                os.unlink(self._target)

    def _give_name(self) -> None:
        path = staging_path(self._target.parent)
        folder = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A folder's descriptor makes Python call linkat, which follows the link in /proc.
            os.link(f"/proc/self/fd/{self._descriptor}", path.name, dst_dir_fd=folder)
        finally:
            os.close(folder)
        hold_open(path, self._descriptor)
        self._temporary = path
        self._unnamed = False

    def _examine(self) -> os.stat_result | None:
        try:
            status = os.lstat(self._target)
        except FileNotFoundError:
            if not self._target.parent.is_dir():
                raise SaveError(
                    f"the folder {self._target.parent} does not exist", where=str(self.path)
                ) from None
            return None
        if stat.S_ISDIR(status.st_mode):
            raise SaveError("cannot be written: it is a directory", where=str(self.path))
        if not stat.S_ISREG(status.st_mode):
            raise SaveError("cannot be written: it is not a regular file", where=str(self.path))
        if not self._overwrite:
            raise _exists(self.path)
        self._require_unchanged()
        return status

    def _require_unchanged(self) -> None:
        if self._like is None or os.path.realpath(self._like.path) != str(self._target):
            return
        if self._like.changed_on_disk() and os.path.lexists(self._target):
            raise FileChangedError(
                "the file was changed by another program since it was opened", where=str(self.path)
            )

    def _take_over(self) -> None:
        if self._overwrite:
            with suppress(FileNotFoundError):  # looked at now: its mode may have changed
                self._lost = take_over(self._descriptor, self._target, private=self._private)
                return
        if self._like is not None:
            # A copy of a private file is private; a copy of a read-only one is not read-only.
            allowed = mode_of(self._like.descriptor) | stat.S_IRUSR | stat.S_IWUSR
            os.fchmod(self._descriptor, stat.S_IMODE(os.fstat(self._descriptor).st_mode) & allowed)

    def _flush_folder(self) -> None:
        # The new file is in place: failing to flush its name is no failure to save.
        with suppress(OSError):
            descriptor = os.open(self._target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def not_kept(path: Path, lost: Sequence[str]) -> list[str]:
    """Return the remark on what a file had that could not be kept; none when there is nothing."""
    return [f"{path}: {' and '.join(lost)} could not be kept"] if lost else []


def put_in_place(written: Path, target: Path, *, overwrite: bool = False) -> list[str]:
    """Rename what another program wrote over a file, which keeps what it had; return remarks.

    Args:
        written: A file or folder that is whole, in a folder that nobody else can enter or with the
            mode of a private file.
        target: On the same file system.
        overwrite: See :class:`StagedFile`.

    Raises:
        SaveError: There is a file that may not be replaced.
        OSError: It cannot be renamed.
    """
    lost: list[str] = []
    if target.is_file() and not target.is_symlink() and written.is_file():
        descriptor = os.open(written, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lost = take_over(descriptor, target, private=False)
            with suppress_unsupported():
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    move(written, target, overwrite=overwrite)
    return not_kept(target, lost)


def move(source: Path, target: Path, *, overwrite: bool = False) -> None:
    """Rename a file; see :class:`StagedFile` for what may be replaced.

    Raises:
        SaveError: There is a file that may not be replaced.
        OSError: It cannot be renamed.
    """
    require_allowed(target.parent)
    if overwrite or permission.may_replace(target):
        os.replace(source, target)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise _exists(target) from None
        os.rename(source, target)
    else:
        os.unlink(source)


def _exists(path: Path) -> SaveError:
    return SaveError(
        "the file exists", where=str(path), hint="Choose another name or allow overwriting"
    )


@contextmanager
def suppress_unsupported() -> Iterator[None]:
    """Ignore that a file system cannot flush."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise


@contextmanager
def save_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into a SaveError for `path`.

    Raises:
        SaveError: With the cause in words.
    """
    try:
        yield
    except OSError as error:
        code = error.errno
        message, hint = f"cannot be written: {reason(error)}", "What was there is untouched"
        if code in (errno.ENOSPC, errno.EDQUOT):
            message, hint = "the disk is full; what was there is untouched", "Save to another disk"
        elif code in (errno.EACCES, errno.EPERM):
            message, hint = "the folder is not writable", "Save to another folder"
        elif code == errno.EROFS:
            message, hint = "its disk is read-only", "Save to another folder"
        raise SaveError(message, where=str(path), hint=hint) from error


_OTHER_SURROGATES = "[\ud800-\udc7f\udd00-\udfff]"
"""Those that stand for no byte, as JSON with half a pair of escapes has them."""


@dataclass(frozen=True)
class Output:
    """One file to write."""

    path: Path
    pieces: Sequence[bytes | Blob]
    overwrite: bool = False
    """See :class:`StagedFile`."""
    like: Source | None = None
    """See :func:`write_pieces`."""
    verify: Callable[[Path], None] | None = None
    """See :func:`write_pieces`."""
    durable: bool = True
    """False for what may be lost when the machine fails; it is never half there."""
    private: bool = False
    """Whether nobody but its owner may read it, whoever could before."""


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Sequence[bytes | Blob],
    *,
    overwrite: bool = False,
    like: Source | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    verify: Callable[[Path], None] | None = None,
) -> list[str]:
    """Write a file in one atomic step and return remarks for the user, mostly none.

    A symbolic link stays and its target is replaced. A file that was there keeps its owner, mode,
    access control list and extended attributes; what could not be kept, and other hard links, which
    keep the old content, are remarked on.

    Args:
        path: The file to make or replace; may be one that `pieces` are read from.
        pieces: Its content.
        overwrite: See :class:`StagedFile`.
        like: The file that the content was made from. A new file grants no more than it does; when
            it is the file at `path`, the write is refused if another program changed it. None
            replaces whatever is there.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked at least every 16 MiB.
        verify: Called with the finished temporary file; what it raises ends the write.

    Raises:
        SaveError: The file could not be written; what was there is untouched.
        FileChangedError: The target, or a file that payloads are read from, was changed by another
            program.
        CancelledError: `cancelled` said so; what was there is untouched.
    """
    output = Output(Path(path), pieces, overwrite, like, verify)
    return write_set([output], progress=progress, cancelled=cancelled)


def write_set(
    outputs: Sequence[Output],
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write files that belong together and return remarks for the user.

    All are complete on the disk before the first is renamed, and they are renamed in the order
    given: put data files under new names first and the file that refers to them last.

    Raises:
        SaveError: One could not be written.
        FileChangedError: See :func:`write_pieces`.
        CancelledError: `cancelled` said so; nothing was replaced.
    """
    if len(outputs) > 1:
        require_distinct([output.path for output in outputs])
    total = sum(pieces_length(output.pieces) for output in outputs)
    needed = sum(stored_length(output.pieces) for output in outputs)
    count = ByteCount(total, progress, cancelled)
    remarks: list[str] = []
    with ExitStack() as stack:
        # Each asks for the room of all: they are nearly always on one disk.
        staged = [
            stack.enter_context(
                StagedFile(
                    output.path,
                    needed,
                    overwrite=output.overwrite,
                    like=output.like,
                    durable=output.durable,
                    private=output.private,
                )
            )
            for output in outputs
        ]
        for file, output in zip(staged, outputs, strict=True):
            file.write(output.pieces, count)
            file.seal(output.verify)
        for place, file in enumerate(staged):
            try:
                remarks += file.commit()
            except BaseException:
                for committed in staged[:place]:
                    committed.retract()
                raise
    return remarks


def require_distinct(paths: Sequence[Path]) -> None:
    """Refuse outputs that are one file: the one that is written last would be all that is left.

    They are one where their resolved paths are the same, where what is there is the same (device
    and inode: hard links), and where the file system takes two spellings for the same name.

    Raises:
        SaveError: Names both.
    """
    seen: list[tuple[str, tuple[int, int] | None, Path]] = []
    for path in paths:
        real = os.path.realpath(path)
        identity: tuple[int, int] | None = None
        with suppress(OSError):
            status = os.stat(real)
            identity = (status.st_dev, status.st_ino)
        for other_real, other_identity, other in seen:
            same = real == other_real or (identity is not None and identity == other_identity)
            if same or (real.casefold() == other_real.casefold() and _ignores_case(real)):
                raise SaveError(
                    f"{visible(str(other))} is the same file: one would overwrite the other",
                    where=str(path),
                    hint="Choose another name for one of them",
                )
        seen.append((real, identity, path))


def _ignores_case(path: str) -> bool:
    """Return whether the file system of a file that may not be there yet ignores the case."""
    folder = os.path.dirname(path)
    other = os.path.join(os.path.dirname(folder), os.path.basename(folder).swapcase())
    try:
        return other != folder and os.path.samefile(folder, other)
    except OSError:
        return False


def write_bytes(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> list[str]:
    """Write a small file in one atomic step; see :func:`write_pieces`."""
    return write_pieces(path, [data], overwrite=overwrite)


def write_text(
    path: str | os.PathLike[str],
    text: str,
    *,
    overwrite: bool = False,
    durable: bool = True,
    private: bool = False,
) -> list[str]:
    """Write text as UTF-8 in one atomic step; see :func:`write_pieces` and :class:`Output`.

    Bytes that are no UTF-8 are written as they were read; other lone surrogates become ``?``.
    """
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = re.sub(_OTHER_SURROGATES, "?", text).encode("utf-8", "surrogateescape")
    return write_set([Output(Path(path), [data], overwrite, durable=durable, private=private)])


_CLONE = 0x40049409
"""``FICLONE`` of linux/fs.h."""
_CANNOT = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS}


def clone(source: Path, target: Path) -> bool:
    """Make a file with the content of another one and return whether its blocks could be shared.

    A reflink, of Linux on file systems such as btrfs, XFS, bcachefs and OCFS2: the two share the
    blocks until one of them is changed.

    Args:
        source: A file.
        target: What is made; with False, it is not there afterwards.

    Raises:
        OSError: It cannot be read, or the other not made for another reason.
    """
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    is_cloned = False
    try:
        is_cloned = _share(source, descriptor)
        if is_cloned:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
        if not is_cloned:
            target.unlink()
    return is_cloned


def can_clone(source: Path, folder: Path) -> bool:
    """Return whether a clone of a file can be made in a folder that exists, by making one."""
    try:
        with tempfile.TemporaryFile(dir=folder) as trial:
            return _share(source, trial.fileno())
    except OSError:
        return False


def _share(source: Path, descriptor: int) -> bool:
    """Give an open file the blocks of another one; False where the file system cannot."""
    with source.open("rb") as file:
        try:
            fcntl.ioctl(descriptor, _CLONE, file.fileno())
        except OSError as error:
            if error.errno in _CANNOT:
                return False
            raise
    return True
