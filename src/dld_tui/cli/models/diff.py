"""``dld diff``: compare two models as text, JSON or for git."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from dld_tui.cli.command import command_for, json_flag
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.cli.tui import has_terminal, open_diff
from dld_tui.core import fmt
from dld_tui.core.compare.diff import ModelDiff, diff_documents
from dld_tui.core.compare.diff.text import Part, lines, summary
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, ExitStatus, InputError, UsageError
from dld_tui.core.events import Progress
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.params import param
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.text import visible

_COLOURS = {
    "added": "green",
    "removed": "red",
    "changed": "yellow",
    "renamed": "cyan",
    "moved": "cyan",
}
_BATCH = 1000
"""Lines per write: each write is flushed."""
_GIT_ARGUMENTS = (7, 9)
"""git passes two more for a renamed file."""
_NO_FILE = "/dev/null"
"""Path that git passes for a missing file."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld diff``."""

    models: tuple[str, ...] = param(
        label="Models", help="The models to compare.", positional=True, metavar="OLD NEW"
    )
    no_weights: bool = param(False, label="No weights", help="Ignore the values of initializers.")
    as_json: bool = json_flag()
    tui: bool = param(
        False, label="Tui",
        help="Show both models side by side in the user interface.",
    )  # fmt: skip
    git: bool = param(False, label="Git", help="Accept the arguments of a git diff driver.")
    textconv: bool = param(
        False, label="Textconv",
        help="Print one model as text, for git textconv.",
    )  # fmt: skip
    color: str = param(
        "auto", label="Color", choices=("auto", "always", "never"),
        help="Colour the output; auto: if it is a terminal.",
    )  # fmt: skip


@command_for("diff", Request)
def command(asked: Request) -> int:
    """Compare two models: nodes, attributes, types, weights.

    Matches nodes by name, then by structure. Exit status 1 if the models differ.
    """
    if sum((asked.as_json, asked.tui, asked.git, asked.textconv)) > 1:
        raise UsageError("choose one of --json, --tui, --git and --textconv")
    if asked.textconv:
        _only(asked.models, 1, "--textconv takes one model")
        return _print_text(Path(asked.models[0]), weights=not asked.no_weights)
    if asked.git:
        return _for_git(asked.models, weights=not asked.no_weights, color=asked.color)
    _only(asked.models, 2, "give two models: dld diff OLD NEW")
    old, new = Path(asked.models[0]), Path(asked.models[1])
    if asked.tui and has_terminal():
        return open_diff(old, new, weights=not asked.no_weights)
    with _compared(old, new, weights=not asked.no_weights) as diff:
        for note in diff.notes:
            narrate(f"{new}: warning: {note}")
        if asked.as_json:
            write_json(diff.to_json())
        else:
            print_diff(diff, asked.color)
            if diff.same:
                narrate(summary(diff))
        return _status(diff)


def _only(models: Sequence[str], count: int, message: str) -> None:
    if len(models) != count:
        raise UsageError(message)


def _status(diff: ModelDiff) -> int:
    if not diff.same:
        return int(ExitStatus.FOUND)
    if diff.notes:
        # Values that were not read must not count as equal.
        raise InputError(
            "nothing else differs, but not all could be compared",
            where=diff.new,
            hint="Add --no-weights to ignore weights",
        )
    return int(ExitStatus.DONE)


@contextmanager
def _compared(old: Path, new: Path, *, weights: bool) -> Iterator[ModelDiff]:
    """Compare two files, which stay open inside the block because the result refers to them."""
    first = open_document(old)
    try:
        second = open_document(new)
        try:
            with ProgressReporter() as reporter:

                def progress(done: int, total: int) -> None:
                    reporter.event(Progress(done, total, "bytes", "comparing weights"))

                diff = diff_documents(first, second, weights=weights, progress=progress)
            yield diff
        finally:
            second.close()
    finally:
        first.close()


def print_diff(diff: ModelDiff, color: str = "auto") -> None:
    """Print the differences; `color` is as in the command."""
    coloured = color == "always" or (
        color == "auto" and is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
    )
    batch: list[str] = []
    for line in lines(diff):
        text = _coloured(line) if coloured else "".join(text for text, _ in line)
        batch.append(text.rstrip())
        if len(batch) == _BATCH:
            click.echo("\n".join(batch), color=coloured)
            batch.clear()
    if batch:
        click.echo("\n".join(batch), color=coloured)


def _coloured(line: list[Part]) -> str:
    return "".join(
        click.style(text, bold=True)
        if style == "head"
        else click.style(text, fg=_COLOURS[style])
        if style in _COLOURS
        else text
        for text, style in line
    )


def _print_text(path: Path, *, weights: bool) -> int:
    from dld_tui.core.compare.diff.text import model_lines

    document = open_document(path)
    try:
        for line in model_lines(document, weights=weights):
            write(line)
    finally:
        document.close()
    return int(ExitStatus.DONE)


def _for_git(arguments: Sequence[str], *, weights: bool, color: str) -> int:
    """Print for ``git diff``, which stops if its driver fails."""
    if len(arguments) == 1:
        write(f"* unmerged {visible(arguments[0])}")
        return int(ExitStatus.DONE)
    if len(arguments) not in _GIT_ARGUMENTS:
        raise UsageError(
            "--git takes the arguments of a diff driver:"
            " path old-file old-hex old-mode new-file new-hex new-mode"
        )
    path, old, new = arguments[0], arguments[1], arguments[4]
    write(f"dld diff {visible(path)}")
    try:
        if _NO_FILE in (old, new):
            status, mark = ("new", "+") if old == _NO_FILE else ("deleted", "-")
            write(f"{mark} {status} model: {_outline(Path(new if old == _NO_FILE else old))}")
            return int(ExitStatus.DONE)
        with _compared(Path(old), Path(new), weights=weights) as diff:
            other = arguments[7] if len(arguments) > 7 else path
            diff.old, diff.new = f"a/{path}", f"b/{other}"
            print_diff(diff, color)
            for note in diff.notes:
                write(f"! {visible(note)}")
            if diff.same:
                write(summary(diff))
    except CancelledError:
        raise
    except DldError as error:
        write(f"! cannot be compared: {visible(str(error))}")
    return int(ExitStatus.DONE)


def _outline(path: Path) -> str:
    document = open_document(path)
    try:
        summary = summarise(document, constants=False)
    finally:
        document.close()
    return (
        f"{fmt.count(summary.nodes_total)} nodes, {fmt.count(summary.initializers)} initializers,"
        f" {summary.weights_text} of weights"
    )
