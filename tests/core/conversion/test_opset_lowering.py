"""Older versions of the operators: what is written in another way computes the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.opset import lower_opset
from tests.support import models

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def graph(body: str, opset: int, weights: str = "", inputs: str = "float[2, 3, 4] x") -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g ({inputs}) => (y) {f"<{weights}>" if weights else ""} {{ {body} }}"""


def computed(model: onnx.ModelProto) -> npt.NDArray[np.generic]:
    (first, *_) = ReferenceEvaluator(model).run(None, {"x": X})
    return np.asarray(first)


SCALED = """<ir_version: 8, opset_import: ["" : 13, "f" : 1]>
    g (float[2, 3, 4] x) => (y) {{ y = {call} }}
    <domain: "f", opset_import: ["" : 13]> Scale <by: float = 0.5> (a) => (c)
    {{ b = Constant<value_float: float = @by>() c = Mul(a, b) }}"""

WRITTEN = {
    "part of a shape": (graph("y = Shape<start=1, end=-1>(x)", 15), 13),
    "end of a shape": (graph("y = Shape<start=-1>(x)", 15), 11),
    "a whole shape": (graph("y = Shape<start=0>(x)", 15), 13),
    "axes": (graph("y = ReduceMean<keepdims=0>(x, a)", 18, "int64[2] a = {0, 2}"), 13),
    "all axes": (graph("y = ReduceMax(x)", 18), 13),
    "squeezed": (graph("b = Unsqueeze(x, a) y = Squeeze(b, a)", 13, "int64[1] a = {0}"), 11),
    "parts": (graph("y, z = Split<axis=2>(x, s)", 13, "int64[2] s = {1, 3}"), 11),
    "a number": (graph("c = Constant<value_float=2.0>() y = Mul(x, c)", 13), 11),
    "numbers": (graph("c = Constant<value_ints=[6, 4]>() y = Reshape(x, c)", 14), 11),
    "more types": (graph("a = Relu(x) b = Identity(a) y = Add(b, a)", 16), 7),
    "no zero": (graph("y = Reshape<allowzero=1>(x, s)", 14, "int64[2] s = {4, 6}"), 13),
    "made of others": (
        graph("y = LayerNormalization(x, w)", 17, "float[4] w = {1, 2, 3, 4}"), 13
    ),
    "in a body": (
        graph("""c = Constant<value_int=1>() d = Cast<to=9>(c)
              y = If(d) <then_branch = t () => (float[a, b] p) { p = ReduceSum<keepdims=0>(x, s) },
                         else_branch = e () => (float[a, b, c] q) { q = Relu(x) }>""",
              13, "int64[1] s = {1}"),
        11,
    ),
    "a default of an operator": (graph("y = Swish(x)", 24), 21),
    "a parameter of a function": (SCALED.format(call="f.Scale<by=3.0>(x)"), 11),
    "a part of a shape in a function": (
        """<ir_version: 8, opset_import: ["" : 15, "f" : 1]>
        g (float[2, 3, 4] x) => (y) { y = f.Part<from=1>(x) }
        <domain: "f", opset_import: ["" : 15]> Part <from> (a) => (c)
        { c = Shape<start: int = @from>(a) }""", 13,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_in_another_way_computes_the_same(name: str) -> None:
    text, version = WRITTEN[name]
    model = models.parse(text)
    found = lower_opset(model, version)
    assert found.problem is None
    versions = {entry.domain: entry.version for entry in found.model.opset_import}
    assert versions[""] == version
    onnx.shape_inference.infer_shapes(found.model, strict_mode=True)
    assert np.allclose(computed(model), computed(found.model), atol=1e-5)


def test_a_default_of_a_function_is_its_value() -> None:
    """Neither onnx's inliner nor its reference evaluator knows it."""
    found = lower_opset(models.parse(SCALED.format(call="f.Scale(x)")), 11)
    assert found.problem is None
    assert (computed(found.model) == X * 0.5).all()


REFUSED = {
    "another meaning": (graph("y = Softmax(x)", 13), 12, "Softmax computes something else"),
    "computed axes": (
        graph("s = Shape(x) a = Slice(s, z, o) y = ReduceMean(x, a)", 18,
              "int64[1] z = {0}, int64[1] o = {1}"),
        13, "axes of ReduceMean must be constant",
    ),
    "zero": (graph("y = Reshape<allowzero=1>(x, s)", 14, "int64[2] s = {0, 0}"), 13, "allowzero"),
    "scales of channels": (
        graph("y = QuantizeLinear<axis=1>(x, s)", 13, "float[3] s = {1, 2, 3}"), 10, "Quantize"
    ),
    "not there": (graph("y = Trilu(x)", 14), 13, "Trilu does not exist in opset 13"),
    "very old": (graph("y = Add(x, x)", 13), 6, "opset 6"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_named(name: str) -> None:
    text, version, part = REFUSED[name]
    problem = lower_opset(models.parse(text), version).problem
    assert problem is not None
    assert part in problem


def test_what_functions_are_made_of_is_lowered_too() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
    g (float[2, 3, 4] x, float[4] w) => (y) { y = f.Norm(x, w) }
    <domain: "f", opset_import: ["" : 17]>
    Norm (a, b) => (c) { d = Relu(a) c = LayerNormalization(d, b) }"""
    found = lower_opset(models.parse(text), 13)
    assert found.problem is None
    onnx.shape_inference.infer_shapes(found.model, strict_mode=True)
