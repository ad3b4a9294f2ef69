"""Lines between two ranks: how those of one tensor split, and the track each runs sideways on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.placement import Layers
from dld_tui.core.reach import reached


def split_edges(layers: Layers) -> Layers:
    """Return layers in which each link of a tensor has its own chain.

    Lines that share a chain can only pass others together. Apart from each other they find better
    ways, and most of those end up side by side again. Vertices, and chains that come in at the
    first rank or go out at the last one, keep their numbers.
    """
    split = Layers(
        [[] for _ in layers.ranks],
        list(layers.rank),
        list(layers.net),
        [[] for _ in layers.below],
        [[] for _ in layers.above],
        [[] for _ in layers.below],
    )
    copies: list[list[int]] = [[] for _ in layers.rank]
    """The items that each item becomes."""
    fixed = bytearray(len(layers.rank))
    for items in layers.ranks:
        for item in items:
            if layers.net[item] < 0 or not layers.above[item] or not layers.below[item]:
                fixed[item] = 1
                copies[item].append(item)
    for items in layers.ranks:
        for item in items:
            if fixed[item]:
                for lower, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                    _copy_chains(layers, split, item, lower, net, fixed, copies)
    for rank, items in enumerate(layers.ranks):
        split.ranks[rank] = [copy for item in items for copy in copies[item]]
    return split


def _copy_chains(
    layers: Layers,
    split: Layers,
    start: int,
    first: int,
    net: int,
    fixed: bytearray,
    copies: list[list[int]],
) -> None:
    """Add a chain to each end of a tree of chain items."""
    waiting: list[tuple[int, tuple[int, ...]]] = [(first, ())]
    while waiting:
        item, way = waiting.pop()
        if not fixed[item]:
            way = (*way, item)
            waiting += [(lower, way) for lower in reversed(layers.below[item])]
            continue
        end = start
        for passed in way:
            copy = len(split.rank)
            copies[passed].append(copy)
            split.rank.append(layers.rank[passed])
            split.net.append(net)
            split.below.append([])
            split.above.append([])
            split.nets_below.append([])
            _link(split, end, copy, net)
            end = copy
        _link(split, end, item, net)


def _link(layers: Layers, upper: int, lower: int, net: int) -> None:
    layers.below[upper].append(lower)
    layers.nets_below[upper].append(net)
    layers.above[lower].append(upper)


def join_edges(layers: Layers, count: int) -> tuple[Layers, list[int]]:
    """Make one line of those that carry one tensor side by side, from where they start.

    Args:
        layers: Layers as :func:`split_edges` returns them, in a good order.
        count: The items of the layers that were split.

    Returns:
        The layers with renumbered items, and for each item its number in the layers
        that were split, -1 for one that is new.
    """
    merged_into = list(range(len(layers.rank)))
    """The item that each item has become a part of."""
    for items in layers.ranks:
        last = -1
        for item in items:
            if last >= 0 and _alike(layers, merged_into, last, item):
                merged_into[item] = merged_into[last]
            last = item
    survivors = [item for items in layers.ranks for item in items if merged_into[item] == item]
    number = {item: at for at, item in enumerate(survivors)}
    joined = Layers(
        [[number[i] for i in items if merged_into[i] == i] for items in layers.ranks],
        [layers.rank[item] for item in survivors],
        [layers.net[item] for item in survivors],
        [[] for _ in survivors],
        [[] for _ in survivors],
        [[] for _ in survivors],
    )
    links: set[tuple[int, int, int]] = set()
    for items in layers.ranks:
        for item in items:
            upper = number[merged_into[item]]
            for other, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                link = (upper, number[merged_into[other]], net)
                if link not in links:
                    links.add(link)
                    _link(joined, *link)
    return joined, [item if item < count else -1 for item in survivors]


def _alike(layers: Layers, merged_into: list[int], first: int, second: int) -> bool:
    """Return whether two items carry the same tensor from the same item."""
    net, above = layers.net, layers.above
    return (
        net[first] == net[second] >= 0
        and bool(above[first])
        and bool(above[second])
        and merged_into[above[first][0]] == merged_into[above[second][0]]
    )


_MAX_PAIRWISE = 40
"""Lines of the widest gap in which each pair is compared."""
_STEP = 4
"""Cells between two lines that arrive at a wide box."""


@dataclass(slots=True)
class Wire:
    """The line of one tensor in the gap between two ranks, with all its branches."""

    net: int
    top: int
    """The column it comes in at from above."""
    bottoms: tuple[int, ...]
    """Columns it goes out at below."""
    arrows: tuple[int, ...]
    """Those columns of `bottoms` where a vertex is."""
    reach: tuple[int, ...] = ()
    """Columns that it only runs to sideways: another wire of the tensor goes on from there."""
    parent_track: int = -1
    """The track of the wire that it goes on from; -1 where it comes in from above."""
    track: int = 0
    """The row of the gap, from 0, that it runs sideways on."""
    left: int = 0
    """The leftmost column."""
    right: int = 0
    """The rightmost column."""

    def __post_init__(self) -> None:
        self.move(self.bottoms, self.arrows)

    def move(
        self, bottoms: tuple[int, ...], arrows: tuple[int, ...], reach: tuple[int, ...] = ()
    ) -> None:
        """Let it go out in other columns."""
        self.bottoms, self.arrows, self.reach = bottoms, arrows, reach
        columns = (self.top, *bottoms, *reach)
        self.left = min(columns)
        self.right = max(columns)

    def shifted(self, net: int, offset: int) -> Wire:
        """Return the same wire of another net, and further to the right."""
        wire: Wire = object.__new__(Wire)
        wire.net = net
        wire.top = self.top + offset
        wire.bottoms = tuple([column + offset for column in self.bottoms])
        wire.arrows = tuple([column + offset for column in self.arrows])
        wire.reach = tuple([column + offset for column in self.reach])
        wire.parent_track, wire.track = self.parent_track, self.track
        wire.left, wire.right = self.left + offset, self.right + offset
        return wire

    @property
    def is_straight(self) -> bool:
        """Whether it needs no track."""
        return self.left == self.right


@dataclass
class Gap:
    """The lines between two ranks."""

    wires: list[Wire] = field(default_factory=list)
    tracks: int = 0
    """Rows that are needed for running sideways."""


def route(layers: Layers, left: list[int], widths: Sequence[int]) -> list[Gap]:
    """Return the lines of each gap; the first one is between ranks 0 and 1.

    Lines of two tensors meet in no cell but where one passes straight under the other.

    Args:
        layers: Items in order.
        left: The left edge of each item.
        widths: Cells of each item: for a vertex, at least as many as lines come in, or go out.
    """
    return [_Router(layers, left, widths).gap(upper) for upper in layers.ranks[:-1]]


_End = tuple[int, int]
"""An item, and a net that leaves it."""


class _Router:
    def __init__(self, layers: Layers, left: list[int], widths: Sequence[int]) -> None:
        self.layers = layers
        self.left = left
        self.widths = widths

    def gap(self, upper: Sequence[int]) -> Gap:
        """Return the lines from the items of a rank down."""
        layers = self.layers
        ends: dict[_End, list[int]] = {}
        for item in upper:
            for lower, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                ends.setdefault((item, net), []).append(lower)
        out_at = self._out_ports(ends)
        in_at = self._in_ports(ends, out_at)
        wires: list[Wire] = []
        for end, lowers in ends.items():
            bottoms = tuple([in_at[end, lower] for lower in lowers])
            arrows = tuple([in_at[end, lower] for lower in lowers if layers.net[lower] < 0])
            wires.append(Wire(end[1], out_at[end], bottoms, arrows))
        gap = Gap(wires, assign_tracks(wires))
        origins: dict[int, int] = {}
        while len(wires) > 1 and _add_dogleg(wires, origins):
            gap.tracks = assign_tracks(wires, origins)
        for at, origin in origins.items():
            wires[at].parent_track = wires[origin].track
        return gap

    def _middle(self, item: int) -> int:
        return self.left[item] + (self.widths[item] - 1) // 2

    def _range(self, item: int) -> tuple[int, int]:
        """Return the columns that a line may use at an item: not the corners of a box."""
        first, last = self.left[item], self.left[item] + self.widths[item] - 1
        return (first + 1, last - 1) if last - first >= 2 else (first, last)

    def _out_ports(self, ends: Mapping[_End, list[int]]) -> dict[_End, int]:
        """Return the column in which each tensor leaves each item."""
        by_item: dict[int, list[tuple[float, int, int]]] = {}
        for (item, net), lowers in ends.items():
            goal = sum(map(self._middle, lowers)) / len(lowers)
            by_item.setdefault(item, []).append((goal, self._aim(item, lowers), net))
        ports: dict[_End, int] = {}
        for item, tensors in by_item.items():
            if len(tensors) == 1:
                ports[item, tensors[0][2]] = tensors[0][1]  # the aim is in its range
                continue
            tensors.sort()
            columns = _ports(*self._range(item), [aim for _, aim, _ in tensors])
            ports.update({(item, net): at for (*_, net), at in zip(tensors, columns, strict=True)})
        return ports

    def _in_ports(
        self, ends: Mapping[_End, list[int]], out_at: Mapping[_End, int]
    ) -> dict[tuple[_End, int], int]:
        """Return the column in which each tensor arrives at each item."""
        by_item: dict[int, list[tuple[int, _End]]] = {}
        for end, lowers in ends.items():
            for lower in lowers:
                by_item.setdefault(lower, []).append((out_at[end], end))
        ports: dict[tuple[_End, int], int] = {}
        for item, tensors in by_item.items():
            if len(tensors) == 1:
                top, end = tensors[0]
                ports[end, item] = self._in_port(item, top)
                continue
            tensors.sort()
            first, last = self._range(item)
            wanted = [top if first <= top <= last else None for top, _ in tensors]
            columns = _ports(first, last, wanted)
            ports.update({(end, item): at for (_, end), at in zip(tensors, columns, strict=True)})
        return ports

    def _aim(self, item: int, lowers: Sequence[int]) -> int:
        """Return the column in which a tensor had best leave an item, so that it goes straight."""
        if self.widths[item] == 1:
            return self.left[item]
        first, last = self._range(item)
        own = self._middle(item)
        if len(lowers) == 1:
            low, high = self._range(lowers[0])
            low, high = max(low, first), min(high, last)
            middle = (own + self._middle(lowers[0])) // 2
            return min(high, max(low, middle)) if low <= high else own
        under = [m for m in map(self._middle, lowers) if first <= m <= last]
        return min(under, key=lambda column: abs(column - own)) if under else own

    def _in_port(self, item: int, top: int) -> int:
        """Return the column in which a line arrives: straight from above where that can be."""
        first, last = self._range(item)
        return top if first <= top <= last else self._middle(item)


def _ports(first: int, last: int, wanted: Sequence[int | None]) -> list[int]:
    """Return columns in order, all different: the wanted ones where that can be.

    The others are beside those, or around the middle where none is wanted.

    Args:
        first: The first column that may be used.
        last: The last one; there is room for all.
        wanted: For each port the column that it would like.
    """
    count = len(wanted)
    step = max(1, min(_STEP, (last - first) // (count - 1)))
    fixed = [at for at, column in enumerate(wanted) if column is not None]
    latest = [last] * count
    for at in range(count - 2, -1, -1):
        after = wanted[at + 1]
        high = latest[at + 1] if after is None else min(latest[at + 1], after)
        latest[at] = max(first + at, high - 1)
    ports: list[int] = []
    free = first
    for at, column in enumerate(wanted):
        if column is None and fixed:
            nearest = min(fixed, key=lambda other: abs(other - at))
            column = (wanted[nearest] or 0) + step * (at - nearest)
        elif column is None:
            column = (first + last - step * (count - 1)) // 2 + step * at
        ports.append(max(free, min(column, latest[at])))
        free = ports[-1] + 1
    return ports


def _add_dogleg(wires: list[Wire], origins: dict[int, int]) -> bool:
    """Let one line that would run on top of another one run sideways twice; False without one.

    What takes a column from each other in turn can be in no order of tracks. The branch that
    arrives there is passed to a separate wire, which continues from a free column.

    Args:
        wires: The wires of a gap, to which that one is added.
        origins: For each wire that goes on from another one, that one.
    """
    by_top = {wire.top: wire for wire in wires if wire.parent_track < 0}
    for at, wire in enumerate(wires):
        if at in origins:
            continue  # nothing has to run below it
        for column in wire.bottoms:
            if not _overlaps(wire, column, by_top):
                continue
            taken = {
                c
                for placed_wire in wires
                for c in (placed_wire.top, *placed_wire.bottoms, *placed_wire.reach)
            }
            free = next(
                c
                for distance in range(1, len(taken) + 1)
                for c in (column + distance, column - distance)
                if c not in taken and c >= 0
            )
            arrows = tuple([c for c in wire.arrows if c != column])
            bottoms = tuple([c for c in wire.bottoms if c != column])
            branch = (column,) if arrows != wire.arrows else ()
            wire.move(bottoms, arrows, (*wire.reach, free))
            origins[len(wires)] = at
            wires.append(Wire(wire.net, free, (column,), branch, parent_track=0))
            return True
    return False


def assign_tracks(wires: Sequence[Wire], origins: Mapping[int, int] | None = None) -> int:
    """Give the wires that run sideways tracks, and return how many there are.

    Two wires share a track when they do not touch. A wire that arrives in a column where another
    one leaves must run above it, else their vertical parts would overlap: the classic channel
    routing problem (Hashimoto and Stevens 1971). A cycle of such constraints is cut where it
    closes. Of two wires that may be on either side, the one goes above with which they cross less
    often.

    Args:
        wires: The wires of a gap.
        origins: For each wire that goes on from another one, that one, which is above it.
    """
    origins = origins or {}
    places = [at for at, wire in enumerate(wires) if not wire.is_straight]
    bent = [wires[at] for at in places]
    if not bent:
        return 0
    leaving = {wire.top: at for at, wire in enumerate(bent) if wire.parent_track < 0}
    below: list[set[int]] = [set() for _ in bent]
    for at, wire in enumerate(bent):
        for column in wire.bottoms:
            other = leaving.get(column, at)
            if other != at:
                below[other].add(at)  # `other` comes from above there: it must turn first
    for branch, origin in origins.items():
        below[places.index(origin)].add(places.index(branch))
    if len(bent) <= _MAX_PAIRWISE:
        _prefer_fewer_crossings(bent, below)
    levels = _levels(below)
    rows: list[list[Wire]] = []
    order = sorted(range(len(bent)), key=lambda at: (levels[at], bent[at].left))
    track_of = [0] * len(bent)
    above: list[list[int]] = [[] for _ in bent]
    for at, lower in enumerate(below):
        for other in lower:
            above[other].append(at)
    placed: set[int] = set()
    for at in order:
        wire = bent[at]
        track = max((track_of[other] + 1 for other in above[at] if other in placed), default=0)
        while track < len(rows) and any(_touch(wire, other) for other in rows[track]):
            track += 1
        while track >= len(rows):
            rows.append([])
        rows[track].append(wire)
        track_of[at] = wire.track = track
        placed.add(at)
    return len(rows)


def _prefer_fewer_crossings(bent: Sequence[Wire], below: Sequence[set[int]]) -> None:
    """Put wires above others where that makes fewer crossings and contradicts nothing so far."""
    preferences = []
    for at, wire in enumerate(bent):
        for other in range(at + 1, len(bent)):
            if wire.left < bent[other].right and bent[other].left < wire.right:
                gain = _crossings(bent[other], wire) - _crossings(wire, bent[other])
                if gain:
                    upper, lower = (at, other) if gain > 0 else (other, at)
                    preferences.append((-abs(gain), upper, lower))
    for _, upper, lower in sorted(preferences):
        if lower not in below[upper] and upper not in reached([lower], below.__getitem__):
            below[upper].add(lower)


def _crossings(upper: Wire, lower: Wire) -> int:
    """Return how often two wires cross when the one runs above the other."""
    return (upper.left < lower.top < upper.right) + sum(
        [lower.left < column < lower.right for column in upper.bottoms]
    )


def _levels(below: Sequence[set[int]]) -> list[int]:
    """Return how many wires at least are above each, along the constraints that make no cycle."""
    levels = [0] * len(below)
    state = bytearray(len(below))
    order: list[int] = []
    for start in range(len(below)):
        stack = [start]
        while stack:
            at = stack[-1]
            if state[at] == 2:
                stack.pop()
            elif state[at] == 1:
                stack.pop()
                state[at] = 2
                order.append(at)
            else:
                state[at] = 1
                stack += [lower for lower in below[at] if not state[lower]]
    seen: set[int] = set()
    for at in reversed(order):
        seen.add(at)
        for lower in below[at]:
            if lower not in seen:
                levels[lower] = max(levels[lower], levels[at] + 1)
    return levels


def _touch(first: Wire, second: Wire) -> bool:
    """Return whether two wires on one track would meet."""
    return first.left <= second.right + 1 and second.left <= first.right + 1


def _overlaps(wire: Wire, column: int, by_top: Mapping[int, Wire]) -> bool:
    """Return whether a wire, arriving in a column, runs on top of one that leaves there."""
    other = by_top.get(column)
    if other is None or other is wire or wire.is_straight:
        return False
    return other.track >= wire.track
