"""May this be written? Forms, commands and edits ask here, and so does the writer.

What is there stays until the user has agreed to lose it: a page asks, a command wants ``--force``.
The answer is a list of paths, which goes with a job to the process that writes them. A file that
appears after the question is on no list, so the writer refuses to replace it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from dld_tui.core.errors import SaveError, UsageError
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.process.paths import unused

_ELSEWHERE = "Save to another folder"
_agreed: set[str] = set()
"""What this process, a command or a worker, may replace: resolved paths."""


def in_the_way(paths: Iterable[Path]) -> list[Path]:
    """Return the paths where something is, each once: a file, a folder, a link to nothing."""
    existing: dict[str, Path] = {}
    for path in paths:
        if os.path.lexists(path):
            existing.setdefault(os.path.realpath(path), path)
    return list(existing.values())


def agree(paths: Iterable[Path | str]) -> None:
    """Let this process replace what is at these paths, or below a folder that is its own."""
    _agreed.update(map(os.path.realpath, paths))


def agreed() -> list[str]:
    """Return what this process may replace, for the processes that it starts."""
    return sorted(_agreed)


def may_replace(path: Path) -> bool:
    """Return whether this process may replace what is at a path."""
    if not _agreed:
        return False
    real = Path(os.path.realpath(path))
    return any(str(place) in _agreed for place in (real, *real.parents))


def place(path: Path) -> Path:
    """Return where to write what took long to make: a free name beside a file that is in the way.

    Callers have asked before the work began; this is for what appeared meanwhile.
    """
    return path if may_replace(path) else unused(path)


def require_folder(path: Path) -> None:
    """Raise an error if nothing can be written beside a path.

    Raises:
        SaveError: Its folder does not exist, or is not writable.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise SaveError(
            f"the folder {path.parent} does not exist", where=str(path),
            hint=f"mkdir -p {shlex.quote(str(path.parent))} makes it",
        )  # fmt: skip
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SaveError("the folder is not writable", where=str(path), hint=_ELSEWHERE)


def require_free(
    paths: Iterable[Path | None], force: bool, *, hint: str = "Add --force to overwrite it",
    makes_folder: bool = False,
) -> None:  # fmt: skip
    """Raise an error if one of the outputs of a command exists, or its folder cannot be written.

    Args:
        paths: The outputs; None for one that was not asked for.
        force: They may be replaced, by this process and the jobs that it starts.
        hint: What to do about a file that exists.
        makes_folder: A folder that is not there is made.

    Raises:
        SaveError: A folder does not exist, or is not writable.
        UsageError: A file exists and `force` is False, a path is that of a folder, or outside the
            folders that an agent may use.
    """
    for path in filter(None, paths):
        require_allowed(path)
        if not makes_folder or path.absolute().parent.is_dir():
            require_folder(path)
        if not makes_folder and path.is_dir():
            raise UsageError("it is a folder", where=str(path), hint="Name a file in it")
        if force:
            agree([path])
        elif in_the_way([path]):
            raise UsageError("the file exists", where=str(path), hint=hint)
