"""One of two scopes that are compared, as plain lists, and ids of its nodes by structure.

Two nodes get the same id when everything upstream (or downstream) of them up to matched values is
the same. Ids come from one table for both models, so they are exact: no hash can collide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cached_property
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.compare.diff.attributes import attribute_key
from dld_tui.core.files.proto_fields import text_of, texts_of
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import value_type_of

Place = tuple[int, int]
"""A node by its index and the number of one of its inputs or outputs."""


class DiffSide:
    """The nodes and values of a scope, and their matches in the other scope."""

    def __init__(self, scope: Scope, parent: DiffSide | None) -> None:
        self.scope = scope
        self.parent = parent
        self.path = scope.path
        self.nodes = scope.nodes
        self.names: list[str] = []
        self.operators: list[str] = []
        """``domain.op_type``, with the overload if any."""
        self.ins: list[tuple[str, ...]] = []
        self.outs: list[tuple[str, ...]] = []
        self._read_nodes()
        self.producers: dict[str, Place] = {}
        """The node output that produces a value; the first one in a broken model."""
        for index, outputs in enumerate(self.outs):
            for number, name in enumerate(outputs):
                if name:
                    self.producers.setdefault(name, (index, number))
        self.inputs = list(dict.fromkeys(scope.inputs))
        self.outputs = list(dict.fromkeys(scope.outputs))
        self.initializers: dict[str, Any] = {}
        """TensorProto or SparseTensorProto by name."""
        for field in ("initializer", "sparse_initializer"):
            for record in scope.records.get(field, ()):
                self.initializers.setdefault(record_name(field, record), record)
        self.leaves = {*self.inputs, *self.initializers}
        self.partners = [-1] * len(self.nodes)
        """For each node the index of the one it was matched with, or -1."""
        self.values: dict[str, str] = {}
        """For each matched value its name in the other scope."""
        self._consumers: dict[str, list[Place]] | None = None
        self._types: dict[str, Any] | None = None
        self._keys: list[str] | None = None
        self._name_counts: Counter[str] | None = None
        self._attributes: dict[int, tuple[Any, ...]] = {}

    def _read_nodes(self) -> None:
        names, operators, ins, outs = self.names, self.operators, self.ins, self.outs
        spelled: dict[tuple[str, str, str], str] = {}
        for node in self.nodes:
            proto = node.proto
            names.append(text_of(proto.name))
            operator = (proto.domain, proto.op_type, proto.overload)
            text = spelled.get(operator)
            if text is None:
                domain = f"{node.domain}." if node.domain else ""
                overload = f":{node.overload}" if node.overload else ""
                text = spelled[operator] = f"{domain}{node.op_type}{overload}"
            operators.append(text)
            ins.append(_texts(proto.input))
            outs.append(_texts(proto.output))

    @property
    def keys(self) -> list[str]:
        """For each node its name where that is unique, else ``>FIRST_OUTPUT``, else nothing."""
        if self._keys is None:
            counts = self.name_counts
            self._keys = [
                name
                if name and counts[name] == 1
                else next((f">{output}" for output in outputs if output), "")
                for name, outputs in zip(self.names, self.outs, strict=True)
            ]
        return self._keys

    @property
    def name_counts(self) -> Counter[str]:
        """How many nodes have each name."""
        if self._name_counts is None:
            self._name_counts = Counter(self.names)
        return self._name_counts

    def ref(self, index: int) -> str:
        """Return the ref of a node, as :meth:`Scope.ref_of` does without its index."""
        name = self.names[index]
        if name and name[0] not in ">#" and self.name_counts[name] == 1:
            return name
        for number, output in enumerate(self.outs[index]):
            if output and self.producers.get(output) == (index, number):
                return f">{output}"
        return f"#{index}"

    @property
    def consumers(self) -> dict[str, list[Place]]:
        """Every use of each value as a node's input in this very scope."""
        if self._consumers is None:
            places: dict[str, list[Place]] = {}
            for index, inputs in enumerate(self.ins):
                for number, name in enumerate(inputs):
                    if name:
                        entry = places.get(name)
                        if entry is None:
                            places[name] = [(index, number)]
                        else:
                            entry.append((index, number))
            self._consumers = places
        return self._consumers

    def defines(self, name: str) -> bool:
        """Return whether a value is made in this very scope."""
        return name in self.producers or name in self.leaves

    def counterpart(self, name: str) -> tuple[int, str] | None:
        """Return how many scopes outwards the matched value is, and its name there; or None."""
        side: DiffSide | None = self
        level = 0
        while side is not None:
            if side.defines(name):
                value = side.values.get(name)
                return None if value is None else (level, value)
            side = side.parent
            level += 1
        return None

    def home(self, name: str) -> tuple[int, str] | None:
        """Return how many scopes outwards a value is defined, and its name; None for nowhere."""
        side: DiffSide | None = self
        level = 0
        while side is not None:
            if side.defines(name):
                return level, name
            side = side.parent
            level += 1
        return None

    @property
    def types(self) -> dict[str, Any]:
        """The TypeProto that the file declares for each value."""
        if self._types is None:
            self._types = {
                record_name(field, record): record.type
                for field in ("value_info", "output", "input")
                for record in self.scope.records.get(field, ())
                if record.HasField("type")
            }
        return self._types

    def type_text(self, name: str) -> str:
        """Return the declared type of a value, or nothing. Untrusted text."""
        proto = self.types.get(name)
        value_type = value_type_of(proto) if proto is not None else None
        return value_type.text if value_type is not None else ""

    def tensor(self, name: str) -> Tensor | None:
        """Return a dense initializer by name."""
        record = self.initializers.get(name)
        if record is None or not hasattr(record, "data_type"):
            return None
        return Tensor(record, self.scope.document)

    def tensor_kind(self, name: str) -> tuple[int, ...] | None:
        """Return element type and shape of a dense initializer as numbers, None for others."""
        record = self.initializers.get(name)
        if record is None or not hasattr(record, "data_type"):
            return None
        return (record.data_type, *record.dims)

    def attributes(self, index: int) -> tuple[Any, ...]:
        """Return a key that is equal for nodes with equal attributes; payloads count by length."""
        key = self._attributes.get(index)
        if key is None:
            key = self._attributes[index] = attribute_key(self.nodes[index])
        return key


def _texts(names: Any) -> tuple[str, ...]:
    texts = tuple(names)
    return texts_of(texts) if bytes in map(type, texts) else texts


_PENDING = -2
"""The id of a node that is on a cycle."""
_NEARBY = 4
"""Steps in each direction that make the neighbourhood of a node."""
_MOST_NEARBY = 64
"""Users of a value that are looked at."""


class Interner:
    """Gives equal keys the same small number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __call__(self, key: Hashable) -> int:
        """Return the number of a key."""
        return self._numbers.setdefault(key, len(self._numbers))


class Structure:
    """The ids of the nodes of one side that are not matched yet, by node index.

    Args:
        intern: The table of both sides.
        open_nodes: The indices of its unmatched nodes, ascending.
        is_old: True for the old model.
        outputs: For each matched output of the scope the number of its pair.
    """

    def __init__(
        self,
        side: DiffSide,
        intern: Interner,
        open_nodes: list[int],
        *,
        is_old: bool,
        outputs: dict[str, int],
    ) -> None:
        self.side = side
        self.intern = intern
        self.is_old = is_old
        self.outputs = outputs
        self.order = _topological(side, open_nodes)
        self.leaves = _Leaves(side, intern, is_old)
        self.kinds = _kinds(side, intern, open_nodes)

    @cached_property
    def upstream(self) -> dict[int, int]:
        """Ids by what feeds the nodes."""
        # Keys are flat tuples of numbers: an open source is an id and a place, a leaf is negative.
        ids: dict[int, int] = dict.fromkeys(self.order, _PENDING)
        side, intern, leaves, kinds = self.side, self.intern, self.leaves, self.kinds
        producers = side.producers
        for index in self.order:
            key = [kinds[index]]
            for name in _links(side, index):
                place = producers.get(name)
                if place is not None and place[0] in ids:
                    key += (ids[place[0]], place[1])
                else:
                    key.append(-3 - leaves(name))
            ids[index] = intern(tuple(key))
        return ids

    @cached_property
    def downstream(self) -> dict[int, int]:
        """Ids by what the nodes feed, and by the matched values that feed them."""
        ids: dict[int, int] = dict.fromkeys(self.order, _PENDING)
        side, intern, leaves, kinds = self.side, self.intern, self.leaves, self.kinds
        producers, consumers, partners = side.producers, side.consumers, side.partners
        is_old, outputs = self.is_old, self.outputs
        for index in reversed(self.order):
            key: list[Hashable] = ["down", kinds[index]]
            for name in side.ins[index]:
                place = producers.get(name)
                key.append(-1 if place is not None and place[0] in ids else leaves(name))
            for name in side.outs[index]:
                users = [
                    (0, ids[user], number)
                    if user in ids
                    else (1, user if is_old else partners[user], number)
                    for user, number in consumers.get(name, ())
                ]
                if name in outputs:
                    users.append((2, outputs[name], 0))
                if len(users) > 1:
                    users.sort()
                key.append(tuple(users))
            ids[index] = intern(tuple(key))
        return ids


def _kinds(side: DiffSide, intern: Interner, open_nodes: list[int]) -> dict[int, int]:
    """Number the nodes by operator and attributes."""
    operators, attributes = side.operators, side.attributes
    return {index: intern((operators[index], attributes(index))) for index in open_nodes}


class _Leaves:
    """Ids of values that no unmatched node makes."""

    def __init__(self, side: DiffSide, intern: Interner, is_old: bool) -> None:
        self.side = side
        self.intern = intern
        self.is_old = is_old
        self._known: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        number = self._known.get(name)
        if number is None:
            number = self._known[name] = self.intern(self._key(name))
        return number

    def _key(self, name: str) -> Hashable:
        side = self.side
        if not name:
            return "omitted"
        partner = side.counterpart(name)
        if partner is not None:
            # Both sides speak of a matched value by its old name.
            return ("matched", side.home(name) if self.is_old else partner)
        if side.defines(name):
            kind = side.tensor_kind(name)
            if kind is not None:
                return ("initializer", kind)
            return ("input", side.type_text(name))
        return "unknown"


def _topological(side: DiffSide, open_nodes: list[int]) -> list[int]:
    """Return the nodes in topological order, as far as there is no cycle."""
    producers, ins = side.producers, side.ins
    if all(
        name not in producers or producers[name][0] < index
        for index in open_nodes
        for name in ins[index]
    ):
        return open_nodes  # as a valid file has them
    wanted = set(open_nodes)
    waiting: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for index in open_nodes:
        places = (producers.get(name) for name in ins[index])
        sources = {place[0] for place in places if place is not None and place[0] in wanted}
        waiting[index] = len(sources)
        for source in sources:
            users.setdefault(source, []).append(index)
    ready = [index for index in open_nodes if not waiting[index]]
    for index in ready:  # it grows while it is walked
        for user in users.get(index, ()):
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    ordered = set(ready)
    return ready + [index for index in open_nodes if index not in ordered]


def _links(side: DiffSide, index: int) -> tuple[str, ...]:
    """Return the inputs of a node, and what its subgraphs capture."""
    node = side.nodes[index]
    if not node.children:
        return side.ins[index]
    captured = dict.fromkeys(name for child in node.subgraphs() for name in child.captured())
    return (*side.ins[index], *captured)


def nearby_ids(
    side: DiffSide, intern: Interner, open_nodes: list[int], *, is_old: bool
) -> dict[int, int]:
    """Number the unmatched nodes of one side by their surroundings, a few steps deep."""
    leaves = _Leaves(side, intern, is_old)
    producers, consumers, partners = side.producers, side.consumers, side.partners
    ids = _kinds(side, intern, open_nodes)
    for _ in range(_NEARBY):
        following: dict[int, int] = {}
        for index in open_nodes:
            around: list[Hashable] = [ids[index]]
            for name in side.ins[index]:
                place = producers.get(name)
                if place is not None and place[0] in ids:
                    around.append((ids[place[0]], place[1]))
                else:
                    around.append(leaves(name))
            for name in side.outs[index]:
                users = consumers.get(name, ())
                neighbour_ids = [
                    ("open", ids[user], number)
                    if user in ids
                    else ("matched", user if is_old else partners[user], number)
                    for user, number in users[:_MOST_NEARBY]
                ]
                around.append((len(users), *sorted(neighbour_ids)))
            following[index] = intern(("near", *around))
        ids = following
    return ids


def value_text(side: DiffSide, name: str) -> str:
    """Return the type of a value as far as the file says it, for pairing inputs and outputs."""
    tensor = side.tensor(name)
    if tensor is not None:
        return f"{tensor.dtype}{fmt.shape(tensor.shape)}"
    return side.type_text(name)
