"""Conversions of models in float to bfloat16: what float does not hold passes every edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import Message
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from dld_tui.activities.convert.bf16 import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.events import Finished

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
        message.elem_type = 10 if message.elem_type == 1 else message.elem_type
    if isinstance(message, onnx.AttributeProto) and message.name == "to":
        message.i = 10
    for _, value in message.ListFields():
        single = isinstance(value, (Message, int, float, str, bytes))
        for part in [value] if single else value:
            if isinstance(part, Message):
                halve(part)


@pytest.mark.parametrize("text", [BRANCHES, LOOP])
def test_values_out_of_range_of_float16_pass_every_edge(tmp_path: Path, text: str) -> None:
    path, output = tmp_path / "half.onnx", tmp_path / "bf16.onnx"
    wide = onnx.parser.parse_model(text)
    half = onnx.parser.parse_model(text)
    halve(half)
    onnx.save(half, path)

    *_, last = run(Request(path, output))

    assert isinstance(last, Finished)
    result: dict[str, Any] = encode(last.result)
    made = onnx.load(output)
    onnx.checker.check_model(made, full_check=True)
    assert [value.type.tensor_type.elem_type for value in made.graph.output][:1] == [10]
    x = np.array([1, -2, 3, 0.5])
    for choice in (True, False):
        feeds = {"x": x, "c": np.array(choice)} if text == BRANCHES else {"x": x}
        halves = feeds | {"x": x.astype(np.float16)}
        exact = ReferenceEvaluator(wide).run(None, feeds | {"x": x.astype(np.float32)})
        with np.errstate(over="ignore"):
            before = ReferenceEvaluator(path.as_posix()).run(None, halves)
        after = ReferenceEvaluator(made).run(None, halves)
        assert not choice or not all(np.isfinite(value).all() for value in before)
        for value, wanted in zip(after, exact, strict=True):
            np.testing.assert_allclose(value.astype(np.float32), wanted, rtol=0.03)
    kinds = {tensor.data_type for tensor in made.graph.initializer}
    assert onnx.TensorProto.FLOAT16 not in kinds
    assert result["values"]["is_good"] is True
