"""``dld tool run``."""

from __future__ import annotations

from pathlib import Path

import click

from dld_tui.activities.run_tool import request_for
from dld_tui.cli.names import TOOL
from dld_tui.cli.output import narrate, require_free, write, write_json
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.model import output_beside
from dld_tui.core.events import Event, Log
from dld_tui.core.params import to_json
from dld_tui.core.paths import unused
from dld_tui.core.text import visible
from dld_tui.targets.process import LocalTarget


@click.command("run")
@click.argument("name", type=TOOL)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", metavar="OUT", type=click.Path(path_type=Path), help="The file to write."
)
@click.option("--force", is_flag=True, help="Overwrite an existing output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")
def command(name: str, model: Path, output: Path | None, force: bool, as_json: bool) -> None:
    """Run a tool on a model.

    What it prints goes to standard output. The output is put in its place only when the tool has
    ended well. Ctrl+C ends it and what it started.
    """
    tool = store.find(name)
    if output is None and tool.output and not tool.ask:
        output = unused(output_beside(tool, model))
    if output is not None:
        require_free(output, force)

    def heard(event: Event) -> None:
        if not isinstance(event, Log) or event.level == "debug":
            return
        if event.level == "info":
            if not as_json:
                write(visible(event.text))
        else:
            narrate(event.text)

    request = request_for(tool, model, output, replace=force)
    with LocalTarget().start("run_tool", to_json(request)) as job:
        result = job.result(heard)
    if as_json:
        write_json(result)
    elif output is not None:
        narrate(f"{name}: {output} written")
