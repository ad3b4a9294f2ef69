"""Raising the IR version beyond 3 leaves weights constants."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import onnx
import pytest

from dld_tui.activities.convert.sanitize import put_back_inputs
from dld_tui.core.conversion.opset import convert_opset
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.opset_imports import least_ir_of
from dld_tui.core.model.document.parts.extraction import extract_nodes
from dld_tui.core.types import JSON
from tests.core.model.rewrite.rewriting import saved
from tests.support.models import parse

OLD = """
<ir_version: 3, opset_import: ["" : 9]>
g (float[1, 1, 3, 3] x, float[1, 1, 1, 1] w, float[1] s) => (float[1, 1, 3, 3] y)
<float[1, 1, 1, 1] w = {2}, float[1] s = {0.5}>
{
    [conv] c = Conv(x, w)
    [bn] y = BatchNormalization(c, s, s, s, s)
}
"""


def by_edit(edit: str, **arguments: JSON) -> Callable[[], onnx.ModelProto]:
    def made() -> onnx.ModelProto:
        document = Document(parse(OLD))
        document.apply(edit, **arguments)
        after = saved(document)
        document.undo()
        assert saved(document) == parse(OLD)
        return after

    return made


def by_opset() -> onnx.ModelProto:
    model = parse(OLD)
    convert_opset(model, 13)
    return model


def by_extraction() -> onnx.ModelProto:
    text = OLD.replace('"" : 9', '"" : 9, "own" : 1').replace("Conv(x, w)", "own.Twice(x)")
    text += '<domain: "own", opset_import: ["" : 9]> Twice (a) => (b) { b = Add(a, a) }'
    document = Document(parse(text))
    return saved(extract_nodes(document, [*document.main.nodes]).document)


@pytest.mark.parametrize(
    "made",
    [
        by_edit("make_function", scope=[], nodes=["bn"], name="Norm"),
        by_edit("set_model_field", field="ir_version", value=8),
        by_opset,
        by_extraction,
    ],
)
def test_weights_are_no_defaults_of_inputs(made: Callable[[], onnx.ModelProto]) -> None:
    model = made()
    assert model.ir_version > 3
    assert [info.name for info in model.graph.input] == ["x"]


def test_a_simplified_model_has_a_format_that_allows_its_weights() -> None:
    text = OLD.replace(", float[1, 1, 1, 1] w, float[1] s)", ")")
    with closing(Document(parse(OLD))) as before, closing(Document(parse(text))) as after:
        put_back_inputs(before, after)
        assert (after.model.ir_version, list(after.main.inputs)) == (4, ["x"])


def with_type(place: str, dtype: int) -> Callable[[onnx.ModelProto], object]:
    """Return what gives a new tensor of a body, or a declared value, a type."""

    def change(model: onnx.ModelProto) -> None:
        info = onnx.helper.make_tensor_value_info("v", dtype, [1])
        body = onnx.helper.make_graph([], "b", [], [], value_info=[info])
        if place == "tensor":
            model.graph.node[0].attribute.add().t.data_type = dtype
        elif place == "body":
            model.graph.node[0].attribute.add().g.CopyFrom(body)
        else:
            getattr(model.graph, place).append(info)

    return change


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda model: None, 4),
        (lambda model: model.graph.ClearField("initializer"), 3),
        (lambda model: model.graph.sparse_initializer.add(), 6),
        (lambda model: model.training_info.add(), 7),
        (lambda model: model.functions.add(), 8),
        (lambda model: model.functions.add().attribute_proto.add(), 9),
        (lambda model: model.functions.add(overload="o"), 10),
        (lambda model: model.functions.add().value_info.add(), 10),
        (lambda model: model.functions.add().metadata_props.add(), 10),
        (lambda model: model.functions.add().node.add().metadata_props.add(), 10),
        (lambda model: model.graph.metadata_props.add(), 10),
        (lambda model: model.graph.node[0].metadata_props.add(), 10),
        (lambda model: model.graph.input[0].metadata_props.add(), 10),
        (lambda model: model.graph.initializer[0].metadata_props.add(), 10),
        *((with_type(place, 17), 9) for place in ("input", "value_info", "output", "body")),
        *((with_type("tensor", dtype), least) for dtype, least in ((20, 9), (22, 10), (23, 11))),
    ],
)
def test_the_ir_version_that_the_content_of_a_model_needs(
    change: Callable[[onnx.ModelProto], object], least: int
) -> None:
    model = parse(OLD)
    change(model)
    assert least_ir_of(model) == least
