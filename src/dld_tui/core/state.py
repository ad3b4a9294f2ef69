"""What the program remembers between runs: recent files, pane layouts, form fields.

Small JSON files in the state folder, replaced whole, so that a reader never sees half of one. They
are read again before each change: two running programs lose at most one entry. Nothing here is
worth an error: a file that cannot be read is empty, one that cannot be written is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from dld_tui.core import paths
from dld_tui.core.errors import SaveError
from dld_tui.core.files.writer import write_text
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class RecentFile:
    """A file that was opened."""

    path: str
    kind: str
    """A name of ``FileKind``."""
    opened: float
    """Seconds since the epoch."""


class State:
    """The remembered things of one user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = paths.state_dir() if folder is None else folder

    def recent(self) -> list[RecentFile]:
        """Return the recent files, the newest first; a file may no longer be there."""
        found = []
        entries = self._read("recent").get("files")
        for entry in entries if isinstance(entries, list) else []:
            try:
                file = cast("dict[str, Any]", entry)
                found.append(
                    RecentFile(str(file["path"]), str(file["kind"]), float(file["opened"]))
                )
            except (TypeError, KeyError, ValueError):
                continue
        return found

    def opened(self, path: Path | str, kind: str, *, keep: int = 20) -> None:
        """Put a file first among the recent ones, of which the newest `keep` stay."""
        text = os.path.abspath(path)
        rest = [file for file in self.recent() if file.path != text]
        files = [RecentFile(text, kind, time.time()), *rest][:keep]
        self._write("recent", {"files": [asdict(file) for file in files]})

    def forget(self, path: str) -> None:
        """Take a file from the recent ones."""
        files = [asdict(file) for file in self.recent() if file.path != path]
        self._write("recent", {"files": cast("JSON", files)})

    def get(self, section: str, key: str) -> dict[str, JSON]:
        """Return what was put under a key of ``layouts``, ``forms``, …; empty when nothing was."""
        value = self._read(section).get(key)
        return value if isinstance(value, dict) else {}

    def put(self, section: str, key: str, value: Mapping[str, JSON]) -> None:
        """Remember a value, or forget it when it is empty."""
        data = self._read(section)
        data.pop(key, None)
        if value:
            data[key] = dict(value)
        self._write(section, data)

    def _read(self, name: str) -> dict[str, JSON]:
        try:
            data = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    def _write(self, name: str, data: Mapping[str, JSON]) -> None:
        # A full or read-only home must not disturb the user's work.
        with contextlib.suppress(OSError, SaveError):
            paths.ensure(self.folder)
            text = json.dumps(data, indent=1)
            write_text(self.folder / f"{name}.json", text, durable=False)
