"""The one place where CSV is written: foreign text is made visible, and is never a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula, some of them in full width, too."""
_IN_LINE = re.compile(r"[^\t\n\r]+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_of(table: Table[Any]) -> str:
    """Return a table as CSV with the keys of its columns; lists are joined by ``;``."""

    def joined(column: Column[Any]) -> Callable[[Any], object]:
        return lambda row: column.unit.plain(column.value(row))

    cells = [
        joined(column) if column.unit.type == "list" else column.value for column in table.columns
    ]
    return csv_text(table.keys, ([cell(row) for cell in cells] for row in table.rows))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV (RFC 4180) with a header row.

    Control, bidirectional and invalid characters of texts are escaped as everywhere, but for tabs
    and line ends, which CSV can hold; a text that a spreadsheet would run as a formula gets a quote
    before it. None is an empty cell.

    Args:
        header: The names of the columns.
        rows: Texts, numbers, booleans and None.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = _IN_LINE.sub(lambda match: visible(match.group()), value)
    if value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{shown}"
    return shown
