"""``dld demo``: profile a built-in model."""

from __future__ import annotations

from pathlib import Path

from dld_tui.activities import registry as activities
from dld_tui.cli.command import command_for, force_flag, json_flag
from dld_tui.cli.jobs.activity import run_activity
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.cli.reports.report import print_report
from dld_tui.cli.tui import has_terminal, open_paths
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import SaveError
from dld_tui.core.files import permission
from dld_tui.core.model.document.samples import CLASSIFIER_NAME, TRANSFORMER_NAME, write_demo_models
from dld_tui.core.params import param
from dld_tui.core.process.paths import cache_dir, ensure
from dld_tui.core.text import visible

_SECONDS = 1.0
"""Enough to show a report; a real measurement takes longer."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld demo``."""

    output: Path | None = param(
        None, label="Output", spellings=("--output", "-o"), metavar="FOLDER", kind="output",
        help="Only write the built-in models, a classifier and a transformer, to this folder.",
    )  # fmt: skip
    force: bool = force_flag("Overwrite existing files.")
    as_json: bool = json_flag()


@command_for("demo", Request)
def command(asked: Request) -> int | None:
    """Profile a built-in model with ONNX Runtime on the CPU and open its report.

    If standard output is not a terminal, print the report instead.
    """
    if asked.output is not None:
        _write(asked.output, force=asked.force, as_json=asked.as_json)
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
    if has_terminal() and not asked.as_json:
        return open_paths([report])
    print_report(report, as_json=asked.as_json)
    return None


def _write(folder: Path, *, force: bool, as_json: bool) -> None:
    names = (CLASSIFIER_NAME, TRANSFORMER_NAME)
    permission.require_free([folder / name for name in names], force, makes_folder=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(error.strerror or str(error), where=str(folder)) from None
    paths = [str(path) for path in write_demo_models(folder)]
    if as_json:
        write_json({"models": paths})
    for path in () if as_json else paths:
        write(f"written to {visible(path)}")
