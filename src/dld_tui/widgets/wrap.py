"""Breaking foreign text into rows of a width."""

from __future__ import annotations

from dld_tui.core.text import cell_width, visible

_MOST = 5000
"""Rows of a very long text that are kept."""

_MOST_CHARS = 20_000
"""Characters of one very long line that are kept."""


def wrap(text: str, cells: int) -> list[str]:
    """Break text at blanks into rows of at most `cells` cells; its own line breaks stay.

    A word that is too long is cut. The rows have been through ``visible``.
    """
    rows: list[str] = []
    for line in text.splitlines()[:_MOST]:
        rows += _wrap_line(visible(line[:_MOST_CHARS].expandtabs(4)), max(1, cells))
    return rows[:_MOST]


def _wrap_line(line: str, cells: int) -> list[str]:
    if len(line) <= cells and cell_width(line) <= cells:
        return [line]
    indent = line[: len(line) - len(line.lstrip(" "))][: cells // 2]
    rows: list[str] = []
    row = indent
    for word in line.split():
        gap = " " if row.strip() else ""
        if cell_width(row) + len(gap) + cell_width(word) <= cells:
            row += gap + word
            continue
        if row.strip():
            rows.append(row)
        row = indent + word
        while cell_width(row) > cells:
            head = _head(row, cells)
            rows.append(head)
            row = indent + row[len(head) :]
    return [*rows, row]


def _head(text: str, cells: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += cell_width(char)
        if used > cells:
            return text[: max(index, 1)]
    return text
