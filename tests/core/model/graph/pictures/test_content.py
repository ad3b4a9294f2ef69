from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.build import ScopeGraph, graph_of
from dld_tui.core.model.graph.folding import Overview, part_of
from dld_tui.core.model.graph.pictures import content
from dld_tui.core.model.tensors.value_types import aliases_in
from tests.support import models
from tests.support.graphs import graph_of_links
from tests.support.recorded import Recorded


def drawn(text: str = models.CHAIN) -> ScopeGraph:
    return graph_of(Document(models.parse(text)).main)


TEXT = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
chain (float[batch_size, 4] x, bool c) => (float[batch_size, 4] y)
<float[batch_size, 4] a, float[unk__7, 4] s>
{
    [first] a = Relu (x)
    [] n = Add (a, a)
    [call] s = local.twice (n)
    [third] t = If (c) <then_branch = g () => (p) { p = Neg (s) },
                        else_branch = h () => (q) { q = Abs (a) }>
    [last] y = Mul (t, t)
}
<domain: "local", opset_import: ["" : 18]>
twice (u) => (v) { v = Add(u, u) }
"""


def told(found: content.Content) -> str:
    """Return all that a content says, a line a vertex and a line a tensor."""
    lines = [f"{found.title!r}, {found.nodes} {found.noun}, around {found.centre}"]
    for at in range(len(found.graph)):
        about = f"{found.colour(at)} {found.lines(at)} {found.moves.get(at, '')}"
        cuts = [found.cuts[at]] if found.cuts else []
        lines.append(f"{at} {found.graph.names[at]} {about} {cuts} {found.tooltip(at)!r}")
    for at, net in enumerate(found.graph.nets):
        lines.append(f"{net.name}: {net.source} -> {[*net.targets]} {found.type_of(at)}")
    return "\n".join(lines)


def layers(scope: str, count: int) -> Overview:
    """Return a chain with repeated layers, with names of a scope or without."""
    links = [(chr(65 + at), chr(66 + at)) for at in range(8)]
    links.append(("I", f"{scope}0/Conv0"))
    for layer in range(count):
        chain = [f"{scope}{layer}/{name}" for name in ("Conv0", "Relu0", "Add0", "Mul0")]
        links += list(zip(chain, [*chain[1:], f"{scope}{layer + 1}/Conv0"], strict=True))
    graph = graph_of_links(links)
    if not scope:
        graph.names = [name.replace("/", "") for name in graph.names]
    return Overview(graph)


def test_contents(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = drawn(TEXT)
    node = graph.scope.find("call")
    assert node is not None
    entry = node.proto.metadata_props.add()
    entry.key, entry.value = "dld.position", "12,0"
    made = {"plain": content.whole_content(graph, "chain\x1b.onnx")}
    typed = content.whole_content(graph, "typed")
    typed.types, typed.aliases = content.types_of(graph.scope), aliases_in(graph.scope)
    typed.tips, typed.noun = {1: ["tip"] * 40, 2: ["long " * 200]}, "layer"
    made["typed"] = typed
    for hops in (1, 2):
        made[f"{hops} around"] = content.node_content(graph, node, hops, "around")
    made["elsewhere"] = content.part_content(part_of(graph.graph, [0, 2]), centre=1)
    for scope in ("m/layers.", ""):
        overview = layers(scope, 12)
        folds = [row.fold for row in overview.rows if row.fold]
        made[f"folded {scope}"] = content.folded_content(overview, "folded")
        overview.set_open(folds[0])
        made[f"open {scope}"] = content.folded_content(overview)
    recorded("contents", {title: told(found) for title, found in made.items()})
    monkeypatch.setattr(content, "MOST_VERTICES", len(graph.graph))
    content.whole_content(graph)
    monkeypatch.setattr(content, "MOST_VERTICES", len(graph.graph) - 1)
    with pytest.raises(UsageError, match="8 boxes are more"):
        content.whole_content(graph)
    with pytest.raises(UsageError, match="boxes are more"):
        content.folded_content(layers("m/", 30))


def test_constants_are_not_drawn_around() -> None:
    text = models.CHAIN.replace("[first]", "[fixed] k = Neg(unused)\n    [first]")
    graph = drawn(text)
    node = graph.scope.find("fixed")
    assert node is not None
    with pytest.raises(UsageError, match="--constants"):
        content.node_content(graph, node, 2)
