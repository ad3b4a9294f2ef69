"""Ids of nodes by what feeds them and by what they feed, with names left out.

Two nodes get the same id when everything upstream (or downstream) of them up to matched values is
the same. Ids come from one table for both models, so they are exact: no hash can collide.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from dld_tui.core import fmt
from dld_tui.core.diff.side import Side

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
        side: The side.
        intern: The table of both sides.
        open_nodes: The indices of its unmatched nodes, ascending.
        is_old: True for the old model.
        outputs: For each matched output of the scope the number of its pair.
    """

    def __init__(
        self,
        side: Side,
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
                found = [
                    (0, ids[user], number)
                    if user in ids
                    else (1, user if is_old else partners[user], number)
                    for user, number in consumers.get(name, ())
                ]
                if name in outputs:
                    found.append((2, outputs[name], 0))
                if len(found) > 1:
                    found.sort()
                key.append(tuple(found))
            ids[index] = intern(tuple(key))
        return ids


def _kinds(side: Side, intern: Interner, open_nodes: list[int]) -> dict[int, int]:
    """Number the nodes by operator and attributes."""
    operators, attributes = side.operators, side.attributes
    return {index: intern((operators[index], attributes(index))) for index in open_nodes}


class _Leaves:
    """Ids of values that no unmatched node makes."""

    def __init__(self, side: Side, intern: Interner, is_old: bool) -> None:
        self.side = side
        self.intern = intern
        self.is_old = is_old
        self._known: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self.intern(self._key(name))
        return found

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


def _topological(side: Side, open_nodes: list[int]) -> list[int]:
    """Return the nodes so that what feeds a node comes first, as far as there is no cycle."""
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
    done = set(ready)
    return ready + [index for index in open_nodes if index not in done]


def _links(side: Side, index: int) -> tuple[str, ...]:
    """Return the inputs of a node, and what its subgraphs capture."""
    node = side.nodes[index]
    if not node.children:
        return side.ins[index]
    captured = dict.fromkeys(name for child in node.subgraphs() for name in child.captured())
    return (*side.ins[index], *captured)


def nearby_ids(
    side: Side, intern: Interner, open_nodes: list[int], *, is_old: bool
) -> dict[int, int]:
    """Number the unmatched nodes of one side by what is a few steps around them."""
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
                found = [
                    ("open", ids[user], number)
                    if user in ids
                    else ("matched", user if is_old else partners[user], number)
                    for user, number in users[:_MOST_NEARBY]
                ]
                around.append((len(users), *sorted(found)))
            following[index] = intern(("near", *around))
        ids = following
    return ids


def value_text(side: Side, name: str) -> str:
    """Return the type of a value as far as the file says it, for pairing inputs and outputs."""
    tensor = side.tensor(name)
    if tensor is not None:
        return f"{tensor.dtype}{fmt.shape(tensor.shape)}"
    return side.type_text(name)
