"""What differs between two nodes that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from dld_tui.core import protos as onnx
from dld_tui.core.diff.attributes import attribute_fields, same_bytes
from dld_tui.core.diff.model import Change, Field
from dld_tui.core.diff.side import Side
from dld_tui.core.diff.tensors import Meter
from dld_tui.core.document.node import Node
from dld_tui.core.document.proto_text import text_of

_KNOWN = frozenset(
    ("input", "output", "name", "op_type", "domain", "overload", "attribute", "doc_string",
     "metadata_props")
)  # fmt: skip

_PLAIN = frozenset(("input", "output", "name", "op_type", "domain", "overload"))


def signature(side: Side, index: int) -> str:
    """Return a node as text: ``Conv(x, w) -> y``. Foreign text."""
    ins, outs = _listed(side.ins[index]), _listed(side.outs[index])
    return f"{side.operators[index]}({ins}) -> {outs or '–'}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names if "" not in names else [name or "–" for name in names])


class NodeComparison:
    """Compares the matched nodes of two scopes."""

    def __init__(self, old: Side, new: Side, meter: Meter, notes: list[str]) -> None:
        self.old = old
        self.new = new
        self._meter = meter
        self._notes = notes
        # A value of one of these names may mean another thing in the other model.
        self._odd = {name for name in old.values if old.values[name] != name}
        self._odd |= {name for name in new.values if new.values[name] != name}
        parents = old.parent, new.parent
        self._nested = None not in parents

    def change(self, index: int, other: int) -> Change | None:
        """Return what differs between a node of the old scope and its partner, or None."""
        old, new = self.old, self.new
        first, second = old.nodes[index], new.nodes[other]
        if self._plainly_same(index, other, first, second):
            return None
        fields = tuple(self._fields(index, other, first, second))
        if not fields:
            return None
        status = "renamed" if all(field.is_name for field in fields) else "changed"
        return Change(
            "node",
            status,
            old.ref(index),
            new.ref(other),
            signature(new, other),
            fields,
            old_node=first,
            new_node=second,
        )

    def _plainly_same(self, index: int, other: int, first: Node, second: Node) -> bool:
        """Return True for the many nodes that nothing has happened to."""
        if self._nested or self.old.ins[index] != self.new.ins[other]:
            return False
        if not self._odd.isdisjoint(self.old.ins[index]):
            return False
        return same_bytes(first.proto, second.proto)

    def _fields(self, index: int, other: int, first: Node, second: Node) -> Iterator[Field]:
        old, new = self.old, self.new
        if old.names[index] != new.names[other]:
            yield Field("name", old.names[index], new.names[other], is_name=True)
        if old.operators[index] != new.operators[other]:
            yield Field("op_type", old.operators[index], new.operators[other])
        values = old.values
        for number, (one, two) in enumerate(zip_longest(old.ins[index], new.ins[other])):
            plainly = one and two and values.get(one) == two
            if not plainly and not self.same_value(one, two):
                yield Field(f"input {number}", *self._described(one, two))
        for number, (one, two) in enumerate(zip_longest(old.outs[index], new.outs[other])):
            if one != two:
                yield Field(f"output {number}", _shown(one), _shown(two), is_name=bool(one and two))
        if _has_more(first.proto) or _has_more(second.proto):
            yield from attribute_fields(first, second, self._meter, self._notes)
            yield from text_fields(first.proto, second.proto, ("doc_string",))
            yield from metadata_fields(first.proto, second.proto)
            yield from other_fields(first.proto, second.proto, _KNOWN)

    def _described(self, one: str | None, two: str | None) -> tuple[str | None, str | None]:
        """Return two inputs as text, with their makers where the names are the same."""
        if one != two or not one or not two:
            return _shown(one), _shown(two)
        return f"{one} of {source(self.old, one)}", f"{two} of {source(self.new, two)}"

    def same_value(self, one: str | None, two: str | None) -> bool:
        """Return whether two inputs mean the same value; None is one that is not there."""
        if one is None or two is None or not one or not two:
            return one == two
        partner = self.old.counterpart(one)
        if partner is None:
            # Made by something that is gone, or by nothing: then the name is what it says.
            return one == two and self.new.counterpart(two) is None
        return partner == self.new.home(two)


def _has_more(proto: Any) -> bool:
    """Return whether a node has more than a name, an operator and links."""
    return any(field.name not in _PLAIN for field, _ in proto.ListFields())


def source(side: Side, name: str) -> str:
    """Return what makes a value: the ref of a node, or words. Foreign text."""
    place = side.producers.get(name)
    if place is not None:
        return side.ref(place[0])
    if name in side.initializers:
        return "an initializer"
    if name in side.leaves:
        return "an input"
    return "an outer scope" if side.home(name) is not None else "nothing"


def _shown(name: str | None) -> str | None:
    return "–" if name == "" else name


def text_fields(
    old: Any, new: Any, names: tuple[str, ...], *, prefix: str = "", is_name: bool = False
) -> Iterator[Field]:
    """Yield the text and number fields of two messages that differ."""
    for name in names:
        values = [
            getattr(message, name) if message.HasField(name) else None for message in (old, new)
        ]
        if (values[0] or None) != (values[1] or None):
            yield Field(f"{prefix}{name}", _text(values[0]), _text(values[1]), is_name)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return text_of(value) if isinstance(value, (str, bytes)) else str(value)


def metadata_fields(old: Any, new: Any, *, prefix: str = "") -> Iterator[Field]:
    """Yield the entries of ``metadata_props`` that differ, by key."""
    if not len(old.metadata_props) and not len(new.metadata_props):
        return
    before, after = (
        {text_of(entry.key): text_of(entry.value) for entry in message.metadata_props}
        for message in (old, new)
    )
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield Field(f"{prefix}metadata {key}", before.get(key), after.get(key))


@lru_cache(maxsize=16)
def _others(message: str, known: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a message of ONNX that are not known, and which of them are lists."""
    fields = getattr(onnx, message).DESCRIPTOR.fields
    return tuple(
        (field.name, bool(field.is_repeated)) for field in fields if field.name not in known
    )


def other_fields(old: Any, new: Any, known: frozenset[str]) -> Iterator[Field]:
    """Yield the fields that this program has no view of, when they differ."""
    for name, is_list in _others(type(old).__name__, known):
        first, second = (
            getattr(message, name)
            if (len(getattr(message, name)) if is_list else message.HasField(name))
            else None
            for message in (old, new)
        )
        if _bytes(first) != _bytes(second):
            yield Field(name, _outline(first), _outline(second))


def _outline(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, (str, bytes, int, float)):
        return _text(value)
    return f"{len(value)} entries" if hasattr(value, "__len__") else "set"


def _bytes(value: Any) -> object:
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    return [
        item.SerializeToString() if hasattr(item, "SerializeToString") else item for item in value
    ]
