"""Edits of what is under the cursor, and pages about parts of the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.metadata import PRECISIONS, precision_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller, Option, hears
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import EditableKind, is_alive
from dld_tui.screens.workspace.wiring import Wiring
from dld_tui.widgets.parameters.descriptions import DOC_STRING, ParameterRow
from dld_tui.widgets.parameters.pane import Parameters
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.core.model.document.node import Attribute
    from dld_tui.screens.tensors.conversion import TensorPlace
    from dld_tui.widgets.parameters.descriptions import ParameterRow


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
_KEYS = "1234567890"


@dataclass(eq=False)
class Editing(Controller):
    """Edits what is under the cursor."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("edit.rename", "editing.rename", "r", "named", "rename",
             "Rename the node or tensor at the cursor."),
            ("edit.change", "editing.edit", "e", "attribute", "edit",
             "Edit the value at the cursor.",
             "set attribute, attribute, change value, stride, modify attribute"),
            ("edit.delete", "editing.delete", "d,delete", "deletable", "delete",
             "Delete the marked nodes, or the node at the cursor.",
             "remove, erase, cut off, truncate, cut the nms off"),
            ("edit.revert", "editing.revert", "backslash", "attribute", "revert",
             "Reset the attribute to its default."),
            ("edit.rename_many", "editing.rename_many", "", "", "rename by pattern",
             "Rename the marked nodes and their tensors, or all: prefix, suffix, regular "
             "expression.",
             "rename many, rename all, bulk rename, prefix, suffix"),
            ("edit.copy_name", "editing.copy_name", "", "", "copy name",
             "Copy the name at the cursor.",
             "clipboard, yank name"),
            ("tensor.initializers", "editing.show_initializers", "i", "", "initializers",
             "List the initializers: sizes, consumers, conversion, external data.",
             "weights, biggest weights, largest weights, parameters, tensors, biggest, largest, "
             "constants and weights"),
            ("tensor.edit", "editing.open_tensor", "", "tensor", "edit tensor",
             "Open the tensor or list at the cursor in the tensor editor.",
             "edit weights, change a weight, values, elements, edit list, grid, cells"),
            common="document", footer="edit.change edit.rename edit.delete",
            menus={
                "edit.rename": "input output boundary",
                "edit.change": "node output boundary metadata",
                "edit.delete": "boundary metadata",
                "edit.copy_name": "node input output boundary attribute initializer scope",
                "edit.rename_many": "node scope",
            },
        ),
        *table(
            "workspace",
            ("layer.precision", "editing.choose_precision", "P", "nodes", "precision",
             "Set the TensorRT precision of the marked nodes, or of the node at the cursor.",
             "layer precisions, force fp16, set precision"),
            ("model.metadata", "editing.show_metadata", "at", "", "metadata",
             "Show and edit doc strings, metadata, producer, IR version and types.",
             "doc string, producer, ir version, properties, description"),
            ("model.profiles", "editing.show_profiles", "", "", "shape profiles",
             "Edit the optimization profiles: minimum, optimum and maximum input shapes.",
             "dynamic shapes, optimization profiles, min opt max"),
            common="document",
            menus={"model.metadata": "node scope metadata", "model.profiles": "boundary scope"},
        ),
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory
    inference: Inference
    wiring: Wiring

    def edit(self) -> None:
        """Edit what is under the cursor; from the list of nodes, go to the attributes."""
        match self.cursor.target:
            case EditableKind.TERMINAL:
                self.wiring.declare_type()
            case EditableKind.TENSOR:
                self.edit_tensor()
            case EditableKind.TEXT:
                self.edit_text()
            case EditableKind.ATTRIBUTE:
                self.edit_attribute()
            case EditableKind.NAME:
                self.rename()
            case EditableKind.NODE:
                self.focus_attributes()
            case EditableKind.LINK:
                self.wiring.connect()
            case EditableKind.OTHER:
                self.say("Nothing to edit here. Attributes and names can be edited.")

    def delete(self) -> None:
        """Delete what is under the cursor, or the marked nodes."""
        match self.cursor.target:
            case EditableKind.TERMINAL:
                self.wiring.remove_terminal()
            case EditableKind.TEXT:
                self.delete_text()
            case EditableKind.LINK:
                self.wiring.disconnect()
            case _:
                self.delete_chosen()

    def rename(self) -> None:
        """Rename the node, or the value of the link or under the cursor of the parameters pane."""
        from dld_tui.core.model.document import Node

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
        from dld_tui.core.model.edits import renaming
        from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor

        shown, read = name_editor(node.name)
        scope = node.scope.path

        def accept(text: str) -> None:
            self.history.edit(renaming.rename_node(scope=scope, node=node.ref, name=read(text)))

        self.panes.mount_bar(EditBar("name", shown, accept, placeholder="no name"))

    def _rename_value(self, scope: Scope, value: str) -> None:
        from dld_tui.core.model.edits import renaming
        from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor

        shown, read = name_editor(value)
        path = scope.path

        def accept(text: str) -> None:
            self.history.edit(renaming.rename_value(scope=path, value=value, name=read(text)))

        self.panes.mount_bar(EditBar("value name", shown, accept))

    def rename_many(self) -> None:
        """Ask for a pattern, and rename what matches: of the marked nodes, or of all."""
        from dld_tui.core.model.edits import pattern_renaming
        from dld_tui.core.model.edits.pattern_renaming import NewNames, renamed
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
        self.push(FieldsDialog("Rename by pattern", message, fields, accept, preview))

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
        from dld_tui.core.model.document import Node
        from dld_tui.core.model.document.operator_matching import schema_of
        from dld_tui.core.model.document.opset_imports import versions_by_domain
        from dld_tui.core.model.edits import attributes
        from dld_tui.core.model.operators.attribute_words import (
            attribute_words,
            integer_word,
            integer_words,
        )
        from dld_tui.core.model.tensors.literals import LISTS, format_literal
        from dld_tui.widgets.parameters.edit_bar import EditBar, edit_value, editable_text

        node, row = self.cursor.subject, self.cursor.row
        if row is None or not isinstance(node, Node):
            return
        name = row.attribute
        present = node.attribute(name)
        schema = schema_of(node)
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
        opens = partial(self.open_row, row) if self.cursor.tensor_row is not None else None
        bar = EditBar(
            label, value, accept, placeholder=hint, choices=words, list_kind=list_kind,
            open_grid=opens,
        )  # fmt: skip
        self.panes.mount_bar(bar)

    @task()
    async def _edit_sparse(self, node: Node, attribute: Attribute) -> None:
        """Edit type, dimensions and elements of a sparse tensor as text."""
        from dld_tui.core.model.edits import attributes
        from dld_tui.core.model.tensors.sparse import read_sparse_lines, sparse_lines
        from dld_tui.widgets.dialogs.dialogs import SPARSE_NOTE, TextDialog

        try:
            text = sparse_lines(self.document, attribute.value)
        except DldError as error:
            self.complain(error)
            return

        title = f"Sparse tensor {visible(attribute.name)}"
        dialog = TextDialog(title, text, check=read_sparse_lines, note=SPARSE_NOTE)
        answer = await self.ask(dialog)
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

    def revert(self) -> None:
        """Remove the attribute under the cursor, so that the default holds."""
        from dld_tui.core.model.document import Node
        from dld_tui.core.model.edits import attributes

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
        from dld_tui.core.model.edits.links import bypass_source

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
        from dld_tui.core.model.edits.nodes import delete_many

        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        edit = partial(self.document.apply, delete_many(nodes=pairs, reconnect=reconnect))
        title = f"Deleting {fmt.plural(len(nodes), 'node')}"
        self.history.change(title, [edit], large=len(nodes) > MANY)

    @task()
    async def _ask_outputs(self, nodes: Sequence[Node]) -> None:
        """Ask what outputs are called that are left when nodes are cut off."""
        from dld_tui.core.model.edits import replacing
        from dld_tui.core.model.edits.replacing import cut_values
        from dld_tui.widgets.dialogs.dialogs import FieldsDialog, FieldSpec
        from dld_tui.widgets.parameters.edit_bar import name_editor

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

        if not values:
            self.history.try_edit(replacing.cut_off(nodes=[node.ref for node in nodes]))
            return
        await self.inference.typed(always=True)  # outputs need types
        kinds = [main.value_type(value) for value in asked]
        fields = [
            FieldSpec(visible(kind.short) if kind is not None else "output", shown, "none")
            for kind, (shown, _) in zip(kinds, editors, strict=True)
        ]
        message = "Names of the new outputs; a tensor with an empty field becomes none."
        self.push(FieldsDialog("Cut off", message, fields, accept))

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

    def show_metadata(self) -> None:
        """Show the metadata of the node or graph at the cursor, and of the model."""
        from dld_tui.screens.model.metadata import MetadataScreen  # lazy: most sessions need none

        subject = self.cursor.subject if self.cursor.in_parameters else self.cursor.node
        self.push(MetadataScreen(self.history, subject or self.model.listing.root))

    def show_profiles(self) -> None:
        """Show the optimization profiles of the model."""
        from dld_tui.screens.model.metadata import ProfilesScreen  # lazy: most sessions need none

        self.push(ProfilesScreen(self.history))

    @task()
    async def edit_text(self) -> None:
        """Edit the doc string or metadata entry under the cursor."""
        from dld_tui.core.model.document import Node
        from dld_tui.widgets.dialogs.dialogs import (
            TextDialog,  # lazy: a text area takes long to load
        )

        key, node = self.cursor.text_key, self.cursor.subject
        if key is None or not isinstance(node, Node):
            self.show_metadata()
            return
        old = node.doc_string if key == DOC_STRING else node.metadata.get(key, "")
        title = "Doc string" if key == DOC_STRING else visible(key)

        text = await self.ask(TextDialog(title, old))
        if text is not None and text != old:
            self._set_text(node, key, text)

    def _set_text(self, node: Node, key: str, text: str | None) -> None:
        from dld_tui.core.model.edits import metadata

        where: dict[str, Any] = {"scope": node.scope.path, "nodes": [node.ref]}
        if key == DOC_STRING:
            self.history.try_edit(metadata.set_doc_string(text=text or "", **where))
        else:
            self.history.try_edit(metadata.set_metadata(key=key, value=text, **where))

    def delete_text(self) -> None:
        """Remove the doc string or metadata entry of the node."""
        from dld_tui.core.model.document import Node

        key, node = self.cursor.text_key, self.cursor.subject
        if key is not None and isinstance(node, Node):
            self._set_text(node, key, None)
        else:
            self.delete_chosen()

    @task()
    async def choose_precision(self) -> None:
        """Ask for the precision of the marked nodes, or of the one under the cursor."""
        from dld_tui.core.model.edits import metadata

        nodes = self.model.chosen_nodes
        if not nodes:
            return
        present = {precision_of(node) for node in nodes}
        now = visible(", ".join(sorted(filter(None, present)))) or "none"
        target = visible(nodes[0].ref) if len(nodes) == 1 else fmt.plural(len(nodes), "node")
        options = [(key, name, name) for key, name in zip(_KEYS, PRECISIONS, strict=True)]
        options.append(("c", "clear: TensorRT chooses", ""))
        message = (
            f"TensorRT precision of {target}; now {now}. TensorRT 10 obeys it if the build asks "
            "for that; for TensorRT 11 and RTX the built copy gets casts instead."
        )
        precision = await self.pick("Layer precision", message, options)
        if precision is None:
            return
        places: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        step = partial(
            self.document.apply, metadata.set_precision(nodes=places, precision=precision or None)
        )
        self.history.change("Setting the precision", [step], large=len(nodes) > MANY)

    @hears(Parameters.EditAsked)
    def edit_row(self, event: Parameters.EditAsked) -> None:
        """Edit what is under the cursor."""
        self.edit()

    @hears(Parameters.TensorAsked)
    def open_asked(self, event: Parameters.TensorAsked) -> None:
        """Open the editor on Enter."""
        self.open_row(event.row)

    def open_tensor(self) -> None:
        """Open the editor of the tensor at the cursor."""
        row = self.cursor.tensor_row
        if row is not None:
            self.open_row(row)

    def edit_tensor(self) -> None:
        """Edit in its own page what is too large for one line, and initializers."""
        from dld_tui.core.model.document import Node
        from dld_tui.widgets.parameters.edit_bar import editable_text

        row, subject = self.cursor.tensor_row, self.cursor.subject
        if row is not None and row.attribute and isinstance(subject, Node):
            attribute = subject.attribute(row.attribute)
            if attribute is not None and editable_text(attribute) is not None:
                self.edit_attribute()
                return
        self.open_tensor()

    def open_row(self, row: ParameterRow) -> None:
        """Open the editor of the tensor or list of a row."""
        place = self._place_of(self.panes.parameters.holder_of(row))
        if place is None or place.tensor is None:
            self.say("This tensor cannot be opened")
        else:
            self.show_tensor(place)

    def _place_of(self, row: ParameterRow) -> TensorPlace | None:
        from dld_tui.core.model.document import Node
        from dld_tui.screens.tensors.conversion import (
            TensorPlace,  # lazy: few sessions edit tensors
        )

        subject, scope = self.cursor.subject, self.cursor.subject_scope
        if isinstance(subject, Node) and row.attribute:
            return TensorPlace(subject.scope, node=subject, attribute=row.attribute)
        definition = scope.resolve(row.copied) if scope is not None else None
        if definition is None or definition.kind != "initializer":
            return None
        return TensorPlace(definition.scope, row.copied)

    def show_tensor(self, place: TensorPlace) -> None:
        """Show the editor of a tensor."""
        from dld_tui.screens.tensors.tensor_editor import TensorScreen

        self.push(TensorScreen(self.history, place))

    def show_initializers(self) -> None:
        """Show the initializers of the scope that the cursor is in."""
        from dld_tui.screens.tensors.initializers import InitializersScreen

        scope = self.cursor.subject_scope
        has_own = scope is not None and not scope.is_function
        self.push(InitializersScreen(self.history, scope if has_own else None))


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
