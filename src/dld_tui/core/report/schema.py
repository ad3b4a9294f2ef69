"""The tables of a report file. docs/report-format.md is their documentation for other programs.

`VERSION` says which of them a file has: what a later version added is not looked for in an older
file. An older program refuses a file of a later version.
"""

from __future__ import annotations

import sqlite3
from types import MappingProxyType

APPLICATION_ID = 0x444C4450
"""``DLDP``: what ``file`` and SQLite know a report by (header bytes 68 to 71)."""

VERSION = 2
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
            " state TEXT NOT NULL, counter_start_us REAL"
        ),
        "layers": (
            "id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, provider TEXT,"
            " precision TEXT, input_dims TEXT, output_dims TEXT, input_types TEXT,"
            " output_types TEXT, confidence TEXT NOT NULL, details TEXT NOT NULL, time_ms REAL,"
            " percent REAL, min_ms REAL, max_ms REAL, mean_ms REAL, count REAL, passes INTEGER,"
            " gpu_time_ms REAL"
        ),
        "layer_nodes": (
            "layer INTEGER NOT NULL, position INTEGER NOT NULL, scope TEXT NOT NULL,"
            " node TEXT NOT NULL, name TEXT NOT NULL, op_type TEXT NOT NULL,"
            " confidence TEXT NOT NULL, share REAL NOT NULL, PRIMARY KEY (layer, position)"
        ),
        # A row of the timeline: a thread of the processor or a stream of a GPU.
        "tracks": "id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL",
        # Clustered by pass: rows are appended in this order, and one pass is one range.
        "samples": (
            "pass INTEGER NOT NULL, seq INTEGER NOT NULL, layer INTEGER NOT NULL,"
            " start_us REAL NOT NULL, duration_us REAL NOT NULL, self_us REAL NOT NULL,"
            " track INTEGER NOT NULL, PRIMARY KEY (pass, seq)"
        ),
        # What a GPU did, from the start of the pass. Names of kernels are long and come again and
        # again, so they are kept once.
        "gpu_names": "id INTEGER PRIMARY KEY, name TEXT NOT NULL",
        "gpu_events": (
            "pass INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,"
            " name INTEGER NOT NULL, track INTEGER NOT NULL, start_us REAL NOT NULL,"
            " duration_us REAL NOT NULL, layer INTEGER, bytes INTEGER, details TEXT,"
            " PRIMARY KEY (pass, seq)"
        ),
        # Values over time. A counter that could not be measured says why in `absent`.
        "counters": (
            "id INTEGER PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL, unit TEXT NOT NULL,"
            " maximum REAL, source TEXT NOT NULL, absent TEXT, samples INTEGER, first_us REAL,"
            " last_us REAL, highest REAL, period_us REAL, levels INTEGER"
        ),
        "counter_samples": (
            "counter INTEGER NOT NULL, time_us REAL NOT NULL, value REAL NOT NULL,"
            " PRIMARY KEY (counter, time_us)"
        ),
        # The same in coarser steps, so that a long stretch is drawn from few rows.
        "counter_blocks": (
            "counter INTEGER NOT NULL, level INTEGER NOT NULL, block INTEGER NOT NULL,"
            " samples INTEGER NOT NULL, total REAL NOT NULL, lowest REAL NOT NULL,"
            " highest REAL NOT NULL, PRIMARY KEY (counter, level, block)"
        ),
    }
)

_ADDED = MappingProxyType(
    {
        "gpu_names": 2,
        "gpu_events": 2,
        "counters": 2,
        "counter_samples": 2,
        "counter_blocks": 2,
        "passes.counter_start_us": 2,
        "layers.gpu_time_ms": 2,
    }
)
"""The version that brought a table or column which version 1 did not have."""

WITHOUT_ROWID = frozenset(
    {
        "report",
        "settings",
        "environment",
        "layer_nodes",
        "samples",
        "gpu_events",
        "counter_samples",
        "counter_blocks",
    }
)


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


def column_names(table: str, version: int = VERSION) -> list[str]:
    """Return the names of a table's columns in a report of a version, in order."""
    parts = TABLES[table].split(", PRIMARY KEY (")[0].split(",")
    names = [part.split()[0] for part in parts]
    return [name for name in names if _ADDED.get(f"{table}.{name}", 1) <= version]


def table_names(version: int) -> list[str]:
    """Return the names of the tables that a report of a version has."""
    return [table for table in TABLES if _ADDED.get(table, 1) <= version]
