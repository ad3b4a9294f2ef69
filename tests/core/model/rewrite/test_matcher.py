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
from tests.support.models import PLAIN_BRANCHES, parse


def model(lines: str, given: str = "float[2, 3] x", out: str = "y", stored: str = "") -> str:
    stored = f"<{stored}>" if stored else ""
    return (
        f'<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>\n'
        f"g ({given}) => ({', '.join('float ' + name for name in out.split())}) {stored}\n"
        f"{{ {lines} }}"
    )


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
