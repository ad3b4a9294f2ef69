"""What a run measured beside latency and layers: parts of a pass, memory, load of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.report.statistics import is_sound
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

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
BUSY_THREADS = 0.25
"""Hardware threads that others kept busy, from which on it is worth a word."""


@dataclass(frozen=True)
class MeasuredFact:
    """One figure with its name."""

    name: str
    text: str
    """With its unit. Visible text."""
    short: str = ""
    """The same for a line with others; empty where `text` is short."""
    is_doubtful: bool = False
    """It speaks against the figures of the run."""


def measured_facts(report: Report) -> list[MeasuredFact]:
    """Return the figures that the report has, in the order to read them."""
    return [
        *_phase_facts(report),
        *_run_facts(report),
        *_memory_facts(report),
        *_load_facts(report.environment),
    ]


def measured_json(report: Report) -> dict[str, JSON]:
    """Return the same for programs; what is not known is left out."""
    found: dict[str, JSON] = {}
    phases = report.facts.get("phases_ms")
    if isinstance(phases, dict) and phases:
        found["phases_ms"] = phases
    for name in ("throughput_per_s", "load_ms", "copies", "engine", *_SIZES):
        value = report.facts.get(name)
        if value is not None:
            found[name] = value
    graph = report.settings.get("cuda_graph_used")
    if isinstance(graph, bool):
        found["cuda_graph"] = graph
    for name in ("load_average", "load_average_after", "other_busy_threads"):
        if name in report.environment:
            found[name] = report.environment[name]
    return found


def _phase_facts(report: Report) -> Iterator[MeasuredFact]:
    phases = report.facts.get("phases_ms")
    for key, name in _PHASES.items():
        figures = phases.get(key) if isinstance(phases, dict) else None
        if not isinstance(figures, dict):
            continue
        parts = [
            f"{word} {fmt.milliseconds(value)}"
            for word in ("median", "min", "max", "p99")
            if (value := _time(figures.get(word))) is not None
        ]
        short = f"{fmt.milliseconds(_time(figures.get('median')))} ms"
        yield MeasuredFact(name, f"{', '.join(parts)} ms" if parts else fmt.UNKNOWN, short)


def _run_facts(report: Report) -> Iterator[MeasuredFact]:
    rate = _time(report.facts.get("throughput_per_s"))
    if rate is not None:
        yield MeasuredFact("throughput", f"{rate:,.1f} inferences/s of elapsed time")
    used, asked = (report.settings.get(name) for name in ("cuda_graph_used", "cuda_graph"))
    if isinstance(used, bool):
        refused = "asked for, but not used" if asked is True else "not used"
        yield MeasuredFact("CUDA graph", "used" if used else refused)
    load = _time(report.facts.get("load_ms"))
    if load is not None:
        yield MeasuredFact("model load", f"{fmt.milliseconds(load)} ms")


def _memory_facts(report: Report) -> Iterator[MeasuredFact]:
    for key, name in _SIZES.items():
        size = report.facts.get(key)
        if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
            yield MeasuredFact(name, fmt.size(size))


def _load_facts(environment: dict[str, JSON]) -> Iterator[MeasuredFact]:
    others = _time(environment.get("other_busy_threads"))
    threads = environment.get("cpu_threads")
    if others is not None:
        of = f" of {threads:,}" if isinstance(threads, int) else ""
        yield MeasuredFact(
            "other programs",
            f"kept {others:.1f}{of} hardware threads busy meanwhile",
            is_doubtful=others > BUSY_THREADS,
        )
        return
    load = environment.get("load_average")
    first = _time(load[0]) if isinstance(load, list) and load else None
    if first is not None:
        of = f" on {fmt.plural(threads, 'thread')}" if isinstance(threads, int) else ""
        busy = isinstance(threads, int) and first > max(0.5 * threads, 1.0)
        yield MeasuredFact("machine load", f"{first:g}{of} before the run", is_doubtful=busy)


def _time(value: JSON) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known and isinstance(value, (int, float)) and is_sound(value) else None
