"""``dld build``: build a TensorRT engine, or translate trtexec commands."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dld_tui.activities.build import Request, Result
from dld_tui.cli.jobs.activity import RewritingCommand, run_activity, shared_options, target_option
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.errors import UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.params import from_json, settings_of, to_json, validate, written_files
from dld_tui.core.report.startup import STAGE_COLUMNS
from dld_tui.core.tables.table import NOTE, Column, Table
from dld_tui.core.tensorrt.capabilities import trtexec_version
from dld_tui.core.tensorrt.trtexec import explain, for_build, parse_command, print_command
from dld_tui.core.tensorrt.trtexec_arguments import plain_arguments
from dld_tui.core.text import visible

_HELP = """\
Build a TensorRT engine from a model.

Also writes NAME.trt.json (layer information, if the library can load the engine here),
NAME.build.json (build settings) and NAME.build.log. Accepts the options of trtexec and Polygraphy.
"""


def callback(
    explained: str | None,
    from_trtexec: str | None,
    print_trtexec: bool,
    trtexec: str | None,
    target: str | None,
    force: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Run the command."""
    if explained is not None:
        _explain(explained, trtexec or "11", as_json)
        return
    request = _request(values, from_trtexec)
    if print_trtexec:
        text = print_command(request, trtexec or trtexec_version(request.library))
        if as_json:
            write_json({"command": text, "settings": to_json(request)})
        else:
            write(visible(text))
        return
    require_free(written_files(request), force)
    result: Result = run_activity("build", request, target)
    if as_json:
        write_json(result)
    else:
        _show(result)
    if request.open_metadata and result.layer_info is not None:
        _open(result.layer_info)


def _request(values: dict[str, Any], command: str | None) -> Request:
    """Return the settings of a pasted command, overridden by the options."""
    if command is None:
        if values.get("model") is None:
            raise UsageError("MODEL is missing", hint="Write dld build MODEL -o ENGINE")
        given: Request = request_from(Request, values)
        validate(given)
        return given
    parsed = for_build(parse_command(command))
    for note in parsed.notes:
        narrate(f"note: {note}")
    model = values["model"]
    if model is None and "model" not in parsed.values:
        raise UsageError("the command names no model, and MODEL is missing")
    values["model"] = model or Path(str(parsed.values["model"]))
    named = {name for name, value in values.items() if value is not None and value != ()}
    base = from_json(Request, {**parsed.values, "model": str(values["model"])})
    given = request_from(Request, values)
    changed = {
        s.name: getattr(given, s.name)
        for s in settings_of(Request)
        if not s.param.positional and (s.name in named or getattr(given, s.name) != s.default)
    }
    request = replace(base, **changed)
    validate(request)
    return request


def _explain(command: str, version: str, as_json: bool) -> None:
    lines = explain(command, version)
    if as_json:
        write_json({"version": version, "options": lines})
        return
    write_table(
        Table(
            (
                Column("option", "option", lambda line: line.option),
                Column("status", "status", lambda line: line.status),
                Column("text", "what to do", lambda line: line.text, NOTE),
            ),
            lines,
        )
    )


def _show(result: Result) -> None:
    figures = f"{fmt.size(result.bytes)}, in {fmt.duration(result.seconds)}"
    write(f"{visible(str(result.engine))}: {figures}, with {visible(result.library)}")
    for title, path in (
        ("Layers", result.layer_info), ("Record", result.record), ("Log", result.log)
    ):  # fmt: skip
        if path is not None:
            write(f"{title}: {visible(str(path))}")
    if result.stages:
        write()
        write_table(Table(STAGE_COLUMNS, result.stages))
    for remark in result.remarks:
        narrate(remark)


def _open(path: Path) -> None:
    from dld_tui.cli.tui import has_terminal, open_paths

    if has_terminal():
        open_paths([path])


def _version(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"\d+(\.\d+)*", text):
        raise click.BadParameter(f"{text!r} is not a version, such as 10.13 or 11.")
    return text


def _parameters() -> list[click.Parameter]:
    parameters = parameters_of(Request)
    for parameter in parameters:
        if parameter.name == "model":
            parameter.required = False  # --explain and --from-trtexec do without
    return [
        *parameters,
        click.Option(
            ["--print-trtexec"],
            is_flag=True,
            help=(
                "Print the equivalent trtexec command and exit. Options without an equivalent "
                "are in a comment."
            ),
        ),
        click.Option(
            ["--from-trtexec"],
            metavar="COMMAND",
            help=(
                "Read settings from a trtexec or Polygraphy command; options given here "
                "override them."
            ),
        ),
        click.Option(
            ["--explain", "explained"],
            metavar="COMMAND",
            help="Explain the fate of each option of a trtexec command in version 11, and exit.",
        ),
        click.Option(
            ["--trtexec-version", "trtexec"],
            metavar="VERSION",
            callback=_version,
            help="trtexec version for --print-trtexec and --explain.",
        ),
        target_option(),
        *(option for option in shared_options() if option.name != "target"),
    ]


command = RewritingCommand(
    "build", plain_arguments, callback=callback, params=_parameters(), help=_HELP
)
