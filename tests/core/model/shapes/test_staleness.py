from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.shapes.staleness import Staleness
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models

TYPED = """
<ir_version: 10, opset_import: ["" : 18]>
typed (float[N, 4] x) => (float[N, 4] y)
<float[N, 4] a, float[N, 4] b, float[N, 4] other>
{
    [first] a = Relu(x)
    [second] b = Neg(a)
    [aside] other = Abs(x)
    [last] y = Add(b, other)
}
"""


@contextmanager
def marked(text: str) -> Iterator[tuple[Document, Staleness]]:
    document = Document(models.parse(text))
    staleness = Staleness(document)
    document.on_change.append(staleness.changed)
    try:
        yield document, staleness
    finally:
        document.close()


def spread(staleness: Staleness) -> None:
    while not staleness.advance():
        pass


def change(document: Document, node: str, scope: Sequence[str] = ()) -> None:
    """Make an edit that may change the types of what a node makes."""
    document.apply(
        "set_attribute", scope=list(scope), node=node, attribute="k", kind="int", value=1
    )


def stale(document: Document) -> dict[str, set[str]]:
    return {scope.title: scope.stale for scope in document.scopes() if scope.stale}


@pytest.mark.parametrize(
    ("edit", "arguments"),
    [
        ("set_doc_string", {"nodes": ["first"], "text": "what it does"}),
        ("clean", {"passes": ["clear-docs"]}),
    ],
)
def test_documentation_has_no_influence(edit: str, arguments: dict[str, Any]) -> None:
    with marked(TYPED) as (document, staleness):
        for record in document.main.records["value_info"]:
            record.doc_string = "what it is"
        document.apply(edit, **arguments)
        spread(staleness)
        assert not document.main.stale


def test_marks_spread_in_bounded_steps() -> None:
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(500)]
    x = onnx.helper.make_tensor_value_info("v0", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph(nodes, "long", [x], [])
    document = Document(onnx.helper.make_model(graph))
    staleness = Staleness(document)
    document.on_change.append(staleness.changed)

    document.apply("set_input", scope=[], node=document.main.nodes[0].ref, index=0, value="")
    assert len(document.main.stale) == 1
    assert not staleness.advance(100)
    assert 40 <= len(document.main.stale) <= 101
    spread(staleness)
    assert len(document.main.stale) == 500


def test_an_edit_of_very_many_records_marks_everything_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dld_tui.core.model.shapes.staleness.MANY", 1)
    with marked(TYPED) as (document, _):
        document.apply("delete_nodes", scope=[], nodes=["second", "aside"])
        assert document.main.stale == {"a", "y"}


def test_an_edit_while_marks_spread_loses_none() -> None:
    with marked(TYPED) as (document, staleness):
        change(document, "first")
        staleness.advance(1)
        change(document, "aside")
        spread(staleness)

        assert stale(document) == {"main": {"a", "b", "other", "y"}}


def test_into_subgraphs_that_capture_a_value_and_out_of_them() -> None:
    with marked(models.BRANCHES) as (document, staleness):
        change(document, "pre")
        spread(staleness)

        assert document.main.stale == {"a", "y"}
        yes, no = document.main.children()
        assert yes.stale == {"h", "t"}
        assert no.stale == {"x", "e"}  # `x` there is made from the captured `a`
        assert yes.is_stale("a")  # as it is seen from the subgraph

        staleness.clear()
        change(document, "shadow", no.path)
        spread(staleness)
        assert stale(document) == {"else_branch": {"x", "e"}, "main": {"y"}}
        assert not document.main.is_stale("x")


def test_a_change_of_the_imports_or_of_everything() -> None:
    with marked(TYPED) as (document, staleness):
        document.apply("set_opset", domain="", version=17)
        assert document.main.stale == {"a", "b", "other", "y"}
        staleness.clear()
        staleness.changed(DocumentChange("reset", None))
        assert document.main.stale == {"a", "b", "other", "y"}


def test_the_file_is_believed_no_more_where_an_edit_was() -> None:
    with marked(TYPED) as (document, staleness):
        main = document.main
        change(document, "second")
        spread(staleness)
        staleness.clear()

        assert main.is_stale("b")  # inference said nothing, the file's word is all there is
        assert main.value_type("b") == ValueType("float32", ("N", 4))
        main.inferred = {"a": ValueType("int8", ()), "b": ValueType("float16", ("N", 4))}
        assert not main.is_stale("b")
        assert main.value_type("b") == ValueType("float16", ("N", 4))
        assert main.value_type("a") == ValueType("float32", ("N", 4))

        document.undo()
        spread(staleness)
        staleness.clear()
        assert main.value_type("b") == ValueType("float32", ("N", 4))


def test_a_renamed_value_keeps_its_type_until_inference_is_done_again(tmp_path: Path) -> None:
    with marked(models.CHAIN) as (document, staleness):
        main = document.main
        main.inferred = {"a": ValueType("float32", ("N", 4))}
        document.apply("rename_value", scope=[], value="a", name="renamed")
        spread(staleness)

        assert main.value_type("renamed") == ValueType("float32", ("N", 4))
        assert main.is_stale("renamed")
