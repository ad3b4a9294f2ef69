"""Matching outwards from matched nodes: the only candidate beside a matched neighbour."""

from __future__ import annotations

from collections import deque

from dld_tui.core.diff.matches import Matches, neighbours, open_nodes, users_of


def match_beside(matches: Matches, *, weak: bool = False) -> None:
    """Pair nodes that are the only candidates beside a matched neighbour.

    Args:
        matches: What is matched so far.
        weak: Where nothing better is found, accept several candidates in their order, if there are
            as many on both sides, and a node of another operator in the same place.
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
        for near in neighbours(old, index):
            if old.partners[near] < 0 and near not in queued:
                queued.add(near)
                queue.append(near)
                if weak:
                    later.append(near)


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
