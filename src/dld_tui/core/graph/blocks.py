"""Repeated blocks: the layers of a deep network, found without looking at names.

The rows are cut wherever a single tensor is alive, those aside that feed everything, such as masks.
The parts between cuts are compared by their operators, and a sequence of parts that comes several
times in a row is a block. Names only say where a block begins, when every shift of the cut would
repeat as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.rails import Rails
from dld_tui.core.graph.scopes import Scope, common_scope

LONGEST_PERIOD = 12
"""Parts that a block may have: enough for a transformer layer, few enough to look for quickly."""
FEWEST_ROWS = 3
"""A repeat of less saves nothing."""
GLOBAL_TARGETS = 3
GLOBAL_ROWS = 40
"""A tensor that is used so often and over so many rows, a quarter of all too, is in no block."""

_WORK = frozenset((Kind.NODE, Kind.HOLDER, Kind.CALL, Kind.GROUP))


@dataclass(frozen=True, slots=True)
class Repeat:
    """A block that comes several times in a row."""

    starts: tuple[int, ...]
    """The first row of each time, and behind them the row after the last time."""

    @property
    def count(self) -> int:
        """How often it comes."""
        return len(self.starts) - 1


def repeats(
    graph: Graph, rails: Rails, scopes: Sequence[Scope], start: int, end: int
) -> list[Repeat]:
    """Return the repeated blocks among some rows, in their order; they do not overlap.

    Args:
        graph: The graph.
        rails: Its rows.
        scopes: The name scope of each row.
        start: The first row that is looked at.
        end: The row after the last one.
    """
    cuts = _cuts(graph, rails, start, end)
    tokens = _tokens(graph, rails, cuts)
    found = []
    part = 0
    while part < len(tokens):
        period, count = _best_repeat(tokens, cuts, part)
        if not period:
            part += 1
            continue
        part = _snapped(tokens, cuts, scopes, part, period, count)
        count = _times(tokens, part, period)
        starts = [cuts[part + period * time] for time in range(count + 1)]
        found.append(Repeat(tuple(starts)))
        part += period * count
    return found


def _cuts(graph: Graph, rails: Rails, start: int, end: int) -> list[int]:
    """Return the rows that a part can start at, the first one and the one after the last too."""
    count = end - start
    change = [0] * (count + 1)
    nets, outputs, ends = graph.nets, graph.outputs, rails.ends
    far = max(min(GLOBAL_ROWS, count // 3), count // 4)
    for at, vertex in enumerate(rails.order[start:end]):
        for number in outputs[vertex]:
            last = ends[number] - start
            if last > at and not (last - at >= far and len(nets[number].targets) >= GLOBAL_TARGETS):
                change[at] += 1
                change[last if last < count else count] -= 1
    alive, cuts = 0, [start]
    for row, more in enumerate(change[: count - 1], start + 1):
        alive += more
        if alive <= 1:
            cuts.append(row)
    return [*cuts, end] if count else cuts


def _tokens(graph: Graph, rails: Rails, cuts: Sequence[int]) -> list[int]:
    """Return a number for each part, the same for parts of the same operators."""
    numbers: dict[tuple[str, ...] | str, int] = {}
    labels, kinds, first = graph.labels, graph.kinds, cuts[0]
    # What inputs and outputs are called says nothing about the kind of work.
    works = [
        labels[vertex] if kinds[vertex] in _WORK else kinds[vertex]
        for vertex in rails.order[first : cuts[-1]]
    ]
    tokens = []
    for start, end in pairwise(cuts):
        key: tuple[str, ...] | str
        if end - start == 1:  # all of a chain
            key = works[start - first]
        else:
            key = tuple(sorted(works[start - first : end - first]))
        tokens.append(numbers.setdefault(key, len(numbers)))
    return tokens


def _times(tokens: Sequence[int], part: int, period: int) -> int:
    """Return how often the parts from `part` on come in a row."""
    first = tokens[part : part + period]
    times = 1
    while tokens[part + times * period : part + (times + 1) * period] == first:
        times += 1
    return times


def _best_repeat(tokens: Sequence[int], cuts: Sequence[int], part: int) -> tuple[int, int]:
    """Return the period and count of the repeat from a part on that covers most rows, or 0, 0."""
    best, found = 0, (0, 0)
    for period in range(1, LONGEST_PERIOD + 1):
        if part + 2 * period > len(tokens):
            break
        if tokens[part] != tokens[part + period]:
            continue
        times = _times(tokens, part, period)
        rows = cuts[part + period] - cuts[part]
        covered = cuts[part + times * period] - cuts[part]
        if times > 1 and rows >= FEWEST_ROWS and covered > best:
            best, found = covered, (period, times)
    return found


def _snapped(
    tokens: Sequence[int],
    cuts: Sequence[int],
    scopes: Sequence[Scope],
    part: int,
    period: int,
    count: int,
) -> int:
    """Return where the block had better begin, so that each time lies in a name scope of its own.

    A repeat may begin anywhere within its first time. Where names do not help, it begins as early
    as possible.
    """
    best, chosen = -1, part
    for shift in range(period):
        start = part + shift
        times = _times(tokens, start, period)
        if times < max(2, count - 1):
            continue
        blocks = [
            common_scope(scopes[cuts[start + time * period] : cuts[start + (time + 1) * period]])
            for time in range(min(times, 3))
        ]
        score = sum(len(scope) for scope in blocks) * (len(set(blocks)) == len(blocks))
        if score > best:
            best, chosen = score, start
    return chosen
