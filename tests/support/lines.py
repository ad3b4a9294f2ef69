"""What lines lead where, read from the cells of a drawing alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dld_tui.core.model.graph.layout import Layout

UP, DOWN, LEFT, RIGHT = (0, -1), (0, 1), (-1, 0), (1, 0)
SIDES = {
    "│": {UP, DOWN}, "─": {LEFT, RIGHT}, "╭": {DOWN, RIGHT}, "╮": {DOWN, LEFT}, "╰": {UP, RIGHT},
    "╯": {UP, LEFT}, "├": {UP, DOWN, RIGHT}, "┤": {UP, DOWN, LEFT}, "┬": {DOWN, LEFT, RIGHT},
    "┴": {UP, LEFT, RIGHT}, "┼": {UP, DOWN, LEFT, RIGHT}, "▼": {UP, DOWN},
}  # fmt: skip

Line = tuple[int, frozenset[int]]
"""The vertex that a line leaves, and those that it arrives at."""


def drawn_links(layout: Layout, rows: Sequence[str]) -> Counter[Line]:
    """Return the lines that one can follow with a finger.

    A line that comes to another one sideways, and finds no way in, goes on under it.

    Raises:
        AssertionError: A line ends in nothing, or belongs to no vertex or to several.
    """
    boxes = {
        (x, y): box.vertex
        for rank in layout.ranks
        for box in rank
        for x in range(box.x, box.x + box.width)
        for y in range(box.y, box.y + box.height)
    }
    cells = {
        (x, y): SIDES[glyph]
        for y, row in enumerate(rows)
        for x, glyph in enumerate(row)
        if (x, y) not in boxes and glyph != " "
    }
    found: Counter[Line] = Counter()
    unseen = set(cells)
    while unseen:
        start = unseen.pop()
        waiting = [start]
        sources: set[int] = set()
        targets: set[int] = set()
        while waiting:
            at = waiting.pop()
            for step in cells[at]:
                to = (at[0] + step[0], at[1] + step[1])
                back = (-step[0], -step[1])
                while to in cells and back not in cells[to]:
                    assert cells[to] == {UP, DOWN}, f"a line ends at {to}"
                    to = (to[0] + step[0], to[1] + step[1])
                if to in boxes:
                    assert step in (UP, DOWN), f"a line runs into a box at {to}"
                    (sources if step == UP else targets).add(boxes[to])
                else:
                    assert to in cells, f"a line ends before {to}"
                    if to in unseen:
                        unseen.discard(to)
                        waiting.append(to)
        assert len(sources) == 1, f"the line at {start} leaves {len(sources)} boxes"
        found[sources.pop(), frozenset(targets)] += 1
    return found
