"""The tables of a report file. docs/report-format.md is their documentation for other programs.

A change that only adds tables or nullable columns keeps `VERSION`: readers look up what they know.
A change of the meaning of a column raises it, and older programs then refuse the file.
"""

from __future__ import annotations

import sqlite3
from types import MappingProxyType

APPLICATION_ID = 0x444C4450
"""``DLDP``: what ``file`` and SQLite know a report by (header bytes 68 to 71)."""

VERSION = 1
"""``PRAGMA user_version`` of the reports that this program writes."""

TABLES = MappingProxyType(
    {
        # One row a fact; `value` is JSON, so that a number stays a number.
        "report": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
        "settings": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
        "environment": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
        "notes": "id INTEGER PRIMARY KEY, level TEXT NOT NULL, text TEXT NOT NULL",
        # The latency loop: profiling off.
        "latencies": "pass INTEGER PRIMARY KEY, ms REAL NOT NULL",
        # The profiled run.
        "passes": (
            "pass INTEGER PRIMARY KEY, start_us REAL NOT NULL, duration_us REAL NOT NULL,"
            " state TEXT NOT NULL"
        ),
        "layers": (
            "id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, provider TEXT,"
            " precision TEXT, input_dims TEXT, output_dims TEXT, input_types TEXT,"
            " output_types TEXT, confidence TEXT NOT NULL, details TEXT NOT NULL, time_ms REAL,"
            " percent REAL, min_ms REAL, max_ms REAL, mean_ms REAL, count REAL, passes INTEGER"
        ),
        "layer_nodes": (
            "layer INTEGER NOT NULL, position INTEGER NOT NULL, scope TEXT NOT NULL,"
            " node TEXT NOT NULL, name TEXT NOT NULL, op_type TEXT NOT NULL,"
            " confidence TEXT NOT NULL, share REAL NOT NULL, PRIMARY KEY (layer, position)"
        ),
        # A row of the timeline: a thread now, a stream, a copy engine or a counter later.
        "tracks": "id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL",
        # Clustered by pass: rows are appended in this order, and one pass is one range.
        "samples": (
            "pass INTEGER NOT NULL, seq INTEGER NOT NULL, layer INTEGER NOT NULL,"
            " start_us REAL NOT NULL, duration_us REAL NOT NULL, self_us REAL NOT NULL,"
            " track INTEGER NOT NULL, PRIMARY KEY (pass, seq)"
        ),
    }
)

WITHOUT_ROWID = frozenset({"report", "settings", "environment", "layer_nodes", "samples"})


def create(database: sqlite3.Connection) -> None:
    """Make an empty report of an empty database."""
    # Not WAL: a finished report is one file, which also opens in a folder without write access.
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("BEGIN")
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")
    for name, columns in TABLES.items():
        ending = " WITHOUT ROWID" if name in WITHOUT_ROWID else ""
        database.execute(f"CREATE TABLE {name} ({columns}){ending}")
    database.execute("COMMIT")


def insertion(table: str) -> str:
    """Return the SQL that adds or replaces a row, with a mark for each column."""
    marks = ", ".join("?" * len(column_names(table)))
    return f"INSERT OR REPLACE INTO {table} VALUES ({marks})"


def column_names(table: str) -> list[str]:
    """Return the names of a table's columns, in order."""
    parts = TABLES[table].split(", PRIMARY KEY (")[0].split(",")
    return [part.split()[0] for part in parts]
