from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx.parser
import pytest

from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.graph.build import (
    ScopeGraph,
    Weights,
    constants_of,
    graph_of,
    weight_text,
    work_text,
)
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.rails import demand_order, lay_rails
from tests.support import models
from tests.support.sessions import node_in


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
    drawn = graph_of(opened(models.BRANCHES).main)
    assert kinds(drawn)["choose"] == Kind.CONTROL_FLOW
    assert ("pre", "a", "choose") in links(drawn.graph)


def test_outer_values_of_a_body_are_drawn() -> None:
    drawn = graph_of(opened(models.BRANCHES).scope_at(["choose:then_branch"]))
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
    drawn = graph_of(opened(BROKEN).main)
    assert len([kind for kind in drawn.graph.kinds if kind == Kind.NODE]) == 4
    assert ("loop", "b", "loop") in links(drawn.graph)
    assert drawn.vertex("nowhere") is not None


@pytest.mark.parametrize("what", ["first", "second"])
def test_vertices_and_nodes_find_each_other(what: str) -> None:
    document = opened(models.CHAIN)
    drawn = graph_of(document.main)
    node = node_in(document, what)
    vertex = drawn.vertex(node)
    assert vertex is not None
    assert drawn.subjects[vertex] is node


HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
CONV = """
main (float[1,8,9,9] x) => (float y)
<float[8,2,3,5] w, float[8] b> {
  c = Conv<kernel_shape=[3,5], strides=[2,2], dilations=[1,2], group=4>(x, w, b)
  d = Conv<group=4>(x, w)
  p = MaxPool<kernel_shape=[2,2], strides=[2,1]>(x)
  t = Transpose<perm=[0,2,3,1]>(x)
  s = Softmax<axis=-1>(x)
  h = Cast<to=10>(x)
  r = Relu(x)
  y = Sum(c, d)
}
"""
STORED = """
main (float[1,2] x) => (float[1,2] y)
<int8[2,2] q = {1,2,3,4}, float scale = {0.5}, int8 zero = {0}, float[2] bias = {1,2},
 float16[2,2] half = {1,2,3,4}, float[2,2] w> {
  w = DequantizeLinear(q, scale, zero)
  v = Cast<to=1>(half)
  a = MatMul(x, w)
  b = MatMul(a, v)
  c = Add(b, bias)
  y = Gemm(c, half)
  n = Neg(bias)
  i = Where(bias, n, half)
}
"""


def node(document: Document, output: str) -> Node:
    found = document.main.producer(output)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rank", "shared", "varied"),
    [(1, "3/2 d3", "3/2 d3"), (2, "3x3/2 d3", "3x4/2x3 d3x4"),
     (3, "3x3x3/2 d3", "3x4x5/2x3x4 d3x4x5")],
)  # fmt: skip
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "MaxPool"])
def test_a_window_of_any_rank(operator: str, rank: int, shared: str, varied: str) -> None:
    for grows, text in ((0, shared), (1, varied)):
        about: dict[str, Any] = {
            name: [least + grows * axis for axis in range(rank)]
            for name, least in (("kernel_shape", 3), ("strides", 2), ("dilations", 3))
        }
        made = onnx.helper.make_node(operator, ["x", "w"], ["y"], **about)
        document = Document(
            onnx.helper.make_model(onnx.helper.make_graph([made], "g", [], []), ir_version=10)
        )
        assert work_text(node(document, "y")) == (text if len(text) <= 24 else "")


@pytest.mark.parametrize(
    ("output", "text"),
    [("c", "3x5/2 d1x2 g4"), ("d", "3x5 g4"), ("p", "2x2/2x1"), ("t", "0,2,3,1"), ("s", "axis -1"),
     ("h", "to f16"), ("r", "")],
)  # fmt: skip
def test_what_a_node_does(output: str, text: str) -> None:
    assert work_text(node(Document(models.parse(HEAD + CONV)), output)) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [("a", "i8 → f32[2,2]"), ("b", "f16 → Cast"), ("c", ""), ("y", "f16[2,2]"), ("i", "f16[2,2]")],
)
def test_a_weight_says_what_is_stored_where_it_is_computed(output: str, text: str) -> None:
    document = Document(models.parse(HEAD + STORED))
    drawn = ("MatMul", "Add", "Gemm")
    found = weight_text(node(document, output), lambda other: other.op_type in drawn)
    assert found == text


def test_what_is_drawn_is_not_said_again() -> None:
    document = Document(models.parse(HEAD + STORED))
    assert weight_text(node(document, "a"), lambda other: True) == ""


HIDDEN = """
<ir_version: 10, opset_import: ["" : 18]>
hidden (float[N, 4] x) => (float[N, 4] y)
<int8[4] q = {1, 2, 3, 4}, float[1] scale = {1}, float[4] shared = {1, 2, 3, 4}>
{
    [widen] f = Cast<to = 1>(q)
    [scaled] w = Mul(f, scale)
    [shift] c = Constant<value = float[2] {1, 2}>()
    [first] a = Mul(x, w)
    [second] b = Add(a, c)
    [third] d = Add(b, shared)
    [fourth] y = Mul(d, shared)
}
"""


def weights_of(folder: Path, text: str) -> tuple[Weights, dict[str, int]]:
    """Return the weights, and the row of each vertex by its name."""
    drawn = graph_of(Document.open(models.write(folder, text)).main)
    rails = lay_rails(drawn.graph, demand_order(drawn.graph))
    return Weights(drawn, rails), {drawn.graph.names[v]: row for row, v in enumerate(rails.order)}


def test_weights_behind_nodes_that_are_not_drawn_count(tmp_path: Path) -> None:
    weights, rows = weights_of(tmp_path, HIDDEN)
    assert weights.used[rows["first"]] == 4 + 4
    assert weights.used[rows["second"]] == 8


def test_a_shared_weight_counts_once_in_a_sum(tmp_path: Path) -> None:
    weights, rows = weights_of(tmp_path, HIDDEN)
    assert weights.used[rows["third"]] == weights.used[rows["fourth"]] == 16
    assert weights.between(rows["third"], rows["fourth"] + 1) == 16
    assert weights.total == weights.between(0, len(rows)) == 8 + 8 + 16


def test_the_weights_of_bodies_are_those_of_the_node(tmp_path: Path) -> None:
    text = models.BRANCHES.replace(
        "[inner] h = Neg(a)", "[c] k = Constant<value = float[3] {1, 2, 3}>() [inner] h = Add(a, k)"
    )
    weights, rows = weights_of(tmp_path, text)
    assert weights.used[rows["choose"]] == weights.total == 12
