"""Copies of files that share the blocks of the original until one of them is changed: reflinks.

Of Linux, on file systems such as btrfs, XFS, bcachefs and OCFS2.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

_CLONE = 0x40049409
"""``FICLONE`` of linux/fs.h."""
_CANNOT = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS}


def clone(source: Path, target: Path) -> bool:
    """Make a file with the content of another one and return whether its blocks could be shared.

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
    import fcntl

    with source.open("rb") as file:
        try:
            fcntl.ioctl(descriptor, _CLONE, file.fileno())
        except OSError as error:
            if error.errno in _CANNOT:
                return False
            raise
    return True
