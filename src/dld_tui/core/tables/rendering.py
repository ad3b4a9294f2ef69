"""Renderers of a table: text, CSV, Markdown, HTML and Parquet; and of several, as a workbook."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from dld_tui.core.tables.html_page import attributes, text
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import cut_names

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""The beginning of a formula for a spreadsheet; some ignore blanks before it."""
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
    if _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{shown}"
    return shown


def markdown_plain(text: str) -> str:
    """Return text that may hold foreign parts so that none of it is markup."""
    return re.sub(r"[\\`*_\[\]<>&|~$@#]", r"\\\g<0>", visible(text))


def markdown_of(table: Table[Any]) -> str:
    """Return a table as Markdown, a line a row."""
    lines = [
        "| " + " | ".join(markdown_plain(column.title) for column in table.columns) + " |",
        "|" + "---|" * len(table.columns),
    ]
    for row in table.rows:
        cells = [markdown_plain(column.shown_text(row)) for column in table.columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


FILTER_FROM = 20
"""Rows from which a table has a field to filter it."""
_BRIEF = 20
"""Texts of at most so many characters are not broken."""


def html_of(anchor: str, table: Table[Any]) -> str:
    """Return a table in its order; empty text without rows.

    Args:
        anchor: A word of our own, no other table of the page has it.
    """
    if not table.rows:
        return ""
    shown = [[text(column.shown_text(row)) for column in table.columns] for row in table.rows]
    classes = [
        _class(column, max(map(len, texts)))
        for column, texts in zip(table.columns, zip(*shown, strict=True), strict=True)
    ]
    body = "\n".join(
        "<tr>" + "".join(map(_html_cell, repeat(row), texts, table.columns, classes)) + "</tr>"
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


def _html_cell(row: Any, shown: str, column: Column[Any], kind: str) -> str:
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


GAP = "  "
"""Between two columns."""
_LEAST = 8
"""The fewest cells to which a text is cut."""
_LONGEST = 200
_ENOUGH = 32
"""The most cells of texts after the first column, on a terminal."""
_READABLE = 20
"""The width that a text gets before columns are left out."""


def text_lines(table: Table[Any], room: int | None = None) -> list[str]:
    """Return the titles and the rows, fit for a terminal.

    Args:
        room: The cells of a line: texts give way, the longest first. None leaves them whole.
    """
    return _lines(table, _cells(table), room)


def fitted_lines(table: Table[Any], room: int | None) -> tuple[list[str], list[str]]:
    """Return the lines as :func:`text_lines` does, and the titles for which there was no room.

    Empty columns, and then those of the highest priority number, are left out.
    """
    if room is not None:
        table = table.telling()
    longest = [_LONGEST, *[_LONGEST if room is None else _ENOUGH] * (len(table.columns) - 1)]
    cells = _cut(table.columns, _cells(table), longest)
    shown = [*range(len(table.columns))] if room is None else _fitting(table, cells, room)
    kept = replace(table, columns=[table.columns[place] for place in shown])
    left_out = [column.title for column in table.columns if column not in kept.columns]
    return _lines(kept, [[row[place] for place in shown] for row in cells], room), left_out


def _cells(table: Table[Any]) -> list[list[str]]:
    return [[visible(column.shown_text(row)) for column in table.columns] for row in table.rows]


def _lines(table: Table[Any], cells: list[list[str]], room: int | None) -> list[str]:
    columns = table.columns
    titles = [column.title for column in columns]
    widths = _widths([titles, *cells])
    if room is not None:
        _narrow(columns, widths, room)
    return [
        GAP.join(
            fit(text, width, align="right" if column.is_right else "left")
            for text, width, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in (titles, *_cut(columns, cells, widths))
    ]


def _cut(
    columns: Sequence[Column[Any]], cells: list[list[str]], widths: Sequence[int]
) -> list[list[str]]:
    """Return texts cut to the widths of their columns; names stay different."""
    if not cells:
        return []
    texts: list[Sequence[str]] = []
    for column, width, whole in zip(columns, widths, zip(*cells, strict=True), strict=True):
        is_name = column.keep != "start"
        texts.append(cut_names(whole, width) if is_name else [clip(t, width) for t in whole])
    return [[*row] for row in zip(*texts, strict=True)]


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(map(cell_width, texts)) for texts in zip(*rows, strict=True)]


def _narrow(columns: Sequence[Column[Any]], widths: list[int], room: int) -> None:
    """Cut the longest texts to one width, so that all columns fit."""
    texts = [place for place, column in enumerate(columns) if not column.is_right]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    while excess > 0:
        place = max(texts, key=lambda place: widths[place], default=None)
        if place is None or widths[place] <= _LEAST:
            return
        widths[place] -= 1
        excess -= 1


def _fitting(table: Table[Any], cells: list[list[str]], room: int) -> list[int]:
    """Return the places of the columns that there is room for."""
    widths = _widths([[column.title for column in table.columns], *cells])
    needed = [
        width if column.is_right else min(width, _READABLE)
        for width, column in zip(widths, table.columns, strict=True)
    ]
    places = [*range(len(needed))]
    while (
        len(places) > 1 and sum(needed[at] for at in places) + len(GAP) * (len(places) - 1) > room
    ):
        places.remove(max(places[1:], key=lambda at: (table.columns[at].priority, at)))
    return places
