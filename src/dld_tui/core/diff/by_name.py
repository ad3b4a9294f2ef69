"""Matching by names: of nodes, and of what they make where nodes have none."""

from __future__ import annotations

from dld_tui.core.diff.matches import Matches, open_nodes
from dld_tui.core.diff.side import Place, Side

_FEW = 2
"""So few names that lead to the wrong node are taken for edits."""


def match_unchanged(matches: Matches) -> None:
    """Pair the nodes whose name, operator and links are the same, and those of their neighbours."""
    old, new = matches.old, matches.new
    found = {key: index for index, key in enumerate(new.keys)}
    candidates = [-1] * len(old.nodes)
    taken = [-1] * len(new.nodes)
    for index, key in enumerate(old.keys):
        other = found.get(key, -1) if key else -1
        if (
            other >= 0
            and taken[other] < 0
            and old.operators[index] == new.operators[other]
            and old.ins[index] == new.ins[other]
            and old.outs[index] == new.outs[other]
        ):
            candidates[index], taken[other] = other, index
    doubtful = _beside_others(old, candidates, None) | _beside_others(new, taken, taken)
    for index, other in enumerate(candidates):
        if other >= 0 and index not in doubtful:
            matches.pair(index, other)


def _beside_others(side: Side, candidates: list[int], to_old: list[int] | None) -> set[int]:
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
    candidates = _candidates(matches, by_output=False)
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

    Running numbers do that when a node is inserted: then only the names that matched neighbours
    speak for are used.
    """
    for by_output in (False, True):
        candidates = _candidates(matches, by_output)
        if _names_hold(matches, candidates):
            for index, other in candidates:
                if matches.is_open(index, other):
                    matches.pair(index, other)
        else:
            _match_supported(matches, candidates)


def _candidates(matches: Matches, by_output: bool) -> list[Place]:
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


def _by_key(side: Side, by_output: bool) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index in open_nodes(side):
        key = side.keys[index]
        if by_output:
            key = next((name for name in side.outs[index] if name), "")
        found.setdefault(key, []).append(index)
    return found


def _names_hold(matches: Matches, candidates: list[Place]) -> bool:
    """Return whether names can be trusted among the nodes that are not plainly the same."""
    if len(candidates) * 2 < min(matches.open_old, matches.open_new):
        return False  # most names are gone, so one that is left may be so by chance
    good = 0
    bad = _swapped_names(matches)
    for index, other in candidates:
        support, doubt = matches.evidence(index, other)
        good += support >= doubt and support > 0
        bad += doubt > support
    return bad < _FEW or bad * 2 <= good


def _swapped_names(matches: Matches) -> int:
    """Return how many nodes were matched with one of another name, though theirs is there."""
    old, new = matches.old, matches.new
    mine, theirs = set(old.keys), set(new.keys)
    return sum(
        old.keys[index] != new.keys[other] and old.keys[index] in theirs and new.keys[other] in mine
        for index, other in enumerate(old.partners)
        if other >= 0
    )


def _match_supported(matches: Matches, candidates: list[Place]) -> None:
    """Pair the candidates that matched neighbours speak for, as long as there are any."""
    waiting = candidates
    while waiting:
        rest = []
        for index, other in waiting:
            if not matches.is_open(index, other):
                continue
            support, doubt = matches.evidence(index, other)
            if support > doubt:
                matches.pair(index, other)
            else:
                rest.append((index, other))
        # Each pass must settle a good part, or a long chain of names would take a pass a node.
        if len(rest) * 20 > len(waiting) * 19:
            return
        waiting = rest


def match_leftover_names(matches: Matches) -> None:
    """Pair what is left of one name: another operator, or names that may have shifted."""
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
