"""Temporary files and folders, which somebody removes even if this process is killed.

Each is made here, and the process that makes one holds a lock on it, which the system releases when
the process ends, however that happens: so a number of a process that belongs to another one by now
cannot be taken for the owner. Who makes something in the same place next removes what nobody holds.
Names end with check digits, so that a file of somebody else is never taken for ours.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dld_tui.core.process.paths import cache_dir

_NAME = r"(\.?dld-[a-z]+-[0-9a-f]{7})-([0-9a-f]{8})"
VIEW = "view"
"""The kind of views of a model."""
VIEW_PREFIX = f".dld-{VIEW}-"
"""What the names of their files begin with."""
_VIEW_SUFFIX, _STAGING_SUFFIX = ".onnx", ".tmp"
_OLD_CACHES = {
    "precision-search": r"[0-9a-f]{32}\.jsonl",
    "reduce": r"[0-9a-f]{32}\.jsonl",
    "tactic-search": r"[0-9a-f]{32}",
}
"""Folders of caches that no code reads any more, and the names that were written there."""
_held: dict[Path, int] = {}
"""What this process has made, and the descriptor that holds the lock."""


def hold_file(folder: Path) -> Path:
    """Make an empty file for a view of a model in a folder, hold it, and return its path.

    Files whose names begin with its stem belong to it.

    Raises:
        OSError: It cannot be made.
    """
    sweep(folder)
    while True:
        path = folder / f".{_new_name(VIEW)}{_VIEW_SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        if _hold(path, os.open(path, flags, 0o666)):
            return path


def hold_folder(kind: str, parent: Path | None = None) -> Path:
    """Make a private folder, hold it, and return its path.

    Args:
        kind: A word for its name.
        parent: Where it is made, hidden; by default it is in the folder of temporary files.

    Raises:
        OSError: It cannot be made.
    """
    _remove_old_caches()
    home = Path(os.path.realpath(tempfile.gettempdir() if parent is None else parent))
    sweep(home)
    while True:
        path = home / f"{'' if parent is None else '.'}{_new_name(kind)}"
        os.mkdir(path, 0o700)
        with suppress(FileNotFoundError):  # removed before it was held
            if _hold(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)):
                return path


@contextmanager
def temporary_folder(kind: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder as :func:`hold_folder` does; it goes with the context.

    Raises:
        OSError: It cannot be made.
    """
    folder = hold_folder(kind, parent)
    try:
        yield folder
    finally:
        discard(folder)


def hold_open(path: Path, descriptor: int) -> bool:
    """Hold a file with a name of :func:`staging_path`, for as long as it has that name.

    Args:
        path: The file.
        descriptor: It, open; it may be closed before the file is released.

    Returns:
        Whether it is still there.
    """
    return _hold(path, os.dup(descriptor))


def staging_path(folder: Path) -> Path:
    """Return a new path for a file that is to be renamed, hidden in a folder."""
    return folder / f".{_new_name('new')}{_STAGING_SUFFIX}"


def release(path: Path) -> None:
    """Stop holding what this process made; nothing is removed."""
    descriptor = _held.pop(path, None)
    if descriptor is not None:
        os.close(descriptor)


def discard(folder: Path) -> None:
    """Remove a folder that this process made; what is already gone is no error."""
    shutil.rmtree(folder, ignore_errors=True)
    release(folder)


def is_made_here(name: str) -> bool:
    """Return whether the name of a file or folder is one that this module has given."""
    return _match(name) is not None


def sweep(folder: Path) -> None:
    """Remove what processes that are gone have left in a folder. What cannot be removed stays."""
    groups: dict[str, list[os.DirEntry[str]]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _match(entry.name)
            if match is not None and _belongs(entry, match[0]):
                groups.setdefault(match[0], []).append(entry)
    for name, leftovers in groups.items():
        with suppress(OSError), ExitStack() as stack:  # somebody holds it, or it is not ours
            for entry in leftovers:
                if entry.name in (name, f"{name}{_VIEW_SUFFIX}", f"{name}{_STAGING_SUFFIX}"):
                    stack.callback(os.close, _locked(entry))
            _remove(leftovers)


@functools.cache
def _remove_old_caches() -> None:
    """Remove, once, what older versions of this program have left in the folder of caches."""
    for name, pattern in _OLD_CACHES.items():
        folder = cache_dir() / name
        with suppress(OSError):
            if not _is_own_folder(folder):
                continue
            with os.scandir(folder) as entries:
                _remove([entry for entry in entries if re.fullmatch(pattern, entry.name)])
            folder.rmdir()  # unless there is something else


def _is_own_folder(path: Path) -> bool:
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _match(name: str) -> re.Match[str] | None:
    match = re.match(_NAME, name)
    return match if match is not None and _check_digits(match[1]) == match[2] else None


def _belongs(entry: os.DirEntry[str], name: str) -> bool:
    """Return whether an entry is what has this name, or a file that belongs to it."""
    if entry.name == name:
        return True
    if entry.is_dir(follow_symlinks=False):  # somebody's copy
        return False
    return name.startswith(VIEW_PREFIX) or entry.name == f"{name}{_STAGING_SUFFIX}"


def _new_name(kind: str) -> str:
    # Seven digits: earlier versions of this program sweep names with eight.
    start = f"dld-{kind}-{os.urandom(4).hex()[:7]}"
    return f"{start}-{_check_digits(start)}"


def _check_digits(start: str) -> str:
    return f"{zlib.crc32(start.lstrip('.').encode()):08x}"


def _hold(path: Path, descriptor: int) -> bool:
    """Lock what was made; False when somebody took it for a leftover before that."""
    with suppress(OSError):  # a file system without locks: nobody else can lock it either
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            _held[path] = descriptor
            return True
    except FileNotFoundError:
        pass
    os.close(descriptor)
    return False


def _locked(entry: os.DirEntry[str]) -> int:
    """Return a descriptor that holds the lock of what nobody else holds.

    Raises:
        OSError: Somebody holds it, it belongs to another user, or it cannot be found out.
    """
    is_folder = entry.is_dir(follow_symlinks=False)
    flags = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR
    descriptor = os.open(entry.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(leftovers: list[os.DirEntry[str]]) -> None:
    for entry in leftovers:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
