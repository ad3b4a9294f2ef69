"""Boxes that were moved: they are where they were put, and every line still leads to its box."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import (
    Box,
    Layout,
    cells_of,
    lay_out,
    line_row,
    links_at,
    text_of,
)
from tests.support.graphs import graph_of_links, random_graph
from tests.support.tiers import first

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


def check(graph: Graph, layout: Layout, before: Layout, moves: dict[int, tuple[int, int]]) -> None:
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


def _reached(cells: frozenset[tuple[int, int]], start: tuple[int, int]) -> set[tuple[int, int]]:
    found, waiting = {start}, [start]
    while waiting:
        x, y = waiting.pop()
        beside = {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)} & cells - found
        found |= beside
        waiting += beside
    return found


@pytest.mark.parametrize("move", [(9, 0), (-40, 0), (0, 5), (30, -30), (4, 60), (-3, -1)])
@pytest.mark.parametrize("name", ["top", "a", "c", "end"])
def test_a_box_goes_where_it_is_put_and_its_lines_follow(name: str, move: tuple[int, int]) -> None:
    graph = graph_of_links(FAN)
    moves = {graph.names.index(name): move}
    check(graph, lay_out(graph, size, moves=moves), lay_out(graph, size), moves)


@pytest.mark.parametrize("seed", first(8, range(25), pytest.mark.broad))
def test_whatever_is_moved(seed: int) -> None:
    graph = random_graph(seed)
    moves = {
        vertex: ((vertex * 37 + seed * 11) % 61 - 30, (vertex * 31 + seed * 7) % 49 - 24)
        for vertex in range(1, len(graph), 2)
    }
    check(graph, lay_out(graph, size, moves=moves), lay_out(graph, size), moves)


def test_a_box_above_what_it_takes_from_is_reached_from_above() -> None:
    graph = graph_of_links([("a", "b")])
    layout = lay_out(graph, lambda vertex, stubs: (5, 3), moves={1: (12, -4)})
    expected = """\
      ╭───────╮
      │       ▼
┌───┐ │     ┌───┐
│ a │ │     │ b │
└───┘ │     └───┘
  ╰───╯"""
    assert "\n".join(text_of(layout, ["a", "b"])).rstrip() == expected
