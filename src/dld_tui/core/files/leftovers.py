"""Temporary files that are gone when their owner is, even when it was killed.

Views (:mod:`dld_tui.core.files.view`) are beside the model, as libraries read weights of its folder
only; snapshots for shape inference are where temporary files are. The process that makes one holds
a lock on it, which ends with the process: one that nobody holds is left from a process that was
killed, and whoever makes or opens something there next removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

PREFIX = ".dld-view-"
SNAPSHOTS = "dld-types-"
"""Folders of snapshots for shape inference, in the folder of temporary files."""
_NAME = re.compile(rf"(?:{re.escape(PREFIX)}|{SNAPSHOTS})[0-9a-z_]{{8}}")
_held: dict[Path, int] = {}
"""What this process has made, and the descriptor that holds the lock."""


def hold_file(folder: Path, suffix: str) -> Path:
    """Make an empty file in a folder, hold it, and return its path.

    Raises:
        OSError: It cannot be made.
    """
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(4)}{suffix}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        if _hold(path, os.open(path, flags, 0o666)):
            return path


def hold_folder(parent: Path, prefix: str = PREFIX) -> Path:
    """Make a private folder in another one, hold it, and return its path.

    Args:
        parent: The other one.
        prefix: What its name begins with: :data:`PREFIX` or :data:`SNAPSHOTS`.

    Raises:
        OSError: It cannot be made.
    """
    while True:
        path = Path(os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent)))
        with suppress(FileNotFoundError):  # removed before it was held
            if _hold(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)):
                return path


def let_go(path: Path) -> None:
    """Stop holding what this process made; nothing is removed."""
    descriptor = _held.pop(path, None)
    if descriptor is not None:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove what processes that are gone have left in a folder. What cannot be removed stays."""
    groups: dict[str, list[os.DirEntry[str]]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.match(entry.name)
            if found is not None:
                groups.setdefault(found.group(), []).append(entry)
    for name, made in groups.items():
        with suppress(OSError), ExitStack() as stack:  # somebody holds it, or it is not ours
            for entry in made:
                if entry.name in (name, f"{name}.onnx"):
                    stack.callback(os.close, _locked(entry))
            _remove(made)


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
        OSError: Somebody holds it, or it cannot be found out.
    """
    is_folder = entry.is_dir(follow_symlinks=False)
    flags = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR
    descriptor = os.open(entry.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(made: list[os.DirEntry[str]]) -> None:
    for entry in made:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
