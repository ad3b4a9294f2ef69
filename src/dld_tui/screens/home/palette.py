"""The commands that fit here: all of them in the palette, those of one place in a menu."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget

from dld_tui import commands
from dld_tui.commands import Command
from dld_tui.commands.command import DIGITS, GROUPS, fits
from dld_tui.commands.key_names import key_name
from dld_tui.core.command_line import commands as shell_commands
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.fuzzy import score
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogBox
from dld_tui.widgets.dialogs.search import SearchDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import LineSource, ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell.command_dispatch import HasCommands, conditions_of, hint, scopes_of
from dld_tui.widgets.shell.page import AppServices, Page, host

if TYPE_CHECKING:
    from textual.app import App


_TITLE, _KEY = 26, 10
"""Cells of the titles at most, and of the keys."""
_WORDS = re.compile(r"[^\s,.;:()]+")
_FUZZY = 18
"""The least score per letter of a fuzzy match: scattered letters are no match."""
_LEAST_FUZZY = 3
"""Letters that are looked for one by one."""


@dataclass(frozen=True)
class PaletteEntry:
    """A command and the object that has its action."""

    command: Command
    node: Any
    """A DOM node with commands."""
    why_not: str | None

    async def run(self, app: App[int]) -> None:
        """Run the command; its pane is shown where it is not seen."""
        pane, page = self.node, self.node.screen if self.node.is_attached else None
        with cast("AppServices", app).showing_errors():
            if isinstance(page, Page) and isinstance(pane, Widget) and not pane.region:
                page.show_pane_of(pane)
            await app.run_action(self.command.action_string, pane)


def entries_for(screen: Screen[object]) -> list[PaletteEntry]:
    """Return the commands of the focused widget, its parents, the screen and the app.

    Those of the other panes come last.
    """
    inner = screen.focused or screen
    listed: list[PaletteEntry] = []
    known_ids: set[str] = set()
    can_show = isinstance(screen, Page) and screen.SHOWS_PANES
    others = (node for node in screen.query("*") if can_show or node.region)
    for node in dict.fromkeys((*inner.ancestors_with_self, *others)):
        if not isinstance(node, HasCommands):
            continue
        conditions = conditions_of(node)
        for command in (*_commands_of(node), *node.own_commands()):
            if command.palette and command.id not in known_ids:
                known_ids.add(command.id)
                listed.append(
                    PaletteEntry(command, node, hint(command.unavailable(conditions) or "") or None)
                )
    return listed


def _commands_of(node: HasCommands) -> list[Command]:
    return [command for scope in scopes_of(node) for command in commands.in_scope(scope)]


def conversion_commands() -> list[Command]:
    """Return a command for each conversion of a model that the table has none for."""
    from dld_tui.activities import registry as activities

    return [
        Command(
            f"convert.{about.id}",
            about.title,
            about.help,
            scope="workspace",
            action="conversion.start",
            needs=("document",),
            parameter=about.id,
            synonyms=about.synonyms,
        )
        for about in activities.activities()
        if about.modification is not None and about.id != "convert_opset"
    ]


def commands_of_models(screen: Screen[object]) -> list[PaletteEntry]:
    """Return the commands of an open model, for a screen that has none of them."""
    rows = [row for row in commands.by_id().values() if row.scope == "workspace"]
    rows += conversion_commands()
    has_model = any("workspace" in scopes_of(page) for page in host(screen).pages)
    why = "only on a model's page" if has_model else "open a model first"
    return [PaletteEntry(row, screen, why) for row in rows if row.palette]


def commands_of_shells(entries: Sequence[PaletteEntry]) -> list[PaletteEntry]:
    """Return the commands of the command line that the program has none for; they only say so."""
    from dld_tui.activities import registry as activities

    commands_here = [entry.command for entry in entries]
    ids = {command.id for command in commands_here}
    known = {command.title for command in commands_here}
    known |= {
        about.command.words[0] for about in activities.activities()
        if about.command is not None
        and ids & {about.page_command, f"activity.{about.id}", f"convert.{about.id}"}
    }  # fmt: skip
    return [
        PaletteEntry(
            Command(f"shell.{row.name}", row.name, row.summary),
            None,
            f"in a shell: {f'dld {row.name} {row.example}'.strip()}",
        )
        for row in shell_commands()
        if not row.hidden and row.name not in known
    ]


class Palette(SearchDialog[PaletteEntry]):
    """Gives the entry to run, or None."""

    TITLE_TEXT = "Commands"
    KEYS = "Enter run  Esc close"
    EMPTY = "No such command"
    ROWS_BELOW = 2
    """Rows for the help of the command under the cursor."""

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self.entries = entries_for(screen)
        self._screen_below = screen
        self._shown = self.entries

    @cached_property
    def _of_models(self) -> list[PaletteEntry]:
        """What an open model could do; nothing where one is open, whose commands are listed."""
        has_model = any(entry.command.scope == "workspace" for entry in self.entries)
        return [] if has_model else commands_of_models(self._screen_below)

    @cached_property
    def _of_shells(self) -> list[PaletteEntry]:
        return commands_of_shells([*self.entries, *self._of_models])

    def found(self, text: str) -> ListSource:
        """Return the commands that match, best match first; what cannot run here comes last."""
        self._shown = ranked(self.entries, text)
        if text.strip():
            here = {entry.command.title for entry in self._shown}
            models = ranked(self._of_models, text)
            self._shown += [entry for entry in models if entry.command.title not in here]
            self._shown += ranked(self._of_shells, text)
        width = self.text_width - 2
        longest = max((cell_width(entry.command.title) for entry in self._shown), default=0)
        titles = min(longest, _TITLE, width // 3)
        return ListSource([_row(entry, width, titles, self.app) for entry in self._shown])

    def show_rows(self, rows: LineSource, *, keep: bool = False, more: str = "") -> None:
        """List commands, and say below what the one under the cursor does."""
        self.view.set_lines(rows, keep=keep)
        self._tell()

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show the help of the command under the cursor; its row seldom has room for it."""
        event.stop()
        self._tell()

    def _tell(self) -> None:
        entry = self._shown[self.view.cursor] if self.view.cursor < len(self._shown) else None
        text = "" if entry is None else entry.command.help
        lines = wrap(text, self.text_width)[: self.ROWS_BELOW]
        lines += [""] * (self.ROWS_BELOW - len(lines))
        self.query_one("#count", Rows).set_rows([[(line, "dim")] for line in lines])

    def choose(self, index: int) -> None:
        """Run the command, or show why it cannot run."""
        entry = self._shown[index]
        if entry.why_not:
            self.notify(f"{entry.command.title}: {entry.why_not}", timeout=3, markup=False)
        else:
            self.dismiss(entry)

    @staticmethod
    def run_chosen(app: App[int]) -> Callable[[PaletteEntry | None], None]:
        """Return what runs the chosen command when the palette has closed."""

        def run(entry: PaletteEntry | None) -> None:
            if entry is not None:
                app.call_later(entry.run, app)

        return run


def ranked(entries: list[PaletteEntry], text: str) -> list[PaletteEntry]:
    """Return the entries that match text, the best first.

    Those that can run come before the others, but for one whose very name was typed.
    """
    if not text.strip():
        return sorted(entries, key=lambda entry: entry.why_not is not None)
    scored: list[tuple[bool, tuple[int, int], int, PaletteEntry]] = []
    for entry in entries:
        match = rank(text, entry.command)
        if match is not None:
            is_last = entry.why_not is not None and not is_meant(match)
            scored.append((is_last, match, len(scored), entry))
    return [entry for *_, entry in sorted(scored, key=lambda row: row[:3])]


def _row(entry: PaletteEntry, width: int, titles: int, app: object) -> list[Piece]:
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


def is_meant(match: tuple[int, int]) -> bool:
    """Return whether a rank means that exactly this command was asked for."""
    return match[0] < 2


def _has_all(words: Iterable[str], texts: Iterable[str]) -> bool:
    known = [word for text in texts for word in _WORDS.findall(text)]
    return all(any(candidate.startswith(word) for candidate in known) for word in words)


def _fuzzy(words: list[str], title: str) -> tuple[int, int] | None:
    points = 0
    for word in words:
        points_of_word = score(word, title) if len(word) >= _LEAST_FUZZY else None
        if points_of_word is None or points_of_word < _FUZZY * len(word):
            return None
        points += points_of_word
    return (7, -points) if words else None


_TITLE_CELLS = 40
_GROUP_CELLS = 6
_LEAST_KEY_CELLS = 3
_FRAME = 4
"""Cells of border and padding, in both directions less for the height."""
_TAKEN = frozenset({"up", "down", "enter", "escape", "pageup", "pagedown", "home", "end"})
"""Keys that move in the menu."""


class ContextMenu(Dialog[PaletteEntry]):
    """Gives the entry to run, or None.

    Args:
        title: What is under the cursor: untrusted text.
        entries: The commands, in order.
        at: Where on the screen the cursor is.
    """

    KEYS = ""

    def __init__(self, title: str, entries: Sequence[PaletteEntry], at: Offset) -> None:
        super().__init__()
        self.TITLE_TEXT = clip(visible(title), _TITLE_CELLS, keep="middle")
        self.entries = grouped(entries)
        self.at = at
        self._key_cells = self._title_cells = 0

    def body(self) -> Iterable[Widget]:
        keymap = getattr(self.app, "_keymap", {})
        keys = [menu_keys(entry, keymap) for entry in self.entries]
        names = [key_name(own[0]) if own else "" for own in keys]
        self._key_cells = max(_LEAST_KEY_CELLS, *map(cell_width, names)) + 2
        self._title_cells = max(cell_width(entry.command.title) for entry in self.entries) + 2
        width = self._width(self.app.size.width)
        rows, group = [], ""
        for entry, name in zip(self.entries, names, strict=True):
            first = entry.command.group if entry.command.group != group else ""
            group = entry.command.group
            head: list[Piece] = [(fit(first, _GROUP_CELLS), "dim")]
            rows.append([*head, *self._row(entry, name, width - _GROUP_CELLS)])
        view = LineView(ListSource(rows))
        view.styles.height = min(len(rows), max(1, self.app.size.height - _FRAME))
        yield view
        for at, own in enumerate(keys):
            for key in own:
                self.take_key(key, f"take({at})")

    def _width(self, screen: int) -> int:
        """Return the cells of a row: of the longest one, and of the title above them."""
        longest = max(cell_width(entry.why_not or entry.command.help) for entry in self.entries)
        before = _GROUP_CELLS + self._key_cells + self._title_cells
        wanted = max(before + longest + 1, cell_width(self.TITLE_TEXT) + 4)
        return min(wanted, screen - _FRAME - 2)

    def _row(self, entry: PaletteEntry, key: str, width: int) -> list[Piece]:
        """Return key, title and what it does; or, faint, why it cannot be done now."""
        title = fit(entry.command.title, self._title_cells)
        about = clip(entry.why_not or entry.command.help, width - self._key_cells - len(title))
        styles = ("faint", "faint", "faint") if entry.why_not else ("key", "", "dim")
        return [*zip((fit(key, self._key_cells), title, about), styles, strict=True)]

    def on_mount(self) -> None:
        """Put the box below the cursor's row, or above it where there is no room."""
        box = self.query_one(DialogBox)
        screen = self.app.size
        width = self._width(screen.width) + _FRAME + 1
        height = min(len(self.entries), max(1, screen.height - _FRAME)) + 2
        x = max(0, min(self.at.x, screen.width - width))
        below, above = self.at.y + 1, self.at.y - height
        y = below if below + height <= screen.height else max(0, above)
        box.styles.width, box.styles.height = width, height
        box.styles.offset = (x, min(y, max(0, screen.height - height)))
        self.query_one(LineView).focus()

    def action_take(self, at: int) -> None:
        entry = self.entries[at]
        if entry.why_not:
            self.notify(f"{entry.command.title}: {entry.why_not}", timeout=3, markup=False)
        else:
            self.dismiss(entry)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Run the command at the cursor."""
        event.stop()
        self.action_take(event.index)

    def on_click(self, event: events.Click) -> None:
        """Close on a click beside the box; run what is clicked in it."""
        view = self.query_one(LineView)
        if not self.query_one(DialogBox).region.contains(event.screen_x, event.screen_y):
            self.dismiss(None)
        elif view.region.contains(event.screen_x, event.screen_y):
            self.action_take(view.cursor)


def grouped(entries: Sequence[PaletteEntry]) -> list[PaletteEntry]:
    """Return entries by group; in each those that can run first, in the order of the table."""
    return sorted(
        entries, key=lambda entry: (GROUPS.index(entry.command.group), entry.why_not is not None)
    )


def keys_of(entry: PaletteEntry, keymap: Mapping[str, str]) -> list[str]:
    """Return the keys that run a command elsewhere, the one that is shown first."""
    keys = keymap.get(entry.command.id, entry.command.keys).split(",")
    return [key for key in map(str.strip, keys) if key and key not in _TAKEN]


def menu_keys(entry: PaletteEntry, keymap: Mapping[str, str]) -> list[str]:
    """Return the keys of a command in a menu: its own, or its digit; none for the rarest.

    A letter means one thing in the menu and outside of it, a digit one thing in all menus.

    Args:
        entry: The command.
        keymap: Command id to the user's keys.
    """
    digit = DIGITS.get(entry.command.id)
    return keys_of(entry, keymap) or ([digit] if digit else [])


def open_menu(app: App[int], screen: Screen[Any], place: str, title: str) -> bool:
    """Show the menu for a place on a screen; False when no command fits it.

    Args:
        app: The app.
        screen: The screen below, whose focused widget has the cursor.
        place: What is under the cursor: a key of :data:`~dld_tui.commands.command.PLACES`.
        title: What it is called: untrusted text.
    """
    entries = [entry for entry in entries_for(screen) if fits(entry.command, place)]
    if entries:
        cursor = getattr(screen.focused, "cursor_offset", Offset())
        menu = ContextMenu(title, entries, cursor)
        app.push_screen(menu, Palette.run_chosen(app))
    return bool(entries)
