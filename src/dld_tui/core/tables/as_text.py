"""A table as lines of text, for a pipe or a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dld_tui.core.tables.table import Table
from dld_tui.core.text import cell_width, clip, fit, visible

GAP = "  "
"""Between two columns."""
_LEAST = 8
"""A text is not cut to fewer cells."""
_LONGEST = 200
_ENOUGH = 32
"""The cells of texts behind the first column, on a terminal: the first is the one to read."""
_READABLE = 20
"""The room that a text is given before columns are left out."""


def text_lines(table: Table[Any], room: int | None = None) -> list[str]:
    """Return the titles and the rows, fit for a terminal.

    Args:
        table: The table.
        room: The cells of a line: texts give way, the longest first. None leaves them whole.
    """
    return _lines(table, _cells(table), room)


def fitted_lines(table: Table[Any], room: int | None) -> tuple[list[str], list[str]]:
    """Return the lines as :func:`text_lines` does, and the titles for which there was no room.

    Columns that say nothing, and then those at the end, make room for the others.
    """
    if room is not None:
        table = table.telling()
    longest = [_LONGEST, *[_LONGEST if room is None else _ENOUGH] * (len(table.columns) - 1)]
    cells = [
        [clip(text, cells, keep="middle") for text, cells in zip(row, longest, strict=True)]
        for row in _cells(table)
    ]
    shown = len(table.columns) if room is None else _fitting(table, cells, room)
    left_out = [column.title for column in table.columns[shown:]]
    kept = replace(table, columns=table.columns[:shown])
    return _lines(kept, [row[:shown] for row in cells], room), left_out


def _cells(table: Table[Any]) -> list[list[str]]:
    return [[visible(column.shown_text(row)) for column in table.columns] for row in table.rows]


def _lines(table: Table[Any], cells: list[list[str]], room: int | None) -> list[str]:
    rows = [[column.title for column in table.columns], *cells]
    widths = [max(map(cell_width, texts)) for texts in zip(*rows, strict=True)]
    if room is not None:
        _narrow(table, widths, room)
    aligns = ["right" if column.is_right else "left" for column in table.columns]
    return [
        GAP.join(
            fit(clip(text, width, keep="end"), width, align=align)
            for text, width, align in zip(row, widths, aligns, strict=True)
        ).rstrip()
        for row in rows
    ]


def _narrow(table: Table[Any], widths: list[int], room: int) -> None:
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        if not table.columns[place].is_right and excess > 0:
            less = min(excess, max(0, widths[place] - _LEAST))
            widths[place] -= less
            excess -= less


def _fitting(table: Table[Any], cells: list[list[str]], room: int) -> int:
    """Return how many columns there is room for."""
    used = 0
    for place, column in enumerate(table.columns):
        width = max(map(cell_width, (column.title, *(row[place] for row in cells))))
        used += width if column.is_right else min(width, _READABLE)
        used += len(GAP) * bool(place)
        if used > room:
            return max(place, 1)
    return len(table.columns)
