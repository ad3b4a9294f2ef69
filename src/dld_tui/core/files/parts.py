"""Questions about a whole model that protobuf answers at the speed of C, without its objects.

protobuf steps over a field that a kind of message does not declare. It joins the occurrences of a
field that is declared as a single message, so a list in there holds the items of all of them.
Kinds declared for one question are therefore read several times faster than the model itself, and
without a Python object for each node.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

_PACKAGE = "dld_parts"
_MESSAGE, _BYTES, _STRING = 11, 12, 9
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
    # What nodes say, all as one.
    "Texts": {name: (number, _REPEATED, "string") for name, number in TEXT_FIELDS.items()},
}
"""The fields of each kind: number in ONNX's messages, how often, and the kind; bytes without."""


@cache
def message_kind(name: str) -> Any:
    """Return the class of one of the kinds."""
    # Late: `dld --help` and the like go without protobuf.
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    # By its own messages (`descriptor_pb2`) this would take 40 ms, nearly all for their import.
    file = _text(1, "dld_parts.proto") + _text(2, _PACKAGE)
    for kind, fields in _KINDS.items():
        message = _text(1, kind)
        for field, (number, label, of) in fields.items():
            declared = _text(1, field) + _number(3, number) + _number(4, label)
            if of in _KINDS:
                of_type = _number(5, _MESSAGE) + _text(6, f".{_PACKAGE}.{of}")
            else:
                of_type = _number(5, _STRING if of else _BYTES)
            message += field_bytes(2, declared + of_type)
        file += field_bytes(4, message)
    pool = DescriptorPool()
    pool.AddSerializedFile(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def field_bytes(number: int, content: bytes) -> bytes:
    """Return a length-delimited field."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return field_bytes(field, value.encode())


def _number(field: int, value: int) -> bytes:
    return bytes((field << 3,)) + _varint(value)


def _varint(value: int) -> bytes:
    return bytes((value & 0x7F | 0x80, value >> 7)) if value > 0x7F else bytes((value,))


class NodeParts(NamedTuple):
    """What nodes of the main graph, or of functions, may have; most models have none of it.

    Asked for in each node, a field that is not there costs protobuf 0.4 µs and 360 bytes for good.
    """

    bodies: bool = True
    """Graphs as attributes."""
    metadata: bool = True
    """``metadata_props``."""


class ModelParts:
    """A serialised ModelProto, about which such questions are asked."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._node_lengths: array[int] | None = None

    def has_long_piece(self, length: int) -> bool:
        """Return whether a node, weight or function is of so many bytes, or more.

        Where none is, no payload in it is. A model that protobuf does not read counts as one, too:
        who looks at it in detail can say why.

        Args:
            length: In bytes.
        """
        from google.protobuf.message import DecodeError

        try:
            pieces = message_kind("Pieces").FromString(self.model)
        except DecodeError:
            return True
        graph = pieces.graph
        self._node_lengths = _lengths(graph.node)
        lists = (graph.initializer, graph.sparse, pieces.function, pieces.training)
        lengths = (self._node_lengths, *map(_lengths, lists))
        return any(max(one, default=0) >= length for one in lengths)

    def nodes(self) -> NodeParts:
        """Return what the nodes have, of a model that protobuf reads."""
        found = message_kind("Rare").FromString(self.model)
        nodes = (found.graph.node, found.function.node)
        return NodeParts(
            any(node.attribute.HasField("body") or node.attribute.bodies for node in nodes),
            any(node.metadata_props for node in nodes),
        )

    def node_lengths(self) -> Sequence[int]:
        """Return the bytes of each node of the main graph, of a model that protobuf reads."""
        if self._node_lengths is None:
            self._node_lengths = _lengths(message_kind("Pieces").FromString(self.model).graph.node)
        return self._node_lengths


def _lengths(pieces: Sequence[bytes]) -> array[int]:
    return array("L", map(len, pieces))
