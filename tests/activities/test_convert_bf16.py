"""A model in bfloat16: what becomes of its weights and borders, and whether its values are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from google.protobuf.message import Message
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.support import models
from tests.support.conversions import LAYERS, convert, with_matrix
from tests.support.runtime import session_of

FLOAT16, BFLOAT16 = onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16


def converted(path: Path, **settings: Any) -> tuple[dict[str, Any], onnx.ModelProto]:
    """Convert; return the result, and the model, which onnx's checker takes."""
    out = path.with_name("bf16.onnx")
    out.unlink(missing_ok=True)
    result = convert("bf16", path, out, **settings)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    return result, model


def test_weights_round_to_nearest_and_borders_follow_unless_they_are_kept(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    result, model = converted(path)
    before = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    (weight,) = model.graph.initializer
    assert weight.data_type == BFLOAT16
    stored = numpy_helper.to_array(weight).astype(np.float32)
    assert (stored == before.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
    borders = (*model.graph.input, *model.graph.output)
    assert {info.type.tensor_type.elem_type for info in borders} == {BFLOAT16}
    assert result["values"]["is_good"]
    assert (result["to"], result["nodes"], result["casts"]) == ("bfloat16", 2, 0)
    _, model = converted(path, keep_io_types=True)
    assert [node.op_type for node in model.graph.node] == ["Cast", "MatMul", "Relu", "Cast"]


@pytest.mark.parametrize(
    "nodes",
    [
        "c = ConstantOfShape<value = float[1] {1.5}>(s) y = Mul(x, c)",  # bfloat16 from opset 20 on
        "a = com.microsoft.FastGelu(x) y = com.microsoft.FastGelu(a)",
        """n = Constant<value_int = 2>() t = Constant<value_int = 1>() c = Cast<to = 9>(t)
        e = SequenceEmpty() q = Loop(n, c, e) <body = b (int64 i, bool d, seq(float[3]) v)
            => (bool f, seq(float[3]) w) { f = Identity(d) w = SequenceInsert(v, x) }>
        k = Constant<value_int = 0>() p = SequenceAt(q, k) y = Exp(p)""",
    ],
)
def test_the_result_is_valid_and_compared(tmp_path: Path, nodes: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    g (float[3] x) => (float[3] y) {{ s = Shape(x) {nodes} }}"""
    assert converted(models.write(tmp_path, text))[0]["values"]["is_good"]


def test_what_is_defined_by_operators_without_bfloat16_stays_float32(tmp_path: Path) -> None:
    for opset, reasons in (
        (13, {"Clip: the Where in its definition does not take bfloat16": 1}), (16, {})
    ):  # fmt: skip
        text = f"""<ir_version: 10, opset_import: ["" : {opset}]> g (float[3] x) => (float[3] y)
        <float low = {{0}}, float high = {{6}}>
        {{ a = Neg(x) b = Clip(a, low, high) y = Add(b, b) }}"""
        result, model = converted(models.write(tmp_path, text), keep_io_types=True)
        assert result["kept"] == reasons
        # ONNX Runtime has no kernels, but replaces operators by their definitions first.
        with pytest.raises(Exception, match="Could not find an implementation"):
            session_of(model)


def test_nothing_is_converted_where_no_cast_makes_the_type(tmp_path: Path) -> None:
    text = """<ir_version: 5, opset_import: ["" : 10, "com.microsoft" : 1]>
    g (float[3] x) => (float[3] y) { y = com.microsoft.FastGelu(x) }"""
    result, _ = converted(models.write(tmp_path, text))
    assert result["nodes"] == 0
    assert result["kept"] == {"FastGelu: Cast does not take bfloat16 in this opset": 1}


BRANCHES = """<ir_version: 10, opset_import: ["" : 19]>
g (float[4] x, bool c) => (float[4] y)
<float[4] big = {100.0, 100.0, 100.0, 100.0}, float[4] small = {0.001, 0.001, 0.001, 0.001}> {
    a = Mul (x, big)
    b = Mul (a, big)
    z = If (c) <then_branch = t () => (float[4] z1) { z1 = Mul (b, big) },
                else_branch = e () => (float[4] z2) { z2 = Identity (b) }>
    w = Mul (z, small)
    y = Mul (w, small)
}"""
LOOP = """<ir_version: 10, opset_import: ["" : 19]>
g (float[4] x) => (float[4] y, float[3, 4] rows)
<int64 trips = {3}, bool go = {1}, float small = {0.000001}> {
    hundred = Constant <value = float {100.0}> ()
    state, all = Loop (trips, go, x) <body = b (int64 i, bool on, float[4] s)
        => (bool still, float[4] next, float[4] row) {
        still = Identity (on)
        next = Mul (s, hundred)
        row = Cast <to = 1> (next)
    }>
    y = Mul (state, small)
    rows = Mul (all, small)
}"""


def halve(message: Message) -> None:
    """Give a model float16 wherever it has float32."""
    if isinstance(message, onnx.TensorProto):
        if message.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(message).astype(np.float16)
            message.CopyFrom(numpy_helper.from_array(values, message.name))
        return
    if isinstance(message, onnx.TypeProto.Tensor):
        message.elem_type = FLOAT16 if message.elem_type == 1 else message.elem_type
    if isinstance(message, onnx.AttributeProto) and message.name == "to":
        message.i = FLOAT16
    for _, value in message.ListFields():
        single = isinstance(value, (Message, int, float, str, bytes))
        for part in [value] if single else value:
            if isinstance(part, Message):
                halve(part)


@pytest.mark.parametrize("text", [BRANCHES, LOOP], ids=["branches", "loop"])
def test_a_float16_model_passes_what_overflowed_through_every_edge(
    tmp_path: Path, text: str
) -> None:
    path, wide, half = tmp_path / "half.onnx", models.parse(text), models.parse(text)
    halve(half)
    onnx.save(half, path)
    result, made = converted(path)
    assert made.graph.output[0].type.tensor_type.elem_type == FLOAT16
    assert FLOAT16 not in {tensor.data_type for tensor in made.graph.initializer}
    assert result["values"]["is_good"] is True
    x = np.array([1, -2, 3, 0.5])
    for choice in (True, False):
        feeds = {"c": np.array(choice)} if text == BRANCHES else {}
        wide_x, half_x = {"x": x.astype(np.float32)}, {"x": x.astype(np.float16)}
        exact = ReferenceEvaluator(wide).run(None, feeds | wide_x)
        with np.errstate(over="ignore"):
            before = ReferenceEvaluator(path.as_posix()).run(None, feeds | half_x)
        after = ReferenceEvaluator(made).run(None, feeds | half_x)
        assert not choice or not all(np.isfinite(value).all() for value in before)
        for value, wanted in zip(after, exact, strict=True):
            np.testing.assert_allclose(value.astype(np.float32), wanted, rtol=0.03)
