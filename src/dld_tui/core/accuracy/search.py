"""The smallest set of nodes that must keep their precision so that a result is good enough.

Only a trial, which runs a model, tells whether a set is good enough. So the search is a generator:
it yields the set to try next and is sent the outcome. It can be stopped and resumed with the trials
made so far, and it does not depend on models.
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
"""The number of suspects that are likely to be needed; the order of later ones does not matter."""


_MANY = 4
"""If more than one block in this number is needed, nodes of the others may matter more than some of
these."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial."""

    good: bool
    noise: float = math.inf
    """The largest relative error of an output; infinite for NaN and infinite values."""


Guided: TypeAlias = "Generator[Kept, Outcome, tuple[str, ...] | None]"


def guided_set(
    nodes: Sequence[str],
    known: MutableMapping[Kept, Outcome] | None = None,
    affords: Callable[[int], bool] = lambda _: True,
) -> Guided:
    """Find a smallest set as :func:`minimal_set` does, trying the most important nodes first.

    Nodes are ranked by the error of the outputs when only they are lowered: first blocks of
    neighbours, about as many as there are nodes in each, then the single nodes of the blocks that
    are needed, or of all blocks if these are many. For trials that are cheap.

    Args:
        nodes: In execution order.
        known: Earlier trials, which are not repeated; new ones are added.
        affords: Returns whether there is time for this many trials that only rank single nodes. If
            not, the nodes stay in the order of their blocks.

    Yields:
        The nodes to keep; send the outcome.

    Returns:
        The nodes, the most important first; None if not even all of them are enough.
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
    """Run a search that only needs to know which sets are good."""
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
        known: Earlier trials, which are not repeated; new ones are added.

    Yields:
        The nodes to keep; send whether the trial was good.

    Returns:
        The nodes in the order given; None if not even all of them are enough.
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


def unproven_nodes(kept: Kept, known: Mapping[Kept, bool]) -> list[str]:
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
    """Return how many of some parts are needed, if no single one is good and all together are."""

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
    """Return what remains of a good set when parts are left out, the last ones first."""
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
    """Return what remains of a good set when nothing more can be removed."""
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
    """Return the approximate least and largest number of trials for a result of a given size.

    Args:
        suspects: The number of nodes.
        needed: The expected number of nodes in the result.
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
    """The cost of a search, estimated from its first trial. Fields may be added, never renamed."""

    nodes: int
    """That can be lowered."""
    trial: str
    """The word for a trial."""
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
    """Return the cost of a search as text.

    The number of nodes that have to stay is unknown, so the cost is given per node.
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
    """The result of the activity ``search_precision`` if only the estimate was requested."""

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
    """(scope, reference) pairs. Untrusted text."""
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
    """By output. Names are untrusted text."""
    trials: int
    seconds: float
    estimate: SearchEstimate


PrecisionResult: TypeAlias = PrecisionReport | PrecisionEstimate


def not_minimal_text(report: PrecisionReport) -> str:
    """Return a note for a result that the limit of trials cut short."""
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
