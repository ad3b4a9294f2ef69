"""Matching by what feeds a node and what it feeds, with names left out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from dld_tui.core.diff.matches import Matches, open_nodes
from dld_tui.core.diff.structure import Interner, Structure, nearby_ids

Key = TypeVar("Key", bound=Hashable)


def match_structure(matches: Matches, intern: Interner, *, unique: bool) -> None:
    """Pair nodes of the same structure up to matched values.

    Args:
        matches: What is matched so far.
        intern: The table of ids.
        unique: False pairs nodes that are alike upstream and downstream, as many as there are of a
            kind on both sides; True those that are unique in one direction.
    """
    if not matches.unfinished:
        return
    old, new = _structures(matches, intern)
    if unique:
        _pair_unique(matches, old.upstream, new.upstream)
        _pair_unique(matches, old.downstream, new.downstream)
    elif _is_bijection(old.upstream, new.upstream):
        # All names differ and nothing else: what is downstream need not be looked at.
        _pair_unique(matches, old.upstream, new.upstream)
    else:
        _pair_groups(matches, _both(old), _both(new))


def match_nearby(matches: Matches, intern: Interner) -> None:
    """Pair nodes whose neighbourhood of a few steps is unique."""
    if matches.unfinished:
        old = nearby_ids(matches.old, intern, open_nodes(matches.old), is_old=True)
        new = nearby_ids(matches.new, intern, open_nodes(matches.new), is_old=False)
        _pair_unique(matches, old, new)


def match_alike(matches: Matches, intern: Interner) -> None:
    """Pair nodes that are alike in all, in the order of the file, as far as there are enough."""
    if matches.unfinished:
        old, new = _structures(matches, intern)
        _pair_groups(matches, _both(old), _both(new), equal=False)


def _is_bijection(first: Mapping[int, int], second: Mapping[int, int]) -> bool:
    mine, theirs = set(first.values()), set(second.values())
    return len(mine) == len(first) == len(second) and mine == theirs


def _structures(matches: Matches, intern: Interner) -> tuple[Structure, Structure]:
    old_outputs = {one: number for number, (one, _) in enumerate(matches.outputs)}
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
    *,
    equal: bool = True,
) -> None:
    """Pair nodes of one structure: those of one name, then in the order of the file."""
    mine, theirs = _grouped(first), _grouped(second)
    for key, members in mine.items():
        others = theirs.get(key)
        if others is None or (equal and len(others) != len(members)):
            continue
        if len(members) > 1 or len(others) > 1:
            members, others = _pair_same_names(matches, members, others)
        guessed = len(members) > 1 or len(others) > 1
        for index, other in zip(members, others, strict=False):
            matches.pair(index, other, guessed=guessed)


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
