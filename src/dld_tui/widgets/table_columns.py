"""Which columns of a table are seen: what fits first, and what scrolling sideways brings in.

A table begins with the columns that fit; those with the highest ``priority`` number wait at the
right end. Scrolling moves by column: the columns with the name stay, the first of the others
leave at the left, and at each step at least one that was not seen before comes in at the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 1
"""Blank cells between two columns."""
_SIGN = 1
"""Cells at the right that a table needs for the sign that there are more columns."""
_LEAST_NAME = 8
"""A narrower column does not name the row."""


@dataclass(frozen=True)
class Column:
    """How one column looks; `key` is what the source knows it by."""

    key: str
    title: str
    width: int | None = None
    """Cells; None takes what the others leave."""
    align: str = "left"
    """``left``, or ``right`` for numbers."""
    min_width: int = 8
    """The least a column of width None may shrink to before other columns are left out."""
    priority: int = 0
    """0 is seen first; the column with the highest number waits at the right end first."""
    keep: str = "start"
    """Which end of a long text stays: ``start``, ``end`` or ``middle``."""
    descending: bool = False
    """Sort from the largest value when it is sorted first, as for times."""
    sortable: bool = True
    pinned: bool = False
    """Stays where the others scroll; without any it is the first text that is seen first."""

    @property
    def least(self) -> int:
        """The fewest cells that it is drawn in."""
        return self.min_width if self.width is None else self.width


@dataclass(frozen=True)
class Window:
    """The columns that are seen at once."""

    columns: tuple[Column, ...]
    sizes: tuple[tuple[Column, int], ...]
    """The columns in order, each with its cells."""
    last: str
    """The key of the column that this window was scrolled for; empty for the first window."""
    before: bool = False
    """There are columns to the left."""
    after: bool = False
    """There are columns to the right."""


def windows(columns: Sequence[Column], width: int) -> list[Window]:
    """Return what is seen in `width` cells at each step to the right, the first step first."""
    if _needed(columns) <= width or len(columns) < 2:
        return [Window(tuple(columns), _sizes(columns, width), "")]
    room = max(width - _SIGN, 1)
    pinned = _pinned(columns)
    first = _first(columns, pinned, room)
    shown = [column for column in first if column not in pinned]
    waiting = [column for column in columns if column not in first]
    line = [*shown, *waiting]
    steps = [(0, len(shown))]
    while steps[-1][1] < len(line):
        steps.append(_step(line, pinned, steps[-1], room))
    found = []
    for number, (start, end) in enumerate(steps):
        seen = set(first if not number else (*pinned, *line[start:end]))
        # Those that were seen first keep their places; what waited follows at the right.
        order = [column for column in columns if column in seen and column in first]
        order += [column for column in line[start:end] if column in waiting]
        found.append(
            Window(
                tuple(order),
                _sizes(order, room),
                line[end - 1].key if number else "",
                before=number > 0,
                after=number + 1 < len(steps),
            )
        )
    return found


def _pinned(columns: Sequence[Column]) -> list[Column]:
    declared = [column for column in columns if column.pinned]
    if declared:
        return declared
    names = (
        column
        for column in columns
        if not column.priority and column.align == "left" and column.least >= _LEAST_NAME
    )
    return [next(names, columns[0])]


def _first(columns: Sequence[Column], pinned: Sequence[Column], room: int) -> list[Column]:
    """Return the columns that are seen before any scrolling."""
    shown = list(columns)
    while len(shown) > len(pinned) and _needed(shown) > room:
        others = [column for column in shown if column not in pinned]
        highest = max(column.priority for column in others)
        if not highest and len(others) == 1:
            break
        shown.remove(next(column for column in reversed(others) if column.priority == highest))
    return shown


def _step(
    line: Sequence[Column], pinned: Sequence[Column], before: tuple[int, int], room: int
) -> tuple[int, int]:
    """Return the window after another one, as (start, end) of the columns that scroll."""
    start, end = before[0], before[1] + 1
    while start < end - 1 and _needed([*pinned, *line[start:end]]) > room:
        start += 1
    while end < len(line) and _needed([*pinned, *line[start : end + 1]]) <= room:
        end += 1
    return start, end


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def _sizes(columns: Sequence[Column], room: int) -> tuple[tuple[Column, int], ...]:
    fixed = sum(column.width or 0 for column in columns) + GAP * (len(columns) - 1)
    shares = _shares([column for column in columns if column.width is None], room - fixed)
    sizes = [(column, column.width or shares.get(column.key, 0)) for column in columns]
    return tuple(_squeezed(sizes, room))


def _shares(flexible: list[Column], rest: int) -> dict[str, int]:
    """Share cells out equally, but none gets less than its least."""
    found: dict[str, int] = {}
    while flexible:
        share = max(rest, 0) // len(flexible)
        short = [column for column in flexible if column.min_width > share]
        if not short:
            found |= {column.key: share for column in flexible}
            # The last one takes what the division leaves.
            found[flexible[-1].key] += rest - share * len(flexible)
            break
        for column in short:
            found[column.key] = column.min_width
            rest -= column.min_width
        flexible = [column for column in flexible if column not in short]
    return found


def _squeezed(sizes: list[tuple[Column, int]], room: int) -> list[tuple[Column, int]]:
    """Return the sizes with the widest columns narrowed until all of them can be seen."""
    cells = [size for _, size in sizes]
    room -= GAP * (len(cells) - 1)
    while sum(cells) > room and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return [(column, size) for (column, _), size in zip(sizes, cells, strict=True)]
