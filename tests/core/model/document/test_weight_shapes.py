"""The offered shapes are those that onnx's own inference accepts."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.core.model.document.operator_matching import weight_dims


@pytest.mark.parametrize(
    ("op_type", "first", "weights", "settings"),
    [
        ("Conv", [1, 8, 9, 9], 2, {}),
        ("Conv", [1, 8, 9, 9], 2, {"group": 4, "kernel_shape": [5, 1]}),
        ("Conv", [1, 6, 30], 2, {"group": 6}),
        ("ConvTranspose", [1, 8, 9, 9], 2, {"kernel_shape": [2, 2]}),
        ("ConvTranspose", [1, 8, 9, 9], 2, {"group": 2}),
        ("BatchNormalization", [2, 5, 4, 4], 4, {}),
        ("InstanceNormalization", [2, 5, 4], 2, {}),
        ("LayerNormalization", [2, 5, 7], 2, {"axis": -2}),
        ("LayerNormalization", [2, 5, 7], 2, {}),
        ("MatMul", [2, 5, 7], 1, {}),
        ("Gemm", [3, 7], 2, {}),
        ("Gemm", [7, 3], 2, {"transA": 1, "transB": 1}),
        ("PRelu", [1, 6, 4, 4], 1, {}),
        ("Add", [4, 6], 1, {}),
        ("Clip", [4, 6], 2, {}),
    ],
)
def test_a_node_with_offered_weights_is_valid(
    op_type: str, first: list[int], weights: int, settings: dict[str, Any]
) -> None:
    shapes: list[Any] = [tuple(first)]
    for at in range(1, weights + 1):
        dims = weight_dims(op_type, at, [*shapes, None], settings)
        assert dims is not None
        shapes.append(dims)
    names = [f"i{at}" for at in range(len(shapes))]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
        for name, shape in zip(names, shapes, strict=True)
    ]
    node = helper.make_node(op_type, names, ["y"], "n", **settings)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph([node], "g", infos, [out]), opset_imports=[helper.make_opsetid("", 18)]
    )
    found = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    made = found.graph.output[0].type.tensor_type.shape.dim
    assert len(made) == len(first), "the rank is kept, so that what follows stays valid"


def test_nothing_is_offered_where_nothing_tells() -> None:
    assert weight_dims("Conv", 1, [None], {}) is None
    assert weight_dims("Conv", 1, [("N", "C", 4, 4)], {}) is None
    assert weight_dims("Gather", 1, [(3, 4)], {}) is None
