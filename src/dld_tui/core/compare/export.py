"""A comparison as JSON and CSV for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import precision_answers
from dld_tui.core.compare.engines import WORK, Mismatch
from dld_tui.core.compare.matching import LEVEL_PERCENT, METHOD
from dld_tui.core.compare.records import Cell, Comparable, Row, label
from dld_tui.core.compare.tables import (
    compare_table,
    described,
    difference_table,
    mismatch_table,
    mismatches_of,
    precision_table,
    ratio_text,
    signed,
)
from dld_tui.core.report.export import latency_json
from dld_tui.core.report.html_page import Bar, Section, Tile, bars, page, paragraphs, tiles
from dld_tui.core.report.statistics import percentile_of, summarise
from dld_tui.core.tables.rendering import csv_of, html_of
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
            {
                "section": difference.section,
                "name": difference.name,
                "values": list(difference.values),
            }
            for difference in comparison.differences
        ],
        "warnings": list(comparison.warnings),
        "latency_source": comparison.latency_source,
        "end_to_end": _row(comparison.end_to_end, comparison),
        "layer_sum": _row(comparison.layer_sum, comparison),
        "rows": [_row(row, comparison) for row in shown],
        "rows_total": len(comparison.rows(by)),
        "speed_ups": [comparison.speed_up(index) for index in range(len(comparison.subjects))],
        "speed_up_source": comparison.speed_up_source or None,
        "mismatches": [_mismatch(mismatch, comparison) for mismatch in comparison.mismatches],
        "precisions": [
            {
                "main": figures.main,
                "layers": dict(figures.counts),
                "time_ms": dict(figures.times) if figures.timed else None,
                "work_ms": dict(figures.work_ms) if figures.timed else None,
            }
            for figures in (comparison.precisions if comparison.of_engines else ())
        ],
        "inserted": [
            {"layers": insertion.layers, "time_ms": insertion.time_ms}
            for insertion in comparison.inserted
        ],
        "explanation": list(comparison.explanation()),
        "noise_method": METHOD,
    }
    return document


def _report(index: int, subject: Comparable, on_gpu: bool) -> JSON:
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


def _row(row: Row, comparison: Comparison) -> JSON:
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


def _mismatch(mismatch: Mismatch, comparison: Comparison) -> JSON:
    cells = mismatch.row.cells
    return {
        "node": mismatch.node,
        "what": mismatch.what,
        "precision": list(mismatch.precision),
        "tactic": list(mismatch.tactic),
        "time_ms": [cell.time_ms for cell in cells],
        "delta_ms": cells[comparison.target].delta_ms,
        "deltas_ms": [cell.delta_ms for cell in cells],
        "match": mismatch.row.match,
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
    """Return rows as CSV: times of all reports, then the changes in each.

    Rows by ``mismatch`` have precisions and tactics instead of intervals.
    """
    if by == "mismatch":
        return csv_of(mismatch_table(comparison, mismatches_of(comparison, rows), "csv"))
    return csv_of(compare_table(comparison, by, rows, "csv"))


# --- A comparison as one HTML page that can be mailed, of the same parts as a report's -----------

_TOP = 20


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison. The same reports give the same bytes."""
    subjects = comparison.subjects
    subtitle = [
        f"{label(index)}{' (base)' if index == comparison.base else ''}: {described(subject)}"
        for index, subject in enumerate(subjects)
    ]
    explained = [
        (line.strip(), "inner" if line.startswith(" ") else "info")
        for line in comparison.explanation()
    ]
    unfair = [(line, "warning") for line in comparison.warnings]
    by_type = sorted(comparison.rows("type"), key=_longest, reverse=True)[:_TOP]
    sections = [
        *_answer(comparison),
        Section("differs", "What differs between the runs", _differences(comparison)),
        Section("look", "Where the time went", paragraphs([*unfair, *explained])),
        Section("whole", "End to end", _rows(comparison, "what", [
            comparison.end_to_end, comparison.layer_sum])),
        Section("types", "Time by operator type", _bars(comparison, by_type)),
        Section("changes", f"The {_TOP} largest differences",
                _bars(comparison, comparison.rows("layer")[:_TOP])),
        Section("layers", "Layers", _rows(comparison, "layer", comparison.rows("layer"))),
        Section("by-type", "By type", _rows(comparison, "type", comparison.rows("type"))),
        Section("by-op", "By ONNX operator", _rows(comparison, "op", comparison.rows("op"))),
        *_engine_sections(comparison),
        Section("method", "Noise", paragraphs([(METHOD, "info")])),
    ]  # fmt: skip
    title = " and ".join(comparison.titles)
    return page(f"Comparison of {title}", subtitle, _tiles(comparison), sections)


def _answer(comparison: Comparison) -> list[Section]:
    """Return the summary: a sentence for each pair, and where the time goes in each."""
    letters = [label(index) for index in range(len(comparison.subjects))]
    picture = ""
    if comparison.of_engines:
        figures = comparison.precisions
        picture = bars(
            [
                Bar(
                    title,
                    tuple(engine.work_ms.get(work) if engine.timed else None for engine in figures),
                    tuple(
                        f"{fmt.milliseconds(engine.work_ms.get(work))} ms" if engine.timed else ""
                        for engine in figures
                    ),
                )
                for work, title in WORK.items()
            ],
            [f"{letter} {engine.main}" for letter, engine in zip(letters, figures, strict=True)],
        )
        picture += html_of("precision-table", precision_table(comparison).pick(
            ("engine", "mainly", "counts")))  # fmt: skip
    else:
        row = comparison.end_to_end
        picture = _bars(comparison, [row])
    others = [index for index in range(len(letters)) if index != comparison.base]
    lines = [line for index in others for line in precision_answers(comparison, index)]
    if not lines:  # reports, and engines of which no precision is known
        lines = comparison.explanation()[:1]
    return [Section("answer", "In short", paragraphs([(line, "info") for line in lines]) + picture)]


def _engine_sections(comparison: Comparison) -> list[Section]:
    """Return what only engines have: nodes, precisions and tactics."""
    if not comparison.of_engines:
        return []
    return [
        Section("by-node", "By ONNX node", _rows(comparison, "node", comparison.rows("node"))),
        Section(
            "by-precision",
            "By precision",
            _rows(comparison, "precision", comparison.rows("precision")),
        ),
        Section("mismatches", "Other precisions and tactics", _mismatches(comparison)),
    ]


def _mismatches(comparison: Comparison) -> str:
    if not comparison.mismatches:
        return paragraphs([("All layers have the same precision and tactic.", "info")])
    return html_of("mismatch-table", mismatch_table(comparison, comparison.mismatches, "html"))


def _tiles(comparison: Comparison) -> str:
    row = comparison.end_to_end
    figures = [
        Tile(f"{label(index)}, {comparison.latency_source}, ms", fmt.milliseconds(cell.time_ms))
        for index, cell in enumerate(row.cells)
    ]
    target = row.cells[comparison.target]
    pair = f"{label(comparison.base)} to {label(comparison.target)}"
    figures.append(Tile(f"{pair}, ms", signed(target.delta_ms)))
    figures.append(Tile(f"{pair}, ratio", ratio_text(target)))
    if comparison.of_engines:
        figures += [
            Tile(f"Speed-up of {label(index)}", f"{factor:.2f}x")
            for index in range(len(comparison.subjects))
            if index != comparison.base and (factor := comparison.speed_up(index)) is not None
        ]
    return tiles(figures)


def _differences(comparison: Comparison) -> str:
    if not comparison.differences:
        return paragraphs([("No differences in settings and environment.", "info")])
    return html_of("difference-table", difference_table(comparison))


def _bars(comparison: Comparison, rows: Sequence[Row]) -> str:
    names = [f"{label(i)} {title}" for i, title in enumerate(comparison.titles)]
    return bars(
        [
            Bar(
                row.title,
                tuple(cell.time_ms for cell in row.cells),
                tuple(
                    fmt.UNKNOWN if cell.time_ms is None else f"{fmt.milliseconds(cell.time_ms)} ms"
                    for cell in row.cells
                ),
            )
            for row in rows
        ],
        names,
    )


def _longest(row: Row) -> float:
    return max((cell.time_ms or 0.0 for cell in row.cells), default=0.0)


def _rows(comparison: Comparison, by: str, rows: Sequence[Row]) -> str:
    return html_of(f"{by}-table", compare_table(comparison, by, rows, "html"))
