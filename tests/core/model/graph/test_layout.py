"""Two tensors never share a cell: each can be followed with a finger, in the drawn cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.build import graph_of
from dld_tui.core.model.graph.crossings import order_lines
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import (
    Box,
    Layout,
    Link,
    cells_of,
    lay_out,
    line_row,
    links_at,
    text_of,
)
from dld_tui.core.model.graph.moving import corners
from dld_tui.core.model.graph.placement import (
    MOST_LINES,
    Layers,
)
from tests.support.graphs import graph_of_links, random_graph
from tests.support.lines import Line, drawn_links
from tests.support.tiers import first


def boxed(graph: Graph) -> Layout:
    return lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3))


def picture(graph: Graph) -> list[str]:
    layout = lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 2, 1))
    return text_of(layout, graph.labels)


def overlapping(layout: Layout) -> list[tuple[int, int]]:
    """Return the columns of lines that run on top of each other, by gap."""
    found = []
    for number, gap in enumerate(layout.gaps):
        for wire in gap.wires:
            for column in wire.bottoms:
                for other in gap.wires:
                    if other is wire or column != other.top:
                        continue
                    if wire.is_straight or other.is_straight or other.track >= wire.track:
                        found.append((number, column))
            for other in gap.wires:
                if other is wire or wire.is_straight or other.is_straight:
                    continue
                meet = other.left <= wire.right and wire.left <= other.right
                if meet and other.track == wire.track:
                    found.append((number, wire.left))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_drawn_on_top_of_anything(seed: int) -> None:
    graph = random_graph(seed)
    layout = boxed(graph)
    assert overlapping(layout) == []
    for rank, boxes in enumerate(layout.ranks):
        for left, right in itertools.pairwise(boxes):
            assert left.x + left.width < right.x
        for column, _ in layout.passing[rank]:
            assert not any(box.x <= column < box.x + box.width for box in boxes)
    assert sorted(box.vertex for boxes in layout.ranks for box in boxes) == list(range(len(graph)))


def test_a_vertex_with_2000_inputs() -> None:
    graph = graph_of_links([(f"n{at}", "concat") for at in range(2000)])
    layout = boxed(graph)
    assert len(layout.ranks[0]) == 2000
    assert len(layout.gaps[0].wires) == MOST_LINES
    assert [len(nets) for nets in layout.stubs.values()] == [2000 - MOST_LINES]


def test_an_empty_graph_and_a_single_vertex() -> None:
    assert boxed(Graph()).height == 0
    graph = Graph()
    graph.add("only")
    assert picture(graph) == [" only"]


def laid_out(graph: Graph, least: int, heights: int = 3) -> Layout:
    """Lay out boxes, some of them higher than others."""

    def size(vertex: int, stubs: object) -> tuple[int, int]:
        return max(least, len(graph.labels[vertex]) + 4), 3 + vertex % heights

    return lay_out(graph, size)


def expected(graph: Graph, layout: Layout) -> Counter[Line]:
    """Return the links that are to be drawn: all but those that are named instead."""
    found: Counter[Line] = Counter()
    for number, net in enumerate(graph.nets):
        named = {vertex for vertex, nets in layout.stubs.items() if number in nets}
        if targets := frozenset(net.targets) - named:
            found[net.source, targets] += 1
    return found


def check(graph: Graph, layout: Layout) -> None:
    assert drawn_links(layout, text_of(layout, graph.labels)) == expected(graph, layout)


@pytest.mark.parametrize("seed", range(16))
def test_every_tensor_has_cells_of_its_own(seed: int) -> None:
    graph = random_graph(seed, most=30 + seed)
    check(graph, laid_out(graph, 3, heights=1 + seed % 3))


def test_what_a_vertex_takes_beyond_what_can_be_drawn_is_named() -> None:
    graph = graph_of_links([(f"n{at}", "concat") for at in range(MOST_LINES + 7)])
    layout = laid_out(graph, 3)
    check(graph, layout)
    assert [len(nets) for nets in layout.stubs.values()] == [7]


@pytest.mark.parametrize("name", ["basic_pitch_nmp.onnx", "ppocrv2_cls.onnx"])
def test_models(real_files: Path, name: str) -> None:
    document = Document.open(real_files / name)
    graph = graph_of(document.main).graph
    check(graph, laid_out(graph, 3))


def test_links_lead_away_first() -> None:
    graph = graph_of_links([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert links_at(graph, 1) == [Link(1, 1, 3), Link(0, 0, 1)]
    assert [link.target for link in links_at(graph, 0)] == [1, 2]
    assert [link.source for link in links_at(graph, 3)] == [1, 2]


@pytest.mark.parametrize("seed", range(8))
def test_a_line_is_one_way_from_box_to_box_in_cells_of_its_tensor(seed: int) -> None:
    graph = random_graph(seed, most=30 + seed)
    size = lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3 + vertex % 3)  # noqa: E731
    layout = lay_out(graph, size)
    named = {(vertex, net) for vertex, nets in layout.stubs.items() for net in nets}
    rows = [line_row(layout, y, 0, layout.width) for y in range(layout.height)]
    for vertex in range(len(graph)):
        for link in links_at(graph, vertex):
            cells = cells_of(layout, link)
            source, target = layout.boxes[link.source], layout.boxes[link.target]
            assert source is not None
            assert target is not None
            if (link.target, link.net) in named:
                assert not cells
                continue
            drawn = [rows[y].nets.get(x) for x, y in cells]
            assert None not in drawn
            first = [x for x, y in cells if y == source.y + source.height]
            last = [x for x, y in cells if y == target.y - 1]
            assert min(y for _, y in cells) == source.y + source.height
            assert max(y for _, y in cells) == target.y - 1
            starts = [x for x in first if source.x <= x < source.x + source.width]
            assert any(rows[source.y + source.height].nets[x] == link.net for x in starts)
            assert [x for x in last if rows[target.y - 1].nets[x] == link.net] == last
            assert len(last) == 1
            assert target.x <= last[0] < target.x + target.width
            assert _reached(cells, (last[0], target.y - 1)) == cells


def _reached(cells: frozenset[tuple[int, int]], start: tuple[int, int]) -> set[tuple[int, int]]:
    found, waiting = {start}, [start]
    while waiting:
        x, y = waiting.pop()
        beside = {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)} & cells - found
        found |= beside
        waiting += beside
    return found


def chain_of_blocks(count: int) -> Graph:
    links = []
    for n in range(count):
        add = f"add{n}"
        links += [(f"add{n - 1}" if n else "start", to) for to in (f"q{n}", f"k{n}", f"v{n}", add)]
        links += [(f"q{n}", f"mul{n}"), (f"k{n}", f"mul{n}"), (f"v{n}", add), (f"mul{n}", add)]
    return graph_of_links(links)


def test_a_kind_of_block_is_arranged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arranged = []

    def counted(layers: Layers) -> tuple[Layers, list[int], int]:
        arranged.append(len(layers.rank))
        return order_lines(layers)

    monkeypatch.setattr("dld_tui.core.model.graph.layout.order_lines", counted)
    boxed(chain_of_blocks(30))
    assert len(arranged) <= 3, "the first, those in the middle, the last"


FAN = [("top", "a"), ("top", "b"), ("top", "c"), ("a", "end"), ("b", "end"), ("c", "end")]


def size(vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
    return 7, 3 + vertex % 2


def box_of(layout: Layout, vertex: int) -> Box:
    box = layout.boxes[vertex]
    assert box is not None
    return box


def apart(layout: Layout, first: int, second: int) -> tuple[int, int]:
    """Return how far a box is right of and below another one."""
    one, other = box_of(layout, first), box_of(layout, second)
    return other.x - one.x, other.y - one.y


def check_moved(
    graph: Graph, layout: Layout, before: Layout, moves: dict[int, tuple[int, int]]
) -> None:
    fixed = next(vertex for vertex in range(len(graph)) if vertex not in moves)
    for vertex in range(len(graph)):
        right, down = moves.get(vertex, (0, 0))
        x, y = apart(before, fixed, vertex)
        assert apart(layout, fixed, vertex) == (x + right, y + down)
        box = box_of(layout, vertex)
        assert 0 <= box.x <= box.x + box.width <= layout.width
        assert 0 <= box.y <= box.y + box.height <= layout.height
    rows = [line_row(layout, y, 0, layout.width) for y in range(layout.height)]
    for vertex in moves:
        for link in links_at(graph, vertex):
            cells = cells_of(layout, link)
            assert bool(cells) == bool(cells_of(before, link))
            if not cells:
                continue  # it is named
            source, target = box_of(layout, link.source), box_of(layout, link.target)
            starts = {
                (x, source.y + source.height) for x in range(source.x, source.x + source.width)
            }
            ends = {(x, target.y - 1) for x in range(target.x, target.x + target.width)}
            assert cells & starts
            assert any(x in rows[y].arrows for x, y in cells & ends)
            assert _reached(cells, next(iter(cells & ends))) == cells
            assert all(rows[y].glyph(x) != " " for x, y in cells)


@pytest.mark.parametrize("move", [(9, 0), (-40, 0), (0, 5), (30, -30), (4, 60), (-3, -1)])
@pytest.mark.parametrize("name", ["top", "a", "c", "end"])
def test_a_box_goes_where_it_is_put_and_its_lines_follow(name: str, move: tuple[int, int]) -> None:
    graph = graph_of_links(FAN)
    moves = {graph.names.index(name): move}
    check_moved(graph, lay_out(graph, size, moves=moves), lay_out(graph, size), moves)


@pytest.mark.parametrize("seed", first(5, range(25)))
def test_whatever_is_moved(seed: int) -> None:
    graph = random_graph(seed)
    moves = {
        vertex: ((vertex * 37 + seed * 11) % 61 - 30, (vertex * 31 + seed * 7) % 49 - 24)
        for vertex in range(1, len(graph), 2)
    }
    check_moved(graph, lay_out(graph, size, moves=moves), lay_out(graph, size), moves)


@pytest.mark.parametrize("down", [0, 1, 3])
@pytest.mark.parametrize("up", [0, 2])
def test_a_line_turns_as_far_from_its_ends_as_it_is_told(down: int, up: int) -> None:
    points = corners((2, 10), (8, 30), 5, down, up)
    assert (points[0], points[-1]) == ((2, 10), (8, 30))
    assert {y for x, y in points if x == 5} == {10 + down, 30 - up}
