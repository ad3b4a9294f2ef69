"""``dld report``: a profile report as text, CSV or JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dld_tui.cli.command import Command
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.output import also_writes, narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.cost.sharing import sharing_note
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Progress
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.writer import write_text
from dld_tui.core.report.export import (
    groups_csv,
    layers_csv,
    report_json,
    write_html,
    write_parquet,
)
from dld_tui.core.report.first_lines import text_lines
from dld_tui.core.report.formats.chrome_trace import write_trace
from dld_tui.core.report.groups import GROUPINGS, has_gpu_times
from dld_tui.core.report.layer_table import costliest_first, group_table, layer_table
from dld_tui.core.report.measured_facts import input_lines, measured_facts
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.report.story import next_steps, step_commands
from dld_tui.core.report.triage import notes_of
from dld_tui.core.text import visible
from dld_tui.core.tune.result import TuneResult, result_lines, tune_table


@dataclass(frozen=True)
class Printed:
    """What of a report is printed below its first lines."""

    top: int = 20
    all_layers: bool = False
    notes: bool = False


def printing_options() -> list[click.Parameter]:
    """Return the options of `Printed`."""
    return [
        click.Option(
            ["--top"], type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
            help="Number of layers to print.",
        ),
        click.Option(["--all", "all_layers"], is_flag=True, help="Print all layers."),
        click.Option(
            ["--notes"], is_flag=True, help="Print everything that was measured, and all advice."
        ),
    ]  # fmt: skip


@click.command("report", cls=Command)
@click.argument("report", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(GROUPINGS), help="Group the time by this key.")
@also_writes("--csv", "the table as CSV")
@also_writes("--html", "one self-contained HTML page")
@also_writes("--trace", "all passes as a Chrome trace, for Perfetto")
@also_writes("--parquet", "the layers as Parquet (needs pyarrow)")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    report: Path,
    by: str | None,
    csv: Path | None,
    html: Path | None,
    trace: Path | None,
    parquet: Path | None,
    force: bool,
    as_json: bool,
    **printed: Any,
) -> None:
    """Print a profile report: the answer in ten lines, then the slowest layers.

    REPORT is a .dldprof file, a profile of ONNX Runtime, layer times or inference times of trtexec
    (--exportProfile, --exportTimes), a Chrome trace, or a SQLite export of Nsight Systems.
    """
    require_free((csv, html, trace, parquet), force)
    with _opened(report) as opened:
        if csv is not None:
            text = groups_csv(opened.groups(by)) if by else layers_csv(opened.layers)
            write_text(csv, text)
        _export(opened, html, trace, parquet)
        _print(opened, by, as_json, Printed(**printed))


command.params += printing_options()


def _export(report: Report, html: Path | None, trace: Path | None, parquet: Path | None) -> None:
    remarks: list[str] = []
    if html is not None:
        remarks += write_html(report, html)
    if trace is not None:
        with ProgressReporter() as reporter:
            remarks += write_trace(
                report,
                trace,
                progress=lambda done, total: reporter.event(
                    Progress(done, total, "passes", "writing the trace")
                ),
            )
    if parquet is not None:
        remarks += write_parquet(report, parquet)
    for remark in remarks:
        narrate(remark)


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
    for text in input_lines(report):
        write(f"input    {visible(text)}")
    for fact in measured_facts(report):
        write(f"{fact.name:<8} {fact.text}")
    write()
    for note in notes_of(report):
        write(visible(note.text))
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
        write()
        write("   ".join(more))


def _write_groups(report: Report, by: str) -> None:
    groups = report.groups(by)
    write_table(group_table(groups, by, "text", on_gpu=has_gpu_times(report.layers)))
    if any(group.estimate for group in groups):
        write(f"≈ {sharing_note(report.layers)}")
