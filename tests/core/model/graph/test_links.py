"""Links of a vertex, and the cells in which one of them is drawn."""

from __future__ import annotations

import pytest

from dld_tui.core.model.graph.layout import Link, cells_of, lay_out, line_row, links_at
from tests.support.graphs import graph_of_links, random_graph


def test_links_lead_away_first() -> None:
    graph = graph_of_links([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert links_at(graph, 1) == [Link(1, 1, 3), Link(0, 0, 1)]
    assert [link.target for link in links_at(graph, 0)] == [1, 2]
    assert [link.source for link in links_at(graph, 3)] == [1, 2]


@pytest.mark.parametrize("seed", range(20))
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
