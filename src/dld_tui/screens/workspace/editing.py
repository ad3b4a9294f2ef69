"""Editing in a workspace: rename, attribute values, delete; and copying names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller, Option
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import EditableKind, is_alive

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope
    from dld_tui.core.document.node import Attribute
    from dld_tui.widgets.parameters.descriptions import ParameterRow


@dataclass(eq=False)
class Editing(Controller):
    """Edits what is under the cursor."""

    COMMAND_TABLE = table(
        "workspace",
        ("edit.rename", "editing.rename", "r", "node", "rename",
         "Rename the node or tensor at the cursor."),
        ("edit.change", "editing.edit", "e", "attribute", "edit", "Edit the value at the cursor.",
         "set attribute, attribute, change value, stride, modify attribute"),
        ("edit.delete", "editing.delete", "d,delete", "nodes", "delete",
         "Delete the marked nodes, or the node at the cursor.",
         "remove, erase, cut off, truncate, cut the nms off"),
        ("edit.revert", "editing.revert", "backslash", "attribute", "revert",
         "Reset the attribute to its default."),
        ("edit.rename_many", "editing.rename_many", "", "", "rename by pattern",
         "Rename the marked nodes and their tensors, or all: prefix, suffix, regular expression.",
         "rename many, rename all, bulk rename, prefix, suffix"),
        ("edit.copy_name", "editing.copy_name", "", "", "copy name", "Copy the name at the cursor.",
         "clipboard, yank name"),
        common="document", footer="edit.change edit.rename edit.delete",
        menus={
            "edit.rename": "input output boundary",
            "edit.change": "node output boundary metadata",
            "edit.delete": "boundary metadata",
            "edit.copy_name": "node input output boundary attribute initializer scope",
            "edit.rename_many": "node scope",
        },
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory
    inference: TypeInference
    edits: Mapping[EditableKind, Callable[[], None]] = field(default_factory=dict)
    """What editing does, by what the cursor is on."""
    open_tensor: Callable[[ParameterRow], None] | None = None
    """Opens the tensor or list of a row in the tensor editor."""
    deletions: Mapping[EditableKind, Callable[[], None]] = field(default_factory=dict)
    """What deleting does where it does not delete nodes."""

    def edit(self) -> None:
        """Edit what is under the cursor; from the list of nodes, go to the attributes."""
        target = self.cursor.target
        if target is not None:
            self.edits.get(target, self._say_nothing)()

    def _say_nothing(self) -> None:
        self.say("Nothing to edit here. Attributes and names can be edited.")

    def delete(self) -> None:
        """Delete what is under the cursor, or the marked nodes."""
        target = self.cursor.target or EditableKind.OTHER
        self.deletions.get(target, self.delete_chosen)()

    def rename(self) -> None:
        """Rename the node, or the value of the link or under the cursor of the parameters pane."""
        from dld_tui.core.document import Node

        row = self.cursor.row
        subject = self.cursor.subject
        pointed = self.cursor.pointed
        if pointed is not None:
            self._rename_value(pointed.scope, pointed.value)
        elif row is not None and row.name_of == "value" and subject is not None:
            scope = subject.scope if isinstance(subject, Node) else subject
            self._rename_value(scope, row.copied)
        elif (node := self.cursor.node) is not None:
            self._rename_node(node)
        else:
            self.say("Nothing here has a name that can be changed")

    def _rename_node(self, node: Node) -> None:
        from dld_tui.core.edits import renaming
        from dld_tui.widgets.parameters.edit_bar import EditBar

        shown, read = name_editor(node.name)
        scope = node.scope.path

        def accept(text: str) -> None:
            self.history.edit(renaming.rename_node(scope=scope, node=node.ref, name=read(text)))

        self.panes.mount_bar(EditBar("name", shown, accept, placeholder="no name"))

    def _rename_value(self, scope: Scope, value: str) -> None:
        from dld_tui.core.edits import renaming
        from dld_tui.widgets.parameters.edit_bar import EditBar

        shown, read = name_editor(value)
        path = scope.path

        def accept(text: str) -> None:
            self.history.edit(renaming.rename_value(scope=path, value=value, name=read(text)))

        self.panes.mount_bar(EditBar("value name", shown, accept))

    def rename_many(self) -> None:
        """Ask for a pattern, and rename what matches: of the marked nodes, or of all."""
        from dld_tui.core.edits import pattern_renaming
        from dld_tui.core.edits.pattern_renaming import NewNames, renamed
        from dld_tui.widgets.dialogs.dialogs import FieldsDialog, FieldSpec

        marked = self.model.chosen_nodes if self.cursor.marks else None
        whom = f"of {fmt.plural(len(marked), 'marked node')}" if marked else "in the whole model"

        def names_of(texts: list[str]) -> NewNames:
            _, pattern, to, prefix, suffix = texts
            return NewNames(pattern, to, prefix, suffix)

        def preview(texts: list[str]) -> str:
            count, first, until = 0, "", monotonic() + _PREVIEW_S
            for one in renamed(self.document, names_of(texts), _KINDS[texts[0]], marked):
                count += 1
                first = first or f"{one.old} → {one.new}"
                if monotonic() > until:
                    return f"more than {fmt.plural(count, 'name')}: {visible(first)}"
            return f"{fmt.plural(count, 'name')}: {visible(first)}" if count else "no name changes"

        def accept(texts: list[str]) -> None:
            names = names_of(texts)
            edit = pattern_renaming.rename_matches(
                kinds=_KINDS[texts[0]], pattern=names.pattern, replacement=names.replacement,
                prefix=names.prefix, suffix=names.suffix,
                nodes=None if marked is None else [[[*one.scope.path], one.ref] for one in marked],
            )  # fmt: skip
            if len(marked or self.document.main.nodes) <= MANY:
                self.history.edit(edit)
                return
            step = partial(self.document.apply, edit)
            self.history.change("Renaming", [step], large=True)

        fields = [
            FieldSpec("what", choices=tuple(_KINDS)),
            FieldSpec("pattern", "", "regular expression; empty: all names"),
            FieldSpec("to", "", r"what matches become: \1, \g<name>, {n}, {op}"),
            FieldSpec("prefix"),
            FieldSpec("suffix"),
        ]
        message = f"Rename {whom}."
        self.ask(FieldsDialog("Rename by pattern", message, fields, accept, preview))

    def focus_attributes(self) -> None:
        """Put the cursor on the first attribute."""
        node = self.cursor.node
        if node is None:
            return
        self.navigation.show_subject(node)
        self.panes.focus("parameters")
        self.panes.parameters.go_to_attributes()

    def edit_attribute(self) -> None:
        """Type the value of the attribute under the cursor."""
        from dld_tui.core.document import Node
        from dld_tui.core.document.opset_imports import versions_by_domain
        from dld_tui.core.edits import attributes
        from dld_tui.core.operators.attribute_words import (
            attribute_words,
            integer_word,
            integer_words,
        )
        from dld_tui.core.tensors.literals import LISTS, format_literal
        from dld_tui.widgets.parameters.descriptions import node_schema
        from dld_tui.widgets.parameters.edit_bar import EditBar, edit_value, editable_text

        node, row = self.cursor.subject, self.cursor.row
        if row is None or not isinstance(node, Node):
            return
        name = row.attribute
        present = node.attribute(name)
        schema = node_schema(node)
        known = schema.attribute(name) if schema is not None else None
        kind = present.kind if present is not None else known.kind if known is not None else ""
        value, hint, dtype = "", "", None
        if present is not None and present.reference is not None:
            hint = f"a value instead of {visible(present.reference)}"
        elif present is not None:
            text = editable_text(present)
            value, hint = text or "", "" if text is not None else "too long: type a new value"
            dtype = present.value.dtype if kind == "tensor" else None
        elif known is not None and known.default is not None:
            value = format_literal(known.default, kind)
            if isinstance(known.default, int):
                value = integer_word(name, known.default, schema) or value
        if kind == "sparse_tensor" and present is not None and present.reference is None:
            self._edit_sparse(node, present)
            return
        if kind not in _EDITABLE:
            self.say(f"Attributes of kind {kind} cannot be edited as text", 4)
            return
        scope = node.scope.path

        def accept(text: str) -> None:
            typed = edit_value(text, kind, dtype, name=name, schema=schema)
            self.history.edit(
                attributes.set_attribute(
                    scope=scope, node=node.ref, attribute=name, kind=kind, value=typed
                )
            )

        version = versions_by_domain(node.scope).get(node.domain)
        words = tuple(integer_words(name, schema)) if kind == "int" else ()
        if kind == "string":
            texts = attribute_words(node.op_type, node.domain, name, version)
            words = tuple(format_literal(word.encode(), kind) for word in texts)
        label = f"{visible(name)} ({kind})"
        list_kind = kind if kind in LISTS else ""
        opens = self.open_tensor if self.cursor.tensor_row is not None else None
        bar = EditBar(
            label, value, accept, placeholder=hint, choices=words, list_kind=list_kind,
            open_grid=partial(opens, row) if opens is not None else None,
        )  # fmt: skip
        self.panes.mount_bar(bar)

    def _edit_sparse(self, node: Node, attribute: Attribute) -> None:
        """Edit type, dimensions and elements of a sparse tensor as text."""
        from dld_tui.core.edits import attributes
        from dld_tui.core.tensors.sparse import read_sparse_lines, sparse_lines
        from dld_tui.widgets.dialogs.dialogs import SPARSE_NOTE, TextDialog

        try:
            text = sparse_lines(self.document, attribute.value)
        except DldError as error:
            self.complain(error)
            return

        def typed(answer: str | None) -> None:
            if answer is not None and answer != text and is_alive(node):
                self.history.try_edit(
                    attributes.set_attribute(
                        scope=node.scope.path,
                        node=node.ref,
                        attribute=attribute.name,
                        kind="sparse_tensor",
                        value=read_sparse_lines(answer),
                    )
                )

        title = f"Sparse tensor {visible(attribute.name)}"
        self.ask(TextDialog(title, text, check=read_sparse_lines, note=SPARSE_NOTE), typed)

    def revert(self) -> None:
        """Remove the attribute under the cursor, so that the default holds."""
        from dld_tui.core.document import Node
        from dld_tui.core.edits import attributes

        node, row = self.cursor.subject, self.cursor.row
        if row is None or not row.attribute or not isinstance(node, Node):
            self.say("Go to an attribute in the parameters pane first")
        elif node.attribute(row.attribute) is None:
            self.say("It already has its default")
        else:
            self.history.try_edit(
                attributes.remove_attribute(
                    scope=node.scope.path,
                    node=node.ref,
                    attribute=row.attribute,
                )
            )

    def delete_chosen(self) -> None:
        """Delete the marked nodes, or the one under the cursor; asks when outputs are used."""
        nodes = outer_nodes(self.model.chosen_nodes)
        if not nodes:
            return
        uses = outside_uses(nodes)
        if not uses:
            self.delete_nodes(nodes, reconnect=False)
            return
        self._ask_delete(nodes, uses)

    def _ask_delete(self, nodes: Sequence[Node], uses: int) -> None:
        from dld_tui.core.edits.links import bypass_source

        many = uses > _MOST_COUNTED
        outputs = (
            "The node's outputs are" if len(nodes) == 1 else f"Outputs of {len(nodes):,} nodes are"
        )
        places = f"more than {_MOST_COUNTED:,} places" if many else fmt.plural(uses, "place")
        options: list[Option] = [
            (
                "d",
                f"delete and leave {places} without a source",
                partial(self.delete_nodes, nodes, reconnect=False),
            ),
            ("k", "keep", None),
        ]
        if not many and all(node.scope is self.document.main for node in nodes):
            cut = "cut off: delete all behind, too; inputs become outputs"
            options.insert(1, ("c", cut, partial(self._ask_outputs, nodes)))
        if many or all(bypass_source(node) is not None for node in nodes):
            reconnect = partial(self.delete_nodes, nodes, reconnect=True)
            options.insert(0, ("r", "delete and reconnect the users to its input", reconnect))
        self.ask_which("Delete", f"{outputs} used in {places}.", options)

    def delete_nodes(self, nodes: Sequence[Node], *, reconnect: bool) -> None:
        """Delete nodes of any scopes in one step, without asking."""
        from dld_tui.core.edits.nodes import delete_many

        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        edit = partial(self.document.apply, delete_many(nodes=pairs, reconnect=reconnect))
        title = f"Deleting {fmt.plural(len(nodes), 'node')}"
        self.history.change(title, [edit], large=len(nodes) > MANY)

    def _ask_outputs(self, nodes: Sequence[Node]) -> None:
        """Ask what outputs are called that are left when nodes are cut off."""
        from dld_tui.core.edits import replacing
        from dld_tui.core.edits.replacing import cut_values
        from dld_tui.widgets.dialogs.dialogs import FieldsDialog, FieldSpec

        main = self.document.main
        values = cut_values(main, nodes)
        asked = values[:_MOST_ASKED]
        editors = [name_editor(value) for value in asked]

        def accept(texts: list[str]) -> None:
            names = {
                value: read(text.strip())
                for value, (_, read), text in zip(asked, editors, texts, strict=True)
                if text.strip()
            }
            names |= {value: value for value in values[_MOST_ASKED:]}
            self.history.edit(replacing.cut_off(nodes=[node.ref for node in nodes], outputs=names))

        def ask() -> None:
            kinds = [main.value_type(value) for value in asked]
            fields = [
                FieldSpec(visible(kind.short) if kind is not None else "output", shown, "none")
                for kind, (shown, _) in zip(kinds, editors, strict=True)
            ]
            message = "Names of the new outputs; a tensor with an empty field becomes none."
            self.ask(FieldsDialog("Cut off", message, fields, accept))

        if values:
            self.inference.when_typed(ask, always=True)  # outputs need types
        else:
            self.history.try_edit(replacing.cut_off(nodes=[node.ref for node in nodes]))

    def copy_name(self) -> None:
        """Copy the name of the node, or what the row of the parameters pane names."""
        row = self.cursor.row
        text = row.copied if row is not None else ""
        node = self.cursor.node
        if not text and node is not None:
            text = node.name or node.ref
        if text:
            self.app.copy_to_clipboard(text)
        else:
            self.say("Nothing here has a name")


_MOST_ASKED = 8
"""New outputs whose names are asked for."""
_PREVIEW_S = 0.03
"""How long names are looked at between two keys."""
_KINDS: dict[str, tuple[str, ...]] = {
    "nodes and tensors": ("nodes", "tensors"),
    "nodes": ("nodes",),
    "tensors": ("tensors",),
    "inputs": ("inputs",),
    "outputs": ("outputs",),
    "all names": ("nodes", "tensors", "inputs", "outputs"),
}
"""What is renamed, by the words of the dialog."""
_MOST_COUNTED = 999
"""Uses of deleted nodes that are counted."""
_EDITABLE = frozenset({
    "int", "float", "string", "ints", "floats", "strings", "tensor", "sparse_tensor", "type_proto",
})  # fmt: skip


def name_editor(name: str) -> tuple[str, Callable[[str], str]]:
    r"""Return how a name is shown for editing, and how what was typed is read.

    A name with characters that a terminal cannot show is edited with escapes such as ``\x1b``.
    """
    from dld_tui.core.tensors.literals import escaped, unescaped

    if visible(name) == name:
        return name, lambda text: text
    return escaped(name), unescaped


def outside_uses(nodes: Sequence[Node]) -> int:
    """Return how many inputs and graph outputs outside of `nodes` use their outputs.

    Uses of many nodes are not counted: the result is then larger than any count.
    """
    if len(nodes) > MANY:
        return _MOST_COUNTED + 1
    chosen = set(nodes)
    count = 0
    for node in nodes:
        for name in node.outputs:
            if not name:
                continue
            count += name in node.scope.outputs
            for use in node.scope.users(name):
                count += not _is_inside(use.node, chosen)
            if count > _MOST_COUNTED:
                return count
    return count


def _is_inside(node: Node | None, chosen: set[Node]) -> bool:
    """Return whether a node, or one that it is nested in, is among the chosen."""
    while node is not None:
        if node in chosen:
            return True
        node = node.scope.owner
    return False


def outer_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that are not nested in others of them."""
    chosen = set(nodes)
    return [node for node in nodes if not _is_inside(node.scope.owner, chosen)]
