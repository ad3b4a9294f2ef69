"""The rules that come with the program: each is run on a model, before and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import save
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.rewrite.rule import own_rules, rules_of, text_of_rules
from tests.core.rewrite.rewriting import operators, rewritten, values
from tests.support.models import parse

HEAD = '<ir_version: 11, opset_import: ["" : %d, "com.microsoft" : 1]>\ng '
GELU = "float k = {1.4142135}, float one = {1}, float half = {0.5}"
BIAS = ", float[4] b = {0.5, 0, -1, 2}"
NORM = (
    "(float[2, 3, 4] x) => (float[2, 3, 4] y) <int64[1] a = {-1}, float two = {2},"
    " float e = {1e-5}, float[4] s = {1, 2, 3, 4}, float[4] b = {0.5, 0, -1, 2}> {"
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
    "transposes-down": (
        18,
        "(float[2, 3] x) => (float[3, 2] y) { a = Transpose <perm = [1, 0]> (x)"
        " b = LeakyRelu <alpha = 0.3> (a) y = Tanh(b) }",
        "LeakyRelu Tanh Transpose",
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
    "scales": (
        18,
        "(float[2] x) => (float[2] y) <float a = {2}, float[2] b = {3, 4}> { c = Mul(a, x)"
        " y = Mul(c, b) }",
        "Mul",
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
    "silu-onnxruntime": (
        17, "(float[2] x) => (float[2] y) { s = Sigmoid(x) y = Mul(s, x) }", "QuickGelu",
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
}  # fmt: skip


def test_every_rule_is_tested_and_says_what_it_is_for() -> None:
    assert {rule.name for rule in own_rules()} == set(CASES)
    assert all(rule.about and rule.gains for rule in own_rules())


@pytest.mark.parametrize("name", CASES)
def test_rule_keeps_what_the_model_computes(name: str) -> None:
    opset, body, wanted = CASES[name]
    model = parse(HEAD % opset + body)
    typed = onnx.shape_inference.infer_shapes(model)
    after = rewritten(typed, text_of_rules(rules_of([name])))
    assert " ".join(sorted(operators(after))) == wanted
    used = {name for node in after.graph.node for name in node.input}
    assert {tensor.name for tensor in after.graph.initializer} <= used
    onnx.checker.check_model(after)
    tolerance = 0.02 if name == "without-quantization" else 2e-6
    for old, new in zip(values(model), values(after), strict=True):
        np.testing.assert_allclose(old, new, rtol=tolerance, atol=tolerance)


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
    with pytest.raises(EditError, match="not finite"):
        document.apply("rewrite", rules=text_of_rules(rules_of(["scales"])), at=[[[], "#1"]])
    save(document, tmp_path / "same.onnx")
    assert operators(onnx.load(tmp_path / "same.onnx")) == ["Mul", "Mul"]
