"""Boxes that somebody has moved sideways, and the room that the others make for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dld_tui.core.graph.layers import Layers

_MOVED, _OTHERS = 1000.0, 1.0
"""How strongly things want to be where they are: what was moved hardly gives way."""


def shift_items(
    layers: Layers, left: list[int], widths: Sequence[int], gap: int, shifts: Mapping[int, int]
) -> None:
    """Move vertices sideways in their ranks, changing the order where they pass others.

    Args:
        layers: Items in order; the ranks of moved vertices get the new one.
        left: The left edge of each item, which is changed.
        widths: Cells of each item.
        gap: Cells between two items of a rank.
        shifts: Cells to the right, negative ones to the left, by vertex.
    """
    for rank in sorted({layers.rank[vertex] for vertex in shifts}):
        items = layers.ranks[rank]
        wanted = {item: left[item] + shifts.get(item, 0) for item in items}
        items.sort(key=lambda item: wanted[item] + widths[item] / 2)
        _spread(items, wanted, left, widths, gap, shifts)
    first = min(left, default=0)
    if first < 0:
        left[:] = [at - first for at in left]


def _spread(
    items: Sequence[int],
    wanted: Mapping[int, int],
    left: list[int],
    widths: Sequence[int],
    gap: int,
    shifts: Mapping[int, int],
) -> None:
    """Put items as near to where they want to be as order and distances allow."""
    offsets, offset = [], 0
    blocks: list[list[float]] = []  # [weighted sum, weight, number of items]
    for item in items:
        offsets.append(offset)
        weight = _MOVED if item in shifts else _OTHERS
        block = [(wanted[item] - offset) * weight, weight, 1]
        while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = [before[0] + block[0], before[1] + block[1], before[2] + block[2]]
        blocks.append(block)
        offset += widths[item] + gap
    at = 0
    for total, weight, count in blocks:
        value = round(total / weight)  # values rise from block to block, and so they do rounded
        for _ in range(int(count)):
            left[items[at]] = value + offsets[at]
            at += 1
