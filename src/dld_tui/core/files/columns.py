"""The texts of many nodes as lists, read from the bytes of a model and not node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from dld_tui.core.files.parts import TEXT_FIELDS, ModelParts, field_bytes, message_kind
from dld_tui.core.files.wire import DELIMITED, MODEL_TAGS, VARINT, read_varint, tag_of

MARK: Final = "\0"
"""Stands after what a node has in a list; all texts of one such letter are one object."""
_AT_ONCE = 1000
"""Nodes that are read as one message: so many that the memory for them is used again."""

Texts: TypeAlias = "list[str | bytes]"
"""As protobuf hands them over: bytes where they are not UTF-8."""


class NodeColumns:
    """The texts of the nodes of the main graph as they are in the file, field by field.

    protobuf hands over a whole list at the speed of C, but needs an object for each node to ask it
    for its lists, and one for each of these. So many nodes are read as one message here, with a
    mark after each of them: its lists hold the items of all.

    Args:
        parts: A serialised model that protobuf reads.
    """

    def __init__(self, parts: ModelParts) -> None:
        self._model = parts.model
        self._lengths = parts.node_lengths()

    def __len__(self) -> int:
        return len(self._lengths)

    def read(self, *fields: str) -> Iterator[list[Texts]]:
        """Yield the items of lists, :data:`MARK` after those of each node, of some nodes at a time.

        Args:
            fields: Some of :data:`TEXT_FIELDS`. One that is no list may be there several times,
                too, and the last one holds.

        Raises:
            AskNodesError: The file has to be read node by node: its nodes do not follow one another
                as all exporters write them, or one of their texts is the mark itself.
        """
        nodes_kind, texts_kind = message_kind("GraphPieces"), message_kind("Texts")
        marks = b"".join(field_bytes(TEXT_FIELDS[field], MARK.encode()) for field in fields)
        end = _first_node(self._model) if len(self) else 0
        for first in range(0, len(self), _AT_ONCE):
            lengths = self._lengths[first : first + _AT_ONCE]
            start, end = end, end + _room_of(lengths)
            try:
                nodes = nodes_kind.FromString(self._model[start:end]).node[:]
            except DecodeError:
                raise AskNodesError from None
            # So many nodes fit in there only where nothing else stands between them.
            if len(nodes) != len(lengths):
                raise AskNodesError
            joined = texts_kind.FromString(marks.join([*nodes, b""]))
            lists = [getattr(joined, field)[:] for field in fields]
            if any(items.count(MARK) != len(nodes) for items in lists):
                raise AskNodesError
            yield lists


class AskNodesError(Exception):
    """The texts of nodes cannot be read column by column."""


def _first_node(model: bytes) -> int:
    """Return where the first node of the main graph starts."""
    position = 0
    for wanted in (MODEL_TAGS[7], tag_of(1)):
        while True:
            start = position
            tag, position = read_varint(model, position)
            if tag & 7 == DELIMITED:
                length, position = read_varint(model, position)
                if tag == wanted:
                    break
                position += length
            elif tag & 7 == VARINT:
                _, position = read_varint(model, position)
            else:
                raise AskNodesError
            if position >= len(model):
                raise AskNodesError
    return start


def _room_of(lengths: Sequence[int]) -> int:
    """Return the bytes of messages of these lengths as fields of another one."""
    room, limit, longest = sum(lengths) + 2 * len(lengths), 1 << 7, max(lengths)
    while longest >= limit:
        room += sum(map(limit.__le__, lengths))
        limit <<= 7
    return room


def items_of_each(items: list[str]) -> list[Sequence[str]]:
    """Return the items of each node, of a list with marks; of the only one it is a tuple."""
    count = items.count(MARK)
    if len(items) == 2 * count and items[1::2].count(MARK) == count:
        return list(zip(items[::2], strict=True))
    found: list[Sequence[str]] = []
    start = 0
    for _ in range(count):
        end = items.index(MARK, start)
        found.append(items[start:end] if end != start + 1 else (items[start],))
        start = end + 1
    return found


def item_of_each(items: list[str]) -> list[str]:
    """Return the last item of each node, "" where it has none, of a list with marks."""
    count = items.count(MARK)
    if len(items) == count:
        return [""] * count
    if len(items) == 2 * count and items[1::2].count(MARK) == count:
        return items[::2]
    return [own[-1] if own else "" for own in items_of_each(items)]
