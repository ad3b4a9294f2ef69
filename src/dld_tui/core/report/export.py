"""A report as JSON and CSV for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.cost.roofline import limiter, measured_ms, per_second
from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import write_bytes, write_text
from dld_tui.core.llm.figures import generation_of, llm_json
from dld_tui.core.report.formats.export_trace import write_trace
from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.layer_table import group_table, layer_table, node_link_json
from dld_tui.core.report.measured_facts import measured_json, report_inputs
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.report_page import report_page
from dld_tui.core.report.schema import finite
from dld_tui.core.report.statistics import LatencySummary
from dld_tui.core.report.story import advice_json
from dld_tui.core.tables.rendering import csv_of, parquet_of
from dld_tui.core.tables.table import json_of
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report


def report_json(report: Report, by: str | None = None) -> dict[str, JSON]:
    """Return the document of ``dld report --json``. Fields may be added, never renamed."""
    latency = report.latency
    document: dict[str, JSON] = {
        "path": str(report.path),
        "status": report.status,
        "network": report.network,
        "backend": report.backend,
        "execution_provider": report.execution_provider,
        "device": report.device,
        "created": report.created,
        "model": report.model,
        "passes": latency.count if latency else 0,
        "profiled_passes": 0 if report.has_phases else len(report.counted_passes),
        "latency_ms": latency_json(latency),
        "profiled_latency_ms": latency_json(report.profiled_latency),
        "rows_are": report.wording.rows,
        "times_are": report.wording.figures,
        "layers_total_ms": report.total_ms,
        "covered_percent": None if report.by_pass is None else report.by_pass.covered_percent,
        "between_layers_percent": (
            None if report.by_pass is None else report.by_pass.between_percent
        ),
        "joined_percent": report.joined_percent,
        "inputs": [report_input.to_json() for report_input in report_inputs(report)],
        "advice": advice_json(report),
        "gpu": gpu_json(report),
        "cost": cost_json(report.layers),
        "memory": memory_json(report.layers),
        "startup": startup_json(report),
        "energy_j": report.facts.get("energy_per_inference_j"),
        "llm": llm_json(generation_of(report)),
        "measured": measured_json(report),
        "layers": [
            {**record, "time_interval_ms": interval_json(report, layer)}
            for record, layer in zip(layers_json(report.layers), report.layers, strict=True)
        ],
        "settings": report.settings,
        "environment": report.environment,
        "problems": list(report.problems),
        "notes": [{"level": note.level, "text": note.text} for note in report.notes],
    }
    if by is not None:
        document["by"] = by
        document["groups"] = [*json_of(group_table(report.groups(by), by, "csv"))]
    return document


def gpu_json(report: Report) -> JSON:
    """Return the GPU summary of a pass and the counters; None if nothing is known.

    ``median_pass`` has the medians over all passes; the name has historical reasons.
    """
    summary = gpu_summary(report)
    if summary is None and not report.counters and report.gpu_absent is None:
        return None
    counters: list[JSON] = [asdict(counter) for counter in report.counters]
    slowed = None if summary is None else summary.slowed_by
    true_speed = summary is not None and summary.true_speed
    return {
        "busy_percent": summary.busy_percent if summary is not None and true_speed else None,
        "timeline_slowdown_percent": None if slowed is None else 100 * (slowed - 1),
        "gaps_ms": summary.gaps_us / 1000 if summary is not None and true_speed else None,
        "absent": report.gpu_absent,
        "median_pass": None
        if summary is None
        else {
            **asdict(summary),
            "busy_percent": summary.busy_percent,
            "gap_percent": summary.gap_percent,
            "attributed_percent": summary.attributed_percent,
            "slowed_by": summary.slowed_by,
        },
        "timeline": report.facts.get("gpu_timeline"),
        "counters": counters,
    }


def cost_json(layers: Sequence[Layer]) -> JSON:
    """Return operations and bytes of a pass, and by node; None where no layer has any.

    Sums and rates cover the layers with known values, ``uncounted_layers`` the others that took
    time. Rates and limiters of nodes are those of their layer.
    """
    counted = [layer for layer in layers if layer.flops is not None]
    if not counted:
        return None
    flops, achieved_flops = _amount(layers, lambda layer: layer.flops)
    moved, achieved_bytes = _amount(layers, lambda layer: layer.moved_bytes)
    by_limiter: dict[str, float] = {}
    for layer in counted:
        if (limit := limiter(layer)) is not None:
            by_limiter[limit] = by_limiter.get(limit, 0.0) + _pass_ms(layer)
    return {
        "flops": flops,
        "moved_bytes": moved,
        "uncounted_layers": sum(
            1 for layer in layers if None in (layer.flops, layer.moved_bytes) and _pass_ms(layer)
        ),
        "achieved_flops": achieved_flops,
        "achieved_bytes_s": achieved_bytes,
        "limiter": max(by_limiter, key=lambda name: by_limiter[name], default=None),
        "nodes": [
            {
                "scope": [*link.scope],
                "node": link.node,
                "op_type": link.op_type,
                "layer": layer.index,
                "share": link.share,
                "achieved_flops": per_second(layer, layer.flops),
                "achieved_bytes_s": per_second(layer, layer.moved_bytes),
                "limiter": limiter(layer),
            }
            for layer in counted
            for link in layer.nodes
        ],
    }


def _pass_ms(layer: Layer) -> float:
    return (measured_ms(layer) or 0.0) * (layer.count or 1.0)


def _amount(
    layers: Sequence[Layer], of: Callable[[Layer], float | None]
) -> tuple[float | None, float | None]:
    """Return an amount per pass, and per second; None if unknown."""
    known = [(layer, amount) for layer in layers if (amount := of(layer)) is not None]
    total = sum(amount * (layer.count or 1.0) for layer, amount in known)
    ms = sum(_pass_ms(layer) for layer, _ in known)
    return (total if known else None, 1000 * total / ms if ms else None)


def memory_json(layers: Sequence[Layer]) -> JSON:
    """Return the peak of activations in a pass; None if it was not measured.

    A report has no tensors: ``dld memory`` lists those alive at the peak.
    """
    most = max(layers, key=lambda layer: layer.in_use_bytes or 0, default=None)
    if most is None or not most.in_use_bytes:
        return None
    return {
        "peak_bytes": round(most.in_use_bytes),
        "at": {"layer": most.index, "name": most.name, "nodes": [link.node for link in most.nodes]},
        "arena_bytes": max(layer.arena_bytes or 0 for layer in layers) or None,
        "alive": None,
    }


def startup_json(report: Report) -> JSON:
    """Return the time of creating the session; ``dld startup`` lists its stages."""
    load = report.facts.get("load_ms")
    return [] if load is None else [{"stage": "session", "ms": load}]


def interval_json(report: Report, layer: Layer) -> JSON:
    """Return the 95 % interval of a layer's median time, ``[low, high]`` in milliseconds.

    None with too few passes.
    """
    from dld_tui.core.report.pass_times import interval_ms  # needs numpy

    interval = None if report.by_pass is None else interval_ms(report.by_pass, layer.index)
    return None if interval is None else list(interval)


def latency_json(summary: LatencySummary | None) -> JSON:
    """Return a latency summary in milliseconds; None when nothing was measured."""
    if summary is None:
        return None
    return asdict(summary)


def layers_json(layers: Sequence[Layer]) -> list[dict[str, JSON]]:
    """Return the entries of ``layers``."""
    records = json_of(layer_table(layers, "report json"))
    return [
        {
            **record,
            "node_links": [*map(node_link_json, layer.nodes)],
            "details": dict(layer.details),
        }
        for record, layer in zip(records, layers, strict=True)
    ]


def layers_csv(layers: Sequence[Layer]) -> str:
    """Return the layers as CSV; unknown values are empty.

    Shapes are written as ``1x3x224x224``, several are joined by ``;``, as are node names.
    """
    return csv_of(layer_table(layers, "report csv"))


def groups_csv(groups: Sequence[Group]) -> str:
    """Return groups as CSV."""
    return csv_of(group_table(groups, "", "csv"))


def write_html(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report as one HTML page and return remarks for the user."""
    return write_text(path, report_page(report), overwrite=overwrite)


def write_parquet(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write the layers as Parquet, a row each, and return remarks for the user.

    The columns are those of the CSV with their types; facts of the run are in the metadata.

    Raises:
        UnavailableError: pyarrow is not installed.
        SaveError: The file cannot be written.
    """
    names = ("network", "backend", "execution_provider", "device", "created")
    metadata = {name: getattr(report, name) for name in names}
    content = parquet_of(layer_table(report.layers, "report parquet"), metadata)
    return write_bytes(path, content, overwrite=overwrite)


def _write_csv(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    return write_text(path, layers_csv(report.layers), overwrite=overwrite)


def _write_json(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    text = json.dumps(finite(report_json(report)), indent=2, allow_nan=False)
    return write_text(path, text + "\n", overwrite=overwrite)


FORMATS: dict[str, tuple[str, Callable[..., list[str]]]] = {
    ".trace.json": ("a Chrome trace of all passes, for Perfetto", write_trace),
    ".csv": ("the layers as CSV", _write_csv),
    ".json": ("everything but single runs, as JSON", _write_json),
    ".html": ("one page to mail", write_html),
    ".parquet": ("the layers as Parquet", write_parquet),
}
"""Description and writer by the ending of the file's name; the first match is used."""


def export_report(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report in the format of the file's name, and return notes for the user.

    Raises:
        UsageError: The name has an unknown ending.
        UnavailableError: The kind needs a package that is not installed.
        SaveError: The file cannot be written.
    """
    name = path.name.lower()
    for ending, (_, write) in FORMATS.items():
        if name.endswith(ending):
            return write(report, path, overwrite=overwrite)
    raise UsageError(
        "the name does not give a known format",
        where=str(path),
        hint=f"End the name in {endings()}",
    )


def endings() -> str:
    """Return the endings for a sentence."""
    names = sorted(FORMATS)
    return f"{', '.join(names[:-1])} or {names[-1]}"
