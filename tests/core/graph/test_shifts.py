"""Boxes that were moved: they are where they were put, and nothing touches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from dld_tui.core.graph.layout import GAP, Layout, lay_out
from tests.support.graphs import graph_of_links, random_graph

FAN = [("top", "a"), ("top", "b"), ("top", "c"), ("a", "end"), ("b", "end"), ("c", "end")]


def size(vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
    return 7, 3


def x_of(layout: Layout, vertex: int) -> int:
    box = layout.boxes[vertex]
    assert box is not None
    return box.x


def test_a_box_moves_by_what_was_asked_for() -> None:
    graph = graph_of_links(FAN)
    last = graph.names.index("c")
    before = lay_out(graph, size)
    moved = lay_out(graph, size, shifts={last: 9})
    assert x_of(moved, last) == x_of(before, last) + 9


def test_a_box_passes_others_and_they_make_room() -> None:
    graph = graph_of_links(FAN)
    numbers = [graph.names.index(name) for name in "abc"]
    before = lay_out(graph, size)
    order = sorted(numbers, key=lambda vertex: x_of(before, vertex))
    moved = lay_out(graph, size, shifts={order[0]: 12})
    assert sorted(numbers, key=lambda vertex: x_of(moved, vertex)) == [order[1], order[0], order[2]]


def y_of(layout: Layout, name: str) -> int:
    box = layout.boxes[graph_of_links(FAN).names.index(name)]
    assert box is not None
    return box.y


def test_a_box_moves_down_with_what_it_feeds_and_stays_below_what_it_takes() -> None:
    graph = graph_of_links(FAN)
    top, a, b, end = (graph.names.index(name) for name in ("top", "a", "b", "end"))
    before = lay_out(graph, size)
    moved = lay_out(graph, size, drops={a: 2})
    assert y_of(moved, "b") == y_of(before, "b") < y_of(moved, "a") < y_of(moved, "end")
    assert len(moved.ranks) == len(before.ranks) + 2
    for drops in ({top: 3}, {end: -5}, {a: -1, b: -2}):  # nowhere to go, or all go along
        again = lay_out(graph, size, drops=drops)
        assert [y_of(again, name) for name in "abc"] == [y_of(before, name) for name in "abc"]
    assert y_of(lay_out(graph, size, drops={a: 1, b: -9}), "b") == y_of(before, "b")


@pytest.mark.parametrize("seed", range(25))
def test_nothing_touches_whatever_is_moved(seed: int) -> None:
    graph = random_graph(seed)
    shifts = {vertex: (vertex * 37 + seed * 11) % 61 - 30 for vertex in range(0, len(graph), 2)}
    drops = {vertex: (vertex * 31 + seed * 7) % 9 - 4 for vertex in range(seed % 2, len(graph), 3)}
    layout = lay_out(graph, size, shifts=shifts, drops=drops)
    for rank, passing in zip(layout.ranks, layout.passing, strict=True):
        boxes = [(b.x, b.x + b.width, 0) for b in rank]
        # A line that would run on top of another one is moved aside by a cell.
        ends = sorted(boxes + [(x, x + 1, 1) for x, _ in passing])
        for first, second in pairwise(ends):
            assert first[1] + GAP - max(first[2], second[2]) <= second[0]
        assert all(left >= 0 and right <= layout.width for left, right, _ in ends)
