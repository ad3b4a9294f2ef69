"""A report as JSON and CSV for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from dld_tui.core.csv_text import csv_text
from dld_tui.core.report.encoding import as_list
from dld_tui.core.report.gpu_summary import GpuSummary, gpu_summary
from dld_tui.core.report.inputs import report_inputs
from dld_tui.core.report.measured_facts import measured_json
from dld_tui.core.report.records import Dims, Group, Layer
from dld_tui.core.report.statistics import LatencySummary
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

LAYER_COLUMNS = (
    "index",
    "name",
    "type",
    "input_dims",
    "output_dims",
    "provider",
    "precision",
    "time_ms",
    "percent",
    "min_ms",
    "max_ms",
    "mean_ms",
    "count",
    "passes",
    "gpu_time_ms",
    "nodes",
    "confidence",
)
"""The columns of the layer CSV; the JSON's layers have these fields and more."""

GROUP_COLUMNS = ("key", "count", "time_ms", "percent", "gpu_time_ms", "estimate", "cost_ms")


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
        "profiled_passes": len(report.counted_passes),
        "latency_ms": latency_json(latency),
        "profiled_latency_ms": latency_json(report.profiled_latency),
        "layers_total_ms": report.total_ms,
        "covered_percent": None if report.by_pass is None else report.by_pass.covered_percent,
        "between_layers_percent": (
            None if report.by_pass is None else report.by_pass.between_percent
        ),
        "joined_percent": report.joined_percent,
        "inputs": [one.to_json() for one in report_inputs(report)],
        "gpu": gpu_json(report),
        "measured": measured_json(report),
        "layers": [
            {**layer_json(layer), "time_interval_ms": interval_json(report, layer)}
            for layer in report.layers
        ],
        "settings": report.settings,
        "environment": report.environment,
        "problems": list(report.problems),
        "notes": [{"level": note.level, "text": note.text} for note in report.notes],
    }
    if by is not None:
        document["by"] = by
        document["groups"] = [group_json(group) for group in report.groups(by)]
    return document


def gpu_json(report: Report) -> JSON:
    """Return what the GPU does in a pass and the counters; None when nothing is known.

    ``median_pass`` has the median figures of all passes; its name is older than that.
    """
    found = gpu_summary(report)
    if found is None and not report.counters and report.gpu_absent is None:
        return None
    counters: list[JSON] = [asdict(counter) for counter in report.counters]
    return {
        "absent": report.gpu_absent,
        "median_pass": None if found is None else {**asdict(found), **_shares(found)},
        "timeline": report.facts.get("gpu_timeline"),
        "counters": counters,
    }


def interval_json(report: Report, layer: Layer) -> JSON:
    """Return the 95 % interval of a layer's median time, ``[low, high]`` in milliseconds.

    None with too few passes to tell.
    """
    from dld_tui.core.report.pass_times import interval_ms  # needs numpy

    found = None if report.by_pass is None else interval_ms(report.by_pass, layer.index)
    return None if found is None else list(found)


def _shares(found: GpuSummary) -> dict[str, JSON]:
    return {
        "busy_percent": found.busy_percent,
        "gap_percent": found.gap_percent,
        "attributed_percent": found.attributed_percent,
        "slowed_by": found.slowed_by,
    }


def latency_json(summary: LatencySummary | None) -> JSON:
    """Return a latency summary in milliseconds; None when nothing was measured."""
    if summary is None:
        return None
    return asdict(summary)


def layer_json(layer: Layer) -> dict[str, JSON]:
    """Return one entry of ``layers``."""
    return {
        "index": layer.index,
        "name": layer.name,
        "type": layer.type,
        "input_dims": [as_list(dims) for dims in layer.input_dims],
        "output_dims": [as_list(dims) for dims in layer.output_dims],
        "input_types": list(layer.input_types),
        "output_types": list(layer.output_types),
        "provider": layer.provider,
        "precision": layer.precision,
        "time_ms": layer.time_ms,
        "percent": layer.percent,
        "min_ms": layer.min_ms,
        "max_ms": layer.max_ms,
        "mean_ms": layer.mean_ms,
        "count": layer.count,
        "passes": layer.passes,
        "gpu_time_ms": layer.gpu_time_ms,
        "nodes": [link.name or link.node for link in layer.nodes],
        "confidence": layer.confidence,
        "node_links": [
            {
                "scope": list(link.scope),
                "node": link.node,
                "op_type": link.op_type,
                "confidence": link.confidence,
                "share": link.share,
            }
            for link in layer.nodes
        ],
        "details": dict(layer.details),
    }


def group_json(group: Group) -> dict[str, JSON]:
    """Return one entry of ``groups``."""
    return {column: getattr(group, column) for column in GROUP_COLUMNS}


def layers_csv(layers: Iterable[Layer]) -> str:
    """Return the layers as CSV (RFC 4180, with a header row); unknown values are empty.

    Shapes are written as ``1x3x224x224``, several are joined by ``;``, as are node names.
    """
    return csv_text(LAYER_COLUMNS, (_layer_row(layer) for layer in layers))


def groups_csv(groups: Iterable[Group]) -> str:
    """Return groups as CSV, with a header row."""
    return csv_text(
        GROUP_COLUMNS, ([getattr(g, column) for column in GROUP_COLUMNS] for g in groups)
    )


def shape_text(dims: Dims) -> str:
    """Return a shape in trtexec's form, e.g. ``1x3x224x224``; ``scalar`` and ``?`` where it is."""
    if dims is None:
        return "?"
    return "x".join("?" if dim is None else str(dim) for dim in dims) or "scalar"


def _layer_row(layer: Layer) -> list[object]:
    row: list[object] = []
    for column in LAYER_COLUMNS:
        if column in ("input_dims", "output_dims"):
            row.append("; ".join(shape_text(dims) for dims in getattr(layer, column)))
        elif column == "nodes":
            row.append("; ".join(link.label for link in layer.nodes))
        else:
            row.append(getattr(layer, column))
    return row
