"""The smallest set of nodes that must keep their precision so that a result is good enough.

Which sets are good is not known until they are tried, and a trial is a run of a model. So the
search is a generator: it yields the set to try next and is sent what came of it. It can be
stopped and taken up again from the trials made so far, and it knows nothing of models.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from dld_tui.core import fmt
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.tables.table import NOTE, Column, Table

Kept: TypeAlias = "frozenset[str]"
"""The nodes that keep their precision in a trial."""
Search: TypeAlias = "Generator[Kept, bool, tuple[str, ...] | None]"
_T = TypeVar("_T")

_FIRST = 8
"""So many suspects are likely to be needed; behind them all are as good as any other."""


_MANY = 4
"""Where more than one in so many blocks is needed, nodes of the others may matter more than some of
these."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    good: bool
    noise: float = math.inf
    """How far the worst output is off, relative to its values; infinite for NaN and the like."""


Guided: TypeAlias = "Generator[Kept, Outcome, tuple[str, ...] | None]"


def guided_set(
    nodes: Sequence[str],
    known: MutableMapping[Kept, Outcome] | None = None,
    affords: Callable[[int], bool] = lambda _: True,
) -> Guided:
    """Find a smallest set as :func:`minimal_set` does, first trying what matters most.

    Nodes are ranked by what the outputs lose when they alone are lowered: first blocks of
    neighbours, about as many as there are nodes in each, then each node of those blocks that are
    needed for a good result, or of all where these are many. That is for trials that cost little.

    Args:
        nodes: In the order of the computation.
        known: Trials that were made already, which are not made again; new ones are added.
        affords: Whether there is time for so many trials that only rank single nodes. Without
            them the nodes are in the order of their blocks, and the search goes on at once.

    Yields:
        The nodes to keep; send the outcome.

    Returns:
        The nodes, those that matter most first; None when not even all of them are enough.
    """
    tried: MutableMapping[Kept, Outcome] = {} if known is None else known
    every = frozenset(nodes)

    def noise(lowered: Collection[str]) -> Generator[Kept, Outcome, float]:
        kept = every.difference(lowered)
        if kept not in tried:
            tried[kept] = yield kept
        return tried[kept].noise

    def ranked(
        parts: Sequence[Sequence[str]],
    ) -> Generator[Kept, Outcome, list[Sequence[str]]]:
        noises = []
        for part in parts:
            noises.append((yield from noise(part)))
        order = sorted(range(len(parts)), key=lambda at: -noises[at])
        return [parts[at] for at in order]

    if (yield from answered(_try((), {}), tried)):
        return ()
    if not (yield from answered(_try(every, {}), tried)):
        return None
    size = math.isqrt(len(nodes))
    blocks = yield from ranked([nodes[at : at + size] for at in range(0, len(nodes), size)])
    end = yield from answered(_shortest_prefix(blocks, {}), tried)
    if end * _MANY > len(blocks):
        end = len(blocks)
    likely = [node for block in blocks[:end] for node in block]
    if size > 1 and affords(len(likely)):
        likely = [node for (node,) in (yield from ranked([[node] for node in likely]))]
    rest = [node for block in blocks[end:] for node in block]
    return (yield from answered(minimal_set([*likely, *rest]), tried))


def answered(
    steps: Generator[Kept, bool, _T], tried: MutableMapping[Kept, Outcome]
) -> Generator[Kept, Outcome, _T]:
    """Carry out a search that only asks what is good."""
    try:
        kept = next(steps)
        while True:
            if kept not in tried:
                tried[kept] = yield kept
            kept = steps.send(tried[kept].good)
    except StopIteration as end:
        result: _T = end.value
        return result


def minimal_set(suspects: Sequence[str], known: MutableMapping[Kept, bool] | None = None) -> Search:
    """Find a smallest set of suspects that makes a trial good.

    This is delta debugging (Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing
    Input*, 2002) for suspects of which the first ones are the likely ones: by bisection it finds
    the shortest prefix that is good, and then leaves out of it what it can, the unlikely ones
    first, in steps that double as long as that is good. It takes about ``2 log2(n)`` trials for
    each node found when few are needed, and two when many are; ``ddmin`` takes several times as
    many. At the end each node is tried without, so the result is 1-minimal whatever the rule is:
    without any one of its nodes a trial is not good. It was tried itself.

    Args:
        suspects: The nodes, those that are likely to be needed first.
        known: Trials that were made already, which are not made again; new ones are added.

    Yields:
        The nodes to keep; send whether the trial was good.

    Returns:
        The nodes in the order given; None when not even all of them are enough.
    """
    tried: MutableMapping[Kept, bool] = {} if known is None else known
    ordered = list(dict.fromkeys(suspects))
    if (yield from _try([], tried)):
        return ()
    if not (yield from _try(ordered, tried)):
        return None
    end = yield from _shortest_prefix([[node] for node in ordered], tried)
    kept = yield from _with_less(ordered[:end], tried)
    return tuple((yield from _without_any(kept, tried)))


def unproven(kept: Kept, known: Mapping[Kept, bool]) -> list[str]:
    """Return the nodes of a good set without which no trial was made, or a good one."""
    return [node for node in kept if known.get(kept - {node}) is not False]


def _try(kept: Iterable[str], tried: MutableMapping[Kept, bool]) -> Generator[Kept, bool, bool]:
    wanted = frozenset(kept)
    if wanted not in tried:
        tried[wanted] = yield wanted
    return tried[wanted]


def _shortest_prefix(
    parts: Sequence[Sequence[str]], tried: MutableMapping[Kept, bool]
) -> Generator[Kept, bool, int]:
    """Return how many of some parts are needed, when none alone is good and all together are."""

    def good(count: int) -> Generator[Kept, bool, bool]:
        return _try((node for part in parts[:count] for node in part), tried)

    low, high = 0, 1
    while high < len(parts) and not (yield from good(high)):
        low, high = high, high * 2 if high < _FIRST else len(parts)
    high = min(high, len(parts))
    while high - low > 1:
        middle = (low + high) // 2
        if (yield from good(middle)):
            high = middle
        else:
            low = middle
    return high


def _with_less(
    kept: list[str], tried: MutableMapping[Kept, bool]
) -> Generator[Kept, bool, list[str]]:
    """Return what is left of a good set when parts of it are left out, the last ones first."""
    at, step = len(kept), 1
    while at > 0:
        low = max(0, at - step)
        if (yield from _try(kept[:low] + kept[at:], tried)):
            kept, at, step = kept[:low] + kept[at:], low, step * 2
            continue
        while at - low > 1:  # one of these is needed: the last one of them
            middle = (low + at) // 2
            if (yield from _try(kept[:middle] + kept[at:], tried)):
                kept, at = kept[:middle] + kept[at:], middle
            else:
                low = middle
        at, step = low, 1
    return kept


def _without_any(
    kept: list[str], tried: MutableMapping[Kept, bool]
) -> Generator[Kept, bool, list[str]]:
    """Return what is left of a good set when nothing more can be taken away."""
    at, needed = len(kept) - 1, 0
    while needed < len(kept):
        rest = kept[:at] + kept[at + 1 :]
        if (yield from _try(rest, tried)):
            kept, needed = rest, 0
        else:
            needed += 1
        at = at - 1 if at > 0 else len(kept) - 1
    return kept


def expected_trials(suspects: int, needed: int = 1) -> tuple[int, int]:
    """Return how many trials a search takes about, at least and at most, for a result of a size.

    Args:
        suspects: How many nodes there are.
        needed: How many of them are expected to be in the result.
    """
    if suspects < 1:
        return 1, 1
    needed = min(needed, suspects)
    return 2, 2 + needed * (2 * math.ceil(math.log2(suspects + 1)) + 2)


def ranking_trials(nodes: int) -> int:
    """Return how many trials :func:`guided_set` makes to rank nodes, at most."""
    size = math.isqrt(nodes)
    return nodes + math.ceil(nodes / size) if size > 1 else nodes


@dataclass(frozen=True)
class SearchEstimate:
    """What a search would cost, judged by its first trial. Fields may be added, never renamed."""

    nodes: int
    """That can be lowered."""
    trial: str
    """What a trial is called."""
    trial_seconds: float
    trials: tuple[int, int]
    """The least and the most, with three nodes that have to stay."""
    ranking_trials: int
    """Those that only rank the nodes; 0 for none."""
    trials_per_node: int
    """More of them for each node that has to stay."""
    seconds: tuple[float, float]
    """What `trials` take."""


def cost_text(estimate: SearchEstimate) -> str:
    """Return what a search would cost.

    How many nodes have to stay is what it is to find, so the cost is told for each of them.
    """
    nodes, per_node = estimate.nodes, estimate.trials_per_node
    seconds, ranking, trial = estimate.trial_seconds, estimate.ranking_trials, estimate.trial
    first = ""
    if ranking:
        first = f"up to {ranking:,} to rank them ({fmt.duration(ranking * seconds)}) and "
    return (
        f"{nodes:,} nodes can be lowered. A {trial} takes {fmt.duration(seconds)}; there are 1 when"
        f" all can be, 2 when that is never enough, and else {first}about {per_node} more"
        f" ({fmt.duration(per_node * seconds)}) for each node that has to stay"
    )


@dataclass(frozen=True)
class PrecisionEstimate:
    """The result of the activity ``search_precision`` where only the estimate was asked for."""

    precision: str
    backend: str
    estimate: SearchEstimate


@dataclass(frozen=True)
class KeptNode:
    """A node that must stay in fp32. All texts are foreign."""

    scope: tuple[str, ...]
    node: str
    """As edits refer to it."""
    op_type: str


@dataclass(frozen=True)
class PrecisionEdit:
    """A step of an edit script: nodes that compute in a precision."""

    edit: str
    """The name of the edit."""
    nodes: tuple[tuple[tuple[str, ...], str], ...]
    """(scope, reference) pairs. Foreign text."""
    precision: str


@dataclass(frozen=True)
class PrecisionReport:
    """The result of the activity ``search_precision``. Fields may be added, never renamed."""

    precision: str
    backend: str
    sets: int
    """Of inputs."""
    candidates: int
    """Nodes that the precision changes."""
    kept: tuple[KeptNode, ...] | None
    """None when not even keeping all nodes is good enough."""
    minimal: bool
    """False when the trials allowed were not enough to show it."""
    untried: int
    """Kept nodes that may not be needed."""
    script: str | None
    """Where the edits, for int8 the names of the kept nodes, were written to."""
    edits: tuple[PrecisionEdit, ...]
    """Those that assign the precisions; none for int8."""
    lowered: int | None
    """Nodes in the precision."""
    errors: Mapping[str, TensorError]
    """By output. Names are foreign text."""
    trials: int
    seconds: float
    estimate: SearchEstimate


PrecisionResult: TypeAlias = PrecisionReport | PrecisionEstimate


def not_minimal_text(report: PrecisionReport) -> str:
    """Return what is to be said of a result that the limit of trials came before."""
    kept = fmt.plural(len(report.kept or ()), "node")
    return (
        f"Not minimal: with {kept} in fp32 the outputs are within their tolerances, but"
        f" {report.untried:,} of them may not be needed. The trials allowed were not enough: the"
        " same command goes on from here"
    )


def kept_table(kept: Sequence[KeptNode]) -> Table[KeptNode]:
    """Return the nodes that must stay in fp32 as a table."""
    return Table(
        (
            Column("node", "node that stays in fp32", lambda kept: kept.node, least=20, keep="end"),
            Column("op_type", "operator", lambda kept: kept.op_type, width=18, style="type"),
            Column("scope", "scope", lambda kept: " › ".join(kept.scope), NOTE, 24, priority=1,
                   keep="end", style="dim"),
        ),
        kept,
    )  # fmt: skip
