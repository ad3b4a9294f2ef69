"""The controls of a form: text, path, choice and switch, one row high each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widget import Widget

from dld_tui.core.params import Setting
from dld_tui.widgets.forms.path_input import complete, find_matches
from dld_tui.widgets.forms.text_field import TextField, drawn
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.tasks import on_thread


def step_focus(widget: Widget, step: int) -> None:
    """Go to the field after or before the focused one, but not round."""
    chain = widget.screen.focus_chain
    focused = widget.screen.focused
    at = chain.index(focused) + step if focused in chain else -1
    if 0 <= at < len(chain):
        widget.screen.set_focus(chain[at])  # at once: another key may wait already


class ChoiceField(Rows, can_focus=True):
    """One of a few values: left and right (or a click) change it; space goes to the next."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space,enter", "step(1)", show=False),
        Binding("left,h", "step(-1)", show=False),
        Binding("down,j", "next_field(1)", show=False),
        Binding("up,k", "next_field(-1)", show=False),
    ]
    value: reactive[str] = reactive("", repaint=False)

    @dataclass
    class Changed(Message):
        """Another value was chosen."""

        field: ChoiceField
        value: str

    def __init__(self, choices: Sequence[str], value: str) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self.set_reactive(ChoiceField.value, value)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return all choices in one row when they fit, else the chosen one between arrows."""
        shown = glyphs.current()
        if sum(len(choice) + 6 for choice in self.choices) <= width:
            pieces: list[Piece] = []
            for choice in self.choices:
                mine = choice == self.value
                mark = shown.chosen if mine else shown.unchosen
                pieces += [(f"{mark} ", "accent" if mine else "dim")]
                pieces += [(f"{choice}  ", "" if mine else "dim")]
            return [pieces]
        return [[(f"{shown.left} ", "dim"), (self.value, ""), (f" {shown.right}", "dim")]]

    def watch_value(self) -> None:
        """Show and tell the value."""
        self.refresh()
        self.post_message(self.Changed(self, self.value))

    def action_next_field(self, step: int) -> None:
        step_focus(self, step)

    def action_step(self, step: int) -> None:
        at = self.choices.index(self.value) if self.value in self.choices else -1
        self.value = self.choices[(at + step) % len(self.choices)]

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked."""
        self.focus()
        left = 0
        for choice in self.choices:
            left += len(choice) + 6
            if event.x < left:
                self.value = choice
                return


class SwitchField(ChoiceField):
    """On or off."""

    def __init__(self, value: bool) -> None:
        super().__init__(("on", "off"), "on" if value else "off")

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        shown = glyphs.current()
        is_on = self.value == "on"
        return [[(shown.on if is_on else shown.off, "accent" if is_on else "dim")]]

    def on_click(self, event: events.Click) -> None:
        """Turn it over."""
        self.focus()
        self.action_step(1)


class _Paths(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        if not value:
            return None
        found = await on_thread(find_matches, value)
        longer = complete(value, found[:1]) if found else value
        return (
            longer
            if longer != value and longer.startswith(value) and drawn(longer) == longer
            else None
        )


def field_for(setting: Setting, text: str) -> Widget:
    """Return the control that suits a setting."""
    about = setting.param
    if setting.type is bool:
        return SwitchField(text == "True")
    if about.choices:
        return ChoiceField(about.choices, text)
    suggester = _Paths() if about.kind in ("file", "folder", "output") else None
    return TextField(text, suggester=suggester, select_on_focus=True)


def field_text(field: Widget) -> str:
    """Return what is typed or chosen in a control."""
    return str(getattr(field, "value", ""))
