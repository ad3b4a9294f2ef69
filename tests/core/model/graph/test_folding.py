from __future__ import annotations

import pytest

from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.graph import Graph, Kind
from tests.core.model.graph.test_folds import residual_network
from tests.support.graphs import random_graph


def vertices_seen(overview: Overview) -> list[int]:
    """Return the vertices that closed rows stand for, in order."""
    found: list[int] = []
    for row in overview.rows:
        if not row.is_open:
            found += overview.rails.order[row.start : row.end]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_rows_stand_for_every_vertex_once_whatever_is_open(seed: int) -> None:
    overview = Overview(random_graph(seed))
    everything = list(overview.rails.order)
    assert vertices_seen(overview) == everything
    overview.open_all()
    assert vertices_seen(overview) == everything
    assert all(row.fold is None or row.is_open for row in overview.rows)
    flat = overview.flat_rows
    assert [(row.start, row.end, row.depth) for row in flat] == [
        (at, at + 1, 0) for at in range(len(everything))
    ]
    assert [*flat] == flat[:]


@pytest.mark.parametrize("seed", range(30))
def test_every_vertex_can_be_revealed_and_found(seed: int) -> None:
    graph = random_graph(seed)
    overview = Overview(graph)
    for vertex in range(len(graph)):
        place = overview.place(vertex)
        row = overview.rows[place]
        assert row.start <= overview.rails.rows[vertex] < row.end
        assert not row.is_open
        at = overview.reveal(vertex)
        revealed = overview.rows[at]
        assert revealed.fold is None
        assert overview.rails.order[revealed.start] == vertex


@pytest.mark.parametrize("seed", range(30))
def test_the_seen_graph_keeps_every_link_that_is_not_folded_away(seed: int) -> None:
    graph = random_graph(seed, cycles=False)
    overview = Overview(graph)
    seen, rails = overview.seen()
    assert len(seen) == len(overview.rows) == len(rails.order)
    expected = {
        (overview.place(net.source), overview.place(target))
        for net in graph.nets
        for target in net.targets
    }
    found = {(net.source, target) for net in seen.nets for target in net.targets}
    assert found == {(a, b) for a, b in expected if a != b}


@pytest.mark.parametrize("rows", [0, 10, 25, 60, 1000])
def test_folds_are_opened_while_all_rows_fit(rows: int) -> None:
    for seed in range(10):
        overview = Overview(random_graph(seed))
        before, opened = len(overview.rows), overview.opened
        overview.fill(rows)
        assert len(overview.rows) <= max(rows, before)
        assert opened <= overview.opened
        closed = [row.fold for row in overview.rows if row.fold is not None and not row.is_open]
        assert all(len(overview.rows) + fold.rows_inside > rows for fold in closed)
        assert vertices_seen(overview) == list(overview.rails.order)


def test_a_deep_network_opens_folded_and_a_repeat_opens_into_its_times() -> None:
    overview = Overview(residual_network(30, "layer."))
    repeat = next(row for row in overview.rows if row.fold is not None)
    assert repeat.fold is not None
    assert repeat.fold.count == 30
    assert len(overview.rows) < 12
    overview.set_open(repeat.fold)
    times = [row for row in overview.rows if row.time]
    assert [row.time for row in times] == list(range(1, 31))
    assert all(row.depth == 1 for row in times)
    seen, _ = overview.seen()
    assert seen.kinds.count(Kind.GROUP) == 31
    overview.set_open(repeat.fold, False)
    assert not [row for row in overview.rows if row.time]


def test_an_empty_graph() -> None:
    overview = Overview(Graph())
    assert overview.rows == []
    assert len(overview.seen()[0]) == 0
