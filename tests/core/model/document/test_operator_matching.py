"""Values are held against the signature of the operator that is to take them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.operator_matching import (
    bound_types,
    formal_mismatch,
    is_required,
    mismatch,
    schema_of,
    weight_dims,
)
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.operators.schema import Formal
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "far" : 1]>
g (float[N, 4] x, float16[N, 4] h, int64[2] shape) => (float[N, 4] y)
{
    [add] y = Add(x, x)
    [reshape] r = Reshape(x, shape)
    [join] j = Concat<axis = 0>(x, x)
    [clip] c = Clip(x)
    [far] f = far.Thing(x)
    [size] s = Size(h)
}
"""


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, Node]:
    document = Document.open(models.write(tmp_path, MODEL))
    return {node.name: node for node in document.main.nodes}


def tensor(dtype: str | None, container: str = "") -> ValueType:
    return ValueType(dtype, None, container)


@pytest.mark.parametrize(
    ("node", "index", "value", "reason"),
    [
        ("add", 0, tensor("float32"), None),
        ("add", 0, tensor("bool"), "A takes .* and .* more types, not bool"),
        ("add", 0, tensor("float16"), "float16, but B is float32: they must be the same"),
        ("add", 2, tensor("float32"), "Add takes at most 2 inputs"),
        ("add", 0, tensor(None), None),
        ("add", 0, None, None),
        ("reshape", 1, tensor("int64"), None),
        ("reshape", 1, tensor("int32"), "shape takes int64, not int32"),
        ("join", 5, tensor("float16"), "inputs 0 is float32"),
        ("join", 5, tensor("float32"), None),
        ("far", 7, tensor("string"), None),
        ("size", 0, tensor("float32", "sequence"), "not seq"),
        ("size", 0, tensor("int64", "map"), None),
    ],
)
def test_mismatch(
    nodes: dict[str, Node], node: str, index: int, value: ValueType | None, reason: str | None
) -> None:
    found = mismatch(nodes[node], index, value)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(reason, found)


def test_what_is_required(nodes: dict[str, Node]) -> None:
    needed = {name: [is_required(node, at) for at in range(3)] for name, node in nodes.items()}
    assert needed["add"] == [True, True, False]
    assert needed["clip"] == [True, False, False]
    assert needed["join"] == [True, False, False]
    assert needed["far"] == [False, False, False]


def test_the_schema_is_of_the_version_that_holds_in_the_scope() -> None:
    text = MODEL.replace("Add(x, x)", "far.Old(x)").rstrip()
    for imports in ('"" : 11, "far" : 1', '"far" : 1'):
        function = (
            f'<domain: "far", opset_import: [{imports}]> Old (x) => (y) {{ y = ReduceSum(x) }}'
        )
        (old,) = Document(models.parse(f"{text}\n{function}")).functions
        (schema,) = map(schema_of, old.nodes)
        assert schema is not None
        assert schema.since_version == (11 if "11" in imports else 13)


def formals(name: str) -> Sequence[Formal]:
    found = schema_for(name, "", 14)
    assert found is not None
    return found.inputs


def test_a_type_that_does_not_fit_is_told() -> None:
    first, second = formals("Add")
    assert formal_mismatch(first, "tensor(float)") is None
    assert formal_mismatch(first, None) is None
    assert formal_mismatch(None, "tensor(float)") is None
    refused = formal_mismatch(first, "tensor(string)")
    assert refused is not None
    assert refused.startswith("is string; takes ")
    bound = bound_types([first, second], ["tensor(float)", None])
    assert bound == {"T": "tensor(float)"}
    assert formal_mismatch(second, "tensor(int64)", bound) == "is int64; T is float32"
    assert formal_mismatch(second, "tensor(float)", bound) is None


def test_types_that_differ_are_not_bound_to_each_other() -> None:
    shape = formals("Reshape")[1]
    assert bound_types([shape, None], ["tensor(int64)", "tensor(float)"]) == {}
    assert formal_mismatch(shape, "tensor(float)") == "is float32; takes int64"


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
        ("PRelu", [6], 1, {}),
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
