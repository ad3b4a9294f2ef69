"""The order of a scope is known after every edit, as if all nodes had been looked at."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document, Node, traversal
from dld_tui.core.model.document.traversal import depends_on, is_ordered, upstream
from tests.support import models


def graph_of(links: list[tuple[int, int]]) -> Document:
    """Return a model of nodes with one output and any two inputs, links forward and backward."""
    nodes = [
        onnx.helper.make_node("Add", [f"v{first}", f"v{second}"], [f"v{at}"], name=f"n{at}")
        for at, (first, second) in enumerate(links)
    ]
    graph = onnx.helper.make_graph(nodes, "g", [], [])
    return Document(onnx.helper.make_model(graph))


def naive(document: Document) -> bool:
    made: set[str] = set()
    producers = document.main.links.producers
    for node in document.main.nodes:
        if any(name in producers and name not in made for name in node.inputs):
            return False
        made.update(node.outputs)
    return True


@st.composite
def graphs(draw: st.DrawFn) -> Document:
    count = draw(st.integers(1, 12))
    backward = draw(st.booleans())
    outside = st.integers(count, count + 2)
    links = []
    for at in range(count):
        inside = st.integers(0, count - 1) if backward else st.integers(0, at - 1)
        source = st.one_of(outside, inside) if backward or at else outside
        links.append((draw(source), draw(source)))
    return graph_of(links)


@pytest.mark.parametrize("links", [[(9, 9), (0, 2), (9, 9)], [(9, 9), (2, 0), (9, 9)]])
def test_each_input_of_a_node_counts(links: list[tuple[int, int]]) -> None:
    assert not is_ordered(graph_of(links).main)


@settings(max_examples=60)
@given(graphs(), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 14), st.booleans())))
def test_it_is_known_after_every_edit(
    document: Document, edits: list[tuple[int, int, bool]]
) -> None:
    main = document.main
    assert is_ordered(main) == naive(document)
    for at, value, undo in edits:
        node = main.nodes[at % len(main.nodes)]
        name = f"v{value}"
        definition = main.resolve(name)
        expected = definition is not None and node in upstream(main, name)
        assert depends_on(node, name) == expected
        try:
            document.apply("set_input", scope=[], node=node.ref, index=0, value=name)
        except EditError:
            assert expected or definition is None
        if undo:
            document.undo()
        assert is_ordered(main) == naive(document)


def test_inserting_and_sorting_is_noticed(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    assert is_ordered(document.main)
    document.apply("add_node", scope=[], op_type="Neg", inputs=["c"], outputs=["n"], index=0)
    assert not is_ordered(document.main)
    document.apply("sort_nodes", scope=[])
    assert is_ordered(document.main)
    document.undo()
    assert not is_ordered(document.main)


@pytest.mark.parametrize(("value", "depends"), [("a", True), ("y", True), ("x", False)])
def test_dependence_goes_through_subgraphs(tmp_path: Path, value: str, depends: bool) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    assert depends_on(document.main.nodes[0], value) == depends


DIAMOND = """
<ir_version: 10, opset_import: ["" : 18]>
diamond (float[4] x, bool choice) => (float[4] y)
{
    [top] a = Relu(x)
    [left] b = Neg(a)
    [right] c = Abs(a)
    [join] d = Add(b, c)
    [apart] e = Sin(x)
    [fork] f = If (choice) <
        then_branch = yes () => (float[4] t) { [inner] t = Cos(e) },
        else_branch = no () => (float[4] u) { [other] u = Identity(d) }
    >
    [last] y = Add(f, d)
}
"""


def names(nodes: set[Node]) -> set[str]:
    return {node.name for node in nodes}


def diamond(folder: Path) -> dict[str, Node]:
    document = Document.open(models.write(folder, DIAMOND))
    return {node.name: node for scope in document.scopes() for node in scope.nodes}


def test_between_takes_all_paths_and_those_through_subgraphs(tmp_path: Path) -> None:
    found = diamond(tmp_path)
    assert names(traversal.between([found["top"], found["join"]])) == {
        "top",
        "left",
        "right",
        "join",
    }
    assert names(traversal.between([found["apart"], found["last"]])) == {"apart", "fork", "last"}
    assert names(traversal.between([found["left"], found["right"]])) == {"left", "right"}


def test_feeding_stops_at_what_is_given(tmp_path: Path) -> None:
    main = diamond(tmp_path)["top"].scope
    assert [node.name for node in traversal.feeding(main, ["d"], ["b"])] == ["top", "right", "join"]
    assert [node.name for node in traversal.feeding(main, ["f"], ["d"])] == ["apart", "fork"]
