"""A plan as one JSON document for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core.plan.filter import distribution, groups
from dld_tui.core.plan.macs import arithmetic_intensity, macs
from dld_tui.core.plan.roofline import peaks_of, placement, unknown_device
from dld_tui.core.plan.summary import summary_of
from dld_tui.core.rewrite import command_of
from dld_tui.core.tables.table import json_of

if TYPE_CHECKING:
    from dld_tui.core.plan.lint import PlanFinding
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor, TimingSummary
    from dld_tui.core.tables.table import Table
    from dld_tui.core.types import JSON


def plan_json(
    plan: EnginePlan,
    findings: Sequence[PlanFinding] = (),
    mapping: Mapping[int, LayerNodes] | None = None,
    table: Table[Any] | None = None,
) -> dict[str, JSON]:
    """Return the document of ``dld plan --json``. Fields may be added, never renamed.

    Args:
        findings: What lint found in it.
        mapping: Which ONNX nodes the layers compute.
        table: The view or grouping that was asked for, which comes as ``table``.
    """
    names: JSON = list(plan.notes)
    peaks = peaks_of(plan.device)
    document: dict[str, JSON] = {
        "path": plan.path,
        "title": plan.title,
        "files": dict(plan.files),
        "summary": summary_json(plan),
        "layers": [_layer(layer, plan, mapping or {}) for layer in plan.layers],
        "findings": [finding_json(finding) for finding in findings],
        "bindings": [_tensor(tensor, binding=True) for tensor in plan.bindings],
        "timing_ms": timing_json(plan.timing),
        "roofline": unknown_device(plan) or (dataclasses.asdict(peaks) if peaks else None),
        "device": dict(plan.device),
        "metadata": dict(plan.metadata),
        "notes": names,
    }
    if plan.log is not None:
        document["log"] = {
            "command": plan.log.command, "version": plan.log.version, "status": plan.log.status,
            "warnings": list(plan.log.warnings), "errors": list(plan.log.errors),
            "facts": dict(plan.log.facts),
        }  # fmt: skip
    if table is not None:
        document["table"] = {"name": table.name, "rows": [*json_of(table)]}
    return document


def summary_json(plan: EnginePlan) -> dict[str, JSON]:
    """Return the figures of the whole plan."""
    summary = summary_of(plan)
    spread = distribution(plan)
    by_precision: JSON = {group.key: group.count for group in groups(plan, "precision")}
    return {
        "layers": summary.layers,
        "total_ms": summary.total_ms,
        "weights_bytes": summary.weights_bytes,
        "weights_estimated_bytes": summary.weights_estimated,
        "weights_complete": summary.weights_complete,
        "activations_bytes": summary.activations_bytes,
        "activations_complete": summary.activations_complete,
        "all_layers": len(plan.all_layers),
        "names_only": plan.names_only,
        "passes": plan.passes,
        "profile_index": plan.profile_index,
        "profile_count": plan.profile_count,
        "model": plan.model_path,
        "layers_by_precision": by_precision,
        "distribution": None if spread is None else dict(dataclasses.asdict(spread)),
    }


def timing_json(timing: TimingSummary | None) -> JSON:
    """Return inference times without the single ones; None when there are none."""
    if timing is None:
        return None
    document: dict[str, JSON] = {"source": timing.source, "throughput": timing.throughput}
    for name in ("latency", "compute", "h2d", "d2h", "enqueue"):
        found = getattr(timing, name)
        document[name] = None if found is None else dict(dataclasses.asdict(found))
    return document


def finding_json(finding: PlanFinding) -> JSON:
    """Return a finding."""
    return {
        "layer": finding.layer,
        "rule": finding.rule,
        "level": finding.level,
        "hazard": finding.hazard,
        "mitigation": finding.mitigation,
        "rewrite": command_of(finding.rules) if finding.rules else None,
        "percent": finding.percent,
        "layers": list(finding.layers),
    }


def _layer(layer: EngineLayer, plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> JSON:
    peaks = peaks_of(plan.device)
    place = placement(layer, peaks) if peaks else None
    nodes = mapping.get(layer.index)
    return {
        "index": layer.index,
        "name": layer.name,
        "type": layer.kind,
        "layer_type": layer.type,
        "parameter_type": layer.subtype,
        "time_ms": layer.time_ms,
        "median_ms": layer.median_ms,
        "percent": layer.percent,
        "precision": layer.precision,
        "output_precision": layer.output_precision,
        "inputs": [_tensor(tensor) for tensor in layer.inputs],
        "outputs": [_tensor(tensor) for tensor in layer.outputs],
        "constants": [_tensor(tensor) for tensor in layer.constants],
        "io_bytes": layer.io_bytes,
        "weights_bytes": layer.weights_bytes,
        "weights_from": layer.weights_from,
        "footprint": layer.footprint,
        "macs": macs(layer),
        "arithmetic_intensity": arithmetic_intensity(layer),
        "bound": place.bound if place else None,
        "efficiency": place.efficiency if place else None,
        "tactic": layer.tactic,
        "tactic_value": layer.tactic_value,
        "stream": layer.stream,
        "origin": layer.origin,
        "metadata": layer.metadata,
        "nodes": [node.name for node in nodes.nodes] if nodes else [],
        "confidence": nodes.confidence if nodes else "none",
    }


def _tensor(tensor: EngineTensor, binding: bool = False) -> JSON:
    found: dict[str, JSON] = {
        "name": tensor.name,
        "dims": None if tensor.dims is None else list(tensor.dims),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "location": tensor.location,
        "bytes": tensor.bytes,
    }
    if binding:
        found["mode"] = tensor.mode
        found["profiles"] = [[list(dims) for dims in one] for one in tensor.profile_dims]
    return found
