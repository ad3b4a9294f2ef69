"""Which layers of an engine a filter lets through, and groups of what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.plan.mapping import map_plan
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.plan.subject import layer_records
from dld_tui.core.report.layer_filter import select
from dld_tui.core.report.statistics import percentile

if TYPE_CHECKING:
    from dld_tui.core.plan.lint import PlanFinding
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan


def matching(
    plan: EnginePlan,
    text: str,
    mapping: Mapping[int, LayerNodes] | None = None,
    findings: Iterable[PlanFinding] = (),
) -> list[EngineLayer]:
    """Return the layers that pass a filter, in order.

    Args:
        text: The filter; an empty one lets all through.
        mapping: The ONNX nodes of the layers; by default what the file itself tells of them.
        findings: What lint found, for ``findings>0``.
    """
    if not text.split():
        return list(plan.layers)
    records = layer_records(plan, map_plan(plan) if mapping is None else mapping, findings)
    return [plan.layers[at] for at in select(records, text, engine=True)]


UNKNOWN = "unknown"


@dataclass(frozen=True)
class PlanGroup:
    """Layers of one key."""

    key: str
    """Foreign text."""
    count: int
    time_ms: float | None
    """None when no layer of the group has a time."""
    percent: float | None
    bytes: int
    """Weights, inputs and outputs, as far as they are known."""
    weights_bytes: int


_KEYS: Mapping[str, Callable[[EngineLayer], str]] = {
    "layer": lambda layer: layer.name,
    "type": lambda layer: layer.kind,
    "layer_type": lambda layer: layer.type,
    "precision": lambda layer: layer.precision,
    "output_precision": lambda layer: layer.output_precision,
    "tactic": lambda layer: layer.tactic,
    "origin": lambda layer: layer.origin,
    "stream": lambda layer: "" if layer.stream is None else str(layer.stream),
    "type_precision": lambda layer: f"{layer.kind or UNKNOWN} {layer.precision or UNKNOWN}",
}
GROUPINGS = tuple(_KEYS)
"""What layers can be grouped by."""


def groups(plan: EnginePlan, by: str) -> list[PlanGroup]:
    """Return the layers grouped, what takes longest first."""
    key = _KEYS[by]
    members: dict[str, list[EngineLayer]] = {}
    for layer in plan.layers:
        members.setdefault(key(layer) or UNKNOWN, []).append(layer)
    found = [_group(name, layers, plan.total_ms) for name, layers in members.items()]
    return sorted(found, key=lambda group: (-(group.time_ms or 0.0), -group.count, group.key))


def _group(name: str, layers: Sequence[EngineLayer], total_ms: float | None) -> PlanGroup:
    times = [layer.time_ms for layer in layers if layer.time_ms is not None]
    time_ms = sum(times) if times else None
    weights = sum(layer.weights_bytes for layer in layers)
    return PlanGroup(
        key=name,
        count=len(layers),
        time_ms=time_ms,
        percent=100 * time_ms / total_ms if time_ms is not None and total_ms else None,
        bytes=weights + sum(known_io_bytes(layer) for layer in layers),
        weights_bytes=weights,
    )


def known_io_bytes(layer: EngineLayer) -> int:
    """Return the bytes of those inputs and outputs whose size is known."""
    return sum(tensor.bytes or 0 for tensor in (*layer.inputs, *layer.outputs))


@dataclass(frozen=True)
class Distribution:
    """How the time is spread over the layers."""

    timed: int
    zero: int
    """Layers of no time at all."""
    median_ms: float
    p90_ms: float
    max_ms: float
    half: int
    """How many of the slowest layers take half of the time."""


def distribution(plan: EnginePlan) -> Distribution | None:
    """Return how the time is spread over the layers; None without a profile."""
    times = sorted(layer.time_ms for layer in plan.layers if layer.time_ms is not None)
    if not times:
        return None
    total, part, half = sum(times), 0.0, 0
    for time_ms in reversed(times):
        if part >= total / 2:
            break
        part += time_ms
        half += 1
    return Distribution(
        timed=len(times),
        zero=sum(time_ms == 0 for time_ms in times),
        median_ms=percentile(times, 50),
        p90_ms=percentile(times, 90),
        max_ms=times[-1],
        half=half,
    )
