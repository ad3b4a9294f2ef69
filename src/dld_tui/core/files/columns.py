"""The nodes of a model as bytes, and their texts as lists, read from there and not node by node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from dld_tui.core.files.proto_fields import (
    DELIMITED,
    MODEL_TAGS,
    VARINT,
    read_varint,
    tag_of,
    varint,
)

if TYPE_CHECKING:
    from onnx import NodeProto

    from dld_tui.core.files.source import FileContent

T = TypeVar("T")

# protobuf steps over a field that a kind of message does not declare. It joins the occurrences of a
# field that is declared as a single message, so a list in there holds the items of all of them.
# Kinds declared for one question are therefore read several times faster than the model itself, and
# without a Python object for each node.

_PACKAGE = "dld_parts"
_STRING, _MESSAGE, _BYTES = 9, 11, 12
_SINGLE, _REPEATED = 1, 3

TEXT_FIELDS = {"input": 1, "output": 2, "name": 3, "op_type": 4, "domain": 7}
"""The numbers of some fields of NodeProto."""
_ATTRIBUTE = 5

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
    messages = b"".join(field_bytes(4, kind) for kind in (message, graph, model))
    return _class_of("Model", _text(3, node.file.name) + messages, node.file.serialized_pb)


@cache
def texts_as_one(*, attributes: bool = False) -> Any:
    """Return the class of a node whose texts are lists, and which has nothing else.

    A text that is not UTF-8 is an error, as it is not in ONNX's own messages.

    Args:
        attributes: It has the attributes, too, as bytes.
    """
    message = _text(1, "Texts")
    for name, number in TEXT_FIELDS.items():
        message += _declared(name, number, _REPEATED, _typed(_STRING))
    if attributes:
        message += _declared("attribute", _ATTRIBUTE, _REPEATED, _typed(_BYTES))
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


MARK: Final = "\0"
"""Stands after what a node has in a list; all texts of one such letter are one object."""
_AT_ONCE = 300
"""Nodes that are read as one message: so many that the memory for them is used again."""
_NODE = tag_of(1)


class AskNodesError(Exception):
    """The texts of nodes cannot be read column by column."""


class NodeBytes:
    """Some nodes of the main graph that follow one another, as they are in the file.

    protobuf hands over a whole list at the speed of C, but needs an object for each node to ask it
    for its lists, and one for each of these. So all these nodes are read as one message here, whose
    lists hold the items of all.

    Args:
        model: The model.
        start: Where the first one starts, as a field of the graph.
        stop: Where the last one ends.
        count: How many they are.
        longest: Bytes of the longest one.

    Raises:
        DecodeError: They are none that protobuf reads.
    """

    def __init__(self, model: FileContent, start: int, stop: int, count: int, longest: int) -> None:
        self._model, self._start, self._stop = model, start, stop
        self.count, self.longest = count, longest
        graph = varint(MODEL_TAGS[7]) + varint(stop - start)
        nodes = nodes_as_one().FromString(graph + self._data()).graph.node
        self.has_bodies: bool = nodes.attribute.HasField("g") or bool(nodes.attribute.graphs)
        """Whether an attribute is a graph."""
        self.has_metadata: bool = nodes.HasField("metadata_props")
        """Whether a node has ``metadata_props``."""

    def _data(self) -> bytes:
        # Cut out anew each time: what is kept would be memory that is touched for the first time.
        return self._model[self._start : self._stop]

    def messages(self) -> Sequence[NodeProto]:
        """Return new messages of the nodes."""
        from dld_tui.core.files import protos as onnx  # late: `dld --help` and the like go without

        return onnx.GraphProto.FromString(self._data()).node[:]

    def serialised(self) -> bytes:
        """Return the nodes as protobuf writes them in a graph."""
        from dld_tui.core.files import protos as onnx  # late: `dld --help` and the like go without

        return onnx.GraphProto.FromString(self._data()).SerializeToString()

    def read(self, *fields: str) -> list[list[str]]:
        """Return the items of lists, :data:`MARK` after those of each node.

        Args:
            fields: Some of ``TEXT_FIELDS``. One that is no list may be there several times, too,
                and the last one holds.

        Raises:
            AskNodesError: The mark itself is one of the texts, or one is not UTF-8.
        """
        return _lists(_parsed(self.pieces(), fields), fields, self.count)

    def pieces(self) -> list[bytes]:
        """Return the bytes of each node."""
        nodes: list[bytes] = message_kind("GraphPieces").FromString(self._data()).node[:]
        return nodes


def read_all(nodes: Sequence[bytes]) -> tuple[list[list[str]], list[bytes]]:
    """Return the items of all of ``TEXT_FIELDS`` of serialised nodes, and their attributes.

    After those of each node there is :data:`MARK`, or its byte.

    Raises:
        AskNodesError: As of :meth:`NodeBytes.read`.
    """
    parsed = _parsed(nodes, TEXT_FIELDS, attributes=True)
    return _lists(parsed, TEXT_FIELDS, len(nodes)), parsed.attribute[:]


def _parsed(nodes: Sequence[bytes], fields: Iterable[str], *, attributes: bool = False) -> Any:
    """Return nodes as one message, a mark after each in some of its fields."""
    from google.protobuf.message import DecodeError

    numbers = [TEXT_FIELDS[field] for field in fields] + [_ATTRIBUTE] * attributes
    mark = b"".join(field_bytes(number, MARK.encode()) for number in numbers)
    try:
        return texts_as_one(attributes=attributes).FromString(mark.join([*nodes, b""]))
    except DecodeError:
        raise AskNodesError from None


def _lists(parsed: Any, fields: Iterable[str], count: int) -> list[list[str]]:
    lists: list[list[str]] = [getattr(parsed, field)[:] for field in fields]
    if any(items.count(MARK) != count for items in lists):
        raise AskNodesError
    return lists


class SplitModel(NamedTuple):
    """A model split into its nodes and all else that it holds."""

    rest: bytes
    """The model without these nodes; it may have more, which stand elsewhere."""
    nodes: list[NodeBytes]
    """Those that follow one another in the main graph, as all exporters write them."""


def split_model(model: FileContent) -> SplitModel | None:
    """Take the nodes of the main graph out of a model; None where that is not possible.

    Args:
        model: A serialised model. One that protobuf does not read gives None, or a rest that
            it does not read.
    """
    from google.protobuf.message import DecodeError

    try:
        graph, content, end = _find(model, 0, len(model), MODEL_TAGS[7])
        first, _, _ = _find(model, content, end, _NODE)
        runs = list(_runs_of_nodes(model, first))
        last = runs[-1].stop
        if last > end:
            return None
        nodes = [NodeBytes(model, *run) for run in runs]
    except (LookupError, ValueError, DecodeError):
        return None
    head = model[:graph] + varint(MODEL_TAGS[7]) + varint(end - content - (last - first))
    # Views: each copy of the weights' names would be memory that is touched for the first time.
    whole = memoryview(model)
    return SplitModel(b"".join((head, whole[content:first], whole[last:])), nodes)


def _find(model: FileContent, position: int, end: int, wanted: int) -> tuple[int, int, int]:
    """Return where the first field with a tag starts, where its content starts, and its end.

    Raises:
        LookupError: There is none, or something that no exporter writes comes before it.
        ValueError: A number is too long.
    """
    while position < end:
        start = position
        tag, position = read_varint(model, position)
        if tag & 7 == DELIMITED:
            length, position = read_varint(model, position)
            if tag == wanted and position + length <= end:
                return start, position, position + length
            position += length
        elif tag & 7 == VARINT:
            _, position = read_varint(model, position)
        else:
            break
    raise LookupError


class _Run(NamedTuple):
    """Some nodes that follow one another, see :class:`NodeBytes`."""

    start: int
    stop: int
    number: int
    longest: int


def _runs_of_nodes(model: FileContent, position: int) -> Iterator[_Run]:
    """Yield each :data:`_AT_ONCE` nodes that follow one another, and the last ones.

    Args:
        model: A serialised model.
        position: Where the first node starts.
    """
    size = len(model)
    while position < size:
        start, longest, count = position, 0, 0
        try:
            for count in range(_AT_ONCE):  # noqa: B007 - it is how many there are
                if model[position] != _NODE:
                    break
                length = model[position + 1]
                if length < 0x80:
                    position += length + 2
                elif model[position + 2] < 0x80:
                    length += model[position + 2] - 1 << 7
                    position += length + 3
                else:
                    length, position = read_varint(model, position + 1)
                    position += length
                if length > longest:
                    longest = length
            else:
                count = _AT_ONCE
        except IndexError:
            if position < size:  # else the last node ended the file: cheaper than to ask each time
                raise
        if not count:
            break
        yield _Run(start, position, count, longest)


def items_of_each(items: list[T], mark: Any = MARK) -> list[Sequence[T]]:
    """Return the items of each node, of a list with marks; of the only one it is a tuple."""
    count = items.count(mark)
    if len(items) == count:
        return [()] * count
    if len(items) == 2 * count and items[1::2].count(mark) == count:
        return list(zip(items[::2], strict=True))
    lists: list[Sequence[T]] = []
    start = 0
    for _ in range(count):
        end = items.index(mark, start)
        lists.append(items[start:end] if end != start + 1 else (items[start],))
        start = end + 1
    return lists


def item_of_each(items: list[str]) -> list[str]:
    """Return the last item of each node, "" where it has none, of a list with marks."""
    count = items.count(MARK)
    if len(items) == count:
        return [""] * count
    if len(items) == 2 * count and items[1::2].count(MARK) == count:
        return items[::2]
    return [own[-1] if own else "" for own in items_of_each(items)]


_LARGE = 256 << 10
"""Bytes of a model from which on reading its nodes when they are touched is worth what it takes."""


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

    def __init__(self, model: FileContent) -> None:
        self._content = model

    @property
    def model(self) -> bytes:
        """The model."""
        return self._content[:]

    @cached_property
    def split(self) -> SplitModel:
        """The model without the nodes of its main graph, and these: none of a small model."""
        parts = split_model(self._content) if len(self._content) >= _LARGE else None
        return parts or SplitModel(self.model, [])

    def has_long_piece(self, length: int) -> bool:
        """Return whether a node, weight or function is of so many bytes, or more.

        Where none is, no payload in it is. A model that protobuf does not read counts as one, too:
        who looks at it in detail can say why.

        Args:
            length: In bytes.
        """
        from google.protobuf.message import DecodeError

        if any(nodes.longest >= length for nodes in self.split.nodes):
            return True
        try:
            pieces = message_kind("Pieces").FromString(self.split.rest)
        except DecodeError:
            return True
        graph = pieces.graph
        lists: tuple[Sequence[bytes], ...] = (
            graph.node, graph.initializer, graph.sparse, pieces.function, pieces.training
        )  # fmt: skip
        return any(
            max(map(len, pieces_of_list[:]), default=0) >= length for pieces_of_list in lists
        )

    def nodes(self, *, only_apart: bool = False) -> NodeParts:
        """Return what the nodes have, of a model that protobuf reads.

        Args:
            only_apart: There are none but those that stand apart: the rest need not be looked at.
        """
        nodes = []
        if not only_apart:
            rare = message_kind("Rare").FromString(self.split.rest)
            nodes = [rare.graph.node, rare.function.node]
        return NodeParts(
            any(node.attribute.HasField("body") or node.attribute.bodies for node in nodes)
            or any(nodes.has_bodies for nodes in self.split.nodes),
            any(node.metadata_props for node in nodes)
            or any(nodes.has_metadata for nodes in self.split.nodes),
        )
