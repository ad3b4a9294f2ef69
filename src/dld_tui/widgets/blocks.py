"""Blocks of text side by side: lines of pieces, each block as wide as it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.line_source import Piece

Line: TypeAlias = "list[Piece]"


@dataclass(frozen=True)
class Block:
    """Lines that take `width` cells."""

    width: int
    lines: Sequence[Sequence[Piece]]


def width_of(line: Iterable[Piece]) -> int:
    """Return how many cells a line takes."""
    return sum(cell_width(text) for text, _ in line)


def block(lines: Sequence[Sequence[Piece]], width: int | None = None) -> Block:
    """Return a block as wide as its widest line, or of a given width."""
    if width is None:
        width = max((width_of(line) for line in lines), default=0)
    return Block(width, lines)


def fitted(line: Iterable[Piece], width: int) -> Line:
    """Return a line of exactly `width` cells, cut or padded."""
    found: Line = []
    room = width
    for text, style in line:
        part = clip(visible(text), room)
        room -= cell_width(part)
        if part:
            found.append((part, style))
    if room > 0:
        found.append((" " * room, ""))
    return found


def beside(blocks: Sequence[Block], gap: int = 3) -> list[Line]:
    """Return the lines of blocks put side by side, shorter ones padded below."""
    height = max((len(one.lines) for one in blocks), default=0)
    lines: list[Line] = []
    for row in range(height):
        line: Line = []
        for number, one in enumerate(blocks):
            if number:
                line.append((" " * gap, ""))
            line += fitted(one.lines[row] if row < len(one.lines) else (), one.width)
        lines.append(line)
    return lines


def flow(blocks: Sequence[Block], width: int, gap: int = 3) -> list[Line]:
    """Return blocks side by side as far as `width` allows, the others in rows below."""
    lines: list[Line] = []
    row: list[Block] = []
    used = 0
    for one in blocks:
        needed = one.width + (gap if row else 0)
        if row and used + needed > width:
            lines += [*beside(row, gap), []]
            row, used = [], 0
            needed = one.width
        row.append(one)
        used += needed
    return [*lines, *beside(row, gap)]
