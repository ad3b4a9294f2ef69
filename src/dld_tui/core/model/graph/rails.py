"""The rail view: vertices in an order to follow, and a column for each tensor that is alive.

A row is held as a few numbers: which columns have a line above it, which below, and which are
joined to the row's vertex. What a row looks like follows from these alone, so only rows on the
screen are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Graph, Net


def depths(graph: Graph) -> list[int]:
    """Return the longest distance of each vertex from a vertex without inputs, in links.

    Links that close a cycle do not count.
    """
    sources = graph.sources
    depth: list[int] = []
    for vertex, given in enumerate(sources):
        if given and max(given) >= vertex:
            break  # the file is not in an order to compute in
        depth.append(1 + max([depth[source] for source in given], default=-1))
    else:
        return depth
    depth = [-1] * len(graph)
    entered = bytearray(len(graph))
    for start in range(len(graph)):
        if depth[start] >= 0:
            continue
        stack = [start]
        while stack:
            vertex = stack[-1]
            if depth[vertex] >= 0:
                stack.pop()
                continue
            if entered[vertex]:
                stack.pop()
                depth[vertex] = 1 + max((depth[source] for source in sources[vertex]), default=-1)
                continue
            entered[vertex] = 1
            stack += [s for s in sources[vertex] if not entered[s]]
    return depth


def demand_order(graph: Graph, depth: Sequence[int] | None = None) -> list[int]:
    """Return the vertices in an order in which each comes soon after those that it needs.

    The sinks are asked for one after the other, those near the inputs first, and each asks for its
    sources, the deepest first, as a register allocator evaluates an expression (Sethi and Ullman
    1970): so few tensors are alive at a time, and the rails stay narrow. In a cycle, the link that
    closes it points upwards.
    """
    depth = depths(graph) if depth is None else depth
    sources = graph.sources
    sinks = [vertex for vertex, neighbours in enumerate(graph.outputs) if not neighbours]
    sinks.sort(key=lambda vertex: depth[vertex])  # stable: file order within a depth
    order: list[int] = []
    done = bytearray(len(graph))
    entered = bytearray(len(graph))
    for start in (*sinks, *range(len(graph))):  # a cycle may have no sink
        if done[start]:
            continue
        stack = [start]
        while stack:
            vertex = stack[-1]
            if done[vertex]:
                stack.pop()
            elif entered[vertex]:
                stack.pop()
                done[vertex] = 1
                order.append(vertex)
            else:
                entered[vertex] = 1
                neighbours = sources[vertex]
                while len(neighbours) == 1 and not entered[neighbours[0]]:  # most is chains
                    vertex = neighbours[0]
                    entered[vertex] = 1
                    stack.append(vertex)
                    neighbours = sources[vertex]
                if len(neighbours) > 1:
                    # The last one is asked first: the deepest, of equals the first operand.
                    waiting = [source for source in reversed(neighbours) if not entered[source]]
                    stack += sorted(waiting, key=depth.__getitem__)
    return order


HUB_TARGETS = 8
HUB_ROWS = 256
"""A tensor with so many users over so many rows is named where it is used, and has no rail."""


def is_hub(net: Net, rows: Sequence[int]) -> bool:
    """Return whether a tensor is used so widely that a line for it would only be in the way.

    Args:
        net: The tensor.
        rows: The row, or rank, of each vertex.
    """
    if len(net.targets) < HUB_TARGETS:
        return False
    return max(rows[target] for target in net.targets) - rows[net.source] >= HUB_ROWS


@dataclass
class Rails:
    """The rows of a graph in an order; columns count from 0 at the left, as bits of a number."""

    order: Sequence[int]
    """The vertex of each row."""
    rows: Sequence[int]
    """The row of each vertex."""
    columns: Sequence[int] = ()
    """The column of each row's vertex."""
    above: Sequence[int] = ()
    """Columns with a line at the top of a row."""
    below: Sequence[int] = ()
    """Columns with a line at the bottom of a row."""
    joined: Sequence[int] = ()
    """Columns whose line is joined to the row's vertex, its own not counted."""
    hubs: frozenset[int] = frozenset()
    """Nets without a rail."""
    ends: Sequence[int] = ()
    """The last row that uses each net."""
    width: int = 0
    """Columns in use at the widest row."""

    def named_inputs(self, graph: Graph, row: int) -> list[int]:
        """Return the nets that come to a row by name instead of by rail."""
        if not self.hubs:
            return []
        return [net for net in graph.inputs[self.order[row]] if net in self.hubs]


def lay_rails(graph: Graph, order: Sequence[int]) -> Rails:
    """Give each tensor that is alive between two rows a column.

    A vertex takes the leftmost column that ends at it, so that the main path stays at the left. A
    link that points upwards, which only a cycle has, is not drawn.
    """
    rows = [0] * len(graph)
    for row, vertex in enumerate(order):
        rows[vertex] = row
    nets = graph.nets
    hubs = frozenset([
        number for number, net in enumerate(nets)
        if len(net.targets) >= HUB_TARGETS and is_hub(net, rows)
    ])  # fmt: skip
    ends = [
        rows[targets[0]] if len(targets) == 1 else max([rows[target] for target in targets])
        for _, _, targets, _ in nets
    ]
    last = ends
    if hubs:
        last = list(ends)
        for number in hubs:
            last[number] = -1
    columns: list[int] = []
    above_rows: list[int] = []
    below_rows: list[int] = []
    joined_rows: list[int] = []
    inputs, outputs = graph.inputs, graph.outputs
    column_of = [-1] * len(nets)
    live = widest = 0
    for row, vertex in enumerate(order):
        taken_nets, given_nets = inputs[vertex], outputs[vertex]
        above, joined, ending = live, 0, 0
        for number in taken_nets:
            column = column_of[number]
            if column < 0:
                continue
            bit = 1 << column
            joined |= bit
            if last[number] <= row:
                ending |= bit
                column_of[number] = -1
        live &= ~ending
        own = _lowest(ending) if ending else _lowest(~above)
        taken = 1 << own
        place = own
        for number in given_nets:
            if last[number] <= row:
                continue
            # A column that ends here is free for another tensor only from the next row on.
            if place < 0:
                place = _lowest(~(live | above | taken))
            column_of[number] = place
            bit = 1 << place
            taken |= bit
            live |= bit
            joined |= bit
            place = -1
        columns.append(own)
        above_rows.append(above)
        below_rows.append(live)
        joined_rows.append(joined & ~(1 << own))
        widest = max(widest, (above | live | taken).bit_length())
    return Rails(
        list(order), rows, columns, above_rows, below_rows, joined_rows, hubs, ends, widest
    )


def _lowest(bits: int) -> int:
    """Return the number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


# By what a cell is linked to: up 1, down 2, left 4, right 8.
_LINES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
_CROSSING = "┿"


def rail_cells(rails: Rails, row: int, first: int, count: int) -> list[str]:
    """Return the cells of a row: two for each column, the second one being the gap to the next.

    The cell of the vertex itself is ``"o"``, for the caller to draw.

    Args:
        first: The first column that is seen.
        count: The number of columns that are seen.
    """
    own, joined = rails.columns[row], rails.joined[row]
    above, below = rails.above[row], rails.below[row]
    ends = joined | (1 << own)
    left, right = _lowest(ends), ends.bit_length() - 1
    cells: list[str] = []
    for column in range(first, first + count):
        bit = 1 << column
        inside = left <= column <= right
        if column == own:
            cells.append("o")
        else:
            links = bool(above & bit) + 2 * bool(below & bit)
            if inside:
                links += 4 * (column > left) + 8 * (column < right)
            crosses = links == 15 and not joined & bit
            cells.append(_CROSSING if crosses else _LINES[links])
        cells.append("─" if left <= column < right else " ")
    return cells
