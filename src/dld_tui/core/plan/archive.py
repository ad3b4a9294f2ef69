"""TREx's engine archives: ``.tea`` files, which are ZIP archives of the file set."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.plan.file_set import FileSet, match_names
from dld_tui.core.plan.json_text import LARGEST_BYTES, decoded, read_text, require_size

SEPARATOR = "!"
"""Between the archive's path and a member's name."""
_MOST_MEMBERS = 10_000
_BROKEN = (ValueError, RuntimeError, EOFError, NotImplementedError, zlib.error)
"""What reading a damaged or encrypted member raises."""


def archive_set(path: Path) -> FileSet:
    """Return the files in an archive by role, as ``ARCHIVE!MEMBER``.

    Raises:
        InputError: It cannot be read, or has no layer information.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()[:_MOST_MEMBERS]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CorruptFileError(f"not a whole ZIP archive: {error}", where=str(path)) from None
    found = match_names(sorted(names), None)
    if not found.of("graph"):
        raise InputError(
            "no layer information (graph.json) in the archive: not one of TREx", where=str(path)
        )
    for files in found.roles.values():
        files[:] = [Path(f"{path}{SEPARATOR}{file}") for file in files]
    return found


def text_of_file(path: Path) -> str:
    """Return the text of a file, or of a member of an archive (``ARCHIVE!MEMBER``).

    Raises:
        InputError: It cannot be read.
    """
    archive, separator, member = str(path).rpartition(SEPARATOR)
    if not separator or path.exists():
        return read_text(path)
    return decoded(_member(Path(archive), member, str(path)), str(path))


def _member(archive_path: Path, member: str, where: str) -> bytes:
    try:
        with zipfile.ZipFile(archive_path) as archive, archive.open(member) as file:
            # What an archive says of sizes may be wrong: count what is read.
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, zipfile.BadZipFile, KeyError, *_BROKEN) as error:
        raise CorruptFileError(f"cannot be read from the archive: {error}", where=where) from None
    require_size(len(data), where)
    return data
