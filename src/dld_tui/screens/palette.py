"""The command palette: every command that makes sense here, with its key, greyed with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.fuzzy import FuzzySearch
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core import commands
from dld_tui.core.commands import Command
from dld_tui.core.keys import key_name
from dld_tui.core.text import fit
from dld_tui.widgets.commands import Commands
from dld_tui.widgets.dialogs import Dialog, text_field
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView

if TYPE_CHECKING:
    from textual.app import App


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
        for command in _commands_of(node):
            if command.palette and command.id not in seen:
                seen.add(command.id)
                found.append(Entry(command, node, command.unavailable(facts)))
    return found


def _commands_of(node: Commands) -> list[Command]:
    scopes = dict.fromkeys(cls.__dict__.get("SCOPE", "") for cls in type(node).__mro__)
    return [command for scope in scopes if scope for command in commands.in_scope(scope)]


class Palette(Dialog[Entry]):
    """Gives the entry to run, or None."""

    TITLE_TEXT = "Commands"
    KEYS = "Enter run  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(8)", show=False),
        Binding("pageup", "move(-8)", show=False),
    ]

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self.entries = entries_for(screen)
        self._shown = self.entries

    def body(self) -> Iterable[Widget]:
        """Return the field and the list."""
        yield text_field("", "type to search")
        view = LineView(empty="no such command")
        view.can_focus = False
        view.styles.height = min(len(self.entries), max(4, self.app.size.height - 10))
        view.styles.margin = (1, 0, 0, 0)
        yield view

    def on_mount(self) -> None:
        """List everything."""
        self.query_one(LineView).add_class("-chosen")
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """List what matches, the best first."""
        event.stop()
        self._show(event.value)

    def _show(self, text: str) -> None:
        self._shown = ranked(self.entries, text)
        width = self.text_width - 2
        rows = [_row(entry, width, self.app) for entry in self._shown]
        self.query_one(LineView).set_lines(ListSource(rows), keep=False)

    def action_move(self, rows: int) -> None:
        """Choose another command."""
        self.query_one(LineView).cursor += rows

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run the chosen command."""
        event.stop()
        self._choose(self.query_one(LineView).cursor)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Run the command that was clicked twice."""
        event.stop()
        self._choose(event.index)

    def _choose(self, index: int) -> None:
        if index >= len(self._shown):
            return
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
    if not text:
        return sorted(entries, key=lambda entry: entry.why_not is not None)
    search = FuzzySearch()
    scored: list[tuple[bool, float, int, Entry]] = []
    for entry in entries:
        title, _ = search.match(text, entry.command.title)
        help, _ = search.match(text, entry.command.help)
        if score := max(title * 2, help):
            scored.append((entry.why_not is not None, -score, len(scored), entry))
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
