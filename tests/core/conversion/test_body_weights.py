"""Weights of nodes in bodies: stored in 8 bits, or left with a reason."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

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
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes

onnxruntime: Any = pytest.importorskip("onnxruntime")
RANDOM = np.random.default_rng(3)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = RANDOM.normal(size=shape) * np.arange(1, shape[-1] + 1)
    return numpy_helper.from_array(values.astype(np.float32), name)


def looped(
    nodes: list[onnx.NodeProto],
    shape: list[int],
    inside: list[onnx.TensorProto],
    outside: list[onnx.TensorProto],
) -> onnx.ModelProto:
    """Return a model whose loop runs nodes that make ``t`` of ``s`` twice."""
    info = helper.make_tensor_value_info
    flag: tuple[int, list[int]] = (TensorProto.BOOL, [])
    state = (TensorProto.FLOAT, shape)
    keep = helper.make_node("Identity", ["go"], ["on"])
    body = helper.make_graph(
        [keep, *nodes], "body",
        [info("i", TensorProto.INT64, []), info("go", *flag), info("s", *state)],
        [info("on", *flag), info("t", *state)], inside,
    )  # fmt: skip
    loop = helper.make_node("Loop", ["n", "c", "x"], ["y"], "loop", body=body)
    counts = [numpy_helper.from_array(np.array(2), "n"),
              numpy_helper.from_array(np.array(True), "c")]  # fmt: skip
    graph = helper.make_graph(
        [loop], "main", [info("x", *state)], [info("y", *state)], [*counts, *outside]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASES: dict[str, tuple[onnx.NodeProto, list[int], tuple[int, ...], int]] = {
    "Conv": (helper.make_node("Conv", ["s", "w"], ["t"], "node", pads=[1, 1]),
             [1, 4, 9], (4, 4, 3), 0),
    "ConvTranspose": (helper.make_node("ConvTranspose", ["s", "w"], ["t"], "node", pads=[1, 1]),
                      [1, 4, 9], (4, 4, 3), 1),
    "Gemm": (helper.make_node("Gemm", ["s", "w"], ["t"], "node"), [2, 6], (6, 6), 1),
    "Gemm transposed": (helper.make_node("Gemm", ["s", "w"], ["t"], "node", transB=1),
                        [2, 6], (6, 6), 0),
    "MatMul": (helper.make_node("MatMul", ["s", "w"], ["t"], "node"), [3, 2, 6], (6, 6), 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_each_channel_is_off_by_half_a_step_at_most(
    tmp_path: Path, case: str, is_inside: bool, dtype: str
) -> None:
    node, shape, size, axis = CASES[case]
    stored = weight("w", *size)
    path = tmp_path / "m.onnx"
    onnx.save(looped([node], shape, [stored][: int(is_inside)], [stored][int(is_inside) :]), path)
    with closing(Document.open(path)) as document:
        found = quantize_body_weights(document, WeightType(dtype), (), ())
        model = _saved(document, tmp_path)
    onnx.checker.check_model(model, full_check=True)
    assert [(one.tensor, one.kind, one.nodes) for one in found.points] == [
        ("w", "weight", ("node",))
    ]
    body = next(n for n in model.graph.node if n.op_type == "Loop").attribute[0].g
    home = body if is_inside else model.graph
    weights = {one.name: numpy_helper.to_array(one) for one in home.initializer}
    assert "w" not in weights
    scale, integers = weights["w_scale"], weights["w_quantized"]
    assert integers.dtype == dtype
    (dequantize,) = [n for n in home.node if n.op_type == "DequantizeLinear"]
    assert {a.name: a.i for a in dequantize.attribute} == {"axis": axis}
    steps = scale.reshape([-1 if one == axis else 1 for one in range(integers.ndim)])
    zero = weights["w_zero_point"].astype(np.float32).reshape(steps.shape)
    back = (integers.astype(np.float32) - zero) * steps
    original = numpy_helper.to_array(stored)
    assert (np.abs(back - original) <= steps / 2 * 1.0001).all()
    assert np.abs(original).max() / 127 >= scale.max() * 0.999
    x = RANDOM.normal(size=shape).astype(np.float32)
    made, wanted = (_run(one, x) for one in (model, onnx.load(path)))
    assert np.abs(made - wanted).max() < 0.05 * np.abs(wanted).max()


def _saved(document: Document, folder: Path) -> onnx.ModelProto:
    out = folder / "out.onnx"
    plan_model(
        skeleton_bytes(document), document.blobs, out, external=document.external,
        spill=document.spill,
    ).write()  # fmt: skip
    return onnx.load(out)


def _run(model: onnx.ModelProto, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


def test_what_stays_has_its_reason(tmp_path: Path) -> None:
    lstm = [
        helper.make_node("LSTM", ["s", "lw", "lr"], ["l"], "recurrent", hidden_size=4),
        helper.make_node("Squeeze", ["l", "one"], ["u"]),
        helper.make_node("Neg", ["w"], ["minus"]),
        helper.make_node("Gemm", ["flat", "minus"], ["g"], "computed"),
        helper.make_node("Squeeze", ["u", "one"], ["flat"]),
        helper.make_node("MatMul", ["u", "u2"], ["product"], "product"),
        helper.make_node("MatMul", ["u", "h"], ["half"], "kept"),
        helper.make_node("Identity", ["u"], ["t"]),
    ]
    weights = [weight("lw", 1, 16, 4), weight("lr", 1, 16, 4), weight("w", 4, 4),
               weight("h", 4, 4), numpy_helper.from_array(np.array([1]), "one")]  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(looped(lstm, [3, 1, 4], weights, []), path)
    with closing(Document.open(path)) as document:
        found = quantize_body_weights(document, WeightType("int8"), (), ("kept",))
        lines = [*reason_lines(found.reasons)]
        assert found.points == []
        assert "h" in {tensor.name for scope in document.scopes() for tensor in scope.initializers}
    assert lines == [
        "1 LSTM node not quantized (recurrent): static quantization does not support LSTM,"
        " dynamic supports LSTM",
        "1 Gemm node not quantized (computed): its weights are computed by other nodes, which"
        " dld convert sanitize may fold",
    ]
    with closing(Document.open(path)) as document:
        fine = quantize_body_weights(document, WeightType("int4"), ("MatMul",), ())
        (line,) = reason_lines(fine.reasons)
    assert line == (
        "1 MatMul node not quantized (kept): in bodies weights become int8 or uint8, not int4"
    )


def test_a_weight_that_others_use_stays_for_them(tmp_path: Path) -> None:
    node, shape, size, _ = CASES["MatMul"]
    model = looped([node], shape, [], [weight("w", *size)])
    model.graph.node.append(helper.make_node("Neg", ["w"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, size))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    with closing(Document.open(path)) as document:
        quantize_body_weights(document, WeightType("int8", per_channel=False), (), ())
        result = _saved(document, tmp_path)
    onnx.checker.check_model(result, full_check=True)
    weights = {one.name: numpy_helper.to_array(one) for one in result.graph.initializer}
    assert "w" in weights
    assert weights["w_scale"].shape == ()


def test_what_dynamic_quantization_skips_has_its_reason(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "flat"], ["a"], "flat"),
        helper.make_node("MatMul", ["a", "half"], ["b"], "half"),
        helper.make_node("MatMul", ["b", "w"], ["c"], "skipped"),
        helper.make_node("MatMul", ["c", "c"], ["d"], "product"),
        helper.make_node("Gemm", ["d", "d"], ["e"], "computed"),
        helper.make_node("GRU", ["e3", "gw", "gr"], ["y"], "recurrent", hidden_size=4),
        helper.make_node("Gemm", ["e", "w"], ["f"], "kept"),
        helper.make_node("Conv", ["e", "w"], ["g"], "not asked for"),
    ]
    half = numpy_helper.from_array(np.ones((4, 4), np.float16), "half")
    weights = [weight("flat", 1, 4, 4), half, weight("w", 4, 4), weight("gw", 1, 12, 4),
               weight("gr", 1, 12, 4)]  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [], [], weights)), path)
    with closing(Document.open(path)) as document:
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
