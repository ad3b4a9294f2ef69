"""A report as JSON and CSV for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import write_bytes, write_text
from dld_tui.core.report.formats.export_trace import write_trace
from dld_tui.core.report.gpu_summary import gpu_summary
from dld_tui.core.report.html.report_page import report_page
from dld_tui.core.report.layer_table import group_table, layer_table, node_link_json
from dld_tui.core.report.measured_facts import measured_json, report_inputs
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.schema import finite
from dld_tui.core.report.statistics import LatencySummary
from dld_tui.core.report.story import advice_json
from dld_tui.core.tables.rendering import csv_of, parquet_of
from dld_tui.core.tables.table import json_of
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report


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
        "inputs": [one.to_json() for one in report_inputs(report)],
        "advice": advice_json(report),
        "gpu": gpu_json(report),
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
    """Return what the GPU does in a pass and the counters; None when nothing is known.

    ``median_pass`` has the median figures of all passes; its name is older than that.
    """
    summary = gpu_summary(report)
    if summary is None and not report.counters and report.gpu_absent is None:
        return None
    counters: list[JSON] = [asdict(counter) for counter in report.counters]
    return {
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


def interval_json(report: Report, layer: Layer) -> JSON:
    """Return the 95 % interval of a layer's median time, ``[low, high]`` in milliseconds.

    None with too few passes to tell.
    """
    from dld_tui.core.report.pass_times import interval_ms  # needs numpy

    found = None if report.by_pass is None else interval_ms(report.by_pass, layer.index)
    return None if found is None else list(found)


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
"""What is written, and by whom, by the end of the file's name; the first that fits."""


def export_report(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report as what the file's name says, and return remarks for the user.

    Raises:
        UsageError: The name tells no kind.
        UnavailableError: The kind needs a package that is not installed.
        SaveError: The file cannot be written.
    """
    name = path.name.lower()
    for ending, (_, write) in FORMATS.items():
        if name.endswith(ending):
            return write(report, path, overwrite=overwrite)
    raise UsageError(
        "the name does not say what to write", where=str(path), hint=f"End it in {endings()}"
    )


def endings() -> str:
    """Return the endings for a sentence."""
    names = sorted(FORMATS)
    return f"{', '.join(names[:-1])} or {names[-1]}"
