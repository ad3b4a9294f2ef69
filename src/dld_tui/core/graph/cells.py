"""A drawing as text: one row at a time, only the columns that are seen."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.edge_routes import Gap, Wire
from dld_tui.core.graph.layout import Box, Layout

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
"""By the sum of the sides that a cell is linked to."""
_ARROW = "▼"


class LineRow:
    """The lines in one row: what each column is linked to, and by which net."""

    def __init__(self) -> None:
        self.links: dict[int, int] = {}
        self.arrows: set[int] = set()
        self.nets: dict[int, int] = {}

    def glyph(self, column: int) -> str:
        """Return the character of a column."""
        return _ARROW if column in self.arrows else _LINES[self.links.get(column, 0)]

    def add(self, column: int, sides: int, net: int) -> None:
        """Link a column to more sides; where two nets cross, the one goes under the upright one."""
        present = self.links.get(column, 0)
        if present and self.nets[column] != net:
            if present == _UP | _DOWN:
                return
            present = 0
        self.links[column] = present | sides
        self.nets[column] = net


def line_row(layout: Layout, y: int, first: int, last: int) -> LineRow:
    """Return the lines of a row between two columns, both included; boxes hide what is below."""
    row = LineRow()
    rank = layout.rank_at(y)
    inside = y - layout.tops[rank]
    height = layout.heights[rank]
    if inside < height:
        for column, net in layout.passing[rank]:
            if first <= column <= last:
                row.add(column, _UP | _DOWN, net)
        _lines_to_low_boxes(layout, rank, y, row)
    elif rank < len(layout.gaps):
        _gap_row(layout.gaps[rank], inside - height, first, last, row)
    return row


def _lines_to_low_boxes(layout: Layout, rank: int, y: int, row: LineRow) -> None:
    """Add the lines above and below boxes that are less high than their rank."""
    for box in layout.ranks[rank]:
        if box.y <= y < box.y + box.height or box.height == layout.heights[rank]:
            continue
        gap = rank - 1 if y < box.y else rank
        if not 0 <= gap < len(layout.gaps):
            continue
        for wire in layout.gaps[gap].wires:
            if y >= box.y and wire.begins >= 0:
                continue
            for column in wire.bottoms if y < box.y else (wire.top,):
                if box.x <= column < box.x + box.width:
                    row.add(column, _UP | _DOWN, wire.net)


def _gap_row(gap: Gap, inside: int, first: int, last: int, row: LineRow) -> None:
    for wire in gap.wires:
        if wire.left > last or wire.right < first:
            continue
        if wire.is_straight:
            row.add(wire.left, _UP | _DOWN, wire.net)
        elif inside < wire.track:
            if inside > wire.begins:
                row.add(wire.top, _UP | _DOWN, wire.net)
            elif inside == wire.begins:
                row.add(wire.top, _DOWN, wire.net)
        elif inside > wire.track:
            for column in wire.bottoms:
                row.add(column, _UP | _DOWN, wire.net)
        else:
            _track_row(wire, first, last, row)
    if inside == gap.tracks:
        row.arrows.update(column for wire in gap.wires for column in wire.arrows)


def _track_row(wire: Wire, first: int, last: int, row: LineRow) -> None:
    left, right = wire.left, wire.right
    for column in range(max(left, first), min(right, last) + 1):
        sides = _LEFT * (column > left) + _RIGHT * (column < right)
        sides += _UP * (column == wire.top) + _DOWN * (column in wire.bottoms)
        row.add(column, sides, wire.net)


def boxes_in_row(layout: Layout, y: int, first: int, last: int) -> list[Box]:
    """Return the boxes that a row between two columns shows a part of, from left to right."""
    rank = layout.rank_at(y)
    if y - layout.tops[rank] >= layout.heights[rank]:
        return []
    return [
        box
        for box in layout.ranks[rank]
        if box.x <= last and box.x + box.width > first and box.y <= y < box.y + box.height
    ]


def text_of(layout: Layout, labels: Sequence[str]) -> list[str]:
    """Return the whole drawing as lines of text, every box with its label in the middle row.

    Args:
        layout: The drawing.
        labels: The text of each vertex: one cell a character.
    """
    return [_text_row(layout, labels, y) for y in range(layout.height)]


def _text_row(layout: Layout, labels: Sequence[str], y: int) -> str:
    row = line_row(layout, y, 0, layout.width)
    cells = [row.glyph(column) for column in range(layout.width)]
    for box in boxes_in_row(layout, y, 0, layout.width):
        cells[box.x : box.x + box.width] = box_row(box, y, labels[box.vertex])
    return "".join(cells).rstrip()


def box_row(box: Box, y: int, label: str) -> str:
    """Return one row of a box, exactly as wide as it is."""
    if box.height < 3:
        return label[: box.width].center(box.width)
    inside = box.width - 2
    if y == box.y:
        return f"┌{'─' * inside}┐"
    if y == box.y + box.height - 1:
        return f"└{'─' * inside}┘"
    text = label[:inside] if y == box.y + 1 else ""
    return f"│{text.center(inside)}│"
