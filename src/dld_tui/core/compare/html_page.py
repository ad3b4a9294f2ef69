"""A comparison as one HTML page that can be mailed, of the same parts as a report's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.model import Cell, Row, label
from dld_tui.core.compare.noise import METHOD
from dld_tui.core.compare.precision import WORK, answers, counts_text
from dld_tui.core.compare.text import described, margin, ratio_text, remark, signed
from dld_tui.core.report.html import tables
from dld_tui.core.report.html.charts import Bar, bars
from dld_tui.core.report.html.page import Section, Tile, page, paragraphs, tiles
from dld_tui.core.report.html.tables import Column, Number, table

if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison

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
    """Return what is read first: a sentence for each pair, and where the time goes in each."""
    letters = [label(index) for index in range(len(comparison.subjects))]
    picture = ""
    if comparison.of_engines:
        figures = comparison.precisions
        picture = bars(
            [
                Bar(
                    title,
                    tuple(one.work_ms.get(work) if one.timed else None for one in figures),
                    tuple(
                        f"{fmt.milliseconds(one.work_ms.get(work))} ms" if one.timed else ""
                        for one in figures
                    ),
                )
                for work, title in WORK.items()
            ],
            [f"{letter} {one.main}" for letter, one in zip(letters, figures, strict=True)],
        )
        picture += table("precision-table", [
            Column("engine"), Column("mainly"), Column("layers by precision"),
        ], ([letter, one.main, counts_text(one)]
            for letter, one in zip(letters, figures, strict=True)))  # fmt: skip
    else:
        row = comparison.end_to_end
        picture = _bars(comparison, [row])
    others = [index for index in range(len(letters)) if index != comparison.base]
    said = [line for index in others for line in answers(comparison, index)]
    if not said:  # reports, and engines of which no precision is known
        said = comparison.explanation()[:1]
    return [Section("answer", "In short", paragraphs([(line, "info") for line in said]) + picture)]


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
    letters = [label(index) for index in range(len(comparison.subjects))]
    columns = [
        Column("node", name=True),
        *(Column(f"{letter} precision") for letter in letters),
        *(Column(f"{letter} tactic") for letter in letters),
        *(Column(f"{letter} ms", numeric=True) for letter in letters),
        Column("delta ms", numeric=True),
    ]
    return table("mismatch-table", columns, (
        [
            found.node,
            *(text or fmt.UNKNOWN for text in (*found.precision, *found.tactic)),
            *(tables.milliseconds(cell.time_ms) for cell in found.row.cells),
            Number(
                found.row.cells[comparison.target].delta_ms,
                signed(found.row.cells[comparison.target].delta_ms),
            ),
        ]
        for found in comparison.mismatches
    ))  # fmt: skip


def _tiles(comparison: Comparison) -> str:
    row = comparison.end_to_end
    found = [
        Tile(f"{label(index)}, {comparison.latency_source}, ms", fmt.milliseconds(cell.time_ms))
        for index, cell in enumerate(row.cells)
    ]
    target = row.cells[comparison.target]
    pair = f"{label(comparison.base)} to {label(comparison.target)}"
    found.append(Tile(f"{pair}, ms", signed(target.delta_ms)))
    found.append(Tile(f"{pair}, ratio", ratio_text(target)))
    if comparison.of_engines:
        found += [
            Tile(f"Speed-up of {label(index)}", f"{factor:.2f}x")
            for index in range(len(comparison.subjects))
            if index != comparison.base and (factor := comparison.speed_up(index)) is not None
        ]
    return tiles(found)


def _differences(comparison: Comparison) -> str:
    columns = [Column("what"), *(Column(label(i)) for i in range(len(comparison.subjects)))]
    rows = [[found.name, *found.values] for found in comparison.differences]
    if not rows:
        return paragraphs([("No setting and nothing in the environment differs.", "info")])
    return table("difference-table", columns, rows)


def _bars(comparison: Comparison, rows: Sequence[Row]) -> str:
    names = [f"{label(i)} {title}" for i, title in enumerate(comparison.titles)]
    return bars(
        [
            Bar(
                row.key,
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
    count = len(comparison.subjects)
    others = [index for index in range(count) if index != comparison.base]
    columns = [Column(by, name=True)]
    columns += [Column(f"{label(index)} ms", numeric=True) for index in range(count)]
    for index in others:
        pair = f" {label(index)}" if len(others) > 1 else ""
        columns += [Column(f"{title}{pair}", numeric=True) for title in ("delta", "±", "ratio")]
    columns += [Column("% of change", numeric=True), Column("")]
    return table(
        f"{by}-table", columns, (list(_cells(comparison, row, others, by)) for row in rows)
    )


def _cells(
    comparison: Comparison, row: Row, others: Sequence[int], by: str
) -> Iterator[tables.Cell]:
    yield f"{row.key} ≈" if row.estimate else row.key
    for cell in row.cells:
        yield tables.milliseconds(cell.time_ms)
    for index in others:
        cell = row.cells[index]
        yield Number(cell.delta_ms, signed(cell.delta_ms))
        yield Number(_half(cell), margin(cell))
        yield Number(cell.ratio, ratio_text(cell))
    yield tables.percent(row.cells[comparison.target].share_percent)
    yield remark(row, comparison.target, comparison.base, counted=by == "layer")


def _half(cell: Cell) -> float | None:
    if cell.interval is None:
        return None
    return (cell.interval.high_ms - cell.interval.low_ms) / 2
