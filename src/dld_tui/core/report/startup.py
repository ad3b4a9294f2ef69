"""How long it takes to make a session, by stage, and which provider each node is given."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.table import MS, Column, Table
from dld_tui.core.text import visible


@dataclass(frozen=True)
class Stage:
    """A part of the start."""

    name: str
    ms: float
    """By medians of the repeats; negative where the stage is shorter than the noise."""
    repeats_ms: tuple[float, ...] = ()
    """The same of each repeat; empty where that is unknown."""


@dataclass(frozen=True)
class NodePlacement:
    """A node with its provider. Names are untrusted text."""

    node: str
    op_type: str
    provider: str
    """Short name."""
    reason: str = ""
    """Why it is not on the first provider; empty where it is, or where the reason is unknown."""


@dataclass(frozen=True)
class SessionStartup:
    """The result of the activity ``startup``. Fields may be added, never renamed."""

    model: str
    backend: str
    stages: tuple[Stage, ...]
    session_ms: float
    """Creating a session with all optimizations, as usual."""
    first_ms: float
    """The first pass."""
    later_ms: float
    """Median of those after it."""
    repeats: int
    nodes: tuple[NodePlacement, ...]
    """Empty where this version of ONNX Runtime does not report assignments."""

    @property
    def elsewhere(self) -> list[NodePlacement]:
        """The nodes that are not on the first provider."""
        return [node for node in self.nodes if node.reason]


STAGE_COLUMNS: tuple[Column[Stage], ...] = (
    Column("stage", "stage", lambda stage: stage.name, least=20),
    Column("ms", "ms", lambda stage: stage.ms, MS, 10),
)
NODE_COLUMNS: tuple[Column[NodePlacement], ...] = (
    Column("node", "node", lambda placed: placed.node, least=20, keep="end"),
    Column("op_type", "operator", lambda placed: placed.op_type, width=20),
    Column("provider", "provider", lambda placed: placed.provider, width=12),
    Column("reason", "why", lambda placed: placed.reason, least=16),
)


def stage_table(result: SessionStartup) -> Table[Stage]:
    """Return the stages."""
    return Table(STAGE_COLUMNS, result.stages, name="start_up", title="Start-up")


def node_table(result: SessionStartup) -> Table[NodePlacement]:
    """Return the nodes, those that are not on the first provider first."""
    rows = sorted(result.nodes, key=lambda node: not node.reason)
    return Table(NODE_COLUMNS, rows, name="providers", title="Providers")


def _longest(stages: Sequence[Stage]) -> list[str]:
    """Return the stages that are the longest of a repeat, each once."""
    repeats = zip(*(stage.repeats_ms for stage in stages), strict=False)
    return list(dict.fromkeys(stages[each.index(max(each))].name for each in repeats))


def startup_lines(result: SessionStartup) -> list[str]:
    """Return what takes the time, and where nodes are, in lines for people."""
    ms = fmt.milliseconds
    ordered = sorted(result.stages, key=lambda stage: -stage.ms)
    # What is below zero is off by as much at least, and so may any other stage be.
    noise_ms = max(0.0, -ordered[-1].ms) if ordered else 0.0
    lines = [
        f"A session takes {ms(result.session_ms)} ms, the first pass {ms(result.first_ms)} ms,"
        f" later ones {ms(result.later_ms)} ms; medians of {result.repeats},"
        f" {visible(result.backend)}."
    ]
    if ordered and result.session_ms > 0 and ordered[0].ms > 0:
        worst, second_ms = ordered[0], max((stage.ms for stage in ordered[1:]), default=0.0)
        share = share_percent(worst.ms, result.session_ms) or 0.0
        unsure = "Which stage is the longest is not certain"
        if worst.ms - second_ms <= noise_ms:
            lines.append(f"{unsure}: they are off by {ms(noise_ms)} ms or more.")
        elif len(longest := _longest(result.stages)) > 1:
            lines.append(f"{unsure}: in single repeats it is {' or '.join(longest)}.")
        else:
            part = f"{ms(worst.ms)} ms, {fmt.whole_percent(share)} %"
            lines.append(f"The longest stage is {worst.name}: {part}.")
    if noise_ms:
        lines.append(
            "A negative stage saves others more time than it takes, or is within the noise."
        )
    by: dict[str, int] = {}
    for node in result.nodes:
        by[node.provider] = by.get(node.provider, 0) + 1
    if by:
        counts = ", ".join(f"{count:,} on {visible(name)}" for name, count in by.items())
        lines.append(f"Providers of the nodes before any run: {counts}.")
    else:
        lines.append("This ONNX Runtime does not report the provider of each node.")
    return lines
