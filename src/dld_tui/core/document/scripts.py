"""Edit scripts: the lines of the journal, replayed on a document (``dld edit``)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dld_tui.core.errors import EditError, InputError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@dataclass
class ReplayResult:
    """What became of each line."""

    applied: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Numbers of entries (from 1) and why each no longer applies. Foreign text."""


def parse_script(text: str, *, where: str | None = None) -> list[dict[str, JSON]]:
    """Return the entries of an edit script; empty lines and ``#`` comments are skipped.

    Raises:
        InputError: A line is not a JSON object; says which.
    """
    entries: list[dict[str, JSON]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number} is not JSON: {error}", where=where) from None
        if not isinstance(entry, dict):
            raise InputError(f"line {number} is not a JSON object", where=where)
        if "journal" not in entry:  # the header of a journal says nothing to replay
            entries.append(entry)
    return entries


def replay(document: Document, entries: Iterable[dict[str, JSON]]) -> ReplayResult:
    """Apply the entries one after the other; those that do not fit are reported and skipped."""
    result = ReplayResult()
    for number, entry in enumerate(entries, 1):
        try:
            replay_entry(document, entry)
        except EditError as error:
            result.refused.append((number, str(error)))
        else:
            result.applied += 1
    return result


def replay_entry(document: Document, entry: dict[str, JSON]) -> None:
    """Apply one entry.

    Raises:
        EditError: It does not fit this document.
    """
    if entry.get("undo"):
        document.undo()
    elif entry.get("redo"):
        document.redo()
    else:
        arguments = dict(entry)
        name = arguments.pop("edit", None)
        if not isinstance(name, str):
            raise EditError("the entry names no edit")
        document.apply(name, **arguments)


def entry_of(edit: str, arguments: dict[str, JSON]) -> dict[str, JSON]:
    """Return the entry that replays an edit."""
    return {"edit": edit, **arguments}
