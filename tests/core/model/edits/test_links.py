"""Connecting, replacing and bypassing keep the graph runnable, or say why they do not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.sessions import bytes_of, node_in, opened


def valid(document: Document) -> onnx.ModelProto:
    data = bytes_of(document)
    model = onnx.ModelProto.FromString(data)
    onnx.checker.check_model(model, full_check=True)
    return model


def inputs(document: Document, ref: str) -> tuple[str, ...]:
    node = node_in(document, ref)
    return node.inputs


def test_connect_and_disconnect(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace("Mul(", "Sum("))  # takes any number
    document.apply("set_input", scope=[], node="third", index=1, value="a")
    assert inputs(document, "third") == ("b", "a")
    valid(document)
    document.apply("set_input", scope=[], node="third", index=4, value="w")
    assert inputs(document, "third") == ("b", "a", "", "", "w")
    document.apply("set_input", scope=[], node="third", index=4, value="")
    assert inputs(document, "third") == ("b", "a")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"node": "first", "index": 0, "value": "y"}, "would make a cycle"),
        ({"node": "first", "index": 0, "value": "a"}, "would make a cycle"),
        ({"node": "first", "index": 0, "value": "ghost"}, "no value 'ghost'"),
        ({"node": "first", "index": -1, "value": "x"}, "does not take input -1"),
        ({"node": "first", "index": 1, "value": "x"}, "'Relu' does not take input 1"),
        ({"node": "first", "index": 1 << 40, "value": "x"}, "does not take input"),
    ],
)
def test_connections_that_cannot_be_are_refused(
    tmp_path: Path, arguments: dict[str, str | int], reason: str
) -> None:
    with pytest.raises(EditError, match=reason):
        opened(tmp_path, models.CHAIN).apply("set_input", scope=[], **arguments)


def test_a_node_in_a_subgraph_cannot_use_what_its_holder_makes(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    with pytest.raises(EditError, match="would make a cycle"):
        document.apply("set_input", scope=["choose:then_branch"], node="inner", index=0, value="y")


def test_replace_uses_reaches_captured_uses_but_makes_no_cycle(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    with pytest.raises(EditError, match="means another value inside 'else_branch'"):
        document.apply("replace_uses", scope=[], value="a", by="x")
    document.apply("replace_uses", scope=[], value="a", by="choice")
    then, other = document.main.children()
    assert (then.nodes[0].inputs, then.nodes[1].inputs) == (("choice",), ("h", "choice"))
    assert other.nodes[0].inputs == ("choice",)
    chain = opened(tmp_path, models.CHAIN)
    chain.apply("replace_uses", scope=[], value="a", by="c")
    assert inputs(chain, "second") == ("a", "w"), "c is computed from it"


def test_what_was_put_behind_a_weight_goes_without_a_trace(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    before = [(node.name, node.inputs) for node in document.main.nodes]
    document.apply("insert_node", scope=[], value="w", op_type="Identity", name="new")
    document.apply("delete_nodes", scope=[], nodes=["new"], reconnect=True)
    assert [(node.name, node.inputs) for node in document.main.nodes] == before


def test_what_is_put_in_brings_the_operator_set_that_is_asked_for(tmp_path: Path) -> None:
    for opset, imported in ((3, 3), (None, 1)):
        document = opened(tmp_path, models.CHAIN)
        document.apply(
            "insert_node", scope=[], value="b", op_type="Mine", domain="acme", opset=opset
        )
        assert document.opset_imports.get("acme") == imported


def test_users_move_behind_a_value_that_comes_later(tmp_path: Path) -> None:
    text = models.PLAIN_BRANCHES.replace("y = If", "c = If").replace(
        "    >\n", "    >\n    [late] z = Neg(x)\n    [last] y = Add(c, z)\n"
    )
    document = opened(tmp_path, text)
    document.apply("replace_uses", scope=[], value="a", by="z")
    assert document.scope_at(["choose:else_branch"]).nodes[0].inputs == ("z",)
    assert [node.name for node in document.main.nodes] == ["pre", "late", "choose", "last"]
    valid(document)


def test_bypass_keeps_the_node(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("bypass_nodes", scope=[], nodes=["second"])
    assert inputs(document, "third") == ("a", "a")
    assert document.main.find("second") is not None
    document.apply("bypass_nodes", scope=[], nodes=["last"])
    assert node_in(document, "last").outputs == ("y_bypassed",)
    assert node_in(document, "third").outputs == ("y",)
    valid(document)


def test_set_output(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_output", scope=[], node="second", index=0, value="fresh")
    assert document.main.resolve("b") is None
    with pytest.raises(EditError, match="already a value called 'a'"):
        document.apply("set_output", scope=[], node="second", index=0, value="a")


def test_add_node_makes_names_and_comes_after_its_inputs(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply(
        "add_node",
        scope=[],
        op_type="Transpose",
        inputs=["b"],
        attributes={"perm": {"kind": "ints", "value": [1, 0]}},
    )
    added = document.main.nodes[2]
    assert (added.name, added.op_type, added.outputs) == (
        "Transpose", "Transpose", ("Transpose_output",),
    )  # fmt: skip
    assert added.attribute("perm").value == [1, 0]  # type: ignore[union-attr]
    valid(document)
    with pytest.raises(EditError, match="already a value called 'y'"):
        document.apply("add_node", scope=[], op_type="Relu", inputs=["b"], outputs=["y"])
    with pytest.raises(EditError, match="already called 'first'"):
        document.apply("add_node", scope=[], op_type="Relu", inputs=["b"], name="first")


def test_insert_on_a_link_or_on_all(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply(
        "insert_node", scope=[], value="b", op_type="Relu", name="one", users=[["third", 1]]
    )
    assert inputs(document, "third") == ("b", "b_Relu")
    document.apply("insert_node", scope=[], value="b", op_type="Abs", name="all")
    assert inputs(document, "third") == ("b_Abs", "b_Relu")
    assert inputs(document, "one") == ("b_Abs",)
    valid(document)


def test_replace_a_selection_by_one_node(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply(
        "replace_nodes", scope=[], nodes=["third", "second"], op_type="MyPlugin", domain="trt"
    )
    node = document.main.nodes[1]
    assert (node.op_type, node.domain, node.inputs, node.outputs) == (
        "MyPlugin", "trt", ("a", "w"), ("c",),
    )  # fmt: skip
    assert [other.name for other in document.main.nodes] == ["first", "MyPlugin", "last"]
    assert document.opset_imports == {"": 18, "trt": 1}
    with pytest.raises(EditError, match="'MyPlugin' is between the nodes"):
        document.apply("replace_nodes", scope=[], nodes=["first", "last"], op_type="X")
