"""Sizes that are followed through what makes a value: as shape inference of onnx tells them."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.rewrite.expression import UNKNOWN
from dld_tui.core.model.rewrite.views import ValueView, folded
from tests.support.models import parse

HEAD = '<ir_version: 10, opset_import: ["" : 18]>\ng (float[2, 3, 8] x, float[N, 3, 8] d) => (y) '
CASES = {
    "split of an open batch": "<int64[4] s = {0, 0, -1, 4}> { y = Reshape(d, s) }",
    "cut": "<int64[2] b = {1, -6}, int64[2] e = {9223372036854775807, 7}, int64[2] a = {1, -1},"
    " int64[2] t = {1, 2}> { y = Slice(x, b, e, a, t) }",
    "product": "{ t = Transpose <perm = [0, 2, 1]> (x) y = MatMul(x, t) }",
    "heads that are repeated": "<int64[4] s = {0, 0, -1, 4}, int64[1] two = {2}, int64[5] e ="
    " {1, 1, 3, 1, 1}, int64[4] j = {0, 6, -1, 4}> { r = Reshape(x, s)"
    " h = Transpose <perm = [0, 2, 1, 3]> (r) u = Unsqueeze(h, two) w = Expand(u, e)"
    " y = Reshape(w, j) }",
}


@pytest.mark.parametrize("name", CASES)
def test_sizes_are_those_of_shape_inference(name: str) -> None:
    model = parse(HEAD + CASES[name])
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    (output,) = inferred.graph.output
    told = output.type.tensor_type.shape.dim
    wanted = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in told]
    scope = Document(parse(HEAD + CASES[name])).main
    del scope.records["output"][:]
    assert ValueView(scope, "y").dims == wanted


@pytest.mark.parametrize("size", ["-1", "-7"])
def test_a_negative_size_is_not_known(size: str) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]>\ng (float[N, 3] x) => (float[K] y) '
    model = parse(text + "{ s = Shape(x) y = ConstantOfShape(s) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = int(size)
    scope = Document(model).main
    assert ValueView(scope, "x").dims == [UNKNOWN, 3]
    assert ValueView(scope, "s").field("sizes") == ["x[0]", 3]
    assert ValueView(scope, "s").field("folded") is UNKNOWN


def test_a_slice_of_all_keeps_an_open_size() -> None:
    text = HEAD + "<int64[1] b = {0}, int64[1] e = {9223372036854775807}> { y = Slice(d, b, e) }"
    assert ValueView(Document(parse(text)).main, "y").dims == ["N", 3, 8]


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (64, 65), (4096, 1), (4097, 1)])
@pytest.mark.parametrize("typed", [False, True])
def test_constants_of_4096_elements_at_most_are_worked_out(
    rows: int, columns: int, typed: bool
) -> None:
    text = HEAD + f"<float[{rows}, 1] a, float[{columns}] b> {{ y = Add(a, b) }}"
    model = parse(text)
    for name, shape in (("a", (rows, 1)), ("b", (columns,))):
        values = np.ones(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    if not typed:
        del model.graph.input[:]
    found = folded(Document(model).main, "y")
    assert (found is UNKNOWN) == (rows * columns > 4096)


FOLLOWED = (
    "Cast", "Concat", "Expand", "Gather", "Identity", "MatMul", "Reshape", "Shape", "Slice",
    "Split", "Squeeze", "Tile", "Unsqueeze", "Where",
)  # fmt: skip


@pytest.mark.parametrize("operator", FOLLOWED)
def test_calls_with_the_wrong_inputs_tell_nothing_and_break_nothing(operator: str) -> None:
    given = ("x", "", "f", "e", "i")
    weights = [
        onnx.numpy_helper.from_array(np.array([np.nan, np.inf], np.float32), "f"),
        onnx.numpy_helper.from_array(np.array([], np.int64), "e"),
        onnx.numpy_helper.from_array(np.array([0, -1], np.int64), "i"),
    ]
    nodes = [
        onnx.helper.make_node(operator, [*inputs, *more], [f"{number}_{len(more)}"])
        for number, inputs in enumerate(itertools.product(given, repeat=2))
        for more in ((), ("i", "i"))
    ]
    nodes += [onnx.helper.make_node(operator, ["x"] * count, [f"a{count}"]) for count in range(3)]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [2])
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [], weights))
    scope = Document(model).main
    for node in scope.nodes:
        for field in ("shape", "sizes", "split", "joined", "repeated"):
            ValueView(scope, node.outputs[0]).field(field)
