"""Weights of nodes in bodies: stored in 8 bits, or left with a reason."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.conversion.accuracy_criteria import (
    BFLOAT16,
    FLOAT16,
    QUANTIZED,
    SAME,
    AccuracyCriteria,
    criteria_for,
)
from dld_tui.core.conversion.body_weights import (
    WeightType,
    dynamic_reasons,
    quantize_body_weights,
    reason_lines,
    without_channels,
)
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.sessions import bytes_of, run

RANDOM = np.random.default_rng(3)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = RANDOM.normal(size=shape) * np.arange(1, shape[-1] + 1)
    return numpy_helper.from_array(values.astype(np.float32), name)


def looped(body: str, shape: list[int], *weights: onnx.TensorProto) -> onnx.ModelProto:
    """Return a model whose loop runs nodes that make ``t`` of ``s`` twice."""
    model = models.parse(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        m (float{shape} x) => (float{shape} y) <int64 n = {{2}}, bool c = {{1}}> {{
            [loop] y = Loop (n, c, x) <body = b (int64 i, bool go, float{shape} s)
                => (bool on, float{shape} t) {{ on = Identity (go) {body} }}>
        }}"""
    )
    model.graph.initializer.extend(weights)
    return model


def body_of(model: onnx.ModelProto) -> onnx.GraphProto:
    return next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g


def opened(folder: Path, model: onnx.ModelProto) -> closing[Document]:
    onnx.save(model, folder / "m.onnx")
    return closing(Document.open(folder / "m.onnx"))


CASES: dict[str, tuple[str, list[int], tuple[int, ...], int]] = {
    "Conv": ("Conv <pads = [1, 1]>", [1, 4, 9], (4, 4, 3), 0),
    "ConvTranspose": ("ConvTranspose <pads = [1, 1]>", [1, 4, 9], (4, 4, 3), 1),
    "Gemm": ("Gemm", [2, 6], (6, 6), 1),
    "Gemm transposed": ("Gemm <transB = 1>", [2, 6], (6, 6), 0),
    "MatMul": ("MatMul", [3, 2, 6], (6, 6), 1),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_each_channel_is_off_by_half_a_step_at_most(
    tmp_path: Path, case: str, is_inside: bool, dtype: str
) -> None:
    operator, shape, size, axis = CASES[case]
    stored = weight("w", *size)
    before = looped(f"[node] t = {operator} (s, w)", shape)
    (body_of(before) if is_inside else before.graph).initializer.append(stored)
    with opened(tmp_path, before) as document:
        found = quantize_body_weights(document, WeightType(dtype), (), ())
        model = onnx.ModelProto.FromString(bytes_of(document))
    onnx.checker.check_model(model, full_check=True)
    assert [(one.tensor, one.kind, one.nodes) for one in found.points] == [
        ("w", "weight", ("node",))
    ]
    home = body_of(model) if is_inside else model.graph
    weights = {one.name: numpy_helper.to_array(one) for one in home.initializer}
    assert "w" not in weights
    scale, integers = weights["w_scale"], weights["w_quantized"]
    assert integers.dtype == dtype
    (dequantize,) = [n for n in home.node if n.op_type == "DequantizeLinear"]
    assert {a.name: a.i for a in dequantize.attribute} == {"axis": axis}
    steps = scale.reshape([-1 if one == axis else 1 for one in range(integers.ndim)])
    zero = weights["w_zero_point"].astype(np.float32).reshape(steps.shape)
    original = numpy_helper.to_array(stored)
    back = (integers.astype(np.float32) - zero) * steps
    assert (np.abs(back - original) <= steps / 2 * 1.0001).all()
    assert np.abs(original).max() / 127 >= scale.max() * 0.999
    x = RANDOM.normal(size=shape).astype(np.float32)
    made, wanted = (run(one.SerializeToString(), x=x)[0] for one in (model, before))
    assert np.abs(made - wanted).max() < 0.05 * np.abs(wanted).max()


def test_what_stays_has_its_reason(tmp_path: Path) -> None:
    model = looped(
        """[recurrent] l = LSTM <hidden_size = 4> (s, lw, lr) u = Squeeze (l, one)
        minus = Neg (w) [computed] g = Gemm (flat, minus) flat = Squeeze (u, one)
        [product] product = MatMul (u, u2) [kept] half = MatMul (u, h) t = Identity (u)""",
        [3, 1, 4],
    )
    body_of(model).initializer.extend(
        [weight("lw", 1, 16, 4), weight("lr", 1, 16, 4), weight("w", 4, 4), weight("h", 4, 4),
         numpy_helper.from_array(np.array([1]), "one")]
    )  # fmt: skip
    with opened(tmp_path, model) as document:
        found = quantize_body_weights(document, WeightType("int8"), (), ("kept",))
        assert found.points == []
        assert "h" in {tensor.name for scope in document.scopes() for tensor in scope.initializers}
        assert [*reason_lines(found.reasons)] == [
            "1 LSTM node not quantized (recurrent): static quantization does not support LSTM,"
            " dynamic supports LSTM",
            "1 Gemm node not quantized (computed): its weights are computed by other nodes, which"
            " dld convert sanitize may fold",
        ]
    with opened(tmp_path, model) as document:
        fine = quantize_body_weights(document, WeightType("int4"), ("MatMul",), ())
        assert [*reason_lines(fine.reasons)] == [
            "1 MatMul node not quantized (kept): in bodies weights become int8 or uint8, not int4"
        ]


def test_a_weight_that_others_use_stays_for_them(tmp_path: Path) -> None:
    model = looped("[node] t = MatMul (s, w)", [3, 2, 6], weight("w", 6, 6))
    model.graph.node.append(helper.make_node("Neg", ["w"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [6, 6]))
    with opened(tmp_path, model) as document:
        quantize_body_weights(document, WeightType("int8", per_channel=False), (), ())
        result = onnx.ModelProto.FromString(bytes_of(document))
    onnx.checker.check_model(result, full_check=True)
    dims = {one.name: [*one.dims] for one in result.graph.initializer}
    assert (dims["w"], dims["w_scale"]) == ([6, 6], [])


def test_what_dynamic_quantization_skips_has_its_reason(tmp_path: Path) -> None:
    model = models.parse(
        """<ir_version: 8, opset_import: ["" : 17]> g () => () {
        [flat] a = MatMul (x, flat) [half] b = MatMul (a, half) [skipped] c = MatMul (b, w)
        [product] d = MatMul (c, c) [computed] e = Gemm (d, d)
        [recurrent] y = GRU <hidden_size = 4> (e3, gw, gr) [kept] f = Gemm (e, w)
        [not_asked_for] g = Conv (e, w) }"""
    )
    half = numpy_helper.from_array(np.ones((4, 4), np.float16), "half")
    model.graph.initializer.extend(
        [weight("flat", 1, 4, 4), half, weight("w", 4, 4), weight("gw", 1, 12, 4),
         weight("gr", 1, 12, 4)]
    )  # fmt: skip
    with opened(tmp_path, model) as document:
        flat = [*without_channels(document)]
        assert [node.name for node in flat] == ["flat"]
        found = dynamic_reasons(document, ("MatMul", "Gemm", "GRU"), ("kept",), flat)
        reasons = {node.name: why for node, why in found}
    assert reasons == {
        "flat": "its weight is not a matrix: --no-per-channel quantizes it",
        "half": "its weights are float16",
        "skipped": "ONNX Runtime's quantizer skips it",
        "computed": "its weights are computed by other nodes, which dld convert sanitize may fold",
        "recurrent": "dynamic quantization does not support GRU",
    }


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((), SAME), (("float32",), SAME), (("float16",), FLOAT16), (("float16", "int8"), QUANTIZED),
        (("bfloat16", "float16"), BFLOAT16), (("float8e4m3fn",), QUANTIZED),
        (("uint4",), QUANTIZED),
    ],
)  # fmt: skip
def test_criteria_are_those_of_the_coarsest_type(
    dtypes: tuple[str, ...], expected: AccuracyCriteria
) -> None:
    assert criteria_for(dtypes) is expected
