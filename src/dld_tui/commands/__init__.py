"""Every command of the TUI, one row each.

Key bindings, the command palette, the help screen and the greyed state all come from this table. A
row names facts that must hold (``needs``); a screen says which facts hold now, so a command that
cannot run shows why. To add a command: one row in `table.py` and one method: that
of the controller which the row names, or ``action_…`` on the object whose ``SCOPE`` is the row's
scope.
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
