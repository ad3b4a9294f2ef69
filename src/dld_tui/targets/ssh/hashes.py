"""The SHA-256 of files here, remembered as long as a file does not change."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import InputError
from dld_tui.core.state import State

_SECTION = "hashes"
_MOST = 500
_CHUNK = 1 << 20
_RACY_NS = 2_000_000_000
"""A file that changed so short a time ago may change again within the tick of its clock."""


@dataclass(frozen=True)
class LocalFile:
    """A file here, as it was when it was looked at."""

    path: Path
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> LocalFile:
        """Look at a file.

        Raises:
            InputError: It is not there, or no regular file.
        """
        try:
            status = os.stat(path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
        if not path.is_file():
            raise InputError("cannot be sent: it is not a regular file", where=str(path))
        return cls(
            path.absolute(), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        )

    @property
    def stamp(self) -> str:
        """What is different when the file is."""
        return f"{self.size} {self.mtime_ns} {self.ctime_ns} {self.inode}"

    @property
    def key(self) -> str:
        """A name for what has arrived of it: by its size, its first and its last part."""
        digest = hashlib.sha256(str(self.size).encode())
        with self.path.open("rb") as file:
            digest.update(file.read(_CHUNK))
            file.seek(max(0, self.size - _CHUNK))
            digest.update(file.read(_CHUNK))
        return digest.hexdigest()

    def sha256(self) -> str:
        """Read the whole file and return its hash."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
        return digest.hexdigest()


class KnownHashes:
    """What is remembered, in the state folder."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state or State()
        self._entries = self._state.get(_SECTION, "files")

    def get(self, file: LocalFile) -> str | None:
        """Return the hash of a file that has not changed since it was read."""
        entry = self._entries.get(str(file.path))
        if not isinstance(entry, dict) or entry.get("stamp") != file.stamp:
            return None
        found = entry.get("sha256")
        return found if isinstance(found, str) and len(found) == 64 else None

    def put(self, file: LocalFile, sha256: str) -> None:
        """Remember a hash, unless the file is too fresh to be sure."""
        if time.time_ns() - file.mtime_ns < _RACY_NS:
            return
        self._entries.pop(str(file.path), None)
        self._entries[str(file.path)] = {"stamp": file.stamp, "sha256": sha256}
        while len(self._entries) > _MOST:
            self._entries.pop(next(iter(self._entries)))

    def save(self) -> None:
        """Write them down."""
        self._state.put(_SECTION, "files", self._entries)
