"""Edit scripts as files: the edits of a session written, large payloads beside them.

Payloads that the arguments of edits refer to live as long as the program needs them. A script that
is to be kept has its own copies, in a folder beside it, named relative to the script.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.document.scripts import MADE_ON, entry_of, script_base
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

    Edits that were taken back are left out. The first line names the model's file, if that is still
    the model that the edits were made on.

    Raises:
        InputError: The payload of an edit cannot be read.
        SaveError: The file cannot be written.
    """
    lines: list[str] = []
    for transaction in document.history.done:
        entry = entry_of(transaction.edit, transaction.arguments)
        kept = with_files(entry, lambda name: _kept(Path(name), path))
        if not lines and isinstance(kept, dict) and document.history.saved_at is None:
            base = _base(document, path)
            kept = kept if base is None else {**kept, MADE_ON: base}
        lines.append(json.dumps(kept))
    write_text(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def located(entries: Iterable[dict[str, JSON]], folder: Path) -> list[dict[str, JSON]]:
    """Return the entries of a script with the files that they name in the script's folder."""
    found = (with_files(entry, lambda name: str(folder / name)) for entry in entries)
    return [entry for entry in found if isinstance(entry, dict)]


def base_file(text: str, folder: Path) -> Path | None:
    """Return the file of the model that a script was made on, None where it is not known.

    Raises:
        InputError: The file has changed since.
    """
    base = script_base(text)
    if base is None:
        return None
    path = folder / str(base["model"])
    state = _state(path)
    if state is None:
        return None
    if any(state[key] != base.get(key) for key in state):
        raise InputError(
            "has changed since the script was made on it",
            where=str(path),
            hint="What has other names in this model can be found with --base MODEL",
        )
    return path


def _base(document: Document, script: Path) -> dict[str, JSON] | None:
    path = document.path
    state = _state(path) if path is not None else None
    if path is None or state is None or document.changed_on_disk():
        return None
    folder = os.path.realpath(script.parent)
    return {"model": os.path.relpath(os.path.realpath(path), folder), **state}


def _state(path: Path) -> dict[str, JSON] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


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
