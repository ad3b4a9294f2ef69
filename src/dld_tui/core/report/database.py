"""Opening a report file for reading, whatever it turns out to be, and from another machine.

The file may be anything: truncated, of another program, made to do harm. Nothing in it is run: a
table must be an ordinary table with ordinary columns, and every value is checked for its type.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.report import schema
from dld_tui.core.report.schema import WrongValue
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_MAGIC = b"SQLite format 3\x00"
_BUSY_SECONDS = 2.0


def open_database(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to a report.

    Raises:
        InputError: The file cannot be read, is not a report, or is of a newer version.
        CorruptFileError: It is damaged.
    """
    _check_header(path)
    with reading(path):
        database = _connect(path)
        try:
            _check_tables(path, database)
        except BaseException:
            database.close()
            raise
    return database


def version_of(database: sqlite3.Connection) -> int:
    """Return the version of a report's tables."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def is_report(header: bytes) -> bool:
    """Return True when the first 100 bytes of a file are those of a report."""
    return (
        len(header) >= 100
        and header.startswith(_MAGIC)
        and struct.unpack(">I", header[68:72])[0] == schema.APPLICATION_ID
    )


def _check_header(path: Path) -> None:
    source = Source.open(path)
    try:
        header = source.read(0, min(100, source.size))
    finally:
        source.close()
    if not header:
        raise InputError("File is empty (0 bytes)", where=str(path))
    if not header.startswith(_MAGIC):
        raise InputError("not a profile report", where=str(path))
    if len(header) < 100:
        raise CorruptFileError("the report is cut short", where=str(path))
    if not is_report(header):
        raise InputError("an SQLite database, but not a profile report", where=str(path))
    version = struct.unpack(">I", header[60:64])[0]
    if version > schema.VERSION:
        raise InputError(
            f"report of version {version}, newer than this program knows ({schema.VERSION})",
            where=str(path),
            hint="Update dld-tui",
        )
    if version < 1:
        raise CorruptFileError("the report has no version", where=str(path))


def _connect(path: Path) -> sqlite3.Connection:
    # A run killed in the middle of a commit leaves a journal that must be rolled back first: that
    # needs write access. Without it, the pages as they are may still be whole.
    modes = ["mode=ro"]
    if os.path.exists(f"{path}-journal"):
        modes += ["mode=rw", "mode=ro&immutable=1"]
    failure: sqlite3.Error | None = None
    for mode in modes:
        address = f"file:{quote(os.path.abspath(path))}?{mode}"
        database = sqlite3.connect(
            address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            database.text_factory = _decoded
            for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
                database.execute(f"PRAGMA {pragma}")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return database
        except sqlite3.OperationalError as error:
            database.close()
            failure = failure or error
        except BaseException:
            database.close()
            raise
    assert failure is not None
    raise failure


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _check_tables(path: Path, database: sqlite3.Connection) -> None:
    version = version_of(database)
    kinds = dict(database.execute("SELECT name, type FROM sqlite_master").fetchall())
    for table in schema.table_names(version):
        if kinds.get(table) != "table":
            raise CorruptFileError(f"the report has no table {table!r}", where=str(path))
        rows = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
        plain = {name for _, name, _, _, _, _, hidden in rows if not hidden}
        for column in schema.column_names(table, version):
            if column not in plain:
                raise CorruptFileError(f"table {table!r} has no column {column!r}", where=str(path))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what SQLite says about a file into an input error that names it."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise InputError(
                "the report is being written", where=str(path), hint="Try again"
            ) from error
        raise CorruptFileError(f"the report is damaged: {text}", where=str(path)) from error
    except (WrongValue, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise CorruptFileError(f"the report is damaged: {error}", where=str(path)) from error


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
