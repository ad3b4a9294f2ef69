"""The rules about speed by id; docs/checks.md explains each."""

from __future__ import annotations

from dld_tui.core.checks.findings import Finding, Repair
from dld_tui.core.checks.rules import Level
from dld_tui.core.document.node import Node

SPEED_RULES: dict[str, Level] = {
    "speed:alignment": "info",
    "speed:transposes": "warning",
    "speed:casts": "warning",
    "speed:cast-in-loop": "warning",
    "speed:float64": "warning",
    "speed:int64": "info",
    "speed:data-dependent": "info",
    "speed:dynamic-channels": "warning",
    "speed:dynamic-input": "info",
    "speed:half-quantized": "warning",
    "speed:float-residual": "warning",
    "speed:requantized": "info",
}
"""The level of each rule."""


def speed_finding(rule: str, message: str, node: Node, repair: Repair | None = None) -> Finding:
    """Return a finding of one of :data:`SPEED_RULES`."""
    return Finding(SPEED_RULES[rule], rule, message, node.scope, node, None, repair)
