"""Asks for a password or passphrase; what is typed is not shown."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.dialogs import Dialog
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.text_field import TextField
from dld_tui.widgets.wrap import wrap


class SecretDialog(Dialog[str]):
    """Gives what was typed, or None when it was closed.

    Args:
        question: What is asked for: foreign text.
    """

    KEYS = "Enter accept  Esc give up"
    TITLE_TEXT = "Secret"

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = visible(question)

    def body(self) -> Iterable[Widget]:
        """Return the question and the field."""
        yield Rows([*([(row, "")] for row in wrap(self._question, self.text_width)), []])
        yield _SecretField()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give what was typed."""
        event.stop()
        self.dismiss(event.value)


class _SecretField(TextField):
    """Draws dots; what it holds does not reach the clipboard."""

    def __init__(self) -> None:
        super().__init__()
        self.password = True

    @property
    def _value(self) -> Text:
        return Text(
            glyphs.current().mark * len(self.value), no_wrap=True, overflow="ignore", end=""
        )

    def action_copy(self) -> None:
        """Copy nothing."""

    def action_cut(self) -> None:
        """Cut nothing."""
