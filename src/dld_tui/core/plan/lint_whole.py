"""Rules about many layers of an engine together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.lint_kinds import (
    in_dtype,
    is_kernel_generated,
    is_reformat,
    is_shape_work,
    is_softmax,
    out_dtype,
)
from dld_tui.core.plan.lint_links import Links, is_heavy
from dld_tui.core.plan.lint_model import PlanFinding
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.plan.values import text_of

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes

GENERATED_PERCENT = 25.0
SHAPE_PERCENT = 3.0
LAYOUT_PERCENT = 5.0
SHORT_MS = 0.005
SHORT_COUNT = 20
SHORT_PERCENT = 20.0
FP32_SHARE = 0.95
MEAN_OVER_MEDIAN = 1.2
"""The means of all layers together against their medians."""
DYNAMIC_SHARE = 0.5
_NEAR = 4
"""Layers between a matrix product and the softmax of the same attention, at most."""

_Nodes = Mapping[int, "LayerNodes"]


def plan_findings(plan: EnginePlan, links: Links, nodes: _Nodes) -> Iterator[PlanFinding]:
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
    yield from _layouts(plan)
    yield from _short(plan)
    yield from _attention(plan, links, nodes)
    yield from _all_fp32(plan)
    yield from _slow_passes(plan)
    yield from _dynamic(plan)


def _percent(layers: Sequence[EngineLayer]) -> float:
    return sum(layer.percent or 0.0 for layer in layers)


def _indices(layers: Sequence[EngineLayer]) -> tuple[int, ...]:
    """Return the layers of a finding, those that take longest first."""
    ordered = sorted(layers, key=lambda layer: -(layer.percent or 0.0))
    return tuple(layer.index for layer in ordered)


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


def _layouts(plan: EnginePlan) -> Iterator[PlanFinding]:
    """Layers that change a memory format only; of mere names nothing tells whether the type too."""
    layers = [
        layer
        for layer in plan.layers
        if layer.percent is not None
        and is_reformat(layer)
        and (in_dtype(layer) == out_dtype(layer) or plan.names_only)
    ]
    percent = _percent(layers)
    if len(layers) < 2 or percent < LAYOUT_PERCENT:
        return
    what = "format or type" if plan.names_only else "memory format"
    pairs = Counter(
        (layer.inputs[0].format, layer.outputs[0].format)
        for layer in layers
        if layer.inputs and layer.outputs and layer.inputs[0].format != layer.outputs[0].format
    )
    usual = ""
    if pairs:
        (of, to), count = pairs.most_common(1)[0]
        usual = f"; {count} of them from {of!r} to {to!r}"
    yield PlanFinding(
        None,
        "layout-conversions",
        "warning",
        f"Layers that only change a {what} take {fmt.percent(percent)} % of the time"
        f" ({_count(layers)}{usual})",
        "Find the layers that ask for another format than their neighbours: often a plugin, a"
        " pooling or a slice between convolutions, or inputs and outputs of the engine (trtexec"
        " --inputIOFormats)",
        percent,
        _indices(layers),
    )


def _short(plan: EnginePlan) -> Iterator[PlanFinding]:
    short = [
        layer for layer in plan.layers if layer.time_ms is not None and 0 < layer.time_ms < SHORT_MS
    ]
    percent = _percent(short)
    if len(short) >= SHORT_COUNT and percent >= SHORT_PERCENT:
        graph = "" if uses_cuda_graph(plan) else "a CUDA graph, "
        yield PlanFinding(
            None,
            "many-short-layers",
            "warning",
            f"{_count(short)} of less than 5 µs take {fmt.percent(percent)} % of the time together",
            f"Launching them costs about as much as their work: use {graph}a larger batch, or"
            " operators that fuse",
            percent,
            _indices(short),
        )


def uses_cuda_graph(plan: EnginePlan) -> bool:
    """Tell whether the inferences were measured with a CUDA graph, where the files say so."""
    options = plan.metadata.get("inference_options")
    if not isinstance(options, dict):
        return False
    return any(
        "cuda graph" in key.lower() and text_of(value).lower().startswith("enabled")
        for key, value in options.items()
    )


def _all_fp32(plan: EnginePlan) -> Iterator[PlanFinding]:
    heavy = [layer for layer in plan.layers if is_heavy(layer) and layer.precision]
    slow = [layer for layer in heavy if layer.precision == "fp32"]
    if not heavy or len(slow) < FP32_SHARE * len(heavy):
        return
    on_cores = sum("tf32" in layer.tactic.lower() for layer in slow)
    tf32 = f", {on_cores:,} of them on Tensor Cores as TF32" if on_cores else ""
    options = plan.metadata.get("build_options")
    told = text_of(options.get("Precision")) if isinstance(options, dict) else ""
    allowed = [name for name in ("FP16", "BF16", "INT8", "FP8") if name in told.upper()]
    advice = (
        "Allow a type of fewer bits when building; on strongly typed TensorRT the model itself has"
        " to say it"
    )
    if allowed:
        advice = (
            f"The build allowed {' and '.join(allowed)} and the builder did not take it: it found"
            " FP32 faster, or has no such kernel for these layers; a verbose build log tells"
        )
    yield PlanFinding(
        None,
        "runs-in-fp32",
        "note",
        f"{len(slow):,} of {len(heavy):,} convolutions and matrix products work in fp32{tf32}",
        advice,
        _percent(slow) if plan.total_ms is not None else None,
        _indices(slow),
    )


def _slow_passes(plan: EnginePlan) -> Iterator[PlanFinding]:
    both = [
        (layer, layer.time_ms, layer.median_ms)
        for layer in plan.layers
        if layer.time_ms is not None and layer.median_ms
    ]
    mean = sum(time for _, time, _ in both)
    median = sum(time for _, _, time in both)
    if not median or mean < MEAN_OVER_MEDIAN * median:
        return
    apart = [layer for layer, time, usual in both if time >= MEAN_OVER_MEDIAN * usual]
    apart.sort(key=lambda layer: (layer.median_ms or 0.0) - (layer.time_ms or 0.0))
    yield PlanFinding(
        None,
        "mean-above-median",
        "warning",
        f"The means of the layers add up to {fmt.milliseconds(mean)} ms, their medians to"
        f" {fmt.milliseconds(median)} ms: some passes took far longer than most",
        "Trust the medians. Warm up longer, leave the GPU to this run alone and profile again",
        _percent(apart),
        tuple(layer.index for layer in apart),
    )


def _dynamic(plan: EnginePlan) -> Iterator[PlanFinding]:
    shaped = [layer for layer in plan.layers if layer.inputs or layer.outputs]
    dynamic = [layer for layer in shaped if any(map(_is_dynamic, _dims(layer)))]
    if not dynamic or len(dynamic) < DYNAMIC_SHARE * len(shaped):
        return
    yield PlanFinding(
        None,
        "dynamic-shapes",
        "note",
        f"{_count(dynamic)} of {len(shaped):,} have dimensions without a value: their bytes, MACs"
        " and place under the roofline are not known",
        "Export the layer information of a run with shapes (trtexec --loadEngine=ENGINE"
        " --shapes=INPUT:DIMS --exportLayerInfo=FILE), or set the input shapes of the execution"
        " context that the inspector is given",
        None,
        _indices(dynamic),
    )


def _dims(layer: EngineLayer) -> Iterator[tuple[int, ...]]:
    for tensor in (*layer.inputs, *layer.outputs):
        if tensor.dims is not None:
            yield tensor.dims


def _is_dynamic(dims: tuple[int, ...]) -> bool:
    return any(dim < 0 for dim in dims)


def _count(layers: Sequence[EngineLayer]) -> str:
    return fmt.plural(len(layers), "layer")


# --- attention ------------------------------------------------------------------------------------


def _attention(plan: EnginePlan, links: Links, nodes: _Nodes) -> Iterator[PlanFinding]:
    for place, layer in enumerate(plan.layers):
        if not is_softmax(layer, nodes.get(layer.index)):
            continue
        if plan.names_only:
            unfused = _named_product(plan.layers[max(place - _NEAR, 0) : place]) and _named_product(
                plan.layers[place + 1 : place + 1 + _NEAR]
            )
        else:
            unfused = links.reaches_product(place, links.before, _NEAR) and links.reaches_product(
                place, links.after, _NEAR
            )
        if unfused:
            by_names = ", by the order of the names" if plan.names_only else ""
            yield PlanFinding(
                layer.index,
                "attention-not-fused",
                "warning",
                "A softmax between two matrix products is a layer of its own: this attention is not"
                f" fused into one kernel{by_names}",
                "Keep to the pattern that TensorRT fuses: MatMul, scale, mask, Softmax, MatMul, in"
                " fp16, bf16 or fp8; export the attention without other operators in between",
                layer.percent,
            )


def _named_product(layers: Sequence[EngineLayer]) -> bool:
    """Tell whether one of some layers, of which only names are known, is a matrix product."""
    return any(
        word in ("MatMul", "Einsum", "MatrixMultiply")
        for layer in layers
        for word in layer.kind.split(" + ")
    )
