"""The context menu: the commands that fit what is under the cursor, in a box beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any

from textual import events
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget

from dld_tui.commands.command import fits
from dld_tui.commands.key_names import key_name
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.screens.home.palette import Entry, Palette, entries_for
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogBox
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView

if TYPE_CHECKING:
    from textual.app import App

_TITLE_CELLS = 40
_WHY_CELLS = 26
_LEAST_KEY_CELLS = 3
_FRAME = 4
"""Cells of border and padding, in both directions less for the height."""
_TAKEN = frozenset({"up", "down", "enter", "escape", "pageup", "pagedown", "home", "end"})
"""Keys that move in the menu."""


class ContextMenu(Dialog[Entry]):
    """Gives the entry to run, or None.

    Args:
        title: What is under the cursor: foreign text.
        entries: The commands, in order.
        at: Where on the screen the cursor is.
    """

    KEYS = ""

    def __init__(self, title: str, entries: Sequence[Entry], at: Offset) -> None:
        super().__init__()
        self.TITLE_TEXT = clip(visible(title), _TITLE_CELLS, keep="middle")
        self.entries = ordered(entries)
        self.at = at
        self._key_cells = 0

    def body(self) -> Iterable[Widget]:
        keys = letters(self.entries, getattr(self.app, "_keymap", {}))
        names = [key_name(own[0]) for own in keys]
        self._key_cells = max(_LEAST_KEY_CELLS, *map(cell_width, names)) + 2
        width = self._width(self.app.size.width)
        rows = [
            _row(entry, fit(name, self._key_cells), width)
            for entry, name in zip(self.entries, names, strict=True)
        ]
        view = LineView(ListSource(rows))
        view.styles.height = min(len(rows), max(1, self.app.size.height - _FRAME))
        yield view
        for at, own in enumerate(keys):
            for key in own:
                self._bindings.bind(key, f"take({at})", show=False, priority=True)

    def _width(self, screen: int) -> int:
        """Return the cells of a row: of the longest one, and of the title above them."""
        longest = max(
            cell_width(entry.command.title) + (min(_WHY_CELLS, cell_width(entry.why_not)) + 2
                                               if entry.why_not else 0)
            for entry in self.entries
        )  # fmt: skip
        wanted = max(longest + self._key_cells + 1, cell_width(self.TITLE_TEXT) + 4)
        return min(wanted, screen - _FRAME - 2)

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


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with those that can run before the others, each in the order of the table."""
    return sorted(entries, key=lambda entry: entry.why_not is not None)


def keys_of(entry: Entry, keymap: Mapping[str, str]) -> list[str]:
    """Return the keys that run a command elsewhere, the one that is shown first."""
    keys = keymap.get(entry.command.id, entry.command.keys).split(",")
    return [key for key in map(str.strip, keys) if key and key not in _TAKEN]


def letters(entries: Sequence[Entry], keymap: Mapping[str, str]) -> list[list[str]]:
    """Return the keys of each entry: its command's own, or a letter of its title that is free.

    No entry takes a letter that does something else outside of the menu, such as ``d``.
    """
    found = [keys_of(entry, keymap) for entry in entries]
    used = {key for keys in found for key in keys}
    for entry, keys in zip(entries, found, strict=True):
        if not keys:
            title = [char for char in entry.command.title if char.isalnum()]
            wanted = [*title, *map(str.upper, title), *ascii_letters, *digits]
            keys.append(next(char for char in wanted if char not in used))
            used.add(keys[0])
    return found


def _row(entry: Entry, key: str, width: int) -> list[Piece]:
    title, room = entry.command.title, width - cell_width(key)
    if not entry.why_not:
        return [(key, "key"), (fit(title, room), "")]
    why = clip(entry.why_not, max(0, room - cell_width(title) - 2))
    return [(key, "faint"), (title, "faint"), (f"  {why}", "faint")]


def open_menu(app: App[int], screen: Screen[Any], place: str, title: str) -> bool:
    """Show the menu for a place on a screen; False when no command fits it.

    Args:
        app: The app.
        screen: The screen below, whose focused widget has the cursor.
        place: What is under the cursor: a key of ``commands.model.PLACES``.
        title: What it is called: foreign text.
    """
    entries = [entry for entry in entries_for(screen) if fits(entry.command, place)]
    if entries:
        menu = ContextMenu(title, entries, cursor_offset(screen))
        app.push_screen(menu, Palette.run_chosen(app))
    return bool(entries)


def cursor_offset(screen: Screen[Any]) -> Offset:
    """Return where on the screen the cursor of the focused list or canvas is."""
    view = screen.focused
    if isinstance(view, GraphCanvas):
        return view.cursor_offset
    if not isinstance(view, LineView):
        return Offset(0, 0)
    region = view.content_region
    row = view.cursor - view.scroll_offset.y + view.header_rows
    return Offset(region.x + 4, region.y + max(0, min(row, region.height - 1)))
