"""Terminals and graph outputs are rearranged, and refused where that would break them."""

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


def inputs(document: Document, ref: str) -> tuple[str, ...]:
    node = node_in(document, ref)
    return node.inputs


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
    assert inputs(document, "join") == ("part", "z")
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
    assert inputs(document, "third") == ("b", "b_input")
    document.apply("set_value_type", scope=[], value="a", dtype="float32", dims=["N", 4])
    document.apply("expose_input", scope=[], node="second", index=0, name="fed")
    known = type_in(document, "fed")
    assert known.text == "float32[N, 4]"


@pytest.mark.broad
def test_a_value_without_a_source_becomes_an_input_under_its_own_name(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("delete_nodes", scope=[], nodes=["first"])
    document.apply("expose_input", scope=[], node="second", index=0, dtype="float32", dims=["N", 4])
    assert document.main.inputs == ("x", "a")
    assert inputs(document, "second") == ("a", "w")
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_an_output_is_replaced_in_its_place(tmp_path: Path) -> None:
    document = opened(tmp_path, JOIN)
    document.apply("replace_output", scope=[], name="y", by="x")
    assert document.main.outputs == ("x", "part")
    known = type_in(document, "x")
    assert known.text == "float32[N, 4]"
    functions = opened(tmp_path, models.FUNCTIONS)
    functions.apply("replace_output", scope=TWICE, name="r", by="v")
    assert functions.functions[0].outputs == ("v",)


@pytest.mark.parametrize(
    ("scope", "name", "by", "reason"),
    [
        ([], "y", "ghost", "no value 'ghost'"),
        ([], "ghost", "a", "no output 'ghost'"),
        ([], "y", "y", "output already"),
        (["choose:then_branch"], "t", "a", "is from outside"),
    ],
)
def test_outputs_that_cannot_be_replaced(
    tmp_path: Path, scope: list[JSON], name: str, by: str, reason: str
) -> None:
    with pytest.raises(EditError, match=reason):
        opened(tmp_path, models.BRANCHES).apply("replace_output", scope=scope, name=name, by=by)


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
