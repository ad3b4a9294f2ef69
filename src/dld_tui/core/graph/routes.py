"""Lines between two ranks: how those of one tensor split, and the track each runs sideways on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dld_tui.core.graph.ranks import Layers


def split(layers: Layers) -> Layers:
    """Return layers in which each link of a tensor has a chain of its own.

    Lines that share a chain can only pass others together. Apart from each other they find better
    ways, and most of those end up side by side again. Vertices, and chains that come in at the
    first rank or go out at the last one, keep their numbers.
    """
    found = Layers(
        [[] for _ in layers.ranks],
        list(layers.rank),
        list(layers.net),
        [[] for _ in layers.below],
        [[] for _ in layers.above],
        [[] for _ in layers.below],
    )
    strands: list[list[int]] = [[] for _ in layers.rank]
    """What stands for each item."""
    fixed = bytearray(len(layers.rank))
    for items in layers.ranks:
        for item in items:
            if layers.net[item] < 0 or not layers.above[item] or not layers.below[item]:
                fixed[item] = 1
                strands[item].append(item)
    for items in layers.ranks:
        for item in items:
            if fixed[item]:
                for lower, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                    _lead(layers, found, item, lower, net, fixed, strands)
    for rank, items in enumerate(layers.ranks):
        found.ranks[rank] = [strand for item in items for strand in strands[item]]
    return found


def _lead(
    layers: Layers,
    found: Layers,
    start: int,
    first: int,
    net: int,
    fixed: bytearray,
    strands: list[list[int]],
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
            strand = len(found.rank)
            strands[passed].append(strand)
            found.rank.append(layers.rank[passed])
            found.net.append(net)
            found.below.append([])
            found.above.append([])
            found.nets_below.append([])
            _link(found, end, strand, net)
            end = strand
        _link(found, end, item, net)


def _link(layers: Layers, upper: int, lower: int, net: int) -> None:
    layers.below[upper].append(lower)
    layers.nets_below[upper].append(net)
    layers.above[lower].append(upper)


def join(layers: Layers, count: int) -> tuple[Layers, list[int]]:
    """Make one line of those that carry one tensor side by side, from where they start.

    Args:
        layers: Layers as :func:`split` returns them, in a good order.
        count: The items of the layers that were split.

    Returns:
        The layers with their items numbered anew, and for each item its number in the layers
        that were split, -1 for one that is new.
    """
    stands = list(range(len(layers.rank)))
    """The item that each item has become a part of."""
    for items in layers.ranks:
        last = -1
        for item in items:
            if last >= 0 and _alike(layers, stands, last, item):
                stands[item] = stands[last]
            last = item
    kept = [item for items in layers.ranks for item in items if stands[item] == item]
    number = {item: at for at, item in enumerate(kept)}
    found = Layers(
        [[number[i] for i in items if stands[i] == i] for items in layers.ranks],
        [layers.rank[item] for item in kept],
        [layers.net[item] for item in kept],
        [[] for _ in kept],
        [[] for _ in kept],
        [[] for _ in kept],
    )
    done: set[tuple[int, int, int]] = set()
    for items in layers.ranks:
        for item in items:
            upper = number[stands[item]]
            for other, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                link = (upper, number[stands[other]], net)
                if link not in done:
                    done.add(link)
                    _link(found, *link)
    return found, [item if item < count else -1 for item in kept]


def _alike(layers: Layers, stands: list[int], one: int, other: int) -> bool:
    """Return whether two items carry the same tensor from the same item."""
    net, above = layers.net, layers.above
    return (
        net[one] == net[other] >= 0
        and bool(above[one])
        and bool(above[other])
        and stands[above[one][0]] == stands[above[other][0]]
    )


_REPAIRS = 12
"""Lines of one gap that are moved aside, at most."""
_WISHING = 40
"""Lines of the widest gap in which each is compared with each."""


@dataclass(slots=True)
class Wire:
    """One line in the gap between two ranks, with all its branches.

    It is one tensor going to several places, or several tensors going to one vertex: these join
    before they arrive, and share its arrow. Wires of one tensor may leave in the same column.
    """

    nets: tuple[int, ...]
    tops: tuple[int, ...]
    """Columns it comes in at from above."""
    bottoms: tuple[int, ...]
    """Columns it goes out at below."""
    arrows: tuple[int, ...]
    """Those columns of `bottoms` where a vertex is."""
    track: int = 0
    """The row of the gap, from 0, that it runs sideways on."""
    left: int = 0
    """The leftmost column."""
    right: int = 0
    """The rightmost column."""

    def __post_init__(self) -> None:
        self.move(self.bottoms, self.arrows)

    def move(self, bottoms: tuple[int, ...], arrows: tuple[int, ...]) -> None:
        """Let it go out in other columns."""
        self.bottoms, self.arrows = bottoms, arrows
        columns = self.tops + bottoms
        self.left = min(columns)
        self.right = max(columns)

    def shifted(self, nets: tuple[int, ...], offset: int) -> Wire:
        """Return the same wire of other nets, and further to the right."""
        wire: Wire = object.__new__(Wire)
        wire.nets = nets
        wire.tops = tuple([column + offset for column in self.tops])
        wire.bottoms = tuple([column + offset for column in self.bottoms])
        wire.arrows = tuple([column + offset for column in self.arrows])
        wire.track = self.track
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

    Args:
        layers: Items in order.
        left: The left edge of each item; a line that would run on another one is moved aside.
        widths: Cells of each item.
    """
    return [_Router(layers, left, widths).gap(upper) for upper in layers.ranks[:-1]]


@dataclass(slots=True)
class _Draft:
    """A line whose columns are not chosen yet: several ends above, or several below."""

    uppers: list[tuple[int, int]]
    """(item, net)."""
    lowers: list[int]


class _Router:
    def __init__(self, layers: Layers, left: list[int], widths: Sequence[int]) -> None:
        self.layers = layers
        self.left = left
        self.widths = widths

    def gap(self, upper: Sequence[int]) -> Gap:
        """Return the lines from the items of a rank down."""
        drafts, wires, others = self._single(upper)
        if not others and all([wire.left == wire.right for wire in wires]):
            return Gap(wires)
        more, ends = self._drafts(others)
        drafts += more
        out_at = self._out_ports(ends)
        net_of = self.layers.net
        for draft in more:
            tops = tuple(dict.fromkeys([out_at[end] for end in draft.uppers]))
            bottoms = tuple([self._in_port(item, tops) for item in draft.lowers])
            arrows = tuple(
                column
                for item, column in zip(draft.lowers, bottoms, strict=True)
                if net_of[item] < 0
            )
            nets = tuple(dict.fromkeys([net for _, net in draft.uppers]))
            wires.append(Wire(nets, tops, bottoms, arrows))
        gap = Gap(wires, assign_tracks(wires))
        for _ in range(_REPAIRS if len(wires) > 1 else 0):
            if not self._repaired(drafts, wires):
                break
            gap.tracks = assign_tracks(wires)
        return gap

    def _single(self, upper: Sequence[int]) -> tuple[list[_Draft], list[Wire], list[int]]:
        """Return the lines between two items that have no other link here, and the other items."""
        layers, left, widths = self.layers, self.left, self.widths
        drafts, wires, others = [], [], []
        for item in upper:
            below = layers.below[item]
            if len(below) != 1 or len(layers.above[below[0]]) != 1:
                others.append(item)
                continue
            lower, net = below[0], layers.nets_below[item][0]
            tops = (left[item] if widths[item] == 1 else self._aim(item, below),)
            bottoms = (left[lower] if widths[lower] == 1 else self._in_port(lower, tops),)
            drafts.append(_Draft([(item, net)], [lower]))
            wires.append(Wire((net,), tops, bottoms, () if layers.net[lower] >= 0 else bottoms))
        return drafts, wires, others

    def _repaired(self, drafts: Sequence[_Draft], wires: Sequence[Wire]) -> bool:
        """Move one line aside that would run on top of another one; False when none can be."""
        tops = Counter([column for wire in wires for column in wire.tops])
        taken: set[int] = set()
        for draft, wire in zip(drafts, wires, strict=True):
            for at, column in enumerate(wire.bottoms):
                if tops[column] <= (column in wire.tops) or not _overlaps(wire, column, wires):
                    continue
                if not taken:
                    taken = {*tops, *(column for wire in wires for column in wire.bottoms)}
                for free in (column + 1, column - 1, column + 2, column - 2):
                    if free not in taken and self._may_arrive(draft.lowers[at], free):
                        self._arrive(draft.lowers[at], wire, at, free)
                        return True
        return False

    def _may_arrive(self, item: int, column: int) -> bool:
        if self.layers.is_chain(item):
            # Things side by side are further apart than this.
            return abs(column - self.left[item]) == 1 and column >= 0
        first, last = self._range(item)
        return first <= column <= last

    def _arrive(self, item: int, wire: Wire, at: int, column: int) -> None:
        bottoms = list(wire.bottoms)
        arrows = tuple(column if old == bottoms[at] else old for old in wire.arrows)
        bottoms[at] = column
        wire.move(tuple(bottoms), arrows)
        if self.layers.is_chain(item):
            self.left[item] = column

    def _drafts(
        self, upper: Sequence[int]
    ) -> tuple[list[_Draft], dict[tuple[int, int], list[int]]]:
        """Return the lines of a gap, and where each end above goes to.

        What goes to one vertex is joined before it and has one arrow. What comes from one tensor
        and goes to things that take nothing else here is one line with branches.
        """
        layers = self.layers
        ends: dict[tuple[int, int], list[int]] = {}
        for item in upper:
            for lower, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                ends.setdefault((item, net), []).append(lower)
        joined: dict[int, _Draft] = {}
        drafts = []
        for end, lowers in ends.items():
            alone = [lower for lower in lowers if len(layers.above[lower]) == 1]
            if alone:
                drafts.append(_Draft([end], alone))
            for lower in lowers:
                if len(layers.above[lower]) > 1:
                    joined.setdefault(lower, _Draft([], [lower])).uppers.append(end)
        return [*drafts, *joined.values()], ends

    def _middle(self, item: int) -> int:
        return self.left[item] + (self.widths[item] - 1) // 2

    def _range(self, item: int) -> tuple[int, int]:
        """Return the columns that a line may use at an item: not the corners of a box."""
        first, last = self.left[item], self.left[item] + self.widths[item] - 1
        return (first + 1, last - 1) if last - first >= 2 else (first, last)

    def _out_ports(self, ends: dict[tuple[int, int], list[int]]) -> dict[tuple[int, int], int]:
        """Return the column in which each tensor leaves each item."""
        by_item: dict[int, list[tuple[float, int, int]]] = {}
        bundles: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for (item, net), lowers in ends.items():
            if len(lowers) > 1:  # tensors that go to the same places leave as one line
                bundle = bundles.setdefault((item, tuple(lowers)), [])
                bundle.append(net)
                if len(bundle) > 1:
                    continue
            goal = sum(map(self._middle, lowers)) / len(lowers)
            by_item.setdefault(item, []).append((goal, self._aim(item, lowers), net))
        found: dict[tuple[int, int], int] = {}
        for item, tensors in by_item.items():
            if len(tensors) == 1:
                found[item, tensors[0][2]] = tensors[0][1]  # the aim is in its range
                continue
            first, last = self._range(item)
            if len(tensors) > last - first + 1:
                first, last = self.left[item], self.left[item] + self.widths[item] - 1
            tensors.sort()
            free = first
            for at, (_, aim, net) in enumerate(tensors):
                latest = max(first, last - (len(tensors) - 1 - at))
                found[item, net] = column = min(max(free, aim), latest)
                free = column + 1
        for (item, _), nets in bundles.items():
            for net in nets[1:]:
                found[item, net] = found[item, nets[0]]
        return found

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

    def _in_port(self, item: int, tops: Sequence[int]) -> int:
        """Return the column in which a line arrives: straight from above where that can be."""
        if self.widths[item] == 1:
            return self.left[item]
        first, last = self._range(item)
        own = self._middle(item)
        straight = [column for column in tops if first <= column <= last]
        return min(straight, key=lambda column: abs(column - own)) if straight else own


def assign_tracks(wires: Sequence[Wire]) -> int:
    """Give the wires that run sideways tracks, and return how many there are.

    Two wires share a track when they do not touch. A wire that arrives in a column where another
    one leaves must run above it, else their vertical parts would overlap: the classic channel
    routing problem (Hashimoto and Stevens 1971). A cycle of such wishes is cut where it closes.
    Of two wires that may be on either side, the one goes above with which they cross less often.
    """
    bent = [wire for wire in wires if not wire.is_straight]
    if not bent:
        return 0
    leaving: dict[int, list[int]] = {}
    for at, wire in enumerate(bent):
        for column in wire.tops:
            leaving.setdefault(column, []).append(at)
    below: list[set[int]] = [set() for _ in bent]
    for at, wire in enumerate(bent):
        for column in wire.bottoms:
            for other in leaving.get(column, ()):
                if other != at:
                    below[other].add(at)  # `other` comes from above there: it must turn first
    if len(bent) <= _WISHING:
        _wish(bent, below)
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


def _wish(bent: Sequence[Wire], below: Sequence[set[int]]) -> None:
    """Put wires above others where that makes fewer crossings and contradicts nothing so far."""
    wishes = []
    for at, one in enumerate(bent):
        for other in range(at + 1, len(bent)):
            if one.left < bent[other].right and bent[other].left < one.right:
                gain = _crossings(bent[other], one) - _crossings(one, bent[other])
                if gain:
                    upper, lower = (at, other) if gain > 0 else (other, at)
                    wishes.append((-abs(gain), upper, lower))
    for _, upper, lower in sorted(wishes):
        if lower not in below[upper] and not _leads(below, lower, upper):
            below[upper].add(lower)


def _crossings(upper: Wire, lower: Wire) -> int:
    """Return how often two wires cross when the one runs above the other."""
    return sum([upper.left < column < upper.right for column in lower.tops]) + sum(
        [lower.left < column < lower.right for column in upper.bottoms]
    )


def _leads(below: Sequence[set[int]], start: int, end: int) -> bool:
    """Return whether a wire is above another one, by way of others."""
    seen = {start}
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at == end:
            return True
        fresh = below[at] - seen
        seen |= fresh
        waiting += fresh
    return False


def _levels(below: Sequence[set[int]]) -> list[int]:
    """Return how many wires at least are above each, along the wishes that make no cycle."""
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


def _touch(one: Wire, other: Wire) -> bool:
    """Return whether two wires on one track would meet."""
    return one.left <= other.right + 1 and other.left <= one.right + 1


def _overlaps(wire: Wire, column: int, wires: Sequence[Wire]) -> bool:
    """Return whether a wire, arriving in a column, runs on top of one that leaves there."""
    for other in wires:
        if other is wire or column not in other.tops or set(other.nets) & set(wire.nets):
            continue
        if wire.is_straight or other.is_straight or other.track >= wire.track:
            return True
    return False
