"""Each rule on models of every opset, of unknown sizes, and whose tensors have other users.

The result loads with default options, or the rule leaves the model alone; its values are equal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from dld_tui.core.conversion.opset import ConversionError, convert_opset
from dld_tui.core.document.rewrite.rule import rules_of, text_of_rules
from dld_tui.core.document.types.inference import infer
from tests.core.document.rewrite import test_library, test_onnxscript_behaviours
from tests.core.document.rewrite.rewriting import drawn, rewritten, session_of
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


_VARIANTS = (_unknown, _negative, _named, _given_out, _used_twice, _captured)


@pytest.mark.parametrize("name", first(1, CASES))
def test_a_rule_holds_whatever_is_around_it(name: str) -> None:
    opset, rules, body = CASES[name]
    for vary in _VARIANTS:
        _require_equal(parse(test_library.HEAD % opset + body), rules, vary)


def _require_equal(
    model: onnx.ModelProto, rules: str, vary: Callable[[onnx.ModelProto], None] | None
) -> None:
    try:
        feeds = drawn(session_of(model))
        if vary is not None:
            vary(model)
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
