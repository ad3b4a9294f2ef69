"""``dld compare``: two or more profile reports or engine plans side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dld_tui.cli.command import Command
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.output import (
    also_writes,
    narrate,
    write,
    write_json,
    write_table,
    write_wrapped,
)
from dld_tui.core import fmt
from dld_tui.core.compare.comparison import MISMATCH, VIEWS, Comparison, open_subject
from dld_tui.core.compare.export import (
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
from dld_tui.core.compare.records import KIND, Row, label
from dld_tui.core.compare.rows import SORTS, sort_rows
from dld_tui.core.cost.sharing import sharing_note
from dld_tui.core.errors import UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.writer import write_text
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document import Document

_TOP = 25


@click.command("compare", cls=Command)
@click.argument(
    "reports", nargs=-1, required=True, metavar="REPORT REPORT...", type=click.Path(path_type=Path)
)
@click.option(
    "--by",
    type=click.Choice(VIEWS),
    default="layer",
    help=(
        "Key of a row. layer joins layers with the same ONNX nodes; mismatch lists layers whose "
        "precision or tactic differs."
    ),
)
@click.option(
    "--base", metavar="N", type=click.IntRange(min=1), default=1,
    help="Number of the baseline report; the first is 1.",
)  # fmt: skip
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="delta",
    help="Sort key; largest magnitude first.",
)
@click.option(
    "--top", metavar="N", type=click.IntRange(min=0),
    help=f"Number of rows; 0 for all. By default {_TOP} in text.",
)  # fmt: skip
@also_writes("--csv", "the rows as CSV")
@also_writes("--html", "one self-contained HTML page")
@click.option(
    "--model", metavar="MODEL.onnx", type=click.Path(path_type=Path),
    help="The model that the engines were built from, to map layers to ONNX nodes.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    reports: tuple[Path, ...],
    by: str,
    base: int,
    sort: str,
    top: int | None,
    csv: Path | None,
    html: Path | None,
    model: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare profile reports or engines: which layers changed, and by more than noise.

    REPORT is a .dldprof file, a profile of another tool, or the layer information of a TensorRT
    engine with the files beside it.
    """
    if len(reports) < 2:
        raise UsageError("two or more reports are needed: dld compare REPORT REPORT...")
    if base > len(reports):
        raise UsageError(f"--base {base}: there are {len(reports)} reports")
    require_free((csv, html), force)
    with ProgressReporter() as reporter:
        document = None if model is None else _open(model)
        subjects = [open_subject(path, reporter.bytes_read, document=document) for path in reports]
    comparison = Comparison(subjects, base - 1)
    rows = sort_rows(comparison.rows(by), sort, comparison.base)
    if csv is not None:
        write_text(csv, comparison_csv(comparison, rows[: top or None], by))
        narrate(f"wrote {csv}")
    if html is not None:
        write_text(html, comparison_page(comparison))
        narrate(f"wrote {html}")
    if as_json:
        write_json(comparison_json(comparison, by, rows[: top or None]))
    else:
        _print(comparison, by, rows, _TOP if top is None else top or len(rows))


def _open(path: Path) -> Document:
    from dld_tui.core.document import Document  # needs onnx, which a comparison does not

    return Document.open(path)


def _print(comparison: Comparison, by: str, rows: Sequence[Row], top: int) -> None:
    for index, subject in enumerate(comparison.subjects):
        mark = "base  " if index == comparison.base else ""
        write(f"{label(index)}  {mark}{visible(described(subject))}")
    write()
    if comparison.of_engines:
        write_table(precision_table(comparison))
        write()
    if comparison.differences:
        write_table(difference_table(comparison))
    else:
        write("No differences in settings and environment.")
    write()
    for line in comparison.warnings:
        write_wrapped(f"! {line}", "  ")
    if comparison.warnings:
        write()
    whole = [comparison.end_to_end, comparison.layer_sum]
    write_table(compare_table(comparison, "", whole, "text"))
    write()
    for line in comparison.explanation():
        write_wrapped(line, "    ")
    write()
    if by != MISMATCH:
        write_table(compare_table(comparison, by, rows[:top], "text"))
    if by == MISMATCH or (comparison.of_engines and comparison.mismatches):
        write()
        write_mismatches(comparison, rows[:top] if by == MISMATCH else None)
    _write_notes(comparison, rows, top)


def _write_notes(comparison: Comparison, rows: Sequence[Row], top: int) -> None:
    write()
    if len(rows) > top:
        write(f"{fmt.plural(len(rows) - top, 'more row')}: --top 0 shows all")
    if any(row.estimate for row in rows[:top]):
        layers = [layer for subject in comparison.subjects for layer in subject.layers]
        write_wrapped(f"≈ {sharing_note(layers)}", "  ")
    kinds = {subject.facts.get(KIND) for subject in comparison.subjects} - {None}
    if len(kinds) == 1:
        write(f"Times of engine layers are {kinds.pop()} over the passes.")
    kernels = [label(i) for i, measured in enumerate(comparison.measured) if measured.on_gpu]
    if kernels:
        write_wrapped(f"Times on a GPU are of its kernels: {', '.join(kernels)}.", "")
    write_wrapped(METHOD, "  ")


_MOST_MISMATCHES = 10


def write_mismatches(comparison: Comparison, rows: Sequence[Row] | None) -> None:
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
