"""The attention of an engine, block by block: fused into one kernel or not, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.plan.lint import Links, is_fused_attention, unfused_attention
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import COUNT, FINE_MS, PERCENT

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes


@dataclass(frozen=True)
class AttentionBlock:
    """One attention. Texts are foreign."""

    name: str
    """Of the kernel, or of the softmax."""
    layers: tuple[EngineLayer, ...]
    """The fused kernel; or all from the first product over the softmax to the second product."""
    fused: bool

    @property
    def precisions(self) -> str:
        """The types that its layers work in, in their order."""
        return ", ".join(dict.fromkeys(one.precision for one in self.layers if one.precision))

    @property
    def tactics(self) -> str:
        """What computes it, in its order."""
        return ", ".join(dict.fromkeys(one.tactic for one in self.layers if one.tactic))

    @property
    def time_ms(self) -> float | None:
        """None without a profile."""
        times = [one.time_ms for one in self.layers if one.time_ms is not None]
        return sum(times) if times else None

    @property
    def percent(self) -> float | None:
        """Share of the time of all layers."""
        shares = [one.percent for one in self.layers if one.percent is not None]
        return sum(shares) if shares else None


def attention_blocks(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes] | None = None
) -> list[AttentionBlock]:
    """Return the blocks in the order of the engine."""
    links, found = Links(plan), []
    for place, layer in enumerate(plan.layers):
        if is_fused_attention(layer):
            found.append(AttentionBlock(layer.name, (layer,), True))
        elif places := unfused_attention(plan, links, mapping or {}, place):
            layers = tuple(plan.layers[at] for at in places)
            found.append(AttentionBlock(layer.name, layers, False))
    return found


def attention_table(plan: EnginePlan) -> Table[AttentionBlock]:
    """Return the blocks as a table."""
    columns: tuple[Column[AttentionBlock], ...] = (
        Column("name", "attention", lambda one: one.name, least=28, keep="end", pinned=True),
        Column("fused", "fused", lambda one: "yes" if one.fused else "no", width=6),
        Column("precision", "types", lambda one: one.precisions, width=12),
        Column("time_ms", "time ms", lambda one: one.time_ms, FINE_MS, 9, heat=True),
        Column("percent", "%", lambda one: one.percent, PERCENT, 6),
        Column("layers", "layers", lambda one: len(one.layers), COUNT, 7),
        Column("tactics", "tactics", lambda one: one.tactics, keep="end", priority=20),
    )
    return Table(columns, attention_blocks(plan))
