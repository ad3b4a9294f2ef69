"""Text of a result: as a few rows above a table, and whole in a dialog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core.dataclass import dataclass
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogText
from dld_tui.widgets.lists.styled import Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

_LEAST_TABLE = 10
"""Rows of the screen that the table keeps."""
_MOST = 11
"""Rows of the head, at most."""
_OTHER_ROWS = 8
"""Rows of the screen around a dialog's text."""


@dataclass(frozen=True)
class Paragraph:
    """Some text, which may be foreign."""

    text: str
    style: str = ""
    label: Piece = (" ", "")
    """The label before it; later rows begin below its end."""


class ResultHead(Rows):
    """Paragraphs; the last ones give way to a row that names the key to see them."""

    def __init__(
        self, paragraphs: Sequence[Paragraph] = (), *, keys: str = "", below: int = 0
    ) -> None:
        """Make it.

        Args:
            paragraphs: What is shown.
            keys: How to see what there is no room for.
            below: Rows that something between it and the table takes.
        """
        super().__init__(id="head")
        self._paragraphs = list(paragraphs)
        self._keys, self._below = keys, below
        self._rendered: tuple[tuple[int, int], list[list[Piece]]] | None = None

    def set_paragraphs(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show other text."""
        if list(paragraphs) != self._paragraphs:
            self._paragraphs, self._rendered = list(paragraphs), None
            self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        room = max(4, min(_MOST, self.app.size.height - _LEAST_TABLE - self._below))
        if self._rendered is None or self._rendered[0] != (width, room):
            rows = paragraph_rows(self._paragraphs, width)
            if len(rows) > room:
                rows[room - 1 :] = [[(f" {glyphs.current().ellipsis} {hint(self._keys)}", "dim")]]
            self._rendered = ((width, room), rows)
        return self._rendered[1]


def paragraph_rows(paragraphs: Iterable[Paragraph], width: int) -> list[list[Piece]]:
    """Return paragraphs as rows of a width in cells."""
    rows: list[list[Piece]] = []
    for paragraph in paragraphs:
        label, style = paragraph.label
        for at, text in enumerate(wrap(paragraph.text, max(10, width - len(label) - 1))):
            before = (label, style) if at == 0 else (" " * len(label), "")
            rows.append([before, (text, paragraph.style)])
    return rows


class ParagraphsDialog(Dialog[None]):
    """Shows all paragraphs.

    Args:
        title: What they are about.
        paragraphs: All of them.
    """

    KEYS = "Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "close", show=False, priority=True)]

    def __init__(self, title: str, paragraphs: Sequence[Paragraph]) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._paragraphs = paragraphs

    def body(self) -> Iterable[Widget]:
        yield DialogText(partial(paragraph_rows, self._paragraphs), _OTHER_ROWS)
