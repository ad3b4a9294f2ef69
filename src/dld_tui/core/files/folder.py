"""The files in a folder and the folders below it that this program can open.

A folder may have 100,000 files, loops of symbolic links, parts that nobody may read, and may be on
a network: there is a limit to everything, and what was left out is said in a line.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from time import monotonic

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError

LIMIT_S = 2.0
MOST_ENTRIES = 50_000
"""Names that are looked at: half a second on a quick disk."""
MOST_FILES = 2_000
"""Files that are listed."""
DEEPEST = 4
"""Folders are entered down to this many below the first."""
_MOST_READ = 200
"""Files whose beginning is read, as their suffix does not tell what they are."""
_BY_SUFFIX = {".onnx": "ONNX", ".dldprof": "REPORT"}
_READ = (".json", ".tea", ".onnxtxt", ".textproto", ".prototxt", ".pbtxt")
_LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "venv", "proc", "sys", "dev"}
_CHECK_EVERY = 256


@dataclass(frozen=True)
class FoundFile:
    """One file."""

    path: str
    kind: str
    """A name of ``FileKind``."""
    size: int
    """Bytes."""
    modified: float
    """Seconds since the epoch."""


class FolderScan:
    """Looks for files, one folder at a time, the nearest first.

    Args:
        folder: Where to begin.
        limit_s: Seconds after which it ends.
    """

    def __init__(self, folder: str, limit_s: float = LIMIT_S) -> None:
        self.files: list[FoundFile] = []
        self._waiting = deque([(folder, 0)])
        self._ends = monotonic() + limit_s
        self._limit_s = limit_s
        self._entries = self._unreadable = self._read = 0
        self._ended_by = ""

    @property
    def note(self) -> str:
        """What was left out, in a line; empty when nothing was."""
        parts = [self._ended_by] if self._ended_by else []
        if self._unreadable:
            parts.append(f"{fmt.plural(self._unreadable, 'folder')} cannot be read")
        return ", ".join(parts)

    def stop(self) -> None:
        """End the scan soon; may be called from another thread."""
        self._ended_by = "stopped"

    def steps(self) -> Iterator[list[FoundFile]]:
        """Yield what each folder holds, which may be nothing."""
        while self._waiting and not self._ended_by:
            folder, depth = self._waiting.popleft()
            before = len(self.files)
            try:
                with os.scandir(folder) as entries:
                    self._take(entries, depth)
            except OSError:
                self._unreadable += 1
            yield self.files[before:]

    def _take(self, entries: Iterator[os.DirEntry[str]], depth: int) -> None:
        for entry in entries:
            self._entries += 1
            if self._is_over():
                return
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            # Links to folders are not followed: they may lead back here.
            if entry.is_dir(follow_symlinks=False):
                if depth < DEEPEST:
                    self._waiting.append((entry.path, depth + 1))
                continue
            file = self._file(entry)
            if file is not None:
                self.files.append(file)

    def _is_over(self) -> bool:
        if self._entries > MOST_ENTRIES:
            self._ended_by = f"the first {MOST_ENTRIES:,} names were looked at"
        elif len(self.files) >= MOST_FILES:
            self._ended_by = f"the first {MOST_FILES:,} files are listed"
        elif self._entries % _CHECK_EVERY == 0 and monotonic() > self._ends:
            self._ended_by = f"stopped after {self._limit_s:g} s, {self._entries:,} names"
        return bool(self._ended_by)

    def _file(self, entry: os.DirEntry[str]) -> FoundFile | None:
        suffix = os.path.splitext(entry.name)[1].lower()
        kind = _BY_SUFFIX.get(suffix)
        if kind is None and (suffix not in _READ or self._read >= _MOST_READ):
            return None
        try:
            if not entry.is_file():  # a pipe would be waited for
                return None
            stat = entry.stat()
            if kind is None:
                self._read += 1
                kind = _recognised(entry.path)
        except (OSError, ValueError):
            return None
        if kind is None:
            return None
        return FoundFile(entry.path, kind, stat.st_size, stat.st_mtime)


def _recognised(path: str) -> str | None:
    from dld_tui.core.files.recognise import recognise

    try:
        return recognise(path).name
    except DldError:  # it is something else
        return None


def in_order(files: list[FoundFile]) -> list[FoundFile]:
    """Return files by recency and name."""
    return sorted(files, key=lambda file: (-file.modified, file.path))
