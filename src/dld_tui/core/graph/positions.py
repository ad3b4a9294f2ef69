"""Where the items of each rank are from left to right, in cells."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.layers import Layers

_BOTH_BOXES, _BOTH_CHAIN, _MIXED = 200.0, 20.0, 1.0
"""How strongly a link wants to be straight. With equal weights every block drifts sideways."""


def place_items(layers: Layers, widths: Sequence[int], gap: int, *, sweeps: int = 6) -> list[int]:
    """Return the left edge of each item, so that links are straight and items do not touch.

    Rank by rank, down and up, each item wants to be under (over) its neighbours; keeping the order
    and the distances that is a weighted isotonic regression, solved exactly by pooling adjacent
    violators (Ayer et al. 1955).

    Args:
        layers: Items in their order.
        widths: Cells of each item.
        gap: Cells between two items of a rank.
        sweeps: How often to go down and up.
    """
    left = [0.0] * len(layers.rank)
    for items in layers.ranks:
        at = 0.0
        for item in items:
            left[item] = at
            at += widths[item] + gap
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        ranks = layers.ranks if down else layers.ranks[::-1]
        for items in ranks:
            _place(layers, items, widths, gap, left, down=down)
    found = _whole(layers, widths, gap, left)
    _straighten(layers, widths, gap, found)
    return found


def _place(
    layers: Layers,
    items: Sequence[int],
    widths: Sequence[int],
    gap: int,
    left: list[float],
    *,
    down: bool,
) -> None:
    near, far = (layers.above, layers.below) if down else (layers.below, layers.above)
    wanted, weights = [], []
    for item in items:
        half = widths[item] / 2
        total, weight = 0.0, 0.0
        for linked, factor in ((near[item], 1.0), (far[item], 0.25)):
            for other in linked:
                strength = factor * _strength(layers, item, other)
                total += strength * (left[other] + widths[other] / 2)
                weight += strength
        if weight:
            wanted.append(total / weight - half)
            weights.append(weight)
        else:
            wanted.append(left[item])
            weights.append(0.01)
    _spread(items, wanted, weights, widths, gap, left)


def _strength(layers: Layers, item: int, other: int) -> float:
    mine, theirs = layers.net[item] >= 0, layers.net[other] >= 0
    if mine and theirs:
        return _BOTH_CHAIN
    return _MIXED if mine or theirs else _BOTH_BOXES


def _spread(
    items: Sequence[int],
    wanted: Sequence[float],
    weights: Sequence[float],
    widths: Sequence[int],
    gap: int,
    left: list[float],
) -> None:
    """Set the left edges nearest to the wanted ones that keep the order and the distances."""
    # Without the widths before it, each item must be no further left than the one before.
    offset = 0.0
    blocks: list[list[float]] = []  # [weighted sum, weight, number of items]
    offsets = []
    for at, item in enumerate(items):
        offsets.append(offset)
        block = [(wanted[at] - offset) * weights[at], weights[at], 1]
        while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = [before[0] + block[0], before[1] + block[1], before[2] + block[2]]
        blocks.append(block)
        offset += widths[item] + gap
    at = 0
    for total, weight, count in blocks:
        value = total / weight
        for _ in range(int(count)):
            left[items[at]] = value + offsets[at]
            at += 1


def _whole(layers: Layers, widths: Sequence[int], gap: int, left: Sequence[float]) -> list[int]:
    """Return whole cells from 0, rounding so that the order and distances hold."""
    first = min(left, default=0.0)
    found = [0] * len(left)
    for items in layers.ranks:
        free = 0
        for item in items:
            # Middles are rounded, not edges: boxes of different widths stay centred on each other.
            half = (widths[item] - 1) // 2
            middle = round(left[item] - first + widths[item] / 2 - 0.5)
            found[item] = max(free, middle - half)
            free = found[item] + widths[item] + gap
    return found


def _straighten(layers: Layers, widths: Sequence[int], gap: int, left: list[int]) -> None:
    """Move what is linked one to one into a common column, as far as the things beside leave room.

    Rounding and pooling leave steps of a cell or two in what should be a straight column.
    """
    beside: dict[int, tuple[int, int]] = {}
    for items in layers.ranks:
        for at, item in enumerate(items):
            after = items[at + 1] if at + 1 < len(items) else -1
            beside[item] = (items[at - 1] if at else -1, after)
    following = _following(layers)
    begun = set(following.values())
    runs = []
    for first in following:
        if first in begun:
            continue
        run = [first]
        while run[-1] in following:
            run.append(following[run[-1]])
        runs.append(run)
    boxes = [run for run in runs if layers.net[run[0]] < 0]
    chains = [run for run in runs if layers.net[run[0]] >= 0]
    # Lines give way to boxes, and then get what room is left; moving one can free another.
    for run in (*boxes, *chains, *boxes, *chains):
        _straighten_run(run, beside, widths, gap, left)


def _following(layers: Layers) -> dict[int, int]:
    """Return the item below of those linked one to one: box to box, or along a line."""
    following = {}
    for item, below in enumerate(layers.below):
        chain = layers.net[item] >= 0
        same = [other for other in below if (layers.net[other] >= 0) == chain]
        if len(same) == 1:
            above = [o for o in layers.above[same[0]] if (layers.net[o] >= 0) == chain]
            if len(above) == 1:
                following[item] = same[0]
    return following


def _straighten_run(
    run: Sequence[int],
    beside: dict[int, tuple[int, int]],
    widths: Sequence[int],
    gap: int,
    left: list[int],
) -> None:
    """Give a run as few columns as possible; a column is that of an item's middle."""
    start = 0
    while start < len(run):
        low, high, end = -(1 << 60), 1 << 60, start
        while end < len(run):
            item = run[end]
            half = (widths[item] - 1) // 2
            before, after = beside[item]
            lowest = left[before] + widths[before] + gap + half if before >= 0 else half
            highest = left[after] - gap - widths[item] + half if after >= 0 else 1 << 60
            if max(low, lowest) > min(high, highest):
                break
            low, high, end = max(low, lowest), min(high, highest), end + 1
        part = run[start:end]
        columns = sorted(left[item] + (widths[item] - 1) // 2 for item in part)
        column = min(high, max(low, columns[len(columns) // 2]))
        for item in part:
            left[item] = column - (widths[item] - 1) // 2
        start = end
