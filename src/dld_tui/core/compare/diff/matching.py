"""Matching the nodes of two scopes: by name, structure, neighbours and order.

The stages, each for the nodes that earlier ones left unmatched:

1. nodes with the same name, operator and links, and neighbours for which this holds, too; 2. nodes
of the same name and operator, if these are all that is left of one side; 3. nodes with the same
upstream and downstream structure; 4. nodes of the same name and operator, unless matched neighbours
show that names have shifted; 5. nodes whose upstream, downstream or nearby structure is unique;
6. the only candidate next to a matched neighbour; 7. the rest by name, or by position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import TypeAlias, TypeVar

from dld_tui.core.compare.diff.side import (
    DiffSide,
    Interner,
    Place,
    Structure,
    nearby_ids,
    value_text,
)


def out_of_order(numbers: Sequence[int]) -> int:
    """Return how many numbers would have to move to make all of them ascend."""
    if all(first < second for first, second in pairwise(numbers)):
        return 0
    # The longest ascending part may stay: patience sorting finds its length.
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(numbers) - len(ends)


Pairs: TypeAlias = "list[tuple[str, str]]"
"""(name in the old scope, name in the new one)."""


def pair_terminals(old: DiffSide, new: DiffSide, before: list[str], after: list[str]) -> Pairs:
    """Pair the inputs or outputs of two scopes: by name, then by type, then by position."""
    theirs = set(after)
    pairs = [(name, name) for name in before if name in theirs]
    known = {name for name, _ in pairs}
    mine = [name for name in before if name not in known]
    rest = [name for name in after if name not in known]
    for name in list(mine):
        text = value_text(old, name)
        other = next((other for other in rest if value_text(new, other) == text), None)
        if text and other is not None:
            mine.remove(name)
            rest.remove(other)
            pairs.append((name, other))
    if len(mine) == len(rest):
        pairs += zip(mine, rest, strict=True)
    order = {name: number for number, name in enumerate(before)}
    return sorted(pairs, key=lambda pair: order[pair[0]])


def pair_initializers(
    old: DiffSide, new: DiffSide, digest: Callable[[DiffSide, str], str | None]
) -> Pairs:
    """Pair initializers of one name, type and shape; then those of other names by their values.

    Args:
        old: The old side.
        new: The new side.
        digest: Returns a hash of the values of an initializer, None when they are not to be read.
    """
    pairs: Pairs = []
    for name in old.initializers:
        if name in new.initializers and old.tensor_kind(name) == new.tensor_kind(name):
            pairs.append((name, name))
    mine = _candidates(old, {name for name, _ in pairs}, new)
    theirs = _candidates(new, {name for _, name in pairs}, old)
    for kind, names in mine.items():
        others = theirs.get(kind)
        if others:
            pairs += _by_values(old, new, names, others, digest)
    return pairs


def _candidates(
    side: DiffSide, paired: set[str], other: DiffSide
) -> dict[tuple[int, ...], list[str]]:
    """Return the names of the unmatched dense initializers, by type and shape.

    A name that the other model also has, with another shape, was not renamed.
    """
    candidates: dict[tuple[int, ...], list[str]] = {}
    for name in side.initializers:
        if name not in paired and name not in side.inputs and name not in other.initializers:
            kind = side.tensor_kind(name)
            if kind is not None:
                candidates.setdefault(kind, []).append(name)
    return candidates


def _by_values(
    old: DiffSide,
    new: DiffSide,
    names: list[str],
    others: list[str],
    digest: Callable[[DiffSide, str], str | None],
) -> Pairs:
    groups: dict[str, list[str]] = {}
    for name in others:
        key = digest(new, name)
        if key is not None:
            groups.setdefault(key, []).append(name)
    mine: dict[str, list[str]] = {}
    for name in names:
        key = digest(old, name)
        if key in groups:
            mine.setdefault(key, []).append(name)
    # Among equal ones, their users decide.
    return [
        (members[0], groups[key][0])
        for key, members in mine.items()
        if len(members) == len(groups[key]) == 1
    ]


MOST_USERS = 64
"""Values with more uses than this say little about each of them."""
_WEIGHT = 2
"""What an initializer counts for as evidence, compared with a value that flows through."""


class Matches:
    """Pairs of nodes and values; kept in ``partners`` and ``values`` of the two sides."""

    def __init__(self, old: DiffSide, new: DiffSide) -> None:
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
        for old_value, new_value in zip(old.outs[first], new.outs[second], strict=False):
            if old_value and new_value:
                self.link(old_value, new_value)
        if old.initializers and new.initializers:
            for old_value, new_value in zip(old.ins[first], new.ins[second], strict=False):
                self._link_renamed_initializers(old_value, new_value)

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

    def evidence(self, index: int, other: int) -> Place:
        """Return how much matched neighbours speak for a pair of nodes, and against it."""
        old, new = self.old, self.new
        support = doubt = 0
        pairs = zip_longest(old.ins[index], new.ins[other], fillvalue="")
        for number, (old_value, new_value) in enumerate(pairs):
            if not old_value or not new_value:
                continue
            weight = _WEIGHT if old_value in old.initializers else 1
            partner = old.counterpart(old_value)
            if partner is not None and partner == new.home(new_value):
                support += weight
            elif partner is not None and (
                new.counterpart(new_value) is not None
                or self.open_users(new, partner[1], number, old.operators[index])
            ):
                doubt += weight
        for old_value, new_value in zip(old.outs[index], new.outs[other], strict=False):
            for user, number in users_of(old, old_value):
                partner_user = old.partners[user]
                if partner_user >= 0:
                    inputs = new.ins[partner_user]
                    support += number < len(inputs) and inputs[number] == new_value
        return support, doubt

    def is_likely(self, index: int, other: int) -> bool:
        """Return whether the evidence for a pair of nodes outweighs that against it."""
        support, doubt = self.evidence(index, other)
        return support >= doubt

    def open_users(self, side: DiffSide, name: str, number: int, operator: str | None) -> list[int]:
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


def users_of(side: DiffSide, name: str) -> list[Place]:
    """Return the uses of a value; none for one that very many nodes use."""
    users = side.consumers.get(name, [])
    return users if len(users) <= MOST_USERS else []


def open_nodes(side: DiffSide) -> list[int]:
    """Return the nodes without a partner, in the order of the file."""
    return [index for index, partner in enumerate(side.partners) if partner < 0]


def neighbours(side: DiffSide, index: int) -> Iterator[int]:
    """Yield the nodes that a node is linked to."""
    for name in side.ins[index]:
        place = side.producers.get(name)
        if place is not None:
            yield place[0]
    for name in side.outs[index]:
        for user, _ in users_of(side, name):
            yield user


_FEW = 2
"""So few names that lead to the wrong node are taken for edits."""


def match_unchanged(matches: Matches) -> None:
    """Pair the nodes whose name, operator and links are the same, and those of their neighbours."""
    old, new = matches.old, matches.new
    by_key = {key: index for index, key in enumerate(new.keys)}
    candidates = [-1] * len(old.nodes)
    partners = [-1] * len(new.nodes)
    for index, key in enumerate(old.keys):
        other = by_key.get(key, -1) if key else -1
        if (
            other >= 0
            and partners[other] < 0
            and old.operators[index] == new.operators[other]
            and old.ins[index] == new.ins[other]
            and old.outs[index] == new.outs[other]
        ):
            candidates[index], partners[other] = other, index
    doubtful = _beside_others(old, candidates, None) | _beside_others(new, partners, partners)
    for index, other in enumerate(candidates):
        if other >= 0 and index not in doubtful:
            matches.pair(index, other)


def _beside_others(side: DiffSide, candidates: list[int], to_old: list[int] | None) -> set[int]:
    """Return the old nodes of candidates that have a neighbour which is no candidate.

    Args:
        side: The side whose links are followed.
        candidates: For each of its nodes the candidate of the other side, or -1.
        to_old: For the new side, the old node of each of its nodes.
    """
    doubtful: set[int] = set()
    for index, inputs in enumerate(side.ins):
        is_candidate = candidates[index] >= 0
        for name in inputs:
            place = side.producers.get(name)
            if place is not None and is_candidate != (candidates[place[0]] >= 0):
                at = index if is_candidate else place[0]
                doubtful.add(at if to_old is None else to_old[at])
    return doubtful


def match_kept_names(matches: Matches) -> None:
    """Pair nodes by name when every node left of one side is there by its name in the other.

    So it is after nodes were added or deleted by hand; nothing must speak against a pair.
    """
    candidates = _candidates_by_name(matches, by_output=False)
    if len(candidates) < min(matches.open_old, matches.open_new):
        return
    for index, other in candidates:
        support, doubt = matches.evidence(index, other)
        if doubt > support:
            return
    for index, other in candidates:
        matches.pair(index, other)


def match_names(matches: Matches) -> None:
    """Pair nodes of one operator and name, unless it seems that names have shifted.

    Running numbers do that when a node is inserted: then names say nothing.
    """
    for by_output in (False, True):
        candidates = _candidates_by_name(matches, by_output)
        if _names_hold(matches, candidates):
            for index, other in candidates:
                if matches.is_open(index, other):
                    matches.pair(index, other)


def _candidates_by_name(matches: Matches, by_output: bool) -> list[Place]:
    """Return the open nodes of one operator whose names are the same and unique."""
    old, new = matches.old, matches.new
    mine, theirs = _by_key(old, by_output), _by_key(new, by_output)
    return [
        (members[0], theirs[key][0])
        for key, members in mine.items()
        if key
        and len(members) == len(theirs.get(key, ())) == 1
        and old.operators[members[0]] == new.operators[theirs[key][0]]
    ]


def _by_key(side: DiffSide, by_output: bool) -> dict[str, list[int]]:
    by_key: dict[str, list[int]] = {}
    for index in open_nodes(side):
        key = side.keys[index]
        if by_output:
            key = next((name for name in side.outs[index] if name), "")
        by_key.setdefault(key, []).append(index)
    return by_key


def _names_hold(matches: Matches, candidates: list[Place]) -> bool:
    """Return whether names can be trusted among the nodes that are not plainly the same."""
    if len(candidates) * 2 < min(matches.open_old, matches.open_new):
        return False  # most names are gone, so one that is left may be so by chance
    good = bad = 0
    for index, other in candidates:
        support, doubt = matches.evidence(index, other)
        good += support >= doubt and support > 0
        bad += doubt > support
    return bad < _FEW or bad * 2 <= good


def match_leftover_names(matches: Matches) -> None:
    """Pair the unmatched nodes of one name: another operator, or names that may have shifted."""
    old, new = matches.old, matches.new
    by_key = {new.keys[index]: index for index in open_nodes(new)}
    for index in open_nodes(old):
        key = old.keys[index]
        other = by_key.get(key, -1) if key else -1
        if other < 0 or not matches.is_open(index, other):
            continue
        support, doubt = matches.evidence(index, other)
        same_operator = old.operators[index] == new.operators[other]
        if (same_operator and not doubt) or support > doubt:
            matches.pair(index, other)


def match_beside(matches: Matches, *, weak: bool = False) -> None:
    """Pair nodes that are the only candidates next to a matched neighbour.

    Args:
        matches: The matches so far.
        weak: If there is no better candidate, accept several in their order, if both sides have the
            same number, and a node of another operator in the same position.
    """
    old = matches.old
    queue = deque(open_nodes(old))
    queued = set(queue)
    later = deque(queue) if weak else deque[int]()
    while queue or later:
        is_weak = not queue
        index = (later if is_weak else queue).popleft()
        if not is_weak:
            queued.discard(index)
        if old.partners[index] >= 0 or not _find(matches, index, is_weak):
            continue
        for neighbour in neighbours(old, index):
            if old.partners[neighbour] < 0 and neighbour not in queued:
                queued.add(neighbour)
                queue.append(neighbour)
                if weak:
                    later.append(neighbour)


def _find(matches: Matches, index: int, weak: bool) -> bool:
    old, new = matches.old, matches.new
    operator = None if weak else old.operators[index]
    # An initializer says more about a node than a value that flows through.
    inputs = sorted(enumerate(old.ins[index]), key=lambda item: item[1] not in old.leaves)
    for number, name in inputs:
        partner = old.counterpart(name) if name else None
        if partner is not None:
            mine = matches.open_users(old, name, number, operator)
            theirs = matches.open_users(new, partner[1], number, operator)
            maker = old.producers.get(name) if partner[0] == 0 else None
            guessed = weak or (maker is not None and maker[0] in matches.guessed)
            if _choose(matches, index, mine, theirs, weak, guessed):
                return True
    for number, name in enumerate(old.outs[index]):
        for user, at in users_of(old, name):
            partner_user = old.partners[user]
            if partner_user < 0 or at >= len(new.ins[partner_user]):
                continue
            place = new.producers.get(new.ins[partner_user][at])
            if (
                place is not None
                and place[1] == number
                and new.partners[place[0]] < 0
                and operator in (None, new.operators[place[0]])
                and matches.is_likely(index, place[0])
            ):
                matches.pair(index, place[0], guessed=weak or user in matches.guessed)
                return True
    return False


def _choose(
    matches: Matches,
    index: int,
    mine: list[int],
    theirs: list[int],
    weak: bool,
    guessed: bool,
) -> bool:
    old, new = matches.old, matches.new
    if not theirs or index not in mine:
        return False
    if len(mine) > 1 or len(theirs) > 1:
        operator, key = old.operators[index], old.attributes(index)
        alike = [
            other
            for other in theirs
            if new.operators[other] == operator and new.attributes(other) == key
        ]
        rivals = [
            other
            for other in mine
            if old.operators[other] == operator and old.attributes(other) == key
        ]
        if len(alike) == len(rivals) and (len(alike) == 1 or (weak and alike)):
            mine, theirs = rivals, alike
        elif not weak or len(mine) != len(theirs):
            return False
    other = theirs[mine.index(index)]
    if not matches.is_likely(index, other):
        return False
    matches.pair(index, other, guessed=guessed)
    return True


Key = TypeVar("Key", bound=Hashable)


def match_structure(matches: Matches, intern: Interner, *, unique: bool) -> None:
    """Pair nodes of the same structure up to matched values.

    Args:
        matches: The matches so far.
        intern: The table of ids.
        unique: False pairs nodes with equal upstream and downstream structure, if both sides have
            as many of a kind; True pairs those that are unique in one direction.
    """
    if not matches.unfinished:
        return
    old, new = _structures(matches, intern)
    if unique:
        _pair_unique(matches, old.upstream, new.upstream)
        _pair_unique(matches, old.downstream, new.downstream)
    elif _is_bijection(old.upstream, new.upstream):
        # Only names differ: downstream structure need not be examined.
        _pair_unique(matches, old.upstream, new.upstream)
    else:
        _pair_groups(matches, _both(old), _both(new))


def match_nearby(matches: Matches, intern: Interner) -> None:
    """Pair nodes whose neighbourhood of a few steps is unique."""
    if matches.unfinished:
        old = nearby_ids(matches.old, intern, open_nodes(matches.old), is_old=True)
        new = nearby_ids(matches.new, intern, open_nodes(matches.new), is_old=False)
        _pair_unique(matches, old, new)


def _is_bijection(first: Mapping[int, int], second: Mapping[int, int]) -> bool:
    mine, theirs = set(first.values()), set(second.values())
    return len(mine) == len(first) == len(second) and mine == theirs


def _structures(matches: Matches, intern: Interner) -> tuple[Structure, Structure]:
    old_outputs = {old_name: number for number, (old_name, _) in enumerate(matches.outputs)}
    new_outputs = {other: number for number, (_, other) in enumerate(matches.outputs)}
    old, new = matches.old, matches.new
    return (
        Structure(old, intern, open_nodes(old), is_old=True, outputs=old_outputs),
        Structure(new, intern, open_nodes(new), is_old=False, outputs=new_outputs),
    )


def _both(ids: Structure) -> dict[int, tuple[int, int]]:
    return {index: (ids.upstream[index], ids.downstream[index]) for index in sorted(ids.upstream)}


def _grouped(ids: Mapping[int, Key]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = {}
    for index, key in ids.items():
        groups.setdefault(key, []).append(index)
    return groups


def _pair_unique(matches: Matches, first: Mapping[int, int], second: Mapping[int, int]) -> None:
    mine, theirs = _grouped(first), _grouped(second)
    for key, members in mine.items():
        others = theirs.get(key, ())
        if len(members) == len(others) == 1 and matches.is_open(members[0], others[0]):
            matches.pair(members[0], others[0])


def _pair_groups(
    matches: Matches,
    first: Mapping[int, tuple[int, int]],
    second: Mapping[int, tuple[int, int]],
) -> None:
    """Pair nodes of one structure: those of one name, then in the order of the file."""
    mine, theirs = _grouped(first), _grouped(second)
    for key, members in mine.items():
        others = theirs.get(key)
        if others is None or len(others) != len(members):
            continue
        if len(members) > 1:
            members, others = _pair_same_names(matches, members, others)
        for index, other in zip(members, others, strict=True):
            matches.pair(index, other, guessed=len(members) > 1)


def _pair_same_names(
    matches: Matches, members: list[int], others: list[int]
) -> tuple[list[int], list[int]]:
    old, new = matches.old, matches.new
    by_name = {new.keys[other]: other for other in others}
    for index in members:
        other = by_name.get(old.keys[index], -1)
        if other >= 0 and matches.is_open(index, other):
            matches.pair(index, other)
    return (
        [index for index in members if old.partners[index] < 0],
        [other for other in others if new.partners[other] < 0],
    )


_MOST_ROUNDS = 6
"""How often the stages are repeated while they find much."""
_MUCH = 0.05
"""The share of the open nodes that a round must match for another round."""


def match_scopes(
    old: DiffSide, new: DiffSide, digest: Callable[[DiffSide, str], str | None]
) -> tuple[Matches, Pairs]:
    """Match inputs, outputs, initializers and nodes of two scopes.

    Args:
        old: The old side; its parents are matched.
        new: The new side.
        digest: Returns a hash of the values of an initializer, None when they are not to be read.

    Returns:
        The matches, and the pairs of initializers.
    """
    matches = Matches(old, new)
    for first, second in pair_initializers(old, new, digest):
        matches.link(first, second)
    match_unchanged(matches)
    if matches.unfinished:
        _match_rest(matches)
    _link_leftover_values(matches)
    initializers = [
        (name, old.values[name])
        for name in old.initializers
        if old.values.get(name) in new.initializers
    ]
    return matches, initializers


def _match_rest(matches: Matches) -> None:
    match_kept_names(matches)
    intern = Interner()
    for _ in range(_MOST_ROUNDS):
        before = matches.open_old
        match_structure(matches, intern, unique=False)
        match_names(matches)
        match_structure(matches, intern, unique=True)
        match_beside(matches)
        match_nearby(matches, intern)
        match_beside(matches)
        if not matches.unfinished or before - matches.open_old <= before * _MUCH:
            break
    match_leftover_names(matches)
    match_beside(matches, weak=True)


def _link_leftover_values(matches: Matches) -> None:
    """Match values by name that were not matched with their makers, as when those changed."""
    old, new = matches.old, matches.new
    for name in (*old.initializers, *old.producers):
        if name not in old.values and new.defines(name) and name not in new.values:
            matches.link(name, name)
