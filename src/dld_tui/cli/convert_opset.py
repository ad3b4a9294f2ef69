"""``dld convert opset``: a model with another version of the ai.onnx operators."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from dld_tui.activities.convert_opset import Request
from dld_tui.cli.activity import run_activity
from dld_tui.cli.names import PLACE
from dld_tui.cli.output import narrate, require_free, write, write_json
from dld_tui.core.document.conversion_text import conversion_lines
from dld_tui.core.errors import ExitStatus
from dld_tui.core.params import is_same_file, validate
from dld_tui.core.types import JSON


@click.command("opset")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="OUT", type=click.Path(path_type=Path))
@click.option("--to", "version", required=True, metavar="N", type=int, help="The ai.onnx version.")
@click.option("--in-place", is_flag=True, help="The output may be the model, which is replaced.")
@click.option("--target", metavar="NAME", type=PLACE, help="Run there instead of here.")
@click.option("--force", is_flag=True, help="Overwrite an existing output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path,
    output: Path,
    version: int,
    in_place: bool,
    target: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Convert a model to another version of the ai.onnx operators.

    By the version converter of onnx; weights are not loaded, and metadata, documentation and local
    functions are kept. Prints what changed. Exit status 1 when a part could not be converted.
    """
    request = Request(model, output, version, in_place=in_place)
    validate(request)
    require_free(output, force or (in_place and is_same_file(output, model)))
    result = run_activity("convert_opset", request, target)
    for remark in cast("list[JSON]", result["remarks"]):
        narrate(str(remark))
    if as_json:
        write_json(result)
    for line in () if as_json else conversion_lines(result):
        write(line)
    return ExitStatus.FOUND if result["notes"] else ExitStatus.DONE
