"""The figures of ``dld inspect``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.summary import opset_imports, summarise
from tests.support import models
from tests.support.recorded import Recorded

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1], producer_name: "maker">
nested (float[N, 3, M] x, bool c) => (float[] y, odd)
<float[2, 3] w = {1, 2, 3, 4, 5, 6}>
{
    y = If (c) <
        then_branch = a () => (t) <int64[4] inner = {1, 2, 3, 4}> { t = Identity(x) },
        else_branch = b () => (e) { g = com.microsoft.Gelu(x) e = own.Plugin(g) }
    >
    odd = Identity(w)
}
"""

ARRAYS: list[np.ndarray[Any, Any]] = [
    np.ones((3, 5), np.float32),
    np.zeros((0, 7), np.float16),
    np.ones((2, 2, 2), np.int8),
]


def constants() -> onnx.ModelProto:
    """Return weights in Constant nodes of the main graph and of both branches."""
    nodes = [
        onnx.helper.make_node("Constant", [], [f"c{at}"], value=numpy_helper.from_array(array))
        for at, array in enumerate(ARRAYS)
    ]
    nodes.append(onnx.helper.make_node("Constant", [], ["i"], value_int=3))
    inner = onnx.helper.make_graph(nodes[1:], "inner", [], [onnx.ValueInfoProto(name="c1")])
    condition = onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    graph = onnx.helper.make_graph([nodes[0], condition], "g", [], [])
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=[OPSET])


def unsized(*others: onnx.TensorProto) -> onnx.ModelProto:
    names = onnx.TensorProto(
        name="s", data_type=onnx.TensorProto.STRING, dims=[2], string_data=[b"a", b"bc"]
    )
    graph = onnx.helper.make_graph([], "g", [], [], [names, *others])
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=[OPSET])


def half_known() -> onnx.ModelProto:
    """Return a model with unknown dimensions and ranks, and an input with a default."""
    model = models.parse(models.CHAIN)
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [4]))
    model.producer_version = "1.2"
    return model


def external() -> onnx.ModelProto:
    """Return a model with data files that are not there, one of them used twice."""
    model = models.parse(models.CHAIN)
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
    model.graph.initializer[2].name = "third"
    locations = ("a.bin", "../secret", "a.bin")
    for tensor, location in zip(model.graph.initializer, locations, strict=True):
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    return model


OPSET = onnx.helper.make_opsetid("", 17)
FLOATS = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
MODELS = {
    "nested": lambda: models.parse(NESTED),
    "constants": constants,
    "functions": lambda: models.parse(models.FUNCTIONS),
    "unsized": unsized,
    "partly unsized": lambda: unsized(FLOATS),
    "half known": half_known,
    "external": external,
    "empty": onnx.ModelProto,
}


def test_what_is_told_of_models(recorded: Recorded) -> None:
    made = {}
    for title, model in MODELS.items():
        document = Document(model())
        told = summarise(document)
        assert summarise(document, told.op_types) == told
        quick = summarise(document, constants=False)
        assert (quick.constants, quick.weight_bytes) == (None, told.initializer_bytes)
        assert quick.weight_parameters == told.parameters
        imports = [
            f"{one.domain!r} {one.version} of {'more' if one.newest else one.newest},"
            f" used by {one.used_by}"
            for one in opset_imports(document)
        ]
        texts = [
            f"{told.parameters_text} ({told.weight_parameters}); {told.weights_text}"
            f" ({told.weight_bytes}); {quick.parameters_text}",
            told.constants.text if told.constants else "",
        ]
        values = (f"{name}: {json.dumps(value)}" for name, value in told.to_json().items())
        made[title] = "\n".join([*texts, *imports, *values])
    recorded("summaries", made)


def test_absurd_sizes_are_exact() -> None:
    model = models.parse(models.CHAIN)
    model.graph.initializer[0].dims[:] = [2**40, 2**40]
    assert summarise(Document(model)).parameters == 2**80 + 2
