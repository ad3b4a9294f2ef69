from __future__ import annotations

import itertools

import pytest

from dld_tui.core.model.graph.folding import (
    HUB_DEGREE,
    Fold,
    Overview,
    Subgraph,
    arranged_rows,
    common_scope,
    filled_gaps,
    fold_tree,
    name_scopes,
    neighbourhood,
)
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.rails import Rails, demand_order, lay_rails
from tests.support.graphs import graph_of_links, random_graph


def vertices_seen(overview: Overview) -> list[int]:
    """Return the vertices that closed rows stand for, in order."""
    found: list[int] = []
    for row in overview.rows:
        if not row.is_open:
            found += overview.rails.order[row.start : row.end]
    return found


@pytest.mark.parametrize("seed", range(12))
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


@pytest.mark.parametrize("seed", range(12))
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


@pytest.mark.parametrize("seed", range(12))
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


def test_blocks_of_a_repeat_are_counted_and_no_others() -> None:
    parts = {"m/a": "ABC", "m/b": "DEF", "layer.0": "PQRS", "layer.1": "PQRS", "layer.2": "PQRS"}
    names = [f"/{part}/{kind}" for part, kinds in parts.items() for kind in kinds]
    graph = graph_of_links([*itertools.pairwise(names)])
    graph.labels = [name[-1] for name in names]
    overview = Overview(graph)
    overview.open_all()
    heads = [(row.fold.title, row.fold.count, row.time) for row in overview.rows if row.fold]
    assert heads == [
        ("m", 1, 0), ("a", 1, 0), ("b", 1, 0), ("layer.0 … layer.2", 3, 0),
        ("layer.0", 1, 1), ("layer.1", 1, 2), ("layer.2", 1, 3),
    ]  # fmt: skip


def test_an_empty_graph() -> None:
    overview = Overview(Graph())
    assert overview.rows == []
    assert len(overview.seen()[0]) == 0


def residual_network(blocks: int, scope: str = "") -> Graph:
    """Return a stem, some residual blocks and a head."""
    links, last = [("Input", "Stem"), ("Stem", "Pool")], "Pool"
    for block in range(blocks):
        prefix = f"/{scope}{block}/" if scope else f"b{block}x"
        names = [f"{prefix}{kind}{block}" for kind in ("Conv", "Relu", "Conv2y", "Add")]
        links += [(last, names[0]), (names[0], names[1]), (names[1], names[2])]
        links += [(names[2], names[3]), (last, names[3])]
        last = names[3]
    links += [(last, "Mean"), ("Mean", "Gemm"), ("Gemm", "Softmax")]
    graph = graph_of_links(links)
    # Labels are the kinds of work: without the block.
    graph.labels = [name.rpartition("/")[2].rpartition("x")[2].rstrip("0123456789")
                    for name in graph.names]  # fmt: skip
    return graph


def folded(graph: Graph) -> tuple[Rails, list[Fold]]:
    rails = lay_rails(graph, demand_order(graph))
    return rails, fold_tree(graph, rails)


@pytest.mark.parametrize("seed", range(12))
def test_folds_lie_side_by_side_or_inside_each_other(seed: int) -> None:
    graph = random_graph(seed)
    _, folds = folded(graph)
    check(folds, 0, len(graph))


def check(folds: list[Fold], start: int, end: int) -> None:
    for fold in folds:
        assert start <= fold.start < fold.end <= end
        start = fold.end
        assert len(fold.vertices) == len(fold)
        check(fold.children, fold.start, fold.end)


def test_hostile_names_have_bounded_depth() -> None:
    deep = "/a" * 3000
    graph = graph_of_links([(f"{deep}/x1", f"{deep}/x2"), (f"{deep}/x2", f"{deep}/x3")])
    _, folds = folded(graph)
    depth = 0
    while folds:
        depth, folds = depth + 1, folds[0].children
    assert depth <= 24


def test_scopes_of_names() -> None:
    graph = graph_of_links([("/a/b/c", "plain"), ("plain", "a/d"), ("a/d", "//x")])
    assert name_scopes(graph) == [("a", "b"), (), ("a",), ()]
    assert common_scope([("a", "b"), (), ("a", "c")]) == ("a",)
    assert common_scope([(), ()]) == ()


def test_rows_without_a_scope_belong_to_what_is_around_them() -> None:
    inner, outer = ("a", "b"), ("a",)
    assert filled_gaps([(), inner, (), inner, (), outer, ()]) == [
        (), inner, inner, inner, outer, outer, (),
    ]  # fmt: skip


def two_streams(layers: int) -> Graph:
    """Return layers that hand on a residual and its norm, as SkipLayerNormalization gives both."""
    links = [("Input", "Norm")]
    last = ("Norm", "Input")
    for at in range(layers):
        normed, residual = last
        p = f"/layers.{at}/"
        q, k, a, s = (f"{p}{name}" for name in ("Query", "Key", "Attend", "SkipNorm"))
        links += [(normed, q), (normed, k), (q, a), (k, a), (a, s), (residual, s)]
        links += [(s, f"{p}Up"), (f"{p}Up", f"{p}SkipNorm2"), (s, f"{p}SkipNorm2")]
        last = (f"{p}SkipNorm2", s)
    links += [(last[0], "Head"), (last[1], "Head")]
    graph = graph_of_links(links)
    graph.labels = [name.rpartition("/")[2] for name in graph.names]
    return graph


def diffusion_transformer(blocks: int) -> Graph:
    """Return blocks that hand on an image and a text, both scaled by what the time gives."""
    links = [("Time", "Embed"), ("Image", "Patch"), ("Text", "Project")]
    image, text = "Patch", "Project"
    for at in range(blocks):
        p = f"/blocks.{at}/"
        for side, stream in (("x", image), ("c", text)):
            links += [("Embed", f"{p}Scale{side}"), (stream, f"{p}Norm{side}")]
            links += [(f"{p}Scale{side}", f"{p}Norm{side}")]
        links += [(f"{p}Norm{side}", f"{p}Attend") for side in "xc"]
        image_out, text_out = f"{p}Addx", f"{p}Addc"
        for side, stream, out in (("x", image, image_out), ("c", text, text_out)):
            links += [(f"{p}Attend", f"{p}Gate{side}"), (f"{p}Scale{side}", f"{p}Gate{side}")]
            links += [(f"{p}Gate{side}", out), (stream, out)]
        image, text = image_out, text_out
    links += [(image, "Head"), (text, "Head")]
    graph = graph_of_links(links)
    graph.labels = [name.rpartition("/")[2] for name in graph.names]
    return graph


@pytest.mark.parametrize("seed", range(10))
def test_rows_come_after_what_they_need(seed: int) -> None:
    for graph in (random_graph(seed), diffusion_transformer(2 + seed)):
        rails, folds = arranged_rows(graph)
        check(folds, 0, len(graph))
        assert sorted(rails.order) == [*range(len(graph))]
    assert all(
        rails.rows[net.source] < rails.rows[target] for net in graph.nets for target in net.targets
    )  # without a cycle


def names(graph: Graph, part: Subgraph) -> set[str]:
    return {graph.names[vertex] for vertex in part.vertices}


def at(graph: Graph, name: str) -> int:
    return graph.names.index(name)


def test_hops_do_not_go_through_hubs() -> None:
    links = [("hub", f"user{n}") for n in range(HUB_DEGREE + 2)]
    links += [("user0", "next"), ("user0", "later"), ("later", "last")]
    graph = graph_of_links(links)
    part = neighbourhood(graph, at(graph, "next"), 3)
    assert names(graph, part) == {"next", "user0", "hub", "later", "last"}
    # Asked for itself, a hub shows its neighbours.
    assert len(neighbourhood(graph, at(graph, "hub"), 1).vertices) == HUB_DEGREE + 3


def test_a_ring_that_is_too_large_is_left_out() -> None:
    links = [("m", f"p{n}") for n in range(6)]
    links += [(f"p{n}", f"q{n}x{k}") for n in range(6) for k in range(7)]
    graph = graph_of_links(links)
    assert len(neighbourhood(graph, at(graph, "m"), 2, most=20).vertices) == 7
