"""Owner, mode, access control list and extended attributes of a file that another one replaces.

The new file has them before it has the name, and is at no moment open to more people than the old
one: what cannot be kept is made up for by less access, never by more, and is said.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress

_ACL = "system.posix_acl_access"
_OF_CONTENT = ("security.capability", "security.evm", "security.ima", "trusted.overlay.")
"""What is about the bytes of a file or its place, and not true of another one."""
_HEAD = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_NAMED_USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 0x02, 0x04, 0x08, 0x10, 0x20
"""Tags of entries, of linux/posix_acl.h."""
_CAN = hasattr(os, "getxattr")


def take_over(descriptor: int, path: str | os.PathLike[str], *, private: bool) -> list[str]:
    """Give an open file what a file at a path has; return what could not be kept, for people.

    Args:
        descriptor: A file that nobody else may open yet, which is owned by this process.
        path: A regular file.
        private: Whether nobody but the owner may open the new file, whatever the old one allows.

    Raises:
        OSError: There is no such file, or the mode cannot be changed.
    """
    old = os.lstat(path)
    lost: list[str] = []
    mode = _take_owner(descriptor, old, lost)
    values = _values(path, lost)
    acl = values.pop(_ACL, None)
    inherited = _values(descriptor, [])
    for name, value in values.items():
        if inherited.get(name) != value and not _set(descriptor, name, value):
            lost.append(f"its attribute {name}")
    if private:
        acl, mode = None, mode & 0o700
    kept_group = os.fstat(descriptor).st_gid == old.st_gid
    if acl is not None and not _set(descriptor, _ACL, acl if kept_group else _of_others(acl)):
        lost.append("its access control list")
        mode, acl = limited(mode, acl), None
    if acl is None:
        if _ACL in inherited:  # of its folder; the old file has none
            os.removexattr(descriptor, _ACL)
        if not kept_group:  # what the old group might do is not for the new one
            mode &= ~0o070 | mode << 3
    os.fchmod(descriptor, mode)
    return lost


def mode_of(descriptor: int) -> int:
    """Return the mode of an open file, limited to what its access control list grants everybody.

    Raises:
        OSError: The file system fails.
    """
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    acl = _values(descriptor, []).get(_ACL)
    return mode if acl is None else limited(mode, acl)


def limited(mode: int, acl: bytes) -> int:
    """Return a mode that alone grants nobody more than it does together with a list."""
    group = other = mask = 0o7
    for tag, permissions in _entries(acl):
        if tag == _MASK:
            mask = permissions
        elif tag == _OTHER:
            other &= permissions
        else:
            group &= permissions if tag in (_GROUP, _NAMED_USER, _NAMED_GROUP) else 0o7
            other &= permissions if tag in (_NAMED_USER, _NAMED_GROUP) else 0o7
    return mode & ~0o077 | (group & mask & mode >> 3) << 3 | other & mode


def _take_owner(descriptor: int, old: os.stat_result, lost: list[str]) -> int:
    """Give a file the owner of another one; return the mode that it may have then."""
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except OSError:  # only root may give a file away; a group may be one of ours
            with suppress(OSError):
                os.fchown(descriptor, -1, old.st_gid)
        new = os.fstat(descriptor)
    if new.st_uid != old.st_uid:
        lost.append("its owner")
        mode &= ~stat.S_ISUID
    if new.st_gid != old.st_gid:
        lost.append("its group")
        mode &= ~stat.S_ISGID
    return mode


def _of_others(acl: bytes) -> bytes:
    """Return a list for another group: it may do what others may."""
    entries = list(_ENTRY.iter_unpack(acl[_HEAD.size :]))
    other = next((permissions for tag, permissions, _ in entries if tag == _OTHER), 0)
    return acl[: _HEAD.size] + b"".join(
        _ENTRY.pack(tag, permissions & other if tag == _GROUP else permissions, who)
        for tag, permissions, who in entries
    )


def _entries(acl: bytes) -> Iterator[tuple[int, int]]:
    for tag, permissions, _ in _ENTRY.iter_unpack(acl[_HEAD.size :]):
        yield tag, permissions


def _values(file: int | str | os.PathLike[str], lost: list[str]) -> dict[str, bytes]:
    """Return the attributes to keep; none where the file system or the platform has none."""
    if not _CAN:
        return {}
    follows = isinstance(file, int)
    values = {}
    try:
        names = os.listxattr(file, follow_symlinks=follows)
    except OSError:
        return {}
    for name in names:
        if name.startswith(_OF_CONTENT):
            continue
        try:
            values[name] = os.getxattr(file, name, follow_symlinks=follows)
        except OSError:
            lost.append(f"its attribute {name}")
    return values


def _set(descriptor: int, name: str, value: bytes) -> bool:
    try:
        os.setxattr(descriptor, name, value)
    except OSError:
        return False
    return True
