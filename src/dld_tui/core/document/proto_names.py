"""Names inside node messages that are in no document yet: what they define, and renaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx

from dld_tui.core.document.index import NAME_FIELD, record_name
from dld_tui.core.document.wiretext import set_text, set_texts, text_of, texts_of

_VALUE_LISTS = ("input", "initializer", "sparse_initializer")
_TYPE_LISTS = ("value_info", "output", "quantization_annotation")


def nested_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield node messages and those of their subgraphs."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for graph in graphs_of(node):
            waiting.extend(graph.node)


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the subgraphs of a node message."""
    found = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        found.extend(attribute.graphs)
    return found


def defined_in(graph: onnx.GraphProto) -> set[str]:
    """Return the values that a graph message defines itself."""
    names = {name for node in graph.node for name in texts_of(node.output)}
    for list_name in _VALUE_LISTS:
        names.update(record_name(list_name, record) for record in getattr(graph, list_name))
    return names - {""}


def inner_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the values that the subgraphs of nodes define, at any depth."""
    inner = (graph for node in nested_nodes(nodes) for graph in graphs_of(node))
    return {name for graph in inner for name in defined_in(graph)}


def rename_links(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node message uses and makes, captured uses in its subgraphs included."""
    for side in ("input", "output"):
        links = texts_of(getattr(node, side))
        if any(name in names for name in links):
            set_texts(node, side, (names.get(name, name) for name in links))
    for configuration in getattr(node, "device_configurations", ()):
        for spec in configuration.sharding_spec:
            _rename_field(spec, "tensor_name", names)
    for graph in graphs_of(node):
        own = defined_in(graph)
        outer = {old: new for old, new in names.items() if old not in own}
        if outer:
            _rename_in(graph, outer)


def rename_inside(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Rename values where the subgraphs of node messages define them."""
    for node in list(nested_nodes(nodes)):
        for graph in graphs_of(node):
            own = defined_in(graph)
            inner = {old: new for old, new in names.items() if old in own}
            if inner:
                _rename_in(graph, inner)


def _rename_in(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        rename_links(node, names)
    for list_name in (*_VALUE_LISTS, *_TYPE_LISTS):
        for record in getattr(graph, list_name):
            holder = record.values if list_name == "sparse_initializer" else record
            _rename_field(holder, NAME_FIELD.get(list_name, "name"), names)
    for annotation in graph.quantization_annotation:
        for entry in annotation.quant_parameter_tensor_names:
            _rename_field(entry, "value", names)


def _rename_field(message: Any, field: str, names: Mapping[str, str]) -> None:
    old = text_of(getattr(message, field))
    if old in names:
        set_text(message, field, names[old])
