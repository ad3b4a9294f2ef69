"""A comparison as JSON and CSV for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.compare.engines import Mismatch
from dld_tui.core.compare.model import Cell, Comparable, Row, label
from dld_tui.core.compare.noise import LEVEL_PERCENT, METHOD
from dld_tui.core.compare.tables import compare_table, mismatch_table, mismatches_of
from dld_tui.core.report.export import latency_json
from dld_tui.core.report.statistics import percentile_of, summarise
from dld_tui.core.tables.as_csv import csv_of
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
        "speed_ups": [comparison.speed_up(index) for index in range(len(comparison.subjects))],
        "speed_up_source": comparison.speed_up_source or None,
        "mismatches": [_mismatch(found, comparison) for found in comparison.mismatches],
        "precisions": [
            {
                "main": found.main,
                "layers": dict(found.counts),
                "time_ms": dict(found.times) if found.timed else None,
                "work_ms": dict(found.work_ms) if found.timed else None,
            }
            for found in (comparison.precisions if comparison.of_engines else ())
        ],
        "inserted": [
            {"layers": found.layers, "time_ms": found.time_ms} for found in comparison.inserted
        ],
        "explanation": list(comparison.explanation()),
        "noise_method": METHOD,
    }
    return document


def _report(index: int, subject: Comparable, on_gpu: bool) -> dict[str, JSON]:
    backend = subject.facts.get("backend")
    at = percentile_of(backend if isinstance(backend, str) else "")
    latency = summarise(subject.latencies_ms, percentile_at=at) or summarise(
        subject.profiled_ms, "profiled passes", at
    )
    return {
        "label": label(index),
        "path": subject.path,
        **{name: subject.facts.get(name) for name in sorted(subject.facts)},
        "model": dict(subject.model),
        "latency_ms": latency_json(latency),
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


def _mismatch(found: Mismatch, comparison: Comparison) -> dict[str, JSON]:
    cells = found.row.cells
    return {
        "node": found.node,
        "what": found.what,
        "precision": list(found.precision),
        "tactic": list(found.tactic),
        "time_ms": [cell.time_ms for cell in cells],
        "delta_ms": cells[comparison.target].delta_ms,
        "deltas_ms": [cell.delta_ms for cell in cells],
        "match": found.row.match,
        "layers": [
            [subject.layers[index].name for index in cell.layers]
            for subject, cell in zip(comparison.subjects, cells, strict=True)
        ],
    }


def _noise(cell: Cell) -> JSON:
    if cell.interval is None:
        return None
    return {
        "low_ms": cell.interval.low_ms,
        "high_ms": cell.interval.high_ms,
        "level_percent": LEVEL_PERCENT,
        "within": cell.noise,
        "p_value": cell.p_value,
    }


def comparison_csv(comparison: Comparison, rows: Sequence[Row], by: str = "layer") -> str:
    """Return rows as CSV: times of all reports, then what changed in each.

    Those by ``mismatch`` have precisions and tactics instead of how sure the difference is.
    """
    if by == "mismatch":
        return csv_of(mismatch_table(comparison, mismatches_of(comparison, rows), "csv"))
    return csv_of(compare_table(comparison, by, rows, "csv"))
