"""Models to measure with, written to files without holding them in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGE_WEIGHTS = 288
LARGE_WIDTH = 1254
"""288 weights of 1254 x 1254 float32 are 1.81 GB."""


def write_large_model(path: Path, *, weights: int = LARGE_WEIGHTS, width: int = LARGE_WIDTH) -> int:
    """Write a chain of MatMul and Relu into one file and return its size in bytes.

    The bytes are what protobuf would write, payload after payload.
    """
    nodes = []
    for index in range(weights):
        inputs = [f"x{index}", f"layers.{index}.weight"]
        nodes.append(helper.make_node("MatMul", inputs, [f"h{index}"], f"/layers/{index}/MatMul"))
        nodes.append(
            helper.make_node("Relu", [f"h{index}"], [f"x{index + 1}"], f"/layers/{index}/Relu")
        )
    front = helper.make_graph(nodes, "large", [], []).SerializeToString()
    back = onnx.GraphProto(
        input=[helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["N", width])],
        output=[helper.make_tensor_value_info(f"x{weights}", TensorProto.FLOAT, ["N", width])],
    ).SerializeToString()
    payload = np.random.RandomState(0).standard_normal(width * width).astype(np.float32).tobytes()
    heads = [
        _tensor_head(f"layers.{index}.weight", width, len(payload)) for index in range(weights)
    ]
    length = len(front) + len(back) + sum(len(head) + len(payload) for head in heads)
    model = helper.make_model(onnx.GraphProto(), ir_version=8, producer_name="dld benchmarks")
    del model.opset_import[:]
    model.ClearField("graph")
    opset = onnx.ModelProto(opset_import=[helper.make_opsetid("", 17)])
    with path.open("wb") as file:
        file.write(model.SerializeToString() + _field(7, length) + front)
        for index, head in enumerate(heads):
            file.write(head)
            # Every payload differs in its first number, so a mix-up would show.
            file.write(np.float32(index).tobytes() + payload[4:])
        file.write(back + opset.SerializeToString())
        return file.tell()


def write_many_nodes(path: Path, *, nodes: int = 50_000, weights: int = 15_000) -> int:
    """Write a model of many small layers in named blocks and return its size in bytes."""
    random = np.random.RandomState(0)
    # The operators of one block, and which of them have a weight.
    block = (
        *(("MatMul", True), ("Add", True), ("Relu", False), ("Mul", True), ("Sigmoid", False)),
        *(("Add", False), ("Tanh", False), ("Sub", False), ("Abs", False), ("Neg", False)),
    )
    protos: list[onnx.NodeProto] = []
    initializers: list[TensorProto] = []
    previous = skip = "input"
    for index in range(nodes):
        op_type, has_weight = block[index % len(block)]
        scope = f"/model/layers.{index // len(block)}/{'mlp' if index % 10 < 5 else 'attention'}"
        name = f"{scope}/{op_type}_{index % len(block)}"
        inputs = [previous]
        if has_weight and len(initializers) < weights:
            weight = f"{scope[1:].replace('/', '.')}.{index}.weight"
            shape = (8, 8) if op_type == "MatMul" else (8,)
            values = random.standard_normal(shape).astype(np.float32)
            initializers.append(numpy_helper.from_array(values, weight))
            inputs.append(weight)
        elif op_type in ("Add", "Sub", "Mul", "MatMul"):
            inputs.append(skip)
        output = f"{name}_output_0" if index < nodes - 1 else "output"
        protos.append(helper.make_node(op_type, inputs, [output], name))
        if index % len(block) == 0:
            skip = output
        previous = output
    graph = helper.make_graph(
        protos,
        "many_nodes",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [8, 8])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [8, 8])],
        initializers,
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return path.write_bytes(model.SerializeToString())


def write_small_model(path: Path) -> int:
    """Write a model of ten nodes and return its size in bytes."""
    return write_many_nodes(path, nodes=10, weights=3)


def write_weights_model(path: Path, *, megabytes: float = 5.0) -> int:
    """Write a model of 50 layers and about `megabytes` and return its size in bytes."""
    width = max(1, round((megabytes * 1e6 / 50 / 4) ** 0.5))
    return write_large_model(path, weights=50, width=width)


def _tensor_head(name: str, width: int, payload: int) -> bytes:
    """Return what stands before the payload of a weight in the file."""
    tensor = TensorProto(dims=[width, width], data_type=TensorProto.FLOAT, name=name)
    head = tensor.SerializeToString() + _field(9, payload)
    return _field(5, len(head) + payload) + head


def _field(number: int, length: int) -> bytes:
    """Return the tag and the length of a length-delimited protobuf field."""
    return bytes([number << 3 | 2]) + _varint(length)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
