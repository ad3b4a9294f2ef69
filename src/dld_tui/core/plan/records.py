"""The layers of an engine as the records of a report, for the same tables and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core.plan.subject import plan_subject
from dld_tui.core.report.records import Layer
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.plan.lint import PlanFinding
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan


def layer_records(
    plan: EnginePlan,
    mapping: Mapping[int, LayerNodes],
    findings: Iterable[PlanFinding] = (),
) -> list[Layer]:
    """Return a record a layer of ``plan.layers``; ``Layer.index`` is its place there.

    The time is the mean of a pass, as the file gives it first; the median is among the details.

    Args:
        plan: The engine.
        mapping: The ONNX nodes by the layers' own index.
        findings: How many each layer has is kept among its details.
    """
    counts = Counter(finding.layer for finding in findings)
    found = zip(plan.layers, plan_subject(plan, mapping).layers, strict=True)
    return [
        replace(
            record,
            time_ms=layer.time_ms,
            details={**record.details, **_details(layer, counts[layer.index])},
        )
        for layer, record in found
    ]


def _details(layer: EngineLayer, findings: int) -> dict[str, JSON]:
    sizes = [tensor.bytes for tensor in layer.outputs]
    found: dict[str, JSON] = {
        "index": layer.index,
        "kind": layer.kind,
        "weights_bytes": None if layer.weights_from == "unknown" else layer.weights_bytes,
        "tactic": layer.tactic or layer.tactic_value,
        "footprint": layer.footprint,
        "median_ms": layer.median_ms,
        "findings": findings,
    }
    if sizes and None not in sizes:
        found["output_bytes"] = sum(size or 0 for size in sizes)
    return found
