"""``dld tactics``: the tactics of TensorRT that make a model's results wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dld_tui.activities.isolate_tactic_request import Request
from dld_tui.cli.jobs.activity import RewritingCommand, run_activity
from dld_tui.cli.names import PLACE
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate, require_free, write, write_json, write_table
from dld_tui.core.accuracy.tactics import (
    TacticReport,
    avoiding_command,
    counts_text,
    tactic_table,
    verdict_text,
)
from dld_tui.core.errors import ExitStatus
from dld_tui.core.tensorrt.arguments import plain_arguments
from dld_tui.core.text import visible

_HELP = """\
Find the TensorRT tactics (kernels) that make a model's results wrong.

Builds the model several times and compares each engine with ONNX Runtime. When one is wrong and
another is right, it narrows down the layers in which they differ, by builds whose tactics are all
chosen, until each tactic that is left makes the result wrong by itself. Then it writes the file
with which dld build takes others. It takes the options of dld build. Ctrl+C stops it, and the same
command goes on from there. Exit status 1 when a result was wrong.
"""


def callback(target: str | None, force: bool, as_json: bool, **values: Any) -> int:
    """Run the command."""
    request: Request = request_from(Request, values)
    if not request.estimate_only:
        for output in (request.avoid_path, request.output):
            if output is not None:
                require_free(output, force)
    result = run_activity("isolate_tactic", request, target)
    if as_json:
        write_json(result)
    else:
        show_tactics(result, request.model)
    return ExitStatus.FOUND if result.bad else ExitStatus.DONE


def show_tactics(data: TacticReport, model: Path) -> None:
    """Print what a search found, for people."""
    write(verdict_text(data))
    if data.verdict is None:
        return
    if data.problem:
        write(f"The wrong result: {visible(data.problem)}")
    if data.culprits:
        write_table(tactic_table(data))
    elif data.suspects:
        write("Tactics of wrong builds that no right one has:")
        write_table(tactic_table(data).pick(("layer", "tactic")))
    write(visible(counts_text(data)))
    for remark in data.remarks:
        narrate(remark)
    if command := avoiding_command(data, model):
        write(f"Build without: {visible(command)}")


command = RewritingCommand(
    "tactics",
    plain_arguments,
    callback=callback,
    params=[
        *parameters_of(Request),
        click.Option(["--target"], metavar="NAME", type=PLACE, help="Run there instead of here."),
        click.Option(["--force"], is_flag=True, help="Overwrite an existing output."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
    ],
    help=_HELP,
)
