"""One line to edit a value or a name in place, with what is wrong below; values in a few cells."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label

from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.node import Attribute
from dld_tui.core.model.tensors.literals import (
    LiteralError,
    format_literal,
    format_string,
    lines_literal,
    parse_literal,
)
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_name, value_type_of
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, is_array
from dld_tui.widgets.dialogs.dialogs import put_next
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import saves

if TYPE_CHECKING:
    from dld_tui.core.model.operators.schema import OperatorSchema

_MAX_LABEL = 32


class EditBar(Vertical):
    """Mount it at the end of a pane; it takes the keys and gives them back when done.

    Args:
        label: What is edited: untrusted text.
        value: The text to begin with.
        accept: Called with the text on Enter; a DldError that it raises is shown and the bar stays.
        placeholder: Shown while the field is empty.
        choices: The texts that there are, if they are few; the arrow keys go through them.
        list_kind: ``ints``, ``floats`` or ``strings`` where the text is the literal of such a list,
            which F2 shows in an area of its own, a value a line.
        open_grid: Opens such a list in the tensor editor, on F4.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("down", "cycle(1)", "next", show=False),
        Binding("up", "cycle(-1)", "previous", show=False),
        Binding("f2", "lines", "one value a line", show=False),
        Binding("f4", "grid", "tensor editor", show=False),
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
        open_grid: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._open_grid = open_grid
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
        """Make the edit, or show why it cannot be made."""
        event.stop()
        self._make()

    def on_key(self, event: events.Key) -> None:
        """Make the edit before the key saves the model."""
        if saves(self.screen, event) and not self._make():
            event.stop()

    def _make(self) -> bool:
        """Make the edit; False, with a message, if it cannot be made."""
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
        grid = "  F4 tensor editor" if self._open_grid is not None else ""
        return [(f"Enter accept  Esc cancel{choices}{lines}{grid}", "dim")]

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

    def action_grid(self) -> None:
        if self._open_grid is not None:
            self._leave()
            self._open_grid()

    def action_cancel(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._before is not None and self._before.is_attached:
            self._before.focus()
        self.remove()


MAX_ITEMS = 32
_MAX_BYTES = 400
_MAX_STRING = 60
_WORD = re.compile(r"\w+")
MAX_EDITABLE = 20_000
"""Characters of the longest literal that is offered for editing."""


def name_editor(name: str) -> tuple[str, Callable[[str], str]]:
    r"""Return how a name is shown for editing, and how what was typed is read.

    A name with characters that a terminal cannot show is edited with escapes such as ``\x1b``.
    """
    from dld_tui.core.model.tensors.literals import escaped, unescaped

    if visible(name) == name:
        return name, lambda text: text
    return escaped(name), unescaped


def value_text(value: Any) -> str:
    """Return one value in a few cells."""
    if isinstance(value, bytes | str):
        more = "…" if len(value) > _MAX_STRING else ""
        return visible(format_string(value[:_MAX_STRING])) + more
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.4g}"
    return number(float(value))


def number(value: float | None) -> str:
    """Return a figure in four digits."""
    return fmt.UNKNOWN if value is None else f"{float(value):.4g}"


def attribute_text(attribute: Attribute) -> str:
    """Return what is shown of an attribute's value, cut where it is long."""
    if attribute.reference is not None:
        return f"@{visible(attribute.reference)} of the function"
    blob = attribute.blob
    if blob is None:
        from dld_tui.core.model.document.operator_matching import attribute_word

        word = attribute_word(attribute)
        return word or literal_text(attribute.value, attribute.kind)
    try:
        head = format_literal(blob.read(0, _MAX_BYTES), "string")
    except DldError as error:
        return visible(error.message)
    return f"{head[:-1]}… {blob.length:,} bytes'"


def literal_text(value: Any, kind: str) -> str:
    """Return what is shown of a value of a kind, cut where it is long."""
    if value is None:
        return fmt.UNKNOWN
    if isinstance(value, Tensor):
        return f"{value.dtype}{visible(fmt.shape(value.shape))}"
    if is_array(value):
        value_list = value.reshape(-1)[:MAX_ITEMS].tolist()
        return f"{value.dtype}{fmt.shape(value.shape)} {visible(str(value_list))}"
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        return f"{len(value)} tensors"
    try:
        return _literal_text(value, kind)
    except (LiteralError, TypeError):
        return _message_text(value, kind)


def _literal_text(value: Any, kind: str) -> str:
    if isinstance(value, list):
        cut = [_cut(item) for item in value[:MAX_ITEMS]]
        text = format_literal(cut, kind)
        return text if len(value) <= MAX_ITEMS else f"{text[:-1]}, … {len(value):,} values]"
    cut = _cut(value)
    text = format_literal(cut, kind)
    return text if cut is value else f"{text[:-1]}… {len(value):,} bytes'"


def _cut(value: Any) -> Any:
    return value[:_MAX_BYTES] if isinstance(value, bytes) and len(value) > _MAX_BYTES else value


def _message_text(value: Any, kind: str) -> str:
    if kind == "sparse_tensor":
        elements = fmt.plural(Tensor(value.values, None).element_count, "element")
        dtype = dtype_name(value.values.data_type)
        return f"sparse {dtype}{visible(fmt.shape(tuple(value.dims)))}, {elements}"
    if kind == "type_proto":
        value_type = value_type_of(value)
        return visible(value_type.text) if value_type is not None else fmt.UNKNOWN
    if hasattr(value, "__len__"):
        return f"{len(value)} {kind.replace('_', ' ')}"
    return kind.replace("_", " ")


def editable_text(attribute: Attribute) -> str | None:
    """Return the literal to edit, or None when the value has none or it is too long."""
    from dld_tui.core.model.document.operator_matching import attribute_word

    value = attribute.value
    if (word := attribute_word(attribute)) is not None:
        return word
    if isinstance(value, Tensor):
        return _tensor_literal(value)
    if attribute.kind == "type_proto":
        known = value_type_of(value)
        return known.text if known is not None else ""
    blob = attribute.blob
    if blob is not None:
        if blob.length > MAX_EDITABLE // 2:
            return None
        try:
            value = blob.read()
        except DldError:  # the file got shorter: what is typed replaces the value
            return None
    if isinstance(value, list | bytes) and len(value) > MAX_EDITABLE // 2:
        return None
    try:
        text = format_literal(value, attribute.kind)
    except (LiteralError, TypeError):
        return None
    return text if len(text) <= MAX_EDITABLE else None


def _tensor_literal(tensor: Tensor) -> str | None:
    if tensor.dtype == "string" or tensor.element_count > MAX_ITEMS * MAX_ITEMS:
        return None
    try:
        text = format_literal(tensor.read().reshape(tensor.shape), "tensor")
    except (DldError, ValueError):
        return None
    # Narrow integers are read into int8: the literal keeps the tensor's own type.
    return tensor.dtype + text[len(_WORD.match(text).group()) :]  # type: ignore[union-attr]


def edit_value(
    text: str,
    kind: str,
    dtype: str | None = None,
    *,
    name: str = "",
    schema: OperatorSchema | None = None,
) -> JSON:
    """Return what was typed as the value that the ``set_attribute`` edit takes.

    Args:
        text: The literal, or the name of an element type where the attribute means one.
        kind: The attribute's kind.
        dtype: The element type of a tensor whose literal does not begin with one.
        name: The attribute's name.
        schema: The operator.

    Raises:
        LiteralError: The text is no literal of this kind.
    """
    from dld_tui.core.model.operators.attribute_words import integer_text

    if kind == "type_proto":
        return text.strip()
    if kind == "sparse_tensor":
        from dld_tui.core.model.tensors.sparse import read_sparse_lines

        return read_sparse_lines(text.replace(";", "\n"))
    if kind == "int":
        text = integer_text(name, text, schema)
    return _json_value(parse_literal(text, kind, dtype=dtype))


def _json_value(value: Any) -> JSON:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if not is_array(value):
        plain: JSON = value
        return plain
    if value.dtype == object:
        raise LiteralError("a tensor of strings cannot be edited here")
    from onnx import numpy_helper

    proto = numpy_helper.from_array(value)
    return {
        "dtype": dtype_name(proto.data_type),
        "dims": list(proto.dims),
        "raw": base64.b64encode(proto.raw_data).decode("ascii"),
    }
