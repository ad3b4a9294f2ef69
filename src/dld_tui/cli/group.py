"""The ``dld`` command as click has it: its table, and the paths that are no command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import COMMANDS, HELP_OPTIONS, OPEN, help_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class MainGroup(LazyGroup):
    """The top level, where anything that looks like a path is opened."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or the hidden one that opens paths."""
        if args[0] not in self.table and _looks_like_a_path(args[0]):
            return OPEN, self.get_command(ctx, OPEN), args
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the text that needs no click."""
        return help_text().rstrip()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table, or files when none fits."""
        from click.shell_completion import CompletionItem

        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


def _looks_like_a_path(argument: str) -> bool:
    return argument[:1] != "-" and ("/" in argument or "." in argument or os.path.lexists(argument))


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
    COMMANDS,
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
