"""A model in bfloat16: what becomes of its weights and borders, and whether its values are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.support import models
from tests.support.conversions import LAYERS, convert, with_matrix

onnxruntime = pytest.importorskip("onnxruntime")
LARGE = """
<ir_version: 10, opset_import: ["" : 18]>
large (float[N, 4] x) => (float[N, 4] y)
<float big = {100000.0}, float small = {0.00001}>
{
    [up] a = Mul(x, big)
    [down] y = Mul(a, small)
}
"""


def test_weights_round_to_nearest_and_the_result_computes_what_it_says(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "o.onnx"
    result = convert("bf16", path, out)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    before = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    (weight,) = model.graph.initializer
    assert weight.data_type == onnx.TensorProto.BFLOAT16
    stored = numpy_helper.to_array(weight).astype(np.float32)
    expected = before.astype(ml_dtypes.bfloat16)
    assert (stored == expected.astype(np.float32)).all()
    assert {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)} \
        == {onnx.TensorProto.BFLOAT16}  # fmt: skip
    values = cast("dict[str, Any]", result["values"])
    assert values["is_good"]
    assert (result["to"], result["nodes"], result["casts"]) == ("bfloat16", 2, 0)

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    exact = np.asarray(ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})[0])  # type: ignore[index]
    plain = np.maximum((x.astype(ml_dtypes.bfloat16) @ expected).astype(np.float32), np.float32(0))
    assert np.abs(plain - exact).max() < 0.05


def test_what_overflows_in_float16_does_not_here(tmp_path: Path) -> None:
    path = models.write(tmp_path, LARGE)
    half = cast("dict[str, Any]", convert("fp16", path, tmp_path / "h.onnx")["values"])
    wide = cast("dict[str, Any]", convert("bf16", path, tmp_path / "b.onnx")["values"])
    assert not half["is_good"]
    assert half["first"]["node"] == "up"
    assert wide["is_good"]


def test_inputs_and_outputs_may_stay_float32(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "o.onnx"
    convert("bf16", path, out, keep_io_types=True)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
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
    out = tmp_path / "o.onnx"
    result = convert("bf16", models.write(tmp_path, text), out)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    onnx.checker.check_model(onnx.load(out), full_check=True)


def kept(folder: Path, text: str) -> dict[str, Any]:
    out = folder / f"{len([*folder.iterdir()])}.onnx"
    result = convert("bf16", models.write(folder, text), out, keep_io_types=True)
    # ONNX Runtime has no kernels, but replaces operators by their definitions first.
    with pytest.raises(Exception, match="Could not find an implementation"):
        onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    return cast("dict[str, Any]", result["kept"])


def test_what_is_defined_by_operators_without_bfloat16_stays_float32(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : OPSET]> g (float[3] x) => (float[3] y)
    <float low = {0}, float high = {6}> { a = Neg(x) b = Clip(a, low, high) y = Add(b, b) }"""
    reasons = kept(tmp_path, text.replace("OPSET", "13"))
    assert reasons == {"Clip: the Where in its definition does not take bfloat16": 1}
    assert kept(tmp_path, text.replace("OPSET", "16")) == {}


def test_nothing_is_converted_where_no_cast_makes_the_type(tmp_path: Path) -> None:
    text = """<ir_version: 5, opset_import: ["" : 10, "com.microsoft" : 1]>
    g (float[3] x) => (float[3] y) { y = com.microsoft.FastGelu(x) }"""
    result = convert("bf16", models.write(tmp_path, text), tmp_path / "o.onnx")
    assert result["nodes"] == 0
    assert result["kept"] == {"FastGelu: Cast does not take bfloat16 in this opset": 1}
