"""The list of local functions: signatures, attributes, who calls them; and what is done to them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.model.document import DocumentChange, Node, Scope, Transaction
from dld_tui.core.model.document.local_functions import (
    FunctionAttribute,
    FunctionRow,
    function_attributes,
    function_rows,
    key_of,
    operator_of_text,
)
from dld_tui.core.model.document.operator_matching import schema_in, schema_of
from dld_tui.core.model.document.parts.extraction import nodes_at
from dld_tui.core.model.edits.attributes import SETTABLE_KINDS
from dld_tui.core.model.tensors.literals import format_string, infer_kind, split_list
from dld_tui.core.model.tensors.value_types import parse_type
from dld_tui.core.tables.table import COUNT, NOTE, Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.base_pages import ListPage
from dld_tui.screens.workspace.history import MANY, PageEdits
from dld_tui.widgets.dialogs.dialogs import Dialog, FieldsDialog, FieldSpec
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.parameters.edit_bar import edit_value, name_editor
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Edit
    from dld_tui.core.model.operators.schema import OperatorSchema
    from dld_tui.screens.workspace.history import EditHistory

MakeEdit: TypeAlias = "Callable[[Edit], object]"
"""Makes an edit; raises a DldError if it cannot."""

_DECLARATION = re.compile(r"\s*([^\s:=]+)\s*(?::\s*(\w+)\s*=\s*(.+?)\s*)?$", re.DOTALL)


def create_dialog(edit: MakeEdit) -> FieldsDialog:
    """Return the dialog that adds a function."""
    from dld_tui.core.model.edits import functions

    def accept(texts: list[str]) -> None:
        name, domain, inputs, outputs = (text.strip() for text in texts)
        edit(
            functions.add_function(
                name=name, domain=domain, inputs=_names(inputs), outputs=_names(outputs)
            )
        )

    return FieldsDialog(
        "New function",
        "",
        [
            FieldSpec("name", "", "the operator it defines"),
            FieldSpec("domain", "local"),
            FieldSpec("inputs", "", "names separated by spaces"),
            FieldSpec("outputs", "", "names separated by spaces"),
        ],
        accept,
    )


def names_dialog(
    edit: MakeEdit, function: Scope, kind: Callable[..., Edit], title: str, message: str
) -> FieldsDialog:
    """Return the dialog that renames or duplicates a function.

    Args:
        edit: Makes the edit.
        function: The function.
        kind: ``rename_function`` or ``duplicate_function``.
        title: What it does.
        message: What follows from it.
    """
    domain, own, overload = (name_editor(text) for text in key_of(function))
    path = function.path

    def accept(texts: list[str]) -> None:
        edit(
            kind(
                scope=path,
                name=own[1](texts[0].strip()),
                domain=domain[1](texts[1].strip()),
                overload=overload[1](texts[2].strip()),
            )
        )

    fields = [
        FieldSpec("name", own[0]),
        FieldSpec("domain", domain[0]),
        FieldSpec("overload", overload[0], "none"),
    ]
    return FieldsDialog(title, message, fields, accept)


_OUTSIDE, _INSIDE = "inputs", "constants"
"""What weights of nodes become in a function."""


def make_dialog(
    edit: MakeEdit, scope: Scope, nodes: Sequence[str], name: str, domain: str
) -> FieldsDialog:
    """Return the dialog that makes a function of nodes.

    Args:
        edit: Makes the edit.
        scope: The scope of the nodes.
        nodes: Their refs.
        name: The name that is offered.
        domain: The operator set that is offered.
    """
    from dld_tui.core.model.edits import functions

    def accept(texts: list[str]) -> None:
        edit(
            functions.make_function(
                scope=scope.path,
                nodes=nodes,
                name=texts[0].strip(),
                domain=texts[1].strip(),
                constants=texts[2] == _INSIDE,
            )
        )

    return FieldsDialog(
        "Make function",
        "The nodes become a function; one call of it replaces them.",
        [
            FieldSpec("name", name),
            FieldSpec("domain", domain),
            FieldSpec("weights", choices=(_OUTSIDE, _INSIDE)),
        ],
        accept,
    )


def custom_dialog(
    edit: MakeEdit,
    scope: Scope,
    nodes: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> FieldsDialog:
    """Return the dialog that puts one custom node in the place of several.

    Args:
        edit: Makes the edit.
        scope: The scope of the nodes.
        nodes: Their refs.
        inputs: What they take from outside.
        outputs: What others use of theirs.
    """
    from dld_tui.core.model.edits import replacing

    own = name_editor(nodes_at(scope, nodes)[0].name) if len(nodes) == 1 else ("", str)
    offered = [", ".join(map(_shown_name, names)) for names in (inputs, outputs)]

    def accept(texts: list[str]) -> None:
        domain, op_type = operator_of_text(texts[0])
        more: dict[str, Any] = {}
        if texts[1] != offered[0]:
            more["inputs"] = [_read_name(text) for text in split_list(texts[1])]
        if texts[2] != offered[1]:
            output_types = dict(map(_name_and_type, split_list(texts[2])))
            more["outputs"] = [*output_types]
            more["types"] = {name: known for name, known in output_types.items() if known}
        if texts[3].strip():
            more["attributes"] = attribute_values(texts[3])
        edit(
            replacing.replace_nodes(
                scope=scope.path,
                nodes=nodes,
                op_type=op_type,
                domain=domain,
                name=own[1](texts[4].strip()),
                **more,
            )
        )

    return FieldsDialog(
        "Replace by a custom node",
        "Outputs may have types, as in boxes: float32[1, 100, 4]. Without an output, what is "
        "computed from it goes, too.",
        [
            FieldSpec("operator", "", "such as trt.EfficientNMS_TRT"),
            FieldSpec("inputs", offered[0], "none"),
            FieldSpec("outputs", offered[1], "none"),
            FieldSpec("attributes", "", _ATTRIBUTES),
            FieldSpec("node name", own[0], "generated"),
        ],
        accept,
    )


_ATTRIBUTES = "such as threshold=0.25, sizes=[1, 2], version='1'"
_ATTRIBUTE = re.compile(r"\s*([^\s:=]+)\s*(?::\s*(\w+)\s*)?=\s*(.+?)\s*$", re.DOTALL)
_TYPED = re.compile(r"(.+?)\s*:\s*([A-Za-z]\w*(?:\[[^\]]*\])?)$")


def attribute_values(text: str, schema: OperatorSchema | None = None) -> dict[str, JSON]:
    """Return ``{NAME: {"kind", "value"}}`` of ``a=1, b=[0.5], c: floats=[1]``.

    Kinds that are not named are those that values have by their look, or of the operator.

    Raises:
        UsageError: It is something else, or a value is not of its kind.
    """
    attributes: dict[str, JSON] = {}
    for part in split_list(text):
        match = _ATTRIBUTE.match(part)
        if match is None:
            raise UsageError(f"{visible(part)!r} is no attribute", hint=f"Type {_ATTRIBUTES}")
        shown, kind, literal = match.groups()
        name = name_editor(shown)[1](shown)
        kind = kind or _kind_of(name, literal, schema)
        value = edit_value(literal, kind, name=name, schema=schema)
        attributes[name] = {"kind": kind, "value": value}
    return attributes


def _kind_of(name: str, literal: str, schema: OperatorSchema | None) -> str:
    known = schema.attribute(name) if schema is not None else None
    return known.kind if known is not None else infer_kind(literal)


def _shown_name(name: str) -> str:
    """Return a name as it stands in a list with commas."""
    plain = not set(name) & set(",[]'\"") and name.strip() == name and visible(name) == name
    return name if plain else format_string(name)


def _read_name(text: str) -> str:
    return str(edit_value(text, "string")) if text[0] in "'\"" else text


def _name_and_type(text: str) -> tuple[str, str]:
    """Return the name and the type of ``boxes: float32[1, 100, 4]``; without one an empty type."""
    match = _TYPED.match(text)
    if match is not None:
        with contextlib.suppress(UsageError):
            known = parse_type(match[2])
            return _read_name(match[1]), known.text if known is not None else ""
    return _read_name(text), ""


def operator_dialog(
    edit: MakeEdit, scope: Scope, nodes: Sequence[str], present: str
) -> FieldsDialog:
    """Return the dialog that lets nodes call another operator.

    Args:
        edit: Makes the edit.
        scope: The scope of the nodes.
        nodes: Their refs.
        present: The operator that they call now, as ``domain.Name``.
    """
    from dld_tui.core.model.edits.nodes import set_operator

    def accept(texts: list[str]) -> None:
        domain, op_type = operator_of_text(texts[0])
        more: dict[str, Any] = {}
        if texts[2].strip():
            schema = schema_in(op_type, domain, scope)
            more["values"] = attribute_values(texts[2], schema)
        edit(
            set_operator(
                scope=scope.path,
                nodes=nodes,
                op_type=op_type,
                domain=domain,
                attributes=_KEPT[texts[1]],
                **more,
            )
        )

    return FieldsDialog(
        "Change the operator",
        "Names, inputs and outputs stay.",
        [
            FieldSpec("operator", present, "such as Gelu or trt.EfficientNMS_TRT"),
            FieldSpec("attributes", choices=tuple(_KEPT)),
            FieldSpec("and set", "", _ATTRIBUTES),
        ],
        accept,
    )


_KEPT = {"keep those it has": "known", "keep all": "all", "remove": "none"}
"""Which attributes stay, by the words of the dialog."""
_KINDS = {
    "as typed": "", **{kind: kind for kind in (*SETTABLE_KINDS, "sparse_tensor", "type_proto")}
}  # fmt: skip
"""Kinds by the words of the dialog; empty: that of the operator, or of the value by its look."""


def attribute_dialog(edit: MakeEdit, node: Node) -> FieldsDialog:
    """Return the dialog that adds an attribute to a node, or changes the kind of one."""
    from dld_tui.core.model.edits import attributes

    def accept(texts: list[str]) -> None:
        name, kind, text = texts[0].strip(), texts[1], texts[2]
        if not name:
            raise UsageError("an attribute needs a name")
        schema = schema_of(node)
        kind = _KINDS[kind] or _kind_of(name, text, schema)
        edit(
            attributes.set_attribute(
                scope=node.scope.path,
                node=node.ref,
                attribute=name,
                kind=kind,
                value=edit_value(text, kind, name=name, schema=schema),
            )
        )

    return FieldsDialog(
        "Add an attribute",
        "",
        [
            FieldSpec("name"),
            FieldSpec("kind", choices=tuple(_KINDS)),
            FieldSpec(
                "value",
                "",
                'such as 1, [1, 2], "text", float32 [1, 2]; '
                "float32 [9]; 4 = 1.5 for a sparse tensor, float32[N, 3] for a type",
            ),
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

    def __init__(self, function: Scope, edit: MakeEdit) -> None:
        super().__init__()
        self.TITLE_TEXT = f"Attributes of {visible(function.title)}"
        self._function = function
        self._edit = edit
        self._rows: tuple[FunctionAttribute, ...] = ()

    def body(self) -> Iterable[Widget]:
        view = LineView(empty="No attributes yet; a declares one.")
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
        self._ask("")

    def action_remove(self) -> None:
        row = self._row
        if row is None:
            return
        from dld_tui.core.model.edits.functions import remove_function_attribute

        path = self._function.path
        try:
            self._edit(remove_function_attribute(scope=path, attribute=row.name))
        except DldError as error:
            self.notify(visible(str(error)), severity="warning", timeout=6, markup=False)
        self._list()

    def _ask(self, text: str) -> None:
        from dld_tui.core.model.edits.functions import set_function_attribute

        def accept(texts: list[str]) -> None:
            name, kind, value = parse_declaration(texts[0])
            self._edit(
                set_function_attribute(
                    scope=self._function.path, attribute=name, kind=kind, value=value
                )
            )

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
    match = _DECLARATION.match(text)
    if match is None:
        raise UsageError("type a name, or a name with a default such as slope: float = 0.25")
    shown, kind, literal = match.groups()
    name = name_editor(shown)[1](shown)
    if kind is None:
        return name, None, None
    return name, kind, edit_value(literal, kind)


def _attribute_line(row: FunctionAttribute) -> list[Piece]:
    uses = f"  used {row.uses}x" if row.uses else "  not used"
    kind = f": {row.kind}" if row.kind else ""
    default = f" = {visible(row.default)}" if row.default is not None else ""
    return [(visible(row.name), "name"), (kind, "type"), (default, "value"), (uses, "dim")]


def _names(text: str) -> list[str]:
    return [name for name in text.replace(",", " ").split() if name]


_DETAIL_ROWS = 3


def function_list(rows: Sequence[FunctionRow]) -> Table[FunctionRow]:
    """Return the local functions as a table; problems have a column where there are some."""
    problem: Column[FunctionRow] = Column(
        "problem", "problem", lambda row: row.problem, NOTE, 22, priority=1, style="bad"
    )
    return Table(
        (
            Column("name", "name", lambda row: row.key[1], least=14, keep="middle",
                   style=lambda row: "bad" if row.problem else "name"),
            Column("domain", "domain", lambda row: row.key[0], NOTE, 14, priority=3),
            Column("overload", "overload", lambda row: row.key[2], NOTE, 9, priority=6),
            Column("inputs", "in", lambda row: len(row.scope.inputs), COUNT, 4, priority=4,
                   descending=False),
            Column("outputs", "out", lambda row: len(row.scope.outputs), COUNT, 4, priority=4,
                   descending=False),
            Column("attributes", "attributes", _attributes, NOTE, least=18,
                   priority=5, style="dim"),
            Column("nodes", "nodes", lambda row: row.nodes, COUNT, 6, priority=2),
            Column("instances", "instances", lambda row: len(row.instances), COUNT, 9),
            *((problem,) if any(row.problem for row in rows) else ()),
        ),
        rows,
        row_key=lambda row: row.scope,
    )  # fmt: skip


class FunctionsScreen(ListPage[FunctionRow]):
    """The page; gives the scope or node to go to, or None.

    Args:
        workspace: The workspace of the document.
        start: The function that the cursor begins on.
    """

    SCOPE = "functions"
    COMMAND_TABLE = table(
        "functions",
        ("functions.open", "open", "s", "function", "open", "Open the nodes of the function."),
        ("functions.create", "create", "a,insert", "", "create", "Create an empty function."),
        ("functions.rename", "rename", "r", "function", "rename",
         "Rename the function and update its calls."),
        ("functions.duplicate", "duplicate", "y", "function", "duplicate",
         "Add a copy under another name."),
        ("functions.delete", "delete", "d,delete", "function", "delete",
         "Delete the function; its calls become custom operators."),
        ("functions.instances", "instances", "right_square_bracket", "called", "go to call",
         "Go to a node that calls the function."),
        ("functions.inline", "inline_all", "U", "called", "inline all",
         "Replace every call of the function with its nodes."),
        ("functions.attributes", "attributes", "e", "function", "attributes",
         "Declare attributes of the function, with or without defaults."),
        ("functions.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit."),
        ("functions.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit."),
        footer="functions.create functions.rename functions.duplicate functions.instances "
        "functions.attributes functions.delete",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    LIST_TITLE, LIST_KEYS = "Functions", "{list.activate} open"
    LIST_EMPTY = "The model has no local functions. {functions.create} adds one."
    ROW_CONDITION = "function"
    HELP = (
        "The local functions of the model. {list.activate} opens a function in the workspace. A "
        "node calls a function by its domain and name, and sets the function's attributes."
    )
    tab_title = "functions"

    def __init__(self, workspace: EditHistory, start: Scope | None = None) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace)
        self._start = start
        self.chosen: Scope | Node | None = None
        """Where to go when the page is closed."""

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        details = Rows([[]] * _DETAIL_ROWS, id="signature")
        details.styles.height = _DETAIL_ROWS
        details.styles.padding = (0, 1)
        yield details

    def on_mount(self) -> None:
        """List the functions."""
        self.edits.document.on_change.append(self._document_changed)
        self.show_rows(self._start)

    def on_unmount(self) -> None:
        """Hear no more of changes, and stop what runs."""
        self.edits.cancel_work()
        if self._document_changed in self.edits.document.on_change:
            self.edits.document.on_change.remove(self._document_changed)

    def conditions(self) -> set[str]:
        row, history = self.row if self.is_mounted else None, self.edits.document.history
        return super().conditions() | holding(
            called=row is not None and bool(row.instances),
            can_undo=bool(history.done),
            can_redo=bool(history.undone),
        )

    def _document_changed(self, change: DocumentChange) -> None:
        if self.is_attached:
            place = self.edits.returning(change, lambda: self.view.place)
            self.show_rows()
            if place is not None:
                self.view.return_to(place)

    def table(self) -> Table[FunctionRow]:
        """Return the functions."""
        rows = function_rows(self.edits.document)
        self.view.frame.show(f"Functions ({len(rows)})", "{list.activate} open")
        return function_list(rows)

    def row_changed(self) -> None:
        """Describe the function under the cursor."""
        row = self.row
        lines: list[list[Piece]] = []
        if row is not None:
            width = max(20, self.app.size.width - 4)
            lines = [[(text, "name")] for text in wrap(row.signature, width)[:1]]
            declared = ", ".join(attribute.text for attribute in row.attributes)
            lines += [[(text, "dim")] for text in wrap(declared or "no attributes", width)[:1]]
            if row.problem:
                mark = glyphs.current().error
                lines.append([(f"{mark} {visible(row.problem)}", "bad")])
        lines += [[] for _ in range(_DETAIL_ROWS - len(lines))]
        self.query_one("#signature", Rows).set_rows(lines)
        self.crumb(visible(row.scope.title) if row is not None else "")
        super().row_changed()

    def on_resize(self) -> None:
        """Break the lines again."""
        self.row_changed()

    def activate(self) -> None:
        """Open the function."""
        self.action_open()

    def action_open(self) -> None:
        if self.row is not None:
            self._leave(self.row.scope)

    @task()
    async def action_instances(self) -> None:
        """Go to a node that calls the function; asks which when there are several."""
        row = self.row
        if row is None:
            return
        calls = list(row.instances)
        if len(calls) == 1:
            self._leave(calls[0])
            return

        items = partial(_items, calls)
        title = f"{fmt.plural(len(calls), 'instance')} of {visible(row.scope.title)}"
        place = await self.tasks.ask(PickDialog(title, items, placeholder="name or place"))
        if isinstance(place, int):
            self._leave(calls[place])

    def _leave(self, place: Scope | Node) -> None:
        self.chosen = place
        self.dismiss(None)

    def _edit(self, edit: Edit) -> Transaction:
        transaction = self.edits.edit(edit)
        self._tell(transaction)
        return transaction

    def _tell(self, transaction: Transaction) -> None:
        text = visible(transaction.title)
        self.notify(text[:1].upper() + text[1:], timeout=4, markup=False)

    def _try(self, edit: Edit) -> None:
        try:
            self._edit(edit)
        except DldError as error:
            self.edits.complain(error)

    def action_create(self) -> None:
        self.app.push_screen(create_dialog(self._edit))

    def action_rename(self) -> None:
        from dld_tui.core.model.edits.functions import rename_function

        if self.row is not None:
            message = f"{fmt.plural(len(self.row.instances), 'instance')} of it will follow."
            self.app.push_screen(
                names_dialog(self._edit, self.row.scope, rename_function, "Rename", message)
            )

    def action_duplicate(self) -> None:
        from dld_tui.core.model.edits.functions import duplicate_function

        if self.row is not None:
            message = "Nothing calls the copy yet. Give it another name, domain or overload."
            scope = self.row.scope
            self.app.push_screen(
                names_dialog(self._edit, scope, duplicate_function, "Duplicate", message)
            )

    def action_delete(self) -> None:
        """Delete the function; undo brings it back."""
        from dld_tui.core.model.edits import functions

        if self.row is not None:
            self._try(functions.delete_function(scope=self.row.scope.path))

    def action_inline_all(self) -> None:
        from dld_tui.core.model.edits import functions

        row = self.row
        if row is None:
            return
        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in row.instances]
        if len(row.instances) * row.nodes <= MANY:
            self._try(functions.inline_function(nodes=pairs))
            return
        step = partial(self.edits.document.apply, functions.inline_function(nodes=pairs))
        self.edits.edit_on_thread(f"Inlining {row.key[1]}", [step])

    def action_attributes(self) -> None:
        if self.row is not None:
            self.app.push_screen(AttributesDialog(self.row.scope, self.edits.edit))

    def go_back(self) -> None:
        """Stop what runs, or go back."""
        if not self.edits.cancel_work():
            self.dismiss(None)


def _items(calls: list[Node]) -> Iterable[PickItem]:
    for at, node in enumerate(calls):
        name, place = visible(node.name or node.ref), place_text(node.scope)
        yield PickItem(at, [(name, "name"), (f"  {place}", "dim")], f"{name} {place}")


def _attributes(row: FunctionRow) -> str:
    return ", ".join(attribute.text for attribute in row.attributes)
