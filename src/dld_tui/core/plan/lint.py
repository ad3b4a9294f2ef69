"""What in an engine plan probably costs time, and what to do about it.

The rules are in :mod:`.lint_layers` (one layer each), :mod:`.lint_whole` (many layers, attention)
and :mod:`.lint_timing` (whole inferences). docs/engine-lint.md lists them with their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dld_tui.core.collector import collector_paused
from dld_tui.core.plan.lint_layers import layer_findings
from dld_tui.core.plan.lint_links import Links
from dld_tui.core.plan.lint_model import LEVELS, PlanFinding
from dld_tui.core.plan.lint_timing import timing_findings
from dld_tui.core.plan.lint_whole import plan_findings

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EnginePlan

__all__ = ["LEVELS", "PlanFinding", "findings"]


def findings(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes] | None = None
) -> list[PlanFinding]:
    """Return all findings: warnings first, then by their share of the time.

    Args:
        plan: The engine. Without a profile the rules about time say nothing.
        mapping: Which ONNX nodes the layers compute, where that is known: some rules see more.
    """
    nodes = mapping or {}
    with collector_paused():
        links = Links(plan)
        found = [
            *timing_findings(plan),
            *plan_findings(plan, links, nodes),
            *layer_findings(links, nodes),
        ]
        return sorted(found, key=_rank)


def _rank(finding: PlanFinding) -> tuple[int, bool, float, int]:
    return (
        LEVELS.index(finding.level),
        finding.layer is not None and finding.percent is None,
        -(finding.percent or 0.0),
        -1 if finding.layer is None else finding.layer,
    )
