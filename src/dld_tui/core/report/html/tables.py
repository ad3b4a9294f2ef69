"""Tables that are sorted by a click on a column's title."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.report.html.markup import attributes, text

FILTER_FROM = 20
"""Rows from which a table has a field to filter it."""


@dataclass(frozen=True)
class Column:
    """A column."""

    title: str
    numeric: bool = False
    """Aligned to the right and sorted by value, the largest first."""
    name: bool = False
    """Holds names, which need room."""
    brief: bool = False
    """Holds short words, which are not broken."""


@dataclass(frozen=True)
class Number:
    """A figure: shown as text, sorted by its value."""

    value: float | None
    shown: str


Cell: TypeAlias = "str | Number"
"""Text, which is foreign, or a figure."""


def milliseconds(value: float | None) -> Number:
    """Return a time in milliseconds."""
    return Number(value, fmt.milliseconds(value))


def percent(value: float | None) -> Number:
    """Return a percentage."""
    return Number(value, fmt.percent(value))


def count(value: float | None) -> Number:
    """Return a count, with decimals where it has some."""
    return Number(value, fmt.UNKNOWN if value is None else f"{value:,.10g}")


def table(
    anchor: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    sorted_by: int | None = None,
) -> str:
    """Return a table; empty text without rows.

    Args:
        anchor: A word of our own, no other table of the page has it.
        columns: Of every row.
        rows: In the order to show first.
        sorted_by: The column that they are sorted by already, largest first.
    """
    made = ["<tr>" + "".join(map(_cell, row, columns)) + "</tr>" for row in rows]
    if not made:
        return ""
    heads = "".join(
        f'<th scope="col"{_class(column)}{_order(place == sorted_by)}>'
        f'<button type="button">{text(column.title)}</button></th>'
        for place, column in enumerate(columns)
    )
    field = ""
    if len(made) >= FILTER_FROM:
        field = (
            f'<input type="search" data-table="{anchor}" placeholder="filter {len(made):,} rows"'
            f' aria-label="filter {len(made):,} rows">'
        )
    return (
        f'{field}<div class="wide"><table class="sortable" id="{anchor}"><thead><tr>{heads}</tr>'
        "</thead>\n<tbody>\n" + "\n".join(made) + "\n</tbody></table></div>"
    )


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, not sorted; empty text without rows."""
    made = "".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in rows
    )
    return f'<div class="wide"><table>{made}</table></div>' if made else ""


def _cell(cell: Cell, column: Column) -> str:
    if isinstance(cell, str):
        return f"<td{_class(column)}>{text(cell)}</td>"
    known = cell.value is not None and math.isfinite(cell.value)
    value = f"{cell.value:.9g}" if known else ""
    return f"<td{_class(column)}{attributes(data_v=value)}>{text(cell.shown)}</td>"


def _class(column: Column) -> str:
    if column.numeric:
        return ' class="n"'
    return ' class="name"' if column.name else ' class="b"' if column.brief else ""


def _order(is_sorted: bool) -> str:
    return ' aria-sort="descending"' if is_sorted else ""
