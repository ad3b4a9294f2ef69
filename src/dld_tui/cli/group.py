"""The click group ``dld``: commands of the table, and paths to open."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Abort, Exit

from dld_tui.cli.command import Command, Context
from dld_tui.core.command_line import (
    HELP_OPTIONS,
    OPEN,
    CommandInfo,
    commands,
    help_text,
    is_path,
)
from dld_tui.core.errors import ActivityError, DldError, UnavailableError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group over a table.

    Args:
        table: The commands, in the order of the help text.
        about: The other arguments of :class:`click.Group`.
    """

    context_class = Context

    def __init__(self, table: tuple[CommandInfo, ...] = (), **about: Any) -> None:
        super().__init__(**about)
        self._rows = table

    def rows(self) -> tuple[CommandInfo, ...]:
        """Return the commands, computed on each use, because plugins may add some."""
        return self._rows

    @property
    def table(self) -> dict[str, CommandInfo]:
        """The commands by their names."""
        return {row.name: row for row in self.rows()}

    @property
    def visible(self) -> list[CommandInfo]:
        """Rows in help and completion."""
        return [row for row in self.table.values() if not row.hidden]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the visible commands."""
        return [row.name for row in self.visible]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None for an unknown name.

        Raises:
            UnavailableError: The activity that it is made of cannot be imported here.
        """
        row = self.table.get(cmd_name)
        if row is None:
            return None
        if row.activity:
            from dld_tui.cli.jobs.activity import command_of

            command = command_of(row.activity)
        else:
            command = _imported(row)
        if row.example:
            command.epilog = f"Example: dld {row.name} {row.example}"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            ActivityError: That of a package has a bug.
        """
        try:
            return super().invoke(ctx)
        except (DldError, click.ClickException, Abort, Exit, OSError):
            raise
        except Exception as error:
            row = self.table.get(ctx.invoked_subcommand or "")
            if row is None or not row.is_foreign:
                raise
            import traceback

            raise ActivityError(
                f"{type(error).__name__}: {error}",
                where=f"dld {row.name} of {row.package}",
                hint=f"This is a bug in {row.package}: report it there, or uninstall it",
                details=traceback.format_exc(),
            ) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument.

        Raises:
            click.UsageError: There is none of this name; says which one may have been meant.
        """
        if not ctx.resilient_parsing and args[0] not in self.table and args[0][:1] != "-":
            raise click.UsageError(f"no such command: {args[0]!r}{self._meant(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, [row.name for row in self.visible], n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        if not self.visible:
            return
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.summary) for row in self.visible])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table, then options."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(row.name, help=row.summary)
            for row in self.visible
            if row.name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def _imported(row: CommandInfo) -> click.Command:
    """Import the command of a row.

    Raises:
        UnavailableError: It is of a package, and cannot be imported.
    """
    module, _, name = row.module.partition(":")
    try:
        command = getattr(importlib.import_module(module), name or "command")
    except Exception as error:
        if not row.is_foreign:
            raise
        raise UnavailableError(
            f"unavailable: {type(error).__name__}: {error}",
            where=f"dld {row.name}",
            hint=f"Update or uninstall {row.package}",
        ) from error
    assert isinstance(command, click.Command)
    return command


class ActivityGroup(LazyGroup):
    """The commands of activities that have two words, the name of the group first.

    Args:
        usual: The command that a path without one means.
        about: The arguments of :class:`LazyGroup`.
    """

    def __init__(self, usual: str = "", **about: Any) -> None:
        super().__init__(**about)
        self._usual = usual

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or the usual one for a path."""
        if self._usual and args[0] not in self.table and is_path(args[0]):
            return self._usual, self.get_command(ctx, self._usual), args
        return super().resolve_command(ctx, args)

    def rows(self) -> tuple[CommandInfo, ...]:
        """Return the commands, including those of packages that were installed meanwhile."""
        from dld_tui.activities.registry import activities

        return tuple(
            CommandInfo(activity.command.words[1], activity.command.summary, activity=activity.id)
            for activity in activities()
            if activity.command is not None and activity.command.words[:-1] == (self.name,)
        )


def _activity_group(name: str, help: str, usual: str = "") -> ActivityGroup:
    return ActivityGroup(usual, name=name, help=help, no_args_is_help=False)


convert = _activity_group("convert", "Convert a model.")
profile = _activity_group(
    "profile",
    "Measure the latency of a model and its layers: dld profile MODEL uses ONNX Runtime.",
    usual="onnxruntime",
)
run = _activity_group("run", "Run an activity of another package.")


class MainGroup(LazyGroup):
    """The top level, where anything that looks like a path is opened."""

    def rows(self) -> tuple[CommandInfo, ...]:
        """Return the commands, those that packages add included."""
        return commands()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or the hidden one that opens paths."""
        if is_path(args[0]):
            return OPEN, self.get_command(ctx, OPEN), args
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help text, which needs no click."""
        return help_text().rstrip()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table, or files when none fits."""
        from click.shell_completion import CompletionItem

        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


@click.command("open", cls=Command, hidden=True)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def open_files(paths: tuple[Path, ...]) -> int | None:
    """Open files in the user interface, one tab each."""
    from dld_tui.cli.tui import open_paths

    return open_paths(paths)


@click.command("worker", cls=Command, hidden=True)
def worker() -> None:
    """Serve one job: a request as JSON on standard input, events as JSON lines on output."""
    from dld_tui.activities.worker import main

    main()


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from dld_tui import __version__

        click.echo(f"dld {__version__}")
        ctx.exit()


def _without_command(ctx: click.Context) -> int | None:
    if ctx.invoked_subcommand is not None:
        return None
    from dld_tui.cli.tui import open_paths

    return open_paths(())


dld = MainGroup(
    name="dld",
    invoke_without_command=True,
    callback=click.pass_context(_without_command),
    context_settings={"help_option_names": list(HELP_OPTIONS), "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Print the version.",
        )
    ],
)
