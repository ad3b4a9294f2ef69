"""Parts that meet in one item: equal ones look alike, and all of them fit together."""

from __future__ import annotations

import itertools

import pytest

from dld_tui.core.model.graph import layout
from dld_tui.core.model.graph.crossings import order_lines
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import Layout, lay_out, least_width
from dld_tui.core.model.graph.placement import Layers, linked_targets, make_layers, ranks_of
from dld_tui.core.model.graph.rails import demand_order
from tests.support.graphs import graph_of_links, random_graph


def boxed(graph: Graph) -> Layout:
    return lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3))


def layers_of(graph: Graph) -> Layers:
    order = demand_order(graph)
    rank = ranks_of(graph, order)
    return make_layers(graph, rank, linked_targets(graph, rank), order)


def chain_of_blocks(count: int) -> Graph:
    links = []
    for n in range(count):
        add = f"add{n}"
        links += [(f"add{n - 1}" if n else "start", to) for to in (f"q{n}", f"k{n}", f"v{n}", add)]
        links += [(f"q{n}", f"mul{n}"), (f"k{n}", f"mul{n}"), (f"v{n}", add), (f"mul{n}", add)]
    return graph_of_links(links)


def test_equal_blocks_are_drawn_alike_and_do_not_drift() -> None:
    graph = chain_of_blocks(12)
    layout = boxed(graph)
    columns: dict[str, set[int]] = {}
    for number in range(1, 11):
        for name in ("q", "k", "v", "mul", "add"):
            box = layout.boxes[graph.names.index(f"{name}{number}")]
            assert box is not None
            columns.setdefault(name, set()).add(box.x)
    assert {name: len(found) for name, found in columns.items()} == dict.fromkeys(columns, 1)


def test_a_kind_of_block_is_arranged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arranged = []

    def counted(layers: Layers) -> tuple[Layers, list[int], int]:
        arranged.append(len(layers.rank))
        return order_lines(layers)

    monkeypatch.setattr("dld_tui.core.model.graph.layout.order_lines", counted)
    boxed(chain_of_blocks(30))
    assert len(arranged) <= 3, "the first, those in the middle, the last"


@pytest.mark.parametrize("seed", range(60))
def test_the_parts_make_one_drawing(seed: int) -> None:
    graph = random_graph(seed)
    layers = layers_of(graph)
    before = [[item for item in sorted(rank) if item < len(graph)] for rank in layers.ranks]
    widths = [max(len(graph.labels[v]) + 4, least_width(layers, v)) for v in range(len(graph))]
    widths += [1] * (len(layers.rank) - len(graph))
    left, gaps, crossings = layout.arrange(layers, widths, 3)
    after = [[item for item in sorted(rank) if item < len(graph)] for rank in layers.ranks]
    assert after == before
    widths += [1] * (len(layers.rank) - len(widths))
    assert len(left) == len(widths)
    assert len(gaps) == max(0, len(layers.ranks) - 1)
    assert crossings >= 0
    assert min([left[item] for items in layers.ranks for item in items], default=0) == 0
    for items in layers.ranks:
        for one, other in itertools.pairwise(items):
            # a line may have been moved aside by a cell
            assert left[one] + widths[one] + 1 <= left[other]
    for rank, gap in enumerate(gaps):
        ends = {
            (layers.nets_below[item][at])
            for item in layers.ranks[rank]
            for at in range(len(layers.below[item]))
        }
        assert {wire.net for wire in gap.wires} == ends
        for wire in gap.wires:
            assert wire.begins >= 0 or any(
                left[item] <= wire.top < left[item] + widths[item] for item in layers.ranks[rank]
            )
            for column in wire.bottoms:
                assert any(
                    left[item] <= column < left[item] + widths[item]
                    for item in layers.ranks[rank + 1]
                )


def test_nothing_and_one_rank() -> None:
    assert boxed(Graph()).boxes == []
    graph = Graph()
    graph.add("A", "a")
    graph.add("B", "b")
    layout = boxed(graph)
    assert all(box is not None for box in layout.boxes)
    assert layout.gaps == []
