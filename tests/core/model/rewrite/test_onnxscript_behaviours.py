"""What onnxscript's own tests of its rules ask for, of equal rules: what is rewritten, what is not.

Each case is of one of its files, ``onnxscript/rewriter/rules/**/*_test.py``; models are our own.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
from tests.core.model.rewrite.rewriting import operators, rewritten, values
from tests.support.models import parse

X = "(float[2, 3] x) => (float[2, 3] y)"
PICTURE = "(float[1, 2, 4, 4] x) => (float[1, 2, P, Q] y)"
W = "float[2, 2, 1, 1] w = {1, 2, 3, 4}, float[2] b = {1, -1}"
STATE = "float[2] s = {2, 0.5}, float[2] t = {0, 3}, float[2] m = {0.1, 1}, float[2] v = {1, 4}"
MIX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) <int64[1] a = {-1}, float two = {2}, float e = {1}"
BOUNDS = "float l = {-0.2}, float h = {0.5}, float k = {-0.4}, float i = {0.3}"
CASES: dict[str, tuple[str, str, str]] = {
    # _no_op_test
    "times one": ("no-ops", f"{X} <float c = {{1}}> {{ y = Mul(x, c) }}", "Identity"),
    "one times": ("no-ops", f"{X} <float c = {{1}}> {{ a = Mul(c, x) y = Neg(a) }}", "Neg"),
    "over one": ("no-ops", f"{X} <float[1] c = {{1}}> {{ a = Div(x, c) y = Neg(a) }}", "Neg"),
    "one over": ("no-ops", f"{X} <float c = {{1}}> {{ y = Div(c, x) }}", "Div"),
    "plus nothing": ("no-ops", f"{X} <float c = {{0}}> {{ a = Add(c, x) y = Neg(a) }}", "Neg"),
    "minus nothing": ("no-ops", f"{X} <float c = {{0}}> {{ a = Sub(x, c) y = Neg(a) }}", "Neg"),
    "nothing minus": ("no-ops", f"{X} <float c = {{0}}> {{ y = Sub(c, x) }}", "Sub"),
    "a factor that broadcasts": (
        "no-ops", "(float[3] x) => (float[1, 3] y) <float[1, 1] c = {1}> { y = Mul(x, c) }", "Mul",
    ),
    "other factor": ("no-ops", f"{X} <float c = {{2}}> {{ y = Mul(x, c) }}", "Mul"),
    "dropout of nothing": (
        "no-ops", f"{X} <float c = {{0}}> {{ a = Dropout(x, c) y = Neg(a) }}", "Neg",
    ),
    # _basic_rules_test
    "transpose that keeps": (
        "transposes", f"{X} {{ a = Transpose <perm = [0, 1]> (x) y = Neg(a) }}", "Neg",
    ),
    "two transposes": (
        "transposes",
        "(float[2, 3, 4] x) => (float[4, 2, 3] y) { a = Transpose <perm = [1, 2, 0]> (x)"
        " y = Transpose <perm = [1, 2, 0]> (a) }",
        "Transpose",
    ),
    "cast to wider and back": (
        "cast-chains casts",
        "(float[2] z) => (float[2] y) { x = Cast <to = 10> (z) a = Cast <to = 1> (x)"
        " b = Cast <to = 10> (a) y = Cast <to = 1> (b) }",
        "Cast Cast",
    ),
    "cast to narrower and back": (
        "cast-chains casts", f"{X} {{ a = Cast <to = 10> (x) y = Cast <to = 1> (a) }}", "Cast Cast",
    ),
    "expand to the same": (
        "no-ops", f"{X} <int64[2] s = {{2, 3}}> {{ a = Expand(x, s) y = Neg(a) }}", "Neg",
    ),
    "expand to another": (
        "no-ops", "(float[1, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}> { y = Expand(x, s) }",
        "Expand",
    ),
    "unsqueezes": (
        "unsqueezes",
        "(float[3] x) => (float[1, 3, 1] y) <int64[1] a = {1}, int64[1] b = {0}> {"
        " u = Unsqueeze(x, a) y = Unsqueeze(u, b) }",
        "Unsqueeze",
    ),
    "unsqueezes in order": (
        "unsqueezes",
        "(float[3] x) => (float[1, 1, 3] y) <int64[1] a = {0}, int64[1] b = {1}> {"
        " u = Unsqueeze(x, a) y = Unsqueeze(u, b) }",
        "Unsqueeze",
    ),
    "squeeze and reshape": (
        "unsqueezes",
        "(float[3] x) => (float[3] y) <int64[1] r = {-1}> { s = Squeeze(x) a = Reshape(s, r)"
        " y = Neg(a) }",
        "Neg",
    ),
    "reshapes": (
        "reshapes",
        "(float[3, 4, 5] x) => (float[20, 3] y) <int64[2] s = {5, -1}, int64[2] t = {20, -1}> {"
        " a = Reshape(x, s) y = Reshape(a, t) }",
        "Reshape",
    ),
    "reshape that copies": (
        "reshapes",
        "(float[3, 4, 5] x) => (float[5, 12] y) <int64[2] s = {5, -1}, int64[2] t = {0, 12}> {"
        " a = Reshape(x, s) y = Reshape(a, t) }",
        "Reshape Reshape",
    ),
    # _collapse_slices_test
    "slice of all": (
        "no-ops",
        f"{X} <int64[1] b = {{0}}, int64[1] e = {{9999}}, int64[1] a = {{0}}> {{"
        " c = Slice(x, b, e, a) y = Neg(c) }",
        "Neg",
    ),
    "slices of all axes": (
        "no-ops",
        f"{X} <int64[2] b = {{0, 0}}, int64[2] e = {{99, 99}}, int64[2] a = {{0, 1}}, int64[2] t ="
        " {1, 1}> { c = Slice(x, b, e, a, t) y = Neg(c) }",
        "Neg",
    ),
    "slice backwards": (
        "no-ops",
        f"{X} <int64[1] b = {{-1}}, int64[1] e = {{-9999}}, int64[1] a = {{0}}, int64[1] t ="
        " {-1}> { y = Slice(x, b, e, a, t) }",
        "Slice",
    ),
    # _fuse_relus_clips_test, _min_max_to_clip_test
    "relus": ("clips", f"{X} {{ a = Relu(x) y = Relu(a) }}", "Relu"),
    "relu and clip": ("clips", f"{X} <{BOUNDS}> {{ a = Relu(x) y = Clip(a, l, h) }}", "Clip"),
    "clip and relu": ("clips", f"{X} <{BOUNDS}> {{ a = Clip(x, l, h) y = Relu(a) }}", "Clip"),
    "relu and lower bound": ("clips", f"{X} <{BOUNDS}> {{ a = Relu(x) y = Clip(a, l) }}", "Clip"),
    "relu and upper bound": (
        "clips", f'{X} <{BOUNDS}> {{ a = Relu(x) y = Clip(a, "", h) }}', "Clip",
    ),
    "relu and bounds below nothing": (
        "clips", f"{X} <{BOUNDS}> {{ a = Relu(x) y = Clip(a, k, l) }}", "Clip",
    ),
    "clips that exclude each other": (
        "clips", f"{X} <{BOUNDS}> {{ a = Clip(x, k, l) y = Clip(a, i, h) }}", "Clip",
    ),
    "clips": ("clips", f"{X} <{BOUNDS}> {{ a = Clip(x, l, h) y = Clip(a, k, i) }}", "Clip"),
    "clip of what is not constant": (
        "clips", "(float[2, 3] x, float[] l, float[] h) => (float[2, 3] y) { a = Relu(x)"
        " y = Clip(a, l, h) }", "Relu Clip",
    ),
    "minima": ("clips", f"{X} <{BOUNDS}> {{ a = Min(x, i) y = Min(a, h) }}", "Min"),
    "maxima": ("clips", f"{X} <{BOUNDS}> {{ a = Max(x, l) y = Max(k, a) }}", "Max"),
    "minimum and maximum": ("clips", f"{X} <{BOUNDS}> {{ a = Min(x, h) y = Max(a, l) }}", "Clip"),
    "maximum and minimum": ("clips", f"{X} <{BOUNDS}> {{ a = Max(x, l) y = Min(h, a) }}", "Clip"),
    "bounds the wrong way round": (
        "clips", f"{X} <{BOUNDS}> {{ a = Min(x, k) y = Max(a, h) }}", "Min Max",
    ),
    "bounds that are lists": (
        "clips", f"{X} <float[3] l = {{1, 2, 3}}, float h = {{5}}> {{ a = Min(x, h)"
        " y = Max(a, l) }",
        "Min Max",
    ),
    # _remove_expand_before_binary_op_test
    "expand that broadcasts": (
        "expands", "(float[1, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}, float[2, 3] c ="
        " {1, 2, 3, 4, 5, 6}> { a = Expand(x, s) y = Sub(c, a) }", "Sub",
    ),
    "expand that is needed": (
        "expands", "(float[1, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}, float c = {1}> {"
        " a = Expand(x, s) y = Sub(a, c) }", "Expand Sub",
    ),
    # _fuse_batchnorm_test
    "batch norm and transposed convolution": (
        "batch-norm", f"{PICTURE} <{W}, {STATE}> {{ c = ConvTranspose(x, w, b)"
        " y = BatchNormalization(c, s, t, m, v) }", "ConvTranspose",
    ),
    "batch norm and transposed convolution in groups": (
        "batch-norm", f"{PICTURE} <float[2, 1, 1, 1] w = {{1, 2}}, {STATE}> {{"
        " c = ConvTranspose <group = 2> (x, w) y = BatchNormalization(c, s, t, m, v) }",
        "ConvTranspose BatchNormalization",
    ),
    "batch norm and convolution in groups": (
        "batch-norm", f"{PICTURE} <float[2, 1, 1, 1] w = {{1, 2}}, {STATE}> {{"
        " c = Conv <group = 2> (x, w) y = BatchNormalization(c, s, t, m, v) }", "Conv",
    ),
    "batch norm and dense layer": (
        "batch-norm", f"(float[3, 2] x) => (float[3, 2] y) <float[2, 2] w = {{1, 2, 3, 4}},"
        f" {STATE}> {{ c = Gemm <transB = 1> (x, w) y = BatchNormalization(c, s, t, m, v) }}",
        "Gemm",
    ),
    # _fuse_conv_affine_test, _fuse_pad_into_conv_test, _remove_optional_bias_test
    "convolution, factor and summand": (
        "conv-affine", f"{PICTURE} <{W}, float f = {{3}}, float o = {{0.5}}> {{ c = Conv(x, w, b)"
        " d = Mul(c, f) y = Add(d, o) }", "Conv",
    ),
    "convolution and factors by channel": (
        "conv-affine", f"{PICTURE} <{W}, float[2, 1, 1] f = {{3, 4}}> {{ c = Conv(x, w, b)"
        " y = Mul(c, f) }", "Conv Mul",
    ),
    "factor, summand and convolution": (
        "conv-affine", f"{PICTURE} <{W}, float f = {{3}}, float[1] o = {{0.5}}> {{"
        " c = Mul(x, f) d = Add(c, o) y = Conv(d, w, b) }", "Conv",
    ),
    "summand and padded convolution": (
        "conv-affine", f"{PICTURE} <{W}, float o = {{0.5}}> {{ d = Add(x, o)"
        " y = Conv <pads = [0, 0, 1, 0]> (d, w) }", "Add Conv",
    ),
    "pad and convolution": (
        "conv-pads", f"{PICTURE} <{W}, int64[8] q = {{0, 0, 1, 0, 0, 0, 2, 1}}> {{ p = Pad(x, q)"
        " y = Conv <pads = [1, 1, 0, 0]> (p, w, b) }", "Conv",
    ),
    "pad of channels": (
        "conv-pads", "(float[1, 1, 4, 4] x) => (float[1, 2, P, Q] y) <float[2, 2, 1, 1] w ="
        " {1, 2, 3, 4}, int64[8] q = {0, 1, 0, 0, 0, 0, 0, 0}> { p = Pad(x, q) y = Conv(p, w) }",
        "Pad Conv",
    ),
    "pad with another value": (
        "conv-pads", f"{PICTURE} <{W}, int64[8] q = {{0, 0, 1, 0, 0, 0, 2, 1}}, float z = {{1}}> {{"
        " p = Pad(x, q, z) y = Conv(p, w, b) }", "Pad Conv",
    ),
    "bias of zeros": (
        "bias-of-zeros", f"{PICTURE} <{W.replace('1, -1', '0, 0')}> {{ y = Conv(x, w, b) }}",
        "Conv",
    ),
    # _matmul_add_to_gemm_test, _gemm_to_matmul_add_test, _broadcast_to_matmul_test
    "a bias that is too wide": (
        "gemm", "(float[1, 2] x, float[2, 2] w) => (float[3, 1, 2] y) <float[3, 1, 1] b ="
        " {1, 2, 3}> { m = MatMul(x, w) y = Add(m, b) }", "MatMul Add",
    ),
    "reshapes around a product": (
        "reshapes-of-matmul", "(float[2, 3, 4] x, float[4, 5] w) => (float[2, 3, 5] y)"
        " <int64[2] s = {6, 4}, int64[3] t = {2, 3, 5}> { a = Reshape(x, s) m = MatMul(a, w)"
        " y = Reshape(m, t) }", "MatMul",
    ),
    "reshapes around a product that move": (
        "reshapes-of-matmul", "(float[2, 3, 4] x, float[4, 5] w) => (float[3, 2, 5] y)"
        " <int64[2] s = {6, 4}, int64[3] t = {3, 2, 5}> { a = Reshape(x, s) m = MatMul(a, w)"
        " y = Reshape(m, t) }", "Reshape MatMul Reshape",
    ),
    "reshapes around a product of many matrices": (
        "reshapes-of-matmul", "(float[2, 3, 4, 5] x, float[2, 3, 5, 2] w) => (float[2, 3, 4, 2] y)"
        " <int64[3] s = {6, 4, 5}, int64[3] u = {6, 5, 2}, int64[4] t = {2, 3, 4, 2}> {"
        " a = Reshape(x, s) d = Reshape(w, u) m = MatMul(a, d) y = Reshape(m, t) }", "MatMul",
    ),
    "reshapes around a product of many matrices that move": (
        "reshapes-of-matmul", "(float[2, 3, 4, 5] x, float[2, 3, 5, 2] w) => (float[3, 2, 4, 2] y)"
        " <int64[3] s = {6, 4, 5}, int64[3] u = {6, 5, 2}, int64[4] t = {3, 2, 4, 2}> {"
        " a = Reshape(x, s) d = Reshape(w, u) m = MatMul(a, d) y = Reshape(m, t) }",
        "Reshape Reshape MatMul Reshape",
    ),
    "reshapes around a dense layer": (
        "reshapes-of-matmul", "(float[2, 3, 4] x, float[4, 5] w) => (float[2, 3, 5] y)"
        " <int64[2] s = {6, 4}, int64[3] t = {2, 3, 5}, float[5] b = {1, 2, 3, 4, 5}> {"
        " a = Reshape(x, s) m = Gemm(a, w, b) y = Reshape(m, t) }", "MatMul Add",
    ),
    # _layer_norm_test, _rms_normalization_test
    "layer norm with a reciprocal": (
        "layer-norm", f"{MIX}, float[4] s = {{1, 2, 3, 4}}, float[4] b = {{1, 0, 0, 2}}> {{"
        " m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e)"
        " r = Sqrt(w) i = Reciprocal(r) n = Mul(d, i) k = Mul(n, s) y = Add(k, b) }",
        "LayerNormalization",
    ),
    "layer norm without a bias": (
        "layer-norm", f"{MIX}, float[4] s = {{1, 2, 3, 4}}> {{ m = ReduceMean(x, a)"
        " d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w)"
        " n = Div(d, r) y = Mul(s, n) }",
        "LayerNormalization",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_onnxscript_rewrites_is_rewritten(name: str) -> None:
    rules, body, wanted = CASES[name]
    head = '<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>\ng '
    model = parse(head + body)
    typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    after = rewritten(typed, text_of_rules(rules_of(rules.split())))
    assert " ".join(operators(after)) == wanted
    for old, new in zip(values(model), values(after), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-5, atol=1e-5)
