"""Questions about a whole model that protobuf answers at the speed of C, without its objects.

protobuf steps over a field that a kind of message does not declare. It joins the occurrences of a
field that is declared as a single message, so a list in there holds the items of all of them.
Kinds declared for one question are therefore read several times faster than the model itself, and
without a Python object for each node.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

_PACKAGE = "dld_parts"
_MESSAGE, _BYTES = 11, 12
_SINGLE, _REPEATED = 1, 3

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
def _kind(name: str) -> Any:
    # Late: `dld --help` and the like go without protobuf.
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    # By its own messages (`descriptor_pb2`) this would take 40 ms, nearly all for their import.
    file = _text(1, "dld_parts.proto") + _text(2, _PACKAGE)
    for kind, fields in _KINDS.items():
        message = _text(1, kind)
        for field, (number, label, of) in fields.items():
            of_type = _number(5, _MESSAGE) + _text(6, f".{_PACKAGE}.{of}")
            declared = _text(1, field) + _number(3, number) + _number(4, label)
            message += _part(2, declared + (of_type if of else _number(5, _BYTES)))
        file += _part(4, message)
    pool = DescriptorPool()
    pool.AddSerializedFile(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _part(field: int, content: bytes) -> bytes:
    return bytes((field << 3 | 2,)) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _part(field, value.encode())


def _number(field: int, value: int) -> bytes:
    return bytes((field << 3,)) + _varint(value)


def _varint(value: int) -> bytes:
    return bytes((value & 0x7F | 0x80, value >> 7)) if value > 0x7F else bytes((value,))


def has_long_piece(model: bytes, length: int) -> bool:
    """Return whether a node, weight or function of a model is of so many bytes, or more.

    Where none is, no payload in it is. A model that protobuf does not read counts as one, too:
    who looks at it in detail can say why.

    Args:
        model: A serialised ModelProto.
        length: In bytes.
    """
    from google.protobuf.message import DecodeError

    try:
        pieces = _kind("Pieces").FromString(model)
    except DecodeError:
        return True
    graph = pieces.graph
    lists = (graph.node, graph.initializer, graph.sparse, pieces.function, pieces.training)
    return any(max(map(len, one), default=0) >= length for one in lists)


class NodeParts(NamedTuple):
    """What nodes of the main graph, or of functions, may have; most models have none of it.

    Asked for in each node, a field that is not there costs protobuf 0.4 µs and 360 bytes for good.
    """

    bodies: bool = True
    """Graphs as attributes."""
    metadata: bool = True
    """``metadata_props``."""


def node_parts(model: bytes) -> NodeParts:
    """Return what the nodes of a model have.

    Args:
        model: A serialised ModelProto that protobuf reads.
    """
    found = _kind("Rare").FromString(model)
    nodes = (found.graph.node, found.function.node)
    return NodeParts(
        any(node.attribute.HasField("body") or node.attribute.bodies for node in nodes),
        any(node.metadata_props for node in nodes),
    )
