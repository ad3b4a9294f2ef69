"""Kinds of messages declared for one question about a model, so that protobuf answers it fast.

protobuf steps over a field that a kind of message does not declare. It joins the occurrences of a
field that is declared as a single message, so a list in there holds the items of all of them.
Kinds declared for one question are therefore read several times faster than the model itself, and
without a Python object for each node.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from dld_tui.core.files.varints import DELIMITED, tag_of, varint

_PACKAGE = "dld_parts"
_STRING, _MESSAGE, _BYTES = 9, 11, 12
_SINGLE, _REPEATED = 1, 3

TEXT_FIELDS = {"input": 1, "output": 2, "name": 3, "op_type": 4, "domain": 7}
"""The numbers of some fields of NodeProto."""

_KINDS: dict[str, dict[str, tuple[int, int, str]]] = {
    # What may hold payloads, each as it is in the file.
    "Pieces": {
        "graph": (7, _SINGLE, "GraphPieces"),
        "training": (20, _REPEATED, ""),
        "function": (25, _REPEATED, ""),
    },
    "GraphPieces": {
        "node": (1, _REPEATED, ""),
        "initializer": (5, _REPEATED, ""),
        "sparse": (15, _REPEATED, ""),
    },
    # What nodes rarely have: that of all nodes of the main graph, and of all functions, as one.
    "Rare": {"graph": (7, _SINGLE, "Nodes"), "function": (25, _SINGLE, "FunctionNodes")},
    "Nodes": {"node": (1, _SINGLE, "Node")},
    "FunctionNodes": {"node": (7, _SINGLE, "Node")},
    "Node": {"attribute": (5, _SINGLE, "Attribute"), "metadata_props": (9, _REPEATED, "")},
    "Attribute": {"body": (6, _SINGLE, ""), "bodies": (11, _REPEATED, "")},
}
"""The fields of each kind: number in ONNX's messages, how often, and the kind; bytes without."""


@cache
def message_kind(name: str) -> Any:
    """Return the class of one of the kinds."""
    file = b""
    for kind, fields in _KINDS.items():
        message = _text(1, kind)
        for field, (number, label, of) in fields.items():
            of_type = _typed(_MESSAGE, f".{_PACKAGE}.{of}") if of else _typed(_BYTES)
            message += _declared(field, number, label, of_type)
        file += field_bytes(4, message)
    return _class_of(name, file)


@cache
def nodes_as_one() -> Any:
    """Return the class of a model, all nodes of whose main graph are read as one.

    The node's texts are lists, and what else it has is one message each. These are ONNX's own
    messages at the depth at which they are in a model: what is read without an error is what a
    model is read of.
    """
    from dld_tui.core.files import protos as onnx  # late, see `_class_of`

    node = onnx.NodeProto.DESCRIPTOR
    message = _text(1, "AsOne")
    for field in node.fields:
        of = field.message_type
        of_type = _typed(field.type, f".{of.full_name}" if of is not None else "")
        label = _REPEATED if field.name in TEXT_FIELDS else _SINGLE
        message += _declared(field.name, field.number, label, of_type)
    graph = _text(1, "Graph") + _declared(
        "node", 1, _SINGLE, _typed(_MESSAGE, f".{_PACKAGE}.AsOne")
    )
    model = _text(1, "Model") + _declared(
        "graph", 7, _SINGLE, _typed(_MESSAGE, f".{_PACKAGE}.Graph")
    )
    messages = b"".join(field_bytes(4, one) for one in (message, graph, model))
    return _class_of("Model", _text(3, node.file.name) + messages, node.file.serialized_pb)


@cache
def texts_as_one() -> Any:
    """Return the class of a node whose texts are lists, and which has nothing else.

    A text that is not UTF-8 is an error, as it is not in ONNX's own messages.
    """
    message = _text(1, "Texts")
    for name, number in TEXT_FIELDS.items():
        message += _declared(name, number, _REPEATED, _typed(_STRING))
    return _class_of("Texts", field_bytes(4, message) + _text(12, "proto3"))


def _class_of(name: str, content: bytes, *needed: bytes) -> Any:
    # Late: `dld --help` and the like go without protobuf.
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    # By its own messages (`descriptor_pb2`) this would take 40 ms, nearly all for their import.
    pool = DescriptorPool()
    for file in (*needed, _text(1, "dld_parts.proto") + _text(2, _PACKAGE) + content):
        pool.AddSerializedFile(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def field_bytes(number: int, content: bytes) -> bytes:
    """Return a length-delimited field."""
    return varint(tag_of(number, DELIMITED)) + varint(len(content)) + content


def _declared(name: str, number: int, label: int, of_type: bytes) -> bytes:
    """Return the declaration of a field of a message."""
    return field_bytes(2, _text(1, name) + _number(3, number) + _number(4, label) + of_type)


def _typed(kind: int, name: str = "") -> bytes:
    return _number(5, kind) + (_text(6, name) if name else b"")


def _text(field: int, value: str) -> bytes:
    return field_bytes(field, value.encode())


def _number(field: int, value: int) -> bytes:
    return bytes((field << 3,)) + varint(value)
