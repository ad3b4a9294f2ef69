"""Dialogs of an opset conversion: which version, and what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core.text import clip, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows, wrap

_OTHER_ROWS = 10
"""Rows of the screen that a list leaves to the rest of a dialog."""


class VersionDialog(Dialog[int]):
    """A list of the known versions, the newest first; gives the chosen one."""

    TITLE_TEXT = "Convert to which opset?"
    KEYS = "Enter choose  Esc close"

    def __init__(self, present: int, newest: int) -> None:
        super().__init__()
        self.present = present
        self.versions = list(range(newest, 0, -1))

    def body(self) -> Iterable[Widget]:
        yield Rows([[(f"The model has version {self.present} of ai.onnx.", "dim")], []])
        rows: list[list[Piece]] = [
            [(f"{version:>4}", "strong"), (self._note(version), "dim")] for version in self.versions
        ]
        view = LineView(ListSource(rows, self.versions))
        view.styles.height = min(len(rows), max(3, self.app.size.height - _OTHER_ROWS))
        yield view

    def _note(self, version: int) -> str:
        if version == self.present:
            return "  as it is"
        return "  the newest that is known" if version == self.versions[0] else ""

    def on_mount(self) -> None:
        """Begin at the present version."""
        if self.present in self.versions:
            self.query_one(LineView).cursor = self.versions.index(self.present)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the version at the cursor."""
        event.stop()
        self.dismiss(int(str(event.key)))


class ConversionDialog(Dialog[bool]):
    """What a conversion did; Enter gives True: open the result."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "enter", "open", show=False)]
    ANSWER: ClassVar[bool | None] = True
    """What Enter gives."""
    TITLE_TEXT = "Converted"
    KEYS = "Enter open the result  Esc close"

    def __init__(self, lines: Sequence[str], name: str) -> None:
        """Show lines; `name` is the file's, foreign text."""
        super().__init__()
        self.lines = lines
        self.name_of_file = name

    def body(self) -> Iterable[Widget]:
        rows: list[list[Piece]] = []
        for number, line in enumerate(self.lines):
            style = "strong" if number == 0 else "warn" if "not converted" in line else ""
            rows += [[(row, style)] for row in wrap(line, self.text_width - 1)]
        view = LineView(ListSource(rows), gutter=False)
        view.styles.height = min(len(rows), max(3, self.app.size.height - _OTHER_ROWS))
        yield view
        told = self.end()
        if told:
            yield Rows([[], told])

    def end(self) -> list[Piece]:
        """Return the row below the lines."""
        if not self.name_of_file:
            return []
        return [("written to ", "dim"), (visible(self.name_of_file), "")]

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Do what Enter does, wherever the cursor is."""
        event.stop()
        self.action_enter()

    def action_enter(self) -> None:
        self.dismiss(self.ANSWER)


class AppliedDialog(ConversionDialog):
    """What was done to the open model; u gives True: take it back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo", show=False),
        Binding("enter", "enter", "close", show=False),
    ]
    ANSWER = None
    TITLE_TEXT = "Applied"
    KEYS = "u undo  Esc close"

    def __init__(self, lines: Sequence[str], title: str) -> None:
        """Show lines; `title` is that of the edit in the history."""
        super().__init__(lines, "")
        self.title_of_edit = title

    def end(self) -> list[Piece]:
        """Return what the history has."""
        room = self.text_width - 30
        return [
            ("one edit: ", "dim"),
            (clip(visible(self.title_of_edit), room), ""),
            (", not saved yet", "dim"),
        ]

    def action_undo(self) -> None:
        self.dismiss(True)


class PreviewDialog(ConversionDialog):
    """What casts would do; Enter gives True: write the copy."""

    TITLE_TEXT = "Casts for the layers' precisions"
    KEYS = "Enter write a copy  Esc close"

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines, "")


class ListDialog(ConversionDialog):
    """What a conversion would convert, and nothing was written."""

    TITLE_TEXT = "Would be converted"
    KEYS = "Esc close"

    def __init__(self, lines: list[str], end: str) -> None:
        """Show lines; `end` stands below them."""
        super().__init__(lines, "")
        self._end = end

    def end(self) -> list[Piece]:
        """Return the row below the lines."""
        return [(self._end, "dim")] if self._end else []
