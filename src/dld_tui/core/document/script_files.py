"""Edit scripts as files: the edits of a session written, large payloads beside them.

Payloads that the arguments of edits refer to live as long as the program needs them. A script that
is to be kept has its own copies, in a folder beside it, named relative to the script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.document.scripts import entry_of
from dld_tui.core.errors import InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import write_pieces, write_text
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

DATA_SUFFIX = ".data"
"""Behind the name of a script: the folder of its payloads."""


def export_script(document: Document, path: Path) -> int:
    """Write the edits that were made since a document was opened; return how many they are.

    Edits that were taken back are left out.

    Raises:
        InputError: The payload of an edit cannot be read.
        SaveError: The file cannot be written.
    """
    lines = []
    for transaction in document.history.done:
        entry = entry_of(transaction.edit, transaction.arguments)
        kept = with_files(entry, lambda name: _kept(Path(name), path))
        lines.append(json.dumps(kept))
    write_text(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def located(entries: Iterable[dict[str, JSON]], folder: Path) -> list[dict[str, JSON]]:
    """Return the entries of a script with the files that they name in the script's folder."""
    found = (with_files(entry, lambda name: str(folder / name)) for entry in entries)
    return [entry for entry in found if isinstance(entry, dict)]


def with_files(value: JSON, change: Callable[[str], str]) -> JSON:
    """Return arguments with the name of each payload file changed."""
    if isinstance(value, list):
        return [with_files(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("file"), str) and "sha256" in value and "length" in value:
        return {**value, "file": change(str(value["file"]))}
    return {key: with_files(item, change) for key, item in value.items()}


def _kept(payload: Path, script: Path) -> str:
    """Copy a payload beside a script and return its name, relative to the script."""
    folder = script.with_name(script.name + DATA_SUFFIX)
    target = folder / payload.name
    if not target.exists():
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(error.strerror or str(error), where=str(folder)) from None
        source = Source.open(payload)
        try:
            write_pieces(target, [Blob(source, 0, source.size, "raw_data")])
        finally:
            source.close()
    return f"{folder.name}/{payload.name}"
