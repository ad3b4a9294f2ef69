"""What a search for the nodes that must stay in fp32 found, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.accuracy.tensor_errors import TensorError
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import NOTE, Column, Table


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
        f"{fmt.plural(nodes, 'node')} can be lowered. A {trial} takes {fmt.duration(seconds)};"
        f" there are 1 when all can be, 2 when that is never enough, and else {first}about"
        f" {per_node} more ({fmt.duration(per_node * seconds)}) for each node that has to stay"
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
    """Whether no node can be lowered any more; else a limit ended the search."""
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
    unknown: int = 0
    """Kept nodes whose own trial failed: without them the model could not be run."""
    changed: tuple[str, ...] = ()
    """Trials with another outcome when they were repeated. Untrusted text."""


PrecisionResult: TypeAlias = PrecisionReport | PrecisionEstimate


def not_minimal_text(report: PrecisionReport) -> str:
    """Return a note for a result that the limit of trials cut short."""
    kept = fmt.plural(len(report.kept or ()), "node")
    return (
        f"Not minimal: with {kept} in fp32 the outputs are within their tolerances, but"
        f" {report.untried:,} of them may not be needed. The limit ended the search; the same"
        " command resumes it"
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
