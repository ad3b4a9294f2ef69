"""Tools of the user: a program, and the arguments it gets for a model.

Arguments are a list from the settings file to the program: no shell ever reads them. In each of
them ``$Model``, ``$Output`` and ``$Folder`` are replaced once, so that a file name that holds such
text is only a file name. The paths put in are absolute, so none can be taken for an option.

Saved ones are tables ``[tools.NAME]`` of ``config.toml``, whose comments stay.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.params import param
from dld_tui.core.process import paths
from dld_tui.core.process.plugins import plugins, skip
from dld_tui.core.settings import toml_files
from dld_tui.core.tables.table import COUNT, Column, Table
from dld_tui.core.types import JSON

PLACES = ("Model", "Output", "Folder")
"""What may stand after a dollar."""
DEFAULT_LIMIT_S = 600
MOST_LIMIT_S = 7 * 24 * 3600

_PLACE = re.compile(r"\$(?:(\$)|\{(\w*)\}|(\w+))?", re.ASCII)
_SUFFIX = re.compile(r"\.[\w.+-]{1,30}", re.ASCII)
_LONGEST_NAME = 40
_TYPES: dict[str, type] = {
    "application": str, "arguments": list, "output": str, "open": bool, "folder": str,
    "limit": int, "ask": bool,
}  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """One tool."""

    name: str
    application: str
    """A name that is found on the PATH, or an absolute path; ``~`` is the home folder."""
    arguments: tuple[str, ...] = ("$Model",)
    output: str = ""
    """The suffix of the file it writes, such as ``.onnx``; empty when it writes none."""
    open: bool = False
    """Whether its output is opened when it has ended."""
    folder: str = ""
    """The folder it runs in; empty is the folder of the model."""
    limit: int = DEFAULT_LIMIT_S
    """The seconds after which it is stopped; 0 lets it run."""
    ask: bool = True
    """Whether to ask for the name of its output; else it is derived from that of the model."""


def problems(tool: Tool) -> list[str]:
    """Return the problems of a tool, one line each."""
    faults = [*_name_problems(tool.name)]
    texts = (tool.application, tool.folder, *tool.arguments)
    if not tool.application.strip():
        faults.append("it has no application")
    elif "/" in tool.application and tool.application[0] not in "/~":
        faults.append(
            f"the application {tool.application!r} is neither a name nor an absolute path"
        )
    if any("\0" in text for text in texts):
        faults.append("one of its texts contains a NUL character")
    used = _used(tool.arguments, faults)
    if (rest := _used([tool.folder], faults) - {"Folder"}) & set(PLACES):
        faults.append(f"the folder may hold $Folder, not ${min(rest)}")
    if tool.output and not _SUFFIX.fullmatch(tool.output):
        faults.append(f"the output {tool.output!r} is not a suffix such as .onnx")
    if "Output" in used and not tool.output:
        faults.append("$Output is used: give the suffix of the output, such as .onnx")
    if tool.output and "Output" not in used:
        faults.append("it has an output, and no argument holds $Output")
    if tool.open and not tool.output:
        faults.append("it has no output to open")
    if not 0 <= tool.limit <= MOST_LIMIT_S:
        faults.append(f"the time limit {tool.limit} is not between 0 and {MOST_LIMIT_S} s")
    return faults


def validate(tool: Tool) -> Tool:
    """Return the tool.

    Raises:
        UsageError: A field of it cannot be used.
    """
    for problem in problems(tool):
        raise UsageError(problem, where=f"tool {tool.name!r}")
    return tool


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return an argument with its placeholders replaced; inserted text is not replaced again.

    Raises:
        UsageError: It names something that is not in `values`.
    """

    def value(match: re.Match[str]) -> str:
        dollar, *names = match.groups()
        name = next((group for group in names if group is not None), None)
        if not dollar and (name is None or name not in values):
            raise UsageError(_unknown(name), where=repr(text))
        return "$" if dollar else values[str(name)]

    return _PLACE.sub(value, text)


def arguments_for(tool: Tool, model: str, output: str, folder: str) -> list[str]:
    """Return the arguments for a model; all three are absolute paths, `output` may be empty.

    Raises:
        UsageError: An argument names an unknown placeholder.
    """
    values = {"Model": model, "Folder": folder} | ({"Output": output} if output else {})
    return [filled(argument, values) for argument in tool.arguments]


def output_beside(tool: Tool, model: Path) -> Path:
    """Return the default output of a tool, such as ``model-simplify.onnx`` beside the model."""
    stem = "".join(char if char.isalnum() else "-" for char in tool.name)
    return model.with_name(f"{model.stem}-{stem}{tool.output}")


def tool_from(name: str, table: Any) -> Tool:
    """Return the tool of a table of the settings file.

    Raises:
        UsageError: Something in it is unknown, of a wrong type, or cannot be used.
    """
    where = f"tool {name!r}"
    values = toml_files.typed_values(table, _TYPES, partial(UsageError, where=where))
    arguments = values.pop("arguments", list(Tool.arguments))
    if not all(isinstance(argument, str) for argument in arguments):
        raise UsageError("arguments holds text only", where=where)
    values.setdefault("application", "")
    return validate(Tool(name, arguments=tuple(arguments), **values))


def table_of(tool: Tool) -> dict[str, Any]:
    """Return a tool for the settings file: the fields that differ from the defaults."""
    values: dict[str, Any] = {"application": tool.application, "arguments": list(tool.arguments)}
    for key in ("output", "open", "folder", "limit", "ask"):
        if getattr(tool, key) != getattr(Tool, key):
            values[key] = getattr(tool, key)
    return values


def tools_of(tables: Any, wrong: list[str]) -> dict[str, Tool]:
    """Return the tools of the settings by name; `wrong` receives the problems of invalid ones."""
    if not isinstance(tables, Mapping):
        wrong.append("tools: expected a table of tools")
        return {}
    tools: dict[str, Tool] = {}
    for name, table in tables.items():
        try:
            tools[str(name)] = tool_from(str(name), table)
        except UsageError as error:
            wrong.append(str(error))
    return tools


def added_tools() -> dict[str, Tool]:
    """Return the tools that other packages add, as entry points of ``dld_tui.tools``, by name."""
    tools = {}
    for plugin in plugins("tools", Tool):
        if wrong := problems(plugin.value):
            skip("tools", plugin, "; ".join(wrong))
        else:
            tools[plugin.value.name] = plugin.value
    return tools


def _name_problems(name: str) -> list[str]:
    if not name.strip() or name != name.strip():
        return ["a tool needs a name, without blanks around it"]
    if not name.isprintable() or name.startswith("-"):
        return [f"the name {name!r} begins with a dash or holds a control character"]
    if len(name) > _LONGEST_NAME:
        return [f"the name has more than {_LONGEST_NAME} characters"]
    return []


def _used(texts: Sequence[str], faults: list[str]) -> set[str]:
    """Return the names after dollars; `faults` receives the unknown ones."""
    used = set()
    for text in texts:
        for match in _PLACE.finditer(text):
            dollar, *names = match.groups()
            name = next((group for group in names if group is not None), None)
            if dollar:
                continue
            if name not in PLACES:
                faults.append(f"{text!r}: {_unknown(name)}")
            else:
                used.add(str(name))
    return used


def _unknown(name: str | None) -> str:
    known = ", ".join(f"${place}" for place in PLACES)
    fault = f"unknown variable ${name}" if name else "a dollar sign has no name"
    return f"{fault}; there are {known}, and $$ for a dollar sign"


_PLAIN = re.compile(r"[\w@%+=:,./${}-]+", re.ASCII)


@dataclass(frozen=True)
class ToolForm:
    """The settings of a tool, as text where that is what one types."""

    name: str = param(label="Name", help="Name of the tool.", positional=True)
    application: str = param(
        label="Application",
        help="The program: a name on the PATH, or an absolute path.",
        positional=True,
    )
    arguments: str = param(
        "$Model",
        label="Arguments",
        help=(
            "$Model is the model file, $Output the output file, $Folder the model's folder, $$ "
            "a dollar sign. Quotes group words; no shell is involved."
        ),
        spellings=("--arguments",),
        metavar="TEXT",
    )
    output: str = param(
        "",
        label="Output suffix",
        help="Suffix of $Output, such as .onnx, if the tool writes a file.",
        spellings=("--output",),
        metavar="SUFFIX",
    )
    ask: bool = param(
        True,
        label="Ask for a name",
        help=(
            "Ask for the name of the output. Otherwise it is MODEL-TOOL with the suffix, "
            "numbered if that file exists."
        ),
        spellings=("--ask",),
    )
    open: bool = param(
        False,
        label="Open output",
        help="Open the output when the tool ends.",
        spellings=("--open",),
    )
    folder: str = param(
        "",
        label="Working folder",
        help="Working folder. If empty, the folder of the model.",
        spellings=("--folder",),
        metavar="DIR",
        empty="the folder of the model",
    )
    limit: int = param(
        DEFAULT_LIMIT_S,
        label="Time limit",
        help="Time limit in seconds; 0 means no limit.",
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
    """Return label and text of the settings of a tool; the text is foreign."""
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


_TABLE = "tools"


def load(path: Path | None = None) -> dict[str, Tool]:
    """Return the tools by name: those of other packages, then the saved ones of the file.

    Raises:
        InputError: The file is not valid TOML, or a tool in it cannot be used.
    """
    source = paths.config_path() if path is None else path
    tables = toml_files.read_document(source).unwrap().get(_TABLE, {})
    wrong: list[str] = []
    tools = tools_of(tables, wrong)
    if wrong:
        raise InputError(wrong[0], where=str(source), hint="Correct it by hand")
    return added_tools() | tools


def find(name: str, path: Path | None = None) -> Tool:
    """Return a saved tool.

    Raises:
        UsageError: No tool has this name.
        InputError: As :func:`load`.
    """
    known = load(path)
    if name not in known:
        hint = f"Known tools: {', '.join(known)}" if known else "Add one with dld tool add"
        raise UsageError(f"unknown tool {name!r}", hint=hint)
    return known[name]


def save(tool: Tool, path: Path | None = None, *, instead_of: str = "") -> None:
    """Add a tool, or replace the one of the same name.

    Args:
        path: The settings file; the user's when None.
        instead_of: Its previous name.

    Raises:
        UsageError: A field is invalid.
        InputError: The existing file is not valid TOML, or ``tools`` in it is no table.
        SaveError: The file cannot be written; the old one is intact.
    """
    validate(tool)
    target = paths.config_path() if path is None else path
    document = toml_files.read_document(target)
    tables = _tables(document, target)
    if instead_of and instead_of != tool.name:
        tables.pop(instead_of, None)
    toml_files.put_table(tables, tool.name, table_of(tool))
    toml_files.write_document(target, document)


def remove(name: str, path: Path | None = None) -> None:
    """Delete a tool.

    Raises:
        UsageError: No tool has this name.
        InputError: The file is not valid TOML.
        SaveError: The file cannot be written.
    """
    target = paths.config_path() if path is None else path
    document = toml_files.read_document(target)
    tables = _tables(document, target)
    if name not in tables:
        raise UsageError(f"unknown tool {name!r}")
    del tables[name]
    toml_files.write_document(target, document)


def _tables(document: Any, path: Path) -> Any:
    import tomlkit

    if _TABLE not in document:
        document[_TABLE] = tomlkit.table(is_super_table=True)
    tables = document[_TABLE]
    if not isinstance(tables, dict):
        raise InputError("tools: expected a table of tools", where=str(path))
    return tables
