"""A field for a path, with the files that match below it; Tab completes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input
from textual.widgets.input import Selection

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import BYTES, Column, Table
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.tasks import Tasks, on_thread, task

_MOST = 2000
"""Entries of a folder that are looked at."""


@dataclass(frozen=True)
class Match:
    """An entry of a folder."""

    name: str
    is_folder: bool
    size: int | None


def find_matches(text: str, endings: tuple[str, ...] = ()) -> list[Match]:
    """Return what the text of a path could become: folders first, then files, by name.

    Hidden entries are left out unless the name begins with a dot. Errors mean no matches.

    Args:
        text: What is typed.
        endings: Of the files that fit, in lower case; any where there is none.
    """
    folder, prefix = split(text)
    matches: list[Match] = []
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= _MOST:
                    break
                if not entry.name.lower().startswith(prefix.lower()):
                    continue
                if entry.name.startswith(".") and not prefix.startswith("."):
                    continue
                match = _match(entry)
                if match.is_folder or not endings or match.name.lower().endswith(endings):
                    matches.append(match)
    except (OSError, ValueError):
        return []
    return sorted(matches, key=lambda match: (not match.is_folder, match.name.lower()))


def _match(entry: os.DirEntry[str]) -> Match:
    try:
        is_folder = entry.is_dir()
        return Match(entry.name, is_folder, None if is_folder else entry.stat().st_size)
    except OSError:
        return Match(entry.name, False, None)


def split(text: str) -> tuple[str, str]:
    """Return (folder to look in, beginning of the name) of a path being typed."""
    if text == "~":
        return os.path.expanduser("~"), ""
    folder, prefix = os.path.split(os.path.expanduser(text))
    return folder or ".", prefix


def complete(text: str, matches: list[Match]) -> str:
    """Return the text made longer as far as all matches agree; a lone folder gets its slash."""
    if not matches:
        return text
    folder = text[: len(text) - len(os.path.basename(text))]
    if text == "~":
        folder = "~/"
    if len(matches) == 1:
        return folder + matches[0].name + ("/" if matches[0].is_folder else "")
    # Characters are meant here, not components.
    common = os.path.commonprefix([match.name for match in matches])  # noqa: RUF071
    typed = os.path.basename(text)
    return folder + common if len(common) > len(typed) else text


def match_table(matches: Sequence[Match]) -> Table[Match]:
    """Return what the text of a path could become as a table."""
    return Table(
        (
            Column("name", "name", lambda match: f"{match.name}{'/' if match.is_folder else ''}",
                   keep="middle"),
            Column("size", "size", lambda match: match.size, BYTES, 9, style="dim",
                   text=lambda match: "" if match.is_folder else fmt.size(match.size)),
        ),
        matches,
    )  # fmt: skip


class PathInput(Vertical):
    """The field of a path and its matches.

    Args:
        value: The text to begin with.
        placeholder: Shown while the field is empty.
        rows: Rows of the list of matches.
        always_lists: List the working folder while nothing is typed.
        endings: Of the files that are offered, in lower case; any where there is none.
        is_new: Whether a file is to be written: what is typed counts, unless a match is chosen.
        id: Of the widget.
    """

    tasks = cached_property(Tasks)
    """Its long work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("down", "move(1)", "next", show=False),
        Binding("up", "move(-1)", "previous", show=False),
        Binding("pagedown", "move(8)", "page down", show=False),
        Binding("pageup", "move(-8)", "page up", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """A path was entered; it may not exist."""

        path: Path

    def __init__(
        self,
        value: str = "",
        placeholder: str = "path of a model or a report",
        *,
        rows: int = 8,
        always_lists: bool = False,
        endings: tuple[str, ...] = (),
        is_new: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._always_lists = always_lists
        self._value = value
        self._placeholder = placeholder
        self._rows = rows
        self._endings, self._is_new = endings, is_new
        self._matches: list[Match] = []
        self._moved = False

    def compose(self) -> ComposeResult:
        yield text_field(self._value, self._placeholder)
        view = TableView(match_table(()), empty="new file" if self._is_new else "nothing matches")
        view.can_focus = False
        view.header_rows = 0
        view.styles.height = self._rows
        view.display = self._always_lists
        yield view

    @property
    def value(self) -> str:
        """The text as it is typed."""
        return self.query_one(Input).value

    @value.setter
    def value(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)

    def on_mount(self) -> None:
        """Let what is typed take the place of the name that the field begins with."""
        end = len(self._value)
        self.query_one(Input).selection = Selection(end - len(os.path.basename(self._value)), end)
        if self._always_lists and not self._value:
            self._look("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look for matches in a thread: the folder may be on a slow network."""
        event.stop()
        self._look(event.value)

    @task("path", replace=True)
    async def _look(self, text: str) -> None:
        is_listed = bool(text) or self._always_lists
        matches = await on_thread(find_matches, text, self._endings) if is_listed else []
        if text != self.value:  # it has changed meanwhile
            return
        self._matches = matches
        self._moved = False
        view = self.query_one(TableView)
        view.shows_cursor = not self._is_new
        view.set_class(view.shows_cursor, "-chosen")
        view.set_table(match_table(matches), keep=False)
        view.display = is_listed

    def action_complete(self) -> None:
        """Complete the name; when it is complete, let Tab go to the next field."""
        if self.query_one(Input).has_focus and (self.value or self._matches):
            chosen = self._at_cursor() if self._moved else None
            longer = complete(self.value, [chosen] if chosen else self._matches)
            if longer != self.value:
                self.value = longer
                return
            if self._matches and not self._moved:
                self.action_move(0)
                return
        self.screen.focus_next()

    def action_move(self, rows: int) -> None:
        view = self.query_one(TableView)
        if view.display and self._matches:
            view.cursor += rows if view.shows_cursor else 0
            self._moved = view.shows_cursor = True
            view.add_class("-chosen")
            view.invalidate()

    def _at_cursor(self) -> Match | None:
        row = self.query_one(TableView).row_at_cursor()
        return self._matches[row] if row is not None and row < len(self._matches) else None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the match at the cursor, or the path as typed; a folder is entered."""
        event.stop()
        is_chosen = self._moved or not (self._is_new or self._is_there(self.value))
        chosen = self._at_cursor() if is_chosen else None
        self._choose(complete(self.value, [chosen]) if chosen else self.value)

    @staticmethod
    def _is_there(text: str) -> bool:
        try:
            return bool(text) and os.path.lexists(os.path.expanduser(text))
        except ValueError:
            return False

    def on_line_view_activated(self, event: TableView.Activated) -> None:
        """Open what was clicked twice."""
        event.stop()
        chosen = self._at_cursor()
        if chosen is not None:
            self._choose(complete(self.value, [chosen]))

    def _choose(self, text: str) -> None:
        if not text:
            return
        path = Path(os.path.expanduser(text))
        if path.is_dir():
            self.value = text if text.endswith("/") else text + "/"
        else:
            self.post_message(self.Chosen(path))
