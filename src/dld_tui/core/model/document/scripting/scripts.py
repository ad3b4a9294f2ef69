"""Edit scripts: written as files, and replayed on a document (``dld edit``).

Payloads that the arguments of edits refer to live as long as the program needs them. A script
that is to be kept has its own copies, in a folder beside it, named relative to the script.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, EditError, InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source, input_error, open_error, texts_in
from dld_tui.core.files.writer import write_pieces, write_text
from dld_tui.core.model.document.scripting.arguments import (
    REFUSED,
    Entry,
    FileState,
    entry_of,
    parse_line,
)
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.transactions import Transaction

MADE_ON = "made_on"
"""In the first line of an exported script: the model that the edits were made on."""


@dataclass(frozen=True)
class Relocated:
    """Something that a line names, which the target has under another name. Untrusted text."""

    kind: str
    """``node`` or ``value``."""
    name: str
    """What the line says: a ref or a name."""
    place: str
    """What it is in the target."""


class Relocation(Protocol):
    """Translates the lines of a script to another model than the one it was made on."""

    def located(self, entry: Entry) -> tuple[Entry, list[Relocated]]:
        """Return an entry as the target has it, and what has another name there."""

    def followed(self, entry: Entry, transaction: Transaction | None) -> None:
        """Take note that an entry was applied to the target."""


@dataclass
class ReplayResult:
    """What became of each line."""

    applied: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Numbers of lines and why each no longer applies. Untrusted text."""
    relocated: list[tuple[int, Relocated]] = field(default_factory=list)
    """Numbers of applied lines, and what they refer to under another name here."""


def parse_script(text: str, *, where: str | None = None) -> dict[int, Entry]:
    """Return the entries of an edit script by the numbers of their lines, from 1.

    Empty lines and ``#`` comments are skipped.

    Raises:
        InputError: A line is not a JSON object; says which.
    """
    entries: dict[int, Entry] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entry = parse_line(line)
        except ValueError as error:
            raise InputError(f"line {number} is not JSON: {error}", where=where) from None
        if not isinstance(entry, dict):
            raise InputError(f"line {number} is not a JSON object", where=where)
        if "journal" not in entry:  # the header of a journal says nothing to replay
            entries[number] = {key: value for key, value in entry.items() if key != MADE_ON}
    return entries


def script_base(text: str) -> tuple[str, FileState] | None:
    """Return the model that a script or journal was made on, as its first line says.

    Returns:
        The path of its file and how that was, or None where the line says nothing.
    """
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entry = parse_line(line)
        except ValueError:
            return None
        if not isinstance(entry, dict):
            return None
        base = entry if "journal" in entry else entry.get(MADE_ON)
        if not isinstance(base, dict) or not isinstance(model := base.get("model"), str):
            return None
        return model, FileState.said_by(base)
    return None


def replay(
    document: Document,
    entries: Iterable[Entry] | Mapping[int, Entry],
    relocation: Relocation | None = None,
) -> ReplayResult:
    """Apply the entries one after the other; those that do not fit are reported and skipped.

    Args:
        entries: The lines of the script, perhaps by their numbers; else these count from 1.
        relocation: Finds what has other names in this model than in that of the script.
    """
    result = ReplayResult()
    numbered = entries.items() if isinstance(entries, Mapping) else enumerate(entries, 1)
    for number, entry in numbered:
        try:
            located, moved = (entry, []) if relocation is None else relocation.located(entry)
            transaction = replay_entry(document, located)
            if relocation is not None:
                relocation.followed(entry, transaction)
        except DldError as error:
            result.refused.append((number, str(error)))
        except Exception as error:  # noqa: BLE001 - a seam: the other lines are still made
            bug = f"it failed unexpectedly, which is a bug in dld: {type(error).__name__}: {error}"
            known = input_error(error, texts_in(entry))
            result.refused.append((number, bug if known is None else str(known)))
        else:
            result.applied += 1
            result.relocated += ((number, move) for move in moved)
    return result


def replay_entry(document: Document, entry: Entry) -> Transaction | None:
    """Apply one entry and return the transaction that was made, repeated or undone; or None.

    Raises:
        EditError: It does not fit this document.
    """
    if REFUSED in entry:
        raise EditError(f"the line {entry[REFUSED]}")
    if entry.get("undo"):
        return document.undo()
    if entry.get("redo"):
        return document.redo()
    arguments = dict(entry)
    name = arguments.pop("edit", None)
    if not isinstance(name, str):
        raise EditError("the entry names no edit")
    return document.apply(name, **arguments)


DATA_SUFFIX = ".data"
"""Behind the name of a script: the folder of its payloads."""


def export_script(document: Document, path: Path, *, overwrite: bool = False) -> int:
    """Write the edits that were made since a document was opened; return how many they are.

    Edits that were taken back are left out. The first line names the model's file, if that is still
    the model that the edits were made on.

    Args:
        document: The document.
        path: The script.
        overwrite: See :class:`~dld_tui.core.files.writer.StagedFile`.

    Raises:
        InputError: The payload of an edit cannot be read.
        SaveError: The file cannot be written.
    """
    lines: list[str] = []
    for transaction in document.history.done:
        entry = entry_of(transaction.edit, transaction.arguments)
        kept = map_payload_files(entry, lambda name: _copy_payload(Path(name), path))
        if not lines and isinstance(kept, dict) and document.history.saved_at is None:
            base = _base(document, path)
            kept = kept if base is None else {**kept, MADE_ON: base}
        lines.append(json.dumps(kept))
    write_text(path, "".join(f"{line}\n" for line in lines), overwrite=overwrite)
    return len(lines)


def locate_files(entries: Mapping[int, Entry], folder: Path) -> dict[int, Entry]:
    """Return the entries of a script with the files that they name in the script's folder.

    Raises:
        UsageError: An agent may not read one.
    """

    def located(name: str) -> str:
        require_allowed(folder / name)
        return str(folder / name)

    changed = {number: map_payload_files(entry, located) for number, entry in entries.items()}
    return {number: entry for number, entry in changed.items() if isinstance(entry, dict)}


def base_file(text: str, folder: Path) -> Path | None:
    """Return the file of the model that a script was made on, None where it is not known.

    Raises:
        InputError: The file has changed since.
    """
    base = script_base(text)
    if base is None:
        return None
    path = folder / base[0]
    state = FileState.of(path)
    if state.size is None:
        return None
    if state != base[1]:
        raise InputError(
            "has changed since the script was made on it",
            where=str(path),
            hint="What has other names in this model can be found with --base MODEL",
        )
    return path


def _base(document: Document, script: Path) -> JSON:
    path = document.path
    if path is None or document.changed_on_disk():
        return None
    state = FileState.of(path)
    if state.size is None:
        return None
    folder = os.path.realpath(script.parent)
    return {"model": os.path.relpath(os.path.realpath(path), folder), **encode(state)}


def map_payload_files(value: JSON, change: Callable[[str], str]) -> JSON:
    """Return arguments with the name of each payload file changed."""
    if isinstance(value, list):
        return [map_payload_files(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("file"), str) and "sha256" in value and "length" in value:
        return {**value, "file": change(str(value["file"]))}
    return {key: map_payload_files(item, change) for key, item in value.items()}


def _copy_payload(payload: Path, script: Path) -> str:
    """Copy a payload beside a script and return its name, relative to the script."""
    folder = script.with_name(script.name + DATA_SUFFIX)
    target = folder / payload.name
    if not target.exists():
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise open_error(folder, error) from None
        source = Source.open(payload)
        try:
            write_pieces(target, [Blob(source, 0, source.size, "raw_data")])
        finally:
            source.close()
    return f"{folder.name}/{payload.name}"
