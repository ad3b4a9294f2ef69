"""``dld tool``: custom programs on models."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from dld_tui.activities.tool import request_for
from dld_tui.cli.command import Command, command_for, force_flag, force_option, json_flag
from dld_tui.cli.group import LazyGroup
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core.command_line import CommandInfo
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus, InputError, UsageError
from dld_tui.core.events import Event, Log
from dld_tui.core.files.permission import require_free
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import param, to_json, written_files
from dld_tui.core.process.paths import config_path, short, unused
from dld_tui.core.settings import custom_tools
from dld_tui.core.settings.custom_tools import (
    Tool,
    ToolForm,
    line_of,
    output_beside,
    tool_of,
    tool_table,
)
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.targets.process import LocalTarget

command = LazyGroup(
    (
        CommandInfo("list", "List the tools.", f"{__name__}:list_tools"),
        CommandInfo("add", "Save a tool.", f"{__name__}:add_tool"),
        CommandInfo("remove", "Forget tools.", f"{__name__}:remove_tools"),
        CommandInfo("run", "Run a tool on a model.", f"{__name__}:run_tool"),
    ),
    name="tool",
    help="Run your own programs on models.",
    no_args_is_help=False,
)


@dataclass(frozen=True)
class ListRequest:
    """The arguments and options of ``dld tool list``."""

    as_json: bool = json_flag()


@command_for("list", ListRequest)
def list_tools(asked: ListRequest) -> None:
    """List the tools."""
    tools = list(custom_tools.load().values())
    if asked.as_json:
        write_json({"tools": [_data(tool) for tool in tools]})
    elif tools:
        write_table(tool_table(tools))
    else:
        narrate("No tools yet. Add one with dld tool add NAME APPLICATION ARGUMENTS")


def _data(tool: Tool) -> JSON:
    return {
        "name": tool.name,
        "application": tool.application,
        "arguments": list(tool.arguments),
        "output": tool.output or None,
        "ask": tool.ask,
        "open": tool.open,
        "folder": tool.folder or None,
        "limit_s": tool.limit or None,
    }


_HELP = """Save a tool under a name, without running it.

In ARGUMENTS, $Model is the model file, $Output the output file, $Folder the model's folder, and $$
a dollar sign; quote them for your shell. The default of ARGUMENTS is $Model."""


def _add(arguments: tuple[str, ...], force: bool, **values: Any) -> None:
    line = line_of(arguments) if arguments else None  # as a person types it into the form
    tool = tool_of(request_from(ToolForm, {**values, "arguments": line}))
    if not force and tool.name in custom_tools.load():
        raise UsageError(f"tool {tool.name!r} already exists", hint="Add --force to replace it")
    custom_tools.save(tool)
    narrate(f"{tool.name}: saved in {short(config_path())}")


def _add_parameters() -> list[click.Parameter]:
    declared = [parameter for parameter in parameters_of(ToolForm) if parameter.name != "arguments"]
    arguments = click.Argument(
        ["arguments"], nargs=-1, metavar="[-- ARGUMENTS...]", type=click.UNPROCESSED
    )
    return [
        *(parameter for parameter in declared if isinstance(parameter, click.Argument)),
        arguments,
        *(parameter for parameter in declared if isinstance(parameter, click.Option)),
        force_option("Replace a tool of the same name."),
    ]


add_tool = Command("add", params=_add_parameters(), callback=_add, help=_HELP)


@dataclass(frozen=True)
class RemoveRequest:
    """The arguments and options of ``dld tool remove``."""

    names: tuple[str, ...] = param(
        label="Names", positional=True, metavar="NAME...", kind="tool",
        help="Their names.",
    )  # fmt: skip


@command_for("remove", RemoveRequest)
def remove_tools(asked: RemoveRequest) -> None:
    """Remove tools. The programs themselves stay."""
    for name in asked.names:
        custom_tools.find(name)  # nothing is removed when one of the names is wrong
    for name in dict.fromkeys(asked.names):
        custom_tools.remove(name)
        narrate(f"{name}: removed")


@dataclass(frozen=True)
class RunRequest:
    """The arguments and options of ``dld tool run``."""

    name: str = param(label="Name", help="Its name.", positional=True, kind="tool")
    model: Path = param(label="Model", help="The model.", positional=True)
    output: Path | None = param(
        None, label="Output", spellings=("--output", "-o"), metavar="OUT", kind="output",
        help="The file to write.",
    )  # fmt: skip
    force: bool = force_flag("Overwrite an existing output.")
    as_json: bool = json_flag()


@command_for("run", RunRequest)
def run_tool(asked: RunRequest) -> int:
    """Run a tool on a model.

    The tool's standard output is passed through. The output file is put in place only if the tool
    succeeds. Ctrl+C stops the tool and its child processes. Exit status 1 if it wrote a model that
    ONNX Runtime refuses unlike the original.
    """
    tool = custom_tools.find(asked.name)
    output = asked.output
    if output is None and tool.output and not tool.ask:
        output = unused(output_beside(tool, asked.model))
    request = request_for(tool, asked.model, output)
    require_free(written_files(request), asked.force)

    def heard(event: Event) -> None:
        if not isinstance(event, Log) or event.level is NoteKind.DEBUG:
            return
        if event.level is NoteKind.INFO:
            if not asked.as_json:
                write(visible(event.text))
        else:
            narrate(event.text)

    with LocalTarget().start("tool", to_json(request)) as job:
        result = job.result(heard)
    problem = _unsound(asked.model, output) if output is not None else ""
    if asked.as_json:
        write_json({**result, "unsound": problem or None})
    elif output is not None:
        narrate(f"{asked.name}: {output} written")
    return ExitStatus.FOUND if problem else ExitStatus.DONE


def _unsound(model: Path, output: Path) -> str:
    """Return why a tool made a model that is not valid of one that is; empty for other files."""
    from dld_tui.api.soundness import unsound
    from dld_tui.core.files.recognise import FileKind, recognise

    with contextlib.suppress(InputError):  # what a tool writes need not be a model
        kinds = {recognise(path) for path in (model, output)}
        return (
            unsound(model, output, narrate) if kinds <= {FileKind.ONNX, FileKind.ONNX_TEXT} else ""
        )
    return ""
