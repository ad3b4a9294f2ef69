"""What inference and the rules about operands find, and that good models have none of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from dld_tui.core.checks.findings import PREDICTED, Prediction
from dld_tui.core.checks.prediction import all_findings, predict
from dld_tui.core.document.document import Document
from dld_tui.core.document.types.value_types import ValueType
from tests.support import decoders, models

Attributes = dict[str, object]


def said(text: str, change: Callable[[onnx.ModelProto], object] | None = None) -> list[Prediction]:
    model = models.parse(text)
    if change is not None:
        change(model)
    return predict(model)[1]


def graph(
    body: str, inputs: str = "float[1, 3, 8, 8] x", weights: str = "", opset: int = 18
) -> str:
    """Return a model; weights without values are inputs, with values initializers."""
    each = re.findall(r"[^,{[]+(?:\[[^]]*\])?[^,{]*(?:{[^}]*})?", weights)
    values = ", ".join(part for part in each if "=" in part)
    inputs = ", ".join([inputs, *(part for part in each if "=" not in part)])
    return f"""<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1, "ai.onnx.ml" : 3]>
    g ({inputs}) => (y) {f"<{values}>" if values else ""} {{ {body} }}"""


SMALL = "float[4, 3, 3, 3] w"
VALUE, SHAPE = "attribute-value", "operand-shape"
CONV = "float[4, 3, 3, 3] w"
WRONG = {
    "channels": (graph("y = Conv(x, w)", weights="float[4, 2, 3, 3] w"), SHAPE, "has 3"),
    "group": (graph("y = Conv<group=2>(x, w)", weights=CONV), "operand-shape", "weight takes 6"),
    "no group": (graph("y = Conv<group=0>(x, w)", weights=CONV), "attribute-value", "group is 0"),
    "bias": (graph("y = Conv(x, w, b)", weights=CONV + ", float[3] b"), SHAPE, "3 elements"),
    "auto_pad": (graph('y = Conv<auto_pad="FOO">(x, w)', weights=CONV), "attribute-value", "'FOO'"),
    "kernel": (
        graph("y = Conv<kernel_shape=[5, 5]>(x, w)", weights=CONV), "operand-shape", "kernel_shape"
    ),
    "window": (
        graph("y = Conv(x, w)", "float[1, 3, 2, 2] x", CONV), "operand-shape", "does not fit"
    ),
    "rank": (graph("y = Conv(x, w)", weights="float[4, 3, 3] w"), "onnx:shape-inference", "Conv"),
    "transposed": (
        graph("y = ConvTranspose(x, w)", weights="float[4, 2, 3, 3] w"), "operand-shape", "takes 4"
    ),
    "norm": (
        graph("y = BatchNormalization(x, s, s, s, s)", weights="float[4] s"),
        "onnx:shape-inference", "BatchNorm",
    ),
    "layer norm": (
        graph("y = LayerNormalization(x, s)", weights="float[9] s"), "operand-shape", "Scale is [9]"
    ),
    "reshape": (
        graph("y = Reshape(x, s)", weights="int64[2] s = {5, 7}"), SHAPE, "cannot be reshaped"
    ),
    "reshape a computed shape": (
        graph("d = Shape<start=0, end=1>(x) s = Concat<axis=0>(d, t) y = Reshape(x, s)",
              weights="int64[1] t = {191}"),
        "operand-shape", "cannot be reshaped",
    ),
    "reshape with a free dimension": (
        graph("y = Reshape(x, s)", "float[N, 8] x", "int64[3] s = {0, 3, 3}"), SHAPE, "[?, 8]"
    ),
    "broadcast": (graph("y = Add(x, b)", weights="float[5] b"), "onnx:shape-inference", "Add"),
    "perm": (graph("y = Transpose<perm=[0, 1]>(x)"), "attribute-value", "4 dimensions"),
    "joined": (
        graph("y = Concat<axis=1>(x, z)", "float[1, 3, 8, 8] x, float[1, 3, 8, 9] z"),
        "onnx:shape-inference", "Concat",
    ),
    "axis": (graph("y = Softmax<axis=7>(x)"), "onnx:shape-inference", "Softmax"),
    "index": (
        graph("y = Gather<axis=1>(x, i)", weights="int64[2] i = {0, 3}"), "operand-shape", "Index 3"
    ),
    "cast": (graph("y = Cast<to=99>(x)"), "onnx:shape-inference", "Cast"),
    "resize": (
        graph('y = Resize<mode="nearestX">(x, , s)', weights="float[4] s = {1.0, 1.0, 2.0, 2.0}"),
        "attribute-value", "nearestX",
    ),
    "pad mode": (graph('y = Pad<mode="FOO">(x, p)', weights="int64[8] p"), VALUE, "FOO"),
    "pool": (
        graph("y = MaxPool<kernel_shape=[2, 2], pads=[2, 0, 0, 0]>(x)"), "attribute-value", "pads"
    ),
    "lstm": (
        graph("y, h = LSTM<hidden_size=4>(x, w, r)", "float[5, 1, 3] x",
              "float[1, 16, 3] w, float[1, 16, 5] r"),
        "operand-shape", "[1, 16, 4]",
    ),
    "layout": (
        graph("y = GRU<hidden_size=4, layout=1>(x, w, r)", "float[1, 5, 3] x",
              "float[1, 12, 3] w, float[1, 12, 4] r"),
        "runtime-operator", "layout",
    ),
    "steps": (
        graph("y = Slice(x, s, e, a, t)",
              weights="int64[1] s, int64[1] e = {2}, int64[1] a, int64[1] t = {0}"),
        "operand-shape", "step",
    ),
    "normalizer": (
        graph('y = ai.onnx.ml.Normalizer<norm="L3">(x)', "float[1, 4] x"), "attribute-value", "L3"
    ),
    "after an operator of ONNX Runtime": (
        graph("a = com.microsoft.FastGelu(x) y = MatMul(a, w)", "float[2, 4] x",
              "float[5, 3] w"),
        "operand-shape", "4 is not 5",
    ),
    "operator set": (graph("y = com.example.Foo(x)"), "runtime-operator", "com.example"),
    "kernel of a type": (graph("y = MatMul(x, x)", "bfloat16[4, 4] x"), "no-kernel", "bfloat16"),
    "kernel of a part": (graph("y = Bernoulli(x)", "double[4] x", opset=22), "no-kernel", "Unif"),
    "opset": (graph("y = Relu(x)", opset=99), "runtime-version", "99"),
    "function": (
        """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2, 4] x, float[5, 3] w) => (y) { y = f.Twice(x, w) }
        <domain: "f", opset_import: ["" : 18]>
        Twice (a, b) => (c) { d = Relu(a) c = MatMul(d, b) }""",
        "onnx:shape-inference", "MatMul",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(name: str) -> None:
    text, rule, part = WRONG[name]
    found = said(text)
    assert rule in {entry.rule for entry in found}
    assert any(part in entry.remark.message for entry in found if entry.rule == rule)


def test_every_rule_is_tried() -> None:
    # What takes too long is in tests/core/document/test_inference_limits.py.
    assert {rule for _, rule, _ in WRONG.values()} == PREDICTED - {"onnx:inference-limit"}


GOOD = {
    "conv": graph("y = Conv<group=3>(x, w, b)", weights="float[6, 1, 3, 3] w, float[6] b"),
    "unknown": graph("y = Conv(x, w)", "float[N, C, H, W] x", CONV),
    "transposed": graph(
        "y = ConvTranspose<group=3>(x, w, b)", weights="float[3, 2, 3, 3] w, float[6] b"
    ),
    "reshape": graph("y = Reshape(x, s)", "float[N, 8] x", "int64[3] s = {0, 2, -1}"),
    "reshape of nothing": graph("y = Reshape(x, s)", "float[0, 8] x", "int64[2] s = {0, 4}"),
    "half": graph("y = Conv(x, w)", "float16[1, 3, 8, 8] x", "float16[4, 3, 3, 3] w"),
    "a scalar in a list": graph("y = Clip(x, l)", weights="float[1] l"),
    "same": graph('y = MaxPool<kernel_shape=[9, 9], auto_pad="SAME_UPPER">(x)'),
    "scales": graph("y = Resize(x, , s)", weights="float[4] s = {1.0, 1.0, 2.0, 2.0}"),
    "another order": graph("y = Neg(a) a = Relu(x)"),
    "made of others": graph("y = Bernoulli(x)", "float[4] x"),
    "a default of a function": """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2, 4] x) => (y) { y = f.Scale(x) }
        <domain: "f", opset_import: ["" : 18]> Scale <by: float = 0.5> (a) => (c)
        { b = Constant<value_float: float = @by>() c = Mul(a, b) }""",
    "a default of a function in a function": """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2, 4] x) => (y) { y = f.Twice(x) }
        <domain: "f", opset_import: ["" : 18]> Scale <by: float = 0.5> (a) => (c)
        { b = Constant<value_float: float = @by>() c = Mul(a, b) }
        <domain: "f", opset_import: ["" : 18, "f" : 1]> Twice (a) => (c)
        { b = f.Scale(a) c = f.Scale(b) }""",
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_good_has_no_finding(name: str) -> None:
    assert said(GOOD[name]) == []


def test_every_fault_is_told_and_leads_to_its_node() -> None:
    text = graph(
        "a = Conv(x, w) b = Cast<to=99>(x) c = Transpose<perm=[0, 1]>(x) y = Neg(x)",
        weights="float[4, 2, 3, 3] w",
    )
    assert sorted((entry.remark.place, entry.remark.index) for entry in said(text)) == [
        ([], 0), ([], 1), ([], 2),
    ]  # fmt: skip


def test_a_fault_in_a_function_leads_to_its_node() -> None:
    (entry,) = said(WRONG["function"][0])
    assert (entry.remark.place, entry.remark.index) == (["function", 0], 1)


def test_a_declared_shape_that_is_wrong_is_no_fault() -> None:
    """ONNX Runtime goes by what operators make."""

    def declare(model: onnx.ModelProto) -> None:
        model.graph.value_info.append(oh.make_tensor_value_info("a", 1, [7]))
        model.graph.output[0].CopyFrom(oh.make_tensor_value_info("y", 1, [1, 1]))

    assert said(graph("a = Relu(x) y = Neg(a)"), declare) == []


def test_the_same_of_many_nodes_is_told_once() -> None:
    text = graph("a = com.example.Foo(x) b = com.example.Foo(a) y = com.example.Foo(b)")
    (entry,) = said(text)
    assert entry.remark.message.endswith("(and 2 more)")


def test_attributes_of_other_types_are_left_to_another_rule() -> None:
    bodies = (
        'y = Conv<group="FOO">(x, w)',
        'y = Concat<axis="FOO">(x, x)',
        'y = Shape<end="a">(x)',
    )
    for body in bodies:
        rules = {entry.rule for entry in said(graph(body, weights=SMALL))}
        assert rules <= {"onnx:shape-inference"}


def test_sizes_that_would_take_all_memory_are_not_worked_out() -> None:
    weights = (
        "int64[2] s = {1000000, 1000000}, int64 l = {1000000000000}, int64 o = {1}, int64 z = {0}"
    )
    assert said(graph("a = Range(z, l, o) y = ConstantOfShape(s)", weights=weights)) == []


def test_types_that_were_inferred_before_a_conversion_do_not_count(tmp_path: Path) -> None:
    document = Document.open(decoders.grouped(tmp_path / "decoder.onnx"))
    document.main.inferred["layers.0.sum"] = ValueType("bfloat16", None)

    assert [one.message for one in all_findings(document) if one.level == "error"] == []
    document.close()
