"""Repairs change what they say and nothing else, and refuse what is not safe."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from tests.support import models


@pytest.fixture
def shady(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.SHADY))


def test_trimming_keeps_what_is_left_out_in_between(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Add(a, w)", 'Clip(a, "", w, "")')
    document = Document.open(models.write(tmp_path, text))
    document.apply("trim_links", scope=[], node="second")
    assert document.main.nodes[1].inputs == ("a", "", "w")


def test_the_first_of_one_name_keeps_it() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[1].name = model.graph.node[2].name = "same"
    document = Document(model)
    document.apply("rename_duplicate_nodes", scope=[])
    assert [node.name for node in document.main.nodes] == ["first", "same", "same_1", "last"]


def test_an_inner_value_gets_a_name_of_its_own(shady: Document) -> None:
    scope = shady.scope_at(["choose:else_branch"])
    shady.apply("rename_shadowing", scope=list(scope.path), value="x")
    assert scope.nodes[0].outputs == ("x_1",)
    assert scope.nodes[1].inputs == ("x_1", "x_1")
    assert shady.main.nodes[0].inputs == ("x",)
    with pytest.raises(EditError, match="there is no value"):
        shady.apply("rename_shadowing", scope=list(scope.path), value="choice")


def test_outer_values_go_out_as_copies(shady: Document) -> None:
    scope = shady.scope_at(["choose:then_branch"])
    shady.apply("own_outputs", scope=list(scope.path), values=["a"])
    copy = scope.nodes[-1]
    assert (copy.op_type, copy.inputs, copy.outputs) == ("Identity", ("a",), ("a_copy",))
    assert scope.outputs == ("a_copy",)
    with pytest.raises(EditError, match="only a subgraph"):
        shady.apply("own_outputs", scope=[], values=["y"])


def test_equal_initializers_become_one_and_others_are_refused(shady: Document) -> None:
    shady.apply("remove_repeated_initializers", scope=[], names=["w"])
    assert len(shady.main.initializers) == 1
    shady.undo()
    shady.main.records["initializer"][1].float_data[0] = 2.0
    with pytest.raises(EditError, match="different contents"):
        shady.apply("remove_repeated_initializers", scope=[], names=["w"])
    assert len(shady.main.initializers) == 2


def test_only_named_initializers_that_are_unused_go(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    document.apply("remove_unused", scope=[], nodes=False, names=["w"])
    assert [tensor.name for tensor in document.main.initializers] == ["w", "unused"]
    document.apply("remove_unused", scope=[], nodes=False, names=["unused"])
    assert [tensor.name for tensor in document.main.initializers] == ["w"]


def test_initializers_that_only_an_inner_value_of_the_same_name_uses_are_unused(
    tmp_path: Path,
) -> None:
    document = Document.open(models.write(tmp_path, models.SHADY.replace("w = {1}", "x2 = {1}")))
    inner = document.scope_at(["choose:else_branch"])
    document.apply("rename_value", scope=list(inner.path), value="e", name="x3")
    document.apply("remove_unused", scope=[])
    assert not document.main.initializers


def test_steps_that_do_not_fit_are_left_out_of_a_repair(shady: Document) -> None:
    before = len(shady.history.done)
    shady.apply(
        "repair",
        steps=[
            ["delete_nodes", {"scope": [], "nodes": ["nobody"]}],
            ["trim_links", {"scope": [], "node": "call"}],
        ],
    )
    assert shady.main.nodes[1].inputs == ("a",)
    assert len(shady.history.done) == before + 1
    assert shady.history.done[-1].title == "repair 1 place"


def test_a_graph_gets_a_name() -> None:
    model = models.parse(models.CHAIN)
    model.graph.ClearField("name")
    document = Document(model)
    document.apply("name_graph")
    assert document.main.proto.name == "main_graph"
    assert isinstance(document.main.proto, onnx.GraphProto)
    with pytest.raises(EditError, match="needs a name"):
        document.apply("name_graph", name="")
