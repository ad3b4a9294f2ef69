"""What engines of the fake of TensorRT compute: their ONNX model, by onnx's reference evaluator.

See :mod:`tests.support.fake_tensorrt`; ``fake.values`` switches it on.
"""

from __future__ import annotations

import base64
import math
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx

_TYPES: dict[str, Any] = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


def model_text(network: Any) -> str:
    """Return the model that a network was parsed from, with the network's outputs, as text."""
    model = onnx.ModelProto()
    model.CopyFrom(network._model)
    kinds = {info.name: info for info in (*model.graph.value_info, *model.graph.output)}
    names = [tensor.name for tensor in network._outputs]
    del model.graph.output[:]
    model.graph.output.extend(kinds.get(name) or onnx.ValueInfoProto(name=name) for name in names)
    return _text_of(model)


def refit_model(plan: dict[str, Any], weights: list[onnx.TensorProto]) -> None:
    """Give the model of an engine these weights, where they are its own."""
    if not plan["model"]:
        return
    model = onnx.ModelProto()
    model.CopyFrom(_model(plan["model"]))
    new = {tensor.name: tensor for tensor in weights}
    for tensor in model.graph.initializer:
        tensor.CopyFrom(new.get(tensor.name, tensor))
    plan["model"] = _text_of(model)


def _text_of(model: onnx.ModelProto) -> str:
    return base64.b64encode(model.SerializeToString()).decode()


@lru_cache(maxsize=8)
def _model(text: str) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(base64.b64decode(text))


def inferred_shape(plan: dict[str, Any], shapes: dict[str, Any], name: str) -> tuple[int, ...]:
    """Return the shape of an output for the shapes of the inputs; -1 where the data decide it."""
    model = onnx.ModelProto()
    model.CopyFrom(_model(plan["model"]))
    for info in (*model.graph.input, *model.graph.output):
        given = shapes.get(info.name)
        kind = info.type.tensor_type
        if given is not None or info in model.graph.output:
            kind.ClearField("shape")
        for size in given or ():
            kind.shape.dim.add(dim_value=size)
        if given == ():
            kind.shape.SetInParent()
    del model.graph.value_info[:]
    found = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for info in (*found.graph.input, *found.graph.output):
        if info.name == name:
            dims = info.type.tensor_type.shape.dim
            return tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims)
    raise KeyError(name)


def _types_of_inputs(model: onnx.ModelProto) -> dict[str, Any]:
    return {
        info.name: onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        for info in model.graph.input
    }


@lru_cache(maxsize=32)
def _computed(text: str, given: tuple[tuple[str, tuple[int, ...], bytes], ...]) -> Any:
    """Compute what latency loops and other tests ask again: the evaluator takes a second each."""
    from onnx.reference import ReferenceEvaluator  # takes a while

    types = _types_of_inputs(_model(text))
    feed = {name: np.frombuffer(raw, types[name]).reshape(shape) for name, shape, raw in given}
    return ReferenceEvaluator(_model(text)).run(None, feed)


def compute(context: Any, cuda: Any) -> None:
    """Read the inputs from the device, compute, and write the outputs there."""
    plan, state = context._engine._plan, context._maker.state
    state.running = plan
    wanted = _types_of_inputs(_model(plan["model"]))
    feed, outputs = [], []
    for one in plan["io"]:
        if one["mode"] != "INPUT":
            outputs.append(one)
            continue
        kind, shape = np.dtype(_TYPES[one["dtype"]]), context._shapes[one["name"]]
        raw = cuda.read(context._addresses[one["name"]], math.prod(shape) * kind.itemsize)
        value = np.frombuffer(raw, kind).astype(wanted[one["name"]])
        feed.append((one["name"], tuple(shape), value.tobytes()))
    for one, exact in zip(outputs, _computed(plan["model"], tuple(feed)), strict=True):
        value = np.asarray(state.values(one["name"], exact)).astype(_TYPES[one["dtype"]])
        cuda.write(_place(context, one["name"], value), value.tobytes())


def _place(context: Any, name: str, value: Any) -> int:
    """Return where an output goes: its allocator says it, where it has one."""
    address = int(context._addresses[name])
    allocator = context._allocators.get(name)
    if allocator is None:
        return address
    found = allocator.reallocate_output_async(name, address, value.nbytes, 256, 0)
    allocator.notify_shape(name, value.shape)
    return int(found)
