"""The rules that come with the program: each is run on a model, before and after."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.rewrite.rule import own_rules, rules_of, text_of_rules
from tests.core.model.rewrite.rewriting import operators, rewritten, values
from tests.core.model.rewrite.test_onnxscript_behaviours import CASES as MORE_CASES
from tests.support.models import parse


def counted(name: str, *dims: int) -> str:
    """Return an initializer of the numbers around 0."""
    count = math.prod(dims)
    numbers = ", ".join(f"{(at - count // 2) / count:.3f}" for at in range(count))
    return f"float[{', '.join(map(str, dims))}] {name} = {{{numbers}}}"


HEAD = '<ir_version: 11, opset_import: ["" : %d, "com.microsoft" : 1]>\ng '
GELU = "float k = {1.4142135}, float one = {1}, float half = {0.5}"
BIAS = ", float[4] b = {0.5, 0, -1, 2}"
NORM = (
    "(float[2, 3, 4] x) => (float[2, 3, 4] y) <int64[1] a = {-1}, float two = {2},"
    " float e = {1e-5}, float[4] s = {1, 2, 3, 4}, float[4] b = {0.5, 0, -1, 2}> {"
)
SPLIT = (
    "(float[2, 3, 8] x, float[2, 1, 1, 3] m) => (float[2, 3, 8] y) <int64[4] four = {0, 0, 2, 4},"
    " int64[3] three = {0, 0, 8}, float c = {0.3}> { q = Neg(x) qr = Reshape(q, four)"
    " qt = Transpose <perm = [0, 2, 1, 3]> (qr) kr = Reshape(x, four)"
    " kt = Transpose <perm = [0, 2, 3, 1]> (kr) vr = Reshape(x, four)"
    " vt = Transpose <perm = [0, 2, 1, 3]> (vr)"
)
JOINED = "oj = Transpose <perm = [0, 2, 1, 3]> (o) y = Reshape(oj, three) }"
TURNED = (
    "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <float[1, 4, 3] a = {1, 2, 3, 4, 5, 6, 7, 8, 9,"
    " 10, 11, 12}, int64[1] one = {1}, int64[1] zero = {0}, int64[1] h = {3}, int64[1] end = {99}>"
    " { w = Concat <axis = -1> (a, a) cw = Cos(w) c = Unsqueeze(cw, one) sw = Sin(w)"
    " s = Unsqueeze(sw, one) l = Slice(x, h, end, h) n = Neg(l) f = Slice(x, zero, h, h)"
    " r = Concat <axis = -1> (n, f) xc = Mul(x, c) rs = Mul(r, s) y = Add(xc, rs) }"
)
QUANTIZED = "(float[1, 1, 3, 3] x) => (float[1, 1, 3, 3] y) <float s = {0.04}, int8 z = {0}"
WEIGHT = ", float[1, 1, 1, 1] w = {1.7}> {"
GROUPED = (
    "(float[2, 3, 32] x, float[2, 3, 16] z, float[1, 1, 3, 3] m) => (float[2, 3, 32] y) <int64[4]"
    " heads = {0, 0, -1, 8}, int64[1] two = {2}, int64[5] all = {2, 2, 2, 3, 8}, int64[4] join ="
    " {2, 4, 3, 8}, int64[3] three = {0, 0, -1}, float c = {0.3}> { qr = Reshape(x, heads)"
    " q = Transpose <perm = [0, 2, 1, 3]> (qr) kr = Reshape(z, heads)"
    " kh = Transpose <perm = [0, 2, 1, 3]> (kr) n = Neg(z) vr = Reshape(n, heads)"
    " vh = Transpose <perm = [0, 2, 1, 3]> (vr) ku = Unsqueeze(kh, two) ke = Expand(ku, all)"
    " k = Reshape(ke, join) vu = Unsqueeze(vh, two) ve = Expand(vu, all) v = Reshape(ve, join)"
    " kt = Transpose <perm = [0, 1, 3, 2]> (k) kc = Mul(kt, c) s = MatMul(q, kc) d = Add(s, m)"
    " p = Softmax <axis = -1> (d) o = MatMul(p, v) oj = Transpose <perm = [0, 2, 1, 3]> (o)"
    " y = Reshape(oj, three) }"
)
CASES: dict[str, tuple[int, str, str]] = {
    "identity": (18, "(float[2] x) => (float[2] y) { a = Identity(x) b = Neg(a) y = Identity(b) }",
                 "Neg"),
    "dropout": (18, "(float[2] x) => (float[2] y) { a = Dropout(x) y = Neg(a) }", "Neg"),
    "transposes": (
        18,
        "(float[2, 3, 4] x) => (float[2, 3, 4] y, float[4, 3, 2] z) {"
        " a = Transpose <perm = [2, 0, 1]> (x) b = Transpose <perm = [1, 2, 0]> (a) y = Neg(b)"
        " c = Transpose <perm = [0, 2, 1]> (a) d = Transpose <perm = [0, 1, 2]> (c) z = Abs(d) }",
        "Abs Neg Transpose",
    ),
    "casts": (18, "(float[2] x) => (float[2] y) { a = Cast <to = 1> (x) y = Neg(a) }", "Neg"),
    "reshapes": (
        18,
        "(float[2, 3] x) => (float[6] y) <int64[2] s = {3, 2}, int64[1] t = {6}> {"
        " a = Reshape(x, s) y = Reshape(a, t) }",
        "Reshape",
    ),
    "concat": (18, "(float[2] x) => (float[2] y) { a = Concat <axis = 0> (x) y = Neg(a) }", "Neg"),
    "batch-norm": (
        18,
        "(float[1, 2, 3, 3] x) => (float[1, 1, 3, 3] y) <float[2, 2, 1, 1] w = {1, 2, 3, 4},"
        " float[2] b = {1, -1}, float[2] s = {2, 0.5}, float[2] t = {0, 3}, float[2] m = {0.1, 1},"
        " float[2] v = {1, 4}, float[1, 2, 1, 1] u = {1, 2}, float[1] s1 = {2}> {"
        " c = Conv(x, w, b) n = BatchNormalization <epsilon = 0.1> (c, s, t, m, v)"
        " d = Conv(n, u) y = BatchNormalization (d, s1, s1, s1, s1) }",
        "Conv Conv",
    ),
    "gemm": (
        18,
        "(float[2, 3] x) => (float[2, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6},"
        " float[2] b = {1, 2}> { a = MatMul(x, w) y = Add(b, a) }",
        "Gemm",
    ),
    "gelu": (
        20,
        f"(float[2] x) => (float[2] y) <{GELU}> {{ a = Div(x, k) b = Erf(a) c = Add(b, one)"
        " d = Mul(x, c) y = Mul(d, half) }",
        "Gelu",
    ),
    "gelu-onnxruntime": (
        17,
        f"(float[2] x) => (float[2] y) <{GELU}> {{ a = Div(x, k) b = Erf(a) c = Add(one, b)"
        " h = Mul(half, x) y = Mul(h, c) }",
        "Gelu",
    ),
    "rotary-partial": (
        23,
        "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <int64[1] zero = {0}, int64[1] r = {4},"
        " int64[1] axis = {3}, int64[1] end = {99}, float[2, 4, 2] c = {1, 2, 3, 4, 5, 6, 7, 8, 1,"
        " 2, 3, 4, 5, 6, 7, 8}, float[2, 4, 2] s = {0, 1, 0, 2, 0, 3, 1, 1, 2, 2, 3, 3, 1, 0, 2,"
        " 0}> { f = Slice(x, zero, r, axis) t = RotaryEmbedding(f, c, s)"
        " l = Slice(x, r, end, axis) y = Concat <axis = -1> (t, l) }",
        "RotaryEmbedding",
    ),
    "rms-norm-onnxruntime": (
        18,
        f"{NORM.replace(BIAS, '')} q = Pow(x, two) v = ReduceMean(q, a) w = Add(v, e)"
        " r = Sqrt(w) i = Reciprocal(r) n = Mul(x, i) y = Mul(s, n) }",
        "SimplifiedLayerNormalization",
    ),
    "attention-grouped": (
        18,
        GROUPED,
        "Cast Cast Concat Expand Expand GroupQueryAttention Neg Shape Shape Slice Slice Squeeze"
        " Sub",
    ),
    "hard-swish": (
        17,
        "(float[2] x) => (float[2] y) <float l = {0}, float t = {3}, float h = {6}> {"
        " a = Add(x, t) c = Clip(a, l, h) m = Mul(x, c) y = Div(m, h) }",
        "HardSwish",
    ),
    "layer-norm": (
        18,
        f"{NORM} m = ReduceMean(x, a) d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q, a)"
        " w = Add(v, e) r = Sqrt(w) n = Div(d, r) t = Mul(n, s) y = Add(t, b) }",
        "LayerNormalization",
    ),
    "rms-norm": (
        23,
        f"{NORM.replace(BIAS, '')} q = Pow(x, two) v = ReduceMean(q, a) w = Add(v, e)"
        " r = Sqrt(w) n = Div(x, r) y = Mul(n, s) }",
        "RMSNormalization",
    ),
    "attention": (
        23,
        "(float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) <float c = {2}> { q = Neg(x)"
        " k = Transpose <perm = [0, 1, 3, 2]> (x) s = MatMul(q, k) d = Div(s, c)"
        " p = Softmax <axis = -1> (d) y = MatMul(p, x) }",
        "Attention Neg",
    ),
    "without-quantization": (
        18,
        "(float[2] x) => (float[2] y) <float s = {0.02}, int8 z = {0}> {"
        " q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Neg(d) }",
        "Neg",
    ),
    "attention-onnxruntime": (
        17,
        f"{SPLIT} m4 = Mul(qt, c) s = MatMul(m4, kt) d = Add(s, m) p = Softmax <axis = -1> (d)"
        f" o = MatMul(p, vt) {JOINED}",
        "Concat Expand MultiHeadAttention Neg Shape Shape Slice Slice",
    ),
    "attention-apart": (
        17,
        "(float[2, 3, 4] x, float[2, 2, 3, 3] m) => (float[2, 3, 4] y, float[2, 3, 4] z) {"
        " k = Neg(x) y = com.microsoft.MultiHeadAttention <num_heads = 2> (x, k, x, \"\", \"\", m)"
        " z = com.microsoft.MultiHeadAttention <num_heads = 2, scale = 0.3> (x, k, x) }",
        "Add MatMul MatMul MatMul MatMul Mul Mul Neg Reshape Reshape Reshape Reshape Reshape"
        " Reshape Reshape Reshape Softmax Softmax Transpose Transpose Transpose Transpose Transpose"
        " Transpose Transpose Transpose",
    ),
    "skip-layer-norm": (
        17,
        "(float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z)"
        " <float[4] s = {1, 2, 3, 4}, float[4] b = {0.5, 0, -1, 2}> { n = Neg(x) a = Add(x, n)"
        " y = LayerNormalization (a, s, b) k = Abs(x) r = Add(k, x)"
        " w = LayerNormalization (r, s, b) z = Mul(w, r) }",
        "Abs Mul Neg SkipLayerNormalization SkipLayerNormalization",
    ),
    "bias-gelu": (
        17,
        "(float[2, 4] x) => (float[2, 4] y) <float[4] b = {0.5, 0, -1, 2}> { a = Add(b, x)"
        " y = com.microsoft.Gelu(a) }",
        "BiasGelu",
    ),
    "rotary": (23, TURNED, "Concat Cos Expand Expand RotaryEmbedding Shape Sin Slice"),
    "rotary-onnxruntime": (17, TURNED, "Cos RotaryEmbedding Sin Squeeze Squeeze"),
    "rotary-apart": (
        17,
        "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <int64[1] p = {0}, int64[2, 4] i ="
        " {0, 1, 2, 3, 3, 2, 1, 0}, float[4, 3] c = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3},"
        " float[4, 3] s = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2}> {"
        " a = com.microsoft.RotaryEmbedding (x, p, c, s)"
        " b = com.microsoft.RotaryEmbedding (x, i, c, s) y = Add(a, b) }",
        "Add Add Add Concat Concat Gather Gather Mul Mul Mul Mul Mul Mul Mul Mul Shape Shape Slice"
        " Slice Slice Slice Slice Slice Slice Slice Sub Sub Unsqueeze Unsqueeze",
    ),
    "layer-norm-apart": (
        18,
        "(float[2, 4] x) => (float[2, 4] y) <float[4] s = {1, 2, 3, 4}, float[4] b = {0.5, 0, -1,"
        " 2}> { y = LayerNormalization <epsilon = 0.01> (x, s, b) }",
        "Add Add Div Mul Mul ReduceMean ReduceMean Sqrt Sub",
    ),
    "rms-norm-apart": (
        23,
        "(float[2, 4] x) => (float[2, 4] y) <float[4] s = {1, 2, 3, 4}> {"
        " y = RMSNormalization <epsilon = 0.01> (x, s) }",
        "Add Div Mul Mul ReduceMean Sqrt",
    ),
    "gelu-apart": (
        20,
        "(float[4] x) => (float[4] y) { a = Gelu(x) b = Gelu <approximate = \"tanh\"> (a)"
        " y = com.microsoft.Gelu(b) }",
        "Add Add Add Add Erf Erf Mul Mul Mul Mul Mul Mul Mul Mul Mul Mul Mul Mul Tanh",
    ),
    "gemm-apart": (
        18,
        "(float[2, 3] x) => (float[2, 2] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[2] b ="
        " {1, 2}, float[2, 2] u = {1, 0, 2, 1}> { a = Gemm <transB = 1> (x, w, b) y = Gemm(a, u) }",
        "Add MatMul MatMul",
    ),
    "shapes": (
        18,
        "(float[2, 3, 4] x) => (float[2, 4, 3] y, float[2, 12] z) <int64 one = {1},"
        " int64[1] rest = {-1}, int64[1] ax = {0}> { t = Transpose <perm = [0, 2, 1]> (x)"
        " s = Shape(t) y = Reshape(x, s) n = Shape(x) g = Gather(n, ax) u = Mul(g, one)"
        " w = Concat <axis = 0> (u, rest) z = Reshape(x, w) }",
        "Reshape Reshape",
    ),
    "int32": (
        18,
        "(float[3, 4] x) => (float[2, 4] y, float[3, 2] z) <int64[2] i = {2, -1}, int64[1] b = {2},"
        " int64[1] e = {9223372036854775807}, int64[1] a = {1}> { y = Gather(x, i)"
        " z = Slice(x, b, e, a) }",
        "Gather Slice",
    ),
    "qdq-residual": (
        18,
        f"{QUANTIZED}{WEIGHT} q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
        " c = Conv(d, w) y = Add(x, c) }",
        "Add Conv DequantizeLinear DequantizeLinear QuantizeLinear",
    ),
    "qdq-pooling": (
        18,
        f"{QUANTIZED}> {{ n = Neg(x) p = MaxPool <kernel_shape = [1, 1]> (n)"
        " q = QuantizeLinear(p, s, z) y = DequantizeLinear(q, s, z) }",
        "DequantizeLinear DequantizeLinear MaxPool Neg QuantizeLinear QuantizeLinear",
    ),
    "qdq-scales": (
        18,
        f"{QUANTIZED}, float t = {{0.03}}, int64[1] ax = {{0}}> {{ q = QuantizeLinear(x, s, z)"
        " d = DequantizeLinear(q, s, z) r = QuantizeLinear(x, t, z) e = DequantizeLinear(r, t, z)"
        " k = Concat <axis = 0> (d, e) y = ReduceMean <keepdims = 1> (k, ax) }",
        "Concat DequantizeLinear DequantizeLinear QuantizeLinear QuantizeLinear ReduceMean",
    ),
    "qdq-weights": (
        18,
        f"{QUANTIZED}{WEIGHT} q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
        " y = Conv(d, w) }",
        "Conv DequantizeLinear DequantizeLinear QuantizeLinear",
    ),
    "channels": (
        18,
        f"(float[1, 2, 6, 6] x) => (float[1, 3, 2, 2] y) <{counted('w', 5, 2, 1, 1)},"
        f" {counted('b', 5)}, {counted('v', 5, 5, 1, 1)}, {counted('u', 3, 5, 2, 2)}> {{"
        " c = Conv(x, w, b) r = Sigmoid(c) d = Conv(r, v) p = Softplus(d)"
        " m = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (p) y = Conv(m, u) }",
        "AveragePool Conv Conv Conv Sigmoid Softplus",
    ),
}  # fmt: skip
CHANGE_VALUES = {"without-quantization", "qdq-residual", "qdq-scales", "qdq-weights"}


def needs_onnxruntime(version: str) -> None:
    """Skip a test of what an older ONNX Runtime has no kernel for."""
    import onnxruntime

    there, wanted = (tuple(map(int, v.split(".")[:2])) for v in (onnxruntime.__version__, version))
    if there < wanted:
        pytest.skip(f"needs ONNX Runtime {version}")


def applied(body: str, opset: int, rules: str, tolerance: float = 2e-6) -> onnx.ModelProto:
    """Return a model after rules, which keep what it computes."""
    model = parse(HEAD % opset + body)
    typed = onnx.shape_inference.infer_shapes(model)
    after = rewritten(typed, text_of_rules(rules_of(rules.split())))
    for old, new in zip(values(model), values(after), strict=True):
        np.testing.assert_allclose(old, new, rtol=tolerance, atol=tolerance)
    return after


def test_every_rule_is_tested_and_says_what_it_is_for() -> None:
    more = {name for rules, _, _ in MORE_CASES.values() for name in rules.split()}
    assert {rule.name for rule in own_rules()} == set(CASES) | more
    assert all(rule.about and rule.gains for rule in own_rules())


@pytest.mark.parametrize("name", CASES)
def test_rule_keeps_what_the_model_computes(name: str) -> None:
    if name == "attention-grouped":
        needs_onnxruntime("1.31")
    opset, body, wanted = CASES[name]
    model = parse(HEAD % opset + body)
    typed = onnx.shape_inference.infer_shapes(model)
    after = rewritten(typed, text_of_rules(rules_of([name])))
    assert " ".join(sorted(operators(after))) == wanted
    used = {name for node in after.graph.node for name in node.input}
    assert {tensor.name for tensor in after.graph.initializer} <= used
    if "SimplifiedLayerNormalization" not in operators(after):  # onnx does not know it
        onnx.checker.check_model(after)
    tolerance = 0.04 if name in CHANGE_VALUES else 2e-6
    for old, new in zip(values(model), values(after), strict=True):
        np.testing.assert_allclose(old, new, rtol=tolerance, atol=tolerance)


def _of_four_dimensions(model: onnx.ModelProto) -> None:
    """Give constants of one element four dimensions, which their users take over."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and math.prod(tensor.dims) == 1:
            del tensor.dims[:]
            tensor.dims.extend([1, 1, 1, 1])
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _of_type(model: onnx.ModelProto, dtype: int) -> None:
    """Let a model compute in another type."""
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = dtype
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            kind = helper.tensor_dtype_to_np_dtype(dtype)
            array = numpy_helper.to_array(tensor).astype(kind)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = dtype


_OTHERS: dict[str, Callable[[onnx.ModelProto], None]] = {
    "four dimensions": _of_four_dimensions,
    "double": lambda model: _of_type(model, onnx.TensorProto.DOUBLE),
    "int64": lambda model: _of_type(model, onnx.TensorProto.INT64),
    "halves": lambda model: _of_type(model, onnx.TensorProto.FLOAT16),
}


@pytest.mark.parametrize("other", _OTHERS)
@pytest.mark.parametrize("name", CASES)
def test_what_only_looks_like_it_keeps_its_values_or_stays(name: str, other: str) -> None:
    if name.startswith("attention"):
        needs_onnxruntime("1.31")  # older ones drop a dimension of doubles
    opset, body, _ = CASES[name]
    model = parse(HEAD % opset + body)
    _OTHERS[other](model)
    try:
        typed = onnx.shape_inference.infer_shapes(model)
        before = values(typed)
    except Exception:  # noqa: BLE001 - ONNX Runtime takes no such model, so there is none
        pytest.skip("no such model runs")
    after = rewritten(typed, text_of_rules(rules_of([name])))
    tolerance = 0.2 if name in CHANGE_VALUES else 0.02 if other == "halves" else 1e-5
    for old, new in zip(before, values(after), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        np.testing.assert_allclose(old, new, rtol=tolerance, atol=tolerance)


def test_types_of_values_between_are_known_by_what_makes_them() -> None:
    """An operator that does not take them is refused, behind nodes just made, too."""
    rules = "rule one\nAbs(x) => Neg(Neg(x))\nrule two\nNeg(Neg(x)) => Neg(BitwiseNot(Neg(x)))"
    for kind, wanted in (("int64", ["Neg", "BitwiseNot", "Neg"]), ("double", ["Neg", "Neg"])):
        model = parse(HEAD % 18 + f"({kind}[2] x) => ({kind}[2] y) {{ y = Abs(x) }}")
        assert operators(rewritten(model, rules)) == wanted


def test_rules_are_found_by_name_file_and_text(tmp_path: Path) -> None:
    path = tmp_path / "my.rules"
    path.write_text("# mine\nrule mine: What it does.\nRelu(Relu(x)) => Relu(x)\n", "utf-8")
    found = rules_of(["identity", str(path), f"@{path}", "Neg(Neg(x)) => x", "Abs(x) => bypass"])
    assert [rule.name for rule in found] == ["identity", "mine", "mine", "rule", "rule-5"]
    with pytest.raises(UsageError, match="no rule 'gone'"):
        rules_of(["gone"])


def test_stored_kinds_are_kept(tmp_path: Path) -> None:
    """A constant of float16 is folded in float16, and one that overflows it is left."""
    half = numpy_helper.from_array(np.array([300], np.float16), "a")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "a"], ["b"]), helper.make_node("Mul", ["b", "a"], ["y"])],
        "g", [helper.make_tensor_value_info("x", 10, [1])],
        [helper.make_tensor_value_info("y", 10, [1])], [half],
    )  # fmt: skip
    document = Document(helper.make_model(graph))
    rule = "Mul(Mul(x, a), b) => Mul(x, {a * b}) where a is constant and b is constant"
    with pytest.raises(EditError, match="not finite"):
        document.apply("rewrite", rules=rule, at=[[[], "#1"]])
    save(document, tmp_path / "same.onnx")
    assert operators(onnx.load(tmp_path / "same.onnx")) == ["Mul", "Mul"]


MIXED = (
    "(float16[2, 3, 4] x) => (float16[2, 3, 4] y) <int64[1] a = {-1}, float two = {2},"
    " float e = {1e-5}, float16[4] s = {1, 2, 3, 4}, float one = {1}> { c = Cast <to = 1> (x)"
    " q = Pow(c, two) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) i = Div(one, r)"
    " n = Mul(c, i) d = Cast <to = 10> (n) y = Mul(s, d) }"
)


CACHED = (
    "(float[1, 1, 32] x, float[1, 1, 16] z, float[1, 2, 5, 8] e, float[1, 2, 5, 8] f) =>"
    " (float[1, 1, 32] y, float[1, 2, 6, 8] i, float[1, 2, 6, 8] j) <int32[1] l = {5},"
    " int32 t = {6}> { y, i, j = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads ="
    " 2> (x, z, z, e, f, l, t) }"
)
PROMPT = (
    "(float[2, 3, 32] x, float[2, 3, 16] z) => (float[2, 3, 32] y) <int32[2] l = {2, 2},"
    " int32 t = {3}> { y = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2,"
    ' scale = 0.3> (x, z, z, "", "", l, t) }'
)


PARTIAL = (
    "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <int64[1] zero = {0}, int64[1] r = {4},"
    " int64[1] axis = {3}, int64[1] end = {99}, float[4, 2] c = {1, 2, 3, 4, 5, 6, 7, 8},"
    " float[4, 2] s = {0, 1, 0, 2, 0, 3, 1, 1}> { f = Slice(x, zero, r, axis)"
    " t = com.microsoft.RotaryEmbedding(f, zero, c, s) l = Slice(x, r, end, axis)"
    " y = Concat <axis = -1> (t, l) }"
)


INNER = {
    "b = Div(x, root) t = Erf(b)": "Gelu",
    "b = Mul(turn, x) t = Erf(b)": "Gelu",
    "p = Pow(x, three) q = Mul(p, c) r = Add(x, q) b = Mul(r, k) t = Tanh(b)": "FastGelu",
    "o = Mul(x, x) p = Mul(o, x) q = Mul(c, p) r = Add(q, x) b = Mul(k, r) t = Tanh(b)": "FastGelu",
    "p = Mul(x, c) q = Mul(p, x) r = Add(q, one) s = Mul(x, k) b = Mul(s, r) t = Tanh(b)":
        "FastGelu",
    "p = Mul(x, x) q = Mul(p, c) r = Add(one, q) s = Mul(x, k) b = Mul(s, r) t = Tanh(b)":
        "FastGelu",
}  # fmt: skip
OUTER = (
    "h = Mul(x, half) y = Mul(h, u)",
    "h = Mul(half, u) y = Mul(x, h)",
    "h = Mul(u, x) y = Mul(h, half)",
)


HALVES = GROUPED.replace("float", "float16").replace("{0.3}", "{13312}").replace(
    "p = Softmax <axis = -1> (d)",
    "w = Cast <to = 1> (d) h = Softmax <axis = -1> (w) p = Cast <to = 10> (h)",
)  # fmt: skip
COMPUTED = GROUPED.replace("float c = {0.3}> {", "float[1] g = {1}> { c = Exp(g)").replace(
    "kc = Mul(kt, c) s = MatMul(q, kc)", "sc = MatMul(q, kt) s = Mul(sc, c)"
)  # fmt: skip
SINGLE = MIXED.replace("float16[4] s", "float[4] s").replace(" d = Cast <to = 10> (n)", "").replace(
    "float16[2, 3, 4] y", "float[2, 3, 4] y").replace("Mul(s, d)", "Mul(s, n)")  # fmt: skip
ATTENTION = "d = Mul(s, c) e = Add(d, m) p = Softmax <axis = -1> (e) o = MatMul(p, vt)"
GELU_OF = (
    "(float[2, 3] x) => (float[2, 3] y) <float root = {1.4142135}, float turn = {0.70710678},"
    " float one = {1}, float three = {3}, float c = {0.044715}, float k = {0.7978845608},"
    " float half = {0.5}> { %s u = Add(t, one) %s }"
)
PLAIN_GELU = GELU_OF % (next(iter(INNER)), OUTER[0])


def _split(shape: str, heads: str) -> str:
    text = SPLIT.replace("0, 0, 2, 4", shape).replace("0, 0, 8", heads)
    return f"{text} s = MatMul(qt, kt) {ATTENTION} {JOINED}"


def _scaled(scale: str) -> str:
    return (
        "(float[1, 2, 3, 4] q, float[1, 2, 4, 3] k, float[1, 2, 3, 4] v) => (float[1, 2, 3, 4] y)"
        f" <float c = {{{scale}}}>"
        " { s = MatMul(q, k) m = Mul(s, c) p = Softmax <axis = -1> (m) y = MatMul(p, v) }"
    )


def _factor(kind: str) -> str:
    return (
        "(float[1, 1, 2, 2] x) => (float[1, 2, 2, 2] y) <float[2, 1, 1, 1] w = {1, 2}, float[2] b"
        f" = {{3, 4}}, {kind} k = {{5}}> {{ c = Conv(x, w, b) y = Mul(c, k) }}"
    )


VARIANTS: dict[str, tuple[int, str, str, str, str]] = {
    **{f"a factor {kind}": (18, "conv-affine", _factor(kind), "Conv", "Mul")
       for kind in ("float", "float[1]", "float[1, 1, 1]", "float[1, 1, 1, 1]")},
    "heads by copied sizes": (17, "attention-onnxruntime", _split("0, 0, 2, 4", "0, 0, 8"),
                              "MultiHeadAttention", "Reshape"),
    "heads by sizes": (17, "attention-onnxruntime", _split("2, 3, 2, 4", "-1, 3, 8"),
                       "MultiHeadAttention", "Reshape"),
    "heads by what is left": (17, "attention-onnxruntime", _split("-1, 3, 2, 4", "2, 3, -1"),
                              "MultiHeadAttention", "Reshape"),
    # A Reshape between the batch and the length is no split of the last axis.
    "no split of heads": (17, "attention-onnxruntime", _split("3, 2, 2, 4", "2, 3, 8").replace(
        ", float[2, 1, 1, 3] m", "").replace("e = Add(d, m) ", "").replace("(e)", "(d)"),
                          "MultiHeadAttention Reshape", "Softmax"),
    "opset 23 takes heads in": (23, "attention", _split("0, 0, 2, 4", "0, 0, 8").replace(
        ", float[2, 1, 1, 3] m", "").replace("e = Add(d, m) ", "").replace("(e)", "(d)"),
                                "Attention", "MatMul Transpose Reshape"),
    "opset 23 repeats heads": (23, "attention", GROUPED, "Attention", "MatMul Expand Reshape"),
    "grouped, of halves": (18, "attention-grouped", HALVES, "GroupQueryAttention", "Softmax"),
    "a scale": (17, "attention-onnxruntime", _scaled("0.5"), "MultiHeadAttention", "MatMul"),
    "a negative scale": (17, "attention-onnxruntime", _scaled("-0.5"), "MultiHeadAttention",
                         "MatMul"),
    "no scale": (17, "attention-onnxruntime", _scaled("0"), "MatMul", ""),  # means the default
    "a scale in opset 23": (23, "attention", _scaled("0.5"), "Attention", "MatMul"),
    "a negative scale in opset 23": (23, "attention", _scaled("-0.5"), "MatMul", "Attention"),
    "no scale in opset 23": (23, "attention", _scaled("0"), "MatMul", "Attention"),
    "a computed scale": (18, "attention-onnxruntime", COMPUTED, "Softmax", ""),
    "a computed scale, grouped": (18, "attention-grouped", COMPUTED, "Softmax", ""),
    "a computed scale in opset 23": (23, "attention", COMPUTED, "Softmax", ""),
    "halves normalized in float": (23, "rms-norm", MIXED, "RMSNormalization", "Cast Mul"),
    "halves normalized in float, contrib": (18, "rms-norm-onnxruntime", MIXED,
                                            "SimplifiedLayerNormalization", "Cast Mul"),
    "a norm that stays in float": (23, "rms-norm", SINGLE, "Cast RMSNormalization", "Mul"),
    "a norm that stays in float, contrib": (18, "rms-norm-onnxruntime", SINGLE,
                                            "Cast SimplifiedLayerNormalization", "Mul"),
    "grouped comes apart, cached": (18, "attention-apart", CACHED, "MatMul", "GroupQueryAttention"),
    "grouped comes apart, prompt": (18, "attention-apart", PROMPT, "MatMul", "GroupQueryAttention"),
    "the rest of a head, contrib": (18, "rotary-partial", PARTIAL, "RotaryEmbedding",
                                    "Slice Concat"),
    **{f"gelu, {inner}": (17, "gelu-onnxruntime", GELU_OF % (inner, OUTER[at % 3]), made, "Add")
       for at, (inner, made) in enumerate(INNER.items())},
    **{f"{half} is no gelu": (17, "gelu-onnxruntime", PLAIN_GELU.replace("half = {0.5}", half),
                              "Add", "Gelu")
       for half in ("half = {0.25}", "half = {2}", "other = {1}, float[3] half = {0.5, 0.5, 0.5}")},
    "a computed half is no gelu": (17, "gelu-onnxruntime", PLAIN_GELU.replace(
        "half = {0.5}", "other = {1}").replace("[2, 3] x)", "[2, 3] x, float half)"),
                                   "Add", "Gelu"),
}  # fmt: skip
"""Opset, rules, model, and the operators that are there afterwards, and that are not."""
NEEDED = {"grouped, of halves": "1.31", "grouped comes apart, prompt": "1.31"}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_rule_finds_what_is_written_in_another_way(name: str) -> None:
    opset, rules, body, there, gone = VARIANTS[name]
    needs_onnxruntime(NEEDED.get(name, "1.23" if opset > 20 else "1.0"))
    after = {*operators(applied(body, opset, rules, 5e-3 if "float16" in body else 1e-5))}
    assert {*there.split()} <= after
    assert not {*gone.split()} & after


PAIRS = {
    # As GPT-J has it, with the same angles for all, and with angles of each sequence.
    "repeated angles": (
        "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <float[1, 3, 3] o = {1, 2, 3, 4, 5, 6, 7,"
        " 8, 9}, int64[2] at = {2, 4}, int64[5] t = {1, 1, 1, 1, 2}, int64[4] j = {1, 3, 1, -1},"
        " int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},"
        " int64[1] last = {-1}, int64[1] end = {99}, int64[4] all = {0, 0, 4, 6}> {"
        " co = Cos(o) cu = Unsqueeze(co, at) ce = Expand(cu, t) c = Reshape(ce, j) so = Sin(o)"
        " su = Unsqueeze(so, at) se = Tile(su, t) s = Reshape(se, j)"
        " l = Slice(x, one, end, three, two) n = Neg(l) nu = Unsqueeze(n, last)"
        " f = Slice(x, zero, end, three, two) fu = Unsqueeze(f, last)"
        " p = Concat <axis = -1> (nu, fu) r = Reshape(p, all) xc = Mul(x, c) rs = Mul(r, s)"
        " y = Add(xc, rs) }"
    ),
    "angles of heads": (
        "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <float[1, 4, 3] o = {1, 2, 3, 4, 5, 6, 7,"
        " 8, 9, 10, 11, 12}, int64[1] at = {3}, int64[4] t = {1, 1, 1, 2}, int64[3] j = {1, 4, -1},"
        " int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},"
        " int64[1] last = {-1}, int64[1] end = {99}, int64[4] all = {0, 0, 4, 6}> {"
        " u = Unsqueeze(o, at) e = Expand(u, t) w = Reshape(e, j) cw = Cos(w)"
        " c = Unsqueeze(cw, one) sw = Sin(w) s = Unsqueeze(sw, one)"
        " l = Slice(x, one, end, three, two) n = Neg(l)"
        " nu = Unsqueeze(n, last) f = Slice(x, zero, end, three, two) fu = Unsqueeze(f, last)"
        " p = Concat <axis = -1> (nu, fu) r = Reshape(p, all) xc = Mul(x, c) rs = Mul(r, s)"
        " y = Add(xc, rs) }"
    ),
    "pairs": (
        "(float[2, 3, 4, 6] x) => (float[2, 3, 4, 6] y) <float[1, 3, 1, 3] o = {1, 2, 3, 4, 5, 6,"
        " 7, 8, 9}, int64[5] t = {2, 3, 4, -1, 2}, int64[1] last = {-1}, int64[2] ones = {1, 1},"
        " int64[4] all = {2, 3, 4, -1}> { p = Reshape(x, t) h, i = Split <axis = -1> (p, ones)"
        " a = Squeeze(h, last) b = Squeeze(i, last) c = Cos(o) s = Sin(o) ac = Mul(a, c)"
        " bs = Mul(b, s) m = Sub(ac, bs) as = Mul(a, s) bc = Mul(b, c) n = Add(as, bc)"
        " mu = Unsqueeze(m, last) nu = Unsqueeze(n, last) q = Concat <axis = -1> (mu, nu)"
        " y = Reshape(q, all) }"
    ),
}  # fmt: skip
PAIRS["angles of each sequence"] = (
    PAIRS["repeated angles"].replace("float[1, 3, 3] o = {", "float[2, 3, 3] o = {9, 8, 7, 6, 5, 4,"
    " 3, 2, 1, ").replace("{1, 3, 1, -1}", "{2, 3, 1, -1}")
)  # fmt: skip


@pytest.mark.parametrize(("opset", "rule"), [(18, "rotary-onnxruntime"), (23, "rotary")])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_are_turned_are_fused_and_come_apart(name: str, opset: int, rule: str) -> None:
    model = parse(HEAD % opset + PAIRS[name])
    together, apart = (text_of_rules(rules_of([rules])) for rules in (rule, "rotary-apart"))
    fused = rewritten(onnx.shape_inference.infer_shapes(model), together)
    assert "RotaryEmbedding" in operators(fused)
    plain = rewritten(onnx.shape_inference.infer_shapes(fused), apart)
    assert "RotaryEmbedding" not in operators(plain)
    for old, *new in zip(values(model), values(fused), values(plain), strict=True):
        np.testing.assert_allclose(new, [old, old], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("kind", "mask"),
    [("float16", "e = Add(d, m) f = Cast <to = 1> (e)"), ("float16", "f = Cast <to = 1> (d)"),
     ("float", "f = Add(d, m)")],
)  # fmt: skip
def test_attention_of_opset_23_takes_masks_and_halves_that_are_cast(kind: str, mask: str) -> None:
    """The kernel wants a mask with a row for each query."""
    needs_onnxruntime("1.23")
    is_half = kind == "float16"
    # The parser takes halves by their bits: 13312 is a quarter.
    text = SPLIT.replace("float", kind).replace("{0.3}", "{13312}" if is_half else "{0.3}")
    text = text if "m)" in mask else text.replace(", float16[2, 1, 1, 3] m", "")
    text += f" s = MatMul(qt, kt) d = Div(s, c) {mask} p = Softmax <axis = -1> (f)"
    text += f" {'h = Cast <to = 10>' if is_half else 'h = Identity'} (p) o = MatMul(h, vt) {JOINED}"
    after = applied(text, 23, "identity attention", 2e-3)
    assert not {"Softmax", "Cast"} & set(operators(after))
    (fused,) = [node for node in after.graph.node if node.op_type == "Attention"]
    assert any(a.name == "softmax_precision" for a in fused.attribute) == is_half
    assert fused.input[0] == "q"


@pytest.mark.parametrize(("least", "stays"), [(-65504, True), (-10000, False)])
def test_what_takes_care_of_masked_rows_stays_where_a_score_makes_them_infinite(
    least: int, stays: bool
) -> None:
    model = parse(
        (HEAD % 18) + "(float16[1, 1, 2, 4] s, bool[1, 1, 2, 4] c) => (float16[1, 1, 2, 4] y) {"
        " b = Where(c, z, l) a = Add(s, b) p = Softmax <axis = -1> (a) n = IsNaN(p)"
        " y = Where(n, z, p) }"
    )
    model.graph.initializer.extend(
        numpy_helper.from_array(np.array(value, np.float16), name)
        for name, value in (("z", 0), ("l", least))
    )
    after = rewritten(model, text_of_rules(rules_of(["attention-grouped"])))
    assert ("IsNaN" in operators(after)) is stays
    feeds = {"s": np.full((1, 1, 2, 4), -40, np.float16), "c": np.zeros((1, 1, 2, 4), bool)}
    with np.errstate(all="ignore"):
        before, now = (
            np.asarray([*ReferenceEvaluator(one).run(None, feeds)]) for one in (model, after)
        )
    assert np.array_equal(before, now)
    assert np.isfinite(before).all()
