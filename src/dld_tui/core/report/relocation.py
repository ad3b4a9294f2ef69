"""A report that was made on another machine, with the paths of this one."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from dld_tui.core.errors import InputError
from dld_tui.core.report.database import is_report, open_database
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_TABLES = {"report": "key", "settings": "name"}
"""Tables of values, and the column that names a row."""


def relocate(path: Path, renames: Mapping[str, str]) -> bool:
    """Replace paths in the facts and settings of a report; return whether the file is one.

    Args:
        path: The file, which may be of any kind.
        renames: What the paths were there, and what they are here.

    Raises:
        InputError: It begins like a report and cannot be read, or its tables do more than hold
            values.
    """
    with path.open("rb") as file:
        if not is_report(file.read(100)):
            return False
    open_database(path).close()  # it comes from another machine: see that it is what it looks like
    database = sqlite3.connect(os.fspath(path))
    try:
        database.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        if database.execute(query).fetchone()[0]:
            raise InputError("a report with triggers or views is not taken over", where=str(path))
        with database:
            for table, column in _TABLES.items():
                _relocate_table(database, table, column, renames)
    except sqlite3.Error as error:
        message = f"its paths cannot be replaced: {visible(str(error))}"
        raise InputError(message, where=str(path)) from None
    finally:
        database.close()
    return True


def _relocate_table(
    database: sqlite3.Connection, table: str, column: str, renames: Mapping[str, str]
) -> None:
    rows = database.execute(f"SELECT {column}, value FROM {table}").fetchall()
    for name, text in rows:
        if not isinstance(text, str) or not any(_quoted(old) in text for old in renames):
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        moved = json.dumps(moved_paths(value, renames))
        database.execute(f"UPDATE {table} SET value = ? WHERE {column} = ?", (moved, name))


def _quoted(path: str) -> str:
    return json.dumps(path)[1:-1]


def moved_paths(value: JSON, renames: Mapping[str, str]) -> JSON:
    """Return JSON data with paths replaced wherever they stand in its texts."""
    if isinstance(value, str):
        for old, new in renames.items():
            if old in value:
                value = value.replace(old, new)
        return value
    if isinstance(value, list):
        return [moved_paths(item, renames) for item in value]
    if isinstance(value, dict):
        return {key: moved_paths(item, renames) for key, item in value.items()}
    return value
