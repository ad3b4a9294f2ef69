"""Rows, folds, boxes, lines and parts of whole graphs, compared with the files beside."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest

from dld_tui.core.model.graph.folding import (
    Fold,
    Overview,
    Subgraph,
    arranged_rows,
    between,
    fold_tree,
    name_separator,
    neighbourhood,
)
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.layout import Layout, lay_out, text_of
from dld_tui.core.model.graph.rails import demand_order, depths, lay_rails, rail_cells
from tests.core.model.graph.test_folding import (
    diffusion_transformer,
    residual_network,
    two_streams,
)
from tests.support.graphs import graph_of_links, random_graph, tangled
from tests.support.recorded import Recorded


def skips() -> Graph:
    """Return a chain that a mask enters at many places, near and far."""
    links = [*itertools.pairwise(f"n{at:02}" for at in range(45))]
    links += [("mask", f"n{at:02}") for at in (2, 3, 5, 20, 41)] + [("n01", "n44"), ("n04", "n30")]
    return graph_of_links(links)


def crossed() -> Graph:
    """Return three tensors of each of three boxes that go to others' places."""
    graph = Graph()
    tops = [graph.add(f"T{at}", f"t{at}") for at in range(3)]
    ends = [graph.add("End" * (1 + at % 2), f"e{at}") for at in range(4)]
    for at, top in enumerate(tops):
        for other in range(3):
            graph.link(f"t{at}.{other}", top, [ends[3 - at], ends[(at + other) % 3], ends[other]])
    return graph


def split() -> Graph:
    """Return a box of two tensors, of which the first goes to the outermost of three."""
    graph = Graph()
    top = graph.add("If", "if")
    ends = [graph.add("Unsqueeze", f"u{at}") for at in range(3)]
    graph.link("x", top, (ends[0], ends[2]))
    graph.link("y", top, (ends[1],))
    return graph


GRAPHS = {
    "diamond": graph_of_links([("a", "bb"), ("a", "cc"), ("bb", "d"), ("cc", "d"), ("a", "d")]),
    "loop": graph_of_links([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d")]),
    "crossed": crossed(),
    "skips": skips(),
    "blocks": residual_network(4),
    "named blocks": residual_network(5, "layers."),
    "two streams": two_streams(3),
    "transformer": diffusion_transformer(3),
    "split": split(),
    "tangled": tangled(),
    "late input": graph_of_links(
        [
            ("a", "b"),
            ("b", "out1"),
            ("b", "c"),
            ("c", "d"),
            ("late", "d"),
            ("d", "out2"),
            ("x", "short"),
            ("short", "add"),
            ("x", "l1"),
            ("l1", "l2"),
            ("l2", "add"),
        ]
    ),
    "fan": graph_of_links([(f"a{at}", f"b{at * 7 % 11}") for at in range(11)]),
    **{f"random {seed}": random_graph(seed, 25) for seed in (2, 5, 13)},
}


def named(names: Sequence[str], labels: Sequence[str] = ()) -> Graph:
    """Return a chain of vertices, with their last names without digits as labels, or others."""
    graph = graph_of_links([*itertools.pairwise(names)])
    last = (name.replace(".", "/").rpartition("/")[2].rstrip("0123456789") for name in names)
    graph.labels = [*labels] or [*last]
    return graph


def fed(graph: Graph, count: int) -> Graph:
    """Return a graph whose first vertices are inputs."""
    graph.kinds[:count] = [Kind.INPUT] * count
    return graph


def masked() -> Graph:
    graph = residual_network(8)
    mask = graph.add("Mask", "mask")
    graph.link("mask", mask, [at for at, label in enumerate(graph.labels) if label == "Add"])
    return graph


def norm_of_the_next() -> Graph:
    """Return layers that end in the norm of the next one, not all of one kind."""
    graph = two_streams(5)
    for at, name in enumerate(graph.names):
        if name.startswith(("/layers.0", "/layers.3", "/layers.4")):
            graph.labels[at] += name[8]
    for layer in range(5):
        after = f"layers.{layer + 1}/Norm"
        graph.names = [name.replace(f"layers.{layer}/SkipNorm2", after) for name in graph.names]
    return graph


def mixed_layers() -> list[str]:
    """Return the names of layers as of LFM2 and Qwen3.5: two of one kind, then one of another."""
    names = ["/stem/In", "/stem/Pad"]
    for at in range(2, 17):
        kinds = ("Query", "Key", "Attend", "Out") if at % 3 == 2 else ("Conv", "Gate", "Mul")
        names += [f"/layers.{at}/{part}{at}" for part in ("Norm", *kinds, "Add")]
    return [*names, "/Head", "/Argmax"]


def dotted(names: Sequence[str]) -> list[str]:
    return [name.strip("/").replace("/", ".") for name in names]


BLOCK = ("Conv", "Relu", "Mul", "Add")
PARTS = ("Conv", "Relu", "Mul", "Tanh", "Add", "Sqrt"), ("Exp", "Abs", "Neg", "Log", "Sin", "Cos")
FOLDED = {
    "masked": masked(),
    "nested scopes": named([f"/m/{part}/{kind}" for part, kinds in (("a", "ABC"), ("b", "DEF"))
                            for kind in kinds]),
    "shared by blocks": named(["data", *(f"/gpu_0/layer.{at}/{kind}"
                                         for at in range(4) for kind in "ABCD")]),
    "shared by all": named([f"/gpu_0/{kind}" for kind in "abcdefgh"], "ABABABAB"),
    **{f"in {scope}": named([*(f"/net/stem/{kind}" for kind in BLOCK[1:]),
                             *(f"/{scope}{at}/{kind}" for at in range(5) for kind in BLOCK)])
       for scope in ("layer.", "net/layer.", "net/a/b/")},
    "mixed layers": named(mixed_layers()), "mixed, dotted": named(dotted(mixed_layers())),
    **{f"{scopes[0]} and {scopes[1]}": named(["Input", *(f"{scope}/{kind}" for scope, part in zip(
        scopes, PARTS, strict=True) for kind in part), "Output"])
       for scopes in (("/0", "/1"), ("/head", "/1"), ("/layers/3", "/layers/4"),
                      ("/layer3", "/1st"))},
    "norm of the next": norm_of_the_next(),
    "dotted": named(dotted(residual_network(5, "layer.").names)),
    **{f"past, {count} inputs": fed(named(
        [*(f"past.{at}.{half}" for at in (0, 1, 2) for half in ("key", "value")),
         *dotted(residual_network(3, "layer.").names)]), count)
       for count in (0, 6)},
    "long cycles": named([f"Op{at % 50}x{at}" for at in range(200)],
                         [f"Op{at % 50}" for at in range(200)]),
    "six blocks": residual_network(6), "nine layers": two_streams(9),
    "six transformers": diffusion_transformer(6),
}  # fmt: skip


def test_whole_folds(recorded: Recorded) -> None:
    made = {}
    for title, graph in FOLDED.items():
        rails, folds = arranged_rows(graph)
        assert sorted(rails.order) == [*range(len(graph))]
        separator = f"{name_separator(graph)!r}, in the order of the file: "
        head = separator + str([*rails.order] == [*range(len(graph))])
        lines = [*folds_of(folds)]
        by_demand = [*folds_of(fold_tree(graph, lay_rails(graph, demand_order(graph))))]
        more = [] if by_demand == lines else ["by demand:", *by_demand]
        made[title] = "\n".join([head, *lines, *more])
    recorded("whole_folds", made)


def numbers(values: Sequence[object]) -> str:
    return " ".join(map(str, values))


def rows_of(graph: Graph) -> Iterator[str]:
    """Yield the list of a graph, with its rails, depths and hubs."""
    depth = depths(graph)
    rails = lay_rails(graph, demand_order(graph, depth))
    for row, vertex in enumerate(rails.order):
        cells = "".join(rail_cells(rails, row, 0, rails.width))
        part = "".join(rail_cells(rails, row, 1, 2))
        named = numbers([graph.nets[net].name for net in rails.named_inputs(graph, row)])
        yield f"{cells}|{part:2}| {graph.names[vertex]} {depth[vertex]} {named}"


def drawn(graph: Graph, layout: Layout) -> Iterator[str]:
    yield f"{layout.width} x {layout.height}, {layout.crossings} crossings"
    for vertex, nets in sorted(layout.stubs.items()):
        yield f"{graph.names[vertex]} names {numbers([graph.nets[net].name for net in nets])}"
    yield from text_of(layout, graph.labels)


def pictures(graph: Graph) -> Iterator[str]:
    """Yield the graph as words, as boxes of several heights, and with boxes that were moved."""
    words = lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 2, 1))
    yield from drawn(graph, words)
    boxes = lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3 + vertex % 3))
    yield from drawn(graph, boxes)
    if len(graph) < 20:
        moves = {at: (at * 37 % 31 - 15, at * 31 % 19 - 9) for at in range(1, len(graph), 3)}
        yield from drawn(graph, lay_out(graph, lambda vertex, stubs: (7, 3), moves=moves))


def folds_of(folds: Sequence[Fold], depth: int = 0) -> Iterator[str]:
    for fold in folds:
        operators = numbers([f"{count} {name}" for name, count in sorted(fold.operators.items())])
        yield (
            f"{'  ' * depth}{fold.start}:{fold.end} x{fold.count} '{fold.title}' = {fold.label},"
            f" {fold.rows_inside} rows: {operators}"
        )
        yield from folds_of(fold.children, depth + 1)


def seen_of(overview: Overview) -> Iterator[str]:
    """Yield the rows that are seen, and the links between them."""
    for row in overview.rows:
        label = (
            row.fold.label if row.fold else overview.graph.names[overview.rails.order[row.start]]
        )
        state = ("-" if row.is_open else "+") if row.fold else " "
        yield f"{'  ' * row.depth}{state}{label} {row.start}:{row.end} {row.time or ''}"
    graph, rails = overview.seen()
    for at in range(len(rails.order)):
        yield "".join(rail_cells(rails, at, 0, rails.width)) + f" {graph.labels[at]}"
    for net in graph.nets:
        yield f"{net.name}: {net.source} -> {numbers(net.targets)}"


def overview_of(graph: Graph) -> Iterator[str]:
    overview = Overview(graph)
    yield from folds_of(overview.folds)
    yield from seen_of(overview)
    if not overview.folds:
        return
    last = len(graph) // 2
    places = [overview.place(last), overview.reveal(last), overview.place(last)]
    yield f"{graph.names[last]} at {numbers(places)} in " + numbers(
        [fold.start for fold in overview.around(last)]
    )
    yield from seen_of(overview)
    overview.set_open(overview.folds[0], False)
    overview.fill(len(overview.rows) + 6)
    yield "filled: " + numbers([(row.start, row.end, row.is_open) for row in overview.rows])
    yield f"open: {numbers(sorted((fold.start, fold.end) for fold in overview.opened))}"


def parts_of(graph: Graph) -> Iterator[str]:
    """Yield parts of the graph: around a vertex, and between two."""

    def told(part: Subgraph) -> str:
        links = [f"{net.name}>{numbers(net.targets)}" for net in part.graph.nets]
        cuts = [
            f"{name}({above},{below})"
            for name, above, below in zip(
                part.graph.names, part.cut_above, part.cut_below, strict=True
            )
        ]
        return f"{numbers(cuts)} | {', '.join(links)}"

    middle = len(graph) // 2
    for hops, most in ((1, 200), (2, 200), (3, 200), (2, 4), (1, 2)):
        yield f"{hops} of {most}: {told(neighbourhood(graph, middle, hops, most))}"
    for first, last in ((0, len(graph) - 1), (len(graph) - 1, 1), (middle, middle)):
        yield f"{first} to {last}: {told(between(graph, first, last))}"


@pytest.mark.parametrize(
    ("name", "lines"),
    [("rows", rows_of), ("pictures", pictures), ("overviews", overview_of), ("parts", parts_of)],
)
def test_whole_graphs(
    name: str, lines: Callable[[Graph], Iterator[str]], recorded: Recorded
) -> None:
    recorded(f"whole_{name}", {title: "\n".join(lines(graph)) for title, graph in GRAPHS.items()})
