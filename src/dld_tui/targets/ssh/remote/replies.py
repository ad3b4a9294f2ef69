"""The answers of the agent: marked lines, since a login shell may print anything.

Its output need not end with a newline, so the mark may be anywhere in a line. It is another one for
every call: nothing that a start-up file prints can look like an answer.
"""

from __future__ import annotations

import errno
import json
import secrets
import sys
from typing import Any, NoReturn

_mark = ""
"""What answers of this process begin with."""

_REASONS = {
    errno.ENOSPC: ("the disk is full", "Free some space there, or set another --directory"),
    errno.EDQUOT: (
        "the disk quota is used up",
        "Free some space there, or set another --directory",
    ),
    errno.EFBIG: ("the file is larger than allowed there", "Look at `ulimit -f` of that user"),
    errno.EACCES: ("no permission to write there", "Set another --directory"),
    errno.EPERM: ("no permission to write there", "Set another --directory"),
    errno.EROFS: ("the disk is read-only", "Set another --directory"),
    errno.ENOTDIR: ("a file is in the place of a folder", "Set another --directory"),
}


class RefusedError(Exception):
    """The agent cannot do what was requested.

    Args:
        message: The problem.
        hint: What to do next.
        kind: For programs: ``gone``, ``missing``, ``changed``, …
    """

    def __init__(self, message: str, hint: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.kind = message, hint, kind


def new_mark() -> str:
    """Return what the answer to one call begins with."""
    return f"@dld:{secrets.token_hex(8)}:"


def mark_with(mark: str) -> None:
    """Begin answers of this process with a mark."""
    global _mark  # noqa: PLW0603 - one call a process
    _mark = mark


def answer(value: dict[str, Any]) -> None:
    """Print an answer.

    Raises:
        OSError: The connection is closed.
    """
    sys.stdout.write(f"{_mark}{json.dumps(value)}\n")
    sys.stdout.flush()


def last_answer(printed: bytes, mark: str) -> dict[str, Any] | None:
    """Return the last answer in an output, or None; other output may be in any encoding."""
    answer = None
    opening = f"{mark}{{"
    for line in printed.split(b"\n"):
        text = line.decode("utf-8", "replace")
        start = text.find(opening)
        while start >= 0:
            end = start + len(mark)
            try:
                answer, end = json.JSONDecoder().raw_decode(text, end)
            except (ValueError, RecursionError):
                pass  # noise that looks like ours
            start = text.find(opening, end)
    return answer


def refuse(error: RefusedError | OSError) -> None:
    """Print an answer that says why not."""
    if isinstance(error, RefusedError):
        answer({"error": error.message, "hint": error.hint, "kind": error.kind})
        return
    message, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
    where = f"{error.filename}: " if error.filename else ""
    answer({"error": f"{where}{message}", "hint": hint, "kind": "system"})


def fail(message: str, hint: str = "", kind: str = "") -> NoReturn:
    """Raise a :class:`RefusedError`."""
    raise RefusedError(message, hint, kind)
