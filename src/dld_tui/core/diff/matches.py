"""The matches of two scopes while they are being found, and what speaks for a further one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from dld_tui.core.diff.side import Place, Side
from dld_tui.core.diff.terminals import Pairs, pair_terminals

MOST_USERS = 64
"""Values with more uses than this say little about each of them."""
_WEIGHT = 2
"""What an initializer counts for as evidence, compared with a value that flows through."""


class Matches:
    """Pairs of nodes and values; kept in ``partners`` and ``values`` of the two sides."""

    def __init__(self, old: Side, new: Side) -> None:
        self.old = old
        self.new = new
        self.inputs: Pairs = pair_terminals(old, new, old.inputs, new.inputs)
        self.outputs: Pairs = pair_terminals(old, new, old.outputs, new.outputs)
        self.open_old = len(old.nodes)
        """How many nodes have no partner."""
        self.open_new = len(new.nodes)
        self.guessed: set[int] = set()
        """The old nodes whose partner is one of several that are as good."""
        for first, second in self.inputs:
            self.link(first, second)

    @property
    def unfinished(self) -> bool:
        """True while both sides have a node without a partner."""
        return self.open_old > 0 and self.open_new > 0

    def pair(self, first: int, second: int, *, guessed: bool = False) -> None:
        """Match two nodes, and the values that they make.

        Args:
            first: The index of the old one.
            second: The index of the new one.
            guessed: Others are as good a partner, or the pair depends on such a one.
        """
        old, new = self.old, self.new
        if guessed:
            self.guessed.add(first)
        old.partners[first], new.partners[second] = second, first
        self.open_old -= 1
        self.open_new -= 1
        for one, other in zip(old.outs[first], new.outs[second], strict=False):
            if one and other:
                self.link(one, other)
        if old.initializers and new.initializers:
            for one, other in zip(old.ins[first], new.ins[second], strict=False):
                self._link_renamed_initializers(one, other)

    def link(self, first: str, second: str) -> None:
        """Match two values, unless one of them is matched."""
        if first not in self.old.values and second not in self.new.values:
            self.old.values[first], self.new.values[second] = second, first

    def _link_renamed_initializers(self, first: str, second: str) -> None:
        old, new = self.old.initializers, self.new.initializers
        if (
            first in old
            and second in new
            and (first == second or (first not in new and second not in old))
        ):
            self.link(first, second)

    def is_open(self, first: int, second: int) -> bool:
        """Return whether neither of two nodes has a partner."""
        return self.old.partners[first] < 0 and self.new.partners[second] < 0

    # --- evidence -------------------------------------------------------------------------------

    def evidence(self, index: int, other: int) -> Place:
        """Return how much matched neighbours speak for a pair of nodes, and against it."""
        old, new = self.old, self.new
        support = doubt = 0
        pairs = zip_longest(old.ins[index], new.ins[other], fillvalue="")
        for number, (one, two) in enumerate(pairs):
            if not one or not two:
                continue
            weight = _WEIGHT if one in old.initializers else 1
            partner = old.counterpart(one)
            if partner is not None and partner == new.home(two):
                support += weight
            elif partner is not None and (
                new.counterpart(two) is not None
                or self.open_users(new, partner[1], number, old.operators[index])
            ):
                doubt += weight
        for one, two in zip(old.outs[index], new.outs[other], strict=False):
            for user, number in users_of(old, one):
                partner_user = old.partners[user]
                if partner_user >= 0:
                    inputs = new.ins[partner_user]
                    support += number < len(inputs) and inputs[number] == two
        return support, doubt

    def is_likely(self, index: int, other: int) -> bool:
        """Return whether no more speaks against a pair of nodes than for it."""
        support, doubt = self.evidence(index, other)
        return support >= doubt

    def open_users(self, side: Side, name: str, number: int, operator: str | None) -> list[int]:
        """Return the nodes without a partner that use a value as input `number`.

        Args:
            side: The side of the value and the nodes.
            name: The value.
            number: The place among the inputs.
            operator: What the nodes must be; None for anything.
        """
        return [
            user
            for user, at in users_of(side, name)
            if at == number
            and side.partners[user] < 0
            and (operator is None or side.operators[user] == operator)
        ]


def users_of(side: Side, name: str) -> list[Place]:
    """Return the uses of a value; none for one that very many nodes use."""
    users = side.consumers.get(name, [])
    return users if len(users) <= MOST_USERS else []


def open_nodes(side: Side) -> list[int]:
    """Return the nodes without a partner, in the order of the file."""
    return [index for index, partner in enumerate(side.partners) if partner < 0]


def neighbours(side: Side, index: int) -> Iterator[int]:
    """Yield the nodes that a node is linked to."""
    for name in side.ins[index]:
        place = side.producers.get(name)
        if place is not None:
            yield place[0]
    for name in side.outs[index]:
        for user, _ in users_of(side, name):
            yield user
