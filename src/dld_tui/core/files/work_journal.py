"""A file with a line for each thing that long work has found, so that the next run resumes there.

Not for edits of a document, each of which is made on what those before it left: their journal
(:mod:`dld_tui.core.model.document.scripting.journal`) ends at the first line that is damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from dld_tui.core.errors import DldError
from dld_tui.core.process.paths import ensure
from dld_tui.core.types import JSON

_DIGEST = 24


class WorkJournal:
    """JSON lines, each of which is added as soon as it is known, and counts by itself.

    A line that was cut or damaged is left out, and those around it count. Only one process at a
    time adds lines; those of others are not kept. A journal that cannot be written is no reason to
    stop.

    Args:
        path: The file, which only the same work uses; None keeps nothing.
        signed: Begin each line with a digest of the rest and of the file's name, so that one that
            was changed or taken from another file is left out, too.
    """

    def __init__(self, path: Path | None, *, signed: bool = False) -> None:
        self.path = path
        """The file; None once it is known that nothing can be kept."""
        self._signed = signed
        self._file: IO[bytes] | None = None
        self._is_cut = False
        """Whether the last line has no end."""

    def read(self, take: Callable[[Any], None]) -> None:
        """Hand over what each line says; one that `take` refuses by an error is left out."""
        try:
            data = self.path.read_bytes() if self.path is not None else b""
        except OSError:
            return
        for line in data.decode("utf-8", "replace").split("\n"):
            with contextlib.suppress(
                ValueError, KeyError, TypeError, AttributeError, RecursionError, DldError
            ):
                take(json.loads(self._content(line)))

    def _content(self, line: str) -> str:
        if not self._signed:
            return line
        digest, _, text = line.partition(" ")
        return text if digest == self._digest(text) else ""

    def _digest(self, text: str) -> str:
        name = self.path.name if self.path is not None else ""
        data = f"{name}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:_DIGEST]

    def claim(self) -> bool:
        """Keep other processes from adding lines; return False where one of them has the file.

        Then, and where it cannot be written, nothing is kept.
        """
        if self._file is None and self.path is not None:
            with contextlib.suppress(OSError):
                ensure(self.path.parent)
                self._file = self.path.open("a+b", buffering=0)
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._is_cut = self._ends_within_a_line(self._file)
                return True
            self.close()
            self.path = None
        return self._file is not None

    @staticmethod
    def _ends_within_a_line(file: IO[bytes]) -> bool:
        if not file.seek(0, 2):
            return False
        file.seek(-1, 2)
        return file.read(1) != b"\n"

    def add(self, entry: JSON) -> None:
        """Add a line."""
        if not self.claim() or self._file is None:
            return
        text = json.dumps(entry)
        line = f"{self._digest(text)} {text}\n" if self._signed else f"{text}\n"
        data = ("\n" * self._is_cut + line).encode()
        self._is_cut = True
        with contextlib.suppress(OSError):
            # Not atomic: a line is added, and one that is damaged is left out.
            self._is_cut = self._file.write(data) != len(data)

    @property
    def has_lines(self) -> bool:
        """Whether the next run finds something in the file."""
        try:
            return self.path is not None and self.path.stat().st_size > 0
        except OSError:
            return False

    def clear(self) -> None:
        """Remove all lines."""
        if self.claim() and self._file is not None:
            self._file.truncate(0)
            self._is_cut = False

    def forget(self) -> None:
        """Remove the file: the work came to its end."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let other processes have the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
