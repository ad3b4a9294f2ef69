"""One edit for nodes of several scopes is one step of the history."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models

THEN: list[JSON] = ["choose:then_branch"]
ELSE: list[JSON] = ["choose:else_branch"]


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.BRANCHES))


def test_delete_in_several_scopes_is_one_step(document: Document) -> None:
    nodes: list[JSON] = [[THEN, "inner"], [ELSE, "shadow"], [THEN, ">t"]]
    title = document.apply("delete_many", nodes=nodes).title
    assert title == "delete 3 nodes"
    assert not document.scope_at(["choose:then_branch"]).nodes
    assert len(document.history.done) == 1


def test_node_inside_a_deleted_one_goes_with_it(document: Document) -> None:
    document.apply("delete_many", nodes=[[THEN, "inner"], [[], "choose"]])
    assert [node.name for node in document.main.nodes] == ["pre"]


def test_attributes_of_nodes_in_several_scopes(document: Document) -> None:
    one: JSON = {"nodes": [[[], "pre"], [THEN, "inner"]],
                 "attributes": {"p": {"kind": "int", "value": 3}, "q": None}}  # fmt: skip
    two: JSON = {"nodes": [[ELSE, "shadow"]], "attributes": {"p": {"kind": "int", "value": 4}}}
    assert document.apply("set_attributes", changes=[one, two]).title == (
        "set 2 attributes of 3 nodes"
    )
    values = [
        node.attribute("p").value  # type: ignore[union-attr]
        for scope, ref in (([], "pre"), (THEN, "inner"), (ELSE, "shadow"))
        if (node := document.scope_at([str(step) for step in scope]).find(ref)) is not None
    ]
    assert values == [3, 3, 4]
    document.apply("set_attributes", changes=[{"nodes": [[[], "pre"]], "attributes": {"p": None}}])


def test_nodes_of_the_main_graph_by_name_alone(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        document.apply("set_precision", nodes=["first", [[], "b"]], precision="fp16")
        marked = [node.name for node in document.main.nodes if node.proto.metadata_props]
        assert marked == ["first", "second"]
        with pytest.raises(EditError, match="names or \\[scope, node\\]"):
            document.apply("set_precision", nodes=[["first"]], precision="fp16")
        with pytest.raises(EditError, match=r"Known: .*prepend_processing"):
            document.apply("prepend", nodes=[])
