"""What a run takes is known before it, by shapes: for bombs, and no more than runs show."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from dld_tui.core.model.cost.forecast import FASTEST, TYPICAL, Forecast
from dld_tui.core.model.document.document import Document
from dld_tui.core.process.child import Limits
from tests.support.bombs import write_bomb

_LIMITS = Limits(6.0, 2 << 30)
_HEAD = '<ir_version: 9, opset_import: ["" : 17]> g (float[2,3] x) => '


def _open(folder: Path, text: str) -> tuple[onnx.ModelProto, Document]:
    model = parser.parse_model(_HEAD + text)
    onnx.save(model, folder / "m.onnx")
    return model, Document.open(folder / "m.onnx")


@pytest.mark.parametrize(
    ("name", "what", "node"),
    [
        ("loop that doubles", "time", ">z"),
        ("endless loop", "time", ">z"),
        ("loops in a loop", "time", ">z"),
        ("long Scan", "time", ">z"),
        ("sequence that grows", "time", ">l"),
        ("Tile", "memory", ">z"),
        ("Pad", "memory", ">z"),
        ("Resize", "memory", ">z"),
        ("broadcast", "memory", ">c"),
        ("ConvTranspose", "memory", ">z"),
        ("RandomNormal", "memory", ">z"),
        ("HannWindow", "memory", ">z"),
        ("sparse Constant", "memory", ">z"),
        ("large input", "memory", ""),
    ],
)
def test_a_bomb_is_known_by_its_shapes(name: str, what: str, node: str, tmp_path: Path) -> None:
    excess = Forecast(Document.open(write_bomb(tmp_path, name))).beyond(_LIMITS)
    assert excess is not None
    assert (excess.what, excess.node.ref if excess.node else "") == (what, node)


@pytest.mark.parametrize(
    ("name", "node"),
    [("MatMul of made constants", ">b"), ("chain of MatMul", ">t1"), ("OneHot", ">z")],
)
def test_what_a_fast_machine_may_do_is_only_likely(name: str, node: str, tmp_path: Path) -> None:
    forecast = Forecast(Document.open(write_bomb(tmp_path, name)))
    assert forecast.beyond(_LIMITS, FASTEST) is None
    likely = forecast.beyond(_LIMITS, TYPICAL)
    assert likely is not None
    assert likely.node is not None
    assert likely.node.ref == node


def test_no_more_bytes_are_counted_than_a_run_makes(tmp_path: Path) -> None:
    model, document = _open(
        tmp_path,
        "(float[a,b] y) <int64[2] p = {3, 1}, int64[2] e = {4, 2}, int64[4] q = {1, 0, 0, 2}>"
        " { t = Tile (x, p) m = Transpose (t) g = MatMul (t, m) d = Pad (g, q)"
        " c = ConstantOfShape <value = double[1] {1}> (e) f = Cast <to = 1> (c)"
        " s = Shape (d) k = ReduceSum <keepdims = 1> (f) y = Add (d, k) }",
    )
    made = [name for node in model.graph.node for name in node.output]
    for name in made[:-1]:
        model.graph.output.add(name=name)
    outputs = [info.name for info in model.graph.output]
    results = ReferenceEvaluator(model).run(outputs, {"x": np.zeros((2, 3), np.float32)})
    sizes = dict(zip(outputs, results, strict=True))
    forecast = Forecast(document)
    needs = {need.node.outputs[0]: need for need in forecast.needs}
    largest = max(need.bytes for need in forecast.needs)
    found = [forecast.beyond(Limits(6.0, most)) for most in (23, 24, largest - 1, largest)]
    assert [one and bool(one.node) for one in found] == [False, True, True, None]
    assert needs.keys() == set(made) - {"s"}  # nothing reads it
    for name, need in needs.items():
        assert need.elements == sizes[name].size
        assert need.bytes <= sizes[name].nbytes
    assert needs["g"].macs == 6 * 3 * 6
    assert needs["y"].bytes == sizes["y"].size * 4  # its type is declared


@pytest.mark.parametrize(
    "text",
    [
        # A branch that may not be taken, a loop that may end at once, and what only has its shape
        # read: none of them is certain to run.
        "(float[] y) <int64[1] s = {1099511627776}, float[1] v = {1}> { r = ReduceSum (x)"
        " b = Cast <to = 9> (r) z = If (b) <then_branch = t () => (float[m] a)"
        " { a = Expand (v, s) }, else_branch = e () => (float[m] a2) { a2 = Identity (v) }>"
        " y = ReduceSum (z) }",
        "(float[2,3] y) <int64 n = {4611686018427387904}> { r = ReduceSum (x) c = Cast <to = 9> (r)"
        " y = Loop (n, c, x) <body: graph = b (int64 i, bool ci, float[2,3] st) => (bool co,"
        " float[2,3] so) { co = Identity (ci) so = Relu (st) }> }",
        "(float[] y) <int64[1] s = {1099511627776}, float[1] v = {1}> { a = Expand (v, s)"
        " k = Shape (a) f = Cast <to = 1> (k) y = ReduceSum (f) }",
    ],
)
def test_what_may_not_run_counts_as_nothing(text: str, tmp_path: Path) -> None:
    assert Forecast(_open(tmp_path, text)[1]).beyond(_LIMITS, TYPICAL) is None


@pytest.mark.parametrize(
    "text",
    [
        "z = If (t) <then_branch = a () => (p) { p = Expand (one, s) },"
        " else_branch = b () => (q) { q = Identity (one) }>",
        "z = Loop (two, t, one) <body: graph = b (int64 i, bool c, float[n] h)"
        " => (bool d, float[m] e) { d = Identity (c) e = Expand (one, s) }>",
    ],
)
def test_what_reads_the_result_of_a_body_has_its_size(text: str, tmp_path: Path) -> None:
    _, document = _open(
        tmp_path,
        "(float[] y) <int64[1] s = {1000}, float[1] one = {1}, bool t = {1}, int64 two = {2},"
        f" int64[1] wide = {{1}}> {{ {text} u = Unsqueeze (z, wide) g = Mul (u, z)"
        " y = ReduceSum (g) }",
    )
    with contextlib.closing(document):
        needs = {need.node.outputs[0]: need.elements for need in Forecast(document).needs}
    assert needs["g"] == 1000 * 1000


def test_the_node_that_makes_most_is_known_where_sequences_hide_it(tmp_path: Path) -> None:
    with contextlib.closing(Document.open(write_bomb(tmp_path, "SplitToSequence"))) as document:
        forecast = Forecast(document)
    largest = forecast.largest(1 << 28)
    assert largest is not None
    assert largest.op_type == "ConstantOfShape"
    assert forecast.largest(1 << 29) is None
    exact = 4 * max(need.elements for need in forecast.needs)
    assert forecast.largest(exact) is largest
    assert forecast.largest(exact + 1) is None


def test_of_what_is_loaded_constants_alone_count(tmp_path: Path) -> None:
    _, document = _open(
        tmp_path,
        "(float[2, 3] y, float[N] z) <int64[1] n = {2000000000}> { y = Exp (x)"
        " c = ConstantOfShape (n) z = Neg (c) }",
    )
    with contextlib.closing(document):
        excess = Forecast(document).beyond(_LIMITS, loading=True)
    assert excess is not None
    assert (excess.what, excess.node.op_type if excess.node else "") == ("memory", "Neg")
    large = _HEAD.replace("[2,3]", "[2000000000]") + "(float[2000000000] y) { y = Neg (x) }"
    with contextlib.closing(Document(parser.parse_model(large))) as document:
        assert Forecast(document).beyond(_LIMITS, loading=True) is None
        assert Forecast(document).beyond(_LIMITS) is not None
