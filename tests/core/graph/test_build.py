from __future__ import annotations

import onnx.parser
import pytest

from dld_tui.core.document import Document
from dld_tui.core.graph.build import ScopeGraph, constants_of, graph_of
from dld_tui.core.graph.graph import Graph, Kind
from tests.support import models


def opened(text: str) -> Document:
    model = onnx.parser.parse_model(text)
    document = Document.new({"": 18})
    path_free = Document(model)
    document.close()
    return path_free


def kinds(drawn: ScopeGraph) -> dict[str, str]:
    graph = drawn.graph
    return {graph.names[v] or graph.labels[v]: graph.kinds[v] for v in range(len(graph))}


def links(graph: Graph) -> set[tuple[str, str, str]]:
    def name(vertex: int) -> str:
        return graph.names[vertex] or graph.labels[vertex]

    return {
        (name(net.source), net.name, name(target)) for net in graph.nets for target in net.targets
    }


def test_nodes_inputs_and_outputs_but_not_weights() -> None:
    drawn = graph_of(opened(models.CHAIN).main)
    assert kinds(drawn) == {
        "x": Kind.INPUT, "first": Kind.NODE, "second": Kind.NODE, "third": Kind.NODE,
        "last": Kind.NODE, "y": Kind.OUTPUT,
    }  # fmt: skip
    assert links(drawn.graph) == {
        ("x", "x", "first"), ("first", "a", "second"), ("second", "b", "third"),
        ("third", "c", "last"), ("last", "y", "y"),
    }  # fmt: skip
    assert drawn.graph.classes[drawn.graph.names.index("first")] == "activation"


def test_a_holder_takes_what_its_bodies_capture() -> None:
    document = opened(models.BRANCHES)
    drawn = graph_of(document.main)
    assert kinds(drawn)["choose"] == Kind.HOLDER
    assert ("pre", "a", "choose") in links(drawn.graph)


def test_outer_values_of_a_body_are_drawn() -> None:
    document = opened(models.BRANCHES)
    drawn = graph_of(document.scope_at(["choose:then_branch"]))
    assert kinds(drawn)["a"] == Kind.OUTER
    assert ("a", "a", "inner") in links(drawn.graph)
    assert kinds(drawn)["t"] == Kind.OUTPUT


CONSTANTS = """
<ir_version: 10, opset_import: ["" : 18]>
constants (float[N, 4] x) => (float[N, 4] y, float[4] fixed)
<float[4] w = {1, 2, 3, 4}>
{
    [shape] s = Constant <value_ints = [2, 2]> ()
    [reshaped] r = Reshape(w, s)
    [fold] f = Flatten(r)
    [fixing] fixed = Neg(w)
    [noise] n = RandomNormal <shape = [4]> ()
    [sum] t = Add(x, f)
    [sum2] y = Add(t, n)
}
"""


def test_what_is_computed_from_constants_is_a_parameter() -> None:
    document = opened(CONSTANTS)
    drawn = graph_of(document.main)
    assert {"shape", "reshaped", "fold"}.isdisjoint(drawn.graph.names)
    # An output needs its producer, and noise differs from run to run.
    assert {"fixing", "noise"} <= set(drawn.graph.names)
    whole = graph_of(document.main, constants=True)
    assert {"shape", "reshaped", "fold"} <= set(whole.graph.names)


def test_some_constants_are_drawn_or_hidden_for_themselves() -> None:
    scope = opened(CONSTANTS).main
    named = {node.name: node for node in scope.nodes}
    feeding = constants_of(named["sum"])
    assert [node.name for node in feeding] == ["shape", "reshaped", "fold"]
    assert constants_of(named["reshaped"]) == [named["shape"], named["reshaped"]]
    assert constants_of(named["shape"]) == [named["shape"]]
    assert constants_of(named["sum2"]) == constants_of(named["fixing"]) == []
    everything = set(graph_of(scope, constants=True).graph.names)
    usual = set(graph_of(scope).graph.names)
    alone = graph_of(scope, exceptions=frozenset([named["fold"], named["sum"]]))
    assert set(alone.graph.names) == usual | {"fold"}
    assert ("fold", "f", "sum") in links(alone.graph)
    hidden = graph_of(scope, constants=True, exceptions=frozenset([named["fold"], named["sum"]]))
    assert set(hidden.graph.names) == everything - {"fold"}
    fed = graph_of(scope, exceptions=frozenset(feeding))
    assert set(fed.graph.names) == everything


def test_a_function_call_and_a_function_body() -> None:
    document = opened(models.FUNCTIONS)
    assert Kind.CALL in graph_of(document.main).graph.kinds
    body = graph_of(document.functions[0])
    assert Kind.INPUT in body.graph.kinds
    assert Kind.OUTPUT in body.graph.kinds


def test_types_on_links_only_when_asked() -> None:
    document = opened(models.CHAIN)
    assert {net.label for net in graph_of(document.main).graph.nets} == {""}
    labelled = graph_of(document.main, types=True).graph
    assert next(net.label for net in labelled.nets if net.name == "x") == "f32[N,4]"


BROKEN = """
<ir_version: 10, opset_import: ["" : 18]>
broken (float[4] x) => (float[4] y, float[4] nowhere)
{
    [twice] a = Relu(x)
    [twice] a = Neg(b)
    [loop] b = Add(b, ghost)
    [late] y = Abs(a)
}
"""


def test_broken_graphs_are_drawn_as_far_as_they_go() -> None:
    document = opened(BROKEN)
    drawn = graph_of(document.main)
    assert len([kind for kind in drawn.graph.kinds if kind == Kind.NODE]) == 4
    assert ("loop", "b", "loop") in links(drawn.graph)
    assert drawn.vertex("nowhere") is not None


@pytest.mark.parametrize("what", ["first", "second"])
def test_vertices_and_nodes_find_each_other(what: str) -> None:
    document = opened(models.CHAIN)
    drawn = graph_of(document.main)
    node = document.main.find(what)
    assert node is not None
    vertex = drawn.vertex(node)
    assert vertex is not None
    assert drawn.subjects[vertex] is node
