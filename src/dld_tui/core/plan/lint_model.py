"""A finding about an engine plan."""

from __future__ import annotations

from dataclasses import dataclass

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
