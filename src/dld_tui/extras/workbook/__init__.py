"""Tables as a workbook, a sheet a table, with XlsxWriter, which is optional."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_command
from dld_tui.core.tables.table import Table
from dld_tui.core.tables.writers import TableWriter
from dld_tui.core.text import visible

MOST_ROWS = (1 << 20) - 1
"""Rows of a sheet below its header."""
_MOST_CHARACTERS = 32_767
_MOST_NUMBER = 9.99999999999999e307
"""The largest number of a cell; rounded to 16 digits, greater ones may be read as infinite."""
_WIDEST, _SAMPLE = 60, 200
_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\']")
_LONGEST_NAME = 31
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CREATED = datetime.datetime(1980, 1, 1)
_OPTIONS = {
    "in_memory": True, "strings_to_formulas": False, "strings_to_urls": False,
    "strings_to_numbers": False,
}  # fmt: skip


def content(tables: Sequence[tuple[str, Table[Any]]], metadata: Mapping[str, str]) -> bytes:
    """Return a workbook: titles of columns in bold in a row that stays, numbers as numbers.

    Untrusted text is made visible and never a formula: cells hold it as text.

    Args:
        tables: The name of each sheet, cut to what a name can be, and its table. A table with more
            than `MOST_ROWS` is cut.
        metadata: Not in it.

    Raises:
        UnavailableError: XlsxWriter is not installed.
    """
    try:
        import xlsxwriter
    except ImportError as error:
        raise UnavailableError(
            "Workbooks need XlsxWriter, which is not installed",
            hint=f"{install_command('excel')}, or write --csv",
        ) from error
    target = io.BytesIO()
    with xlsxwriter.Workbook(target, _OPTIONS) as book:
        book.set_properties({"created": _CREATED})
        bold = book.add_format({"bold": True})
        sheet_names: set[str] = set()
        for title, table in tables:
            _write(book.add_worksheet(_sheet_name(title, sheet_names)), table, bold)
    return target.getvalue()


def _sheet_name(title: str, sheet_names: set[str]) -> str:
    """Return a name that a sheet can have and that none has, and take it."""
    plain = _NOT_IN_A_NAME.sub(" ", visible(title)).strip()[:_LONGEST_NAME] or "Table"
    name, number = plain, 1
    while name.casefold() in sheet_names:
        number += 1
        name = f"{plain[: _LONGEST_NAME - 1 - len(str(number))]} {number}"
    sheet_names.add(name.casefold())
    return name


def _write(sheet: Any, table: Table[Any], bold: Any) -> None:
    sheet.freeze_panes(1, 0)
    for place, column in enumerate(table.columns):
        cells = [column.unit.plain(column.value(row)) for row in table.rows[:MOST_ROWS]]
        title = _text(column.title)
        texts = ["" if cell is None else str(cell) for cell in cells[:_SAMPLE]]
        sheet.set_column(place, place, min(_WIDEST, max(map(len, [title, *texts])) + 2))
        sheet.write_string(0, place, title, bold)
        for row, cell in enumerate(cells, start=1):
            if isinstance(cell, bool):
                sheet.write_boolean(row, place, cell)
            elif isinstance(cell, (int, float)) and abs(cell) <= _MOST_NUMBER:
                sheet.write_number(row, place, cell)
            elif cell is not None:
                sheet.write_string(row, place, _text(str(cell)))


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", visible(text))[:_MOST_CHARACTERS]


WRITER = TableWriter(".xlsx", "a workbook (needs XlsxWriter)", content, several=True)
