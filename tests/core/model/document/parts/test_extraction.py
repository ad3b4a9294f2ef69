"""Extracted models are valid, and compute what the whole model computes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.checks import check
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.parts.extraction import (
    Extraction,
    body_at,
    declare_inferred,
    extract_between,
    extract_body,
    extract_nodes,
    nodes_at,
)
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models

NETWORK = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1, "unused" : 3]>
network (float[2, 4] x, bool choice) => (float[2, 4] y)
<float[4] w = {1, 2, 3, 4}, float[4] idle = {5, 6, 7, 8}, float[4, 4] big = {0, 1, 2, 3, 4, 5, 6, 7,
 8, 9, 10, 11, 12, 13, 14, 15}, float[2, 4] p, float[2, 4] q, float[2, 4] r>
{
    [first] p = Add(x, w)
    [shape] s = Constant <value: tensor = int64[2] {2, 4}> ()
    [second] q = local.scaled <factor = 3.0> (p)
    [third] r = Reshape(q, s)
    [split] left, right = Split <axis = 1, num_outputs = 2> (r)
    [join] j = Concat <axis = 1> (right, left)
    [choose] y = If (choice) <
        then_branch = yes () => (float[2, 4] t) { [inner] m = MatMul(j, big)
            [sum] t = Add(m, w) },
        else_branch = no () => (float[2, 4] e) { [pass] e = Identity(j) }
    >
}
<domain: "local", opset_import: ["" : 18]>
scaled <factor: float = 2.0> (v) => (r)
{
    [make] f = Constant <value_float: float = @factor> ()
    [times] r = Mul(v, f)
}
<domain: "local", opset_import: ["" : 18]>
never (v) => (r) { r = Neg(v) }
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, NETWORK))


def saved(found: Extraction, folder: Path) -> onnx.ModelProto:
    save(found.document, folder / "part.onnx", overwrite=True)
    model = onnx.load(folder / "part.onnx")
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model: onnx.ModelProto, feeds: dict[str, Any], outputs: list[str]) -> list[Any]:
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = {item.name: feeds[item.name] for item in session.get_inputs()}
    found: list[Any] = session.run(outputs, wanted)
    return found


def values_of_the_whole(names: list[str], choice: bool = True) -> dict[str, Any]:
    model = models.parse(NETWORK)
    have = {info.name for info in model.graph.output}
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in names
        if name not in have
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    feeds = {"x": x, "choice": np.array(choice)}
    return feeds | dict(zip(names, run(model, feeds, names), strict=True))


def same_as_the_whole(model: onnx.ModelProto, choice: bool = True) -> None:
    names = [info.name for info in (*model.graph.input, *model.graph.output)]
    known = values_of_the_whole([name for name in names if name not in ("x", "choice")], choice)
    outputs = [info.name for info in model.graph.output]
    for name, value in zip(outputs, run(model, known, outputs), strict=True):
        np.testing.assert_array_equal(value, known[name])


def test_types_that_are_inferred_later_are_declared(document: Document) -> None:
    found = extract_between(document, document.main, ["left", "right", "q"], ["j", "r"])
    assert found.untyped == ["left", "right", "j"]
    main = found.document.main
    main.inferred["j"] = main.inferred["r"] = ValueType("float32", (2, 5))
    declare_inferred(found)
    assert found.untyped == ["left", "right"]
    types = {name: main.value_type(name) for name in ("left", "j", "r")}
    assert types["left"] is None
    main.inferred.clear()
    assert [known.text for known in map(main.value_type, ("j", "r")) if known is not None] == [
        "float32[2, 5]",
        "float32[2, 4]",  # as it was declared
    ]


def test_value_of_a_node_that_is_needed_for_its_other_output(
    document: Document, tmp_path: Path
) -> None:
    half = ValueType("float32", (2, 2))
    document.main.inferred |= {"left": half, "right": half, "j": ValueType("float32", (2, 4))}
    found = extract_between(document, document.main, ["left"], ["j"])
    model = saved(found, tmp_path)
    assert [info.name for info in model.graph.input] == ["left", "x"]
    assert found.remarks == ["1 further input needed: 'x'"]
    same_as_the_whole(model)


def test_initializer_that_is_cut_becomes_an_input(document: Document, tmp_path: Path) -> None:
    model = saved(extract_between(document, document.main, ["w"], ["p"]), tmp_path)
    assert [info.name for info in model.graph.input] == ["w", "x"]
    assert not model.graph.initializer
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [4]


def test_function_with_its_default_and_with_what_a_call_gives(
    document: Document, tmp_path: Path
) -> None:
    body = body_at(document, ["function local:scaled"])
    v = np.ones((2, 4), np.float32)
    model = saved(extract_body(document, body), tmp_path)
    assert run(model, {"v": v}, ["r"])[0].max() == 2
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [2, 4]
    call = document.main.find("second")
    model = saved(extract_body(document, body, call), tmp_path)
    assert run(model, {"v": v}, ["r"])[0].max() == 3


def test_a_body_keeps_its_inputs_in_their_order_used_or_not(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[2] a, float[2] idle, float[2] b) => (float[2] y)
    { y = Sub(b, a) }"""
    document = Document.open(models.write(tmp_path, text))
    assert extract_body(document, document.main).document.main.inputs == ("a", "idle", "b")


def test_old_model_lists_its_initializers_as_inputs() -> None:
    text = models.CHAIN.replace("ir_version: 10", "ir_version: 3").replace('"" : 18', '"" : 8')
    model = models.parse(text)
    for tensor in model.graph.initializer:
        model.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    document = Document(model)
    found = extract_nodes(document, nodes_at(document.main, ["second"]))
    assert found.document.main.inputs == ("a", "w")
    document.apply("set_input", scope=[], node="third", index=1, value="unused")
    cut = extract_between(document, document.main, ["a", "w"], ["c"]).document.main
    assert (cut.inputs, [*cut.named("initializer")]) == (("a", "w", "unused"), ["unused"])


def test_what_a_model_uses_without_importing_is_imported() -> None:
    text = """<ir_version: 3, opset_import: ["" : 7]> g (float[1, 3] x) => (float[1, 3] y)
        { a = Relu(x) [scale] y = ai.onnx.ml.Scaler<offset=[1.0], scale=[2.0]>(a) }"""
    document = Document(models.parse(text))
    found = extract_nodes(document, nodes_at(document.main, ["scale"]))
    assert found.document.opset_imports == {"ai.onnx.ml": 1}  # the newest one for that format


def test_a_model_from_before_imports_uses_the_first_operators() -> None:
    model = models.parse("<ir_version: 1> g (float[2] x) => (float[2] y) { y = Relu(x) }")
    document = Document(model)
    assert document.opset_imports == {"": 1}
    assert not [finding for finding in check(document) if finding.level == "error"]
    found = extract_nodes(document, list(document.main.nodes))
    assert found.document.opset_imports == {"": 1}
