from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.build import ScopeGraph, graph_of
from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.pictures import content
from dld_tui.core.model.graph.pictures.scene import make_scene
from dld_tui.core.model.tensors.value_types import aliases_in
from tests.support import models
from tests.support.graphs import graph_of_links


def drawn(text: str = models.CHAIN) -> ScopeGraph:
    return graph_of(Document(models.parse(text)).main)


def test_the_whole_graph() -> None:
    found = content.whole_content(drawn(), "chain\x1b.onnx")
    assert found.title == "chain\\x1b.onnx"
    assert (found.nodes, len(found.graph)) == (4, 6)
    assert found.colour(found.graph.labels.index("Add")) == "elem"
    assert found.colour(found.graph.labels.index("x")) == "io"
    lines = {label: found.lines(at) for at, label in enumerate(found.graph.labels)}
    assert (lines["Add"], lines["x"], lines["y"]) == (["second"], [], [])
    unnamed = content.whole_content(drawn(models.CHAIN.replace("[second] ", "")), "c.onnx")
    assert unnamed.lines(unnamed.graph.labels.index("Add")) == []


def test_around_a_node_with_counters() -> None:
    graph = drawn()
    node = graph.scope.find("second")
    assert node is not None
    found = content.node_content(graph, node, 1)
    assert found.graph.labels == ["Relu", "Add", "Mul"]
    assert list(found.cuts) == [(1, 0), (0, 0), (0, 1)]
    assert found.centre == 1


def test_constants_are_not_drawn_around() -> None:
    text = models.CHAIN.replace("[first]", "[fixed] k = Neg(unused)\n    [first]")
    graph = drawn(text)
    node = graph.scope.find("fixed")
    assert node is not None
    with pytest.raises(UsageError, match="--constants"):
        content.node_content(graph, node, 2)


def test_folds_say_what_is_in_them() -> None:
    links = [(chr(65 + at), chr(66 + at)) for at in range(8)]
    links.append(("I", "m/layers.0/Conv0"))
    for layer in range(30):
        chain = [f"m/layers.{layer}/{name}" for name in ("Conv0", "Relu0", "Add0", "Mul0")]
        links += list(zip(chain, [*chain[1:], f"m/layers.{layer + 1}/Conv0"], strict=True))
    found = content.folded_content(Overview(graph_of_links(links)))
    group = found.graph.kinds.index(Kind.GROUP)
    assert found.colour(group) == "group"
    assert found.lines(group)[0] == "30 times 4 nodes"
    assert found.lines(group)[1].startswith("1 ")
    assert found.nodes == 130


def test_types_come_from_labels_or_from_the_scope() -> None:
    graph = drawn()
    found = content.whole_content(graph)
    net = next(n for n, net in enumerate(graph.graph.nets) if net.name == "x")
    assert found.type_of(net) == ""
    found.types = content.types_of(graph.scope)
    assert found.type_of(net) == "f32[N,4]"
    assert "f32[N,4]" in found.tooltip(graph.graph.nets[net].source)


def test_too_much_is_refused_with_a_way_out() -> None:
    graph = drawn()
    graph.graph = Graph(["X"] * 20_001, [""] * 20_001, ["node"] * 20_001, [""] * 20_001)
    with pytest.raises(UsageError, match="--folded"):
        content.whole_content(graph)


def test_boxes_stay_where_they_were_moved() -> None:
    graph = drawn()
    node = graph.scope.find("second")
    assert node is not None
    entry = node.proto.metadata_props.add()
    entry.key, entry.value = "dld.position", "12,0"
    found = content.whole_content(graph)
    assert found.moves == {graph.vertex(node): (12, 0)}
    moved: list[int] = []
    others: list[int] = []
    for card in make_scene(found).cards:
        (moved if card.vertex in found.moves else others).append(card.x + card.width // 2)
    assert all(other < moved[0] for other in others)


def test_long_dimensions_have_short_names_that_the_heading_explains() -> None:
    text = "chain (float[batch_size, 4] x) => (float[batch_size, 4] y) { y = Relu(x) }"
    graph = drawn(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    found = content.whole_content(graph, "chain")
    found.types, found.aliases = content.types_of(graph.scope), aliases_in(graph.scope)
    assert found.type_of(0) == "f32[B,4]"
    heading = [line.text for line in make_scene(found).heading]
    assert any(line == "1 node · B = batch_size" for line in heading)
