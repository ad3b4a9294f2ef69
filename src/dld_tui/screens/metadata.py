"""The metadata page: doc strings, metadata entries, producer fields, types of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.edits.metadata import MODEL_NUMBERS
from dld_tui.core.document.type_text import parse_type
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.metadata_rows import MetadataLines, MetadataRow
from dld_tui.screens.workspace.history import History
from dld_tui.screens.workspace.model import is_alive
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.dialogs import PromptDialog
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.page import SubPage
from dld_tui.widgets.text_dialog import TextDialog

if TYPE_CHECKING:
    from dld_tui.core.document import Change


class MetadataList(Frame, LineView):
    """The rows."""


class MetadataScreen(SubPage):
    """Everything that can be written about a model and its parts; each change is an edit.

    Args:
        workspace: The screen of the model; edits go through it.
        subject: The node or graph to begin with.
    """

    SCOPE = "metadata"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("metadata")
    tab_title = "metadata"
    HELP = (
        "What is written about the node, its graph and the model. e edits the text at the cursor, "
        "in a field of several lines where it is a doc string; a adds an entry to the part that "
        "the cursor is in, d removes one. Each change is an edit of the model: u takes it back."
    )

    def __init__(self, workspace: History, subject: Node | Scope | None) -> None:
        super().__init__()
        self.workspace = workspace
        self.subject = subject

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = MetadataList(MetadataLines(self.workspace.document, self.subject))
        view.frame("Metadata", "e edit  a add  d delete  Esc close")
        yield view

    def on_mount(self) -> None:
        """Follow the model; begin at the first text."""
        self.workspace.document.on_change.append(self._changed)
        self.view.cursor = 1
        self.view.focus()

    def on_unmount(self) -> None:
        """Follow it no longer."""
        if self._changed in self.workspace.document.on_change:
            self.workspace.document.on_change.remove(self._changed)

    def _changed(self, change: Change) -> None:
        if self.subject is not None and not is_alive(self.subject):
            self.subject = self.workspace.document.main
        self.view.set_lines(MetadataLines(self.workspace.document, self.subject))
        self.refresh_bindings()

    @property
    def view(self) -> MetadataList:
        """The list."""
        return self.query_one(MetadataList)

    @property
    def row(self) -> MetadataRow | None:
        """The row under the cursor."""
        lines = self.view.lines
        at = self.view.cursor
        return lines.row(at) if isinstance(lines, MetadataLines) and at < len(lines) else None

    def facts(self) -> set[str]:
        """Return whether the row can be edited."""
        facts = super().facts()
        row = self.row if self.is_mounted and self.query(MetadataList) else None
        history = self.workspace.document.history
        known = {
            "entry": row is not None and row.is_text,
            "can_undo": bool(history.done),
            "can_redo": bool(history.undone),
        }
        return facts | {name for name, holds in known.items() if holds}

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Draw the keys that work on this row."""
        event.stop()
        self.refresh_bindings()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Edit the row."""
        event.stop()
        self.action_edit()

    # --- editing --------------------------------------------------------------------------------

    def action_edit(self) -> None:
        """Edit the text, number or type at the cursor."""
        row = self.row
        if row is None or not row.is_text:
            return
        title = f"{row.label} of {row.part.title}" if row.kind != "type" else "Type"
        if row.kind == "doc" or (row.kind == "entry" and "\n" in row.value):
            self.app.push_screen(TextDialog(title, row.value), self._writer(row))
            return
        prompt = PromptDialog(
            "Edit", title, visible(row.value), check=lambda text: _problem(row, text)
        )
        self.app.push_screen(prompt, self._writer(row))

    def _writer(self, row: MetadataRow) -> Callable[[str | None], None]:
        def write(text: str | None) -> None:
            # What could not be shown as it is and was left alone stays as it is.
            if text is not None and text not in (row.value, visible(row.value)):
                self._write(row, text)

        return write

    def _write(self, row: MetadataRow, text: str | None) -> None:
        where = row.part.where
        if row.kind == "doc" and row.part.scope is not None:
            self.workspace.try_edit("set_doc_string", text=text or "", **where)
        elif row.kind in ("doc", "field"):
            value: JSON = text or None
            if row.key in MODEL_NUMBERS and text:
                value = int(text)
            self.workspace.try_edit("set_model_field", field=row.key, value=value)
        elif row.kind == "entry":
            self.workspace.try_edit("set_metadata", key=row.key, value=text, **where)
        else:
            self._write_type(row, text or "")

    def _write_type(self, row: MetadataRow, text: str) -> None:
        wanted = parse_type(text)
        known = wanted.dims if wanted is not None else None
        dims: JSON = list(known) if known is not None else None
        dtype = wanted.dtype if wanted is not None else None
        self.workspace.try_edit(
            "set_value_type", value=row.key, dtype=dtype, dims=dims, **row.part.where
        )

    def action_delete(self) -> None:
        """Remove the entry, text or declared type at the cursor."""
        row = self.row
        if row is not None and row.is_text:
            self._write(row, None)

    def action_add(self) -> None:
        """Ask for a key and a text, and add them to the part that the cursor is in."""
        row = self.row
        if row is None:
            return
        part = row.part
        message = part.message if part.scope is not None else self.workspace.document.model
        taken = {entry.key for entry in message.metadata_props}

        def check(key: str) -> str | None:
            if not key.strip():
                return "type a key"
            return "there is an entry with this key" if key.strip() in taken else None

        def named(key: str | None) -> None:
            if key:
                entry = MetadataRow("entry", visible(key.strip()), "", part, key.strip())
                prompt = PromptDialog("Add entry", f"The text of {visible(key.strip())}.")
                self.app.push_screen(
                    prompt, lambda text: self._write(entry, text) if text is not None else None
                )

        prompt = PromptDialog("Add entry", f"The key of a new entry of {part.title}.", check=check)
        self.app.push_screen(prompt, named)

    # --- history --------------------------------------------------------------------------------

    def action_undo(self) -> None:
        """Take back the last edit of the model."""
        self.workspace.document.undo()

    def action_redo(self) -> None:
        """Make the edit again that was taken back."""
        self.workspace.document.redo()


def _problem(row: MetadataRow, text: str) -> str | None:
    """Return what is wrong with a text for a row, or None."""
    if row.key in MODEL_NUMBERS and row.kind == "field" and text:
        good = text.isascii() and text.isdigit() and int(text) < 2**63
        return None if good else "a whole number is needed"
    if row.kind == "type":
        try:
            parse_type(text)
        except DldError as error:
            return visible(str(error))
    return None
