"""``dld report``: a profile report as text, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.cost.sharing import sharing_note
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
from dld_tui.core.report.formats.chrome_trace import write_trace
from dld_tui.core.report.groups import GROUPINGS, has_gpu_times
from dld_tui.core.report.layer_table import costliest_first, group_table, layer_table
from dld_tui.core.report.measured_facts import input_lines, measured_facts
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.report.story import next_steps, step_command, trial_command
from dld_tui.core.report.triage import triage
from dld_tui.core.text import visible
from dld_tui.core.tune.result import TuneResult, result_lines, tune_table


@click.command("report")
@click.argument("report", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(GROUPINGS), help="Group the time by this key.")
@click.option(
    "--csv", metavar="FILE", type=click.Path(path_type=Path), help="Also write the table as CSV."
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write one self-contained HTML page.",
)
@click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write all passes as a Chrome trace, for Perfetto.",
)
@click.option(
    "--parquet",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write the layers as Parquet (needs pyarrow).",
)
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
) -> None:
    """Print a profile report: latency, advice and the time of each layer.

    REPORT is a .dldprof file, a profile of ONNX Runtime, layer times or inference times of trtexec
    (--exportProfile, --exportTimes), a Chrome trace, or a SQLite export of Nsight Systems.
    """
    for path in (csv, html, trace, parquet):
        if path is not None:
            require_free([path], force)
    with _opened(report) as opened:
        if csv is not None:
            text = groups_csv(opened.groups(by)) if by else layers_csv(opened.layers)
            write_text(csv, text)
        _export(opened, html, trace, parquet, force)
        _print(opened, by, as_json)


def _export(
    report: Report, html: Path | None, trace: Path | None, parquet: Path | None, force: bool
) -> None:
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


def print_report(path: Path, *, as_json: bool = False, latency: str = "") -> None:
    """Print a report as text, with a line of latency figures above it, or as JSON.

    Raises:
        InputError: The file is not a report that can be read.
    """
    with _opened(path) as report:
        _print(report, None, as_json, latency)


def _opened(path: Path) -> Report:
    with ProgressReporter() as reporter:
        return open_report(path, reporter.bytes_read)


def _print(report: Report, by: str | None, as_json: bool, latency: str = "") -> None:
    if as_json:
        write_json(report_json(report, by))
        return
    for line in header_lines(report):
        write(visible(line))
    if latency:
        write(f"latency  {latency}")
    write()
    for line in triage(report):
        write(line)
    write()
    steps = next_steps(report)
    if steps:
        write("Advice:")
        for step in steps:
            write(f"  {step.line}")
            for line in dict.fromkeys((step_command(report, step), trial_command(report, step))):
                write(f"    {line}")
        write()
    if by is None or by == "layer":
        _write_layers(report)
    else:
        _write_groups(report, by)


def header_lines(report: Report) -> Iterator[str]:
    """Yield path, network, backend, device and inputs of a report. Untrusted text."""
    yield f"report   {report.path}"
    yield f"network  {report.network or fmt.UNKNOWN}"
    yield f"backend  {report.backend or fmt.UNKNOWN}, {report.execution_provider or fmt.UNKNOWN}"
    yield f"device   {report.device or fmt.UNKNOWN}"
    for line in input_lines(report):
        yield f"input    {line}"
    for fact in measured_facts(report):
        yield f"{fact.name:<8} {fact.text}"


def _write_layers(report: Report) -> None:
    table = layer_table(report.layers, "report text", wording=report.wording)
    write_table(costliest_first(table))


def _write_groups(report: Report, by: str) -> None:
    groups = report.groups(by)
    write_table(group_table(groups, by, "text", on_gpu=has_gpu_times(report.layers)))
    if any(group.estimate for group in groups):
        write(f"≈ {sharing_note(report.layers)}")
