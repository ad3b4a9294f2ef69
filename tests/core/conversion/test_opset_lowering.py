"""Older versions of the operators: what is written in another way computes the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.opset import convert_opset
from tests.support import models

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def graph(body: str, opset: int, weights: str = "", inputs: str = "float[2, 3, 4] x") -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g ({inputs}) => (y) {f"<{weights}>" if weights else ""} {{ {body} }}"""


def lowered(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    found = onnx.ModelProto()
    found.CopyFrom(model)
    convert_opset(found, version)
    return found


def computed(model: onnx.ModelProto) -> npt.NDArray[np.generic]:
    feeds = {"x": X, "t": np.array([2, 12])} if len(model.graph.input) > 1 else {"x": X}
    with np.errstate(invalid="ignore"):  # of no numbers
        (first, *_) = ReferenceEvaluator(model).run(None, feeds)
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
    "a triangle": (graph("y = Trilu(x)", 14), 13),
    "a lower triangle": (graph("y = Trilu<upper=0>(x, k)", 14, "int64 k = {-1}"), 11),
    "every other one from behind": (
        graph("y = Slice(x, s, e, a, t)", 10,
              "int64[2] s = {-1, 0}, int64[2] e = {-9, 2}, int64[2] a = {-1, 1},"
              " int64[2] t = {-2, 1}"),
        9,
    ),
    "steps beyond the end": (
        graph("y = Slice(x, s, e, a, t)", 13,
              "int64[1] s = {1}, int64[1] e = {99}, int64[1] a = {2}, int64[1] t = {2}"),
        8,
    ),
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
    "an axis amidst": (graph("a = Relu(x) y = Softmax<axis=1>(a)", 13), 12),
    "the last axis": (graph("y = LogSoftmax(x)", 13), 9),
    "an axis of an unknown rank": (
        graph("s = Shape(x) r = Reshape(x, t) y = Softmax<axis=1>(r)", 13,
              inputs="float[2, 3, 4] x, int64[r] t"), 12,
    ),
    "parts by their number": (
        graph("a = Relu(x) y, z, t = Split<axis=2, num_outputs=3>(a)", 18), 13,
    ),
    "parts of an unknown size": (
        graph("y, z = Split<axis=2, num_outputs=2>(x)", 18, inputs="float[2, 3, n] x"), 13,
    ),
    "padded axes": (
        graph("y = Pad(x, p, v, a)", 18,
              "int64[2] p = {1, 2}, float v = {3}, int64[1] a = {-1}"), 9,
    ),
    "a recurrence, batch first": (
        graph("y, h = RNN<hidden_size=2, layout=1>(x, w, r)", 14,
              "float[1, 2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1, 2, 2] r = {1, 2, 3, 4}"), 13,
    ),
    "levels of channels": (
        graph("q = QuantizeLinear<axis=1>(x, s, z) y = Cast<to=1>(q)", 13,
              "float[3] s = {0.05, 2, 3}, uint8[3] z = {0, 1, 200}"), 11,
    ),
    "levels of channels without zero points": (
        graph("q = QuantizeLinear<axis=1>(x, s) y = Cast<to=1>(q)", 13,
              "float[3] s = {0.05, 2, 3}"), 11,
    ),
    "levels of channels below zero": (
        graph("n = Neg(x) q = QuantizeLinear<axis=1>(n, s, z) y = Cast<to=1>(q)", 13,
              "float[3] s = {0.05, 0.1, 3}, int8[3] z = {0, 120, -100}"), 11,
    ),
    "small integers": (
        graph("c = Cast<to=2>(x) d = Add(c, c) e = Mul(d, d) y = Cast<to=1>(e)", 14), 13,
    ),
    "integers of old models": (
        graph("c = Constant<value_ints=[6, 4]>() y = Reshape(x, c)", 14), 8,
    ),
    "computed limits": (
        graph("a = ReduceMin<keepdims=0>(x) b = ReduceMean<keepdims=0>(x) y = Clip(x, a, b)", 13),
        9,
    ),
    "the last of equal elements": (
        graph("a = Sub(x, x) y = ArgMax<axis=-1, select_last_index=1>(a)", 13), 9,
    ),
    "the last of elements of an unknown number": (
        graph("a = Sub(x, x) y = ArgMin<axis=2, keepdims=0, select_last_index=1>(a)", 13,
              inputs="float[2, 3, n] x"), 11,
    ),
    "a remainder": (
        graph("i = Cast<to=7>(x) a = Sub(i, k) m = Mod(a, d) y = Cast<to=1>(m)", 13,
              "int64[1] k = {11}, int64[4] d = {-5, 5, 3, -7}"), 9,
    ),
    "a remainder as C has it": (
        graph("i = Cast<to=3>(x) m = Mod<fmod=1>(i, d) y = Cast<to=1>(m)", 13,
              "int8[4] d = {-5, 5, 3, -7}"), 9,
    ),
    "equal fractions": (
        graph("a = Div(x, x) b = Ceil(a) e = Equal(a, b) y = Cast<to=1>(e)", 13), 9,
    ),
    "a pool with dilations": (
        graph("y = AveragePool<kernel_shape=[2], dilations=[2], pads=[1, 1]>(x)", 19), 13,
    ),
    "a pool with dilations that counts pads": (
        graph("y = AveragePool<kernel_shape=[2], dilations=[2], pads=[1, 1],"
              "count_include_pad=1>(x)", 19), 18,
    ),
    "powers with dilations": (
        graph("y = LpPool<kernel_shape=[2], dilations=[2], p=3>(x)", 18), 13,
    ),
    "a size that is rounded up": (
        graph("y = MaxPool<kernel_shape=[3], strides=[2], ceil_mode=1>(x)", 12), 8,
    ),
    "a size that is rounded up in its second axis": (
        graph("r = Reshape(x, s) y = MaxPool<kernel_shape=[1, 3], strides=[1, 2], ceil_mode=1>(r)",
              12, "int64[4] s = {1, 1, 4, 6}"), 8,
    ),
    "blocks whose channels come first": (
        graph("r = Reshape(x, s) y = DepthToSpace<blocksize=2, mode = \"CRD\">(r)", 13,
              "int64[4] s = {1, 4, 2, 3}"), 10,
    ),
    "a ratio that is kept": (
        graph("r = Reshape(x, s) y = Resize<mode = \"linear\", axes=[2, 3],"
              "keep_aspect_ratio_policy = \"not_larger\">(r, , , t)", 18,
              "int64[4] s = {1, 1, 4, 6}, int64[2] t = {8, 30}"), 13,
    ),
    "a group for each channel": (
        graph("y = GroupNormalization<num_groups=3>(x, s, b)", 21,
              "float[3] s = {1, 2, 3}, float[3] b = {3, 2, 1}"), 17,
    ),
    "groups of channels": (
        graph("r = Reshape(x, f) y = GroupNormalization<num_groups=2>(r, s, b)", 21,
              "int64[3] f = {2, 4, 3}, float[4] s = {1, 2, 3, 4}, float[4] b = {3, 2, 1, 0}"), 18,
    ),
    "what is optional, and there": (
        graph("c = OptionalHasElement(x) a = OptionalGetElement(x) d = Cast<to=1>(c)"
              "y = Add(a, d)", 18), 13,
    ),
    "many definitions in one body": (
        graph("v0 = Relu(x) " + " ".join(f"v{n + 1} = HardSwish(v{n})" for n in range(12))
              + " y = Relu(v12)", 14), 13,
    ),
    "as many inputs as one likes, in a wider type": (
        graph("c = Cast<to=6>(x) m = Max(c, c, c) y = Cast<to=1>(m)", 13), 11,
    ),
    "bits": (graph("i = Cast<to=2>(x) n = BitwiseNot(i) y = Cast<to=1>(n)", 18), 13),
    "a grid": (
        graph("r = Slice(x, z, t, a) y = AffineGrid(r, s)", 20,
              "int64[4] s = {2, 1, 3, 2}, int64[2] z = {0, 0}, int64[2] t = {2, 3},"
              "int64[2] a = {1, 2}",
              "float[2, 3, 4] x"), 17,
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
    found = lowered(model, version)
    versions = {entry.domain: entry.version for entry in found.opset_import}
    assert versions[""] == version
    onnx.shape_inference.infer_shapes(found, strict_mode=True)
    assert np.allclose(computed(model), computed(found), atol=1e-5)


def test_regions_of_half_pixels_are_moved_by_half_a_pixel() -> None:
    """onnx's evaluator moves them in every version."""
    weights = "float[1, 4] r = {1, 1, 5, 7}, int64[1] b = {0}"
    call = "y = RoiAlign<spatial_scale=0.5>(x, r, b)"
    text = graph(call, 16, weights, "float[1, 1, 4, 6] x")
    found = lowered(models.parse(text), 13)
    (regions,) = (
        onnx.numpy_helper.to_array(node.attribute[0].t)
        for node in found.graph.node
        if node.op_type == "Constant"
    )
    assert regions.tolist() == [[0, 0, 4, 6]]  # half a pixel is 1 before it is scaled by 0.5


def test_a_default_of_a_function_is_its_value() -> None:
    """Neither onnx's inliner nor its reference evaluator knows it."""
    found = lowered(models.parse(SCALED.format(call="f.Scale(x)")), 11)
    assert (computed(found) == X * 0.5).all()


REFUSED = {
    "another meaning": (
        graph("y = RoiAlign(x, r, b)", 16, "float[1, 4] r = {0, 0, 0.5, 1}, int64[1] b = {0}",
              "float[1, 1, 4, 4] x"), 13,
    ),
    "axes of a caller": (
        graph("y = ReduceMean(x, a)", 18, inputs="float[2, 3, 4] x, int64[1] a"), 13,
    ),
    "zero": (graph("y = Reshape<allowzero=1>(x, s)", 14, "int64[2] s = {0, 0}"), 13),
    **{
        f"samples between, {mode}": (
            graph(f"y = Resize<mode = \"{mode}\">(x, , f)", 11, f"float[3] f = {{1, 1, {scale}}}"),
            10,
        )
        for mode, scale in (("linear", 2), ("nearest", 1.5))
    },
    "scales of channels": (
        graph("y = QuantizeLinear<axis=1>(x, s)", 13, "float[3] s = {1, 2, 3}"), 10
    ),
    "a remainder of fractions": (graph("y = Mod<fmod=1>(x, x)", 10), 9),
    "blocks of an unknown number of channels": (
        graph("y = DepthToSpace<blocksize=2, mode = \"CRD\">(x)", 11, inputs="float[1, c, 2, 3] x"),
        10,
    ),
    "not there": (graph("y = IsInf(x)", 10), 9),
    "a matrix of unknown sizes": (graph("y = Trilu(x)", 14, inputs="float[3, n] x"), 13),
    "steps of an unknown size": (
        graph("y = Slice(x, s, s, s, s)", 10, "int64[1] s = {-1}", "float[3, n] x"), 9,
    ),
    "an image of three axes": (
        graph("y = GridSample(x, g)", 20, inputs="float[1, 1, 2, 2, 2] x, float[1, 1, 1, 1, 3] g"),
        16,
    ),
    "what may not be there": (
        graph("a = OptionalGetElement(o) y = Add(a, x)", 18,
              inputs="float[2, 3, 4] x, optional(float[2, 3, 4]) o"), 13,
    ),
    "a type": (graph("c = Cast<to=16>(x) y = Relu(c)", 14), 12),
    "a type of a second input": (
        graph("c = Cast<to=16>(x) b = Cast<to=9>(x) y = Where(b, c, c)", 16), 15,
    ),
}  # fmt: skip
"""What is said of them is in opset_steps.txt."""


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(
    ("mode", "way", "scales"),
    [
        ("linear", "asymmetric", "2, 1.5"), ("linear", "half_pixel", "1, 1"),
        ("nearest", "asymmetric\", nearest_mode = \"floor", "2, 1.5"),
        ("nearest", "half_pixel", "2, 3"),
        ("nearest", "asymmetric\", nearest_mode = \"floor", "8, 9 by their sizes"),
    ],
)  # fmt: skip
def test_samples_are_placed_as_they_were(mode: str, way: str, scales: str, version: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    given, _, are_sizes = scales.partition(" by their ")
    weights = f"float[4] f = {{1, 1, {given}}}"
    if are_sizes:
        weights = f"float[0] f = {{}}, int64[4] s = {{1, 1, {given}}}"
    model = models.parse(
        f"""<ir_version: 5, opset_import: ["" : 11]>
        g (float[1, 1, 4, 6] x) => (float[1, 1, a, b] y) <{weights}, float[0] r = {{}}> {{
            y = Resize<mode = "{mode}", coordinate_transformation_mode = "{way}">
                (x, r, f{", s" if are_sizes else ""}) }}"""
    )
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6) ** 2
    before, after = (
        runtime.InferenceSession(one.SerializeToString()).run(None, {"x": x})[0]
        for one in (model, lowered(model, version))
    )
    np.testing.assert_allclose(before, after, rtol=1e-6)


def test_what_functions_are_made_of_is_lowered_too() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
    g (float[2, 3, 4] x, float[4] w) => (y) { y = f.Norm(x, w) }
    <domain: "f", opset_import: ["" : 17]>
    Norm (a, b) => (c) { d = Relu(a) c = LayerNormalization(d, b) }"""
    found = lowered(models.parse(text), 13)
    onnx.shape_inference.infer_shapes(found, strict_mode=True)
