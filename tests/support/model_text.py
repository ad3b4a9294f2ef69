"""Whole models and tables as text, to be recorded (tests/support/recorded.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from dld_tui.core.tables.table import Table

_MOST = 24
"""Elements that are written; of more there is their sum."""


def model_text(model: onnx.ModelProto) -> str:
    """Return all of a model but for what is about its producer."""
    opsets = ", ".join(f"{one.domain or 'ai.onnx'} {one.version}" for one in model.opset_import)
    lines = [f"ir {model.ir_version}, {opsets}{_properties(model.metadata_props)}"]
    lines += _graph(model.graph, "")
    for function in model.functions:
        imports = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in function.opset_import)
        names = ", ".join([*function.attribute, *map(_attribute, function.attribute_proto)])
        inputs, outputs = ", ".join(function.input), ", ".join(function.output)
        lines.append(
            f"{function.domain}.{function.name}<{names}>({inputs}) => {outputs}, {imports}"
        )
        lines += [f"  {_value(one)}" for one in function.value_info]
        for node in function.node:
            lines += _node(node, "  ")
    return "\n".join(lines)


def _graph(graph: GraphProto, indent: str) -> Iterator[str]:
    sides = (", ".join(map(_value, side)) for side in (graph.input, graph.output))
    yield f"{indent}{graph.name}({' => '.join(sides)}){_properties(graph.metadata_props)}"
    for tensor in graph.initializer:
        yield f"{indent}  {tensor.name}: {_tensor(tensor)}"
    for sparse in graph.sparse_initializer:
        yield f"{indent}  {sparse.values.name}: sparse {_tensor(sparse.values)}"
    for value in graph.value_info:
        yield f"{indent}  {_value(value)}"
    for annotation in graph.quantization_annotation:
        yield f"{indent}  {annotation.tensor_name}: quantized"
    for node in graph.node:
        yield from _node(node, f"{indent}  ")


def _node(node: NodeProto, indent: str) -> Iterator[str]:
    name = f"[{node.name}] " if node.name else ""
    plain = [one for one in node.attribute if one.type not in (one.GRAPH, one.GRAPHS)]
    domain = f"{node.domain}." if node.domain else ""
    attributes = f"<{', '.join(sorted(map(_attribute, plain)))}>" if plain else ""
    yield (
        f"{indent}{name}{', '.join(node.output)} = {domain}{node.op_type}{attributes}"
        f"({', '.join(node.input)}){_properties(node.metadata_props)}"
    )
    for one in node.attribute:
        for graph in [one.g] if one.type == one.GRAPH else one.graphs:
            yield from _graph(graph, f"{indent}  {one.name}: ")


def _attribute(one: AttributeProto) -> str:
    if one.ref_attr_name:
        return f"{one.name}=@{one.ref_attr_name}"
    value = onnx.helper.get_attribute_value(one)
    if one.type == one.TENSOR:
        return f"{one.name}={_tensor(value)}"
    if one.type == one.SPARSE_TENSOR:
        return f"{one.name}=sparse {_tensor(value.values)}"
    if one.type in (one.FLOAT, one.FLOATS):
        value = np.float32(value).tolist()
    return f"{one.name}={_short(value)}"


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_short, value))}]"
    return str(value)


def _tensor(tensor: TensorProto) -> str:
    kind = f"{TensorProto.DataType.Name(tensor.data_type).lower()}{list(tensor.dims)}"
    if tensor.data_location == TensorProto.EXTERNAL:
        return f"{kind} in a file"
    array = numpy_helper.to_array(tensor).ravel()
    if array.size > _MOST:
        return f"{kind} sum {_short(float(array.astype(np.float64).sum()))}"
    if array.dtype.kind not in "biufO":
        array = array.astype(np.float32)
    return f"{kind} {{{', '.join(map(_short, array.tolist()))}}}"


def _value(value: ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value")
    if kind is None:
        return value.name
    if kind != "tensor_type":
        return f"{value.name}: {kind}"
    tensor = value.type.tensor_type
    name = TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"{value.name}: {name}"
    sizes = (
        one.dim_param or (str(one.dim_value) if one.HasField("dim_value") else "?")
        for one in tensor.shape.dim
    )
    return f"{value.name}: {name}[{', '.join(sizes)}]"


def _properties(properties: Iterable[onnx.StringStringEntryProto]) -> str:
    texts = [f"{one.key}={one.value}" for one in properties]
    return f" {{{', '.join(texts)}}}" if texts else ""


def table_text(table: Table[Any]) -> str:
    """Return all of a table: its columns, and of each row the texts, values, keys and styles."""
    lines = [f"table {table.name}: {table.title}"]
    for one in table.columns:
        place = f"{one.width or '-'} {one.least} {one.priority} {one.keep} {one.is_right}"
        falls = f"{one.falls} {one.sortable} {one.pinned} {one.shown} {one.heat}"
        lines.append(f"  {one.key} | {one.title} | {one.unit.name} {place} {falls} | {one.help}")
    for row in table.rows:
        lines.append("  - " + " | ".join(one.shown_text(row) for one in table.columns))
        values = [one.unit.plain(one.value(row)) for one in table.columns]
        orders = [one.order_of(row) for one in table.columns]
        lines.append(f"    {_texts(values)}; {_texts(orders)}")
        lines.append(f"    {_texts([one.style_of(row) for one in table.columns])}")
    return "\n".join(lines)


def _texts(values: Iterable[object]) -> str:
    return ", ".join(_short(one) for one in values)
