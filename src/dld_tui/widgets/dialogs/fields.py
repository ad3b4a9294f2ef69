"""A dialog with a few labelled fields, and one action that may refuse what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from textual import on
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.errors import DldError
from dld_tui.core.text import fit, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.fields import ChoiceField, field_text
from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.shell import glyphs

_LABEL = 12
"""Cells of a label."""


@dataclass(frozen=True)
class FieldSpec:
    """One field of the dialog."""

    label: str
    value: str = ""
    """What it begins with."""
    placeholder: str = ""
    choices: tuple[str, ...] = ()
    """The values of a field that is not typed."""


class FieldsDialog(Dialog[bool]):
    """Gives True once `accept` has taken the values, None when it was closed.

    Args:
        title: What is to be made or changed.
        message: A sentence over the fields.
        fields: The fields; Tab goes from one to the next.
        accept: Called with the texts on Enter; a DldError that it raises is shown and the dialog
            stays.
    """

    KEYS = "Tab next field  Enter accept  Esc close"

    def __init__(
        self,
        title: str,
        message: str,
        fields: Sequence[FieldSpec],
        accept: Callable[[list[str]], None],
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._message = message
        self._fields = fields
        self._accept = accept
        self._widgets = [_field(spec) for spec in fields]

    def body(self) -> Iterable[Widget]:
        """Return the sentence, the fields and the lines of an error."""
        if self._message:
            yield Rows([*([(row, "dim")] for row in wrap(self._message, self.text_width)), []])
        for spec, widget in zip(self._fields, self._widgets, strict=True):
            label = Rows([[(fit(spec.label, _LABEL), "dim")]])
            label.styles.width = _LABEL
            line = Horizontal(label, widget)
            line.styles.height = 1
            yield line
        yield Rows([[], []], id="problem")

    def on_mount(self) -> None:
        """Begin with the first field."""
        self._widgets[0].focus()

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        """Forget what was wrong with other texts."""
        event.stop()
        self.query_one("#problem", Rows).set_rows([[], []])

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Take the texts, or say why they cannot be taken."""
        event.stop()
        try:
            self._accept([field_text(widget) for widget in self._widgets])
        except DldError as error:
            text = f"{glyphs.current().error} {visible(str(error))}"
            rows = wrap(text, self.text_width)[:2]
            self.query_one("#problem", Rows).set_rows([[(row, "bad")] for row in rows])
            return
        self.dismiss(True)


def _field(spec: FieldSpec) -> Widget:
    if spec.choices:
        field: Widget = ChoiceField(spec.choices, spec.value or spec.choices[0])
    else:
        field = TextField(spec.value, spec.placeholder, select_on_focus=True)
    field.styles.width = "1fr"
    return field
