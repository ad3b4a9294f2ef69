"""The figures of ``dld inspect``."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.summary import ConstantWeights, summarise
from tests.support import models

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1], producer_name: "maker">
nested (float[N, 3, M] x, bool c) => (float[] y, odd)
<float[2, 3] w = {1, 2, 3, 4, 5, 6}>
{
    y = If (c) <
        then_branch = a () => (t) <int64[4] inner = {1, 2, 3, 4}> { t = Identity(x) },
        else_branch = b () => (e) { e = com.microsoft.Gelu(x) }
    >
    odd = Identity(w)
}
"""

ARRAYS: list[np.ndarray[Any, Any]] = [
    np.ones((3, 5), np.float32),
    np.zeros((0, 7), np.float16),
    np.ones((2, 2, 2), np.int8),
]


def test_counts_of_all_scopes() -> None:
    found = summarise(Document(models.parse(NESTED)))
    assert (found.nodes, found.nodes_total, found.subgraphs) == (2, 4, 2)
    assert found.op_types == {"Identity": 2, "Gelu": 1, "If": 1}
    assert list(found.op_types) == ["Identity", "Gelu", "If"]
    assert (found.initializers, found.parameters, found.initializer_bytes) == (2, 10, 24 + 32)
    assert (found.opsets, found.producer) == ({"": 18, "com.microsoft": 1}, "maker")


def test_weights_in_constant_nodes_count() -> None:
    nodes = [
        onnx.helper.make_node("Constant", [], [f"c{at}"], value=numpy_helper.from_array(array))
        for at, array in enumerate(ARRAYS)
    ]
    nodes.append(onnx.helper.make_node("Constant", [], ["i"], value_int=3))
    inner = onnx.helper.make_graph(nodes[1:], "inner", [], [onnx.ValueInfoProto(name="c1")])
    condition = onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    graph = onnx.helper.make_graph([nodes[0], condition], "g", [], [])
    model = onnx.helper.make_model(graph)
    arrays = [ARRAYS[0], *ARRAYS[1:], *ARRAYS[1:]]  # both branches
    size = sum(array.nbytes for array in arrays)
    found = summarise(Document(model))
    assert found.constants == ConstantWeights(5, sum(array.size for array in arrays), size)
    assert (found.initializer_bytes, found.weight_bytes) == (0, size)
    without = summarise(Document(model), constants=False)
    assert (without.constants, without.weight_bytes) == (None, 0)


def test_weights_of_unknown_size_are_told() -> None:
    names = onnx.TensorProto(
        name="s", data_type=onnx.TensorProto.STRING, dims=[2], string_data=[b"a", b"bc"]
    )
    floats = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    graph = onnx.helper.make_graph([], "g", [], [], [names, floats])
    model = onnx.helper.make_model(graph)
    found = summarise(Document(model))
    assert (found.initializer_bytes, found.unsized, found.weights_text) == (8, 1, "at least 8 B")
    del graph.initializer[1]
    model = onnx.helper.make_model(graph)
    assert summarise(Document(model)).weights_text == "size not known"


def test_functions_count_once() -> None:
    found = summarise(Document(models.parse(models.FUNCTIONS)))
    assert [(f.domain, f.name, f.nodes) for f in found.functions] == [("local", "twice", 1)]
    assert (found.nodes, found.nodes_total) == (1, 2)


def test_json_has_the_fields_of_the_contract() -> None:
    data = summarise(Document(models.parse(models.CHAIN))).to_json()
    assert set(data) >= {
        "path", "ir_version", "opsets", "inputs", "outputs", "nodes", "nodes_total", "op_types",
        "initializers", "subgraphs", "functions", "external_data",
    }  # fmt: skip
    assert data["inputs"] == [
        {
            "name": "x",
            "dtype": "float32",
            "shape": ["N", 4],
            "type": "float32[N, 4]",
            "has_default": False,
        }
    ]
    assert data["initializers"] == {"count": 2, "bytes": 24, "parameters": 6, "unsized": 0}
    assert data["external_data"] == {"files": 0, "bytes": 0, "locations": [], "unused": 0}


def test_unknown_dimension_is_null_and_unknown_rank_too() -> None:
    model = models.parse(models.CHAIN)
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[0].Clear()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = summarise(Document(model))
    assert found.inputs[0].to_json()["shape"] == [None, 4]
    assert found.outputs[0].to_json()["shape"] is None


def test_input_with_an_initializer_has_a_default() -> None:
    model = models.parse(models.CHAIN)
    value = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [4])
    model.graph.input.append(value)
    assert [(t.name, t.has_default) for t in summarise(Document(model)).inputs] == [
        ("x", False),
        ("w", True),
    ]


def test_external_data_is_counted_without_being_there() -> None:
    model = models.parse(models.CHAIN)
    for tensor, location in zip(model.graph.initializer, ("a.bin", "../secret"), strict=True):
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    found = summarise(Document(model))
    assert found.external_files == ["../secret", "a.bin"]
    assert found.external_bytes == 24


def test_absurd_sizes_are_exact() -> None:
    model = models.parse(models.CHAIN)
    model.graph.initializer[0].dims[:] = [2**40, 2**40]
    assert summarise(Document(model)).parameters == 2**80 + 2
