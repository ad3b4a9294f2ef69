"""What an edit did to a model, by the onnx package and ONNX Runtime alone.

Plain and slow: messages are compared record by record, and models are run as they are, without any
optimisation. Nothing of the program under test is used here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

Arrays: TypeAlias = "list[np.ndarray[Any, Any]]"
Fact: TypeAlias = "tuple[str, str, bytes]"
"""Where something is, what it is, and its bytes without what is listed on its own."""

_LISTS = (
    "input", "output", "initializer", "sparse_initializer", "value_info", "quantization_annotation",
)  # fmt: skip


def feeds_for(
    model: onnx.ModelProto, seed: int = 0, shapes: dict[str, list[int]] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Return random values for the inputs of a model that no initializer gives.

    Args:
        model: The model; dimensions without a number are 2.
        seed: Tells the values.
        shapes: Other shapes, by the name of an input.
    """
    generator = np.random.default_rng(seed)
    stored = {tensor.name for tensor in model.graph.initializer}
    made = {}
    for info in model.graph.input:
        if info.name in stored:
            continue
        tensor = info.type.tensor_type
        shape = [dim.dim_value if dim.dim_value > 0 else 2 for dim in tensor.shape.dim]
        shape = (shapes or {}).get(info.name, shape)
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if kind == np.bool_:
            value: Any = generator.integers(0, 2, shape).astype(bool)
        elif np.issubdtype(kind, np.integer):
            value = generator.integers(0, 2, shape).astype(kind)
        else:
            value = generator.standard_normal(shape).astype(kind)
        made[info.name] = np.asarray(value)
    return made


def session_of(model: bytes | str) -> Any:
    """Return a session that runs a model as it is: one thread, nothing optimised."""
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model: bytes | str, feeds: dict[str, np.ndarray[Any, Any]]) -> Arrays:
    """Return the outputs of a model for values by the name of an input."""
    return list(session_of(model).run(None, feeds))


def loads(model: bytes, *, full_check: bool = True, session: bool = True) -> str | None:
    """Return why onnx's checker or (with `session`) ONNX Runtime refuses a model, or None."""
    try:
        onnx.checker.check_model(onnx.ModelProto.FromString(model), full_check=full_check)
        if session:
            session_of(model)
    except Exception as error:  # noqa: BLE001 - whatever either of them says
        return f"{type(error).__name__}: {str(error)[:300]}"
    return None


def bits_of(values: Arrays) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Return type, shape and bits of each array: two that are equal here are the same."""
    return [
        (str(v.dtype), v.shape, repr(v.tolist()).encode() if v.dtype == object else v.tobytes())
        for v in (np.asarray(value) for value in values)
    ]


def facts(model: onnx.ModelProto) -> Counter[Fact]:
    """Return all that a model says, as records that are independent of their order.

    Tensors count by their values, wherever and however they are stored.
    """
    found: Counter[Fact] = Counter()
    header = onnx.ModelProto()
    header.CopyFrom(model)
    for field in ("graph", "functions"):
        header.ClearField(field)
    for descriptor, value in header.ListFields():
        items = value if descriptor.is_repeated else [value]
        found.update(("model", descriptor.name, _bytes(item)) for item in items)
    found.update(_of_body(model.graph, "main"))
    for function in model.functions:
        key = f"function {function.domain}:{function.name}:{function.overload}"
        found.update(_of_body(function, key))
    return found


def _of_body(body: Any, where: str) -> Iterator[Fact]:
    for field in _LISTS:
        for record in getattr(body, field, ()) if field not in ("input", "output") else ():
            yield where, field, _record(field, record)
        if field in ("input", "output"):  # matched by their places
            for place, record in enumerate(getattr(body, field)):
                yield where, field, f"{place} ".encode() + _bytes(record)
    header = type(body)()
    header.CopyFrom(body)
    for field in (*_LISTS, "node"):
        if field in header.DESCRIPTOR.fields_by_name:
            header.ClearField(field)
    for descriptor, value in header.ListFields():
        items = value if descriptor.is_repeated else [value]
        for item in items:
            yield where, descriptor.name, _bytes(item)
    holders = 0
    for node in body.node:
        # Bodies belong to the n-th node that has some: its names and outputs may change.
        yield from _of_node(node, where, f"{where} / {holders}")
        holders += any(a.HasField("g") or len(a.graphs) for a in node.attribute)


def _of_node(node: onnx.NodeProto, where: str, place: str) -> Iterator[Fact]:
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    for attribute in plain.attribute:
        attribute.ClearField("g")
        del attribute.graphs[:]
    yield where, "node", plain.SerializeToString()
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from _of_body(attribute.g, f"{place}:{attribute.name}")
        for number, graph in enumerate(attribute.graphs):
            yield from _of_body(graph, f"{place}:{attribute.name}[{number}]")


def _record(field: str, record: Any) -> bytes:
    if field == "initializer":
        return _values(record)
    return _bytes(record)


def _values(tensor: onnx.TensorProto) -> bytes:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return tensor.name.encode() + b" external"
    array = numpy_helper.to_array(tensor)
    content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return f"{tensor.name} {tensor.data_type} {array.shape} ".encode() + content


def _bytes(item: Any) -> bytes:
    return item.SerializeToString() if hasattr(item, "SerializeToString") else repr(item).encode()


def difference(before: onnx.ModelProto, after: onnx.ModelProto) -> tuple[set[Fact], set[Fact]]:
    """Return what only the first model says, and what only the second one says."""
    first, second = facts(before), facts(after)
    return set(first - second), set(second - first)


def fields_touched(before: onnx.ModelProto, after: onnx.ModelProto) -> set[tuple[str, str]]:
    """Return which kinds of records differ, and where."""
    gone, come = difference(before, after)
    return {(where, field) for where, field, _ in gone | come}


def with_text(model: onnx.ModelProto, old: str, new: str) -> onnx.ModelProto:
    """Return a model in which each text that is `old` is `new`, wherever it stands."""
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    waiting: list[Any] = [changed]
    while waiting:
        message = waiting.pop()
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                waiting += list(value) if descriptor.is_repeated else [value]
            elif descriptor.type == descriptor.TYPE_STRING:
                if not descriptor.is_repeated:
                    if value == old:
                        setattr(message, descriptor.name, new)
                    continue
                for place, text in enumerate(value):
                    if text == old:
                        value[place] = new
    return changed
