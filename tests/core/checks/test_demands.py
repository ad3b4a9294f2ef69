"""Inputs that do not fit each other: told of the node, and what ONNX Runtime runs is not told."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import onnxruntime
import pytest

from dld_tui.core.checks.demands import broken_demands
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.recorded import Recorded, fields_of

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> '
WRONG = {
    "channels": "g (float[1, 3, 8, 8] x, float[4, 2, 3, 3] w) => (y) { y = Conv(x, w) }",
    "reshape": "g (float[3, 4] x) => (y) <int64[2] s = {5, 7}> { y = Reshape(x, s) }",
    "a computed shape": """g (float[3, 4] x) => (y) <int64[1] t = {5}>
        { d = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(d, t) y = Reshape(x, s) }""",
    "broadcast": "g (float[3, 4] x, float[5] b) => (y) { y = Add(x, b) }",
    "blocks": "g (float[1, 2, 5, 4] x) => (y) { y = SpaceToDepth<blocksize = 2>(x) }",
    "scales": """g (float[2, 4] x) => (y) <float[3] s = {1, 1, 1}, uint8[3] z = {0, 0, 0}>
        { y = QuantizeLinear(x, s, z) }""",
    "zero points": """g (float[2, 3] x) => (y) <float[3] s = {1, 1, 1}, uint8 z = {0}>
        { y = QuantizeLinear(x, s, z) }""",
    "scales of blocks": """g () => (y) <int8[1, 4] q = {1, 2, 3, 4}, float[1, 1] s = {1}>
        { y = DequantizeLinear<block_size = 2>(q, s) }""",
}
RIGHT = {
    "channels": "g (float[N, 3, 8, 8] x, float[4, 3, 3, 3] w) => (y) { y = Conv(x, w) }",
    "reshape": "g (float[3, 4] x) => (y) <int64[2] s = {2, -1}> { y = Reshape(x, s) }",
    "broadcast": "g (float[3, 4] x, float[3, 1] b) => (y) { y = Add(x, b) }",
    "scales": """g (float[2, 3] x) => (y) <float[3] s = {1, 1, 1}, uint8[3] z = {0, 0, 0}>
        { y = QuantizeLinear(x, s, z) }""",
    "one scale": "g (float[2, 3] x) => (y) <float[1] s = {1}> { y = QuantizeLinear(x, s) }",
    "scales of blocks": """g () => (y) <int8[1, 3] q = {1, 2, 3}, float[1, 2] s = {1, 2}>
        { y = DequantizeLinear<block_size = 2>(q, s) }""",
    "names": "g (float[N, 4] x, float[M, 4] b) => (y) { y = Add(x, b) }",
}


def runs(text: str) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    data = models.parse(HEAD + text).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        session.run(None, {
            one.name: np.ones([dim if isinstance(dim, int) else 1 for dim in one.shape], np.float32)
            for one in session.get_inputs()
        })  # fmt: skip
    except Exception:  # noqa: BLE001 - the seam: its errors have no common class
        return False
    return True


def test_what_does_not_fit_is_told(recorded: Recorded) -> None:
    told = {}
    for name, text in WRONG.items():
        assert not runs(text), name
        with closing(Document(models.parse(HEAD + text))) as document:
            told[name] = "\n".join(map(fields_of, broken_demands(document)))
    recorded("broken_demands", told)


@pytest.mark.parametrize("name", RIGHT)
def test_what_fits_is_not(name: str) -> None:
    assert runs(RIGHT[name])
    with closing(Document(models.parse(HEAD + RIGHT[name]))) as document:
        assert broken_demands(document) == []


def test_nodes_of_functions_and_of_branches_are_found() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2, 3] x, float[5, 4] w) => (y) { a = Neg(x) y = f.Product(a, w) }
        <domain: "f", opset_import: ["" : 18]> Product (x, w) => (y)
        { n = Neg(x) y = MatMul(n, w) }"""
    branch = """g (float[2, 3] x, float[5, 4] w) => (y) <bool c = {1}> { y = If (c) <
        then_branch = t () => (float[2, 4] a) { n = Neg(x) a = MatMul(n, w) },
        else_branch = e () => (float[2, 3] b) { b = Neg(x) }> }"""
    places = []
    for model in (text, HEAD + branch):
        with closing(Document(models.parse(model))) as document:
            (finding,) = broken_demands(document)
        places.append((finding.remark.place, finding.remark.index))
    assert places == [(["function", 0], 1), ([0, "then_branch", 0], 1)]


def test_iterations_that_may_not_happen_demand_nothing() -> None:
    text = (
        HEAD
        + """g (float[2, 4] x, int64 n) => (r)
        <bool on = {1}, int64[1] z = {0}, int64[1] one = {1}, int64[1] four = {4}>
        { r = Loop <body = b (int64 i, bool c) => (bool d, float[4] y) {
            at = Unsqueeze(i, z) end = Add(at, one) row = Slice(x, at, end, z)
            y = Reshape(row, four) d = Identity(c) }> (n, on) }"""
    )
    with closing(Document(models.parse(text))) as document:
        assert broken_demands(document) == []
