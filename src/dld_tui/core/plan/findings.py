"""Findings about an engine plan, singly and as groups of one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core import fmt

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

LEVELS = ("warning", "note")
"""Levels of findings, the worst first."""


@dataclass(frozen=True)
class PlanFinding:
    """One hazard of one layer, or of the whole engine."""

    layer: int | None
    """`EngineLayer.index`; None when it is about the whole engine."""
    rule: str
    """The rule's id, as in docs/engine-lint.md."""
    level: str
    """One of `LEVELS`."""
    hazard: str
    """What is wrong. May contain foreign text."""
    mitigation: str
    """What to do about it."""
    percent: float | None
    """Share of the time of all layers that it is about, 0 to 100; None without a profile."""
    layers: tuple[int, ...] = ()
    """The layers that a finding about the whole engine is of."""


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one rule and level."""

    rule: str
    level: str
    findings: tuple[PlanFinding, ...]
    layers: tuple[EngineLayer, ...]
    """The layers that they are about, those that take longest first; each once."""
    percent: float | None
    """Share of the time of these layers; None without a profile."""

    @property
    def hazards(self) -> list[str]:
        """What is wrong, one sentence each, the most frequent first, with how often. Foreign."""
        counts: dict[str, int] = {}
        for finding in self.findings:
            counts[finding.hazard] = counts.get(finding.hazard, 0) + 1
        ordered = sorted(counts.items(), key=lambda item: -item[1])
        if len(self.findings) == 1:
            return [ordered[0][0]]
        return [
            f"{hazard} ({fmt.plural(count, 'layer')})" if count > 1 else hazard
            for hazard, count in ordered
        ]

    @property
    def mitigations(self) -> list[str]:
        """What to do, each once."""
        return list(dict.fromkeys(found.mitigation for found in self.findings if found.mitigation))


def grouped(plan: EnginePlan, findings: Sequence[PlanFinding]) -> list[FindingGroup]:
    """Return findings by rule and level: warnings first, then by the share of the time."""
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    by_rule: dict[tuple[str, str], list[PlanFinding]] = {}
    for finding in findings:
        by_rule.setdefault((finding.rule, finding.level), []).append(finding)
    groups = [_group(same, layers) for same in by_rule.values()]
    return sorted(groups, key=lambda group: (LEVELS.index(group.level), -(group.percent or 0.0)))


def _group(same: Sequence[PlanFinding], layers: Mapping[int, EngineLayer]) -> FindingGroup:
    indices: dict[int, None] = {}
    for finding in same:
        own = () if finding.layer is None else (finding.layer,)
        indices.update(dict.fromkeys((*own, *finding.layers)))
    involved = sorted(
        (layers[index] for index in indices if index in layers),
        key=lambda layer: -(layer.percent or 0.0),
    )
    percents = [layer.percent for layer in involved if layer.percent is not None]
    return FindingGroup(
        same[0].rule, same[0].level, tuple(same), tuple(involved),
        sum(percents) if percents else None,
    )  # fmt: skip
