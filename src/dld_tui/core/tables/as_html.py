"""A table of a page, sorted by a click on a column's title."""

from __future__ import annotations

import math
from itertools import repeat
from typing import Any

from dld_tui.core.report.html.page import attributes, text
from dld_tui.core.tables.table import Column, Table

FILTER_FROM = 20
"""Rows from which a table has a field to filter it."""
_BRIEF = 20
"""Texts of at most so many characters are not broken."""


def html_of(anchor: str, table: Table[Any]) -> str:
    """Return a table in its order; empty text without rows.

    Args:
        anchor: A word of our own, no other table of the page has it.
        table: The table.
    """
    if not table.rows:
        return ""
    shown = [[text(column.shown_text(row)) for column in table.columns] for row in table.rows]
    classes = [
        _class(column, max(map(len, texts)))
        for column, texts in zip(table.columns, zip(*shown, strict=True), strict=True)
    ]
    body = "\n".join(
        "<tr>" + "".join(map(_cell, repeat(row), texts, table.columns, classes)) + "</tr>"
        for row, texts in zip(table.rows, shown, strict=True)
    )
    heads = "".join(
        f'<th scope="col"{kind}{_order(column, table)}>'
        f'<button type="button">{text(column.title)}</button></th>'
        for column, kind in zip(table.columns, classes, strict=True)
    )
    field = ""
    if len(table) >= FILTER_FROM:
        field = (
            f'<input type="search" data-table="{anchor}" placeholder="filter {len(table):,} rows"'
            f' aria-label="filter {len(table):,} rows">'
        )
    return (
        f'{field}<div class="wide"><table class="sortable" id="{anchor}"><thead><tr>{heads}</tr>'
        f"</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(row: Any, shown: str, column: Column[Any], kind: str) -> str:
    if not column.unit.is_number:
        return f"<td{kind}>{shown}</td>"
    value = column.value(row)
    known = isinstance(value, (int, float)) and math.isfinite(value)
    return f"<td{kind}{attributes(data_v=f'{value:.9g}' if known else '')}>{shown}</td>"


def _class(column: Column[Any], longest: int) -> str:
    if column.is_right:
        return ' class="n"'
    if column.width is None:
        return ' class="name"'
    return ' class="b"' if longest <= _BRIEF else ""


def _order(column: Column[Any], table: Table[Any]) -> str:
    return ' aria-sort="descending"' if column.key == table.sort and column.falls else ""
