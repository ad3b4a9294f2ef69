"""Questions, errors, secrets, paths and texts over a page. Keys do not reach the page below."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Sequence, Sized
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.forms.param_form import ChoiceField, field_text
from dld_tui.widgets.forms.path_input import PathInput
from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.lists.line_view import LaidOutView, LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, WrappedRows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import CommandScreen

if TYPE_CHECKING:
    from textual.widgets import TextArea


T = TypeVar("T")


class DialogBox(Framed, Vertical):
    """The framed box of a dialog."""


class Dialog(CommandScreen, ModalScreen[T | None]):
    """Base of the dialogs: a framed box in the middle; Esc closes it with None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "close", show=False)]
    TITLE_TEXT = ""
    KEYS = "Esc close"
    WIDTH: ClassVar[int] = 72
    """Cells of text; less on narrow screens."""
    NEEDS_TO_BE_SEEN: ClassVar[bool] = False
    """Whether it only takes keys that were typed after it was drawn. Not so for what a key opens:
    the keys behind that one are for it."""

    def on_mount(self) -> None:
        """Take note of when it is drawn."""
        if self.NEEDS_TO_BE_SEEN:
            self.seen_at = math.inf
            self.call_after_refresh(self._note_seen)

    def _note_seen(self) -> None:
        self.seen_at = monotonic()

    def compose(self) -> ComposeResult:
        """Lay out the box."""
        box = DialogBox(*self.body(), classes="dialog")
        box.frame.show(self.TITLE_TEXT, self.KEYS)
        yield box

    def body(self) -> Iterable[Widget]:
        """Return the widgets in the box."""
        return ()

    @property
    def text_width(self) -> int:
        """The cells there are for text."""
        return max(20, min(self.WIDTH, self.app.size.width - 8))

    def action_close(self) -> None:
        self.go_back()

    def go_back(self) -> None:
        """Answer Esc; a dialog that has something to take back first overrides it."""
        self.dismiss(None)


class DialogText(LaidOutView):
    """Text of a dialog that is only read: as high as it is, where the screen has room for it."""

    MARGIN = 0
    shows_cursor = False

    def __init__(self, rows: Callable[[int], Sequence[Sequence[Piece]]], rest: int) -> None:
        """Show rows for a width.

        Args:
            rows: Makes them.
            rest: Rows of the screen that are left to other things.
        """
        super().__init__(classes=None)
        self._make, self._rest = rows, rest

    def on_mount(self) -> None:
        """Take the room of the text at the width that dialogs have."""
        if isinstance(self.screen, Dialog):
            self._take(self.laid_out(self.screen.text_width))

    def laid_out(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the rows."""
        rows = self._make(width)
        if len(rows) > self._most:
            rows = self._make(width - 1)  # beside a scrollbar
        return rows

    def step(self, rows: int) -> None:
        """Scroll: no row is the cursor's."""
        self._scroll_rows(self.scroll_offset.y + rows)

    def step_page(self, way: int) -> None:
        """Scroll by a page."""
        self.step(way * max(1, self.page - 1))

    def draw(self) -> None:
        """Lay out the rows, and take the room that they need."""
        super().draw()
        self._take(self.lines)

    @property
    def _most(self) -> int:
        return max(3, self.app.size.height - self._rest)

    def _take(self, rows: Sized) -> None:
        self.styles.height = max(1, min(len(rows), self._most))


def _rows(text: str, width: int, style: str = "") -> list[list[Piece]]:
    return [[(row, style)] for line in text.split("\n") for row in wrap(line, width)]


class ErrorDialog(Dialog[None]):
    """What failed, on what, what to do next, and details that can be copied."""

    NEEDS_TO_BE_SEEN = True
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
        message, hint, details = explain(self.error)
        texts: list[Piece] = [(f"{glyphs.current().error} {message}", "bad strong")]
        if hint:
            texts += [("", ""), (hint, "")]
        yield WrappedRows(*texts)
        if details:
            rest = 8 + sum(len(wrap(text, self.text_width)) for text, _ in texts)
            view = DialogText(lambda width: _rows(details, width, "dim"), rest)
            view.styles.margin = (1, 0, 0, 0)
            yield view

    def on_mount(self) -> None:
        """Show the end of a traceback: it says most."""
        for view in self.query(LineView):
            view.cursor = len(view.lines) if not isinstance(self.error, DldError) else 0

    def on_line_view_activated(self) -> None:
        """Close: the details take Enter before the dialog does."""
        self.action_close()

    def action_copy(self) -> None:
        message, hint, details = explain(self.error)
        self.app.copy_to_clipboard("\n".join(part for part in (message, hint, details) if part))


def explain(error: BaseException) -> tuple[str, str, str]:
    """Return (message, hint, details) of an error; details of a bug are its traceback."""
    if isinstance(error, DldError):
        message = f"{error.where}: {error.message}" if error.where else error.message
        return message, error.hint or "", error.details or ""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "This is a bug in dld. Your files are unchanged; the log has the details."
    return message, hint, "".join(traceback.format_exception(error))


_OTHER_ROWS = 9
"""Rows of the screen that a question leaves free, and its frame takes."""


@dataclass(frozen=True)
class Choice:
    """One answer of a question."""

    key: str
    """A letter that chooses it at once."""
    label: str
    value: str
    about: str = ""
    """More about it: beside the label as far as it fits, and whole for the one at the cursor."""


class ChoiceDialog(Dialog[str]):
    """A question with a few answers; gives the chosen ``value``, or None."""

    KEYS = "Enter choose  Esc close"

    def __init__(self, title: str, message: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.message = message
        self.choices = choices

    def body(self) -> Iterable[Widget]:
        yield WrappedRows((self.message, ""), ("", ""))
        room = self.text_width - 6
        labels = max(cell_width(choice.label) for choice in self.choices)
        rows: list[list[Piece]] = []
        for choice in self.choices:
            label = fit(choice.label, min(labels, room)) if choice.about else choice.label
            about = clip(f"  {choice.about}", max(0, room - labels)) if choice.about else ""
            row: list[Piece] = [(choice.key, "key"), (f"  {clip(label, room)}", ""), (about, "dim")]
            rows.append(row)
        view = LineView(ListSource(rows, [choice.value for choice in self.choices]))
        cells = (labels + 2 + cell_width(choice.about) if choice.about else cell_width(choice.label)
                 for choice in self.choices)  # fmt: skip
        whole = self._whole(0) if max(cells) > room else []
        below = len(whole) + len(_rows(self.message, self.text_width)) + _OTHER_ROWS
        view.styles.height = max(1, min(len(rows), self.app.size.height - below))
        yield view
        if whole:
            yield Rows(whole, id="whole")

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show the whole answer under the cursor where answers are cut."""
        for whole in self.query("#whole").results(Rows):
            whole.set_rows(self._whole(event.index))

    def _whole(self, index: int) -> list[list[Piece]]:
        """Return an answer in as many rows as the longest one takes, below a blank one."""
        texts = [
            _rows(choice.about or choice.label, self.text_width, "dim") for choice in self.choices
        ]
        blank = max(map(len, texts)) - len(texts[index])
        return [[], *texts[index], *([] for _ in range(blank))]

    def on_mount(self) -> None:
        """Let every answer's letter choose it."""
        for choice in self.choices:
            # The letters win over the keys of the list, such as g and k.
            self.take_key(choice.key, f"choose({choice.value!r})")

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the answer at the cursor."""
        event.stop()
        self.dismiss(str(event.key))

    def action_choose(self, value: str) -> None:
        self.dismiss(value)


class QuestionDialog(ChoiceDialog):
    """A question before something is lost for good. Its first answer is the one that loses nothing.

    Keys that were typed before it was seen do not answer it.
    """

    NEEDS_TO_BE_SEEN = True


class QuitDialog(ChoiceDialog):
    """The question before the program ends, which only keys answer that have seen it."""

    NEEDS_TO_BE_SEEN = True


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
        if self.message:
            yield WrappedRows((self.message, "dim"), ("", ""))
        if self.choices:
            yield WrappedRows(("  ".join(self.choices), ""), ("", ""))
        yield TextField(self.value, self.placeholder, select_on_focus=True)
        yield Rows([[]], id="problem")

    def action_cycle(self, step: int) -> None:
        if self.choices:
            put_next(self.query_one(Input), self.choices, step)

    def action_lines(self) -> None:
        if not self.list_kind:
            return
        # Lazy: a text area takes long to load.
        from dld_tui.core.model.tensors.literals import lines_literal

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


class SecretDialog(Dialog[str]):
    """Gives what was typed, or None when it was closed.

    Args:
        question: What is asked for: untrusted text.
    """

    KEYS = "Enter accept  Esc cancel"
    TITLE_TEXT = "Secret"
    NEEDS_TO_BE_SEEN = True

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = visible(question)

    def body(self) -> Iterable[Widget]:
        yield WrappedRows((self._question, ""), ("", ""))
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


_OTHER_ROWS = 8
"""Rows of the screen that the text leaves to the rest of the dialog."""
_MOST_ROWS = 30


SPARSE_NOTE = "Type and dimensions, then an element a line: indices = value."
"""What to say of the text of a sparse tensor."""


class TextDialog(Dialog[str]):
    """Gives the text as it was left, or None.

    Args:
        title: What is edited: untrusted text.
        text: The text to begin with.
        check: Raises what is wrong with what was typed. The text is then shown and given as it is.
        note: What to say below the text.
    """

    KEYS = "^S accept  Esc close"
    WIDTH = 100
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
            note = "Unprintable characters are written with a backslash, such as \\x1b."
        self._note = note

    def body(self) -> Iterable[Widget]:
        from textual.widgets import TextArea  # lazy: 2 MB that few sessions need

        area = TextArea(self._shown, soft_wrap=True, tab_behavior="focus", theme="css")
        area.cursor_blink = False  # over a slow line every blink is sent
        area.show_line_numbers = False
        area.highlight_cursor_line = False
        area.styles.height = max(4, min(_MOST_ROWS, self.app.size.height - _OTHER_ROWS))
        yield area
        yield Rows([[(self._note, "dim")]], id="problem")

    def on_mount(self) -> None:
        """Take the room there is; the cursor is at the end of the text."""
        self.query_one(DialogBox).styles.width = self.text_width + 4
        area = self._area()
        area.focus()
        area.move_cursor(area.document.end)

    def _area(self) -> TextArea:
        from textual.widgets import TextArea

        return self.query_one(TextArea)

    def action_accept(self) -> None:
        try:
            text = self._read(self._area().text)
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
    from dld_tui.core.model.tensors.literals import lines_literal, list_lines, parse_literal

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
    from dld_tui.core.model.tensors.literals import escaped, unescaped

    return "\n".join(map(escaped, lines)), lambda typed: "\n".join(
        map(unescaped, typed.split("\n"))
    )


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
        preview: Says what texts would do, in a line or two below the fields; a DldError that it
            raises is shown, too.
    """

    KEYS = "Tab next field  Enter accept  Esc close"

    def __init__(
        self,
        title: str,
        message: str,
        fields: Sequence[FieldSpec],
        accept: Callable[[list[str]], None],
        preview: Callable[[list[str]], str] | None = None,
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._message = message
        self._fields = fields
        self._accept = accept
        self._preview = preview
        self._widgets = [_field(spec) for spec in fields]

    def body(self) -> Iterable[Widget]:
        if self._message:
            yield WrappedRows((self._message, "dim"), ("", ""))
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
        """Forget what was wrong with other texts, and say what these would do."""
        event.stop()
        self._say_preview()

    @on(ChoiceField.Changed)
    def chosen(self, event: ChoiceField.Changed) -> None:
        """Say what another choice would do."""
        event.stop()
        self._say_preview()

    def _say_preview(self) -> None:
        texts = [field_text(widget) for widget in self._widgets]
        try:
            text = self._preview(texts) if self._preview is not None else ""
        except DldError as error:
            self._complain(error)
            return
        rows = wrap(text, self.text_width)[:2]
        self.query_one("#problem", Rows).set_rows([*([(row, "dim")] for row in rows), [], []][:2])

    def _complain(self, error: DldError) -> None:
        rows = wrap(f"{glyphs.current().error} {visible(str(error))}", self.text_width)[:2]
        self.query_one("#problem", Rows).set_rows([[(row, "bad")] for row in rows])

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Accept the texts, or show why not."""
        event.stop()
        try:
            self._accept([field_text(widget) for widget in self._widgets])
        except DldError as error:
            self._complain(error)
            return
        self.dismiss(True)


def _field(spec: FieldSpec) -> Widget:
    if spec.choices:
        field: Widget = ChoiceField(spec.choices, spec.value or spec.choices[0])
    else:
        field = TextField(spec.value, spec.placeholder, select_on_focus=True)
    field.styles.width = "1fr"
    return field


MODELS = (
    ".onnx", ".onnxtxt", ".onnxtext", ".textproto", ".txtpb", ".prototxt", ".pbtxt", ".json",
    ".onnxjson",
)  # fmt: skip
OPENED = (
    *MODELS, ".dldprof", ".json.gz", ".gz", ".tea", ".log", ".txt", ".csv", ".sqlite", ".engine",
    ".plan", ".trt", ".jsonl",
)  # fmt: skip
"""Endings of models, and of all files that a page shows."""


class OpenPathDialog(Dialog[Path]):
    """Gives a path, or None. Also used for saving, with another title."""

    KEYS = "Tab complete  Enter accept  Esc close"

    def __init__(
        self,
        title: str = "Open",
        value: str = "",
        placeholder: str = "",
        about: str = "",
        *,
        endings: tuple[str, ...] = OPENED,
        is_new: bool = False,
    ) -> None:
        """Make the question; `about` is a line above the field.

        The files that are offered have one of the endings; `is_new` is for a file to write.
        """
        super().__init__()
        self.endings, self.is_new = endings, is_new
        self.about = about
        self.TITLE_TEXT = title
        self.value = value
        self.placeholder = placeholder

    def body(self) -> Iterable[Widget]:
        if self.about:
            yield WrappedRows((self.about, ""), ("", ""))
        placeholder = self.placeholder or "path of a model or a report"
        yield PathInput(
            self.value,
            placeholder,
            rows=10,
            always_lists=True,
            endings=self.endings,
            is_new=self.is_new,
        )

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        """Give the path."""
        event.stop()
        self.dismiss(event.path)
