"""``dld demo``: profile a built-in model."""

from __future__ import annotations

import click

from dld_tui.activities import registry as activities
from dld_tui.cli.command import Command
from dld_tui.cli.jobs.activity import run_activity
from dld_tui.cli.output import narrate
from dld_tui.cli.reports.report import print_report
from dld_tui.cli.tui import has_terminal, open_paths
from dld_tui.core.document.samples import write_demo_models
from dld_tui.core.errors import SaveError
from dld_tui.core.files import permission
from dld_tui.core.settings.paths import cache_dir, ensure

_SECONDS = 1.0
"""Enough to show a report; a real measurement takes longer."""


@click.command("demo", cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON document.")
def command(as_json: bool) -> int | None:
    """Profile a built-in model with ONNX Runtime on the CPU and open its report.

    If standard output is not a terminal, print the report instead.
    """
    try:
        folder = ensure(cache_dir() / "demo")
    except OSError as error:
        raise SaveError(error.strerror or str(error), where=str(cache_dir())) from None
    model = write_demo_models(folder)[0]
    request = activities.load("profile_onnxruntime").request(
        model=model, output=model.with_suffix(".dldprof"), duration=_SECONDS
    )
    permission.agree([request.output])  # the program's own file
    if has_terminal():
        narrate(f"profiling {model}")
    report = run_activity("profile_onnxruntime", request).report
    if has_terminal() and not as_json:
        return open_paths([report])
    print_report(report, as_json=as_json)
    return None
