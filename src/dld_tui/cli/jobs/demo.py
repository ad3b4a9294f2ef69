"""``dld demo``: profile a built-in model."""

from __future__ import annotations

from pathlib import Path

import click

from dld_tui.activities import registry as activities
from dld_tui.cli.command import Command
from dld_tui.cli.jobs.activity import run_activity
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.cli.reports.report import print_report
from dld_tui.cli.tui import has_terminal, open_paths
from dld_tui.core.document.samples import CLASSIFIER_NAME, TRANSFORMER_NAME, write_demo_models
from dld_tui.core.errors import SaveError
from dld_tui.core.files import permission
from dld_tui.core.process.paths import cache_dir, ensure
from dld_tui.core.text import visible

_SECONDS = 1.0
"""Enough to show a report; a real measurement takes longer."""


@click.command("demo", cls=Command)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Only write the built-in models, a classifier and a transformer, to this folder.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(output: Path | None, force: bool, as_json: bool) -> int | None:
    """Profile a built-in model with ONNX Runtime on the CPU and open its report.

    If standard output is not a terminal, print the report instead.
    """
    if output is not None:
        _write(output, force=force, as_json=as_json)
        return None
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


def _write(folder: Path, *, force: bool, as_json: bool) -> None:
    names = (CLASSIFIER_NAME, TRANSFORMER_NAME)
    permission.require_free([folder / name for name in names], force)
    paths = [str(path) for path in write_demo_models(folder)]
    if as_json:
        write_json({"models": paths})
    for path in () if as_json else paths:
        write(f"written to {visible(path)}")
