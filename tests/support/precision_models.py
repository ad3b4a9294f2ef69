"""Models for searches for the nodes that must stay in fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8


def write_attention(path: Path, blocks: int = 2) -> list[str]:
    """Write a model of attention blocks whose scores overflow fp16 before they are scaled.

    Returns:
        The names of the nodes, of which ``scores_N`` make what is too large and ``scaled_N`` take
        it.
    """
    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    stored = [numpy_helper.from_array(np.array(1e-5, np.float32), "scale")]

    def node(op_type: str, inputs: list[str], name: str) -> str:
        nodes.append(helper.make_node(op_type, inputs, [f"{name}_value"], name=name))
        return f"{name}_value"

    def linear(value: str, name: str, size: float) -> str:
        weights = (size * random.standard_normal((WIDTH, WIDTH))).astype(np.float32)
        stored.append(numpy_helper.from_array(weights, f"{name}_weights"))
        return node("MatMul", [value, f"{name}_weights"], name)

    value = "x"
    for at in range(blocks):
        queries = linear(value, f"queries_{at}", 100.0)
        keys = node("Transpose", [linear(value, f"keys_{at}", 100.0)], f"turned_{at}")
        scores = node("MatMul", [queries, keys], f"scores_{at}")
        scaled = node("Mul", [scores, "scale"], f"scaled_{at}")
        weights = node("Softmax", [scaled], f"softmax_{at}")
        mixed = node("MatMul", [weights, linear(value, f"values_{at}", 0.5)], f"mixed_{at}")
        value = node("Add", [value, mixed], f"added_{at}")
    nodes.append(helper.make_node("Tanh", [value], ["y"], name="last"))
    shape = (4, WIDTH)
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return [one.name for one in nodes]
