"""Metadata, layer precision, optimization profiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.metadata import PRECISIONS, precision_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.cursor import DOC_STRING
from dld_tui.screens.workspace.editing import Editing
from dld_tui.screens.workspace.history import MANY, History
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

if TYPE_CHECKING:
    from dld_tui.core.document import Node


_CLEAR = "clear"
_KEYS = "1234567890"


@dataclass(eq=False)
class Metadata(Controller):
    """Edits what a model says of itself beside its computation."""

    history: History
    editing: Editing

    def show(self) -> None:
        """Show the metadata of the node or graph at the cursor, and of the model."""
        from dld_tui.screens.model.metadata import MetadataScreen  # lazy: most sessions need none

        subject = self.cursor.subject if self.cursor.in_parameters else self.cursor.node
        self.ask(MetadataScreen(self.history, subject or self.model.listing.root))

    def show_profiles(self) -> None:
        """Show the optimization profiles of the model."""
        from dld_tui.screens.model.profiles import ProfilesScreen  # lazy: most sessions need none

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
        where: dict[str, JSON] = {"scope": list(node.scope.path), "nodes": [node.ref]}
        if key == DOC_STRING:
            self.history.try_edit("set_doc_string", text=text or "", **where)
        else:
            self.history.try_edit("set_metadata", key=key, value=text, **where)

    def delete(self) -> None:
        """Remove the doc string or metadata entry of the node."""
        from dld_tui.core.document import Node

        key, node = self.cursor.text_key, self.cursor.subject
        if key is not None and isinstance(node, Node):
            self._set_text(node, key, None)
        else:
            self.editing.delete_chosen()

    # --- precision ------------------------------------------------------------------------------

    def choose_precision(self) -> None:
        """Ask for the precision of the marked nodes, or of the one under the cursor."""
        nodes = self.model.chosen_nodes
        if not nodes:
            return
        present = {precision_of(node) for node in nodes}
        now = visible(", ".join(sorted(filter(None, present)))) or "none"
        what = visible(nodes[0].ref) if len(nodes) == 1 else fmt.plural(len(nodes), "node")
        choices = [
            *(Choice(key, name, name) for key, name in zip(_KEYS, PRECISIONS, strict=True)),
            Choice("c", "clear: TensorRT chooses", _CLEAR),
        ]
        message = (
            f"TensorRT precision of {what}; now {now}. TensorRT 10 obeys it where it is told to; "
            "for TensorRT 11 and RTX it becomes casts in the copy that is built."
        )

        def chosen(answer: str | None) -> None:
            if answer is not None:
                self._set_precision(nodes, None if answer == _CLEAR else answer)

        self.ask(ChoiceDialog("Layer precision", message, choices), chosen)

    def _set_precision(self, nodes: list[Node], precision: str | None) -> None:
        places: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        step = partial(self.document.apply, "set_precision", nodes=places, precision=precision)
        self.history.change("Setting the precision", [step], large=len(nodes) > MANY)
