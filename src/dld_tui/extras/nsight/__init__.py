"""Nsight Systems' SQLite exports as reports."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.files.recognise import ReportReader
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report

_MAGIC = b"SQLite format 3\x00"


def matches(head: bytes, path: Path) -> bool:
    """Tell whether an SQLite database is what ``nsys export --type sqlite`` writes."""
    if not head.startswith(_MAGIC):
        return False
    import sqlite3
    from urllib.parse import quote

    try:
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in tables if isinstance(name, str)}
    except sqlite3.Error:
        return False
    telling = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_", "META_DATA_EXPORT")
    return "StringIds" in names and any(name.startswith(telling) for name in names)


def read(path: Path, progress: ProgressCallback | None, cancelled: CancelCheck | None) -> Report:
    """Return an export as a report; see :func:`.export.report_from_nsight`."""
    from dld_tui.extras.nsight.export import report_from_nsight

    return report_from_nsight(path, progress, cancelled)


READER = ReportReader("an export of Nsight Systems", matches, read)
