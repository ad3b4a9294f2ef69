"""Newer versions of the operators: models of old exporters compute what they did."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from dld_tui.core.conversion.opset import convert_opset
from tests.support import models

X = np.linspace(-2, 3, 2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
W = np.array([0.5, -1.0, 2.0], np.float32)


def old_model(body: str, opset: int, weights: str = "") -> onnx.ModelProto:
    return models.parse(
        f'<ir_version: 3, opset_import: ["" : {opset}]> g (float[2, 3, 4, 4] x, float[3] w)'
        f" => (float[a, b, c, d] y) <float[3] w = {{0.5, -1, 2}}{weights}> {{ {body} }}"
    )


def raised(body: str, opset: int, weights: str = "") -> npt.NDArray[np.float32]:
    """Return what ONNX Runtime computes with a model that was raised to opset 21."""
    model = old_model(body, opset, weights)
    convert_opset(model, 21)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    assert [one.name for one in session.get_inputs()] == ["x"]  # weights stay constants
    return np.asarray(session.run(None, {"x": X})[0], np.float32)


def by_channel(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return values.reshape(1, 3, 1, 1)


TWICE = X.repeat(2, 2).repeat(2, 3)
EXPECTED: dict[str, tuple[str, int, str, npt.NDArray[np.float32] | None]] = {
    "broadcast": ("y = Add<broadcast=1, axis=1>(x, w)", 6, "", X + by_channel(W)),
    "consumed_inputs": ("y = Relu<consumed_inputs=[0]>(x)", 1, "", np.maximum(X, 0)),
    "a broadcast bias": (
        "f = Reshape<shape=[32, 3]>(x) g = Gemm<broadcast=1>(f, i, w)"
        " y = Reshape<shape=[2, 3, 4, 4]>(g)",
        1, ", float[3, 3] i = {1, 0, 0, 0, 1, 0, 0, 0, 1}", (X.reshape(32, 3) + W).reshape(X.shape),
    ),
    "the axis of Concat": ("c = Concat(x, x) y = Slice<axes=[1], starts=[3], ends=[6]>(c)",
                           1, "", X),
    "slopes": ("y = PRelu(x, w)", 6, "", np.where(X < 0, X * by_channel(W), X)),
    "a mask that nothing reads, 7": ("y, m = Dropout(x)", 7, "", X),
    "a mask that nothing reads, 10": ("y, m = Dropout(x)", 10, "", X),
    "is_test": ("y = Dropout<is_test=1, ratio=0.3>(x)", 6, "", X),
    "Cast by name": ('i = Cast<to="INT32">(x) y = Cast<to="FLOAT">(i)', 1, "", np.trunc(X)),
    "shape": ("f = Reshape<shape=[2, 48]>(x) y = Reshape<shape=[2, 3, 4, 4]>(f)", 1, "", X),
    "paddings": ("y = Pad<paddings=[0, 0, 0, 0, 0, 0, 0, 1], value=2.0>(x)", 1, "",
                 np.pad(X, ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=2)),
    "Upsample 1": ('y = Upsample<height_scale=2.0, width_scale=2.0, mode="nearest">(x)', 6, "",
                   TWICE),
    "Upsample 7": ("y = Upsample<scales=[1.0, 1.0, 2.0, 2.0]>(x)", 7, "", TWICE),
    "Upsample 9": ("y = Upsample(x, s)", 9, ", float[4] s = {1, 1, 2, 2}", TWICE),
    "a matrix of axes": ("y = Softmax<axis=2>(x)", 11, "", None),
    "smaller": ("y = Resize(x, s)", 10, ", float[4] s = {1, 1, 0.5, 0.5}", X[:, :, ::2, ::2]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_old_exports_compute_what_they_did(name: str) -> None:
    body, opset, weights, expected = EXPECTED[name]
    found = raised(body, opset, weights)
    if expected is None:
        flat = np.exp(X.reshape(6, 16) - X.reshape(6, 16).max(1, keepdims=True))
        expected = (flat / flat.sum(1, keepdims=True)).reshape(X.shape)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


def test_each_element_is_normalised_on_its_own() -> None:
    ones = ", ".join(["1"] * 48)
    parts = ("s", "b", "m", "v")
    weights = "".join(f", float[3, 4, 4] {name} = {{{ones}}}" for name in parts)
    found = raised("y = BatchNormalization<spatial=0, is_test=1>(x, s, b, m, v)", 6, weights)
    np.testing.assert_allclose(found, (X - 1) / np.sqrt(1 + 1e-5) + 1, 1e-5, 1e-6)
