"""Inlined calls compute what they computed before, defaults of their attributes included."""

from __future__ import annotations

import numpy as np
from onnx.reference import ReferenceEvaluator

from dld_tui.core.operators.inlining import inline_local_functions, inline_operators
from tests.support.models import parse

LEAKY = """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
g (float[3] x) => (float[3] y) { y = local.Slope (x) }
<domain: "local", opset_import: ["" : 18]>
Slope <alpha: float = 0.25> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }"""
SELU = """<ir_version: 9, opset_import: ["" : 18]>
g (float[3] x) => (float[3] y) { y = Selu (x) }"""
X = np.array([-2.0, 0.0, 3.0], np.float32)


def test_a_default_of_a_local_function_reaches_its_body() -> None:
    inlined = inline_local_functions(parse(LEAKY))
    assert [node.op_type for node in inlined.graph.node] == ["LeakyRelu"]
    (y,) = ReferenceEvaluator(inlined).run(None, {"x": X})
    np.testing.assert_array_equal(np.asarray(y), [-0.5, 0.0, 3.0])


def test_the_default_of_an_operator_reaches_its_definition() -> None:
    inlined = inline_operators(parse(SELU), [("", "Selu")])
    assert "Selu" not in {node.op_type for node in inlined.graph.node}
    (y,) = ReferenceEvaluator(inlined).run(None, {"x": X})
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    np.testing.assert_allclose(
        np.asarray(y), np.where(X > 0, scale * X, scale * alpha * np.expm1(X)), 1e-5
    )
