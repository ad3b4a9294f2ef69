"""Questions and errors over a page. Keys do not reach the page below."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.errors import DldError
from dld_tui.core.text import clip
from dld_tui.widgets import glyphs
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.front import Front
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.text_field import TextField
from dld_tui.widgets.wrap import wrap

T = TypeVar("T")
_WIDTH = 72
"""Cells of text in a dialog; less on narrow screens."""


class DialogBox(Frame, Vertical):
    """The framed box of a dialog."""


class Dialog(Front, ModalScreen[T | None]):
    """Base of the dialogs: a framed box in the middle; Esc closes it with None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "close", show=False)]
    TITLE_TEXT = ""
    KEYS = "Esc close"

    def compose(self) -> ComposeResult:
        """Lay out the box."""
        box = DialogBox(*self.body(), classes="dialog")
        box.frame(self.TITLE_TEXT, self.KEYS)
        yield box

    def body(self) -> Iterable[Widget]:
        """Return the widgets in the box."""
        return ()

    @property
    def text_width(self) -> int:
        """The cells there are for text."""
        return max(20, min(_WIDTH, self.app.size.width - 8))

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


def _rows(text: str, width: int, style: str = "") -> list[list[Piece]]:
    return [[(row, style)] for line in text.split("\n") for row in wrap(line, width)]


class ErrorDialog(Dialog[None]):
    """What failed, on what, what to do next, and details that can be copied."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close", "close", show=False),
        Binding("y", "copy", "copy", show=False),
    ]
    KEYS = "y copy  Esc close"

    def __init__(self, error: BaseException, title: str = "") -> None:
        super().__init__()
        self.error = error
        self.TITLE_TEXT = title or ("Failed" if isinstance(error, DldError) else "Internal error")

    def body(self) -> Iterable[Widget]:
        """Return the message, the hint and the details."""
        width = self.text_width
        message, hint, details = explain(self.error)
        mark = glyphs.current().error
        rows = [[(f"{mark} " if n == 0 else "  ", "bad"), (row, "strong")]
                for n, row in enumerate(wrap(message, width - 2))]  # fmt: skip
        if hint:
            rows += [[], *_rows(hint, width)]
        yield Rows(rows)
        if details:
            lines = _rows(details, width - 1, "dim")
            view = LineView(ListSource(lines), gutter=False)
            view.styles.height = min(len(lines), max(3, self.app.size.height - len(rows) - 8))
            view.styles.margin = (1, 0, 0, 0)
            yield view

    def on_mount(self) -> None:
        """Show the end of a traceback: it says most."""
        for view in self.query(LineView):
            view.cursor = len(view.lines) if not isinstance(self.error, DldError) else 0

    def action_copy(self) -> None:
        """Copy everything that is known of the error."""
        message, hint, details = explain(self.error)
        self.app.copy_to_clipboard("\n".join(part for part in (message, hint, details) if part))


def explain(error: BaseException) -> tuple[str, str, str]:
    """Return (message, hint, details) of an error; details of a bug are its traceback."""
    if isinstance(error, DldError):
        message = f"{error.where}: {error.message}" if error.where else error.message
        return message, error.hint or "", error.details or ""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "This is a fault of the program. Your files are as they were; the log has the details."
    return message, hint, "".join(traceback.format_exception(error))


@dataclass(frozen=True)
class Choice:
    """One answer of a question."""

    key: str
    """A letter that chooses it at once."""
    label: str
    value: str


class ChoiceDialog(Dialog[str]):
    """A question with a few answers; gives the chosen ``value``, or None."""

    KEYS = "Enter choose  Esc close"

    def __init__(self, title: str, message: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.message = message
        self.choices = choices

    def body(self) -> Iterable[Widget]:
        """Return the question and its answers."""
        yield Rows([*_rows(self.message, self.text_width), []])
        room = self.text_width - 6
        rows = [
            [(choice.key, "key"), (f"  {clip(choice.label, room)}", "")] for choice in self.choices
        ]
        view = LineView(ListSource(rows, [choice.value for choice in self.choices]))
        view.styles.height = len(rows)
        yield view

    def on_mount(self) -> None:
        """Let every answer's letter choose it."""
        for choice in self.choices:
            # The letters win over the keys of the list, such as g and k.
            action = f"choose({choice.value!r})"
            self._bindings.bind(choice.key, action, show=False, priority=True)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the answer at the cursor."""
        event.stop()
        self.dismiss(str(event.key))

    def action_choose(self, value: str) -> None:
        """Give an answer by its letter."""
        self.dismiss(value)


class PromptDialog(Dialog[str]):
    """Asks for one line of text; an inline error says what is wrong with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "cycle(1)", "next", show=False),
        Binding("up", "cycle(-1)", "previous", show=False),
        Binding("f2", "lines", "one value a line", show=False),
    ]
    KEYS = "Enter accept  Esc close"

    def __init__(
        self,
        title: str,
        message: str = "",
        value: str = "",
        *,
        check: Callable[[str], str | None] | None = None,
        placeholder: str = "",
        choices: Sequence[str] = (),
        list_kind: str = "",
    ) -> None:
        """Make the question.

        Args:
            title: What is asked for.
            message: More on it.
            value: The text to begin with.
            check: Returns what is wrong with a text, or None.
            placeholder: Shown while the field is empty.
            choices: The texts that there are, if they are few; the arrow keys go through them.
            list_kind: ``ints``, ``floats`` or ``strings`` where the text is the literal of such a
                list, which F2 shows in an area of its own, a value a line.
        """
        super().__init__()
        self.choices = tuple(choices)
        self.list_kind = list_kind
        if choices:
            self.KEYS = f"Up Down choose  {self.KEYS}"
        elif list_kind:
            self.KEYS = f"F2 one value a line  {self.KEYS}"
        self.TITLE_TEXT = title
        self.message = message
        self.value = value
        self.check = check
        self.placeholder = placeholder

    def body(self) -> Iterable[Widget]:
        """Return the question, the field and the line of its error."""
        if self.message:
            yield Rows([*_rows(self.message, self.text_width, "dim"), []])
        if self.choices:
            yield Rows([*_rows("  ".join(self.choices), self.text_width), []])
        yield text_field(self.value, self.placeholder)
        yield Rows([[]], id="problem")

    def action_cycle(self, step: int) -> None:
        """Put in the next or previous of the texts that there are."""
        if self.choices:
            put_next(self.query_one(Input), self.choices, step)

    def action_lines(self) -> None:
        """Edit a list in several lines."""
        if not self.list_kind:
            return
        # Lazy: a text area takes long to load.
        from dld_tui.core.document.list_lines import lines_literal
        from dld_tui.widgets.text_dialog import list_dialog

        field = self.query_one(Input)

        def edited(text: str | None) -> None:
            if text is not None:
                field.value = lines_literal(text, self.list_kind)
                if not self._problem(field.value):
                    self.dismiss(field.value)

        if not field.value.strip() or not self._problem(field.value):
            self.app.push_screen(list_dialog(self.TITLE_TEXT, field.value, self.list_kind), edited)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what is wrong with the text."""
        self._problem(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the text when nothing is wrong with it."""
        event.stop()
        if not self._problem(event.value):
            self.dismiss(event.value)

    def _problem(self, value: str) -> str | None:
        problem = self.check(value) if self.check else None
        mark = glyphs.current().error
        row: list[Piece] = [(f"{mark} {problem}", "bad")] if problem else []
        self.query_one("#problem", Rows).set_rows([row])
        return problem


def put_next(field: Input, choices: Sequence[str], step: int) -> None:
    """Put the text after or before the present one of a list into a field."""
    if field.value in choices:
        at = (choices.index(field.value) + step) % len(choices)
    else:
        at = 0 if step > 0 else len(choices) - 1
    field.value = choices[at]
    field.cursor_position = len(field.value)


def text_field(value: str = "", placeholder: str = "", *, id: str | None = None) -> Input:
    """Return a text field; see :class:`~dld_tui.widgets.text_field.TextField`."""
    return TextField(value, placeholder, id=id)
