"""Each rule on models of every opset, of any sizes, and whose tensors have other users.

The result loads with default options, or the rule leaves the model alone; its values are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from dld_tui.core.conversion.opset import ConversionError, convert_opset
from dld_tui.core.model.document import Document
from dld_tui.core.model.rewrite.rule import own_rules, rules_of, text_of_rules
from dld_tui.core.model.rewrite.views import old_meaning
from dld_tui.core.model.shapes.inference import infer
from tests.core.model.rewrite import test_library, test_onnxscript_behaviours
from tests.core.model.rewrite.rewriting import copy_of, drawn, operators, rewritten, session_of
from tests.support.models import parse
from tests.support.tiers import first

_INEXACT = test_library.CHANGE_VALUES
CASES: dict[str, tuple[int, str, str]] = {
    "a Gemm with a bias of zeros": (
        18, "bias-of-zeros", "(float[2, 3] x) => (float[2, 1] y)"
        " <float[3, 1] w = {1, 2, 3}, float[1] b = {0}> { y = Gemm(x, w, b) }",
    ),
    **{name: (opset, name, body) for name, (opset, body, _) in test_library.CASES.items()},
    **{name: (18, rules, body)
       for name, (rules, body, _) in test_onnxscript_behaviours.CASES.items()},
}  # fmt: skip
"""Opset, rules, and model. The operator of the first one takes other inputs in old versions."""
_OPSETS = range(7, 27)


@pytest.mark.parametrize("name", first(1, CASES))
def test_a_rule_holds_in_every_opset(name: str) -> None:
    opset, rules, body = CASES[name]
    for version in _OPSETS:
        model = parse(test_library.HEAD % opset + body)
        try:
            convert_opset(model, version)
        except ConversionError:
            continue
        _require_equal(model, rules, None)


def _unknown(model: onnx.ModelProto) -> None:
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.ClearField("shape")


def _negative(model: onnx.ModelProto) -> None:
    for info in (*model.graph.input, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim:
            dim.dim_value = -1


def _named(model: onnx.ModelProto) -> None:
    for info in (*model.graph.input, *model.graph.output):
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}{axis}"


def _empty(model: onnx.ModelProto) -> None:
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim[:1]:
            dim.dim_value = 0
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")


def _inner(model: onnx.ModelProto) -> list[str]:
    outputs = {info.name for info in model.graph.output}
    return [name for node in model.graph.node for name in node.output if name not in outputs]


def _given_out(model: onnx.ModelProto) -> None:
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in _inner(model))


def _used_twice(model: onnx.ModelProto) -> None:
    for name in _inner(model):
        model.graph.node.append(helper.make_node("Identity", [name], [f"{name}_too"]))
        model.graph.output.add(name=f"{name}_too")


def _captured(model: onnx.ModelProto) -> None:
    names = _inner(model)
    if not names:
        return
    bodies = []
    for branch in ("then", "else"):
        inner = [f"{name}_{branch}" for name in names]
        nodes = [helper.make_node("Identity", [a], [b]) for a, b in zip(names, inner, strict=True)]
        outputs = [onnx.ValueInfoProto(name=name) for name in inner]
        bodies.append(helper.make_graph(nodes, branch, [], outputs))
    model.graph.initializer.append(helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True]))
    outer = [f"{name}_out" for name in names]
    chosen = helper.make_node("If", ["yes"], outer, then_branch=bodies[0], else_branch=bodies[1])
    model.graph.node.append(chosen)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outer)


_VARIANTS = (_unknown, _negative, _named, _empty, _given_out, _used_twice, _captured)


@pytest.mark.parametrize("name", first(1, CASES))
def test_a_rule_holds_whatever_is_around_it(name: str) -> None:
    opset, rules, body = CASES[name]
    for vary in _VARIANTS:
        _require_equal(parse(test_library.HEAD % opset + body), rules, vary)


_WEIGHTS = "<float[2, 2, 1, 1] w = {1, 2, 3, 4}, float[2] s = {2, 3}, float[2] b = {5, 7}"
_IMAGE = "(float[1, 2, 2, 2] x) => (float[1, 2, 2, 2] y) " + _WEIGHTS
_OLD = {
    "an axis of broadcasting": (
        "gemm",
        "(float[2, 3] x) => (float[2, 2] y)"
        " <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, 2}>"
        " { a = MatMul(x, w) y = Add<broadcast = 1, axis = 0>(a, b) }"
    ),
    "statistics of each element": (
        "batch-norm",
        "(float[1, 2, 1, 1] x) => (float[1, 2, 1, 1] y) " + _WEIGHTS + "> { a = Conv(x, w, b)"
        " y = BatchNormalization<is_test = 1, spatial = 0>(a, s, b, b, s) }"
    ),
    "types by name": (
        "casts cast-chains",
        '(float[2, 3] x) => (float[2, 3] y) { a = Cast<to = "FLOAT">(x) b = Cast<to = "DOUBLE">(a)'
        ' c = Cast<to = "FLOAT">(b) y = Neg(c) }'
    ),
    "statistics of channels": (
        "batch-norm",
        f"{_IMAGE}> {{ a = Conv(x, w, b) y = BatchNormalization<is_test = 1>(a, s, b, b, s) }}"
    ),
    "factors of channels": (
        "conv-affine",
        f"{_IMAGE}> {{ a = Conv(x, w) c = Mul<broadcast = 1, axis = 1>(a, s)"
        " y = Add<broadcast = 1>(c, b) }"
    ),
    "pads": (
        "conv-pads",
        f"{_IMAGE}> {{ a = Pad<pads = [0, 0, 0, 0, 0, 0, 0, 0]>(x) y = Conv(a, w) }}"
    ),
    "a bias of zeros": (
        "bias-of-zeros",
        "(float[2, 3] x) => (float[2, 1] y) <float[3, 1] w = {1, 2, 3}, float[1] b = {0}>"
        " { y = Gemm<broadcast = 1>(x, w, b) }"
    ),
    "ones and zeros": (
        "no-ops",
        "(float[2, 3] x) => (float[2, 3] y) <float[1] o = {1}, float[1] z = {0}>"
        " { a = Mul<broadcast = 1>(x, o) b = Sub<broadcast = 1>(a, z) y = Neg(b) }"
    ),
    "limits": (
        "clips",
        "(float[2, 3] x) => (float[2, 3] y)"
        " { a = Clip<max = 6.0>(x) b = Relu(a) y = Clip<min = -1.0, max = 2.0>(b) }"
    ),
    "copies": (
        "identity dropout concat",
        "(float[2, 3] x) => (float[2, 3] y)"
        " { a = Identity(x) b = Dropout<is_test = 1>(a) c = Concat<axis = 0>(b) y = Relu(c) }"
    ),
    "shapes": (
        "reshapes",
        "(float[2, 3] x) => (float[6] y) <int64[2] s = {3, 2}, int64[1] t = {6}>"
        " { a = Reshape(x, s) b = Reshape(a, t) y = Neg(b) }"
    ),
    "a softmax over two axes": (
        "attention attention-onnxruntime",
        "(float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) { k = Transpose<perm = [0, 1, 3, 2]>(x)"
        " s = MatMul(x, k) p = Softmax(s) y = MatMul(p, x) }"
    ),
}  # fmt: skip
"""Models of operators as they were before opset 7, which ONNX Runtime runs in a newer one."""


@pytest.mark.parametrize("name", first(3, _OLD))
def test_a_rule_holds_in_old_opsets(name: str) -> None:
    rules, body = _OLD[name]
    _require_equal_in_old_opsets(body, rules.split())


@pytest.mark.parametrize(
    ("version", "attributes", "old"),
    [
        (6, "spatial = 0", "spatial"), (6, "is_test = 1, spatial = 0", "spatial"),
        (6, "epsilon = 0.5, spatial = 0", "spatial"), (6, "mine = 1, spatial = 0", "spatial"),
        (6, "spatial = 1", ""), (6, "is_test = 1", ""), (6, "epsilon = 0.5", ""),
        (17, "training_mode = 1", ""),
    ],
)  # fmt: skip
def test_what_an_attribute_meant_in_an_old_opset(version: int, attributes: str, old: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : {version}]> g (float[1, 2, 1, 1] x) => (y)
    <float[2] s = {{2, 3}}> {{ y = BatchNormalization<{attributes}>(x, s, s, s, s) }}"""
    assert old_meaning(Document(parse(text)).main.nodes[0]) == old


@pytest.mark.parametrize("version", [10, 11, 13])
def test_a_slice_of_sizes_with_names_stays(version: int) -> None:
    """The inference of onnx gives the result of opset 10 the names of what is sliced."""
    model = parse(
        f'<ir_version: 8, opset_import: ["" : {version}]> g (float[N, W] x) => (float[N, V] y)'
        " <int64[1] b = {1}, int64[1] e = {3}, int64[1] a = {1}>"
        " { s = Slice(x, b, e, a) y = Relu(s) }"
    )
    after = rewritten(infer(model).model, text_of_rules(rules_of(["no-ops"])))
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    (found,) = session_of(after).run(None, {"x": x})
    np.testing.assert_array_equal(found, x[:, 1:3])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", _OLD)
def test_all_rules_hold_in_old_opsets(name: str) -> None:
    _require_equal_in_old_opsets(_OLD[name][1], [rule.name for rule in own_rules()])


def _require_equal_in_old_opsets(body: str, rules: Sequence[str]) -> None:
    for version in (1, 2, 5, 6):
        model = parse(f'<ir_version: 3, opset_import: ["" : {version}]> g {body}')
        try:
            feeds = drawn(session := session_of(_modern(model)))
            before = session.run(None, feeds)
        except Exception:  # noqa: BLE001 - that operator is of another version
            continue
        typed = infer(model).model
        for rule in rules:
            after = rewritten(typed, text_of_rules(rules_of([rule])))
            if operators(after) == operators(typed):
                continue
            for old, new in zip(before, session_of(_modern(after)).run(None, feeds), strict=True):
                np.testing.assert_allclose(old, new, rtol=1e-4, atol=1e-5)


def _modern(model: onnx.ModelProto) -> onnx.ModelProto:
    model = copy_of(model)
    convert_opset(model, 17)
    return model


def _require_equal(
    model: onnx.ModelProto, rules: str, vary: Callable[[onnx.ModelProto], None] | None
) -> None:
    try:
        feeds = drawn(session_of(model))
        if vary is not None:
            vary(model)
        if vary is _empty:
            feeds = drawn(session_of(model))
        before = session_of(model, optimized=True).run(None, feeds)
    except Exception:  # noqa: BLE001 - ONNX Runtime takes no such model, so there is none
        return
    typed = infer(model).model  # onnx itself may end the process
    after = rewritten(typed, text_of_rules(rules_of(rules.split())))
    if _INEXACT & {*rules.split()}:
        session_of(after, optimized=True).run(None, feeds)
        return
    for old, new in zip(before, session_of(after, optimized=True).run(None, feeds), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-4, atol=1e-5)
