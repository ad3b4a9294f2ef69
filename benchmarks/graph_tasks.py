"""Preparing graphs, and counting the crossings of drawings: ours and those of graphviz."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.graph.build import graph_of
from dld_tui.core.model.graph.folding import fold_tree
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import Layout, lay_out
from dld_tui.core.model.graph.rails import demand_order, lay_rails

_ROUNDS = 3
_LARGEST_LAYOUT = 20_000
_CELL_INCHES, _ROW_INCHES = 8 / 72, 18 / 72
_NEAR_INCHES = 0.5
"""Crossings of the same two tensors so near to each other are one."""
_STEPS = 6
"""Straight pieces that a curve of dot is cut into."""

Point = tuple[float, float]
Segment = tuple[frozenset[int], Point, Point]
_T = TypeVar("_T")


def _graph(path: str) -> Graph:
    document = Document.open(Path(path))
    try:
        return graph_of(document.main).graph
    finally:
        document.close()


def _size(graph: Graph) -> Callable[[int, Sequence[int]], tuple[int, int]]:
    return lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3)


def _best(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return what a function gives, and its best time in ms."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        found = work()
        best = min(best, (time.perf_counter() - start) * 1000)
    return found, best


def graph_prepare(path: str) -> dict[str, float]:
    """Arrange a graph in each of the views; the model is open."""
    graph = _graph(path)
    _ = graph.sources, graph.targets  # once for all views
    rails, rail_ms = _best(lambda: lay_rails(graph, demand_order(graph)))
    _, fold_ms = _best(lambda: fold_tree(graph, rails))
    found = {"nodes": len(graph), "rail_ms": rail_ms, "fold_ms": fold_ms}
    if len(graph) <= _LARGEST_LAYOUT:
        layout, layout_ms = _best(lambda: lay_out(graph, _size(graph)))
        found |= {
            "layout_ms": layout_ms,
            "crossings": crossings(list(_our_segments(layout))),
        }
    return found


def dot_layout(path: str) -> dict[str, float]:
    """Have dot arrange the same boxes and the same lines; its start is not counted."""
    graph = _graph(path)
    layout = lay_out(graph, _size(graph))
    idle = _dot("digraph {}")[1]
    lines = [
        f'n{box.vertex}[shape=box,fixedsize=1,label="",'
        f"width={box.width * _CELL_INCHES:.3f},height={3 * _ROW_INCHES:.3f}]"
        for box in layout.boxes
        if box is not None
    ]
    edges = []
    for number, net in enumerate(graph.nets):
        for target in net.targets:
            if number not in layout.stubs.get(target, ()):
                edges.append((number, net.source, target))
    lines += [f"n{source}->n{target}" for _, source, target in edges]
    plain, ms = _dot("digraph{" + ";".join(lines) + "}")
    nets: dict[tuple[str, str], set[int]] = defaultdict(set)
    for number, source, target in edges:
        nets[f"n{source}", f"n{target}"].add(number)
    return {"ms": max(0.1, ms - idle), "crossings": crossings(list(_dot_segments(plain, nets)))}


def _dot(text: str) -> tuple[str, float]:
    start = time.perf_counter()
    done = subprocess.run(
        ["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout, (time.perf_counter() - start) * 1000


def _our_segments(layout: Layout) -> Iterator[Segment]:
    """Yield the straight pieces of our lines, in inches: each tensor's own way down."""
    known: set[Segment] = set()
    for rank, gap in enumerate(layout.gaps):
        top = layout.tops[rank] + layout.heights[rank]
        bottom = top + gap.tracks + 1
        for wire in gap.wires:
            across = top + wire.track + 0.5
            begin = top if wire.parent_track < 0 else top + wire.parent_track + 0.5
            net = frozenset((wire.net,))
            for end in wire.bottoms:
                known.update(_way(net, wire.top, end, begin, across, bottom))
            for end in wire.reach:
                known.update(_way(net, wire.top, end, begin, across, across))
    yield from sorted(known, key=lambda piece: (piece[1:], min(piece[0])))


def _way(
    nets: frozenset[int], start: int, end: int, top: float, across: float, bottom: float
) -> Iterator[Segment]:
    if start == end:
        yield _piece(nets, (start, top), (start, bottom))
        return
    yield _piece(nets, (start, top), (start, across))
    yield _piece(nets, (min(start, end), across), (max(start, end), across))
    yield _piece(nets, (end, across), (end, bottom))


def _piece(nets: frozenset[int], start: Point, end: Point) -> Segment:
    return (
        nets,
        (start[0] * _CELL_INCHES, start[1] * _ROW_INCHES),
        (end[0] * _CELL_INCHES, end[1] * _ROW_INCHES),
    )


def _dot_segments(plain: str, nets: dict[tuple[str, str], set[int]]) -> Iterator[Segment]:
    """Yield the curves of dot as straight pieces, in inches."""
    for line in plain.splitlines():
        kind, *words = line.split()
        if kind != "edge":
            continue
        count = int(words[2])
        numbers = [float(word) for word in words[3 : 3 + 2 * count]]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        own = frozenset(nets[words[0], words[1]])
        for at in range(0, count - 1, 3):
            along = [_on_curve(points[at : at + 4], step / _STEPS) for step in range(_STEPS + 1)]
            for start, end in pairwise(along):
                yield own, start, end


def _on_curve(points: Sequence[Point], at: float) -> Point:
    """Return a point of a cubic Bézier curve."""
    shares = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3)
    return (
        sum(share * x for share, (x, _) in zip(shares, points, strict=True)),
        sum(share * y for share, (_, y) in zip(shares, points, strict=True)),
    )


def crossings(segments: Sequence[Segment]) -> int:
    """Return at how many places lines of different tensors cross; the same rule for each program.

    Each pair of lines counts, unless they have a tensor in common; what crosses several tensors
    that share a line crosses it once. The same two tensors so near to each other count once, too:
    the pieces that a curve is cut into may cross where they meet.
    """
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (_, (x, y), (last_x, last_y)) in enumerate(segments):
        for column in range(int(min(x, last_x) // 1), int(max(x, last_x) // 1) + 1):
            for row in range(int(min(y, last_y) // 1), int(max(y, last_y) // 1) + 1):
                cells[column, row].append(number)
    places: dict[Point, set[tuple[int, int]]] = defaultdict(set)
    for inside in cells.values():
        for at, one in enumerate(inside):
            for other in inside[at + 1 :]:
                _note(segments[one], segments[other], places)
    kept: dict[tuple[int, int], list[Point]] = defaultdict(list)
    total = 0
    for (x, y), pairs in sorted(places.items()):
        fresh = [
            pair
            for pair in pairs
            if all(abs(x - a) + abs(y - b) > _NEAR_INCHES for a, b in kept[pair])
        ]
        for pair in fresh:
            kept[pair].append((x, y))
        total += bool(fresh)
    return total


def _note(one: Segment, other: Segment, places: dict[Point, set[tuple[int, int]]]) -> None:
    if one[0] & other[0]:
        return
    where = _crossing(one, other)
    if where is not None:
        first, second = sorted((min(one[0]), min(other[0])))
        places[round(where[0], 2), round(where[1], 2)].add((first, second))


def _crossing(one: Segment, other: Segment) -> Point | None:
    """Return where two pieces cross, their ends not counted."""
    _, (ax, ay), (bx, by) = one
    _, (cx, cy), (dx, dy) = other
    across = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    if not across:
        return None
    at = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / across
    on = ((cx - ax) * (by - ay) - (cy - ay) * (bx - ax)) / across
    if not (0 < at < 1 and 0 < on < 1):
        return None
    return ax + at * (bx - ax), ay + at * (by - ay)
