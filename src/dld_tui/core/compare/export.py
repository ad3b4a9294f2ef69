"""A comparison as JSON and CSV for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.compare.model import Cell, Comparable, Row, label
from dld_tui.core.compare.noise import LEVEL_PERCENT, METHOD
from dld_tui.core.report.export import csv_text, latency_json
from dld_tui.core.report.statistics import summarise
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison


def comparison_json(
    comparison: Comparison, by: str = "layer", rows: Sequence[Row] | None = None
) -> dict[str, JSON]:
    """Return the document of ``dld compare --json``. Fields may be added, never renamed.

    Args:
        comparison: The reports.
        by: What the rows are.
        rows: Some of the rows, in another order; all by default.
    """
    shown = comparison.rows(by) if rows is None else rows
    document: dict[str, JSON] = {
        "reports": [
            _report(index, subject, comparison.measured[index].on_gpu)
            for index, subject in enumerate(comparison.subjects)
        ],
        "base": comparison.base,
        "by": by,
        "differences": [
            {"section": found.section, "name": found.name, "values": list(found.values)}
            for found in comparison.differences
        ],
        "warnings": list(comparison.warnings),
        "latency_source": comparison.latency_source,
        "end_to_end": _row(comparison.end_to_end, comparison),
        "layer_sum": _row(comparison.layer_sum, comparison),
        "rows": [_row(row, comparison) for row in shown],
        "rows_total": len(comparison.rows(by)),
        "explanation": list(comparison.explanation()),
        "noise_method": METHOD,
    }
    return document


def _report(index: int, subject: Comparable, on_gpu: bool) -> dict[str, JSON]:
    latencies = subject.latencies_ms
    return {
        "label": label(index),
        "path": subject.path,
        **{name: subject.facts.get(name) for name in sorted(subject.facts)},
        "model": dict(subject.model),
        "latency_ms": latency_json(
            summarise(latencies) or summarise(subject.profiled_ms, "profiled passes")
        ),
        "layers": len(subject.layers),
        "profiled_passes": len(subject.profiled_ms),
        "time_of": "GPU kernels" if on_gpu else "layers",
    }


def _row(row: Row, comparison: Comparison) -> dict[str, JSON]:
    """Return a row; ``delta_ms`` and ``ratio`` are of the last report against the base."""
    target = row.cells[comparison.target]
    return {
        "key": row.key,
        "time_ms": [cell.time_ms for cell in row.cells],
        "delta_ms": target.delta_ms,
        "ratio": target.ratio,
        "noise": _noise(target),
        "share_percent": target.share_percent,
        "deltas_ms": [cell.delta_ms for cell in row.cells],
        "ratios": [cell.ratio for cell in row.cells],
        "noises": [_noise(cell) for cell in row.cells],
        "match": row.match,
        "estimate": row.estimate,
        "layers": [
            [subject.layers[index].name for index in cell.layers]
            for subject, cell in zip(comparison.subjects, row.cells, strict=True)
        ],
    }


def _noise(cell: Cell) -> JSON:
    if cell.interval is None:
        return None
    return {
        "low_ms": cell.interval.low_ms,
        "high_ms": cell.interval.high_ms,
        "level_percent": LEVEL_PERCENT,
        "within": cell.interval.has_zero,
    }


def comparison_csv(comparison: Comparison, rows: Iterable[Row]) -> str:
    """Return rows as CSV, with a header row: times of all reports, then what changed in each."""
    others = [i for i in range(len(comparison.subjects)) if i != comparison.base]
    header = ["key", *(f"time_ms_{label(index)}" for index in range(len(comparison.subjects)))]
    for index in others:
        fields = ("delta_ms", "ratio", "low_ms", "high_ms", "within_noise", "share_percent")
        header += [f"{field}_{label(index)}" for field in fields]
    header += ["match", "estimate"]
    return csv_text(header, (_csv_row(row, others) for row in rows))


def _csv_row(row: Row, others: Sequence[int]) -> list[object]:
    values: list[object] = [row.key, *(cell.time_ms for cell in row.cells)]
    for index in others:
        cell = row.cells[index]
        bounds = cell.interval
        values += [
            cell.delta_ms,
            cell.ratio,
            None if bounds is None else bounds.low_ms,
            None if bounds is None else bounds.high_ms,
            cell.noise,
            cell.share_percent,
        ]
    return [*values, row.match, row.estimate]
