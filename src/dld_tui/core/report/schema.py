"""The SQLite file of a report: its tables, checks of values, and opening a file for reading.

`VERSION` is the version of tables and columns: those that a later version added are not expected
in an older file. An older program refuses a file of a later version.

A file may be anything: truncated, of another program, or malicious. Nothing in it is executed: a
table must be an ordinary table with ordinary columns, and the type of every value is checked.

Counters also have coarser levels, so that a long time span is drawn from few rows. Level 1 has
blocks of `STEP` sampling periods, each further level blocks `STEP` times as long. Blocks are cut by
time and not by number of samples, so that none hides a gap without measurements.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, TypeAlias, TypeGuard, TypeVar
from urllib.parse import quote

from dld_tui.core.codec import finite
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CorruptFileError, InputError, SaveError
from dld_tui.core.files.source import Source
from dld_tui.core.report.details import details_of
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.statistics import is_valid_time, median
from dld_tui.core.text import encodable, visible
from dld_tui.core.types import JSON


def as_json(value: JSON) -> str:
    """Return JSON text; numbers that JSON cannot hold become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), allow_nan=False)


def as_list(dims: Sequence[int | str | None] | None) -> JSON:
    """Return a shape as JSON data; None for an unknown one."""
    return None if dims is None else list(dims)


def layer_row(index: int, layer: Layer) -> tuple[object, ...]:
    """Return the row of a layer whose statistics are not known yet."""
    return (
        index,
        encodable(layer.name),
        encodable(layer.type),
        None if layer.provider is None else encodable(layer.provider),
        layer.precision,
        as_json([as_list(dims) for dims in layer.input_dims]),
        as_json([as_list(dims) for dims in layer.output_dims]),
        as_json(list(layer.input_types)),
        as_json(list(layer.output_types)),
        layer.confidence,
        as_json(details_of(layer)),
        *(None,) * 8,
    )


def link_row(index: int, position: int, link: NodeLink) -> tuple[object, ...]:
    """Return the row of a layer's link to an ONNX node."""
    scope = as_json(list(link.scope))
    texts = (encodable(link.node), encodable(link.name), encodable(link.op_type))
    return (index, position, scope, *texts, link.confidence, link.share)


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file or database being written into a SaveError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SaveError(f"cannot write the report: {reason}", where=str(path)) from error
    except sqlite3.Error as error:
        raise SaveError(f"cannot write the report: {error}", where=str(path)) from error


Shapes: TypeAlias = "tuple[tuple[int | str | None, ...] | None, ...]"
NoneType = type(None)
_REMEMBERED = 4096
"""Texts of shapes and types whose values are kept."""


class WrongValue(Exception):
    """A value of a report is not of the type that its column says."""


def text_of(value: object, place: str) -> str:
    """Return a text value."""
    if isinstance(value, str):
        return value
    raise WrongValue(f"{place} is not text")


def optional_text(value: object, place: str) -> str | None:
    """Return a text value or None."""
    return None if value is None else text_of(value, place)


def number_of(value: object, place: str) -> float:
    """Return a finite number."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    raise WrongValue(f"{place} is not a number")


def optional_number(value: object, place: str) -> float | None:
    """Return a finite number or None."""
    return None if value is None else number_of(value, place)


def optional_time(value: object, place: str) -> float | None:
    """Return a finite number; None for missing values and for numbers that no time can have."""
    number = optional_number(value, place)
    return number if number is None or is_valid_time(number) else None


def number_or_nan(value: object, place: str) -> float:
    """Return a finite number, or NaN, which SQLite stores as NULL."""
    return math.nan if value is None else number_of(value, place)


def whole_of(value: object, place: str) -> int:
    """Return an integer."""
    if isinstance(value, int):
        return value
    raise WrongValue(f"{place} is not an integer")


def json_of(value: object, place: str) -> JSON:
    """Return the data of a JSON value."""
    try:
        data: JSON = _DECODER.decode(text_of(value, place))
    except (ValueError, RecursionError) as error:
        raise WrongValue(f"{place} is not JSON") from error
    return data


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
"""Made once: json.loads would make one for each of a report's tens of thousands of values."""


def texts_of(value: object, place: str) -> tuple[str, ...]:
    """Return a JSON list of strings."""
    texts = _texts(text_of(value, place))
    if isinstance(texts, str):
        raise WrongValue(f"{place} {texts}")
    return texts


def _listed(text: str) -> list[JSON] | str:
    """Return a JSON list, or a problem as text."""
    try:
        data = json_of(text, "it")
    except WrongValue:
        return "is not JSON"
    return data if isinstance(data, list) else "is not a list"


@lru_cache(maxsize=_REMEMBERED)
def _texts(text: str) -> tuple[str, ...] | str:
    """Return the strings, or a problem as text. Cached: layers of one kind have the same ones."""
    data = _listed(text)
    if isinstance(data, str):
        return data
    texts = tuple(item for item in data if isinstance(item, str))
    return texts if len(texts) == len(data) else "is not text"


def shapes_of(value: object, place: str) -> Shapes:
    """Return a JSON list of shapes."""
    shapes = _shapes(text_of(value, place))
    if isinstance(shapes, str):
        raise WrongValue(f"{place} {shapes}")
    return shapes


def _is_dimension(value: JSON) -> TypeGuard[int | str | None]:
    return type(value) in (int, str, NoneType)


@lru_cache(maxsize=_REMEMBERED)
def _shapes(text: str) -> Shapes | str:
    data = _listed(text)
    if isinstance(data, str):
        return data
    shapes: list[tuple[int | str | None, ...] | None] = []
    for dims in data:
        if dims is not None and not isinstance(dims, list):
            return "is not a list of shapes"
        shape = None if dims is None else tuple(d for d in dims if _is_dimension(d))
        if shape is not None and len(shape) != len(dims or ()):
            return "has a wrong dimension"
        shapes.append(shape)
    return tuple(shapes)


Word = TypeVar("Word", bound=str)


def one_of(value: object, choices: Sequence[Word], default: Word) -> Word:
    """Return a text value that is one of `choices`, else `default` (a later version's word)."""
    return next((choice for choice in choices if choice == value), default)


APPLICATION_ID = 0x444C4450
"""``DLDP``: what ``file`` and SQLite know a report by (header bytes 68 to 71)."""

VERSION = 2
"""``PRAGMA user_version`` of the reports that this program writes."""

TABLES = MappingProxyType(
    {
        # One row a property; `value` is JSON, so that a number stays a number.
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
        # GPU work, from the start of the pass. Names of kernels are long and repeat,
        # so they are kept once.
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
    words = (part.split()[0] for part in TABLES[table].split(","))
    names = [*takewhile(lambda word: word != "PRIMARY", words)]
    return [name for name in names if _ADDED.get(f"{table}.{name}", 1) <= version]


def table_names(version: int) -> list[str]:
    """Return the names of the tables that a report of a version has."""
    return [table for table in TABLES if _ADDED.get(table, 1) <= version]


MAGIC = b"SQLite format 3\x00"
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
        and header.startswith(MAGIC)
        and struct.unpack(">I", header[68:72])[0] == APPLICATION_ID
    )


def _check_header(path: Path) -> None:
    source = Source.open(path)
    try:
        header = source.read(0, min(100, source.size))
    finally:
        source.close()
    if not header:
        raise InputError("File is empty (0 bytes)", where=str(path))
    if not header.startswith(MAGIC):
        raise InputError("not a profile report", where=str(path))
    if len(header) < 100:
        raise CorruptFileError("the report is cut short", where=str(path))
    if not is_report(header):
        raise InputError("an SQLite database, but not a profile report", where=str(path))
    version = struct.unpack(">I", header[60:64])[0]
    if version > VERSION:
        raise InputError(
            f"report of version {version}, newer than this program knows ({VERSION})",
            where=str(path),
            hint="Update dld-tui",
        )
    if version < 1:
        raise CorruptFileError("the report has no version", where=str(path))


def _connect(path: Path) -> sqlite3.Connection:
    # A run killed in the middle of a commit leaves a journal that must be rolled back first: that
    # needs write access. Without it, the pages in the file may still be consistent.
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
    for table in table_names(version):
        if kinds.get(table) != "table":
            raise CorruptFileError(f"the report has no table {table!r}", where=str(path))
        rows = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
        plain = {name for _, name, _, _, _, _, hidden in rows if not hidden}
        for column in column_names(table, version):
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


COMMAND = "command"
"""The property of a report that has the words of the command that made it, without where it was
written."""
_TABLES = {"report": "key", "settings": "name"}
"""Tables of values, and the column that names a row."""


def relocate(path: Path, renames: Mapping[str, str], target: str = "") -> bool:
    """Replace paths in properties and settings of a report; return whether the file is a report.

    The command that made it is changed to one that repeats it from this machine.

    Args:
        path: The file, of any kind.
        renames: Remote paths, and the local paths that replace them.
        target: The name of the target that ran it.

    Raises:
        InputError: It begins like a report and cannot be read, or has triggers or views.
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
            raise InputError("a report with triggers or views is not accepted", where=str(path))
        with database:
            for table, column in _TABLES.items():
                _relocate_table(database, table, column, renames)
            if target:
                _add_target(database, target)
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


def _add_target(database: sqlite3.Connection, target: str) -> None:
    row = database.execute("SELECT value FROM report WHERE key = ?", (COMMAND,)).fetchone()
    try:
        words = json.loads(row[0]) if row else None
    except (TypeError, ValueError, RecursionError):
        return
    if words and isinstance(words, list):
        words += ["--target", target]
        change = "UPDATE report SET value = ? WHERE key = ?"
        database.execute(change, (json.dumps(words), COMMAND))


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


STEP = 8
_ENOUGH = 512
"""A level with at most this number of blocks is the last one."""
_PERIODS = 1000
"""How many samples the sampling period is estimated from."""


@dataclass(frozen=True)
class Extent:
    """The extent of a counter's samples."""

    samples: int
    first_us: float
    last_us: float
    highest: float
    period_us: float


def block_us(period_us: float, level: int) -> float:
    """Return the length of the blocks of a level, 1 being the finest."""
    return float(period_us * STEP**level)


def extent_of(database: sqlite3.Connection, counter: int) -> Extent | None:
    """Return the extent of a counter's samples; None without samples."""
    samples, first, last, highest = database.execute(
        "SELECT COUNT(*), MIN(time_us), MAX(time_us), MAX(value) FROM counter_samples"
        " WHERE counter = ?",
        (counter,),
    ).fetchone()
    if not samples:
        return None
    rows = database.execute(
        "SELECT time_us FROM counter_samples WHERE counter = ? ORDER BY time_us LIMIT ?",
        (counter, _PERIODS + 1),
    ).fetchall()
    times = [number_of(row[0], "time of a sample") for row in rows]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    ends = (number_of(first, "time of a sample"), number_of(last, "time of a sample"))
    top = number_of(highest, "value of a sample")
    return Extent(samples, *ends, top, median(gaps) if gaps else 0.0)


def store_counters(database: sqlite3.Connection) -> None:
    """Fill the computed columns of the counters, and the blocks, of a report being written."""
    database.execute("BEGIN IMMEDIATE")
    database.execute("DELETE FROM counter_blocks")
    for (counter,) in database.execute("SELECT id FROM counters").fetchall():
        extent = extent_of(database, counter)
        if extent is None:
            continue
        levels = _store_blocks(database, counter, extent)
        database.execute(
            "UPDATE counters SET samples = ?, first_us = ?, last_us = ?, highest = ?,"
            " period_us = ?, levels = ? WHERE id = ?",
            (
                extent.samples,
                extent.first_us,
                extent.last_us,
                extent.highest,
                extent.period_us,
                levels,
                counter,
            ),
        )
    database.execute("COMMIT")


def _store_blocks(database: sqlite3.Connection, counter: int, extent: Extent) -> int:
    if extent.period_us <= 0 or extent.samples <= _ENOUGH:
        return 0
    length = block_us(extent.period_us, 1)
    blocks = database.execute(
        "INSERT INTO counter_blocks SELECT counter, 1, CAST((time_us - ?) / ? AS INTEGER),"
        " COUNT(*), SUM(value), MIN(value), MAX(value) FROM counter_samples WHERE counter = ?"
        " GROUP BY 3",
        (extent.first_us, length, counter),
    ).rowcount
    level = 1
    while blocks > _ENOUGH:
        blocks = database.execute(
            "INSERT INTO counter_blocks SELECT counter, level + 1, block / ?, SUM(samples),"
            " SUM(total), MIN(lowest), MAX(highest) FROM counter_blocks"
            " WHERE counter = ? AND level = ? GROUP BY 3",
            (STEP, counter, level),
        ).rowcount
        level += 1
    return level
