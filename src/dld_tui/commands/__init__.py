"""The table of all commands of the TUI.

Key bindings, the command palette, the help screen and availability come from this table. A row
names the facts that it needs; a screen tells which facts hold, so that an unavailable command shows
the reason. To add a command, add a row to `command_table.py` and a method: of the controller in the
row, or ``action_…`` on the object whose ``SCOPE`` is the row's scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from dld_tui.commands.command import FACTS, Command
from dld_tui.commands.command_table import ROWS, SYNONYMS

__all__ = ["COMMANDS", "FACTS", "Command", "by_id", "for_action", "in_scope"]

COMMANDS: tuple[Command, ...] = tuple(
    replace(row, synonyms=SYNONYMS[row.id]) if row.id in SYNONYMS else row for row in ROWS
)


@lru_cache(maxsize=1)
def by_id() -> Mapping[str, Command]:
    """Return the commands by their id."""
    return {command.id: command for command in COMMANDS}


@lru_cache(maxsize=64)
def in_scope(scope: str) -> tuple[Command, ...]:
    """Return the commands of a scope, in the order of the table."""
    return tuple(command for command in COMMANDS if command.scope == scope)


@lru_cache(maxsize=512)
def for_action(scope: str, action: str) -> Command | None:
    """Return the first command of a scope that runs an action, or None."""
    return next((row for row in in_scope(scope) if row.action_name == action), None)
