"""Editing text of several lines, such as a doc string, over a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, cast

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import TextArea

from dld_tui.core.document.list_lines import lines_literal, list_lines
from dld_tui.core.document.literals import format_literal, parse_literal
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.dialogs import Dialog, DialogBox
from dld_tui.widgets.styled import Rows

_OTHER_ROWS = 8
"""Rows of the screen that the text leaves to the rest of the dialog."""
_WIDTH = 100
_MOST_ROWS = 30


class TextDialog(Dialog[str]):
    """Gives the text as it was left, or None.

    Args:
        title: What is edited: foreign text.
        text: The text to begin with.
        check: Raises what is wrong with what was typed. The text is then shown and given as it is.
        note: What to say below the text.
    """

    KEYS = "^S accept  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f5", "accept", "accept", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        text: str,
        *,
        check: Callable[[str], object] | None = None,
        note: str = "",
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self._shown, self._read = (text, str) if check is not None else text_editor(text)
        self._check = check
        if self._shown != text:
            note = "Odd characters are written with a backslash, as \\x1b."
        self._note = note

    @property
    def text_width(self) -> int:
        """The cells there are for text."""
        return max(20, min(_WIDTH, self.app.size.width - 8))

    def body(self) -> Iterable[Widget]:
        """Return the text and the line of its error."""
        area = TextArea(self._shown, soft_wrap=True, tab_behavior="focus", theme="css")
        area.show_line_numbers = False
        area.highlight_cursor_line = False
        area.styles.height = max(4, min(_MOST_ROWS, self.app.size.height - _OTHER_ROWS))
        yield area
        yield Rows([[(self._note, "dim")]], id="problem")

    def on_mount(self) -> None:
        """Take the room there is; the cursor is at the end of the text."""
        self.query_one(DialogBox).styles.width = self.text_width + 4
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_accept(self) -> None:
        """Give the text, or say what is wrong with it."""
        try:
            text = self._read(self.query_one(TextArea).text)
            if self._check is not None:
                self._check(text)
        except DldError as error:
            mark = glyphs.current().error
            row = [(f"{mark} {visible(str(error))}", "bad")]
            self.query_one("#problem", Rows).set_rows([row])
            return
        self.dismiss(text)


def list_dialog(title: str, literal: str, kind: str) -> TextDialog:
    """Return the dialog that edits a list of ``ints``, ``floats`` or ``strings``, a value a line.

    Raises:
        UsageError: `literal` is no such list.
    """
    text = list_lines(parse_literal(literal, kind), kind) if literal.strip() else ""
    return TextDialog(
        title, text, check=lambda typed: lines_literal(typed, kind), note="One value a line."
    )


def text_editor(text: str) -> tuple[str, Callable[[str], str]]:
    r"""Return how a text of several lines is shown for editing, and how what was typed is read.

    A text with characters that a terminal cannot show is edited with escapes such as ``\x1b``.
    """
    lines = text.split("\n")
    if all(visible(line.replace("\t", "")) == line.replace("\t", "") for line in lines):
        return text, lambda typed: typed

    def shown(line: str) -> str:
        return format_literal(line.encode("utf-8", "surrogateescape"), "string")[1:-1]

    def read(typed: str) -> str:
        try:
            values = [parse_literal(f"'{line}'", "string") for line in typed.split("\n")]
        except UsageError as error:
            raise UsageError(error.message, hint="Write \\\\ for a backslash") from None
        return "\n".join(cast("bytes", v).decode("utf-8", "surrogateescape") for v in values)

    return "\n".join(map(shown, lines)), read
