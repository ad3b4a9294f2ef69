"""Models with large payloads in every encoding and place, and helpers to cut and join them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from dld_tui.core.files.blobs import Blob, BlobTable
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut

NUMBERS = np.random.default_rng(7)


def joined(pieces: Iterable[bytes | Blob]) -> bytes:
    """Return what the pieces are when written."""
    return b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)


def cut_file(path: Path, threshold: int = 33) -> tuple[bytes, BlobTable]:
    """Return the skeleton of a file and its payloads."""
    blobs = BlobTable()
    return cut(Source.open(path), blobs, threshold=threshold).model, blobs


def raw_tensor(name: str, count: int, dtype: int = TensorProto.FLOAT) -> TensorProto:
    """Return a tensor of one dimension with random little-endian content."""
    width = helper.tensor_dtype_to_np_dtype(dtype).itemsize
    tensor = TensorProto(name=name, data_type=dtype, dims=[count])
    tensor.raw_data = NUMBERS.bytes(count * width)
    return tensor


def typed_tensors() -> list[TensorProto]:
    """Return one tensor for each typed field and for element types that share one."""
    count = 64
    tensors = [raw_tensor("raw", count)]

    def add(name: str, dtype: int, field: str, values: object) -> None:
        tensor = TensorProto(name=name, data_type=dtype, dims=[count])
        getattr(tensor, field).extend(values)
        tensors.append(tensor)

    floats = NUMBERS.standard_normal(count * 2).tolist()
    small = NUMBERS.integers(0, 200, count).tolist()
    signed = NUMBERS.integers(-(2**31), 2**31, count).tolist()
    add("float", TensorProto.FLOAT, "float_data", floats[:count])
    add("complex64", TensorProto.COMPLEX64, "float_data", floats)
    add("double", TensorProto.DOUBLE, "double_data", floats[:count])
    add("complex128", TensorProto.COMPLEX128, "double_data", floats)
    add("int32", TensorProto.INT32, "int32_data", signed)
    add("uint8", TensorProto.UINT8, "int32_data", small)
    add("bool", TensorProto.BOOL, "int32_data", [value % 2 for value in small])
    add("float16", TensorProto.FLOAT16, "int32_data", [15360 + value for value in small])
    add("bfloat16", TensorProto.BFLOAT16, "int32_data", [16256 + value for value in small])
    tensors.append(TensorProto(name="int4", data_type=TensorProto.INT4, dims=[2 * count]))
    tensors[-1].int32_data.extend(small)
    add("int64", TensorProto.INT64, "int64_data", [value * 2**31 for value in signed])
    add("uint32", TensorProto.UINT32, "uint64_data", small)
    add("uint64", TensorProto.UINT64, "uint64_data", [2**63 + value for value in small])
    add("string", TensorProto.STRING, "string_data", [b"text %d" % value for value in small])
    return tensors


def sparse(name: str) -> onnx.SparseTensorProto:
    """Return a sparse tensor with 64 values."""
    values = raw_tensor(name, 64)
    indices = TensorProto(data_type=TensorProto.INT64, dims=[64])
    indices.int64_data.extend(range(0, 6400, 100))
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[6400])


def attributes() -> list[onnx.AttributeProto]:
    """Return attributes of all kinds that may hold a payload."""
    body = helper.make_graph([], "body", [], [], initializer=typed_tensors())
    inner = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    outer = helper.make_graph([inner], "outer", [], [])
    blob = onnx.AttributeProto(name="ep_cache", type=onnx.AttributeProto.STRING)
    blob.s = NUMBERS.bytes(300)
    return [
        blob,
        helper.make_attribute("t", raw_tensor("t", 40)),
        helper.make_attribute("tensors", typed_tensors()),
        helper.make_attribute("g", outer),
        helper.make_attribute("graphs", [outer, body]),
        helper.make_attribute("sparse", sparse("a")),
        helper.make_attribute("sparses", [sparse("b"), sparse("c")]),
        helper.make_attribute("floats", NUMBERS.standard_normal(100).tolist()),
        helper.make_attribute("strings", [b"x" * 50, b"\xff" * 60]),
    ]


def everything() -> onnx.ModelProto:
    """Return a model with every encoding in every place that a payload may be."""
    node = helper.make_node("Custom", ["x"], ["y"], name="node", domain="custom")
    node.attribute.extend(attributes())
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["y"], ["z"])],
        "everything",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N"])],
        initializer=typed_tensors(),
        doc_string="documentation " * 20,
    )
    graph.sparse_initializer.append(sparse("sparse"))
    function = helper.make_function(
        "custom", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 18)]
    )
    function.attribute_proto.extend(attributes())
    model = helper.make_model(graph, functions=[function], producer_name="test")
    model.metadata_props.add(key="large", value="v" * 500)
    training = model.training_info.add()
    training.initialization.CopyFrom(graph)
    training.algorithm.CopyFrom(graph)
    return model


def write_model(path: Path, model: onnx.ModelProto) -> Path:
    """Write a model in protobuf's canonical form."""
    path.write_bytes(model.SerializeToString())
    return path


def weights(path: Path, lengths: Iterable[int]) -> Path:
    """Write a model with float weights of the given lengths in bytes, each negated."""
    tensors = [raw_tensor(f"w{index}", length // 4) for index, length in enumerate(lengths)]
    nodes = [
        helper.make_node("Neg", [tensor.name], [f"v{index}"], name=f"n{index}")
        for index, tensor in enumerate(tensors)
    ]
    outputs = [
        helper.make_tensor_value_info(f"v{index}", TensorProto.FLOAT, list(tensor.dims))
        for index, tensor in enumerate(tensors)
    ]
    graph = helper.make_graph(nodes, "weights", [], outputs, initializer=tensors)
    imports = [helper.make_opsetid("", 18)]
    return write_model(path, helper.make_model(graph, ir_version=10, opset_imports=imports))
