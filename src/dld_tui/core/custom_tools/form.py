"""A tool as a person writes it: the one declaration of the command line and of the form."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dld_tui.core import fmt
from dld_tui.core.custom_tools.model import DEFAULT_LIMIT_S, MOST_LIMIT_S, Tool, validate
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import COUNT
from dld_tui.core.types import JSON

_PLAIN = re.compile(r"[\w@%+=:,./${}-]+", re.ASCII)


@dataclass(frozen=True)
class ToolForm:
    """The settings of a tool, as text where that is what one types."""

    name: str = param(label="Name", help="How the tool is called.", positional=True)
    application: str = param(
        label="Application",
        help="The program: a name that is found on the PATH, or an absolute path.",
        positional=True,
    )
    arguments: str = param(
        "$Model",
        label="Arguments",
        help="$Model is the model's file, $Output the file to write, $Folder the model's folder,"
        " $$ a dollar. Quotes keep blanks together; no shell reads it.",
        spellings=("--arguments",),
        metavar="TEXT",
    )
    output: str = param(
        "",
        label="Output suffix",
        help="When it writes a file to $Output: its suffix, such as .onnx.",
        spellings=("--output",),
        metavar="SUFFIX",
    )
    ask: bool = param(
        True,
        label="Ask for a name",
        help="Ask for the name of the output; else it is MODEL-TOOL with the suffix, and a number"
        " where that is taken.",
        spellings=("--ask",),
    )
    open: bool = param(
        False,
        label="Open output",
        help="Open the output when the tool has ended.",
        spellings=("--open",),
    )
    folder: str = param(
        "",
        label="Working folder",
        help="Where it runs; empty is the folder of the model.",
        spellings=("--folder",),
        metavar="DIR",
        empty="the folder of the model",
    )
    limit: int = param(
        DEFAULT_LIMIT_S,
        label="Time limit",
        help="It is stopped after so many seconds; 0 lets it run.",
        unit="s",
        minimum=0,
        maximum=MOST_LIMIT_S,
        spellings=("--limit",),
        metavar="SECONDS",
    )


def tool_of(form: ToolForm) -> Tool:
    """Return the tool that a form describes.

    Raises:
        UsageError: A field cannot be used.
    """
    try:
        arguments = tuple(shlex.split(form.arguments))
    except ValueError as error:
        raise UsageError(f"the arguments {form.arguments!r}: {error}") from None
    application, folder = form.application.strip(), form.folder.strip()
    output = form.output.strip()
    return validate(
        Tool(
            form.name.strip(), application, arguments, output, form.open, folder, form.limit,
            form.ask,
        )
    )  # fmt: skip


def form_values(tool: Tool) -> Mapping[str, JSON]:
    """Return the values of the form of a tool, as JSON data."""
    return {
        "name": tool.name,
        "application": tool.application,
        "arguments": line_of(tool.arguments),
        "output": tool.output,
        "ask": tool.ask,
        "open": tool.open,
        "folder": tool.folder,
        "limit": tool.limit,
    }


def line_of(arguments: Sequence[str]) -> str:
    """Return arguments as one line, quoted only where that is needed."""
    return " ".join(
        argument if _PLAIN.fullmatch(argument) else shlex.quote(argument) for argument in arguments
    )


def lines_about(tool: Tool) -> list[tuple[str, str]]:
    """Return label and text of what a tool is; the text is foreign."""
    output = tool.output if tool.ask or not tool.output else f"{tool.output}, without asking"
    output = f"{output}, opened" if tool.open else output
    return [
        ("Application", tool.application),
        *(("Argument", argument) for argument in tool.arguments),
        ("Output", output or "none"),
        ("Working folder", tool.folder or "the folder of the model"),
        ("Time limit", fmt.duration(tool.limit) if tool.limit else "none"),
    ]


def tool_table(tools: Sequence[Tool]) -> Table[Tool]:
    """Return the tools as a table."""
    return Table(
        (
            Column("name", "name", lambda tool: tool.name, width=20, style="strong"),
            Column("application", "application", lambda tool: tool.application, width=20,
                   priority=1),
            Column("arguments", "arguments", lambda tool: line_of(tool.arguments), least=20,
                   style="dim"),
            Column("output", "output", lambda tool: tool.output, width=8, priority=2),
            Column("limit_s", "limit", lambda tool: tool.limit or None, COUNT, 9, priority=3,
                   text=lambda tool: f"{tool.limit:,} s" if tool.limit else "–"),
        ),
        tools,
        row_key=lambda tool: tool.name,
    )  # fmt: skip
