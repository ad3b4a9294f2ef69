"""A pattern or a rule, and what it would find or change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.errors import DldError
from dld_tui.core.text import clip, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.text_field import query_field
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.document.rewrite.query import Completion

_WAIT_S = 0.15
_LINES = 12

Look: TypeAlias = "Callable[[str], Awaitable[tuple[str, Sequence[str]]]]"


class RewriteDialog(Dialog[str]):
    """Gives the text when Enter is pressed.

    Args:
        value: The text to begin with.
        look: Returns a line of how many there are, and lines of what would change, for a text,
            which may be empty; not fit for a terminal. May raise a :class:`DldError` that says
            what is wrong with it. It is stopped where another text is typed meanwhile.
        completion: How words go on.
    """

    TITLE_TEXT = "Find and rewrite"
    KEYS = "Enter mark, or rewrite with =>  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "apply", "apply", show=False)]

    def __init__(self, value: str, look: Look, completion: Completion) -> None:
        super().__init__()
        self.completion = completion
        self.value = value
        self.look = look

    def body(self) -> Iterable[Widget]:
        example = "Mul(x, Sigmoid(x))   or   Identity(x) => x   or   gelu"
        yield query_field(self.value, example, self.completion)
        yield Rows([[] for _ in range(_LINES + 1)], id="rewrite-answer")

    def on_mount(self) -> None:
        """Say what is found now."""
        self.query_one(Input).focus()
        self.changed()

    @on(Input.Changed)
    def changed(self) -> None:
        """Look again when nothing was typed for a moment."""
        self.tasks.start(self._look(self.query_one(Input).value), "count", replace=True)

    async def _look(self, text: str) -> None:
        await asyncio.sleep(_WAIT_S)
        rows: list[list[Piece]]
        try:
            head, lines = await self.look(text)
        except DldError as error:
            mark = glyphs.current().error
            rows = [[(f"{mark} {clip(visible(str(error)), self.text_width - 2)}", "bad")]]
        else:
            rows = [[(visible(head), "strong")]]
            for line in lines[:_LINES]:
                style = {"-": "bad", "+": "good"}.get(line[:1], "")
                rows.append([(clip(visible(line), self.text_width), style)])
        rows += [[] for _ in range(_LINES + 1 - len(rows))]
        self.query_one("#rewrite-answer", Rows).set_rows(rows)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Give the text."""
        event.stop()
        self.action_apply()

    def action_apply(self) -> None:
        text = self.query_one(Input).value.strip()
        if text:
            self.dismiss(text)
