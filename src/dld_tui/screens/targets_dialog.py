"""A dialog to mark the targets that an activity runs on at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from textual.widget import Widget

from dld_tui.widgets import glyphs
from dld_tui.widgets.dialogs import Dialog
from dld_tui.widgets.line_marks import MarksChanged
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.styled import Rows


class TargetsDialog(Dialog[list[str]]):
    """Gives the names that were marked, in the order of the list; None when it was closed.

    Args:
        names: Of all targets.
        marked: Those that are marked at first.
    """

    TITLE_TEXT = "Run on"
    KEYS = "Space mark  Enter take  Esc close"

    def __init__(self, names: Sequence[str], marked: Collection[str]) -> None:
        super().__init__()
        self.names = list(names)
        self.marked = set(marked)

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        text = "All of them run at once; their reports are compared."
        yield Rows([[(text, "dim")], []])
        view = LineView(ListSource(self._rows(), self.names))
        view.marks = set(self.marked)
        view.styles.height = max(2, min(len(self.names), self.app.size.height - 9))
        yield view

    def _rows(self) -> list[list[Piece]]:
        shown = glyphs.current()
        marks = [(shown.on, "accent") if n in self.marked else (shown.off, "dim")
                 for n in self.names]  # fmt: skip
        return [[mark, (f" {name}", "")] for mark, name in zip(marks, self.names, strict=True)]

    def on_line_view_marks_changed(self, event: MarksChanged) -> None:
        """Fill the boxes."""
        event.stop()
        self.marked = {str(key) for key in event.marks}
        event.view.set_lines(ListSource(self._rows(), self.names))

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the marked ones; without a mark, the one under the cursor."""
        event.stop()
        marked = [name for name in self.names if name in self.marked]
        self.dismiss(marked or [str(event.key)])
