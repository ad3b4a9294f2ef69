"""A comparison as tables, JSON, CSV and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.engines import WORK, Mismatch, PrecisionFigures, counts_text
from dld_tui.core.compare.explanation import precision_answers
from dld_tui.core.compare.matching import LEVEL_PERCENT, METHOD
from dld_tui.core.compare.records import Cell, ComparisonRow, Difference, Subject, label
from dld_tui.core.compare.rows import (
    difference_of,
    half_width,
    margin,
    ratio_text,
    signed,
    sort_rows,
)
from dld_tui.core.process.paths import relative_to_cwd
from dld_tui.core.report.pass_statistics import percentile_of
from dld_tui.core.statistics import LatencySource, latency_json, summarise
from dld_tui.core.tables.html_page import Bar, Section, Tile, bars, page, paragraphs, tiles
from dld_tui.core.tables.rendering import csv_of, html_of
from dld_tui.core.tables.table import (
    FLAG,
    MS,
    NOTE,
    PERCENT,
    RATIO,
    Column,
    IntervalUnit,
    Table,
    Unit,
)
from dld_tui.core.types import JSON, precision_style


def row_note(
    row: ComparisonRow,
    target: int,
    base: int,
    *,
    counted: bool = False,
    follows: bool | None = None,
) -> str:
    """Return a short note on a row.

    Args:
        target: The report whose difference is shown.
        base: The report that it is compared with.
        counted: Include the numbers of layers unless it is one of each.
        follows: It changed as nearly all rows did; None where these have nothing in common.
    """
    state = row.state(target, base)
    if state:
        return f"only {label(target if state == 'added' else base)}"
    words = []
    if row.cells[target].delta_ms is not None and row.cells[target].noise is not False:
        unknown = "shared" if row.estimate else "?"
        words.append("noise" if row.cells[target].noise else unknown)
    if follows:
        words = ["common"]
    counts = [len(row.cells[index].layers) for index in (base, target)]
    if counted and counts != [1, 1]:
        words.append(f"{counts[0]}>{counts[1]}")
    return " ".join(words)


def described(subject: Subject) -> str:
    """Return where a report is and what made it: untrusted text."""
    path, maker = place_and_maker(subject)
    return f"{path} · {maker}" if maker else path


def place_and_maker(subject: Subject) -> tuple[str, str]:
    """Return the path of a report, and what made it: untrusted text."""
    properties = (
        subject.properties.get(name) for name in ("backend", "execution_provider", "device")
    )
    return relative_to_cwd(subject.path), " · ".join(str(value) for value in properties if value)


_DELTA = Unit("ms", signed)
_INTERVAL = IntervalUnit(
    "interval", lambda one: f"{signed(one.value)} ({signed(one.low)} to {signed(one.high)})",
    mark=lambda value: f"{value:+g}" if value else "0",
)  # fmt: skip
_FIRST_OUT = 7
"""Priority of the columns between the base and the report whose difference is shown."""


def delta_style(cell: Cell) -> str:
    """Return the style class of a difference: ``good`` is faster."""
    if not cell.delta_ms:
        return "dim"
    return "good" if cell.delta_ms < 0 else "bad"


class SideBySide(Protocol):
    """What rows are shown of: reports, or sweeps."""

    base: int

    @property
    def target(self) -> int:
        """What a single difference is of."""

    @property
    def subjects(self) -> Sequence[Subject]:
        """What is compared, in order."""

    @property
    def differences(self) -> Sequence[Difference]:
        """Settings and properties that are not the same."""

    def follows(self, row: ComparisonRow, index: int) -> bool | None:
        """Return whether a row changed as nearly all did; None where these have nothing common."""

    def is_change(self, row: ComparisonRow, index: int) -> bool:
        """Return whether a row itself changed for certain."""


def compare_table(
    comparison: SideBySide, by: str, rows: Sequence[ComparisonRow], view: str
) -> Table[ComparisonRow]:
    """Return rows of a comparison as a table.

    Args:
        comparison: What is compared.
        by: What the rows are.
        rows: The rows, in order.
        view: ``csv``, ``text``, ``html`` or ``screen``.
    """
    base, target = comparison.base, comparison.target
    letters = [label(index) for index in range(len(comparison.subjects))]
    others = [index for index in range(len(letters)) if index != base]

    def style(row: ComparisonRow) -> str:
        cell = row.cells[target]
        return delta_style(cell) if comparison.is_change(row, target) else "dim"

    def note(row: ComparisonRow) -> str:
        follows = comparison.follows(row, target)
        return row_note(row, target, base, counted=by == "layer", follows=follows)

    def time(at: int) -> Callable[[ComparisonRow], str]:
        return lambda row: (
            ("≈" if row.estimate and row.cells[at].time_ms is not None else "")
            + fmt.milliseconds(row.cells[at].time_ms)
        )

    def bound(at: int, name: str) -> Callable[[ComparisonRow], float | None]:
        return lambda row: getattr(row.cells[at].interval, name, None)

    def cell(at: int, name: str) -> Callable[[ComparisonRow], Any]:
        return lambda row: getattr(row.cells[at], name)

    def difference(at: int) -> list[Column[ComparisonRow]]:
        letter = letters[at]
        pair = f" {letters[base]}>{letter}" if len(letters) > 2 else ""
        return [
            Column(f"delta_ms_{letter}",
                   f"{letter}-{letters[base]} ms" if view == "screen" else f"delta{pair}",
                   cell(at, "delta_ms"), _DELTA, 10,
                   style=style),
            Column(f"ratio_{letter}", f"ratio{pair}", cell(at, "ratio"), RATIO, 7, priority=1,
                   text=lambda row: ratio_text(row.cells[at]), style=style),
            Column(f"low_ms_{letter}", f"low{pair}", bound(at, "low_ms"), _DELTA),
            Column(f"high_ms_{letter}", f"high{pair}", bound(at, "high_ms"), _DELTA),
            Column(f"within_noise_{letter}", f"noise{pair}", cell(at, "noise"), FLAG),
            Column(f"margin_{letter}", f"±{pair}", lambda row: half_width(row.cells[at]), MS, 6,
                   priority=3, sortable=False, style="dim",
                   text=lambda row: margin(row.cells[at])),
            Column(f"share_percent_{letter}", "% of change" if view == "html" else f"%{pair}",
                   cell(at, "share_percent"), PERCENT, 5, priority=2, style="dim"),
        ]  # fmt: skip

    columns: list[Column[ComparisonRow]] = [
        Column("key", by, lambda row: row.key, least=16, keep="end",
               text=lambda row: row.title),
        *(
            Column(f"time_ms_{letter}", f"{letter} ms", cell(at, "time_ms"), MS, 9,
                   text=time(at), priority={base: 0, target: 1}.get(at, _FIRST_OUT))
            for at, letter in enumerate(letters)
        ),
        *(column for at in others for column in difference(at)),
        Column("interval", "", lambda row: difference_of(row.cells[target]), _INTERVAL, least=22,
               sortable=False, style=style),
        Column("remark", "", note, NOTE,
               11, sortable=False, style=style),
        Column("match", "match", lambda row: row.match, NOTE),
        Column("estimate", "estimate", lambda row: row.estimate, FLAG),
    ]  # fmt: skip
    times = [f"time_ms_{letter}" for letter in letters]
    target_letter = letters[target]
    keys = ["key", *times]
    if view == "csv":
        names = ["delta_ms", "ratio", "low_ms", "high_ms", "within_noise", "share_percent"]
        keys += [f"{name}_{letters[at]}" for at in others for name in names]
        keys += ["match", "estimate"]
    elif view == "html":
        names = ["delta_ms", "margin", "ratio"]
        keys += [f"{name}_{letters[at]}" for at in others for name in names]
        keys += [f"share_percent_{target_letter}", "remark"]
    elif view == "text":
        names = ["delta_ms", "margin", "ratio", *(["share_percent"] if by else [])]
        keys += [*(f"{name}_{target_letter}" for name in names), "remark"]
    else:
        keys += [
            f"delta_ms_{target_letter}",
            "interval",
            f"share_percent_{target_letter}",
            "remark",
        ]
    # A layer's row is named after the longest one of the base; a group keeps its name.
    return Table(
        columns, rows, name=by, row_key=lambda row: row.layer if by == "layer" else row.key
    ).pick(keys)


def mismatch_table(
    comparison: Comparison, mismatches: Sequence[Mismatch], view: str
) -> Table[Mismatch]:
    """Return layers with another precision or tactic as a table of a view, as above."""
    base, target = comparison.base, comparison.target
    letters = [label(index) for index in range(len(comparison.subjects))]

    def late(at: int, first: int) -> int:
        return first if at in (base, target) else 5

    def pair(letter: str) -> str:
        return f" {letters[base]}>{letter}" if len(letters) > 2 else ""

    def side(at: int, letter: str) -> list[Column[Mismatch]]:
        return [
            Column(f"precision_{letter}", letter, lambda item: item.precision[at], width=6,
                   priority=late(at, 0), style=lambda item: precision_style(item.precision[at])),
            Column(f"tactic_{letter}", f"{letter} tactic", lambda item: item.tactic[at], width=24,
                   priority=late(at, 2), keep="middle", style="dim"),
            Column(f"time_ms_{letter}", f"{letter} ms", lambda item: item.row.cells[at].time_ms,
                   MS, 9),
            Column(f"delta_ms_{letter}",
                   f"{letter}-{letters[base]} ms" if view == "screen" else f"delta{pair(letter)}",
                   lambda item: item.row.cells[at].delta_ms, _DELTA, 10,
                   style=lambda item: delta_style(item.row.cells[at])),
        ]  # fmt: skip

    columns: list[Column[Mismatch]] = [
        Column("node", "node" if view != "text" else "other precision or tactic",
               lambda item: item.node, least=16, keep="end"),
        Column("layer", "layer", lambda item: item.row.key, keep="end"),
        Column("what", "what", lambda item: item.what),
        Column("ratio", "ratio", lambda item: item.row.cells[target].ratio, RATIO, 7, priority=1,
               text=lambda item: ratio_text(item.row.cells[target])),
        Column("match", "match", lambda item: item.row.match, NOTE),
        *(column for at, letter in enumerate(letters) for column in side(at, letter)),
    ]  # fmt: skip
    precisions, tactics, times, deltas = (
        [f"{name}_{letter}" for letter in letters]
        for name in ("precision", "tactic", "time_ms", "delta_ms")
    )
    delta = deltas[target]
    keys = {
        "csv": ["node", "layer", "what", *precisions, *tactics, *times, *deltas, "match"],
        "text": ["node", *precisions, delta, *tactics],
        "html": ["node", *precisions, *tactics, *times, delta],
        "screen": ["node", *precisions, delta, "ratio", *tactics],
    }[view]
    return Table(columns, mismatches, name="mismatch", row_key=lambda item: item.row.layer).pick(
        keys
    )


def mismatches_of(comparison: Comparison, rows: Sequence[ComparisonRow]) -> list[Mismatch]:
    """Return what some rows of ``mismatch`` stand for, in their order."""
    known = {id(mismatch.row): mismatch for mismatch in comparison.mismatches}
    return [known[id(row)] for row in rows]


def difference_table(comparison: SideBySide) -> Table[Difference]:
    """Return the settings and properties that are not the same."""

    def value(at: int) -> Column[Difference]:
        return Column(label(at), label(at), lambda difference: difference.values[at])

    name: Column[Difference] = Column(
        "name", "what differs", lambda difference: difference.name, width=30
    )
    values = map(value, range(len(comparison.subjects)))
    return Table((name, *values), comparison.differences)


def precision_table(comparison: Comparison) -> Table[tuple[str, PrecisionFigures]]:
    """Return what each engine computes in, and how long what kind of work takes."""

    def work_ms(work: str, title: str) -> Column[tuple[str, PrecisionFigures]]:
        return Column(
            f"{work}_ms", f"{title}, ms",
            lambda row: row[1].work_ms.get(work, 0.0) if row[1].timed else None, MS,
        )  # fmt: skip

    columns: list[Column[tuple[str, PrecisionFigures]]] = [
        Column("engine", "engine", lambda row: row[0], width=6),
        Column("mainly", "mainly", lambda row: row[1].main, width=8),
        Column("counts", "layers by precision", lambda row: counts_text(row[1])),
        *(work_ms(work, title) for work, title in WORK.items()),
    ]
    rows = [(label(at), row) for at, row in enumerate(comparison.precisions)]
    return Table(columns, rows)


def comparison_json(
    comparison: Comparison, by: str = "layer", rows: Sequence[ComparisonRow] | None = None
) -> JSON:
    """Return the document of ``dld compare --json``. Fields may be added, never renamed.

    Args:
        comparison: The reports.
        by: What the rows are.
        rows: Some of the rows, in another order; all by default.
    """
    shown = comparison.rows(by) if rows is None else rows
    speed_up = comparison.speed_up_row
    document: dict[str, JSON] = {
        "reports": [
            _report(index, subject, comparison.measured[index].on_gpu)
            for index, subject in enumerate(comparison.subjects)
        ],
        "base": comparison.base,
        "by": by,
        "differences": encode(comparison.differences),
        "warnings": list(comparison.warnings),
        "latency_source": comparison.latency_source,
        "end_to_end": _row(comparison.end_to_end, comparison),
        "first_token": (
            None if comparison.first_token is None else _row(comparison.first_token, comparison)
        ),
        "layer_sum": _row(comparison.layer_sum, comparison),
        "rows": [_row(row, comparison) for row in shown],
        "rows_total": len(comparison.rows(by)),
        "speed_ups": [comparison.speed_up(index) for index in range(len(comparison.subjects))],
        "speed_up_source": None if speed_up is None else speed_up.key,
        "speed_up_bounds": [_bounds(comparison, at) for at in range(len(comparison.subjects))],
        "common_factors": [_factor(comparison, at) for at in range(len(comparison.subjects))],
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
            {"layers": engine.inserted, "time_ms": engine.inserted_ms if engine.timed else None}
            for engine in comparison.precisions
        ],
        "explanation": list(comparison.explanation()),
        "noise_method": METHOD,
    }
    return document


def _report(index: int, subject: Subject, on_gpu: bool) -> JSON:
    backend = subject.properties.get("backend")
    at = percentile_of(backend if isinstance(backend, str) else "")
    latency = summarise(subject.latencies_ms, percentile_at=at) or summarise(
        subject.profiled_ms, LatencySource.PROFILED, at
    )
    return {
        "label": label(index),
        "path": subject.path,
        **{name: subject.properties.get(name) for name in sorted(subject.properties)},
        "model": dict(subject.model),
        "latency_ms": latency_json(latency),
        "layers": len(subject.layers),
        "profiled_passes": len(subject.profiled_ms),
        "time_of": "GPU kernels" if on_gpu else "layers",
    }


def _row(row: ComparisonRow, comparison: Comparison) -> JSON:
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
        "follows_factor": [
            None if at == comparison.base else comparison.follows(row, at)
            for at in range(len(row.cells))
        ],
        "match": row.match,
        "estimate": row.estimate,
        "layers": [
            [subject.layers[index].name for index in cell.layers]
            for subject, cell in zip(comparison.subjects, row.cells, strict=True)
        ],
    }


def _bounds(comparison: Comparison, index: int) -> JSON:
    bounds = None if index == comparison.base else comparison.speed_up_bounds(index)
    return None if bounds is None else [end if math.isfinite(end) else None for end in bounds]


def _factor(comparison: Comparison, index: int) -> JSON:
    factor: JSON = encode(None if index == comparison.base else comparison.common_factor(index))
    return factor


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


def comparison_csv(comparison: Comparison, rows: Sequence[ComparisonRow], by: str = "layer") -> str:
    """Return rows as CSV: times of all reports, then the changes in each.

    Rows by ``mismatch`` have precisions and tactics instead of intervals.
    """
    if by == "mismatch":
        return csv_of(mismatch_table(comparison, mismatches_of(comparison, rows), "csv"))
    return csv_of(compare_table(comparison, by, rows, "csv"))


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
    by_type = sort_rows(comparison.rows("type"), "time", comparison.base)[:_TOP]
    sections = [
        *_answer(comparison),
        Section("differs", "What differs between the runs", _differences(comparison)),
        Section("look", "Where the time went", paragraphs([*unfair, *explained])),
        Section("whole", "End to end", _rows(comparison, "what", comparison.whole)),
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
            Tile(f"Speedup of {label(index)}", f"{factor:.2f}×")
            for index in range(len(comparison.subjects))
            if index != comparison.base and (factor := comparison.speed_up(index)) is not None
        ]
    return tiles(figures)


def _differences(comparison: Comparison) -> str:
    if not comparison.differences:
        return paragraphs([("No differences in settings and environment.", "info")])
    return html_of("difference-table", difference_table(comparison))


def _bars(comparison: Comparison, rows: Sequence[ComparisonRow]) -> str:
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


def _rows(comparison: Comparison, by: str, rows: Sequence[ComparisonRow]) -> str:
    return html_of(f"{by}-table", compare_table(comparison, by, rows, "html"))
