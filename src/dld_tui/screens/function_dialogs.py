"""The questions about a local function: names, signature, attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core.document import Scope
from dld_tui.core.document.calls import key_of
from dld_tui.core.document.function_table import FunctionAttribute, function_attributes
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.editing import name_editor
from dld_tui.widgets.dialogs import Dialog
from dld_tui.widgets.fields_dialog import FieldsDialog, FieldSpec
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.literal_preview import edit_value

if TYPE_CHECKING:
    from collections.abc import Sequence

Edit = Callable[..., object]
"""Makes an edit; raises a DldError that says why it cannot."""

_DECLARATION = re.compile(r"\s*([^\s:=]+)\s*(?::\s*(\w+)\s*=\s*(.+?)\s*)?$", re.DOTALL)


def create_dialog(edit: Edit) -> FieldsDialog:
    """Return the dialog that adds a function."""

    def accept(texts: list[str]) -> None:
        name, domain, inputs, outputs = (text.strip() for text in texts)
        edit("add_function", name=name, domain=domain, inputs=_names(inputs),
             outputs=_names(outputs))  # fmt: skip

    return FieldsDialog(
        "New function",
        "",
        [
            FieldSpec("name", "", "the operator that it defines"),
            FieldSpec("domain", "local"),
            FieldSpec("inputs", "", "names, with blanks between"),
            FieldSpec("outputs", "", "names, with blanks between"),
        ],
        accept,
    )


def names_dialog(edit: Edit, function: Scope, name: str, title: str, message: str) -> FieldsDialog:
    """Return the dialog that renames or duplicates a function.

    Args:
        edit: Makes the edit.
        function: The function.
        name: ``rename_function`` or ``duplicate_function``.
        title: What it does.
        message: What follows from it.
    """
    domain, own, overload = (name_editor(text) for text in key_of(function))
    path: list[JSON] = list(function.path)

    def accept(texts: list[str]) -> None:
        edit(name, scope=path, name=own[1](texts[0].strip()), domain=domain[1](texts[1].strip()),
             overload=overload[1](texts[2].strip()))  # fmt: skip

    fields = [
        FieldSpec("name", own[0]),
        FieldSpec("domain", domain[0]),
        FieldSpec("overload", overload[0], "none"),
    ]
    return FieldsDialog(title, message, fields, accept)


def make_dialog(
    edit: Edit, scope: Scope, nodes: Sequence[str], name: str, domain: str
) -> FieldsDialog:
    """Return the dialog that makes a function of nodes.

    Args:
        edit: Makes the edit.
        scope: The scope of the nodes.
        nodes: Their refs.
        name: The name that is offered.
        domain: The operator set that is offered.
    """

    def accept(texts: list[str]) -> None:
        edit("make_function", scope=list(scope.path), nodes=list(nodes), name=texts[0].strip(),
             domain=texts[1].strip(), constants=texts[2] == "constants inside")  # fmt: skip

    return FieldsDialog(
        "Make function",
        "The nodes become a function. One call of it takes their place.",
        [
            FieldSpec("name", name),
            FieldSpec("domain", domain),
            FieldSpec("weights", choices=("inputs", "constants inside")),
        ],
        accept,
    )


def custom_dialog(edit: Edit, scope: Scope, nodes: Sequence[str]) -> FieldsDialog:
    """Return the dialog that puts one custom node in the place of several."""

    def accept(texts: list[str]) -> None:
        op_type, domain, name = (text.strip() for text in texts)
        edit("replace_nodes", scope=list(scope.path), nodes=list(nodes), op_type=op_type,
             domain=domain, name=name)  # fmt: skip

    return FieldsDialog(
        "Replace by a custom node",
        "It takes what the nodes took from outside, weights too, and makes what others used.",
        [
            FieldSpec("operator", "", "such as the name of a plugin"),
            FieldSpec("domain", "", "ai.onnx"),
            FieldSpec("node name", "", "made up"),
        ],
        accept,
    )


class AttributesDialog(Dialog[None]):
    """The attributes of a function: Enter changes one, a declares one, d takes one away."""

    KEYS = "Enter change  a declare  d remove  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,insert", "declare", "declare", show=False),
        Binding("d,delete", "remove", "remove", show=False),
    ]

    def __init__(self, function: Scope, edit: Edit) -> None:
        super().__init__()
        self.TITLE_TEXT = f"Attributes of {visible(function.title)}"
        self._function = function
        self._edit = edit
        self._rows: tuple[FunctionAttribute, ...] = ()

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = LineView(empty="It has no attributes. a declares one.")
        view.styles.height = max(4, min(12, self.app.size.height - 10))
        yield view

    def on_mount(self) -> None:
        """List what there is."""
        self._list()
        self.query_one(LineView).focus()

    def _list(self) -> None:
        self._rows = function_attributes(self._function)
        lines = [_attribute_line(row) for row in self._rows]
        self.query_one(LineView).set_lines(ListSource(lines, [row.name for row in self._rows]))

    @property
    def _row(self) -> FunctionAttribute | None:
        at = self.query_one(LineView).cursor
        return self._rows[at] if at < len(self._rows) else None

    @on(LineView.Activated)
    def activated(self, event: LineView.Activated) -> None:
        """Change the one under the cursor."""
        event.stop()
        if self._row is not None:
            self._ask(name_editor(self._row.text)[0])

    def action_declare(self) -> None:
        """Declare another attribute."""
        self._ask("")

    def action_remove(self) -> None:
        """Take the one under the cursor away."""
        row = self._row
        if row is None:
            return
        try:
            self._edit(
                "remove_function_attribute", scope=list(self._function.path), attribute=row.name
            )
        except DldError as error:
            self.notify(visible(str(error)), severity="warning", timeout=6, markup=False)
        self._list()

    def _ask(self, text: str) -> None:
        def accept(texts: list[str]) -> None:
            name, kind, value = parse_declaration(texts[0])
            self._edit(
                "set_function_attribute", scope=list(self._function.path), attribute=name,
                kind=kind, value=value,
            )  # fmt: skip

        def closed(done: bool | None) -> None:
            if done:
                self._list()

        fields = [FieldSpec("attribute", text, "slope, or slope: float = 0.25")]
        message = "A name; with a default as in ONNX text, its kind and value."
        self.app.push_screen(FieldsDialog("Attribute", message, fields, accept), closed)


def parse_declaration(text: str) -> tuple[str, str | None, JSON]:
    """Return (name, kind, default) of ``name`` or ``name: kind = default``.

    Raises:
        UsageError: It is neither, or the default is not of the kind.
    """
    found = _DECLARATION.match(text)
    if found is None:
        raise UsageError("type a name, or a name with a default such as slope: float = 0.25")
    shown, kind, literal = found.groups()
    name = name_editor(shown)[1](shown)
    if kind is None:
        return name, None, None
    return name, kind, edit_value(literal, kind)


def _attribute_line(row: FunctionAttribute) -> list[Piece]:
    uses = f"  used {row.uses}x" if row.uses else "  not used"
    kind = f": {row.kind}" if row.kind else ""
    default = f" = {visible(row.default)}" if row.default is not None else ""
    return [(visible(row.name), "name"), (kind, "type"), (default, "value"), (uses, "dim")]


def _names(text: str) -> list[JSON]:
    return [name for name in text.replace(",", " ").split() if name]
