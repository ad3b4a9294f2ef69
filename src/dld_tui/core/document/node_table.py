"""The texts of many nodes at once, in columns: so a large model is read when it is opened.

Protobuf makes a new object whenever a field is asked for. The indexes, the list of nodes and the
graph all need the same names, so they are read once and shared, also in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from dld_tui.core.document.proto_text import text_of, texts_of
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node

_ONLY_STR = frozenset((str,))


class NodeTexts:
    """What nodes were called and linked to when it was made; edits do not change it."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        protos = [node.proto for node in self.nodes]
        self.names: list[str] = _texts([proto.name for proto in protos])
        """Foreign text, as all of these."""
        # Slices: protobuf hands over a list faster than one name after the other.
        self.inputs: list[Sequence[str]] = _lists_of_texts([proto.input[:] for proto in protos])
        self.outputs: list[Sequence[str]] = _lists_of_texts([proto.output[:] for proto in protos])
        pairs = list(
            zip(
                _texts([proto.domain for proto in protos]),
                _texts([proto.op_type for proto in protos]),
                strict=True,
            )
        )
        plain = {pair: (plain_domain(pair[0]), pair[1]) for pair in set(pairs)}
        same = {kind: kind for kind in plain.values()}
        self.kinds: list[tuple[str, str]] = [same[plain[pair]] for pair in pairs]
        """Operator set, ``""`` for ai.onnx, and operator; the same object for equal ones."""

    def __len__(self) -> int:
        return len(self.nodes)


def _texts(values: list[str] | list[bytes]) -> list[str]:
    """Return names as str, see :func:`text_of`."""
    if _ONLY_STR.issuperset(map(type, values)):
        return values  # type: ignore[return-value]
    return [text_of(value) for value in values]


def _lists_of_texts(lists: list[list[str]] | list[list[bytes]]) -> list[Sequence[str]]:
    """Return lists of names as str."""
    values: Iterable[str | bytes] = chain.from_iterable(lists)
    if _ONLY_STR.issuperset(map(type, values)):
        return lists  # type: ignore[return-value]
    return [texts_of(names) for names in lists]
