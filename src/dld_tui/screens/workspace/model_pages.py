"""Pages about parts of the model: metadata, layer precision, profiles, initializers, tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.document.metadata import PRECISIONS, precision_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller, Option
from dld_tui.screens.workspace.editing import Editing
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.panes import Panes
from dld_tui.widgets.parameters.descriptions import DOC_STRING, ParameterRow
from dld_tui.widgets.parameters.pane import Parameters

if TYPE_CHECKING:
    from dld_tui.core.document import Node
    from dld_tui.screens.tensors.conversion import TensorPlace

_KEYS = "1234567890"


@dataclass(eq=False)
class Metadata(Controller):
    """Edits what a model says of itself beside its computation."""

    COMMAND_TABLE = table(
        "workspace",
        ("layer.precision", "metadata.choose_precision", "P", "nodes", "precision",
         "Set the TensorRT precision of the marked nodes, or of the node at the cursor.",
         "layer precisions, force fp16, set precision"),
        ("model.metadata", "metadata.show", "at", "", "metadata",
         "Show and edit doc strings, metadata, producer, IR version and types.",
         "doc string, producer, ir version, properties, description"),
        ("model.profiles", "metadata.show_profiles", "", "", "shape profiles",
         "Edit the optimization profiles: minimum, optimum and maximum input shapes.",
         "dynamic shapes, optimization profiles, min opt max"),
        common="document",
        menus={"model.metadata": "node scope metadata", "model.profiles": "boundary scope"},
    )  # fmt: skip

    history: EditHistory
    editing: Editing

    def show(self) -> None:
        """Show the metadata of the node or graph at the cursor, and of the model."""
        from dld_tui.screens.model.metadata import MetadataScreen  # lazy: most sessions need none

        subject = self.cursor.subject if self.cursor.in_parameters else self.cursor.node
        self.ask(MetadataScreen(self.history, subject or self.model.listing.root))

    def show_profiles(self) -> None:
        """Show the optimization profiles of the model."""
        from dld_tui.screens.model.metadata import ProfilesScreen  # lazy: most sessions need none

        self.ask(ProfilesScreen(self.history))

    def edit(self) -> None:
        """Edit the doc string or metadata entry under the cursor."""
        from dld_tui.core.document import Node

        key, node = self.cursor.text_key, self.cursor.subject
        if key is not None and isinstance(node, Node):
            self._edit_text(node, key)
        else:
            self.show()

    def _edit_text(self, node: Node, key: str) -> None:
        from dld_tui.widgets.dialogs.dialogs import (
            TextDialog,  # lazy: a text area takes long to load
        )

        old = node.doc_string if key == DOC_STRING else node.metadata.get(key, "")
        title = "Doc string" if key == DOC_STRING else visible(key)

        def edited(text: str | None) -> None:
            if text is not None and text != old:
                self._set_text(node, key, text)

        self.ask(TextDialog(title, old), edited)

    def _set_text(self, node: Node, key: str, text: str | None) -> None:
        from dld_tui.core.edits import metadata

        where: dict[str, Any] = {"scope": node.scope.path, "nodes": [node.ref]}
        if key == DOC_STRING:
            self.history.try_edit(metadata.set_doc_string(text=text or "", **where))
        else:
            self.history.try_edit(metadata.set_metadata(key=key, value=text, **where))

    def delete(self) -> None:
        """Remove the doc string or metadata entry of the node."""
        from dld_tui.core.document import Node

        key, node = self.cursor.text_key, self.cursor.subject
        if key is not None and isinstance(node, Node):
            self._set_text(node, key, None)
        else:
            self.editing.delete_chosen()

    def choose_precision(self) -> None:
        """Ask for the precision of the marked nodes, or of the one under the cursor."""
        nodes = self.model.chosen_nodes
        if not nodes:
            return
        present = {precision_of(node) for node in nodes}
        now = visible(", ".join(sorted(filter(None, present)))) or "none"
        target = visible(nodes[0].ref) if len(nodes) == 1 else fmt.plural(len(nodes), "node")
        options: list[Option] = [
            (key, name, partial(self._set_precision, nodes, name))
            for key, name in zip(_KEYS, PRECISIONS, strict=True)
        ]
        options.append(("c", "clear: TensorRT chooses", partial(self._set_precision, nodes, None)))
        message = (
            f"TensorRT precision of {target}; now {now}. TensorRT 10 obeys it if the build asks "
            "for that; for TensorRT 11 and RTX the built copy gets casts instead."
        )
        self.ask_which("Layer precision", message, options)

    def _set_precision(self, nodes: list[Node], precision: str | None) -> None:
        from dld_tui.core.edits import metadata

        places: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        step = partial(
            self.document.apply, metadata.set_precision(nodes=places, precision=precision)
        )
        self.history.change("Setting the precision", [step], large=len(nodes) > MANY)


@dataclass(eq=False)
class Tensors(Controller):
    """Opens the pages of initializers and tensors."""

    COMMAND_TABLE = table(
        "workspace",
        ("tensor.initializers", "tensors.show_initializers", "i", "", "initializers",
         "List the initializers: sizes, consumers, conversion, external data.",
         "weights, biggest weights, largest weights, parameters, tensors, biggest, largest, "
         "constants and weights"),
        ("tensor.edit", "tensors.open", "", "tensor", "edit tensor",
         "Open the tensor or list at the cursor in the tensor editor.",
         "edit weights, change a weight, values, elements, edit list, grid, cells"),
        common="document",
    )  # fmt: skip

    panes: Panes
    history: EditHistory
    editing: Editing

    def open_asked(self, event: Parameters.TensorAsked) -> None:
        """Open the editor on Enter."""
        self.open_row(event.row)

    def open(self) -> None:
        """Open the editor of the tensor at the cursor."""
        row = self.cursor.tensor_row
        if row is not None:
            self.open_row(row)

    def edit(self) -> None:
        """Edit in its own page what is too large for one line, and initializers."""
        from dld_tui.core.document import Node
        from dld_tui.widgets.parameters.edit_bar import editable_text

        row, subject = self.cursor.tensor_row, self.cursor.subject
        if row is not None and row.attribute and isinstance(subject, Node):
            attribute = subject.attribute(row.attribute)
            if attribute is not None and editable_text(attribute) is not None:
                self.editing.edit_attribute()
                return
        self.open()

    def open_row(self, row: ParameterRow) -> None:
        """Open the editor of the tensor or list of a row."""
        place = self._place_of(self.panes.parameters.holder_of(row))
        if place is None or place.tensor is None:
            self.say("This tensor cannot be opened")
        else:
            self.open_tensor(place)

    def _place_of(self, row: ParameterRow) -> TensorPlace | None:
        from dld_tui.core.document import Node
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

    def open_tensor(self, place: TensorPlace) -> None:
        """Show the editor of a tensor."""
        from dld_tui.screens.tensors.tensor_editor import TensorScreen

        self.ask(TensorScreen(self.history, place))

    def show_initializers(self) -> None:
        """Show the initializers of the scope that the cursor is in."""
        from dld_tui.screens.tensors.initializers import InitializersScreen

        scope = self.cursor.subject_scope
        has_own = scope is not None and not scope.is_function
        self.ask(InitializersScreen(self.history, scope if has_own else None))
