"""The structure of a document as bytes, made in small steps: the event loop is not held up.

Unlike :func:`~dld_tui.core.document.serialise.skeleton_bytes` it only reads the document, its
bytes are not canonical (the graph comes as several fields that every parser merges), and it can
leave out what edits have made doubtful. Payloads stay cut out: it is for tools that read no values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.index import record_name
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import FUNCTION_LISTS, GRAPH_LISTS, Scope
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.files.fields import tag_of, varint

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_STEP = 200
"""Nodes, or other records, of one step: about half a millisecond."""


def snapshot(document: Document, *, doubtful: bool = False) -> Iterator[bytes]:
    """Yield the parts of a serialised model; some are empty, to end a step.

    The document must not change between two steps: whoever drives this starts again when it does.

    Args:
        document: The model.
        doubtful: Whether ``value_info`` and outputs are to have types that edits have made
            doubtful, too (see :attr:`Scope.touched`).
    """
    yield document.model.SerializeToString()  # with the header of the main graph
    graph = _number(onnx.ModelProto, "graph")
    for part in _parts(document.main, doubtful):
        yield _field(graph, part) if part else b""
    functions = _number(onnx.ModelProto, "functions")
    for function in document.functions:
        whole = onnx.FunctionProto()
        whole.CopyFrom(function.proto)  # type: ignore[arg-type]
        for part in _parts(function, doubtful):
            whole.MergeFromString(part)
            yield b""
        yield _field(functions, whole.SerializeToString())


def _parts(scope: Scope, doubtful: bool) -> Iterator[bytes]:
    """Yield the lists of a scope as serialised messages that add up to it."""
    kind = onnx.FunctionProto if scope.is_function else onnx.GraphProto
    for name in FUNCTION_LISTS if scope.is_function else GRAPH_LISTS:
        number = _number(kind, name)
        records = scope.records[name]
        part: list[bytes] = []
        for at, record in enumerate(list(records)):
            if name == "node":
                if record.children:
                    yield b"".join(part)
                    part = []
                    yield from _node_with_bodies(number, record, doubtful)
                else:
                    part.append(_field(number, record.proto.SerializeToString()))
            elif name == "output" and not doubtful and not _is_trusted(scope, record, name):
                part.append(_field(number, _bare(record).SerializeToString()))
            elif name != "value_info" or doubtful or _is_trusted(scope, record, name):
                part.append(_field(number, record.SerializeToString()))
            if at % _STEP == _STEP - 1:
                yield b"".join(part)
                part = []
        yield b"".join(part)


def _node_with_bodies(number: int, node: Node, doubtful: bool) -> Iterator[bytes]:
    whole = onnx.NodeProto()
    whole.CopyFrom(node.proto)  # the lists of its graphs are empty
    for attribute in whole.attribute:
        scopes = node.children.get(text_of(attribute.name), [])
        graphs = list(attribute.graphs) or [attribute.g]
        for scope, graph in zip(scopes, graphs, strict=False):
            for part in _parts(scope, doubtful):
                graph.MergeFromString(part)
                yield b""
    yield _field(number, whole.SerializeToString())


def _is_trusted(scope: Scope, record: onnx.ValueInfoProto, list_name: str) -> bool:
    return not scope.touched or record_name(list_name, record) not in scope.touched


def _bare(record: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Return an output without its type: inference is to tell it, and a check compares."""
    bare = onnx.ValueInfoProto()
    bare.CopyFrom(record)
    bare.ClearField("type")
    return bare


def _number(kind: Any, name: str) -> int:
    return int(kind.DESCRIPTOR.fields_by_name[name].number)


def _field(number: int, data: bytes) -> bytes:
    return varint(tag_of(number)) + varint(len(data)) + data
