"""Connecting, replacing and bypassing keep the graph runnable, or say why they do not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of, node_in, opened, type_in


def valid(document: Document) -> onnx.ModelProto:
    data = bytes_of(document)
    model = onnx.ModelProto.FromString(data)
    onnx.checker.check_model(model, full_check=True)
    return model


def inputs(document: Document, ref: str) -> tuple[str, ...]:
    return node_in(document, ref).inputs


def test_connect_and_disconnect(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace("Mul(", "Sum("))  # takes any number
    document.apply("set_input", scope=[], node="third", index=1, value="a")
    assert inputs(document, "third") == ("b", "a")
    valid(document)
    document.apply("set_input", scope=[], node="third", index=4, value="w")
    assert inputs(document, "third") == ("b", "a", "", "", "w")
    document.apply("set_input", scope=[], node="third", index=4, value="")
    assert inputs(document, "third") == ("b", "a")


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
    for name in ("a", "b", "c"):
        document.apply("set_value_type", scope=[], value=name, dtype="float32", dims=["N", 4])
    document.apply(
        "replace_nodes", scope=[], nodes=["third", "second"], op_type="MyPlugin", domain="trt"
    )
    node = document.main.nodes[1]
    assert (node.op_type, node.domain, node.inputs, node.outputs) == (
        "MyPlugin", "trt", ("a", "w"), ("c",),
    )  # fmt: skip
    assert [other.name for other in document.main.nodes] == ["first", "MyPlugin", "last"]
    assert document.opset_imports == {"": 18, "trt": 1}
    assert list(document.main.named("value_info")) == ["a", "c"]
    with pytest.raises(EditError, match="'MyPlugin' is between the nodes"):
        document.apply("replace_nodes", scope=[], nodes=["first", "last"], op_type="X")


JOIN = """
<ir_version: 10, opset_import: ["" : 18]>
join (float[N, 4] x, float[N, 4] z) => (float[N, 12] y, float[N, 4] part)
{
    [left] part = Relu(x)
    [cut] first, second = Split<axis = 1, num_outputs = 2>(z)
    [join] y = Concat<axis = 1>(part, x, z)
}
"""
TWICE: list[JSON] = ["function local:twice"]


def inputs_of(document: Document, ref: str) -> tuple[str, ...]:
    return node_in(document, ref).inputs


LATE = """
<ir_version: 10, opset_import: ["" : 18]>
late (float[4] x) => (float[4] y, float[4] z)
{
    [one] a = Relu(x)
    [two] b = Neg(a)
    [alone] c = Abs(x)
    [three] y = Sqrt(b)
    [maker] d = Exp(c)
    [last] z = Sin(d)
}
"""


def test_nodes_that_depend_on_a_later_value_now_are_moved_behind_it(tmp_path: Path) -> None:
    document = opened(tmp_path, LATE)
    document.apply("set_input", scope=[], node="two", index=0, value="d", sort=True)
    names = [node.name for node in document.main.nodes]
    assert names == ["one", "alone", "maker", "two", "three", "last"]
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_a_terminal_is_taken_out_and_those_after_it_move_up(tmp_path: Path) -> None:
    document = opened(tmp_path, JOIN)
    document.apply("remove_terminal", scope=[], node="join", side="input", index=1)
    assert inputs_of(document, "join") == ("part", "z")
    document.apply("remove_terminal", scope=[], node="cut", side="output", index=0)
    cut = node_in(document, "cut")
    assert cut.outputs == ("second",)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"node": "left", "side": "output", "index": 0}, "'part' is used"),
        ({"node": "join", "side": "input", "index": 3}, "has no input 3"),
        ({"node": "join", "side": "input", "index": True}, "whole number"),
        ({"node": "join", "side": "middle", "index": 0}, "side must be"),
    ],
)
def test_terminals_that_are_used_or_not_there_stay(
    tmp_path: Path, arguments: dict[str, JSON], reason: str
) -> None:
    with pytest.raises(EditError, match=reason):
        opened(tmp_path, JOIN).apply("remove_terminal", scope=[], **arguments)


def test_a_value_is_cut_off_from_every_user_in_subgraphs_too(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    document.apply("disconnect_value", scope=[], value="a")
    then, other = document.main.children()
    assert (then.nodes[0].inputs, then.nodes[1].inputs) == ((), ("h",))
    assert other.nodes[0].inputs == ()
    document.undo()
    assert then.nodes[1].inputs == ("h", "a")


def test_a_graph_input_is_made_for_a_terminal(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    with pytest.raises(EditError, match="type of the input 'b_input' is unknown"):
        document.apply("expose_input", scope=[], node="third", index=1)
    with pytest.raises(EditError, match="number of dimensions of the input 'b_input' is unknown"):
        document.apply("expose_input", scope=[], node="third", index=1, dtype="float32")
    asked: list[None] = []
    document.ask_types = lambda: asked.append(
        document.main.inferred.update({"b": ValueType("float32", (1, 4))})
    )
    document.apply("expose_input", scope=[], node="third", index=1)
    assert len(asked) == 1
    assert document.main.value_type("b_input") == ValueType("float32", (1, 4))
    assert document.main.inputs == ("x", "b_input")
    assert inputs_of(document, "third") == ("b", "b_input")
    document.apply("set_value_type", scope=[], value="a", dtype="float32", dims=["N", 4])
    document.apply("expose_input", scope=[], node="second", index=0, name="fed")
    assert type_in(document, "fed").text == "float32[N, 4]"


@pytest.mark.broad
def test_a_value_without_a_source_becomes_an_input_under_its_own_name(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("delete_nodes", scope=[], nodes=["first"])
    document.apply("expose_input", scope=[], node="second", index=0, dtype="float32", dims=["N", 4])
    assert document.main.inputs == ("x", "a")
    assert inputs_of(document, "second") == ("a", "w")
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_an_output_is_replaced_in_its_place(tmp_path: Path) -> None:
    document = opened(tmp_path, JOIN)
    document.apply("replace_output", scope=[], name="y", by="x")
    assert document.main.outputs == ("x", "part")
    assert type_in(document, "x").text == "float32[N, 4]"
    functions = opened(tmp_path, models.FUNCTIONS)
    functions.apply("replace_output", scope=TWICE, name="r", by="v")
    assert functions.functions[0].outputs == ("v",)


def test_inputs_and_outputs_change_places(tmp_path: Path) -> None:
    document = opened(tmp_path, JOIN)
    document.apply("move_terminal", scope=[], side="input", name="x", to=1)
    document.apply("move_terminal", scope=[], side="output", name="part", to=0)
    assert (document.main.inputs, document.main.outputs) == (("z", "x"), ("part", "y"))
    with pytest.raises(EditError, match="no place 2 among 2"):
        document.apply("move_terminal", scope=[], side="input", name="x", to=2)
    with pytest.raises(EditError, match="no input 'y'"):
        document.apply("move_terminal", scope=[], side="input", name="y", to=0)
    functions = opened(tmp_path, models.FUNCTIONS)
    functions.apply("add_input", scope=TWICE, name="extra")
    functions.apply("move_terminal", scope=TWICE, side="input", name="extra", to=0)
    assert functions.functions[0].inputs == ("extra", "v")


def test_in_a_body_the_main_graph_gets_the_input(tmp_path: Path) -> None:
    document = opened(tmp_path, models.PLAIN_BRANCHES)
    document.apply("expose_input", scope=["choose:then_branch"], node="inner", index=0,
                   dtype="float32", dims=["N", 4])  # fmt: skip
    body = document.scope_at(["choose:then_branch"])
    assert document.main.inputs == ("choice", "x", "a_input")
    assert (body.inputs, body.nodes[0].inputs) == ((), ("a_input",))
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)
