"""Models to compare: random graphs, and a model with all its names replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

_UNARY = ("Relu", "Neg", "Abs", "LeakyRelu")
_BINARY = ("Add", "Mul", "MatMul")


@st.composite
def graphs(draw: st.DrawFn, *, named: bool | None = None) -> onnx.ModelProto:
    """Return a valid model of up to 12 nodes; weights, shared and unused values included."""
    weights = [f"w{index}" for index in range(draw(st.integers(0, 3)))]
    values = ["x", *weights]
    nodes = []
    for index in range(draw(st.integers(1, 12))):
        op_type = draw(st.sampled_from(_UNARY + _BINARY))
        inputs = [draw(st.sampled_from(values)) for _ in range(1 + (op_type in _BINARY))]
        has_name = draw(st.booleans()) if named is None else named
        attributes: dict[str, Any] = {"alpha": 0.5} if op_type == "LeakyRelu" else {}
        name = f"{op_type}_{index}" if has_name else ""
        nodes.append(helper.make_node(op_type, inputs, [f"v{index}"], name, **attributes))
        values.append(f"v{index}")
    made = [node.output[0] for node in nodes]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in outputs],
        [
            numpy_helper.from_array(random.standard_normal((2, 2)).astype(np.float32), name)
            for name in weights
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return another model that says the same."""
    return onnx.ModelProto.FromString(model.SerializeToString())


def with_other_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every node and value of every graph renamed."""
    renamed = copy_of(model)
    _rename(renamed.graph, {}, "")
    return renamed


def _rename(graph: onnx.GraphProto, outer: dict[str, str], mark: str) -> None:
    names = dict(outer)
    own = [entry.name for entry in graph.input] + [entry.name for entry in graph.initializer]
    own += [output for node in graph.node for output in node.output if output]
    names.update({name: f"z{mark}_{number}" for number, name in enumerate(dict.fromkeys(own))})
    for number, node in enumerate(graph.node):
        node.name = f"node{mark}_{number}"
        for side in (node.input, node.output):
            changed = [names.get(name, name) for name in side]
            del side[:]
            side.extend(changed)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names, f"{mark}_{number}{attribute.name}")
    records: tuple[Any, ...] = (graph.input, graph.output, graph.initializer, graph.value_info)
    for record in (entry for entries in records for entry in entries):
        record.name = names.get(record.name, record.name)
