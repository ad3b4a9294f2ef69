"""The figures of a whole plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.core import fmt
from dld_tui.core.plan.accelerator import accelerator_line
from dld_tui.core.plan.file_set import device_name
from dld_tui.core.plan.filter import distribution, known_io_bytes
from dld_tui.core.plan.json_text import text_of
from dld_tui.core.plan.model import EngineLayer, EnginePlan


@dataclass(frozen=True)
class PlanSummary:
    """What TREx's summary has, and how sure it is."""

    layers: int
    total_ms: float | None
    """Sum of the mean times of all layers."""
    weights_bytes: int
    weights_estimated: int
    """The part of `weights_bytes` that is told from shapes."""
    weights_complete: bool
    """False when a layer may have weights that are neither listed nor estimated."""
    activations_bytes: int
    """Inputs and outputs of all layers, as far as their sizes are known: a tensor that two layers
    read is counted for each, as in TREx."""
    activations_complete: bool
    """False when the size of a tensor is not known."""


def summary_of(plan: EnginePlan) -> PlanSummary:
    """Return the figures of a plan."""
    return PlanSummary(
        layers=len(plan.layers),
        total_ms=plan.total_ms,
        weights_bytes=sum(layer.weights_bytes for layer in plan.layers),
        weights_estimated=sum(
            layer.weights_bytes for layer in plan.layers if layer.weights_from == "shapes"
        ),
        weights_complete=not any(map(_hides_weights, plan.layers)),
        activations_bytes=sum(known_io_bytes(layer) for layer in plan.layers),
        activations_complete=not plan.names_only
        and all(layer.io_bytes is not None for layer in plan.layers),
    )


def _hides_weights(layer: EngineLayer) -> bool:
    """Tell whether a layer may have weights that nothing tells of.

    Myelin's layers list none, and the lines of a build log have no weights at all.
    """
    if layer.weights_bytes:
        return False
    is_myelin = layer.type in ("kgen", "Myelin", "ForeignNode") or layer.name.startswith("__my")
    return is_myelin or layer.weights_from == "unknown"


def weights_text(summary: PlanSummary) -> str:
    """Return the weights of an engine: ``at least 12.9 MB, 12.8 MB of it by shapes``."""
    at_least = "" if summary.weights_complete else "at least "
    if not summary.weights_bytes:
        return fmt.UNKNOWN if at_least else fmt.size(0)
    estimated = summary.weights_estimated
    by_shapes = f", {fmt.size(estimated)} of it estimated from shapes" if estimated else ""
    return f"{at_least}{fmt.size(summary.weights_bytes)}{by_shapes}"


def activations_text(summary: PlanSummary) -> str:
    """Return the bytes of all inputs and outputs; a dash when not one is known."""
    if summary.activations_complete:
        return fmt.size(summary.activations_bytes)
    if not summary.activations_bytes:
        return fmt.UNKNOWN
    return f"at least {fmt.size(summary.activations_bytes)}"


NAMES = 13
"""Characters of the names in the summary, with the blanks behind them."""


def summary_lines(plan: EnginePlan) -> Iterator[str]:
    """Yield the summary as lines of a name in :data:`NAMES` and a value. Foreign text."""
    summary = summary_of(plan)
    yield f"plan         {plan.path}"
    device = device_name(plan.device)
    if device:
        yield f"device       {device}"
    if plan.model_path:
        yield f"model        {plan.model_path}"
    version = library_version(plan)
    if version:
        yield f"TensorRT     {version}"
    if plan.all_layers:
        others = ", ".join(left_out(plan))
        yield f"layers       {summary.layers:,}{f' (and {others})' if others else ''}"
    if summary.total_ms is not None:
        passes = "1 pass" if plan.passes == 1 else f"{plan.passes or 0:,} passes"
        over = f", mean of {passes}" if plan.passes else ""
        yield f"layer sum    {fmt.milliseconds(summary.total_ms)} ms{over}"
    yield from _timing(plan)
    if not plan.names_only and plan.layers:
        yield f"weights      {weights_text(summary)}"
        yield f"activations  {activations_text(summary)}"
    yield from _spread(plan)
    if on_dla := accelerator_line(plan):
        yield f"DLA          {on_dla}"
    yield from _build(plan)


def left_out(plan: EnginePlan) -> list[str]:
    """Return how many layers of the file are not shown, and what they are."""
    shown = {layer.index for layer in plan.layers}
    counts = {"NoOp": 0, "constant": 0, "layer of another profile": 0}
    for layer in plan.all_layers:
        if layer.index in shown:
            continue
        kinds = (layer.type, layer.subtype)
        kind = "NoOp" if "NoOp" in kinds else "constant" if "Constant" in kinds else ""
        counts[kind or "layer of another profile"] += 1
    others = counts.pop("layer of another profile")
    found = [f"{fmt.plural(count, kind)} folded" for kind, count in counts.items() if count]
    if others:
        found.append(f"{others:,} of other profiles")
    return found


def library_version(plan: EnginePlan) -> str:
    """Return the version of TensorRT by the log or our build record; empty when unknown."""
    if plan.log is not None and plan.log.version:
        return plan.log.version
    build = plan.metadata.get("build")
    library = build.get("library") if isinstance(build, dict) else None
    if not isinstance(library, dict):
        return ""
    name, version = text_of(library.get("name")), text_of(library.get("version"))
    return f"{version} ({name})" if name and version else version


def _timing(plan: EnginePlan) -> Iterator[str]:
    timing = plan.timing
    if timing is None:
        return
    for title, found in (
        ("latency", timing.latency), ("GPU compute", timing.compute), ("enqueue", timing.enqueue),
        ("H2D", timing.h2d), ("D2H", timing.d2h),
    ):  # fmt: skip
        if found is None or (not found.max and title in ("H2D", "D2H")):
            continue
        if title == "latency" and found == timing.compute:
            continue  # nothing was copied
        more = [
            f"{name} {fmt.milliseconds(value)}"
            for name, value in (("p90", found.p90), ("p95", found.p95), ("p99", found.p99))
            if value is not None
        ]
        yield (
            f"{title:<12} {fmt.milliseconds(found.median)} ms median, mean"
            f" {fmt.milliseconds(found.mean)}, {fmt.milliseconds(found.min)} to"
            f" {fmt.milliseconds(found.max)}{''.join(f', {text}' for text in more)}"
        )
    if timing.throughput is not None:
        yield f"throughput   {timing.throughput:,.1f} inferences a second"


def _spread(plan: EnginePlan) -> Iterator[str]:
    spread = distribution(plan)
    if spread is not None and spread.half:
        zero = f"; {fmt.plural(spread.zero, 'layer')} of no time" if spread.zero else ""
        yield f"spread       half of the time is in {fmt.plural(spread.half, 'layer')}{zero}"


def _build(plan: EnginePlan) -> Iterator[str]:
    options = plan.metadata.get("build_options")
    if isinstance(options, dict) and text_of(options.get("Precision")):
        yield f"built for    {text_of(options.get('Precision'))}"
    if plan.profile_count > 1:
        yield f"profile      {plan.profile_index} of {plan.profile_count}"
    for name, value in (plan.log.facts if plan.log else {}).items():
        yield f"{name:<12} {value}"
