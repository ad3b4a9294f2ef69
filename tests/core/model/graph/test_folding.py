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
    name_separator,
    neighbourhood,
    repeats,
)
from dld_tui.core.model.graph.graph import Graph, Kind
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


def test_repeated_blocks_are_found_without_names() -> None:
    graph = residual_network(6)
    rails = lay_rails(graph, demand_order(graph))
    found = repeats(graph, rails, [()] * len(graph), 0, len(graph))
    assert [(repeat.count, repeat.starts[1] - repeat.starts[0]) for repeat in found] == [(6, 4)]


def test_blocks_begin_where_name_scopes_do() -> None:
    graph = residual_network(5, "layer.")
    _rails, folds = folded(graph)
    repeat = next(fold for fold in folds if fold.count > 1)
    assert (repeat.count, repeat.title) == (5, "layer.0 … layer.4")
    assert [block.title for block in repeat.children] == [f"layer.{n}" for n in range(5)]
    assert [graph.labels[v] for v in repeat.children[1].vertices] == [
        "Conv", "Relu", "Conv2y", "Add",
    ]  # fmt: skip


@pytest.mark.parametrize("scope", ["layer.", "net/layer.", "net/a/b/"])
def test_blocks_begin_where_name_scopes_do_behind_what_looks_like_their_end(scope: str) -> None:
    kinds = ("Conv", "Relu", "Mul", "Add")
    names = [f"/net/stem/{kind}" for kind in kinds[1:]]
    names += [f"/{scope}{block}/{kind}" for block in range(5) for kind in kinds]
    graph = graph_of_links([*itertools.pairwise(names)])
    graph.labels = [name.rpartition("/")[2] for name in graph.names]
    _, folds = folded(graph)
    while not (repeats_here := [fold for fold in folds if fold.count > 1]):
        folds = [inner for fold in folds for inner in fold.children]
    (repeat,) = repeats_here
    assert [graph.names[block.vertices[0]] for block in repeat.children] == [
        f"/{scope}{block}/Conv" for block in range(5)
    ]


def test_operators_are_counted_for_one_time_of_a_repeat() -> None:
    _, folds = folded(residual_network(4))
    assert folds[0].operators == {"Conv": 1, "Relu": 1, "Conv2y": 1, "Add": 1}


def test_a_mask_for_all_blocks_does_not_hide_them() -> None:
    graph = residual_network(8)
    mask = graph.add("Mask", "mask")
    graph.link("mask", mask, [v for v, label in enumerate(graph.labels) if label == "Add"])
    _, folds = folded(graph)
    assert any(fold.count >= 7 for fold in folds)


def test_scopes_fold_inside_each_other() -> None:
    names = ["/m/a/x1", "/m/a/x2", "/m/a/x3", "/m/b/y1", "/m/b/y2", "/m/b/y3"]
    graph = graph_of_links(list(itertools.pairwise(names)))
    graph.labels = ["A", "B", "C", "D", "E", "F"]
    _, folds = folded(graph)
    assert [(fold.title, len(fold)) for fold in folds] == [("m", 6)]
    assert [fold.title for fold in folds[0].children] == ["a", "b"]


def test_what_all_blocks_share_is_not_in_their_names() -> None:
    names = [f"/gpu_0/layer.{block}/x{at}" for block in range(4) for at in range(4)]
    graph = graph_of_links([("data", names[0]), *itertools.pairwise(names)])
    graph.labels = ["Data", *(label for _ in range(4) for label in "ABCD")]
    _, folds = folded(graph)
    titles = [fold.title for fold in folds]
    assert titles == ["layer.0 … layer.3"]
    names = [f"/gpu_0/{'abcdefgh'[at]}" for at in range(8)]
    graph = graph_of_links(list(itertools.pairwise(names)))
    graph.labels = list("ABABABAB")
    _, folds = folded(graph)
    assert all("gpu_0" not in fold.title for fold in folds if len(fold) < len(names))


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


def test_layers_with_two_streams_repeat() -> None:
    _rails, folds = folded(two_streams(9))
    [repeat] = [fold for fold in folds if fold.count > 1]
    assert repeat.count >= 8
    assert repeat.title.endswith("layers.8")
    assert repeat.operators == {
        "Query": 1, "Key": 1, "Attend": 1, "SkipNorm": 1, "Up": 1, "SkipNorm2": 1,
    }  # fmt: skip


@pytest.mark.parametrize("dotted", [False, True])
def test_layers_of_several_kinds_repeat_by_their_period(dotted: bool) -> None:
    """As of LFM2 and Qwen3.5: two layers of one kind, then one of another."""
    names = ["/stem/In", "/stem/Pad"]
    for at in range(2, 17):
        kinds = ("Query", "Key", "Attend", "Out") if at % 3 == 2 else ("Conv", "Gate", "Mul")
        names += [f"/layers.{at}/{part}{at}" for part in ("Norm", *kinds, "Add")]
    names += ["/Head", "/Argmax"]
    if dotted:
        names = [name.strip("/").replace("/", ".") for name in names]
    graph = graph_of_links([*itertools.pairwise(names)])
    graph.labels = [name.replace(".", "/").rpartition("/")[2].rstrip("0123456789")
                    for name in names]  # fmt: skip
    _rails, folds = folded(graph)
    [repeat] = [fold for fold in folds if fold.count > 2]
    assert (repeat.count, repeat.title) == (5, "layers.2 … layers.16")
    assert repeat.children[1].title == "layers.5 … layers.7"


@pytest.mark.parametrize(
    ("scopes", "labels"),
    [
        (("/0", "/1"), ["scope 0", "scope 1"]),
        (("/head", "/1"), ["head", "scope 1"]),
        (("/layers/3", "/layers/4"), ["scope 3", "scope 4"]),
        (("/layer3", "/1st"), ["layer3", "1st"]),
    ],
)
def test_a_scope_that_is_a_number_does_not_read_as_a_count(
    scopes: tuple[str, str], labels: list[str]
) -> None:
    kinds = (
        ("Conv", "Relu", "Mul", "Tanh", "Add", "Sqrt"),
        ("Exp", "Abs", "Neg", "Log", "Sin", "Cos"),
    )
    names = [f"{scope}/{kind}" for scope, part in zip(scopes, kinds, strict=True) for kind in part]
    graph = graph_of_links([*itertools.pairwise(["Input", *names, "Output"])])
    graph.labels = [name.rpartition("/")[2] for name in graph.names]
    _rails, folds = folded(graph)
    inner = folds[0].children if len(folds) == 1 else folds
    assert [fold.label for fold in inner] == labels


def test_a_layer_that_ends_in_the_norm_of_the_next_has_its_own_name() -> None:
    graph = two_streams(5)
    for at, name in enumerate(graph.names):
        if name.startswith(("/layers.0", "/layers.3", "/layers.4")):
            graph.labels[at] += name[8]  # other kinds of layers
    for layer in range(5):
        after = f"layers.{layer + 1}/Norm"
        graph.names = [name.replace(f"layers.{layer}/SkipNorm2", after) for name in graph.names]
    _rails, folds = folded(graph)
    [repeat] = [fold for fold in folds if fold.count > 1]
    assert (repeat.count, repeat.title) == (2, "layers.1 … layers.2")
    assert [block.title for block in repeat.children] == ["layers.1", "layers.2"]
    assert all(len(block) == 6 for block in repeat.children)


def test_a_chain_repeats_in_long_cycles() -> None:
    names = [f"Op{at % 50}x{at}" for at in range(500)]
    graph = graph_of_links([*itertools.pairwise(["Input", *names])])
    graph.labels = [name.partition("x")[0] for name in graph.names]
    _rails, [repeat] = folded(graph)
    assert repeat.count == 10
    assert len(repeat.children[0]) == 50


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


def test_blocks_of_two_streams_repeat_in_the_order_of_the_file() -> None:
    graph = diffusion_transformer(6)
    rails, folds = arranged_rows(graph)
    [repeat] = [fold for fold in folds if fold.count > 1]
    assert repeat.count >= 5
    assert repeat.title.startswith("blocks.0 … blocks.")
    assert len(repeat.children[0]) == 9
    assert sorted(rails.order) == [*range(len(graph))]


@pytest.mark.parametrize("seed", range(10))
def test_rows_come_after_what_they_need(seed: int) -> None:
    for graph in (random_graph(seed), diffusion_transformer(2 + seed)):
        rails, folds = arranged_rows(graph)
        check(folds, 0, len(graph))
        assert sorted(rails.order) == [*range(len(graph))]
    assert all(
        rails.rows[net.source] < rails.rows[target] for net in graph.nets for target in net.targets
    )  # without a cycle


def test_dots_separate_names_where_no_name_has_a_slash() -> None:
    graph = residual_network(5, "layer.")
    graph.names = [name.strip("/").replace("/", ".") for name in graph.names]
    graph.names[0] = "past.0.key"
    assert name_separator(graph) == "."
    scopes = name_scopes(graph)
    assert ("layer", "3") in scopes
    _rails, folds = folded(graph)
    repeat = next(fold for fold in folds if fold.count > 1)
    assert (repeat.count, repeat.title) == (5, "layer.0 … layer.4")  # not 0 … 4
    graph.kinds[0] = Kind.INPUT
    assert name_scopes(graph)[0] == ()


CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("b", "side"), ("side", "d")]


def names(graph: Graph, part: Subgraph) -> set[str]:
    return {graph.names[vertex] for vertex in part.vertices}


def at(graph: Graph, name: str) -> int:
    return graph.names.index(name)


def test_hops_do_not_go_through_hubs() -> None:
    links = [("hub", f"user{n}") for n in range(HUB_DEGREE + 2)]
    links += [("user0", "next")]
    graph = graph_of_links(links)
    part = neighbourhood(graph, at(graph, "next"), 3)
    assert names(graph, part) == {"next", "user0", "hub"}
    # Asked for itself, a hub shows its neighbours.
    assert len(neighbourhood(graph, at(graph, "hub"), 1).vertices) == HUB_DEGREE + 3


def test_a_ring_that_is_too_large_is_left_out() -> None:
    links = [("m", f"p{n}") for n in range(6)]
    links += [(f"p{n}", f"q{n}x{k}") for n in range(6) for k in range(7)]
    graph = graph_of_links(links)
    assert len(neighbourhood(graph, at(graph, "m"), 2, most=20).vertices) == 7
