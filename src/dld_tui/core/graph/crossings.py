"""Ordering each layer so that few links cross: barycentres, then swaps of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dld_tui.core.graph.layers import Layers

_SWAPPED_ITEMS = 3_000
"""Items of the largest drawing whose neighbours are tried in swapped places: it takes long."""


def order_layers(layers: Layers, *, sweeps: int = 8) -> int:
    """Put the items of each rank in a better order; returns the number of crossings left.

    The method is that of Sugiyama, Tagawa and Toda (1981): sweep down and up, put each item at the
    mean place of its neighbours in the rank just done, and keep the best order seen. Crossings are
    counted as Barth, Jünger and Mutzel (2002) do.
    """
    place = [0] * len(layers.rank)
    _number(layers.ranks, place)
    best = count_crossings(layers, place)
    kept = [list(items) for items in layers.ranks]
    since = 0
    for sweep in range(sweeps):
        if not best or since >= 4:
            break
        if sweep % 2 == 0:
            for items in layers.ranks[1:]:
                _sort(items, layers.above, place)
        else:
            for items in layers.ranks[-2::-1]:
                _sort(items, layers.below, place)
        if len(layers.rank) <= _SWAPPED_ITEMS:
            _swap_neighbours(layers, place)
        crossings = count_crossings(layers, place)
        since += 1
        if crossings < best:
            best, since = crossings, 0
            kept = [list(items) for items in layers.ranks]
    layers.ranks[:] = kept
    return best


def _number(ranks: Sequence[Sequence[int]], place: list[int]) -> None:
    for items in ranks:
        for at, item in enumerate(items):
            place[item] = at


def _sort(items: list[int], neighbours: Sequence[Sequence[int]], place: list[int]) -> None:
    """Sort a rank by the mean place of each item's neighbours; one without any stays put."""
    keys = {}
    for item in items:
        linked = neighbours[item]
        if len(linked) == 1:
            keys[item] = float(place[linked[0]])
        elif linked:
            keys[item] = sum([place[other] for other in linked]) / len(linked)
    if len(keys) == len(items):
        items.sort(key=keys.__getitem__)
    elif keys:
        moved = iter(sorted(keys, key=keys.__getitem__))
        items[:] = [next(moved) if item in keys else item for item in items]
    for at, item in enumerate(items):
        place[item] = at


def count_crossings(layers: Layers, place: Sequence[int]) -> int:
    """Return how many pairs of links between neighbouring ranks cross."""
    total = 0
    for upper, lower in pairwise(layers.ranks):
        ends: list[int] = []
        for item in upper:
            linked = layers.below[item]
            if len(linked) == 1:
                ends.append(place[linked[0]])
            elif linked:
                ends += sorted([place[other] for other in linked])
        total += _inversions(ends, len(lower))
    return total


def _inversions(ends: Sequence[int], size: int) -> int:
    """Return the number of pairs that are in the wrong order, with a Fenwick tree."""
    if all(a <= b for a, b in pairwise(ends)):
        return 0
    tree = [0] * (size + 1)
    total = 0
    for seen, end in enumerate(ends):
        at, before = end + 1, 0
        while at:
            before += tree[at]
            at -= at & -at
        total += seen - before
        at = end + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return total


def _swap_neighbours(layers: Layers, place: list[int]) -> None:
    """Swap items side by side wherever that saves crossings."""
    for items in layers.ranks:
        improved, rounds = True, 0
        while improved and rounds < 4:
            improved, rounds = False, rounds + 1
            for at in range(len(items) - 1):
                left, right = items[at], items[at + 1]
                if _saving(layers, place, left, right) > 0:
                    items[at], items[at + 1] = right, left
                    place[left], place[right] = at + 1, at
                    improved = True


def _saving(layers: Layers, place: Sequence[int], left: int, right: int) -> int:
    """Return how many crossings fewer there are when two neighbours change places."""
    saving = 0
    for neighbours in (layers.above, layers.below):
        mine, theirs = neighbours[left], neighbours[right]
        for one in mine:
            for other in theirs:
                if place[one] > place[other]:
                    saving += 1
                elif place[one] < place[other]:
                    saving -= 1
    return saving
