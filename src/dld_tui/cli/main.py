"""Entry point of ``dld``: help, errors and exit status of all commands.

What is imported here, is imported by ``dld --help``, which must be as quick as Python.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli import COMPLETE
from dld_tui.core.command_line import HELP_OPTIONS, are_paths, help_text
from dld_tui.core.errors import DldError, ExitStatus
from dld_tui.core.process.plugins import listen

_BROKEN_PIPE = 128 + 13
"""Exit status that a shell shows after SIGPIPE."""

if TYPE_CHECKING:
    import click


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit status; print errors as one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the locale may not be UTF-8
    as_json = "--json" in argv[: argv.index("--") if "--" in argv else None]
    if as_json:
        from dld_tui.cli.output import begin_command

        begin_command()
    silence = listen(_tell)
    try:
        status = _guarded(argv, as_json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, as `head` does
        _drop_output()
        return _BROKEN_PIPE
    except MemoryError:
        return _report(ExitStatus.FAILED, "there is not enough memory", as_json)
    except Exception as error:  # noqa: BLE001 - the last seam: a bug, told from a found problem (1)
        import traceback

        from dld_tui.core.files.source import input_error

        known = input_error(error, argv)
        if known is not None:
            return _report(known.status, str(known), as_json, known)
        if isinstance(error, OSError):
            if error.filename is None:
                _drop_output()
            where = error.filename or "standard output"
            text = f"{where}: {error.strerror or error}"
            return _report(ExitStatus.FAILED, text, as_json and error.filename is not None)

        traceback.print_exc()
        text = "this is a bug in dld; please report the lines above"
        return _report(ExitStatus.FAILED, text, as_json)
    finally:
        silence()
    return status


def _tell(line: str) -> None:
    """Print a line on standard error."""
    from dld_tui.core.text import visible

    if sys.stderr is not None:
        with suppress(OSError):  # the terminal may have gone
            print(f"dld: {visible(line)}", file=sys.stderr)  # noqa: T201 - the one place


def _drop_output() -> None:
    """Discard buffered output, so that it does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _guarded(argv: Sequence[str], as_json: bool) -> int:
    if argv and argv[0] in HELP_OPTIONS:
        sys.stdout.write(help_text())  # before click, which takes most of the time
        return 0
    try:
        if are_paths(argv) and not os.environ.get(COMPLETE):
            from dld_tui.cli.tui import open_paths

            return open_paths([Path(path) for path in argv]) or 0
        return _parsed(argv, as_json)
    except KeyboardInterrupt:
        return _report(ExitStatus.CANCELLED, f"cancelled: {_named(argv)}", as_json)
    except DldError as error:
        return _report(error.status, f"{error}{_kept(error.details)}", as_json, error)


def _parsed(argv: Sequence[str], as_json: bool) -> int:
    import click

    try:
        return _invoke(argv)
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx else "dld"
        message = " ".join(error.format_message().split())
        stop = "" if message.endswith((".", "?")) else "."
        example = _example(error.ctx) if error.ctx else ""
        shown = f" {example}." if example and not as_json else ""
        return _report(ExitStatus.USAGE, f"{message}{stop}{shown} See '{place} --help'", as_json)
    except click.ClickException as error:
        return _report(ExitStatus.INPUT, error.format_message(), as_json)


def _example(ctx: click.Context) -> str:
    """Return how a command is called: its example, else all that it needs."""
    import click

    if ctx.command.epilog or isinstance(ctx.command, click.Group):
        return ctx.command.epilog or ""
    words = [ctx.command_path]
    for needed in (parameter for parameter in ctx.command.params if parameter.required):
        flag = [needed.opts[0]] if isinstance(needed, click.Option) else []
        words += [*flag, needed.make_metavar(ctx)]
    return f"Example: {' '.join(words)}"


def _named(argv: Sequence[str]) -> str:
    """Return a command by its words before the first option, as ``dld inspect m.onnx``."""
    words = []
    for word in argv:
        if word.startswith("-"):
            break
        words.append(word)
    return " ".join(["dld", *words])


def _invoke(argv: Sequence[str]) -> int:
    from click.exceptions import Exit

    from dld_tui.cli.group import dld

    # Not `dld.main`: it would answer a broken pipe and Ctrl+C in its own way.
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import add_completion_class, shell_complete

        from dld_tui.cli.completion import TcshComplete

        add_completion_class(TcshComplete)
        return shell_complete(dld, {}, "dld", COMPLETE, instruction)
    try:
        with dld.make_context("dld", list(argv)) as context:
            return int(dld.invoke(context) or 0)
    except Exit as done:
        return done.exit_code


def _kept(details: str | None) -> str:
    """Write the details of an error to a file and return a text that names it."""
    if not details:
        return ""
    from dld_tui.core.files.writer import write_text
    from dld_tui.core.process.paths import ensure, short, state_dir

    try:
        path = ensure(state_dir()) / "last-error.txt"
        write_text(path, f"{details.rstrip()}\n", overwrite=True)
    except (OSError, DldError):
        return ""  # the line itself says what matters
    return f" (details: {short(path)})"


def _report(status: ExitStatus, message: str, as_json: bool, error: DldError | None = None) -> int:
    """Print an error on standard error, and as a JSON document if requested."""
    _tell(message)
    if as_json:
        from dld_tui.cli.output import has_written_json, write_json

        if not has_written_json():
            reported = error or DldError(message)
            write_json({
                "error": {
                    "message": reported.message,
                    "where": reported.where,
                    "hint": reported.hint,
                },
                "status": int(status),
            })  # fmt: skip
            sys.stdout.flush()
    return int(status)
