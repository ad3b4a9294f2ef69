"""Inlined calls compute what they computed before, defaults of their attributes included."""

from __future__ import annotations

import numpy as np
from onnx.reference import ReferenceEvaluator

from dld_tui.core.model.document.inlining import inline_local_functions
from tests.support.models import parse

LEAKY = """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
g (float[3] x) => (float[3] y) { y = local.Slope (x) }
<domain: "local", opset_import: ["" : 18]>
Slope <alpha: float = 0.25> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }"""
X = np.array([-2.0, 0.0, 3.0], np.float32)


def test_a_default_of_a_local_function_reaches_its_body() -> None:
    inlined = inline_local_functions(parse(LEAKY))
    assert [node.op_type for node in inlined.graph.node] == ["LeakyRelu"]
    (y,) = ReferenceEvaluator(inlined).run(None, {"x": X})
    np.testing.assert_array_equal(np.asarray(y), [-0.5, 0.0, 3.0])
