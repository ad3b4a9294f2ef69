"""One line to edit a value or a name in place; what is wrong shows below, nothing typed is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label

from dld_tui.core.document.literals import lines_literal
from dld_tui.core.errors import DldError
from dld_tui.core.text import clip, visible
from dld_tui.widgets.dialogs.dialogs import put_next
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.commands import saves

_MAX_LABEL = 32


class EditBar(Vertical):
    """Mount it at the end of a pane; it takes the keys and gives them back when done.

    Args:
        label: What is edited: foreign text.
        value: The text to begin with.
        accept: Called with the text on Enter; a DldError that it raises is shown and the bar stays.
        placeholder: Shown while the field is empty.
        choices: The texts that there are, if they are few; the arrow keys go through them.
        list_kind: ``ints``, ``floats`` or ``strings`` where the text is the literal of such a list,
            which F2 shows in an area of its own, a value a line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("down", "cycle(1)", "next", show=False),
        Binding("up", "cycle(-1)", "previous", show=False),
        Binding("f2", "lines", "one value a line", show=False),
    ]

    def __init__(
        self,
        label: str,
        value: str,
        accept: Callable[[str], None],
        *,
        placeholder: str = "",
        choices: Sequence[str] = (),
        list_kind: str = "",
    ) -> None:
        super().__init__()
        self._label = clip(visible(label), _MAX_LABEL, keep="middle")
        self._value = value
        self._accept = accept
        self._placeholder = placeholder
        self.choices = tuple(choices)
        self.list_kind = list_kind
        self._before: Widget | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(self._label, markup=False)
            yield text_field(self._value, self._placeholder)
        yield Rows([self._help])

    def on_mount(self) -> None:
        """Take the keys; what is typed takes the place of the text, keys that move keep it."""
        self._before = self.screen.focused
        for bar in self.screen.query(EditBar):
            if bar is not self:
                bar.remove()
        field = self.query_one(Input)
        field.focus()
        field.select_all()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Make the edit, or say why it cannot be made."""
        event.stop()
        self._make()

    def on_key(self, event: events.Key) -> None:
        """Make the edit before the key saves the model."""
        if saves(self.screen, event) and not self._make():
            event.stop()

    def _make(self) -> bool:
        """Make the edit; False when it cannot be made, and that is said."""
        try:
            self._accept(self.query_one(Input).value)
        except DldError as error:
            self._show_problem(error)
            return False
        self._leave()
        return True

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        """Forget what was wrong with another text."""
        event.stop()
        self.query_one(Rows).set_rows([self._help])

    def _show_problem(self, error: DldError) -> None:
        text = f"{error.where}: {error.message}" if error.where else error.message
        if error.hint:
            text += f". {error.hint}"
        self.query_one(Rows).set_rows([[(f"{glyphs.current().error} {visible(text)}", "bad")]])
        column = getattr(error, "column", None)
        if isinstance(column, int):
            self.query_one(Input).cursor_position = column - 1

    @property
    def _help(self) -> list[tuple[str, str]]:
        choices = f"  Up Down {' '.join(self.choices)}" if self.choices else ""
        lines = "  F2 one value a line" if self.list_kind else ""
        return [(f"Enter accept  Esc cancel{choices}{lines}", "dim")]

    def action_cycle(self, step: int) -> None:
        if self.choices:
            put_next(self.query_one(Input), self.choices, step)

    def action_lines(self) -> None:
        if not self.list_kind:
            return
        from dld_tui.widgets.dialogs.dialogs import (
            list_dialog,  # lazy: a text area takes long to load
        )

        field = self.query_one(Input)

        def edited(text: str | None) -> None:
            if text is None or not self.is_attached:
                return
            field.value = lines_literal(text, self.list_kind)
            self._make()

        try:
            dialog = list_dialog(self._label, field.value, self.list_kind)
        except DldError as error:
            self._show_problem(error)
            return
        self.app.push_screen(dialog, edited)

    def action_cancel(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._before is not None and self._before.is_attached:
            self._before.focus()
        self.remove()
