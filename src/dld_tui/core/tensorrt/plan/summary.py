"""The figures of a whole plan, of the layers that pass a filter, and of groups of layers.

One grouping is by device: the layers of a deep learning accelerator (DLA), and those of the GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.foreign import text_of
from dld_tui.core.report.dla import DlaKind
from dld_tui.core.report.layer_table import select
from dld_tui.core.statistics import percentile, share_percent
from dld_tui.core.tables.table import FINE_MS, PERCENT, Column, Table
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
from dld_tui.core.tensorrt.plan.file_set import device_name
from dld_tui.core.tensorrt.plan.layer_kinds import FLOATS, QUANTIZED, is_heavy
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan

if TYPE_CHECKING:
    from dld_tui.core.tensorrt.plan.mapping import LayerNodes


PART, TRANSFER, WAIT, FELL_BACK, OTHER = "part", "transfer", "wait", "fell back", "GPU's own"
_ROLES = {DlaKind.PART: PART, DlaKind.TRANSFER: TRANSFER, DlaKind.WAIT: WAIT}
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<why>Input tensor has less than 4 dimensions) for (?P<name>.+?)\. At least one",
        r"(?P<name>.+?): (?P<why>DLA (?:cores do|only|does|supports).*)",
        r"(?!Layer ')(?P<name>.+?): (?P<why>.+ (?:not supported for|on) DLA.*)",
        r"Layer '(?P<name>.+?)' \((?P<kind>\w+)\): Unsupported on DLA",
        r"Default DLA is enabled but layer (?P<name>.+?) is not (?:supported|running) on DLA",
        r"Validation failed for DLA layer: (?P<name>.+?)\. Switching",
    )
)
"""What TensorRT 5 to 10 say of layers that fall back, the most telling first."""
_GENERAL = "the log gives no reason"
_LONGEST = 500
"""Characters of a message that are looked at: a hostile one is not searched for ever."""
_JOINS = re.compile(r" \+ | \|\| |, ")
_NODE = re.compile(r"\[ONNX Layer: ([^\]|\x1e\x1f]+)")


@dataclass(frozen=True)
class LayerDevice:
    """A layer and where it runs. Texts are foreign."""

    name: str
    device: str
    """``DLA`` or ``GPU``."""
    role: str
    why: str
    """Why it is not on the DLA; empty if unknown."""
    layer: EngineLayer | None
    """None for a fallback that is no separate layer of the engine."""


def fallback_reasons(messages: Iterable[str]) -> dict[str, str]:
    """Return why layers fell back to the GPU, by the name that the log has.

    Args:
        messages: Warnings and errors of a build log. Untrusted text.
    """
    by_layer: dict[str, tuple[int, str]] = {}
    for message in messages:
        text = message.removeprefix("[TRT]").strip()[:_LONGEST]
        if "DLA" not in text:
            continue
        for rank, pattern in enumerate(_REASONS):
            match = pattern.match(text)
            if match is None:
                continue
            parts = match.groupdict()
            kind = parts.get("kind")
            why = (
                f"{kind} is not supported" if kind else (parts.get("why") or _GENERAL).rstrip(". ")
            )
            if rank < by_layer.get(match["name"], (len(_REASONS), ""))[0]:
                by_layer[match["name"]] = (rank, why)
            break
    return {name: why for name, (_, why) in by_layer.items()}


def layer_devices(plan: EnginePlan) -> list[LayerDevice]:
    """Return the layers by device; empty for an engine that has nothing to do with a DLA."""
    messages = [*plan.log.warnings, *plan.log.errors] if plan.log is not None else []
    reasons = fallback_reasons(messages)
    roles = {
        layer.index: _ROLES[layer.dla] if layer.dla is not None else "" for layer in plan.layers
    }
    if not any(roles.values()) and not reasons:
        return []
    rows, seen = [], set[str]()
    for layer in plan.layers:
        names = [name for name in _names(layer) if name in reasons]
        seen.update(names)
        role, why = roles[layer.index], "; ".join(dict.fromkeys(reasons[name] for name in names))
        if role:
            rows.append(LayerDevice(layer.name, "DLA" if role == PART else "GPU", role, "", layer))
        else:
            kind = FELL_BACK if names else OTHER
            rows.append(LayerDevice(layer.name, "GPU", kind, why, layer))
    missing = (name for name in reasons if name not in seen)
    return [*rows, *(LayerDevice(name, "GPU", FELL_BACK, reasons[name], None) for name in missing)]


def _names(layer: EngineLayer) -> Iterator[str]:
    yield layer.name
    yield from _JOINS.split(layer.name[:8000])
    yield from (match.strip() for match in _NODE.findall(layer.metadata[:8000]))


def device_table(plan: EnginePlan) -> Table[LayerDevice]:
    """Return the layers by device as a table."""

    def time(row: LayerDevice) -> float | None:
        return None if row.layer is None else row.layer.time_ms

    def percent(row: LayerDevice) -> float | None:
        return None if row.layer is None else row.layer.percent

    columns: tuple[Column[LayerDevice], ...] = (
        Column("name", "layer", lambda placed: placed.name, least=28, keep="end", pinned=True),
        Column("device", "device", lambda placed: placed.device, width=6),
        Column("role", "what", lambda placed: placed.role, width=9),
        Column("time_ms", "time ms", time, FINE_MS, 9, heat=True),
        Column("percent", "%", percent, PERCENT, 6),
        Column("why", "why not the DLA", lambda placed: placed.why, priority=10),
    )
    return Table(columns, layer_devices(plan))


def accelerator_line(plan: EnginePlan) -> str:
    """Return the time of each role, as ``2 parts 1.20 ms, 1 wait 0.3 ms``; empty without a DLA."""
    sums: dict[str, list[float | None]] = {}
    for layer in layer_devices(plan):
        sums.setdefault(layer.role, []).append(None if layer.layer is None else layer.layer.time_ms)
    return ", ".join(_counted(role, sums[role]) for role in (PART, TRANSFER, WAIT, FELL_BACK)
                     if role in sums)  # fmt: skip


def _counted(role: str, times: list[float | None]) -> str:
    known = [time for time in times if time is not None]
    count = f"{len(times):,} {role}" if role == FELL_BACK else fmt.plural(len(times), role)
    return f"{count} {fmt.milliseconds(sum(known))} ms" if known else count


def matching(
    plan: EnginePlan,
    text: str,
    mapping: Mapping[int, LayerNodes] | None = None,
) -> list[EngineLayer]:
    """Return the layers that pass a filter, in order.

    Args:
        plan: The whole plan, as findings are about a layer and its neighbours.
        text: The filter; an empty one passes all.
        mapping: The ONNX nodes of the layers; by default from the file itself.
    """
    if not text.split():
        return list(plan.layers)
    nodes = map_plan(plan) if mapping is None else mapping
    records = layer_records(plan, nodes, findings(plan, nodes))
    return [plan.layers[at] for at in select(records, text, engine=True)]


UNKNOWN = "unknown"


@dataclass(frozen=True)
class PlanGroup:
    """Layers of one key."""

    key: str
    """Untrusted text."""
    count: int
    time_ms: float | None
    """None if no layer of the group has a time."""
    percent: float | None
    bytes: int | None
    """Weights, outputs, and what is read of the inputs, as far as they are known; None where no
    size is."""
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
    rows = [_group(name, layers, plan.total_ms) for name, layers in members.items()]
    return sorted(rows, key=lambda group: (-(group.time_ms or 0.0), -group.count, group.key))


def _group(name: str, layers: Sequence[EngineLayer], total_ms: float | None) -> PlanGroup:
    times = [layer.time_ms for layer in layers if layer.time_ms is not None]
    time_ms = sum(times) if times else None
    weights = sum(layer.weights_bytes for layer in layers)
    moved = weights + sum(known_io_bytes(layer) - layer.unread_bytes for layer in layers)
    is_known = moved or all(layer.footprint is not None for layer in layers)
    return PlanGroup(
        key=name,
        count=len(layers),
        time_ms=time_ms,
        percent=share_percent(time_ms, total_ms),
        bytes=moved if is_known else None,
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


@dataclass(frozen=True)
class PlanSummary:
    """The figures of TREx's summary, and their certainty."""

    layers: int
    total_ms: float | None
    """Sum of the mean times of all layers."""
    weights_bytes: int
    weights_estimated: int
    """The part of `weights_bytes` that is estimated from shapes."""
    weights_complete: bool
    """False when a layer may have weights that are neither listed nor estimated."""
    activations_bytes: int
    """Inputs and outputs of all layers, as far as their sizes are known: a tensor that two layers
    read is counted for each, as in TREx."""
    activations_complete: bool
    """False when the size of a tensor is not known."""
    unread_bytes: int
    """The part of `activations_bytes` that no window of the layers touches."""


def summary_of(plan: EnginePlan) -> PlanSummary:
    """Return the figures of a plan."""
    return PlanSummary(
        layers=len(plan.layers),
        total_ms=plan.total_ms,
        weights_bytes=sum(layer.weights_bytes for layer in plan.layers),
        weights_estimated=sum(
            layer.weights_bytes for layer in plan.layers if layer.weights_from == "shapes"
        ),
        weights_complete=all(layer.known_weights is not None for layer in plan.layers),
        activations_bytes=sum(known_io_bytes(layer) for layer in plan.layers),
        activations_complete=not plan.names_only
        and all(layer.io_bytes is not None for layer in plan.layers),
        unread_bytes=sum(layer.unread_bytes for layer in plan.layers),
    )


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


_SLOWED = 1.1
"""Layers that take more times as long as passes without profiling have times of their own."""


def is_slowed(plan: EnginePlan) -> bool:
    """Return whether profiling made the layers slower than the inferences beside them."""
    compute = None if plan.timing is None else plan.timing.compute
    return compute is not None and (plan.total_ms or 0.0) > _SLOWED * compute.median


NAMES = 13
"""Characters of the names in the summary, with the blanks behind them."""


def summary_lines(plan: EnginePlan) -> Iterator[str]:
    """Yield the summary as lines of a name in :data:`NAMES` and a value. Untrusted text."""
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
        if is_slowed(plan):
            over += ", with profiling on"  # which GPU compute, below, is not
        yield f"layer sum    {fmt.milliseconds(summary.total_ms)} ms{over}"
    yield from _timing(plan)
    if not plan.names_only and plan.layers:
        yield f"weights      {weights_text(summary)}"
        unread = summary.unread_bytes
        but = f", {fmt.size(unread)} of it not read" if unread else ""
        yield f"activations  {activations_text(summary)}{but}"
    yield from _spread(plan)
    if on_dla := accelerator_line(plan):
        yield f"DLA          {on_dla}"
    yield from _build(plan)


def left_out(plan: EnginePlan) -> list[str]:
    """Return how many layers of the file are not shown, and their kinds."""
    shown = {layer.index for layer in plan.layers}
    counts = {"NoOp": 0, "constant": 0, "layer of another profile": 0}
    for layer in plan.all_layers:
        if layer.index in shown:
            continue
        kinds = (layer.type, layer.subtype)
        kind = "NoOp" if "NoOp" in kinds else "constant" if "Constant" in kinds else ""
        counts[kind or "layer of another profile"] += 1
    others = counts.pop("layer of another profile")
    parts = [f"{fmt.plural(count, kind)} folded" for kind, count in counts.items() if count]
    if others:
        parts.append(f"{others:,} of other profiles")
    return parts


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
    for title, statistics in (
        ("latency", timing.latency), ("GPU compute", timing.compute), ("enqueue", timing.enqueue),
        ("H2D", timing.h2d), ("D2H", timing.d2h),
    ):  # fmt: skip
        if statistics is None or (not statistics.max and statistics in (timing.h2d, timing.d2h)):
            continue
        if statistics is timing.latency and statistics == timing.compute:
            continue  # nothing was copied
        more = [
            f"{name} {fmt.milliseconds(value)}"
            for name, value in (
                ("p90", statistics.p90),
                ("p95", statistics.p95),
                ("p99", statistics.p99),
            )
            if value is not None
        ]
        yield (
            f"{title:<12} {fmt.milliseconds(statistics.median)} ms median, mean"
            f" {fmt.milliseconds(statistics.mean)}, {fmt.milliseconds(statistics.min)} to"
            f" {fmt.milliseconds(statistics.max)}{''.join(f', {text}' for text in more)}"
        )
    if timing.throughput is not None:
        yield f"throughput   {timing.throughput:,.1f} inferences a second"


def _spread(plan: EnginePlan) -> Iterator[str]:
    spread = distribution(plan)
    if spread is not None and spread.half:
        zero = f"; {fmt.plural(spread.zero, 'layer')} of no time" if spread.zero else ""
        yield f"spread       half of the time is in {fmt.plural(spread.half, 'layer')}{zero}"


_ALLOWED = (FLOATS - {"fp32"}) | QUANTIZED.keys()


def built_for(plan: EnginePlan) -> str:
    """Return the types that the build allowed; why that is unknown; empty where no file tells.

    In a strongly typed network, the types of the model decide, whatever the options say.
    """
    options = plan.metadata.get("build_options")
    allowed = text_of(options.get("Precision")) if isinstance(options, dict) else ""
    if not allowed:
        is_loaded = plan.log is not None and plan.log.is_loaded
        return "unknown: the log is of an engine that was loaded" if is_loaded else ""
    counts = Counter(layer.precision for layer in plan.layers if is_heavy(layer))
    others = [
        f"{fmt.plural(count, 'layer')} in {precision}"
        for precision, count in counts.items()
        if precision in _ALLOWED and precision.upper() not in allowed.upper()
    ]
    if others:
        return f"unknown: the options say {allowed}, but it has {' and '.join(others)}"
    return allowed


def _build(plan: EnginePlan) -> Iterator[str]:
    if types := built_for(plan):
        yield f"built for    {types}"
    if plan.profile_count > 1:
        yield f"profile      {plan.profile_index} of {plan.profile_count}"
    for name, value in (plan.log.figures if plan.log else {}).items():
        yield f"{name:<12} {value}"
