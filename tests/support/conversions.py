"""Models for conversions and comparisons, and conversions without a process of their own."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from dld_tui.core.codec import encode
from tests.support import models
from tests.support.activities import finished

OLD = """
<ir_version: 7, opset_import: ["" : 12, "acme" : 1],
 doc_string: "about the model", metadata_props: ["author": "A"]>
old (float[2, 3, 4] x, bool c) => (float[2, 4] y, float[k] z)
<float[2, 4] q, float[4] w = {1, 2, 3, 4}>
{
    [reduce] q = ReduceSum <axes = [1], keepdims = 0> (x)
    [custom] r = acme.Twice (q)
    [add] y = Add (r, w)
    [choose] z = If (c) <
        then_branch = yes () => (float[k] t) {
            [inner] s = ReduceSum <axes = [0, 1], keepdims = 0> (x)
            t = Add (s, w)
        },
        else_branch = no () => (float[k] e) { e = Identity (w) }
    >
}
<domain: "acme", opset_import: ["" : 12]>
Twice <factor> (v) => (o)
{
    [sum] n = ReduceSum <axes = [1], keepdims = 1> (v)
    [gemm] o = LeakyRelu <alpha: float = @factor> (v)
}
"""


MIXED = """
<ir_version: 10, opset_import: ["" : 18]>
mixed (float[2, 3] x) => (float[2, 3] y)
<float[3] w = {1, 70000, 1e-9}, float[3] v = {1, 2, 3}>
{
    [one] a = Add(x, w)
    [two] b = Sub(a, w)
    [three] c = Mul(b, v)
    [four] d = Div(c, v)
    [five] y = Relu(d)
}
"""


RICH = """
<ir_version: 10, opset_import: ["" : 18, "acme" : 1]>
rich (float[N, 3, 8, 8] x, bool c, int64[N] ids, float[4] loose)
    => (float[N, 4] y, int64[N] top, float[N, 4] z)
<float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] g = {1, 1, 2, 2, 1, 1, 2, 2},
 float[8] h = {0, 1, 0, 1, 0, 1, 0, 1}, float[8] m = {0, 0, 1, 1, 0, 0, 1, 1},
 float[8] v = {1, 2, 1, 2, 1, 2, 1, 2}, float[4] scales = {1, 1, 2, 2}, int64[1] zero = {0},
 int64[1] one = {1}, int64[1] minus = {-1}, float[4] lg = {1, 2, 1, 2}, float[4] lb = {0, 1, 0, 1}>
{
    [stem] s = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
    [norm] n = BatchNormalization (s, g, h, m, v)
    [act] r = Relu (n)
    [up] u = Resize <mode = "nearest"> (r, , scales)
    [pool] p = GlobalAveragePool (u)
    [flat] f = Flatten (p)
    [dense] d = MatMul (f, k)
    [bias] e = Add (d, loose)
    [shape] sh = Shape (e)
    [batch] ba = Slice (sh, zero, one)
    [dims] di = Concat <axis = 0> (ba, minus)
    [back] q = Reshape (e, di)
    [layer] l = LayerNormalization (q, lg, lb)
    [call] t = acme.Scaled <by = 0.5> (l)
    [choose] y = If (c) <
        then_branch = yes () => (float[N, 4] o1) { [inner] o0 = Mul (t, lg) [out] o1 = Tanh (o0) },
        else_branch = no () => (float[N, 4] o2) { [soft] o2 = Softmax (t) }
    >
    [best] top = ArgMax <axis = 1, keepdims = 0> (y)
    [row] em = Gather (table, ids)
    [wide] em64 = Cast <to = 11> (em)
    [narrow] em32 = Cast <to = 1> (em64)
    [last] z = Sub (em32, y)
}
<domain: "acme", opset_import: ["" : 18]>
Scaled <by> (a) => (o)
{
    [half] k2 = Constant <value_float: float = @by> ()
    [scaled] o = Mul (a, k2)
}
"""
"""With operators that each conversion treats otherwise, a subgraph and a function."""

PROJECTIONS = """
<ir_version: 10, opset_import: ["" : 21]>
projections (float[N, 32] x, int64[T] ids) => (float[N, 16] y, float[T, 32] e, float[N, 8] p)
{
    [up] a = MatMul (x, w)
    [act] b = Relu (a)
    [down] d = MatMul (b, v)
    [gemm] g = Gemm <transB = 1> (d, t)
    [again] h = MatMul (x, w)
    [mix] i = MatMul (h, v)
    [sum] y = Add (g, i)
    [rows] e = Gather (table, ids)
    [tail] p = MatMul (y, u)
}
"""
CONVS = """
<ir_version: 10, opset_import: ["" : 18]>
convs (float[N, 4, 8, 8] x) => (float[N, 6] y, float[N, 4, 4, 4] m)
<float[4] b = {1, 2, 3, 4}, int64[3] parts = {1, 1, 2}, float low = {0}, float high = {6},
 int64[2] axes = {2, 3}>
{
    [stem] s = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
    [act] r = Relu (s)
    [deep] d = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 4> (r, v)
    [clip] c = Clip (d, low, high)
    [add] a = Add (c, x)
    [pool] m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
    [up] u = ConvTranspose <kernel_shape = [2, 2], strides = [2, 2]> (m, t)
    [sum] f = ReduceMean <keepdims = 0> (u, axes)
    [all] g = Concat <axis = 1> (f, f)
    [split] p1, p2, p3 = Split <axis = 1> (g, parts)
    [join] j = Concat <axis = 1> (p3, p1, p2)
    [head] y = Gemm <transB = 1, beta = 1.0> (j, h, bias)
}
"""
LANGUAGE = """
<ir_version: 10, opset_import: ["" : 21]>
language (float[2] given, float[N, 32] x) => (float[N, 16] logits, float[N, 32] other)
<float[2] given = {1, 2}, float[1] scale = {0.5}, int64 one = {1}, int64[2] size = {-1, 16}>
{
    [first] g = Gather (given, one)
    [cast] f = Cast <to = 1> (w8)
    [scaled] m = Mul (f, scale)
    [inner] a = MatMul (x, m)
    [kept] other = MatMul (a, u)
    [grown] b = Mul (a, g)
    [head] c = MatMul (b, v)
    [cap] logits = Reshape (c, size)
    [lm_head] unused = MatMul (b, v)
}
"""
"""Weights that nodes compute, an input with a default in front, and the product of the logits."""

FIXED = """
<ir_version: 10, opset_import: ["" : 18]>
fixed (float[2, 3, 8] x, bool c) => (float[2, 3, 8] y, float[6, 8] rows, float[2, 24] flat)
<int64[2] two = {6, 8}, int64[3] back = {2, 3, 8}, int64[4] heads = {2, 3, 2, 4},
 int64[3] wide = {2, 3, 8}, float[8, 8] w = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}, int64[1] first = {0}, int64[1] last = {1},
 int64[1] axis = {2}, int64[3] same = {2, 3, 1}, float[3, 1] each = {1, 2, 3},
 int64[1] end = {2}, int64[2] long = {2, 24}, int64[3] times = {1, 1, 2}, float none = {0}>
{
    [rows] rows = Reshape (x, two)
    [mul] m = MatMul (rows, w)
    [back] b = Reshape (m, back)
    [heads] h = Reshape (b, heads)
    [turn] t = Transpose <perm = [0, 2, 1, 3]> (h)
    [turned] u = Transpose <perm = [0, 2, 1, 3]> (t)
    [wide] v = Reshape (u, wide)
    [ones] o = Expand (each, same)
    [cut] k = Slice (v, first, end, first)
    [scaled] s = Mul (k, o)
    [zeros] z = ConstantOfShape (same)
    [more] a = Add (s, z)
    [twice] tw = Tile (a, times)
    [half] hf, rest = Split <axis = 2, num_outputs = 2> (tw)
    [choose] y = If (c) <
        then_branch = yes () => (float[2, 3, 8] p) { [in] q = Reshape (hf, wide) p = Relu (q) },
        else_branch = no () => (float[2, 3, 8] n) { n = Neg (rest) }
    >
    [flat] flat = Reshape (y, long)
}
"""
LOOPS = """
<ir_version: 10, opset_import: ["" : 18]>
loops (float[B, 4] x, int64 n, bool go) => (float[B, 4] y, float[T, B, 4] all, float[R] sums)
{
    [repeat] y, all = Loop (n, go, x) <body = step (int64 i, bool k, float[B, 4] c)
        => (bool k2, float[B, 4] d, float[B, 4] s)
        { [again] k2 = Identity (k) [add] d = Add (c, x) [keep] s = Relu (d) }>
    [scan] last, sums = Scan <num_scan_inputs = 1, body = row (float acc, float[4] r)
        => (float acc2, float out)
        { [total] rs = ReduceSum <keepdims = 0> (r) [more] acc2 = Add (acc, rs)
          [same] out = Identity (acc2) }> (start, y)
}
"""


def with_weights(path: Path, text: str, **sizes: tuple[int, ...]) -> None:
    """Write a model with random weights."""
    model, dice = models.parse(text), np.random.default_rng(7)
    for name, dims in sizes.items():
        whole = dice.integers(-64, 65, dims)
        values = whole.astype(np.int8) if name == "w8" else (whole / 64).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path.write_bytes(model.SerializeToString())


def model_file(folder: Path, scale: float = 1) -> Path:
    model = models.parse(models.CHAIN)
    values = np.arange(4_000, dtype=np.float32) * scale
    model.graph.initializer.append(numpy_helper.from_array(values, "large"))
    path = folder / f"m{scale:g}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


OVERFLOWS = """
<ir_version: 10, opset_import: ["" : 18]>
overflows (float[N, 4] x) => (float[N, 4] y)
<float w = {300}, float small = {0.001}>
{
    [first] a = Relu(x)
    [big] b = Mul(a, w)
    [bigger] c = Mul(b, w)
    [down] d = Mul(c, small)
    [down2] e = Mul(d, small)
    [last] y = Sigmoid(e)
}
"""


LAYERS = """
<ir_version: 10, opset_import: ["" : 18]>
layers (float[N, 4] x) => (float[N, 4] y)
{
    [one] a = MatMul(x, w)
    [two] y = Relu(a)
}
"""


def convert(name: str, model: Path, output: Path | None, **settings: Any) -> dict[str, Any]:
    """Return the result; latencies are measured only where a test asks for them."""
    module = importlib.import_module(f"dld_tui.activities.convert.{name}")
    if hasattr(module.Request, "measure"):
        settings = {"measure": False, **settings}
    result: dict[str, Any] = encode(finished(module.run(module.Request(model, output, **settings))))
    return result


def told(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that a result says, but for the models and the file; of errors three digits."""
    for key, value in result.items():
        if key in ("before", "after", "path"):
            continue
        if key != "values" or "outputs" not in value:
            yield f"{key}: {json.dumps(value, ensure_ascii=False)}"
            continue
        for name, row in value["outputs"].items():
            shown = ", ".join(
                "-" if row[one] is None else f"{row[one]:.3g}"
                for one in ("max_abs", "largest", "snr_db")
            )
            yield f"  {name} {row['shape']}: {shown} {row['mismatch']} | {row['problem'] or 'good'}"
        known = {key: one for key, one in value.items() if one and key != "outputs"}
        yield f"  {json.dumps(known, ensure_ascii=False)}"


def with_matrix(folder: Path, text: str, *dims: int) -> Path:
    model = models.parse(text)
    values = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    model.graph.node[0].doc_string = "kept"
    model.metadata_props.add(key="who", value="me")
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


DETECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
detector (float[1, 8, 16, 16] x) => (float[1, 12, 256] y)
<int64[3] flat = {1, 4, 256}, int64[3] wide = {1, 8, 256}, float[1] size = {640.0}>
{
    [boxes] b = Conv(x, wb)
    [pixels] p = Mul(b, size)
    [rows] q = Reshape(p, flat)
    [classes] c = Conv(x, wc)
    [scores] s = Sigmoid(c)
    [columns] t = Reshape(s, wide)
    [all] y = Concat<axis = 1>(q, t)
}
"""
"""Boxes in pixels and scores from 0 to 1 in one output, as detectors have them."""


def detector(folder: Path) -> tuple[Path, Path]:
    """Return a detector and two sets of inputs for it."""
    model, rng = models.parse(DETECTOR), np.random.default_rng(0)
    for name, count in (("wb", 4), ("wc", 8)):
        values = rng.standard_normal((count, 8, 1, 1)).astype(np.float32) * 0.3
        model.graph.initializer.append(numpy_helper.from_array(values - (name == "wc"), name))
    path = folder / "detector.onnx"
    path.write_bytes(model.SerializeToString())
    for number in range(2):
        one = folder / "sets" / f"test_data_set_{number}"
        one.mkdir(parents=True)
        np.save(one / "x.npy", rng.random((1, 8, 16, 16), dtype=np.float32) * 2)
    return path, folder / "sets"


NESTED = """
<ir_version: 10, opset_import: ["" : 18]>
nested (float[N, 4] x, bool c) => (float[N, K] y)
{
    z = Relu(x)
    [choose] y = If (c) <
        then_branch = yes () => (float[a, b] t) {
            [again] t = If (c) <
                then_branch = deep () => (float[a, b] d) { q = Abs(z) d = Neg(q) },
                else_branch = flat () => (float[a, b] e) { e = Identity(z) }
            >
        },
        else_branch = no () => (float[a, b] f) { f = Transpose(z) }
    >
    s = SequenceConstruct(x, z)
    u = com.example.Unknown(x)
}
"""


UNSORTED = """
<ir_version: 10, opset_import: ["" : 18]>
unsorted (bool c, float[N] x) => (float[N] y)
{
    [choose] y = If (c) <
        then_branch = yes () => (float[N] t) {
            [late] t = Neg(m)
            m = Relu(x)
        },
        else_branch = no () => (float[N] e) { e = Identity(x) }
    >
}
"""


FIRST = """
<ir_version: 8, opset_import: ["" : 13]>
first (float[batch, 4] x) => (float[batch, 3] y, float[batch, 4] z)
<float[4, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{
    [dense] y = MatMul(x, W)
    [other] z = Relu(x)
}
"""


SECOND = """
<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
second (float[N, 3] data, bool choice) => (float[N, 3] y, float[N, 3] data)
<float[3] W = {1, 2, 3}>
{
    [dense] t = local.shift(data, W)
    y = If (choice) <
        then_branch = yes () => (float[N, 3] z) { z = Neg(t) },
        else_branch = no () => (float[N, 3] e) { e = Add(t, W) }
    >
}
<domain: "local", opset_import: ["" : 18]>
minus (a, b) => (c) { c = Sub(a, b) }
<domain: "local", opset_import: ["" : 18, "local" : 1]>
shift (a, b) => (c) { c = local.minus(a, b) }
"""


IMAGE = """
<ir_version: 8, opset_import: ["" : OPSET]>
image (float[batch, 3, 8, 6] x, float[3] other) => (float[batch, 3, 8, 6] y)
{ y = Neg(x) }
"""


REFUSED_WHEN_OPTIMIZED = """
<ir_version: 8, opset_import: ["" : 12]>
g (float[M, K] a, float[N, K] b) => (float[M, N] y, float[K, M] z) {
    z = Transpose(a)
    t = Transpose(b)
    y = Gemm <transA = 1> (z, t)
}
"""


OTHER = models.CHAIN.replace("{1, 2, 3, 4}", "{1.5, 2, 3, 4}")


WIDE = """
<ir_version: 10, opset_import: ["" : 18]>
wide (float[4] x) => (float[4] y)
<float[4] w = {1e6, 1e6, 1e6, 1e6}>
{
    [one] a = Mul(x, w)
    [two] y = Neg(a)
}
"""
