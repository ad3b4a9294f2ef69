"""The command palette: every command that makes sense here, with its key, greyed with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.dom import DOMNode
from textual.screen import Screen

from dld_tui.core import commands
from dld_tui.core.commands import Command
from dld_tui.core.fuzzy import score
from dld_tui.core.keys import key_name
from dld_tui.core.text import fit
from dld_tui.widgets.dialogs.search import SearchDialog
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.shell.commands import Commands

if TYPE_CHECKING:
    from textual.app import App

_TITLE = 500
"""What a match in the title is worth more than one in the help."""


@dataclass(frozen=True)
class Entry:
    """A command and the object that has its action."""

    command: Command
    node: DOMNode
    why_not: str | None


def entries_for(screen: Screen[object]) -> list[Entry]:
    """Return the commands of the focused widget, its parents, the screen and the app."""
    inner = screen.focused or screen
    found: list[Entry] = []
    seen: set[str] = set()
    for node in inner.ancestors_with_self:
        if not isinstance(node, Commands):
            continue
        facts = node.facts()
        for command in (*_commands_of(node), *node.own_commands()):
            if command.palette and command.id not in seen:
                seen.add(command.id)
                found.append(Entry(command, node, hint(command.unavailable(facts) or "") or None))
    return found


def _commands_of(node: Commands) -> list[Command]:
    scopes = dict.fromkeys(cls.__dict__.get("SCOPE", "") for cls in type(node).__mro__)
    return [command for scope in scopes if scope for command in commands.in_scope(scope)]


class Palette(SearchDialog[Entry]):
    """Gives the entry to run, or None."""

    TITLE_TEXT = "Commands"
    KEYS = "Enter run  Esc close"
    EMPTY = "no such command"

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self.entries = entries_for(screen)
        self._shown = self.entries

    def found(self, text: str) -> ListSource:
        """Return the commands that match, the best first."""
        self._shown = ranked(self.entries, text)
        width = self.text_width - 2
        return ListSource([_row(entry, width, self.app) for entry in self._shown])

    def choose(self, index: int) -> None:
        """Run the command, or say why it cannot run."""
        entry = self._shown[index]
        if entry.why_not:
            self.notify(f"{entry.command.title}: {entry.why_not}", timeout=3, markup=False)
        else:
            self.dismiss(entry)

    @staticmethod
    def run_chosen(app: App[int]) -> Callable[[Entry | None], None]:
        """Return what runs the chosen command when the palette has closed."""

        def run(entry: Entry | None) -> None:
            if entry is not None:
                app.call_later(app.run_action, entry.command.action_string, entry.node)

        return run


def ranked(entries: list[Entry], text: str) -> list[Entry]:
    """Return the entries that match text, the best first; those that can run before the others."""
    if not text.strip():
        return sorted(entries, key=lambda entry: entry.why_not is not None)
    scored: list[tuple[bool, float, int, Entry]] = []
    for entry in entries:
        command = entry.command
        title = score(text, command.title)
        others = [score(text, other) for other in (command.help, *command.synonyms)]
        found = [points for points in others if points is not None]
        if title is not None:
            found.append(title + _TITLE)
        if found:
            points = max(found)
            scored.append((entry.why_not is not None, -points, len(scored), entry))
    return [entry for *_, entry in sorted(scored, key=lambda row: row[:3])]


def _row(entry: Entry, width: int, app: object) -> list[Piece]:
    command = entry.command
    keymap = getattr(app, "_keymap", {})
    keys = keymap.get(command.id, command.keys).split(",")[0]
    key = fit(key_name(keys) if keys else "", 10)
    title = fit(command.title, 16)
    if entry.why_not:
        return [(f"{title} {key} ", "faint"), (fit(entry.why_not, width - 28), "faint")]
    return [(title, "strong"), (f" {key} ", "key"), (fit(command.help, width - 28), "dim")]
