"""A click group whose commands are rows of a table; a module is imported when its command runs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from dld_tui.cli.table import CommandInfo

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group over a table.

    Args:
        table: The commands, in the order of the help text.
        about: The other arguments of :class:`click.Group`.
    """

    def __init__(self, table: tuple[CommandInfo, ...] = (), **about: Any) -> None:
        super().__init__(**about)
        self._rows = table

    def rows(self) -> tuple[CommandInfo, ...]:
        """Return the commands; asked at each use, as some groups get new ones."""
        return self._rows

    @property
    def table(self) -> dict[str, CommandInfo]:
        """The commands by their names."""
        return {row.name: row for row in self.rows()}

    @property
    def visible(self) -> list[CommandInfo]:
        """The rows that help and completion show."""
        return [row for row in self.table.values() if not row.hidden]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the visible commands."""
        return [row.name for row in self.visible]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None when there is no such name.

        Raises:
            UnavailableError: The activity that it is made of cannot be imported here.
        """
        row = self.table.get(cmd_name)
        if row is None:
            return None
        if row.activity:
            from dld_tui.cli.activity import command_of

            return command_of(row.activity)
        module, _, name = row.module.partition(":")
        command = getattr(importlib.import_module(module), name or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument.

        Raises:
            click.UsageError: There is none of this name; says which one may have been meant.
        """
        if not ctx.resilient_parsing and args[0] not in self.table and args[0][:1] != "-":
            raise click.UsageError(f"there is no command {args[0]!r}{self._meant(args[0])}", ctx)
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
