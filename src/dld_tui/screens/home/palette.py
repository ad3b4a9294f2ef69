"""The command palette: every command that makes sense here, with its key, greyed with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.screen import Screen
from textual.widget import Widget

from dld_tui import commands
from dld_tui.commands import Command
from dld_tui.commands.key_names import key_name
from dld_tui.core.text import cell_width, fit
from dld_tui.core.text.fuzzy import score
from dld_tui.widgets.dialogs.search import SearchDialog
from dld_tui.widgets.lists.line_source import LineSource, ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.shell.command_dispatch import HasCommands, hint, scopes_of
from dld_tui.widgets.shell.page import Page

if TYPE_CHECKING:
    from textual.app import App

_TITLE, _KEY = 26, 10
"""Cells of the titles at most, and of the keys."""
_ABOUT = 2
"""Rows that say what the command under the cursor does."""
_WORDS = re.compile(r"[^\s,.;:()]+")
_FUZZY = 18
"""What each letter of a fuzzy match is worth at least: letters that lie all about are no match."""
_LEAST_FUZZY = 3
"""Letters that are looked for one by one."""


@dataclass(frozen=True)
class Entry:
    """A command and the object that has its action."""

    command: Command
    node: Any
    """A DOM node with commands."""
    why_not: str | None

    async def run(self, app: App[int]) -> None:
        """Run the command; its pane is shown where it is not seen."""
        pane, page = self.node, self.node.screen if self.node.is_attached else None
        if isinstance(page, Page) and isinstance(pane, Widget) and not pane.region:
            page.show_pane_of(pane)
        await app.run_action(self.command.action_string, pane)


def entries_for(screen: Screen[object]) -> list[Entry]:
    """Return the commands of the focused widget, its parents, the screen and the app.

    Those of the other panes come last.
    """
    inner = screen.focused or screen
    listed: list[Entry] = []
    seen: set[str] = set()
    can_show = isinstance(screen, Page) and screen.SHOWS_PANES
    others = (node for node in screen.query("*") if can_show or node.region)
    for node in dict.fromkeys((*inner.ancestors_with_self, *others)):
        if not isinstance(node, HasCommands):
            continue
        facts = node.facts()
        for command in (*_commands_of(node), *node.own_commands()):
            if command.palette and command.id not in seen:
                seen.add(command.id)
                listed.append(Entry(command, node, hint(command.unavailable(facts) or "") or None))
    return listed


def _commands_of(node: HasCommands) -> list[Command]:
    return [command for scope in scopes_of(node) for command in commands.in_scope(scope)]


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
        longest = max((cell_width(entry.command.title) for entry in self._shown), default=0)
        titles = min(longest, _TITLE, width // 3)
        return ListSource([_row(entry, width, titles, self.app) for entry in self._shown])

    def show_rows(self, rows: LineSource, *, keep: bool = False, more: str = "") -> None:
        """List commands, and say below what the one under the cursor does."""
        self.view.set_lines(rows, keep=keep)
        self._tell()

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Say what the command under the cursor does: its row has seldom room for it."""
        event.stop()
        self._tell()

    def _tell(self) -> None:
        entry = self._shown[self.view.cursor] if self.view.cursor < len(self._shown) else None
        text = "" if entry is None else entry.command.help
        rows = [[(row, "dim")] for row in wrap(text, self.text_width)[:_ABOUT]]
        self.query_one("#count", Rows).set_rows([*rows, *([] for _ in range(_ABOUT - len(rows)))])

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
                app.call_later(entry.run, app)

        return run


def ranked(entries: list[Entry], text: str) -> list[Entry]:
    """Return the entries that match text, the best first.

    Those that can run come before the others, but for one whose very name was typed.
    """
    if not text.strip():
        return sorted(entries, key=lambda entry: entry.why_not is not None)
    scored: list[tuple[bool, tuple[int, int], int, Entry]] = []
    for entry in entries:
        match = rank(text, entry.command)
        if match is not None:
            is_last = entry.why_not is not None and not is_meant(match)
            scored.append((is_last, match, len(scored), entry))
    return [entry for *_, entry in sorted(scored, key=lambda row: row[:3])]


def _row(entry: Entry, width: int, titles: int, app: object) -> list[Piece]:
    command = entry.command
    keymap = getattr(app, "_keymap", {})
    keys = keymap.get(command.id, command.keys).split(",")[0]
    key = fit(key_name(keys) if keys else "", _KEY)
    title, room = fit(command.title, titles), width - titles - _KEY - 2
    if entry.why_not:
        return [(f"{title} {key} ", "faint"), (fit(entry.why_not, room), "faint")]
    return [(title, "strong"), (f" {key} ", "key"), (fit(command.help, room), "dim")]


def rank(query: str, command: Command) -> tuple[int, int] | None:
    """Return how well a command fits, lower is better; None when it does not.

    First is the title itself, then another word for it, then what begins so, then what has all of
    the words, and last a title that has the letters in order.
    """
    asked = " ".join(query.lower().split())
    words = asked.split()
    title = command.title.lower()
    names = [title, *(other.lower() for other in command.synonyms)]
    for tier, name in enumerate((names[:1], names[1:])):
        if asked in name:
            return tier, 0
    for tier, group in enumerate((names[:1], names[1:]), 2):
        begun = [name for name in group if name.startswith(asked)]
        if begun:
            return tier, min(map(len, begun))
    for tier, texts in enumerate((names[:1], names, [*names, command.help.lower()]), 4):
        if _has_all(words, texts):
            return tier, 0
    return _fuzzy(words, command.title)


def is_meant(found: tuple[int, int]) -> bool:
    """Tell whether a rank says that exactly this command was asked for."""
    return found[0] < 2


def _has_all(words: Iterable[str], texts: Iterable[str]) -> bool:
    known = [word for text in texts for word in _WORDS.findall(text)]
    return all(any(one.startswith(word) for one in known) for word in words)


def _fuzzy(words: list[str], title: str) -> tuple[int, int] | None:
    points = 0
    for word in words:
        found = score(word, title) if len(word) >= _LEAST_FUZZY else None
        if found is None or found < _FUZZY * len(word):
            return None
        points += found
    return (7, -points) if words else None
