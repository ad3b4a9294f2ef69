"""The commands of the TUI.

Key bindings, the command palette, the context menus, the help screen and availability come from
tables, each in the class that handles its commands (:func:`dld_tui.commands.command.table`). A row
names the conditions that it needs; a screen tells which hold, so that an unavailable command shows
the reason. To add a command, add a row to the table of a class, and the method that the row names:
``action_…``, or in a controller of a workspace the method itself.

Texts and the palette name commands of pages that have not been opened, and importing those takes a
second. So ``index.tsv`` lists all; ``python -m scripts.references`` writes it from the tables.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from dld_tui.commands.command import CONDITIONS, Command, known, known_by_scope

__all__ = ["CONDITIONS", "Command", "all_commands", "by_id", "for_action", "in_scope"]

INDEX = Path(__file__).with_name("index.tsv")
_PACKAGES = ("dld_tui.screens", "dld_tui.widgets")


@lru_cache(maxsize=1)
def _import_all() -> None:
    importlib.import_module("dld_tui.app")
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)


def all_commands() -> tuple[Command, ...]:
    """Return all commands; imports every screen and widget, which takes about a second."""
    _import_all()
    return tuple(known.values())


@lru_cache(maxsize=1)
def by_id() -> Mapping[str, Command]:
    """Return what texts and the palette say of all commands, by their ids; imports nothing."""
    rows = (line.split("\t") for line in INDEX.read_text(encoding="utf-8").splitlines())
    return {
        id: Command(
            id, title, help, keys, scope, palette=bool(words),
            synonyms=tuple(words.split(",")[1:]),
        )
        for scope, id, keys, title, help, words in rows
    }  # fmt: skip


def index_text() -> str:
    """Return what :data:`INDEX` is to hold."""
    rows = []
    for scope in sorted({row.scope for row in all_commands()}):
        for row in in_scope(scope):
            words = ",".join(("palette", *row.synonyms)) if row.palette else ""
            rows.append((scope, row.id, row.keys, row.title, row.help, words))
    return "".join("\t".join(row) + "\n" for row in rows)


def in_scope(scope: str) -> tuple[Command, ...]:
    """Return the commands of a scope, in the order in which they are declared."""
    return tuple(command for command in known.values() if command.scope == scope)


def for_action(scope: str, action: str) -> Command | None:
    """Return the first command of a scope that runs an action, or None."""
    return known_by_scope.get(scope, {}).get(action)
