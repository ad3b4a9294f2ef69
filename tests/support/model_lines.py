"""A model as lines of text, one for each thing in it, with all that its file says."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor

_INDENT = "  "


def lines_of(model: onnx.ModelProto) -> list[str]:
    """Return a model as lines: its fields, then its graph and functions, indented."""
    return [*_lines(model, "")]


def model_text(model: onnx.ModelProto) -> str:
    """Return all of a model but for what is about its producer."""
    told = onnx.ModelProto()
    told.CopyFrom(model)
    for field in ("producer_name", "producer_version"):
        told.ClearField(field)
    return "\n".join(lines_of(told))


def changes(before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """Yield the lines that an edit took away and added, in their order."""
    for line in difflib.ndiff(lines_of(before), lines_of(after)):
        if line[0] in "+-":
            yield line


def _lines(message: Any, indent: str) -> Iterator[str]:
    """Yield a line for each field, and for what has graphs inside one for each thing in them."""
    for field, value in message.ListFields():
        for one in value if hasattr(value, "extend") else (value,):
            if isinstance(one, (onnx.GraphProto, onnx.FunctionProto)):
                named = one.name
                if isinstance(one, onnx.FunctionProto):
                    named = f"{one.domain}.{named}"
                yield f"{indent}{field.name} {named}"
                yield from _lines(one, indent + _INDENT)
            elif isinstance(one, onnx.NodeProto):
                yield f"{indent}{_node(one)}"
                for attribute in one.attribute:
                    for graph in [*attribute.graphs] or [attribute.g] * attribute.HasField("g"):
                        yield f"{indent}{_INDENT}{attribute.name} = {graph.name}"
                        yield from _lines(graph, indent + _INDENT * 2)
            elif field.name not in ("name", "domain") or message.DESCRIPTOR.name == "ModelProto":
                yield f"{indent}{field.name} {_text(field, one)}"


def _node(node: onnx.NodeProto) -> str:
    operator = ".".join(filter(None, (node.domain, node.op_type)))
    if node.overload:
        operator += f":{node.overload}"
    written = f"[{node.name}] {', '.join(node.output)} = {operator}({', '.join(node.input)})"
    rest = onnx.NodeProto()
    rest.CopyFrom(node)
    for name in ("name", "output", "domain", "op_type", "overload", "input", "attribute"):
        rest.ClearField(name)
    if node.attribute:
        written += f" <{', '.join(map(_attribute, node.attribute))}>"
    return f"{written} {_message(rest)}" if rest.ListFields() else written


def _attribute(attribute: onnx.AttributeProto) -> str:
    """Return an attribute with the field of its value; graphs have lines of their own."""
    known = [(f, v) for f, v in attribute.ListFields() if f.name not in ("name", "type")]
    parts = [f.name if f.name in ("g", "graphs") else _field(f, v) for f, v in known]
    kind = onnx.AttributeProto.AttributeType.Name(attribute.type).lower()
    return f"{attribute.name}: {kind} {' '.join(parts)}".rstrip()


def _message(message: Any) -> str:
    if isinstance(message, onnx.TypeProto) and (known := _type(message)) is not None:
        return known
    if isinstance(message, onnx.AttributeProto):
        return _attribute(message)
    if isinstance(message, onnx.TensorProto):
        return _tensor(message)
    if isinstance(message, onnx.StringStringEntryProto):
        return f"{message.key!r}: {message.value!r}"
    return f"({' '.join(_field(field, value) for field, value in message.ListFields())})"


def _field(field: FieldDescriptor, value: Any) -> str:
    if hasattr(value, "extend"):
        return f"{field.name}=[{', '.join(_text(field, one) for one in value)}]"
    return f"{field.name}={_text(field, value)}"


def _text(field: FieldDescriptor, value: Any) -> str:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _message(value)
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bytes):
        return repr(value)[1:]
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _tensor(tensor: onnx.TensorProto) -> str:
    """Return a tensor with its numbers, of many their sum, and in which field they are."""
    dtype = onnx.TensorProto.DataType.Name(tensor.data_type)
    said = f"{tensor.name or '-'} {dtype}{[*tensor.dims]}"
    rest = onnx.TensorProto()
    rest.CopyFrom(tensor)
    for name in ("name", "data_type", "dims"):
        rest.ClearField(name)
    numbers = next((name for name in _NUMBERS if len(getattr(tensor, name))), "")
    if numbers and tensor.data_type not in (0, 8) and not tensor.external_data:
        try:
            array = onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError):
            return " ".join([said, *(_field(field, value) for field, value in rest.ListFields())])
        if array.size > _MOST:
            said += f" {numbers} of sum {array.astype(np.float64).sum():.6g}"
            rest.ClearField(numbers)
        elif numbers == "raw_data":
            said += f" raw={_numbers(array.tolist())}"
            rest.ClearField(numbers)
    return " ".join([said, *(_field(field, value) for field, value in rest.ListFields())])


_MOST = 24
"""Numbers that are written."""
_NUMBERS = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data")


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _type(kind: onnx.TypeProto) -> str | None:
    """Return the type of a tensor as ONNX text writes it; None where that leaves something out."""
    if not kind.HasField("tensor_type") or kind.denotation:
        return None
    tensor = kind.tensor_type
    if any(dim.denotation for dim in tensor.shape.dim):
        return None
    dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return dtype
    dims = (
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    )
    return f"{dtype}[{', '.join(dims)}]"
