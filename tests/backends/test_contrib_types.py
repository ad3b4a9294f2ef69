"""Types that ONNX Runtime infers of its own operators."""

from __future__ import annotations

import onnx
import pytest

from dld_tui.backends.onnxruntime.types import contrib_types
from tests.support.models import parse

pytest.importorskip("onnxruntime")


def test_weights_in_files_of_a_branch_keep_nothing_from_being_inferred() -> None:
    model = parse(
        """
        <ir_version: 9, opset_import: ["" : 18, "com.microsoft" : 1]>
        m (float[1, 4] x, bool c) => (float[1, 4] y)
        {
            a = com.microsoft.QuickGelu (x)
            y = If (c) <
                then_branch = t () => (float[1, 4] p)
                    <float[4] w = {1, 2, 3, 4}> { p = Mul (a, w) },
                else_branch = e () => (float[1, 4] q) { q = Sin (a) }
            >
        }
        """
    )
    (weight,) = model.graph.node[1].attribute[0].g.initializer
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="nowhere.data")
    before = model.SerializeToString()
    (info,) = contrib_types(model)
    assert info.name == "a"
    assert [dim.dim_value for dim in info.type.tensor_type.shape.dim] == [1, 4]
    assert model.SerializeToString() == before


def test_what_onnxruntime_has_in_older_versions_of_ai_onnx_is_inferred() -> None:
    model = parse("""<ir_version: 7, opset_import: ["" : 12]>
    g (float[2, 3] x) => (float[2, 3] y) <float[3] s = {1, 2, 3}>
    { n = LayerNormalization <axis = -1> (x, s) y = Exp(n) }""")
    (known,) = contrib_types(model)
    assert known.name == "n"
    assert [dim.dim_value for dim in known.type.tensor_type.shape.dim] == [2, 3]


def test_operators_of_ai_onnx_ml_without_inference_have_element_types() -> None:
    model = parse("""<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 1]>
    g (float[2, 3] x) => (float[2, 3] y)
    { s = ai.onnx.ml.Scaler<offset=[0.5], scale=[2.0]>(x) y = Exp(s) }""")
    (known,) = contrib_types(model)
    assert (known.name, known.type.tensor_type.elem_type) == ("s", onnx.TensorProto.FLOAT)
    assert not known.type.tensor_type.HasField("shape")
