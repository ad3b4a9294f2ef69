"""Boxes moved by hand: each is where it was put, and lines of their own lead to and from it.

The others stay where they were arranged. Such a line leaves a box below and arrives above another
one, wherever that is; it goes under what is in its way, which it avoids as far as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from heapq import nsmallest
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Graph

if TYPE_CHECKING:
    from dld_tui.core.model.graph.layout import Box, Layout

Point = tuple[int, int]
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
"""Sides of a cell that a line leaves it by."""
_LANES = 3
"""Columns that are tried at each side of both boxes."""
_TRACKS = 3
"""Rows that are tried below the start and above the end."""
_COMPARED = 400
"""Cells of the longest line that is kept off other lines."""
_FEW = 12
"""Ways of a line of which it is known which other lines they meet."""
_HIDDEN, _SHARED, _CELL = 50.0, 1.0, 0.05
"""What a line costs: for each box that it goes under, each cell that another tensor has, its own
cells."""


@dataclass(frozen=True)
class FreeLine:
    """The line of one use of a tensor to or from a box that was moved."""

    net: int
    source: int
    target: int
    start: Point
    """The cell below the box that makes the tensor."""
    end: Point
    """The cell above the box that takes it."""
    lane: int = 0
    """The column that it goes up or down in."""
    down: int = 0
    """Rows from the start to where it runs to the lane."""
    up: int = 1
    """Rows from where it leaves the lane to the end."""

    @property
    def corners(self) -> list[Point]:
        """Where it begins, turns and ends."""
        return corners(self.start, self.end, self.lane, self.down, self.up)

    def cells(self) -> Iterator[Point]:
        """Yield its cells from start to end."""
        yield self.start
        for (x, y), (to_x, to_y) in pairwise(self.corners):
            step_x, step_y = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
            for step in range(1, max(abs(to_x - x), abs(to_y - y)) + 1):
                yield x + step * step_x, y + step * step_y


def corners(start: Point, end: Point, lane: int, down: int, up: int) -> list[Point]:
    """Return where a line begins, turns and ends.

    Args:
        start: Below the box that it comes from.
        end: Above the box that it leads to.
        lane: The column that it goes up or down in.
        down: How far below the start it runs to the lane.
        up: How far above the end it leaves the lane.
    """
    (x, y), (to_x, to_y) = start, end
    first, last = y + down, to_y - up
    if y <= to_y and last < first:  # there is little room, and all of it is below the start
        first = last = min(max(last, y), to_y)
    points = [start, (x, first), (lane, first), (lane, last), (to_x, last), end]
    return [point for at, point in enumerate(points) if not at or point != points[at - 1]]


@dataclass
class Moved:
    """What was moved in a drawing."""

    boxes: list[Box] = field(default_factory=list)
    """Where they are now; none of them is in a rank."""
    origins: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By vertex the rank that a box was arranged in, and the rows that it was moved down."""
    lines: list[FreeLine] = field(default_factory=list)
    rows: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By row the cells of the lines: column, sides and net."""
    arrows: dict[int, list[int]] = field(default_factory=dict)
    """By row the columns in which lines end."""

    def add_cells(self) -> None:
        """Note the cells of all lines."""
        for line in self.lines:
            cells = list(line.cells())
            (x, y), (last_x, last_y) = cells[0], cells[-1]
            around = [(x, y - 1), *cells, (last_x, last_y + 1)]
            for (before_x, before_y), (x, y), (after_x, after_y) in zip(
                around, cells, around[2:], strict=False
            ):
                beside = ((before_x - x, before_y - y), (after_x - x, after_y - y))
                sides = sum({_SIDES[step] for step in beside})
                self.rows.setdefault(y, []).append((x, sides, line.net))
            self.arrows.setdefault(last_y, []).append(last_x)


_SIDES = {(0, -1): UP, (0, 1): DOWN, (-1, 0): LEFT, (1, 0): RIGHT}


def move_boxes(layout: Layout, graph: Graph, moves: Mapping[int, Point]) -> None:
    """Move boxes of a drawing, and draw the lines of their tensors anew.

    Args:
        layout: The drawing, which is changed.
        graph: Its graph.
        moves: Cells to the right and rows down by vertex; negative ones to the left and up.
    """
    lines = _ends(layout, graph, moves)
    nets = {net for vertex in moves for net in (*graph.inputs[vertex], *graph.outputs[vertex])}
    for gap in layout.gaps:
        gap.wires = [wire for wire in gap.wires if wire.net not in nets]
    layout.passing = [[(x, net) for x, net in row if net not in nets] for row in layout.passing]
    moved = layout.moved
    for vertex, (right, down) in moves.items():
        box = layout.boxes[vertex]
        if box is not None:
            moved.origins[vertex] = (layout.rank_at(box.y), down)
            box = layout.boxes[vertex] = replace(box, x=box.x + right, y=box.y + down)
            moved.boxes.append(box)
    layout.ranks = [[box for box in row if box.vertex not in moves] for row in layout.ranks]
    _choose_lanes(layout, lines)
    _translate(layout, lines)
    layout.moved.add_cells()


def _ends(layout: Layout, graph: Graph, moves: Mapping[int, Point]) -> list[FreeLine]:
    """Return the lines of moved boxes: from and to the columns that lines had before."""
    lines: dict[tuple[int, int], FreeLine] = {}
    for vertex in moves:
        for net in (*graph.inputs[vertex], *graph.outputs[vertex]):
            source = graph.nets[net].source
            start = _port(layout, source, net, is_source=True)
            for target in graph.nets[net].targets:
                end = _port(layout, target, net, is_source=False)
                if start is not None and end is not None:  # else it is named, not drawn
                    start_now = _along(start, moves.get(source, (0, 0)))
                    end_now = _along(end, moves.get(target, (0, 0)))
                    lines[net, target] = FreeLine(net, source, target, start_now, end_now)
    return list(lines.values())


def _along(point: Point, way: Point) -> Point:
    return point[0] + way[0], point[1] + way[1]


def _port(layout: Layout, vertex: int, net: int, *, is_source: bool) -> Point | None:
    """Return the cell below or above a box in which the line of a tensor leaves or arrives."""
    box = layout.boxes[vertex]
    rank = layout.rank_at(box.y) - (not is_source) if box is not None else -1
    if box is None or not 0 <= rank < len(layout.gaps):
        return None
    for wire in layout.gaps[rank].wires:
        columns = (wire.top,) * (wire.parent_track < 0) if is_source else wire.arrows
        for column in columns:
            if wire.net == net and box.x <= column < box.x + box.width:
                return column, box.y + box.height if is_source else box.y - 1
    return None


def _choose_lanes(layout: Layout, lines: Sequence[FreeLine]) -> None:
    """Give each line the way on which it hides least under boxes and runs least on others."""
    nets = _Nets(layout)
    for line in lines:
        source, target = layout.boxes[line.source], layout.boxes[line.target]
        assert source is not None  # they have lines
        assert target is not None
        beside = [
            lane
            for box in (source, target)
            for at in range(0, 2 * _LANES, 2)
            for lane in (box.x - 2 - at, box.x + box.width + 1 + at)
        ]
        choices = [
            replace(line, lane=lane, down=down, up=up)
            for lane in (line.start[0], line.end[0], *beside)
            for down in range(_TRACKS)
            for up in range(1, _TRACKS + 1)
        ]
        rows = [y for choice in choices for _, y in choice.corners]
        first, last = min(rows), max(rows)
        boxes = [
            b for b in layout.boxes if b is not None and b.y <= last and b.y + b.height > first
        ]
        short = nsmallest(_FEW, choices, partial(_cost, boxes))
        costs = [_cost(boxes, choice) + _SHARED * nets.shared(choice) for choice in short]
        best = short[costs.index(min(costs))]
        nets.moved.update((cell, best.net) for cell in best.cells())
        layout.moved.lines.append(best)


class _Nets:
    """The net that each cell of a drawing belongs to."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.moved: dict[Point, int] = {}
        self._rows: dict[int, Mapping[int, int]] = {}

    def shared(self, line: FreeLine) -> int:
        """Return how many cells of a line belong to other nets; 0 for a long line."""
        cells = list(islice(line.cells(), _COMPARED + 1))
        others = (None, line.net)
        return sum(self.at(cell) not in others for cell in cells) if len(cells) <= _COMPARED else 0

    def at(self, cell: Point) -> int | None:
        """Return the net of a cell; None where there is no line."""
        from dld_tui.core.model.graph.layout import line_row  # lazy: that imports this module

        x, y = cell
        net = self.moved.get(cell)
        if net is None and 0 <= y < self.layout.height:
            if y not in self._rows:
                self._rows[y] = line_row(self.layout, y, 0, self.layout.width).nets
            net = self._rows[y].get(x)
        return net


def _cost(boxes: Sequence[Box], line: FreeLine) -> float:
    hidden = cells = 0
    for (x, y), (to_x, to_y) in pairwise(line.corners):
        left, right, top, bottom = min(x, to_x), max(x, to_x), min(y, to_y), max(y, to_y)
        hidden += sum(
            box.x <= right
            and left < box.x + box.width
            and box.y <= bottom
            and top < box.y + box.height
            for box in boxes
        )
        cells += right - left + bottom - top
    return hidden * _HIDDEN + cells * _CELL


def _translate(layout: Layout, lines: Sequence[FreeLine]) -> None:
    """Move the whole drawing so that nothing is left of it or above it, and note its size."""
    moved = layout.moved
    places = [(box.x, box.y) for box in moved.boxes]
    places += [point for line in moved.lines for point in line.corners]
    right, down = (max(0, -min(axis)) for axis in zip((0, 0), *places, strict=True))
    if right or down:

        def at(box: Box) -> Box:
            return replace(box, x=box.x + right, y=box.y + down)

        layout.boxes = [at(box) if box is not None else None for box in layout.boxes]
        layout.ranks = [list(map(at, row)) for row in layout.ranks]
        layout.tops = [top + down for top in layout.tops]
        layout.passing = [[(x + right, net) for x, net in row] for row in layout.passing]
        for gap in layout.gaps:
            gap.wires = [wire.shifted(wire.net, right) for wire in gap.wires]
        moved.boxes = list(map(at, moved.boxes))
        moved.lines = [
            replace(
                line,
                start=_along(line.start, (right, down)),
                end=_along(line.end, (right, down)),
                lane=line.lane + right,
            )
            for line in moved.lines
        ]
    ends = [(box.x + box.width, box.y + box.height) for box in moved.boxes]
    ends += [(x + 1, y + 1) for line in moved.lines for x, y in line.corners]
    layout.width = max([layout.width + right, *(x for x, _ in ends)])
    layout.height = max([layout.height + down, *(y for _, y in ends)])
