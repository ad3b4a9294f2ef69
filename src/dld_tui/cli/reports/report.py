"""``dld report``: a profile report as text, CSV or JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from dld_tui.cli.command import (
    also_written,
    asked_writers,
    command_for,
    force_flag,
    json_flag,
    with_writers,
)
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.options import parameters_of
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Progress
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.recognise import is_sweep
from dld_tui.core.files.writer import write_text
from dld_tui.core.params import param
from dld_tui.core.reading.export import (
    groups_csv,
    layers_csv,
    report_json,
    write_html,
    write_layers,
)
from dld_tui.core.reading.first_lines import text_lines
from dld_tui.core.reading.story import next_steps, step_commands
from dld_tui.core.report.formats.chrome_trace import write_trace
from dld_tui.core.report.groups import GROUPINGS
from dld_tui.core.report.layer_table import costliest_first, group_table, layer_table
from dld_tui.core.report.measured_figures import input_lines, measured_figures
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.report.sharing import sharing_note
from dld_tui.core.report.sweep import Sweep, load_sweep
from dld_tui.core.report.sweep_export import (
    sweep_document,
    sweep_lines,
    sweep_markdown,
    sweep_page,
    sweep_table,
)
from dld_tui.core.report.triage import notes_of
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.writers import write_tables
from dld_tui.core.text import visible
from dld_tui.core.tune.result import TuneResult, result_lines, tune_table


@dataclass(frozen=True)
class Printed:
    """What of a report is printed below its first lines."""

    top: int = param(20, label="Layers", help="Number of layers to print.", metavar="N", minimum=0)
    all_layers: bool = param(
        False, label="All layers", help="Print all layers.", spellings=("--all",)
    )
    notes: bool = param(
        False, label="Notes", help="Print everything that was measured, and all advice."
    )


def printing_options() -> list[click.Parameter]:
    """Return the options of `Printed`."""
    return parameters_of(Printed)


@dataclass(frozen=True, kw_only=True)
class Request(Printed):
    """The arguments and options of ``dld report``."""

    report: Path = param(label="Report", help="The report.", positional=True)
    by: str | None = param(
        None, label="By", choices=tuple(GROUPINGS),
        help="Group the time by this key.",
    )  # fmt: skip
    csv: Path | None = also_written("--csv", "the table as CSV")
    html: Path | None = also_written("--html", "one self-contained HTML page")
    markdown: Path | None = also_written("--markdown", "a sweep as Markdown")
    trace: Path | None = also_written("--trace", "all passes as a Chrome trace, for Perfetto")
    force: bool = force_flag("Overwrite existing files.")
    as_json: bool = json_flag()


@command_for("report", with_writers(Request, "the table"))
def command(asked: Request) -> None:
    """Print a profile report: the answer in ten lines, then the slowest layers.

    REPORT is a .dldprof file, the result of dld sweep, a profile of ONNX Runtime, layer times or
    inference times of trtexec (--exportProfile, --exportTimes), a Chrome trace, or a SQLite export
    of Nsight Systems.
    """
    files = asked.csv, asked.html, asked.markdown, asked.trace
    require_free((*files, *asked_writers(asked)), asked.force)
    if is_sweep(asked.report):
        _sweep(asked)
        return
    if asked.markdown is not None:
        raise UsageError("--markdown is for results of dld sweep", where=str(asked.report))
    with _opened(asked.report) as opened:
        if asked.csv is not None:
            text = groups_csv(opened.groups(asked.by)) if asked.by else layers_csv(opened.layers)
            write_text(asked.csv, text)
        _export(opened, asked)
        _print(opened, asked.by, asked.as_json, asked)


def _export(report: Report, asked: Request) -> None:
    remarks: list[str] = []
    if asked.html is not None:
        remarks += write_html(report, asked.html)
    if asked.trace is not None:
        with ProgressReporter() as reporter:
            remarks += write_trace(
                report,
                asked.trace,
                progress=lambda done, total: reporter.event(
                    Progress(done, total, "passes", "writing the trace")
                ),
            )
    for path, writer in asked_writers(asked).items():
        remarks += write_layers(writer, report, path)
    for remark in remarks:
        narrate(remark)


def _sweep(asked: Request) -> None:
    """Print the result of a sweep, and write it in other formats."""
    if asked.by is not None or asked.trace is not None:
        raise UsageError("a sweep has no --by or --trace", where=str(asked.report))
    sweep = load_sweep(asked.report)
    if asked.csv is not None:
        write_text(asked.csv, csv_of(sweep_table(sweep)))
    for path, writer in asked_writers(asked).items():
        write_tables(writer, path, [("Sweep", sweep_table(sweep))])
    if asked.html is not None:
        write_text(asked.html, sweep_page(sweep))
    if asked.markdown is not None:
        write_text(asked.markdown, sweep_markdown(sweep))
    if asked.as_json:
        write_json(sweep_document(sweep))
    else:
        print_sweep(sweep)


def print_sweep(result: Sweep) -> None:
    """Print the best points, the knees, and a row a point."""
    for line in (*sweep_lines(result), ""):
        write(line)
    write_table(sweep_table(result))


def print_tuning(result: TuneResult) -> None:
    """Print the candidates, the verdict and the explanation."""
    write_table(tune_table(result))
    for line in ("", *result_lines(result)):
        write(line)


def print_report(path: Path, *, as_json: bool = False, printed: Printed | None = None) -> None:
    """Print a report as text or JSON.

    Raises:
        InputError: The file is not a report that can be read.
    """
    with _opened(path) as report:
        _print(report, None, as_json, printed or Printed())


def _opened(path: Path) -> Report:
    with ProgressReporter() as reporter:
        return open_report(path, reporter.bytes_read)


def _print(report: Report, by: str | None, as_json: bool, printed: Printed) -> None:
    if as_json:
        write_json(report_json(report, by))
        return
    for line in text_lines(report):
        write(line)
    write()
    if printed.notes:
        _write_notes(report)
    if by is None or by == "layer":
        _write_layers(report, printed)
    else:
        _write_groups(report, by)


def _write_notes(report: Report) -> None:
    figures = [f"input    {visible(text)}" for text in input_lines(report)]
    figures += [f"{figure.name:<8} {figure.text}" for figure in measured_figures(report)]
    for text in figures:
        write(text)
    if figures:
        write()
    for note in (notes := notes_of(report)):
        write(visible(note.text))
    if notes:
        write()
    steps = next_steps(report)
    if steps:
        write("Advice:")
        for step in steps:
            write(f"  {step.line}")
            for line in step_commands(report, step):
                write(f"    {line}")
        write()


def _write_layers(report: Report, printed: Printed) -> None:
    table = costliest_first(layer_table(report.layers, "report text", wording=report.wording))
    count = len(report.layers) if printed.all_layers else printed.top
    if count:
        write_table(replace(table, rows=table.rows[:count]))
    left = len(report.layers) - count
    more = [f"{fmt.plural(left, f'more {report.wording.row}')}: --all"] if left > 0 else []
    more += [] if printed.notes else ["all that was measured, and all advice: --notes"]
    if more:
        if count:
            write()
        write("   ".join(more))


def _write_groups(report: Report, by: str) -> None:
    groups = report.groups(by)
    write_table(group_table(groups, by, "text", report.layers))
    if any(group.estimate for group in groups):
        write(f"≈ {sharing_note(report.layers)}")
