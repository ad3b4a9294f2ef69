"""Two tensors never share a cell: each can be followed with a finger, in the drawn cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.build import graph_of
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import Layout, lay_out, text_of
from dld_tui.core.model.graph.placement import MOST_LINES
from tests.support.graphs import graph_of_links, random_graph
from tests.support.lines import Line, drawn_links


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


@pytest.mark.parametrize("seed", range(40))
def test_every_tensor_has_cells_of_its_own(seed: int) -> None:
    graph = random_graph(seed, most=30 + seed)
    check(graph, laid_out(graph, 3, heights=1 + seed % 3))


def test_tensors_that_change_places_below_narrow_boxes() -> None:
    """Each takes the column that the other one leaves: one of them runs sideways twice."""
    graph = Graph()
    tops = [graph.add("A") for _ in range(3)]
    ends = [graph.add("B") for _ in range(3)]
    for at, top in enumerate(tops):
        for other in (1, 2):
            targets = [ends[(at + other) % 3], ends[(at * other + at * at) % 3]]
            graph.link(f"t{at}.{other}", top, targets)
    layout = laid_out(graph, 3)
    check(graph, layout)
    assert any(wire.begins >= 0 for gap in layout.gaps for wire in gap.wires)


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
