"""Run a user's tool on a model: its output, and the file it writes.

``$Output`` names a file in an empty folder beside the requested one: the files of the tool are
moved after success, so that a failing tool replaces nothing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, InputError, SaveError, UsageError
from dld_tui.core.events import Event, Finished, Log
from dld_tui.core.files import permission
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.files.writer import put_in_place
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import companion_files, param, settings_of
from dld_tui.core.settings.custom_tools import (
    DEFAULT_LIMIT_S,
    Tool,
    arguments_for,
    filled,
    validate,
)

if TYPE_CHECKING:
    from dld_tui.backends.processes import ProgramEnd


@dataclass(frozen=True)
class Request:
    """Which tool, on which model."""

    name: str = param(label="Name", help="The tool's name.")
    application: str = param(label="Application", help="The program.")
    model: Path = param(label="Model", help="The input file.", kind="file")
    arguments: tuple[str, ...] = param((), label="Arguments", help="Arguments of the program.")
    suffix: str = param("", label="Suffix", help="Suffix of the output file.")
    output: Path | None = param(
        None, label="Output", help="The file to write.", kind="output",
        spellings=("-o", "--output"), beside=("{name}.data",),
    )  # fmt: skip
    folder: str = param("", label="Folder", help="Working folder.")
    model_folder: Path | None = param(
        None, label="Model folder", help="Value of $Folder; by default the folder of the model."
    )
    limit: int = param(DEFAULT_LIMIT_S, label="Time limit", help="Time limit.", unit="s")


@dataclass(frozen=True)
class Result:
    """What the tool did. Fields may be added, never renamed."""

    tool: str
    output: Path | None
    files: list[Path]
    """All files that it wrote."""
    seconds: float
    lines: int
    """The number of printed lines."""
    left_out: int
    """Of these, those that are not in the log."""


def request_for(tool: Tool, model: Path, output: Path | None, **more: object) -> Request:
    """Return the request of a tool on a model."""
    values = {
        "arguments": tool.arguments, "suffix": tool.output, "folder": tool.folder,
        "limit": tool.limit,
    }  # fmt: skip
    return Request(tool.name, tool.application, model, output=output, **values | more)  # type: ignore[arg-type]


def files_beside(output: Path) -> list[Path]:
    """Return what may be replaced with an output: the file of its weights."""
    about = next(s.param for s in settings_of(Request) if s.name == "output")
    return companion_files(about, output)


def run(request: Request) -> Iterator[Event]:
    """Run the tool.

    Raises:
        UsageError: The tool and the paths do not match.
        InputError: The model does not exist.
        UnavailableError: The program does not exist.
        ActivityError: The tool failed, crashed, or exceeded its time limit.
        SaveError: Its files cannot be moved.
    """
    tool = validate(
        Tool(
            request.name,
            request.application,
            tuple(request.arguments),
            request.suffix,
            folder=request.folder,
            limit=request.limit,
        )
    )
    model = Path(os.path.abspath(request.model))
    if not model.is_file():
        raise InputError("the file does not exist", where=str(model))
    if not tool.output:
        if request.output is not None:
            raise UsageError("this tool writes no output", where=f"tool {tool.name!r}")
        yield from _run(tool, request, model, None)
        return
    output = _output_of(tool, request, model)
    try:
        staging = hold_folder("tool", output.parent)
    except OSError as error:
        raise SaveError(f"cannot be written: {error.strerror}", where=str(output)) from None
    try:
        yield from _run(tool, request, model, output, staging)
    finally:
        discard(staging)


def _output_of(tool: Tool, request: Request, model: Path) -> Path:
    where = f"tool {tool.name!r}"
    if request.output is None:
        raise UsageError("this tool writes an output", where=where, hint="Give its path with -o")
    output = Path(os.path.abspath(request.output))
    if os.path.lexists(output):
        if os.path.realpath(output) == os.path.realpath(model):
            raise UsageError("the output is the model itself", where=str(output))
        if output.is_dir() or not permission.may_replace(output):
            raise UsageError("the output already exists", where=str(output))
    return output


def _run(
    tool: Tool, request: Request, model: Path, output: Path | None, staging: Path = Path()
) -> Iterator[Event]:
    from dld_tui.backends.processes import find_program, run_program
    from dld_tui.core.files.model_set import binary_file

    home = str(Path(os.path.abspath(request.model_folder or model.parent)))
    written = staging / output.name if output is not None else None
    folder = Path(os.path.expanduser(filled(tool.folder, {"Folder": home}) or home))
    if not folder.is_absolute() or not folder.is_dir():
        raise UsageError("the working folder does not exist or is not absolute", where=str(folder))
    with binary_file(model) as file:
        arguments = arguments_for(tool, str(file), str(written or ""), home)
        command = [find_program(tool.application), *arguments]
        yield Log(f"$ {shlex.join(command)}", NoteKind.DEBUG)
        end = yield from run_program(command, folder, tool.limit)
    _judge(tool, end)
    files: list[Path] = []
    if output is not None:
        files, remarks = _publish(tool, staging, output)
        yield from (Log(remark, NoteKind.WARNING) for remark in remarks)
    seconds = round(end.seconds, 3)
    yield Finished(Result(tool.name, output, files, seconds, end.lines, end.left_out))


def _judge(tool: Tool, end: ProgramEnd) -> None:
    where = f"tool {tool.name!r}"
    if end.timed_out:
        limit = fmt.duration(tool.limit)
        hint = "Raise its time limit in its settings if it needs longer"
        raise ActivityError(f"stopped after {limit}, its time limit", where=where, hint=hint)
    if end.crashed:
        raise ActivityError(f"the program was ended by {end.crashed}", where=where)
    if end.status:
        raise ActivityError(f"the program ended with exit status {end.status}", where=where)


def _publish(tool: Tool, staging: Path, output: Path) -> tuple[list[Path], list[str]]:
    """Move the files of the tool to the requested paths, the output last; return remarks, too."""
    staged = staging / output.name
    if staged.is_symlink() or not staged.is_file() or not staged.stat().st_size:
        raise ActivityError(
            "the program succeeded, but wrote nothing to $Output", where=f"tool {tool.name!r}"
        )
    side_files = sorted(path.name for path in staging.iterdir() if path.name != output.name)
    for name in side_files:
        path = output.parent / name
        if os.path.lexists(path) and (path.is_dir() or not permission.may_replace(path)):
            raise SaveError(
                "the tool also wrote this file, which already exists", where=str(path),
                hint="Move it away, or write the output to another folder",
            )  # fmt: skip
    remarks: list[str] = []
    try:
        for name in (*side_files, output.name):
            remarks += put_in_place(staging / name, output.parent / name)
    except OSError as error:
        raise SaveError(f"cannot be written: {error.strerror}", where=str(output)) from None
    return [output, *(output.parent / name for name in side_files)], remarks
