"""The class of all commands and how their help is written, and how one is made of a request."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from dld_tui.cli.options import parameters_of, request_from
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param, validate

if TYPE_CHECKING:
    from dld_tui.core.tables.writers import TableWriter

R = TypeVar("R")
_OPTION = re.compile(r"--?\w[\w-]*")
_NON_BREAKING_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class _HelpFormatter(click.HelpFormatter):
    """Help whose lines never end within the name of an option."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_without_breaks(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write two columns."""
        super().write_dl([(one, _without_breaks(two)) for one, two in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """Return what was written."""
        return super().getvalue().replace(_NON_BREAKING_HYPHEN, "-")


def _without_breaks(text: str) -> str:
    return _OPTION.sub(lambda option: option[0].replace("-", _NON_BREAKING_HYPHEN), text)


class Context(click.Context):
    """The context of all commands and groups."""

    formatter_class = _HelpFormatter


class Command(click.Command):
    """A command that refuses an option of one value that is given twice: the last would count."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: An option that has one value is there twice.
        """
        _, _, order = self.make_parser(ctx).parse_args([*args])
        for option, count in Counter(order).items():
            if not isinstance(option, click.Option) or option.multiple or option.count:
                continue
            if count > 1 and not option.is_flag:
                raise click.UsageError(f"{option.opts[0]} is given {count} times", ctx)
            sides = [next((one for one in side if one in args), "")
                     for side in (option.opts, option.secondary_opts)]  # fmt: skip
            if count > 1 and all(sides):
                raise click.UsageError(" and ".join(sides) + " exclude each other", ctx)
        return super().parse_args(ctx, args)


def command_for(
    name: str, request: type[R]
) -> Callable[[Callable[[R], int | None]], click.Command]:
    """Make a command of a function that takes a request: its fields are arguments and options.

    The request is checked by its declaration and by its method ``require``, if it has one.

    Args:
        name: The name of the command.
        request: A dataclass whose fields are made with :func:`~dld_tui.core.params.param`.
    """

    def made(function: Callable[[R], int | None]) -> click.Command:
        @functools.wraps(function)
        def run(**values: Any) -> int | None:
            asked = request_from(request, values)
            validate(asked)
            getattr(asked, "require", lambda: None)()
            return function(asked)

        return click.command(name, cls=Command, params=parameters_of(request))(run)

    return made


_JSON = "Print one JSON document."


def json_flag() -> Any:
    """Declare the field of a request that asks for JSON."""
    return param(False, label="JSON", help=_JSON, spellings=("--json",))


def json_option() -> click.Option:
    """Return the option of a command without a request of its own that asks for JSON."""
    return click.Option(["--json", "as_json"], is_flag=True, help=_JSON)


def force_option(help: str = "Overwrite an existing output.") -> click.Option:
    """Return the option of a command without a request of its own that lets it write over files."""
    return click.Option(["--force"], is_flag=True, help=help)


def force_flag(help: str = "Overwrite an existing file.") -> Any:
    """Declare the field of a request that lets files be written over."""
    return param(False, label="Overwrite", help=help, spellings=("--force",))


def output_file() -> Any:
    """Declare the field of a request that names the model to write, if one is written."""
    return param(
        None, label="Output", help="Write the model here.", spellings=("--output", "-o"),
        metavar="OUT", kind="output",
    )  # fmt: skip


def preview_flag() -> Any:
    """Declare the field of a request that asks for the changes only."""
    return param(False, label="Preview", help="Print the changes; write nothing.")


def written_file(output: Path | None, preview: bool) -> Path | None:
    """Return the model to write; None for a preview.

    Raises:
        UsageError: Neither is asked for.
    """
    if output is None and not preview:
        raise UsageError("OUT is missing", hint="Add -o OUT, or --preview")
    return None if preview else output


def also_written(option: str, what: str, metavar: str = "FILE") -> Any:
    """Declare the field of a request that names a file to write as well."""
    return param(
        None, label=what, help=f"Also write {what}.", spellings=(option,), metavar=metavar,
        kind="output",
    )  # fmt: skip


def with_writers(request: type[R], what: str, *, several: bool = False) -> type[R]:
    """Return a request with an option for each writer of tables that packages add.

    Args:
        request: A dataclass for :func:`command_for`.
        what: What is written.
        several: Leave out writers that hold one table.
    """
    from dld_tui.core.tables.writers import writers  # lazy: few commands have them

    own = {field.name for field in dataclasses.fields(cast("Any", request))}
    fields = [
        (name, Path | None, also_written(f"--{name}", f"{what} as {writer.title}"))
        for name, writer in writers().items()
        if (writer.several or not several) and name not in own
    ]
    return dataclasses.make_dataclass(
        request.__name__, fields, bases=(request,), frozen=True, kw_only=True
    )


def asked_writers(asked: object) -> dict[Path, TableWriter]:
    """Return the files that a request of :func:`with_writers` names, each with its writer."""
    from dld_tui.core.tables.writers import writers

    named = ((getattr(asked, name, None), writer) for name, writer in writers().items())
    return {path: writer for path, writer in named if path is not None}
