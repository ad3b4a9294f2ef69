"""Measurements of a run besides latency and layers, and the inputs of its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine.peaks import BUSY, rate_text
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.report.generation import GENERATION, generation_of
from dld_tui.core.report.groups import HOST
from dld_tui.core.report.roofline import (
    main_layers,
    roof_ms_of,
    roofline_text,
    with_reached_peaks,
)
from dld_tui.core.statistics import is_valid_time
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.machine.peaks import Peaks
    from dld_tui.core.report.records import Layer
    from dld_tui.core.report.report import Report

_MOST_LINES = 4
_NAME = 60
_PEAKS = 200


@dataclass(frozen=True)
class ReportInput:
    """One input. All texts are foreign."""

    name: str
    shape: tuple[int, ...]
    why: str = ""
    """Where the sizes that the model leaves open come from; empty when nothing was guessed."""
    values: str = ""
    values_reason: str = ""
    dtype: str | None = None

    @property
    def shape_text(self) -> str:
        """The shape, as ``1x3x224x224``."""
        return "x".join(map(str, self.shape)) or "scalar"

    def to_json(self) -> JSON:
        """Return it as JSON data."""
        return {
            "name": self.name, "dtype": self.dtype, "shape": [*self.shape],
            "guessed": bool(self.why), "reason": self.why, "why": self.why,
            "values": self.values, "values_reason": self.values_reason,
        }  # fmt: skip


def report_inputs(report: Report) -> list[ReportInput]:
    """Return the inputs; of a report without reasons, the shapes only."""
    stored = report.properties.get(INPUTS)
    if isinstance(stored, list):
        return [report_input for entry in stored if (report_input := _stored(entry)) is not None]
    given = report.settings.get("input_shapes")
    if not isinstance(given, dict):
        return []
    shapes = ((name, _shape(dims)) for name, dims in given.items())
    return [ReportInput(name, shape) for name, shape in shapes if shape is not None]


def _stored(value: JSON) -> ReportInput | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    shape = _shape(value.get("shape"))
    if shape is None:
        return None
    why, values, reason, dtype = (
        text if isinstance(text := value.get(key), str) else ""
        for key in ("why", "values", "values_reason", "dtype")
    )
    return ReportInput(str(value["name"]), shape, why, values, reason, dtype or None)


def _shape(value: JSON) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(dim, int) for dim in value):
        return None
    return tuple(dim for dim in value if isinstance(dim, int))


def input_lines(report: Report) -> Iterator[str]:
    """Yield lines about the inputs; inputs with the same shape share one."""
    alike: dict[tuple[tuple[int, ...], str], list[ReportInput]] = {}
    for report_input in report_inputs(report):
        alike.setdefault((report_input.shape, report_input.why), []).append(report_input)
    for same in [*alike.values()][:_MOST_LINES]:
        first = same[0]
        values = "" if len(same) > 1 else first.values
        if first.why:
            why = f" (guessed: {first.why}{f'; {values}' if values else ''})"
        else:
            why = f" ({values})" if values else ""
        names = fmt.listed(same, 1, lambda one: clip(visible(one.name), _NAME, keep="middle"))
        yield f"{names} {first.shape_text}{visible(why)}"
    if len(alike) > _MOST_LINES:
        yield f"and {fmt.plural(len(alike) - _MOST_LINES, 'more shape')}"


_PHASES = {
    "h2d": "copy to the GPU",
    "compute": "GPU compute",
    "d2h": "copy from the GPU",
    "enqueue": "enqueue (processor)",
}
_SIZES = {
    "peak_memory_bytes": "peak memory of the process",
    "gpu_memory_bytes": "GPU memory in use",
    "activation_bytes": "device memory of the engine",
}
_ENERGY = ("energy_per_inference_j", "board_power_w", "energy_rails", "energy_repeats_j")
_BUSY_THREADS = 0.25
"""Hardware threads kept busy by others, above which the user is warned."""
_BUSY_SHARE = 0.5
"""The load for each hardware thread, likewise, where nothing else is known."""


@dataclass(frozen=True)
class MeasuredFigure:
    """One figure with its name."""

    name: str
    text: str
    """With its unit. Visible text."""
    is_doubtful: bool = False
    """It speaks against the figures of the run."""


def measured_figures(report: Report) -> list[MeasuredFigure]:
    """Return the figures that the report has, in the order to read them."""
    return [
        *_generation_figures(report),
        *_phase_figures(report),
        *_run_figures(report),
        *_memory_figures(report),
        *_load_figures(report.environment),
    ]


def measured_json(report: Report) -> JSON:
    """Return the measurements as JSON data; unknown ones are left out."""
    figures: dict[str, JSON] = {}
    phases = report.properties.get("phases_ms")
    if isinstance(phases, dict) and phases:
        figures["phases_ms"] = phases
    for name in (GENERATION, "throughput_per_s", "load_ms", "copies", "engine", *_ENERGY, *_SIZES):
        value = report.properties.get(name)
        if value is not None:
            figures[name] = value
    graph = report.settings.get("cuda_graph_used")
    if isinstance(graph, bool):
        figures["cuda_graph"] = graph
    for name in ("load_average", "load_average_after", "other_busy_threads"):
        if name in report.environment:
            figures[name] = report.environment[name]
    return figures


def _generation_figures(report: Report) -> Iterator[MeasuredFigure]:
    for figures in generation_of(report):
        name = f"batch {figures.batch:,}, prompt {figures.prompt:,}"
        yield MeasuredFigure(name, figures.text)


def _phase_figures(report: Report) -> Iterator[MeasuredFigure]:
    phases = report.properties.get("phases_ms")
    for key, name in _PHASES.items():
        figures = phases.get(key) if isinstance(phases, dict) else None
        if not isinstance(figures, dict):
            continue
        parts = [
            f"{word} {fmt.milliseconds(value)}"
            for word in ("median", "min", "max", "p99")
            if (value := figure_of(figures.get(word))) is not None
        ]
        yield MeasuredFigure(name, f"{', '.join(parts)} ms" if parts else fmt.UNKNOWN)


def _run_figures(report: Report) -> Iterator[MeasuredFigure]:
    rate = figure_of(report.properties.get("throughput_per_s"))
    if rate is not None:
        yield MeasuredFigure("throughput", f"{rate:,.1f} inferences/s of elapsed time")
    used, asked = (report.settings.get(name) for name in ("cuda_graph_used", "cuda_graph"))
    if isinstance(used, bool):
        refused = "requested, but not used" if asked is True else "not used"
        yield MeasuredFigure("CUDA graph", "used" if used else refused)
    joules, watts = (figure_of(report.properties.get(name)) for name in _ENERGY[:2])
    if joules is not None and watts is not None:
        rails = clip(
            visible(str(report.properties.get(_ENERGY[2]) or "the board")), _NAME, keep="end"
        )
        unit = "per decode step" if generation_of(report) else "per inference"
        text = f"{fmt.joules(joules)} {unit}, {watts:,.3g} W of {rails}, including idle power"
        yield MeasuredFigure("energy", text + _repeats(report.properties.get(_ENERGY[3])))
    yield from _board_figures(report.environment)
    load = figure_of(report.properties.get("load_ms"))
    if load is not None:
        yield MeasuredFigure("model load", f"{fmt.milliseconds(load)} ms")
    limits = roofline_text(report.layers)
    if limits:
        yield MeasuredFigure("limited by", limits)
    yield from _peaks(report)


def used_roofs(report: Report) -> dict[str, Peaks]:
    """Return the peaks that the layers stand against, by execution provider."""
    used = {layer.provider for layer in main_layers(report.layers) if roof_ms_of(layer) is not None}
    return {
        provider: with_reached_peaks(roof, report.layers) if provider == HOST else roof
        for provider, roof in report.roofs.items()
        if provider in used
    }


def bandwidths_text(peaks: Peaks) -> str:
    """Return how fast data move from memory, and from a cache that holds them."""
    memory = f"memory {fmt.size(round(peaks.bandwidth))}/s"
    fastest = peaks.fastest_bandwidth
    return memory + (
        f", caches up to {fmt.size(round(fastest))}/s" if fastest > peaks.bandwidth else ""
    )


def _peaks(report: Report) -> Iterator[MeasuredFigure]:
    """Yield the peaks that the roofline of the layers is drawn with."""
    for roof in used_roofs(report).values():
        parts = [rate_text(visible(kind), rate) for kind, rate in roof.flops.items()]
        source = f"({roof.source}{BUSY if roof.busy else ''})"
        text = f"{', '.join([*parts, bandwidths_text(roof)])} {source}"
        yield MeasuredFigure("peaks", clip(text, _PEAKS))


def _repeats(value: JSON) -> str:
    """Return the spread of repeats as text; empty for fewer than two."""
    repeats = value if isinstance(value, list) else []
    known = [joules for joules in map(figure_of, repeats) if joules]
    if len(known) < 2:
        return ""
    spread = 100 * (max(known) - min(known)) / (sum(known) / len(known))
    return f"; {len(known)} repeats within {fmt.percent(spread)} %"


def _board_figures(environment: Mapping[str, JSON]) -> Iterator[MeasuredFigure]:
    """Yield the power mode of a Jetson, without which its figures say little."""
    mode, slowed = (environment.get(f"jetson_{name}") for name in ("power_mode", "throttling"))
    if isinstance(mode, str) and mode:
        locked = ", clocks held at its highest" if environment.get("jetson_clocks_locked") else ""
        is_slowed = isinstance(slowed, str) and slowed != "none"
        slower = f", slowed down by {clip(visible(str(slowed)), _NAME)}" if is_slowed else ""
        text = f"{clip(visible(mode), _NAME)}{locked}{slower}"
        yield MeasuredFigure("power mode", text, is_doubtful=is_slowed)


class ActivationsPeak(NamedTuple):
    """Where most activations are in use, in a pass."""

    layer: Layer
    """After it."""
    in_use_bytes: int
    arena_bytes: int | None
    """The most that the arena has, weights included; None if unknown."""


def activations_peak(layers: Iterable[Layer]) -> ActivationsPeak | None:
    """Return where most activations are in use; None if it was not measured."""
    known = [(layer, cost) for layer in layers if (cost := layer.cost) and cost.in_use_bytes]
    if not known:
        return None
    layer, most = max(known, key=lambda pair: pair[1].in_use_bytes or 0)
    arena_bytes = max(cost.arena_bytes or 0 for _, cost in known)
    return ActivationsPeak(layer, round(most.in_use_bytes or 0), round(arena_bytes) or None)


def _memory_figures(report: Report) -> Iterator[MeasuredFigure]:
    peak = activations_peak(report.layers)
    if peak is not None:
        after = clip(visible(peak.layer.name), _NAME, keep="end")
        arena_bytes = peak.arena_bytes
        arena = (
            f"; ONNX Runtime holds {fmt.size(arena_bytes)}, weights included" if arena_bytes else ""
        )
        text = f"{fmt.size(peak.in_use_bytes)} at the peak, after {after}{arena}"
        yield MeasuredFigure("activations", text)
    for key, name in _SIZES.items():
        if (size := figure_of(report.properties.get(key))) is not None:
            yield MeasuredFigure(name, fmt.size(round(size)))


def _load_figures(environment: Mapping[str, JSON]) -> Iterator[MeasuredFigure]:
    """Yield what else the machine did."""
    others = figure_of(environment.get("other_busy_threads"))
    threads = environment.get("cpu_threads")
    load = environment.get("load_average")
    before = figure_of(load[0]) if isinstance(load, list) and load else None
    if others is not None:
        of = f" of {threads:,}" if isinstance(threads, int) else ""
        busy = others > _BUSY_THREADS
        yield MeasuredFigure(
            "other programs", f"kept {others:.1f}{of} threads busy", is_doubtful=busy
        )
    elif before is not None:
        on = f" on {fmt.plural(threads, 'thread')}" if isinstance(threads, int) else ""
        busy = isinstance(threads, int) and before > max(_BUSY_SHARE * threads, 1.0)
        yield MeasuredFigure("machine load", f"{before:g}{on} before the run", is_doubtful=busy)


def busy_text(environment: Mapping[str, JSON]) -> str:
    """Return what else a busy machine did during a run; empty if it was idle or not known."""
    figures = _load_figures(environment)
    return "".join(f"{figure.name} {figure.text}" for figure in figures if figure.is_doubtful)


def figure_of(value: JSON) -> float | None:
    """Return a time, a size or a rate that a report may have; None for what cannot be one."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and is_valid_time(value) else None  # type: ignore[arg-type]
