"""The line in which a filter is typed, over a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from dld_tui.widgets.forms.text_field import text_field


class FilterBar(Horizontal):
    """The line in which the filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", "clear", show=False),
        Binding("down", "leave", "to the list", show=False),
    ]

    @dataclass
    class Changed(Message):
        """Another text was typed."""

        text: str

    @dataclass
    class Left(Message):
        """The keys go back to the list."""

        clear: bool

    def __init__(self, hint: str = "type or name", field: str = "explorer-filter") -> None:
        super().__init__()
        self._hint, self._field = hint, field

    def compose(self) -> ComposeResult:
        """Lay out the prompt and the field."""
        yield Label("/", markup=False)
        yield text_field("", self._hint, id=self._field)

    @on(Input.Changed)
    def text_changed(self, event: Input.Changed) -> None:
        """Pass the text on."""
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Keep the filter."""
        event.stop()
        self.post_message(self.Left(clear=False))

    def action_leave(self) -> None:
        """Keep the filter and go to the list."""
        self.post_message(self.Left(clear=False))

    def action_clear(self) -> None:
        """Forget the filter."""
        self.post_message(self.Left(clear=True))
