"""``dld compare``: two or more profile reports, engine plans or sweeps side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli.command import also_written, command_for, force_flag, json_flag
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.output import (
    narrate,
    write,
    write_json,
    write_table,
    write_wrapped,
)
from dld_tui.core import fmt
from dld_tui.core.compare.comparison import MISMATCH, VIEWS, Comparison, open_subject
from dld_tui.core.compare.export import (
    SideBySide,
    compare_table,
    comparison_csv,
    comparison_json,
    comparison_page,
    described,
    difference_table,
    mismatch_table,
    mismatches_of,
    precision_table,
)
from dld_tui.core.compare.matching import METHOD
from dld_tui.core.compare.records import KIND, ComparisonRow, label
from dld_tui.core.compare.rows import SORTS, sort_rows
from dld_tui.core.compare.sweeps import SweepComparison, point_table, sweeps_json, sweeps_page
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.recognise import is_sweep
from dld_tui.core.files.writer import write_text
from dld_tui.core.params import param
from dld_tui.core.report.sharing import sharing_note
from dld_tui.core.report.sweep import load_sweep
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document

_TOP = 25


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld compare``."""

    reports: tuple[Path, ...] = param(
        label="Reports", positional=True, metavar="REPORT REPORT...",
        help="The reports or plans to compare.",
    )  # fmt: skip
    by: str = param(
        "layer", label="By", choices=tuple(VIEWS),
        help="Key of a row. layer joins layers with the same ONNX nodes; mismatch lists layers "
        "whose precision or tactic differs.",
    )  # fmt: skip
    base: int = param(
        1, label="Base", metavar="N", minimum=1,
        help="Number of the baseline report; the first is 1.",
    )  # fmt: skip
    sort: str | None = param(
        None, label="Sort", choices=tuple(SORTS),
        help="Sort key; largest magnitude first. By default delta; sweeps in the order of points.",
    )  # fmt: skip
    top: int | None = param(
        None, label="Top", metavar="N", minimum=0,
        help=f"Number of rows; 0 for all. By default {_TOP} in text.",
    )  # fmt: skip
    csv: Path | None = also_written("--csv", "the rows as CSV")
    html: Path | None = also_written("--html", "one self-contained HTML page")
    model: Path | None = param(
        None, label="Model", metavar="MODEL.onnx",
        help="The model that the engines were built from, to map layers to ONNX nodes.",
    )  # fmt: skip
    force: bool = force_flag("Overwrite existing files.")
    as_json: bool = json_flag()


@command_for("compare", Request)
def command(asked: Request) -> None:
    """Compare profile reports, engines or sweeps: what changed, and by more than noise.

    REPORT is a .dldprof file, a profile of another tool, the layer information of a TensorRT engine
    with the files beside it, or the result of dld sweep: sweeps are compared point by point.
    """
    if len(asked.reports) < 2:
        raise UsageError("two or more reports are needed: dld compare REPORT REPORT...")
    if asked.base > len(asked.reports):
        raise UsageError(f"--base {asked.base}: there are {len(asked.reports)} reports")
    require_free((asked.csv, asked.html), asked.force)
    if any(map(is_sweep, asked.reports)):
        _compare_sweeps(asked)
        return
    with ProgressReporter() as reporter:
        document = None if asked.model is None else _open(asked.model)
        subjects = [
            open_subject(path, reporter.bytes_read, document=document) for path in asked.reports
        ]
    comparison = Comparison(subjects, asked.base - 1)
    rows = sort_rows(comparison.rows(asked.by), asked.sort or "delta", comparison.base)
    if asked.csv is not None:
        write_text(asked.csv, comparison_csv(comparison, rows[: asked.top or None], asked.by))
        narrate(f"wrote {asked.csv}")
    if asked.html is not None:
        write_text(asked.html, comparison_page(comparison))
        narrate(f"wrote {asked.html}")
    if asked.as_json:
        write_json(comparison_json(comparison, asked.by, rows[: asked.top or None]))
    else:
        _print(comparison, asked.by, rows, _TOP if asked.top is None else asked.top or len(rows))


def _compare_sweeps(asked: Request) -> None:
    if asked.by != "layer" or asked.model is not None:
        raise UsageError("sweeps are compared point by point, without --by and --model")
    compared = SweepComparison([load_sweep(path) for path in asked.reports], asked.base - 1)
    rows = compared.rows
    if asked.sort is not None:
        rows = sort_rows(rows, asked.sort, compared.base)
    rows = rows[: asked.top or None]
    if asked.csv is not None:
        write_text(asked.csv, csv_of(point_table(compared, rows, "csv")))
        narrate(f"wrote {asked.csv}")
    if asked.html is not None:
        write_text(asked.html, sweeps_page(compared))
        narrate(f"wrote {asked.html}")
    if asked.as_json:
        write_json(sweeps_json(compared, rows))
        return
    _write_subjects(compared)
    _write_differences(compared)
    for line in compared.lines:
        write_wrapped(line, "  ")
    write()
    write_table(point_table(compared, rows, "text"))
    write()
    write_wrapped(METHOD, "  ")


def _write_subjects(compared: SideBySide) -> None:
    """Write what is compared."""
    for index, subject in enumerate(compared.subjects):
        mark = "base  " if index == compared.base else ""
        write(f"{label(index)}  {mark}{visible(described(subject))}")
    write()


def _write_differences(compared: SideBySide) -> None:
    """Write what differs between the runs."""
    if compared.differences:
        write_table(difference_table(compared))
    else:
        write("No differences in settings and environment.")
    write()


def _open(path: Path) -> Document:
    from dld_tui.core.llm.folder import open_document

    return open_document(path)


def _print(comparison: Comparison, by: str, rows: Sequence[ComparisonRow], top: int) -> None:
    _write_subjects(comparison)
    if comparison.of_engines:
        write_table(precision_table(comparison))
        write()
    _write_differences(comparison)
    for line in comparison.warnings:
        write_wrapped(f"! {line}", "  ")
    if comparison.warnings:
        write()
    write_table(compare_table(comparison, "", comparison.whole, "text"))
    write()
    for line in comparison.explanation():
        write_wrapped(line, "    ")
    write()
    if by == MISMATCH:
        write_mismatches(comparison, rows[:top])
    else:
        write_table(compare_table(comparison, by, rows[:top], "text"))
        if comparison.of_engines and comparison.mismatches:
            write()
            write_mismatches(comparison, None)
    _write_notes(comparison, rows, top)


def _write_notes(comparison: Comparison, rows: Sequence[ComparisonRow], top: int) -> None:
    write()
    if len(rows) > top:
        write(f"{fmt.plural(len(rows) - top, 'more row')}: --top 0 shows all")
    if any(row.estimate for row in rows[:top]):
        layers = [layer for subject in comparison.subjects for layer in subject.layers]
        write_wrapped(f"≈ {sharing_note(layers)}", "  ")
    kinds = {subject.properties.get(KIND) for subject in comparison.subjects} - {None}
    if len(kinds) == 1:
        write(f"Times of engine layers are {kinds.pop()} over the passes.")
    kernels = [label(i) for i, measured in enumerate(comparison.measured) if measured.on_gpu]
    if kernels:
        write_wrapped(f"Times on a GPU are of its kernels: {', '.join(kernels)}.", "")
    write_wrapped(METHOD, "  ")


_MOST_MISMATCHES = 10


def write_mismatches(comparison: Comparison, rows: Sequence[ComparisonRow] | None) -> None:
    """Write the layers with another precision or tactic.

    Args:
        comparison: The reports.
        rows: The rows to write, in their order; None for the first ones.
    """
    mismatches = comparison.mismatches
    chosen = mismatches[:_MOST_MISMATCHES] if rows is None else mismatches_of(comparison, rows)
    if not chosen:
        write("All layers have the same precision and tactic.")
        return
    write_table(mismatch_table(comparison, chosen, "text"))
    rest = len(mismatches) - len(chosen)
    if rows is None and rest:
        write(f"{fmt.plural(rest, 'more row')}: --by mismatch shows them")
