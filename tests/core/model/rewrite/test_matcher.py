"""Patterns and where they are found, with networkx's matcher as the oracle."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import DiGraphMatcher
from onnx import helper

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.rewrite import matcher
from dld_tui.core.model.rewrite.expression import MOST_DEPTH
from dld_tui.core.model.rewrite.matcher import Matcher, disjoint, find_hits, pattern_of
from dld_tui.core.model.rewrite.pattern import parse_pattern
from tests.support.drawn_models import drawn_model
from tests.support.models import PLAIN_BRANCHES, layered, parse

SWISH = "(x) => (y) { s = Sigmoid(x)  y = Mul(x, s) }"


def found(model: str, pattern: str) -> list[str]:
    """Return the names of the nodes of each hit, with ! for one that cannot be replaced."""
    hits = find_hits(Document(parse(model)), parse_pattern(pattern))
    return [
        " ".join(sorted(node.name for node in hit.nodes)) + "!" * bool(hit.problem) for hit in hits
    ]


def model(lines: str, given: str = "float[2, 3] x", out: str = "y", stored: str = "") -> str:
    stored = f"<{stored}>" if stored else ""
    return (
        f'<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>\n'
        f"g ({given}) => ({', '.join('float ' + name for name in out.split())}) {stored}\n"
        f"{{ {lines} }}"
    )


CASES: list[tuple[str, str, list[str]]] = [
    (model("[a] s = Sigmoid(x) [b] y = Mul(s, x)"), SWISH, ["a b"]),
    (model("[a] s = Sigmoid(x) [b] y = Mul(s, x)"), "Mul(x, Sigmoid(x))", ["a b"]),
    (model("[a] s = Sigmoid(x) [b] y = Mul(s, s)"), SWISH, []),
    (model("[a] s = Sigmoid(x) [b] y = Sub(s, x)"), "Sub(x, Sigmoid(x))", []),
    (model("[a] s = Sigmoid(x) [b] y = Sub(s, x)"), "Sub~(x, Sigmoid(x))", ["a b"]),
    # What must not be used elsewhere.
    (model("[a] s = Sigmoid(x) [b] y = Mul(s, x)", out="y s"), SWISH, ["a b!"]),
    (model("[a] s = Sigmoid(x) [b] y = Mul(s, x)", out="y s"), "Mul(x, &Sigmoid(x))", ["a b"]),
    (model("[a] s = Relu(x) [b] y = Neg(s) [c] z = Abs(s)", out="y z"), "Neg(Relu(x))", ["a b!"]),
    (
        model("[a] s = Relu(x) [b] y = Neg(s) [c] z = Abs(s)", out="y z"),
        "(x) => (n, r) { r = Relu(x) n = Neg(r) }",
        ["a b"],
    ),
    # Nodes that may be missing.
    (model("[a] s = Neg(x) [b] y = Abs(s)"), "Abs(Relu?(Neg(x)))", ["a b"]),
    (model("[a] s = Neg(x) [b] r = Relu(s) [c] y = Abs(r)"), "Abs(Relu?(Neg(x)))", ["a b c"]),
    (model("[a] s = Neg(x) [b] y = Relu(s)"), "Relu?(Neg(x))", ["a b"]),
    (model("[a] s = Neg(x) [b] y = Abs(s)"), "Relu?(Neg(x))", ["a"]),
    (
        model("[a] s = Neg(x) [b] d = Div(s, x) [c] y = Abs(d)"),
        "Abs(Add?(Mul|Div?(Neg(x), c), m)) where not m is present",
        ["a b c"],
    ),
    # Wildcards.
    (model("[a] s = Gelu(x) [b] y = Neg(s)"), "Neg(_(x))", ["a b"]),
    (model("[a] s = Tanh(x) [b] y = Neg(s)"), "Neg(Relu | Tanh(x))", ["a b"]),
    (model("[a] s = Exp(x) [b] y = Neg(s)"), "Neg(Relu | Tanh(x))", []),
    (model("[a] y = com.microsoft.Gelu(x)"), "Gelu(x)", []),
    (model("[a] y = com.microsoft.Gelu(x)"), "com.microsoft.Gelu(x)", ["a"]),
    (model("[a] y = Conv(x, x)"), "Conv(x, w, b?)", ["a"]),
    (model("[a] y = Conv(x, x, x)"), "Conv(x, w, b?)", ["a"]),
    (model("[a] y = Conv(x, x, x)"), "Conv(x, w)", []),
    (model("[a] y = Conv(x, x, x)"), "Conv(x, ...)", ["a"]),
    (model('[a] y = Clip(x, "", x)'), 'Clip(x, "", h)', ["a"]),
    (model("[a] y = Clip(x, x, x)"), 'Clip(x, "", h)', []),
    (model("[a] y = Add(x, x)"), "Add(_, _)", ["a"]),
    # Constants and attributes.
    (model("[a] y = Mul(c, x)", stored="float c = {0.5}"), "Mul(x, 0.5)", ["a"]),
    (model("[a] y = Mul(c, x)", stored="float[1] c = {0.5}"), "Mul(x, 0.5)", ["a"]),
    (model("[a] y = Mul(c, x)", stored="float[2] c = {0.5, 0.5}"), "Mul(x, 0.5)", []),
    (model("[a] y = Mul(c, x)", stored="float[2] c = {0.5, 1}"), "Mul(x, [0.5, 1])", ["a"]),
    (model("[k] c = Constant <value_float = 0.5> () [a] y = Mul(c, x)"), "Mul(x, 0.5)", ["a"]),
    (
        model("[k] c = Constant <value = float {0.5}> () [a] y = Mul(c, x)"),
        "(x) => (y) { c = Constant <value = float {0.5}> ()  y = Mul(x, c) }",
        ["a"],
    ),
    (model("[a] y = Mul(c, x)", "float[2] x, float c"), "Mul(x, 0.5)", []),
    (model("[a] y = Mul(c, x)", "float[2] x, float c", stored="float c = {1}"), "Mul(x, 1)", []),
    (model("[a] y = Softmax(x)"), "Softmax <axis = -1> (x)", ["a"]),
    (model("[a] y = Softmax <axis = 1> (x)"), "Softmax <axis = -1> (x)", []),
    (model("[a] y = Softmax <axis = 1> (x)"), "Softmax <axis = k> (x) where k = x.rank - 1", ["a"]),
    (model("[a] y = ReduceMean <axes = [1]> (x)").replace("18", "13"),
     "ReduceMean <axes = [1]> (x)", ["a"]),
    (model("[a] y = ReduceMean (x, k)", stored="int64[1] k = {1}"),
     "ReduceMean <axes = [1]> (x)", ["a"]),
    (model("[a] y = ReduceMean (x, k)", stored="int64[1] k = {0}"),
     "ReduceMean <axes = [1]> (x)", []),
    (
        model("[a] s = Transpose <perm = [1, 0]> (x) [b] y = Transpose <perm = [1, 0]> (s)"),
        "Transpose <perm = p> (Transpose <perm = q> (x)) where compose(p, q) = [0, 1]",
        ["a b"],
    ),
    (
        model("[a] s = Transpose <perm = [1, 0]> (x) [b] y = Transpose <perm = [0, 1]> (s)"),
        "Transpose <perm = p> (Transpose <perm = p> (x))",
        [],
    ),
    # Conditions.
    (model("[a] y = MatMul(x, x)"), "MatMul(x, w) where w is constant", []),
    (model("[a] y = MatMul(x, w)", stored="float[1] w = {1}"),
     "MatMul(x, w) where w is constant and x.shape[1] = 3 and x.dtype = float32", ["a"]),
    (model("[a] y = Relu(x)"), "n: Relu(x) where n.type = Relu and opset >= 18", ["a"]),
    (model("[a] y = Relu(x)"), "Relu(x) where opset > 18", []),
    # Further outputs.
    (model("[a] y, m = Dropout(x)"), "Dropout(x, ...)", ["a"]),
    (model("[a] y, m = Dropout(x)", out="y m"), "Dropout(x, ...)", ["a!"]),
    # The same node twice, or the nodes in a chain.
    (model("[a] r = Relu(x) [b] s = Relu(r) [c] y = Relu(s)"), "Relu(Relu(x))", ["a b", "b c"]),
    (model("[a] y = Add(x, x)"), "Add(Relu(x), Relu(x))", []),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_pattern_is_found(case: int) -> None:
    text, pattern, wanted = CASES[case]
    assert found(text, pattern) == wanted


BODIES = """
<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
g (bool choice, float[2] x) => (float[2] y, float[2] z)
{
    [pre] a = Relu(x)
    [out] z = Neg(a)
    [if] y = If (choice) <
        then_branch = yes () => (float[2] t) { [f] h = Relu(x) [n] t = Neg(h) },
        else_branch = no () => (float[2] e) { [c] e = Neg(a) }
    >
}
<domain: "my", opset_import: ["" : 18]>
F (p) => (q) { [fr] s = Relu(p) [fn] q = Neg(s) }
"""


def test_bodies_and_functions_are_searched() -> None:
    # The Relu of the main graph is captured by the other branch, whose Neg is no user of its scope.
    assert found(BODIES, "Neg(Relu(x))") == ["out pre!", "f n", "fn fr"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("_(_(x))", "matches everything"),
        ("{ a = Relu(x) b = Neg(y) }", "falls apart"),
        ("x", "none of its operators"),
        ("", "expected"),
        ("Relu(x", "expected"),
        ("Relu(x) where k > 1", "has no 'k'"),
        ("Relu <alpha = 1 + q> (x)", "expected"),
        ("(x) => (z) { y = Relu(x) }", "output"),
        ("{ }", "no operator"),
        ("(x) => (y) { y = Add(x, w) }", "'w' is neither an input"),
        ("(x) => (y) { y = Relu(x) y = Neg(x) }", "twice"),
        ("Relu(x) extra", "not expected"),
        ("Relu({x})", "computed"),
        ("A?(B?(C?(D?(E?(F?(G?(Relu(x))))))))", "may be missing"),
        ("Relu?(_(x))", "matches everything"),
    ],
)
def test_unfit_pattern_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_pattern(text)


@pytest.mark.parametrize(("opening", "closing"), [("Relu(", ")"), ("[", "]")])
def test_operators_and_lists_are_nested_up_to_a_depth(opening: str, closing: str) -> None:
    def read(depth: int) -> None:
        few, many = (opening * count + "1" + closing * count for count in (1, depth))
        parse_pattern(f"Max({', '.join([few] * 30)}, {many})")

    read(MOST_DEPTH - 1)  # in one more
    with pytest.raises(UsageError, match="nested more than 60 deep"):
        read(MOST_DEPTH)


def test_search_with_too_many_ways_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MOST_STEPS", 50)
    lines = " ".join(f"v{n} = Relu(x)" for n in range(60))
    document = Document(parse(model(f"{lines} [s] y = Sigmoid(x)")))
    search = Matcher(parse_pattern("{ a = Sigmoid(x) b = Relu(x) c = Relu(x) }"))
    hits = list(search.hits(document))
    assert len(hits) < 60 * 59 / 2
    assert search.given_up


def test_search_that_would_not_end_gives_up_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many nodes may have few enough ways, and all together too many."""
    monkeypatch.setattr(matcher, "MOST_IN_ALL", 500)
    lines = " ".join(f"v{n} = Relu(x) w{n} = Neg(x)" for n in range(60))
    document = Document(parse(model(f"{lines} [s] y = Sigmoid(x)")))
    search = Matcher(parse_pattern("{ a = Relu(x) b = Neg(x) }"))
    assert 0 < len(list(search.hits(document))) < 3600
    assert search.given_up


def test_hits_that_share_nodes_are_told_apart() -> None:
    lines = "r = Relu(x) s = Relu(r) t = Relu(s) y = Relu(t)"
    document = Document(parse(model(lines)))
    chosen, overlapping = disjoint(find_hits(document, parse_pattern("Relu(Relu(x))")))
    assert (len(chosen), len(overlapping)) == (2, 1)


OPERATORS = ("Relu", "Neg", "Sub", "Div", "Add", "Mul")
INSTANCE = (("Relu", 1), ("Sub", 2), ("Add", 2))
PATTERNS = (
    "Sub(&Relu(x), y)", "Add(&Sub(&Relu(x), y), z)", "Mul(&Add(a, b), &Sub(a, c))",
    "Div(&_(x, ...), &Relu(y))", "Sub(&Add|Mul(x, y), &Neg(z))", "Add(&Relu(x), &Relu(y))",
)  # fmt: skip


def drawn(seed: int) -> tuple[Document, list[frozenset[str]]]:
    """Return a model with planted chains Relu, Sub, Add, and these."""
    dice = random.Random(seed)
    values, nodes, planted = ["x", "z"], [], []
    for at in range(60):
        if dice.random() < 0.12:
            names = [f"p{at}_{step}" for step in range(3)]
            last = dice.choice(values)
            for name, (operator, arity) in zip(names, INSTANCE, strict=True):
                inputs = [last, *(dice.choice(values) for _ in range(arity - 1))]
                if operator == "Add" and dice.random() < 0.5:
                    inputs.reverse()
                nodes.append(helper.make_node(operator, inputs, [name], name))
                last = name
            planted.append(frozenset(names))
            values.append(last)
            continue
        operator = dice.choice(OPERATORS)
        count = 1 if operator in ("Relu", "Neg") else 2
        recent = values[-8:]
        nodes.append(
            helper.make_node(operator, [dice.choice(recent) for _ in range(count)], [f"v{at}"],
                             f"v{at}")
        )  # fmt: skip
        values.append(f"v{at}")
    info = [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "z", values[-1])]
    graph = helper.make_graph(nodes, "drawn", info[:2], info[2:])
    return Document(helper.make_model(graph)), planted


def as_graph(scope: Scope) -> nx.DiGraph:
    """Return operators and the values between them as vertices of a bipartite graph."""
    graph = nx.DiGraph()
    for node in scope.nodes:
        graph.add_node(("node", node.name), kind={node.op_type})
        _link(graph, node.name, node.inputs, node.outputs, {node.op_type})
    return graph


def _link(graph: nx.DiGraph, name: str, inputs: Any, outputs: Any, kinds: set[str]) -> None:
    free = kinds <= {"Add", "Mul"} and bool(kinds)
    for place, value in enumerate(inputs):
        graph.add_node(("value", value), kind="value")
        edge = (("value", value), ("node", name))
        known = graph.edges[edge]["places"] if graph.has_edge(*edge) else frozenset()
        places = known | {0 if free else place} if not (free and known) else frozenset({0, 1})
        graph.add_edge(*edge, places=places)
    for value in outputs:
        graph.add_node(("value", value), kind="value")
        graph.add_edge(("node", name), ("value", value), places=frozenset({9}))


def expected(scope: Scope, text: str) -> set[frozenset[str]]:
    """Return the sets of nodes that networkx finds."""
    pattern = nx.DiGraph()
    for at, call in enumerate(parse_pattern(text).body.calls):
        kinds = {name for _, name in call.kinds}
        pattern.add_node(("node", at), kind=kinds)
        _link(pattern, at, [item.name for item in call.inputs], call.outputs, kinds)  # type: ignore[arg-type, union-attr]

    def same(model_side: Any, pattern_side: Any) -> bool:
        first, second = model_side["kind"], pattern_side["kind"]
        if first == "value" or second == "value":
            return bool(first == second)
        return not second or first <= second

    def linked(model_side: Any, pattern_side: Any) -> bool:
        return bool(pattern_side["places"] <= model_side["places"] or
                    (pattern_side["places"] == {0} and 0 in model_side["places"]))  # fmt: skip

    search = DiGraphMatcher(as_graph(scope), pattern, same, linked)
    return {
        frozenset(vertex[1] for vertex in mapping if vertex[0] == "node")
        for mapping in search.subgraph_monomorphisms_iter()
    }


@pytest.mark.parametrize("text", PATTERNS)
def test_hits_are_those_of_networkx(text: str) -> None:
    total = 0
    for seed in range(8):
        document, planted = drawn(seed)
        hits = [frozenset(node.name for node in hit.nodes)
                for hit in find_hits(document, parse_pattern(text))]  # fmt: skip
        assert len(set(hits)) == len(hits)
        # networkx takes different names for different values; in a pattern they may be the same.
        oracle = expected(document.main, text)
        assert oracle <= set(hits)
        for extra in set(hits) - oracle:
            assert _has_same_values(document, extra, text)
        if text == PATTERNS[1]:
            assert set(planted) <= set(hits)
        total += len(hits)
    assert total > 0


def _has_same_values(document: Document, names: frozenset[str], text: str) -> bool:
    """Return whether a hit gives two names of a pattern to one value."""
    for hit in find_hits(document, parse_pattern(text)):
        if frozenset(node.name for node in hit.nodes) == names:
            return len(set(hit.values.values())) < len(hit.values)
    return False


def test_repeated_blocks_are_found_by_one_of_them() -> None:
    document = Document(parse(layered(6)))
    layer = document.main.nodes[1:6]
    hits = find_hits(document, parse_pattern(pattern_of(layer)))
    assert len(hits) == 6
    assert set(hits[0].nodes) == set(layer)
    assert not any(hit.problem for hit in hits)


@pytest.mark.parametrize("seed", range(5))
def test_pattern_of_linked_nodes_finds_them(seed: int) -> None:
    document = Document(drawn_model(seed))
    links = document.main.links
    tried = 0
    for node in document.main.nodes:
        makers = [links.producers[name][0] for name in node.inputs if name in links.producers]
        chosen = list(dict.fromkeys([node, *makers]))
        if node.op_type == "Constant" or any(one.op_type == "Constant" for one in chosen):
            continue
        hits = find_hits(document, parse_pattern(pattern_of(chosen)))
        assert any(set(hit.nodes) == set(chosen) for hit in hits), pattern_of(chosen)
        tried += 1
    assert tried


def test_nodes_of_several_graphs_have_no_pattern() -> None:
    document = Document(parse(PLAIN_BRANCHES))
    inner = document.main.nodes[1].subgraphs()[0].nodes
    with pytest.raises(UsageError, match="several graphs"):
        pattern_of([document.main.nodes[0], inner[0]])
    with pytest.raises(UsageError, match="no nodes"):
        pattern_of([])
