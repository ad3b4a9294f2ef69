"""Copied nodes, pasted in the same graph, in subgraphs and functions, and in other models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.document.parts.fragment import Fragment, fragment_of
from dld_tui.core.model.document.serialise import save
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of, node_in, tensor_in

INNER = """
<ir_version: 10, opset_import: ["" : 18]>
inner (bool choice, float[N, 4] x, float[N, 4] t) => (float[N, 4] y)
{
    [pre] a = Relu(x)
    [choose] z = If (choice) <
        then_branch = yes () => (float[N, 4] u) { [neg] h = Neg(a)
            u = Add(h, t) },
        else_branch = no () => (float[N, 4] v) { v = Abs(a) }
    >
    [last] y = Add(z, a)
}
"""
OPTIONAL = """
<ir_version: 10, opset_import: ["" : 18]>
optional (float[N, 4] x, float lo, float hi) => (float[N, 4] y)
{
    [limit] low = Identity(lo)
    [clip] c = Clip(x, low)
    [sum] y = Add(c, x)
}
"""


def opened(folder: Path, text: str, name: str = "model.onnx") -> Document:
    return Document.open(models.write(folder, text, name))


def copied(scope: Scope, *names: str) -> Fragment:
    found = [node for node in scope.nodes if node.name in names]
    assert len(found) == len(names)
    return fragment_of(found)


def paste(document: Document, fragment: Fragment, *path: str, **more: JSON) -> str:
    scope = document.scope_at(path)
    before = bytes_of(document)
    data: JSON = json.loads(json.dumps(fragment.to_json(document, scope)))
    made = document.apply("paste_nodes", scope=list(path), fragment=data, **more)
    after = bytes_of(document)
    document.undo()
    assert bytes_of(document) == before
    document.redo()
    assert bytes_of(document) == after
    return made.title


def checked(document: Document) -> onnx.ModelProto:
    model = onnx.ModelProto.FromString(bytes_of(document))
    onnx.checker.check_model(model, full_check=True)
    return model


def test_same_graph(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_value_type", scope=[], value="b", dtype="float32", dims=["N", 4])
    title = paste(document, copied(document.main, "second", "third"))
    assert title == "paste 2 nodes"
    second, third = document.main.nodes[-2:]
    assert (second.name, second.inputs, second.outputs) == ("second_1", ("a", "w"), ("b_1",))
    assert (third.name, third.inputs, third.outputs) == ("third_1", ("b_1", "b_1"), ("c_1",))
    assert len(document.main.initializers) == 2, "the same initializer is shared"
    assert document.main.value_type("b_1") == document.main.value_type("b")
    checked(document)


def test_cut_and_pasted_nodes_are_linked_again_and_in_order(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    before = document.main.nodes[1].inputs
    fragment = copied(document.main, "second", "third")
    document.apply("delete_nodes", scope=[], nodes=["second", "third"])
    paste(document, fragment)
    assert [node.name for node in document.main.nodes] == ["first", "second", "third", "last"]
    assert document.main.nodes[1].inputs == before
    checked(document)


def test_pasting_does_not_close_a_cycle(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    fragment = copied(document.main, "second")
    document.apply("delete_nodes", scope=[], nodes=["second"])
    paste(document, fragment, connect={"a": "c"})
    pasted = node_in(document, "second")
    assert pasted.outputs == ("b_1",), "c is computed from b: it must not become b's source"


def test_captures_follow_and_inner_names_stay_apart(tmp_path: Path) -> None:
    document = opened(tmp_path, INNER)
    paste(document, copied(document.main, "pre", "choose"))
    then = node_in(document, "choose_1").subgraphs()[0]
    assert set(then.captured()) == {"a_1", "t"}
    checked(document)


def test_name_inside_that_means_something_in_the_target_is_renamed(tmp_path: Path) -> None:
    source = opened(tmp_path, INNER, "source.onnx")
    target = opened(tmp_path, models.CHAIN.replace("a =", "h =").replace("(a,", "(h,"))
    paste(target, copied(source.main, "choose"), connect={"choice": "x", "a": "x", "t": "x"})
    then = target.main.nodes[-1].subgraphs()[0]
    assert then.nodes[0].outputs == ("h_1",)
    assert then.nodes[1].inputs == ("h_1", "x")


def test_into_a_subgraph(tmp_path: Path) -> None:
    document = opened(tmp_path, INNER)
    paste(document, copied(document.main, "pre"), "choose:then_branch")
    then = document.scope_at(["choose:then_branch"])
    assert (then.nodes[-1].name, then.nodes[-1].outputs) == ("pre", ("a_1",))
    checked(document)


def test_other_model_gets_initializers_and_says_what_has_no_source(tmp_path: Path) -> None:
    source = opened(tmp_path, models.CHAIN, "source.onnx")
    target = opened(tmp_path, models.BRANCHES)
    fragment = copied(source.main, "second", "third")
    source.close()
    assert paste(target, fragment, "choose:then_branch") == "paste 2 nodes"
    bare = opened(tmp_path, models.FUNCTIONS, "bare.onnx")
    assert paste(bare, fragment) == "paste 2 nodes, 1 input without a source"
    assert bare.main.nodes[-2].inputs == ("a", "w")
    assert list(tensor_in(bare, "w").read()) == [1, 2, 3, 4]


def test_same_name_with_other_values_is_another_initializer(tmp_path: Path) -> None:
    source = opened(tmp_path, models.CHAIN.replace("{1, 2, 3, 4}", "{9, 2, 3, 4}"), "s.onnx")
    target = opened(tmp_path, models.CHAIN)
    paste(target, copied(source.main, "second"))
    assert target.main.nodes[-1].inputs == ("a", "w_1")
    assert tensor_in(target, "w_1").read()[0] == 9


def test_optional_input_without_a_source_is_left_out(tmp_path: Path) -> None:
    source = opened(tmp_path, OPTIONAL, "source.onnx")
    target = opened(tmp_path, models.CHAIN)
    assert paste(target, copied(source.main, "clip")) == "paste 1 node"
    assert target.main.nodes[-1].inputs == ("x",)


def test_functions_and_operator_sets_come_along_once(tmp_path: Path) -> None:
    source = opened(tmp_path, models.FUNCTIONS, "source.onnx")
    target = opened(tmp_path, models.CHAIN)
    fragment = copied(source.main, "call")
    paste(target, fragment)
    paste(target, fragment)
    assert [scope.title for scope in target.functions] == ["twice"]
    assert target.opset_imports == {"": 18, "local": 1}
    checked(target)


def test_function_has_no_initializers_so_constants_are_made(tmp_path: Path) -> None:
    source = opened(tmp_path, models.CHAIN, "source.onnx")
    target = opened(tmp_path, models.FUNCTIONS)
    paste(target, copied(source.main, "second"), "function local:twice", connect={"a": "v"})
    body = target.functions[0]
    assert [node.op_type for node in body.nodes] == ["Add", "Constant", "Add"]
    assert body.nodes[2].inputs == ("v", body.nodes[1].outputs[0])
    checked(target)


def test_constants_are_shared_or_copied(tmp_path: Path) -> None:
    text = OPTIONAL.replace("Identity(lo)", "Constant <value_float: float = -1.0> ()")
    source = opened(tmp_path, text, "source.onnx")
    fragment = copied(source.main, "clip")
    paste(source, fragment)
    assert source.main.nodes[-1].inputs == ("x", "low")
    target = opened(tmp_path, models.CHAIN)
    assert paste(target, fragment) == "paste 1 node"
    assert [node.op_type for node in target.main.nodes[-2:]] == ["Constant", "Clip"]


def test_conflicts_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    functions = opened(tmp_path, models.FUNCTIONS, "functions.onnx")
    call = copied(functions.main, "call")
    other = opened(tmp_path, models.FUNCTIONS.replace("Add(v, v)", "Mul(v, v)"))
    before = bytes_of(other)
    with pytest.raises(EditError, match="another function called 'local:twice'"):
        paste(other, call)
    with pytest.raises(EditError, match="would call itself"):
        paste(functions, call, "function local:twice")
    old = opened(tmp_path, OPTIONAL.replace('"" : 18', '"" : 9'), "old.onnx")
    with pytest.raises(EditError, match=r"'Clip' is not the same in 'ai\.onnx' 9"):
        paste(functions, copied(old.main, "clip"))
    with pytest.raises(EditError, match="there is no value 'nope' here"):
        paste(functions, call, connect={"x": "nope"})
    with pytest.raises(EditError, match="take no value 'nope'"):
        paste(functions, call, connect={"nope": "x"})
    with pytest.raises(EditError, match="no place 99"):
        paste(functions, call, index=99)
    assert bytes_of(other) == before


def test_shared_initializer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    source = opened(tmp_path, models.CHAIN, "source.onnx")
    data = copied(source.main, "second").to_json(source, source.main)
    target = opened(tmp_path, models.FUNCTIONS)
    with pytest.raises(EditError, match="initializer 'w', which is not here"):
        target.apply("paste_nodes", scope=[], fragment=data)


def test_large_payloads_go_by_file_and_survive_the_source(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal(40_000).astype(np.float32)
    model = models.parse(models.CHAIN)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "large.onnx")
    source = Document.open(tmp_path / "large.onnx")
    fragment = copied(source.main, "second")
    source.close()
    target = opened(tmp_path, models.FUNCTIONS)
    assert len(json.dumps(fragment.to_json(target, target.main))) < 5_000
    paste(target, fragment)
    save(target, tmp_path / "out.onnx")
    saved = onnx.load(tmp_path / "out.onnx")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(saved.graph.initializer[0]), weights)


@pytest.mark.broad
def test_external_data_is_taken_in(tmp_path: Path) -> None:
    weights = np.arange(4096, dtype=np.float32)
    model = models.parse(models.CHAIN)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, location="e.data")
    source = Document.open(tmp_path / "e.onnx")
    target = opened(tmp_path, models.FUNCTIONS)
    paste(target, copied(source.main, "second"))
    tensor = tensor_in(target, "w")
    assert not tensor.is_external
    np.testing.assert_array_equal(tensor.read(), weights)


def test_nodes_of_two_graphs_are_no_fragment(tmp_path: Path) -> None:
    document = opened(tmp_path, INNER)
    inner = document.scope_at(["choose:then_branch"])
    with pytest.raises(UsageError, match="several graphs"):
        fragment_of([document.main.nodes[0], inner.nodes[0]])
    with pytest.raises(UsageError, match="no nodes"):
        fragment_of([])
