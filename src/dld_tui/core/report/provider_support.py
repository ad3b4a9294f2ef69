"""Which nodes of a model each execution provider takes, and what would change that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.operators.provider_tables import Cause, Support
from dld_tui.core.tables.table import NOTE, PERCENT, Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import TextEnum

_MOST_REASONS, _MOST_OPERATORS = 3, 5


class Basis(TextEnum):
    """Where an answer is from."""

    ASKED = "asked"
    """The installed provider: ONNX Runtime's own assignment."""
    PARSER = "parser"
    """The installed library of the provider: its parser, which the provider asks."""
    TABLE = "table"
    """The provider's published table."""


@dataclass(frozen=True)
class NodeSupport:
    """A node that a provider does not take, or only partly. Names are untrusted text."""

    provider: str
    scope: tuple[str, ...]
    node: str
    op_type: str
    support: Support
    cause: Cause
    reason: str
    change: str = ""
    """What would help: a command, or an imperative sentence; empty if nothing is known."""
    share: float | None = None
    """Of the weights or of the measured time, from 0 to 1."""


@dataclass(frozen=True)
class ProviderSupport:
    """What one provider takes."""

    name: str
    """Short name, perhaps with a device."""
    title: str
    basis: Basis
    version: str
    """Of what was asked, or what the table is of."""
    date: str
    """Of the table; empty where the provider was asked."""
    url: str
    taken: int
    partly: int
    not_taken: int
    partitions: int
    """Groups of nodes of the main graph that the provider runs without a switch in between."""
    share: float | None
    """Of the weights or of the measured time that the taken nodes have, from 0 to 1."""
    nodes: tuple[NodeSupport, ...] = ()
    """Those that are not taken, or only partly, in the order of the file."""
    why: str = ""
    """Why the installed provider was not asked; empty if it was, or is not installed."""

    @property
    def total(self) -> int:
        """The number of nodes."""
        return self.taken + self.partly + self.not_taken


@dataclass(frozen=True)
class ProvidersResult:
    """The result of the activity ``providers``. Fields may be added, never renamed."""

    model: str
    weighed: str
    """What shares are of: ``weights`` or ``time``; empty where neither is known."""
    providers: tuple[ProviderSupport, ...]
    is_list: bool = False
    """Whether the nodes were asked for."""


def support_lines(result: ProvidersResult) -> list[str]:
    """Return what each provider takes, in lines for people."""
    lines = []
    for provider in result.providers:
        share = ""
        if provider.share is not None and result.weighed and provider.taken < provider.total:
            of = "the measured time" if result.weighed == "time" else "the weights"
            share = f" ({fmt.whole_percent(100 * provider.share)} % of {of})"
        partly = f", {provider.partly:,} partly" if provider.partly else ""
        parts = f", {fmt.plural(provider.partitions, 'partition')}" if provider.partitions else ""
        lines.append(
            f"{visible(provider.title)}: {provider.taken:,} of"
            f" {fmt.plural(provider.total, 'node')} taken{share}{partly}{parts}."
            f" {_basis_text(provider)}"
        )
        lines += [f"  {reason}" for reason in _reasons(provider)]
    return lines


def _basis_text(provider: ProviderSupport) -> str:
    version = visible(provider.version)
    if provider.basis is Basis.ASKED:
        return f"Asked: {version}."
    if provider.basis is Basis.PARSER:
        return f"Asked: the parser of {version}."
    why = f"; the installed one was not asked: {visible(provider.why)}" if provider.why else ""
    return f"By the published table of {version} ({provider.date}){why}."


def _reasons(provider: ProviderSupport) -> list[str]:
    """Return the most frequent reasons with their operators and what would help, a line each."""
    groups: dict[tuple[Support, str, str], Counter[str]] = {}
    for node in provider.nodes:
        key = (node.support, node.reason, node.change)
        groups.setdefault(key, Counter())[node.op_type] += 1
    ordered = sorted(groups.items(), key=lambda item: -item[1].total())
    lines = []
    for (support, reason, change), operators in ordered[:_MOST_REASONS]:
        counts = [f"{count:,} {visible(name)}" for name, count in operators.most_common()]
        state = "partly, " if support is Support.PARTLY else ""
        help_text = f" → {visible(change)}" if change else ""
        lines.append(f"{fmt.listed(counts, _MOST_OPERATORS)}: {state}{visible(reason)}{help_text}")
    if rest := sum(operators.total() for _, operators in ordered[_MOST_REASONS:]):
        lines.append(f"{rest:,} more; --provider {visible(provider.name)!r} lists the nodes")
    return lines


NODE_COLUMNS: tuple[Column[NodeSupport], ...] = (
    Column("provider", "provider", lambda n: n.provider, width=14),
    Column("node", "node", lambda n: "/".join((*n.scope, n.node)), least=20, keep="end"),
    Column("op_type", "operator", lambda n: n.op_type, width=18),
    Column("support", "taken", lambda n: n.support, width=7),
    Column("reason", "why", lambda n: n.reason, least=24),
    Column("change", "what helps", lambda n: n.change, NOTE, least=16, priority=1),
    Column("share", "% share", lambda n: None if n.share is None else 100 * n.share, PERCENT, 8,
           priority=2),
)  # fmt: skip


def support_table(result: ProvidersResult) -> Table[NodeSupport]:
    """Return the nodes that are not taken, or only partly."""
    rows: Sequence[NodeSupport] = [n for provider in result.providers for n in provider.nodes]
    return Table(
        NODE_COLUMNS, rows, groups=("provider", "op_type", "reason"), name="providers",
        title="Nodes that a provider does not take",
    )  # fmt: skip
