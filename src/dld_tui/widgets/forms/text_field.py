"""A text field that draws untrusted text safely, without a blinking cursor; one for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.suggester import Suggester
from textual.widgets import Input
from textual.widgets.input import Selection

from dld_tui.core.text import visible
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.model.rewrite.query import Completion


class TextField(Input):
    """Textual's field, but control characters in the value are drawn as symbols.

    A blinking cursor would send 2 kB a second.
    """

    def __init__(
        self,
        value: str = "",
        placeholder: str = "",
        *,
        suggester: Suggester | None = None,
        select_on_focus: bool = False,
        id: str | None = None,
    ) -> None:
        placeholder = glyphs.shown(placeholder)
        super().__init__(
            value, placeholder, suggester=suggester, select_on_focus=select_on_focus, id=id
        )
        self.cursor_blink = False

    def action_delete_left_all(self) -> None:
        """Delete all that is left of the cursor, a selection or not."""
        self.selection = Selection.cursor(self.selection.end)
        super().action_delete_left_all()

    @property
    def _value(self) -> Text:
        return Text(drawn(self.value), no_wrap=True, overflow="ignore", end="")


def drawn(text: str) -> str:
    """Return text of the same length with a symbol for each character that must not be drawn."""
    if visible(text) == text:
        return text
    return "".join(char if visible(char) == char else _symbol(char) for char in text)


def _symbol(char: str) -> str:
    code = ord(char)
    return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"


def text_field(value: str = "", placeholder: str = "", *, id: str | None = None) -> Input:
    """Return a text field; see :class:`~dld_tui.widgets.forms.text_field.TextField`."""
    return TextField(value, placeholder, id=id)


class _Suggester(Suggester):
    def __init__(self, completion: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._completion = completion

    async def get_suggestion(self, value: str) -> str | None:
        return self._completion.complete(value)


def query_field(value: str, placeholder: str, completion: Completion) -> TextField:
    """Return a field whose suggestion Right takes."""
    return TextField(value, placeholder, suggester=_Suggester(completion))
