"""Other versions of the operators: what is converted, kept, refused and told."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.opset import (
    ConversionError,
    OpsetChanges,
    convert_opset,
    known_versions,
)
from dld_tui.core.conversion.result import conversion_notes
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import bodies
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.notes import texts
from tests.support import models
from tests.support.conversions import OLD


def old() -> onnx.ModelProto:
    model = models.parse(OLD)
    for node in model.graph.node:
        node.doc_string = f"about {node.name}"
        node.metadata_props.add(key="kept", value=node.name)
    model.graph.metadata_props.add(key="graph", value="g")
    model.graph.quantization_annotation.add(tensor_name="q")
    return model


def by_name(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def test_what_needs_it_is_converted_and_all_else_is_kept() -> None:
    model, before = old(), old()
    report = convert_opset(model, 18)

    assert model.opset_import[0].version == 18
    assert (report.changed, report.added) == ({"ReduceSum": 3}, {"Constant": 3})
    assert not report.removed
    assert report.unconverted == []
    reduce = by_name(model, "reduce")
    assert [attribute.name for attribute in reduce.attribute] == ["keepdims"]
    assert reduce.doc_string == "about reduce"
    assert reduce.metadata_props[0].value == "reduce"
    for name in ("custom", "add"):
        assert by_name(model, name) == by_name(before, name)
    assert model.doc_string == before.doc_string
    assert model.metadata_props == before.metadata_props
    assert model.graph.metadata_props == before.graph.metadata_props
    assert model.graph.quantization_annotation == before.graph.quantization_annotation
    assert model.graph.input == before.graph.input
    assert model.graph.value_info == before.graph.value_info
    assert model.graph.initializer == before.graph.initializer
    onnx.checker.check_model(model, full_check=True)


def test_subgraphs_and_functions_too() -> None:
    model = old()
    model.graph.node.add(op_type="Identity", input=["x"], output=["opset18_Constant_0"])
    convert_opset(model, 18)

    body = by_name(model, "choose").attribute[0].g
    assert [node.op_type for node in body.node] == ["Constant", "ReduceSum", "Add"]
    assert (body.name, body.node[1].name) == ("yes", "inner")
    (function,) = model.functions
    assert function.opset_import[0].version == 18
    assert [node.op_type for node in function.node] == ["Constant", "ReduceSum", "LeakyRelu"]
    assert function.node[2].attribute[0].ref_attr_name == "factor"
    assert list(function.attribute) == ["factor"]
    nodes = [node for _, body in bodies(model) for node in body.node]
    made = [name for node in nodes for name in node.output]
    assert len(set(made)) == len(made), "what is added has names of its own"
    names = [node.name for node in nodes if node.name]
    assert len(set(names)) == len(names)


def test_a_function_that_nothing_calls_is_left_and_told() -> None:
    model = old()
    dead = model.functions.add()
    dead.CopyFrom(model.functions[0])
    dead.name = "Dead"
    dead.node.add(op_type="Einsum", input=["n"], output=["dead"], name="newer")
    kept = dead.SerializeToString()
    report = convert_opset(model, 11)

    assert model.opset_import[0].version == 11
    assert model.functions[0].opset_import[0].version == 11
    assert model.functions[1].SerializeToString() == kept
    (note,) = report.unconverted
    assert note.startswith("function acme:Dead stays at opset 12: Einsum")
    assert "newer" in note
    assert "  not converted: function acme:Dead" in "\n".join(texts(conversion_notes(report)))


def test_a_function_that_is_called_stands_in_the_way() -> None:
    model = old()
    model.functions[0].node.add(op_type="Einsum", input=["n"], output=["dead"], name="newer")
    before = model.SerializeToString()
    with pytest.raises(ConversionError, match=r"Einsum does not exist in opset 11: node newer"):
        convert_opset(model, 11)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("text", "version", "message"),
    [
        (
            'opset_import: ["" : 18]> g (float[1, 1, 2, 2] x, float[1, 1, 1, 2] i) => (float[k] y) '
            "{ [sample] y = GridSample (x, i) }",
            11,
            "GridSample does not exist in opset 11: node sample",
        ),
        (
            'opset_import: ["" : 12]> g (float[2] x) => (float[2] y) { [odd] y = Reluu (x) }',
            18,
            "Reluu is not an operator of ai.onnx: node odd",
        ),
        (
            'opset_import: ["acme" : 1]> g (float[2] x) => (float[2] y) { y = acme.F (x) }',
            18,
            "imports no ai.onnx operators",
        ),
        ('opset_import: ["" : 12]> g (float[2] x) => (float[2] y) { y = Relu (x) }', 9999,
         "opset 9999 is not known"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_said_in_one_line(
    text: str, version: int, message: str
) -> None:
    model = models.parse(f"<ir_version: 8, {text}")
    before = model.SerializeToString()
    with pytest.raises(ConversionError) as caught:
        convert_opset(model, version)

    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert model.SerializeToString() == before


def test_the_same_version_changes_nothing() -> None:
    model = old()
    assert convert_opset(model, 12) == OpsetChanges(from_=12, to=12)
    assert model == old()


@pytest.mark.parametrize(
    ("ir_version", "version", "change", "expected"),
    [
        (7, 21, "", 10), (11, 17, "", 8), (11, 12, "", 7), (11, 8, "", 3), (11, 8, "weight", 4),
        (11, 12, "metadata", 10), (11, 12, "function", 8),
    ],
)  # fmt: skip
def test_the_ir_version_is_raised_as_needed_and_lowered_as_far_as_the_content_allows(
    ir_version: int, version: int, change: str, expected: int
) -> None:
    before = 12 if version > 20 else 21
    model = models.parse(
        f'<ir_version: {ir_version}, opset_import: ["" : {before}, "l" : 1]>'
        " g (float[2] x) => (float[2] y)"
        f"{' <float[2] w = {1, 2}>' if change == 'weight' else ''} {{ y = Relu(x) }}"
    )
    if change == "metadata":
        model.graph.node[0].metadata_props.add(key="dld.precision", value="fp16")
    if change == "function":
        model.functions.add(domain="l", name="F")
    convert_opset(model, version)
    assert version in known_versions()
    assert model.ir_version == expected
    assert expected >= onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", version]


def test_the_alias_of_the_domain() -> None:
    model = models.parse(OLD)
    model.opset_import[0].domain = "ai.onnx"
    by_name(model, "reduce").domain = "ai.onnx"
    convert_opset(model, 18)

    assert (model.opset_import[0].domain, model.opset_import[0].version) == ("ai.onnx", 18)
    assert by_name(model, "reduce").domain == "ai.onnx"


def test_payloads_that_are_cut_out(tmp_path: Path) -> None:
    model = old()
    values = np.arange(20_000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "big"))
    plain = onnx.helper.make_tensor("floats", onnx.TensorProto.FLOAT, [5000], values[:5000])
    model.graph.initializer.append(plain)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with closing(Document.open(path)) as document:
        skeleton = onnx.ModelProto.FromString(skeleton_bytes(document))
    kept = [tensor.SerializeToString() for tensor in skeleton.graph.initializer]
    convert_opset(skeleton, 18)
    assert [tensor.SerializeToString() for tensor in skeleton.graph.initializer] == kept
