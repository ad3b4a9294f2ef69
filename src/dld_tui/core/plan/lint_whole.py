"""Rules about many layers of an engine together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.lint_kinds import (
    is_kernel_generated,
    is_shape_work,
    is_softmax,
)
from dld_tui.core.plan.lint_model import PlanFinding
from dld_tui.core.plan.macs import is_convolution, is_product

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

GENERATED_PERCENT = 25.0
SHAPE_PERCENT = 3.0
SHORT_MS = 0.005
SHORT_COUNT = 20
SHORT_PERCENT = 20.0
FP32_SHARE = 0.95
_NEAR = 4
"""Layers between a matrix product and the softmax of the same attention, at most."""
_MOST_STEPS = 64
_MOST_LINKS = 8
"""Layers that are followed from one tensor."""

_Nodes = Mapping[int, "LayerNodes"]


def plan_findings(plan: EnginePlan, nodes: _Nodes) -> Iterator[PlanFinding]:
    """Yield the findings about many layers."""
    if plan.names_only:
        yield PlanFinding(
            None, "names-only", "note", "The file has only the names of the layers",
            "Build the engine again with --profilingVerbosity=detailed", None,
        )  # fmt: skip
    yield from _together(
        plan, is_kernel_generated, GENERATED_PERCENT, "generated-kernels",
        "Kernels that the compiler of fused parts made",
        "Look what they compute: pointwise chains between matrix products can often be avoided, or"
        " fused into them in another order",
    )  # fmt: skip
    yield from _together(
        plan, is_shape_work, SHAPE_PERCENT, "shape-and-cast",
        "Layers that work on shapes or only cast",
        "Fix dimensions that do not change, fold constants, and remove Casts from the model",
    )  # fmt: skip
    yield from _short(plan)
    yield from _attention(plan.layers, nodes)
    yield from _all_fp32(plan)


def _percent(layers: Sequence[EngineLayer]) -> float:
    return sum(layer.percent or 0.0 for layer in layers)


def _indices(layers: Sequence[EngineLayer]) -> tuple[int, ...]:
    return tuple(layer.index for layer in layers)


def _together(
    plan: EnginePlan,
    chosen: Callable[[EngineLayer], bool],
    least: float,
    rule: str,
    what: str,
    mitigation: str,
) -> Iterator[PlanFinding]:
    layers = [layer for layer in plan.layers if layer.percent is not None and chosen(layer)]
    percent = _percent(layers)
    if layers and percent >= least:
        hazard = f"{what} take {fmt.percent(percent)} % of the time ({_count(layers)})"
        yield PlanFinding(None, rule, "warning", hazard, mitigation, percent, _indices(layers))


def _short(plan: EnginePlan) -> Iterator[PlanFinding]:
    short = [
        layer for layer in plan.layers if layer.time_ms is not None and 0 < layer.time_ms < SHORT_MS
    ]
    percent = _percent(short)
    if len(short) >= SHORT_COUNT and percent >= SHORT_PERCENT:
        yield PlanFinding(
            None,
            "many-short-layers",
            "warning",
            f"{_count(short)} of less than 5 µs take {fmt.percent(percent)} % of the time together",
            "Launching them costs as much as their work: use a CUDA graph, a larger batch, or"
            " operators that fuse",
            percent,
            _indices(short),
        )


def _all_fp32(plan: EnginePlan) -> Iterator[PlanFinding]:
    heavy = [
        layer
        for layer in plan.layers
        if (is_convolution(layer) or is_product(layer)) and layer.precision
    ]
    slow = [layer for layer in heavy if layer.precision == "fp32"]
    if heavy and len(slow) >= FP32_SHARE * len(heavy):
        percent = _percent(slow) if plan.total_ms is not None else None
        yield PlanFinding(
            None,
            "runs-in-fp32",
            "note",
            f"{len(slow):,} of {len(heavy):,} convolutions and matrix products work in fp32",
            "Allow a type of fewer bits when building; on strongly typed TensorRT the model itself"
            " has to say it",
            percent,
            _indices(slow),
        )


def _count(layers: Sequence[EngineLayer]) -> str:
    return fmt.plural(len(layers), "layer")


# --- attention ------------------------------------------------------------------------------------


def _attention(layers: Sequence[EngineLayer], nodes: _Nodes) -> Iterator[PlanFinding]:
    softmaxes = [layer for layer in layers if is_softmax(layer, nodes.get(layer.index))]
    if not softmaxes:
        return
    makers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    for place, layer in enumerate(layers):
        for tensor in layer.outputs:
            makers.setdefault(tensor.name, []).append(place)
        for tensor in layer.inputs:
            for name in tensor.source_names:
                readers.setdefault(name, []).append(place)
    places = {layer.index: place for place, layer in enumerate(layers)}

    def before(layer: EngineLayer) -> list[int]:
        names = (name for tensor in layer.inputs for name in tensor.source_names)
        return [place for name in names for place in makers.get(name, [])[:_MOST_LINKS]]

    def after(layer: EngineLayer) -> list[int]:
        names = (tensor.name for tensor in layer.outputs)
        return [place for name in names for place in readers.get(name, [])[:_MOST_LINKS]]

    for layer in softmaxes:
        start = places[layer.index]
        if _reaches_product(layers, start, before) and _reaches_product(layers, start, after):
            yield PlanFinding(
                layer.index,
                "attention-not-fused",
                "warning",
                "A softmax between two matrix products is a layer of its own: this attention is not"
                " fused into one kernel",
                "Keep to the pattern that TensorRT fuses: MatMul, scale, mask, Softmax, MatMul, in"
                " fp16, bf16 or fp8; export the attention without other operators in between",
                layer.percent,
            )


def _reaches_product(
    layers: Sequence[EngineLayer], start: int, step: Callable[[EngineLayer], list[int]]
) -> bool:
    """Tell whether a matrix product is a few layers away."""
    seen, ring = {start}, [start]
    for _ in range(_NEAR):
        ring = [place for found in ring for place in step(layers[found]) if place not in seen]
        if any(is_product(layers[place]) for place in ring):
            return True
        if len(seen) > _MOST_STEPS:
            return False
        seen.update(ring)
    return False
