"""A graph and its first arrangement as bytes: numbers in columns, texts as JSON.

They travel to a child process and back (:mod:`dld_tui.core.model.graph.layout_process`). Objects of
50,000 vertices would take longer to pickle than to arrange.
"""

from __future__ import annotations

import gc
import json
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from dld_tui.core.model.graph.folding import Arrangement, Overview
from dld_tui.core.model.graph.graph import Graph, Net
from dld_tui.core.model.graph.rails import Rails

_LENGTHS = struct.Struct("<Q")
_NARROW = 62
"""Columns up to which a row of rails is one number of 64 bits."""


def graph_bytes(graph: Graph) -> bytes:
    """Return the data that order, rails and folds depend on, without names of tensors."""
    nets = graph.nets
    return _pack([
        _text_bytes([graph.labels, graph.kinds, graph.paths or graph.names]),
        _ints_bytes([net[1] for net in nets]),
        *_lists_bytes([net[2] for net in nets]),
    ])  # fmt: skip


def graph_of(data: bytes) -> Graph:
    """Return a graph without what :func:`graph_bytes` left out.

    Raises:
        ValueError: These are not its bytes.
    """
    texts, sources, *targets = _unpack(data)
    labels, kinds, names = json.loads(texts)
    graph = Graph(labels, names, kinds, [""] * len(labels))
    ends = zip(repeat(""), _ints_of(sources), _lists_of(*targets), repeat(""))
    graph.nets += map(Net._make, ends)
    return graph


def arranged_bytes(arranged: Arrangement) -> bytes:
    """Return an arrangement as bytes."""
    links = arranged.links
    return _pack([
        _text_bytes(arranged.folds),
        *_rails_parts(arranged.rails),
        *_rails_parts(arranged.seen),
        _ints_bytes([link[0] for link in links]),
        _ints_bytes([link[1] for link in links]),
        *_lists_bytes([link[2] for link in links]),
    ])  # fmt: skip


def arranged_of(data: bytes) -> Arrangement:
    """Return what :func:`arranged_bytes` wrote.

    Raises:
        ValueError: These are not its bytes.
    """
    folds, *parts = _unpack(data)
    rails = [_rails_of(parts[at : at + _RAILS_PARTS]) for at in (0, _RAILS_PARTS)]
    nets, sources, *targets = parts[2 * _RAILS_PARTS :]
    links = zip(_ints_of(nets), _ints_of(sources), _lists_of(*targets), strict=True)
    return Arrangement(rails[0], json.loads(folds), list(links), rails[1])


def _pack(parts: Sequence[bytes]) -> bytes:
    """Return some parts as one, each with its length before it."""
    return b"".join(chain.from_iterable((_LENGTHS.pack(len(part)), part) for part in parts))


def _unpack(data: bytes) -> list[bytes]:
    """Return the parts that :func:`_pack` joined.

    Raises:
        ValueError: The data does not end where a part does.
    """
    parts = []
    at = 0
    while at < len(data):
        if len(data) - at < _LENGTHS.size:
            raise ValueError("the data ends in the length of a part")
        (length,) = _LENGTHS.unpack_from(data, at)
        at += _LENGTHS.size
        if len(data) - at < length:
            raise ValueError("the data ends in a part")
        parts.append(data[at : at + length])
        at += length
    return parts


def _text_bytes(data: Any) -> bytes:
    """Return JSON data as bytes; any untrusted text is restored exactly."""
    return json.dumps(data).encode("ascii")


def _ints_bytes(numbers: Iterable[int]) -> bytes:
    """Return small numbers as bytes."""
    return array("i", numbers).tobytes()


def _ints_of(data: bytes) -> array[int]:
    """Return the numbers that :func:`_ints_bytes` wrote; as a list they take nine times as much."""
    numbers = array("i")
    numbers.frombytes(data)
    return numbers


def _bits_bytes(numbers: Sequence[int], width: int) -> bytes:
    """Return rows of rails, which may have more columns than any number of a machine has bits."""
    if width <= _NARROW:
        return array("q", numbers).tobytes()
    return " ".join(map("{:x}".format, numbers)).encode("ascii")


def _bits_of(data: bytes, width: int) -> Sequence[int]:
    if width <= _NARROW:
        numbers = array("q")
        numbers.frombytes(data)
        return numbers
    return [int(number, 16) for number in data.split()]


def _lists_bytes(lists: Sequence[Sequence[int]]) -> tuple[bytes, bytes]:
    """Return lists of small numbers as two parts: their lengths and their items."""
    return _ints_bytes(map(len, lists)), _ints_bytes(chain.from_iterable(lists))


def _lists_of(counts: bytes, items: bytes) -> Iterator[tuple[int, ...]]:
    numbers = _ints_of(items)
    at = 0
    for count in _ints_of(counts):
        yield (numbers[at],) if count == 1 else tuple(numbers[at : at + count])
        at += count


_RAILS_PARTS = 8


def _rails_parts(rails: Rails) -> list[bytes]:
    width = rails.width
    return [
        _ints_bytes((width, *sorted(rails.hubs))),
        *map(_ints_bytes, (rails.order, rails.rows, rails.columns, rails.ends)),
        *(_bits_bytes(bits, width) for bits in (rails.above, rails.below, rails.joined)),
    ]


def _rails_of(parts: Sequence[bytes]) -> Rails:
    width, *hubs = _ints_of(parts[0])
    order, rows, columns, ends = map(_ints_of, parts[1:5])
    above, below, joined = (_bits_of(part, width) for part in parts[5:])
    return Rails(order, rows, columns, above, below, joined, frozenset(hubs), ends, width)


def main() -> None:
    """Arrange the graph on standard input, and write the answer to standard output."""
    gc.disable()  # many objects that all stay
    overview = Overview(graph_of(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(arranged_bytes(overview.arranged()))
    sys.stdout.buffer.flush()
