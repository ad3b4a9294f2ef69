"""A command of the TUI, and how the rows of an area are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dld_tui.core.commands.facts import FACTS


@dataclass(frozen=True)
class Command:
    """One thing a user can do."""

    id: str
    """``area.verb``; also the name under ``[keys]`` in config.toml."""
    title: str
    """One to three words, for the footer and the palette."""
    help: str
    """One sentence."""
    keys: str = ""
    """Default keys, comma separated, in Textual's names; the first is the one shown."""
    scope: str = "app"
    """Who has the action: ``app``, ``list``, ``table``, ``workspace``, ``explorer``, …"""
    action: str = ""
    """Name of the action; by default the part of the id after the dot.

    With a dot in it, a controller of the screen and its method: ``editing.edit``.
    """
    needs: tuple[str, ...] = ()
    """Facts that must hold, keys of :data:`FACTS`."""
    footer: bool = False
    """Among the few that the footer shows."""
    palette: bool = True
    priority: bool = False
    """Wins over the focused widget, text fields too."""
    parameter: str = ""
    """An argument of the action."""
    menu: tuple[str, ...] = ()
    """What the context menu offers it on, besides what its needs tell: see :mod:`.menus`."""

    synonyms: tuple[str, ...] = ()
    """Other words under which the palette finds it."""

    @property
    def action_name(self) -> str:
        """Return the action's name without ``action_`` and without its argument."""
        return self.action or self.id.partition(".")[2]

    @property
    def action_string(self) -> str:
        """Return the action with its argument, as a binding wants it."""
        name, arguments = self.action_name, [self.parameter] if self.parameter else []
        if "." in name:  # Textual's actions have no targets but widgets
            name, arguments = "command", [name, *arguments]
        return f"{name}({', '.join(map(repr, arguments))})" if arguments else name

    def unavailable(self, facts: Collection[str]) -> str | None:
        """Return why it cannot run now, or None when it can."""
        return next((FACTS[need] for need in self.needs if need not in facts), None)


def table(
    scope: str,
    *rows: tuple[str, str, str, str, str, str],
    common: str = "",
    footer: str = "",
    palette: bool = True,
    priority: bool = False,
    menus: Mapping[str, str] | None = None,
) -> tuple[Command, ...]:
    """Return the rows of a scope: (id, action, keys, facts it needs, title, help).

    Args:
        scope: Who has the actions.
        rows: The rows.
        common: Facts that all of them need.
        footer: The ids that the footer shows.
        palette: False for movements, which make no sense in a menu.
        priority: True when they win over a text field.
        menus: What the context menu offers a command on, by its id: see :mod:`.menus`.
    """
    made = []
    for id, action, keys, needs, title, help in rows:
        name, _, parameter = action.partition(" ")
        facts = tuple(f"{common} {needs}".split())
        shown = id in footer.split()
        made.append(Command(
            id, title, help, keys, scope, name, facts, shown, palette, priority, parameter,
            tuple((menus or {}).get(id, "").split()),
        ))  # fmt: skip
    return tuple(made)
