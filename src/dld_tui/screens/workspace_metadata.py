"""Metadata, layer precision, optimization profiles."""

from __future__ import annotations

from collections import Counter
from functools import partial

from dld_tui.core import fmt
from dld_tui.core.document import Node
from dld_tui.core.document.precision import PRECISIONS, precision_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace_change import MANY
from dld_tui.screens.workspace_edit import Editing
from dld_tui.screens.workspace_menu import chosen_nodes
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.explorer_search import all_nodes

_CLEAR = "clear"
_KEYS = "1234567890"
_FACTS = ("IR version", "producer")
"""Rows about the model that the metadata page edits."""
_DOC = "doc_string"


class Metadata(Editing):
    """The part of the workspace for metadata, layer precision, optimization profiles."""

    def facts(self) -> set[str]:
        """Return whether the text under the cursor can be edited, too."""
        facts = super().facts()
        text = self._text_key if self.is_open else None
        if text is None:
            return facts
        return facts | ({"attribute", "nodes"} if isinstance(self.subject, Node) else {"attribute"})

    # --- texts ----------------------------------------------------------------------------------

    @property
    def _text_key(self) -> str | None:
        """The metadata entry under the cursor, ``doc_string``, or None; ``""`` for a field."""
        row = self.parameters.row if self.in_parameters else None
        if row is None or not isinstance(row.key, tuple) or len(row.key) < 2:
            return None
        kind, name = row.key[:2]
        if kind == "metadata":
            return str(name)
        if kind == "fact" and name in _FACTS:
            return ""
        return _DOC if kind == _DOC or row.key == ("section", "Doc string") else None

    def action_metadata(self) -> None:
        """Show the metadata of the node or graph at the cursor, and of the model."""
        from dld_tui.screens.metadata import MetadataScreen  # lazy: most sessions need none

        subject = self.subject if self.in_parameters else self.node
        self.app.push_screen(MetadataScreen(self, subject or self.explorer.model.root))

    def action_profiles(self) -> None:
        """Show the optimization profiles of the model."""
        from dld_tui.screens.profiles import ProfilesScreen  # lazy: most sessions need none

        self.app.push_screen(ProfilesScreen(self))

    def action_edit(self) -> None:
        """Edit the doc string or metadata entry under the cursor, or what else is there."""
        key, node = self._text_key, self.subject
        if key is None:
            super().action_edit()
        elif isinstance(node, Node):
            self._edit_text(node, key)
        else:
            self.action_metadata()

    def _edit_text(self, node: Node, key: str) -> None:
        from dld_tui.widgets.text_dialog import TextDialog  # lazy: a text area takes long to load

        old = node.doc_string if key == _DOC else node.metadata.get(key, "")
        title = "Doc string" if key == _DOC else visible(key)

        def edited(text: str | None) -> None:
            if text is not None and text != old:
                self._set_text(node, key, text)

        self.app.push_screen(TextDialog(title, old), edited)

    def _set_text(self, node: Node, key: str, text: str | None) -> None:
        where: dict[str, JSON] = {"scope": list(node.scope.path), "nodes": [node.ref]}
        if key == _DOC:
            self.try_edit("set_doc_string", text=text or "", **where)
        else:
            self.try_edit("set_metadata", key=key, value=text, **where)

    def action_delete(self) -> None:
        """Remove the doc string or metadata entry of the node, or what else is there."""
        key, node = self._text_key, self.subject
        if key is not None and isinstance(node, Node):
            self._set_text(node, key, None)
        else:
            super().action_delete()

    # --- precision ------------------------------------------------------------------------------

    def action_precision(self) -> None:
        """Ask for the precision of the marked nodes, or of the one under the cursor."""
        nodes = chosen_nodes(self)
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

        self.app.push_screen(ChoiceDialog("Layer precision", message, choices), chosen)

    def _set_precision(self, nodes: list[Node], precision: str | None) -> None:
        places: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        step = partial(self.document.apply, "set_precision", nodes=places, precision=precision)
        self.change("Setting the precision", [step], large=len(nodes) > MANY)

    def action_mark_precision(self) -> None:
        """Ask for a precision and mark the nodes that are set to it."""
        counts = Counter(map(precision_of, all_nodes(self.explorer.model)))
        counts.pop("", None)
        if not counts:
            self.notify("No node has a precision yet: P sets one", timeout=3)
            return
        choices = [
            Choice(key, f"{visible(name)}  {fmt.plural(count, 'node')}", name)
            for key, (name, count) in zip(_KEYS, counts.most_common(), strict=False)
        ]

        def chosen(answer: str | None) -> None:
            if answer is not None:
                nodes = all_nodes(self.explorer.model)
                found = {node for node in nodes if precision_of(node) == answer}
                self.explorer.list.set_marks(set(found))

        self.app.push_screen(ChoiceDialog("Mark", "Nodes of which precision?", choices), chosen)
