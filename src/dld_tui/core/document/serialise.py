"""A document back to bytes: canonical protobuf, with the records that live in Python lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import FUNCTION_LISTS, GRAPH_LISTS, Scope
from dld_tui.core.files.fields import (
    DELIMITED,
    FIXED64,
    MODEL_TAGS,
    VARINT,
    read_varint,
    tag_of,
    varint,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_GRAPH_FIELD = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_SINGLE_FIELDS = ("name", "doc_string")


def skeleton_bytes(document: Document) -> bytes:
    """Return the model as protobuf writes it, with sentinels where payloads were cut out."""
    model = document.model
    for function in document.functions:
        _fill(function)
    model.functions.extend(function.proto for function in document.functions)  # type: ignore[misc]
    try:
        head = model.SerializeToString()
    finally:
        del model.functions[:]
        for function in document.functions:
            _empty(function)
    graph = _graph_bytes(document.main)
    start, end = _graph_span(head)
    return b"".join((head[:start], _tagged(_GRAPH_FIELD, graph), head[end:]))


def _graph_bytes(scope: Scope) -> bytes:
    """Return the main graph, composed field by field.

    Putting 50,000 nodes back into the message would copy them into its arena, which never shrinks.
    """
    proto: Any = scope.proto
    fields = sorted(
        (proto.DESCRIPTOR.fields_by_name[name].number, name)
        for name in (*GRAPH_LISTS, *_SINGLE_FIELDS)
    )
    parts: list[bytes] = []
    for number, name in fields:
        if name == "node":
            parts += (_tagged(number, _node_bytes(node)) for node in scope.nodes)
        elif name in _SINGLE_FIELDS:
            only = type(proto)()
            if proto.HasField(name):
                only.CopyFrom(proto)
                for descriptor, _ in proto.ListFields():
                    if descriptor.name != name:
                        only.ClearField(descriptor.name)
                only.DiscardUnknownFields()
            parts.append(only.SerializeToString())
        else:
            parts += (_tagged(number, r.SerializeToString()) for r in scope.records[name])
    rest = type(proto)()
    rest.CopyFrom(proto)
    for name in _SINGLE_FIELDS:
        rest.ClearField(name)
    # What is left (metadata_props, fields of newer versions) has higher numbers than all above.
    parts.append(rest.SerializeToString())
    return b"".join(parts)


def _node_bytes(node: Node) -> bytes:
    if not node.children:
        return node.proto.SerializeToString()
    with filled(node):
        return node.proto.SerializeToString()


@contextmanager
def filled(node: Node) -> Iterator[None]:
    """Make the message of a node complete, subgraphs included, for as long as the context lasts."""
    with ExitStack() as stack:
        for scope in node.subgraphs():
            stack.enter_context(filled_scope(scope))
        yield


@contextmanager
def filled_scope(scope: Scope) -> Iterator[None]:
    """Make the message of a subgraph or function complete for as long as the context lasts."""
    _fill(scope)
    try:
        yield
    finally:
        _empty(scope)


def _fill(scope: Scope) -> None:
    """Put the records of a subgraph or function back into its message, those below it first."""
    for child in scope.children():
        _fill(child)
    for name in _lists(scope):
        records = scope.records[name]
        messages = (node.proto for node in scope.nodes) if name == "node" else records
        getattr(scope.proto, name).extend(messages)


def _empty(scope: Scope) -> None:
    for name in _lists(scope):
        del getattr(scope.proto, name)[:]
    for child in scope.children():
        _empty(child)


def _lists(scope: Scope) -> tuple[str, ...]:
    return FUNCTION_LISTS if scope.is_function else GRAPH_LISTS


def _tagged(number: int, data: bytes) -> bytes:
    return varint(tag_of(number)) + varint(len(data)) + data


def _graph_span(head: bytes) -> tuple[int, int]:
    """Return where the (empty) graph field is in a serialised model: start and end."""
    position = 0
    while position < len(head):
        start = position
        tag, position = read_varint(head, position)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, position = read_varint(head, position)
        elif wire_type == DELIMITED:
            length, position = read_varint(head, position)
            position += length
        else:
            position += 8 if wire_type == FIXED64 else 4
        if tag == MODEL_TAGS[_GRAPH_FIELD]:
            return start, position
    raise AssertionError("a document always has a graph")
