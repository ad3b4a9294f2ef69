"""Local functions in the workspace: making, inlining, attribute references; the list of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core.document.local_functions import enclosing_function, function_of
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.cursor import Cursor
from dld_tui.screens.workspace.history import MANY, History
from dld_tui.screens.workspace.model import by_scope
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope, Transaction
    from dld_tui.widgets.dialogs.search import PickItem


_LOOKED_AT = 64
"""Marked nodes that are looked at for calls to tell which commands fit."""
_NEW = ""
"""The key of the row that declares an attribute; no attribute has this name."""


@dataclass(eq=False)
class Functions(Controller):
    """Makes, inlines and lists local functions."""

    panes: Panes
    navigation: Navigation
    history: History

    def facts(self, cursor: Cursor) -> set[str]:
        """Return whether there are calls of functions, and whether it is inside a function."""
        chosen = self.model.chosen(cursor)[:_LOOKED_AT]
        known = {
            "call": any(function_of(node) is not None for node in chosen),
            "inside_function": self._attribute_inside(cursor) is not None,
        }
        return {name for name, holds in known.items() if holds}

    # --- the list -------------------------------------------------------------------------------

    def show_list(self) -> None:
        """Show the list of local functions."""
        from dld_tui.core.document import Node, Scope
        from dld_tui.screens.model.functions import (
            FunctionsScreen,  # lazy: few models have functions
        )

        subject, scope = self.cursor.subject, self.cursor.subject_scope
        start = function_of(subject) if isinstance(subject, Node) else None
        if start is None and scope is not None:
            start = enclosing_function(scope)
        page = FunctionsScreen(self.history, start)

        def left(_: None) -> None:
            if isinstance(page.chosen, Scope):
                self.navigation.open_scope(page.chosen)
            elif page.chosen is not None:
                self.navigation.go_to(page.chosen)

        self.ask(page, left)

    # --- making and inlining --------------------------------------------------------------------

    def _one_scope(self) -> tuple[Scope, list[str]] | None:
        """Return the scope and refs of the chosen nodes; says so when they are of several."""
        from dld_tui.screens.workspace.editing import outer_nodes

        found = by_scope(outer_nodes(self.model.chosen_nodes))
        if len(found) > 1:
            self.say("The marked nodes are in several graphs: choose those of one", 4)
            return None
        for scope, refs in found.items():
            return scope, [str(ref) for ref in refs]
        return None

    def make(self) -> None:
        """Make a function of the chosen nodes, and call it in their place."""
        from dld_tui.core.document.edits.function_instances import unused_key
        from dld_tui.core.document.edits.functions import NEW_DOMAIN
        from dld_tui.screens.model.functions import make_dialog

        if (chosen := self._one_scope()) is None:
            return
        scope, refs = chosen
        inside = enclosing_function(scope)
        domain = inside.step.removeprefix("function ").partition(":")[0] if inside else NEW_DOMAIN
        _, name, _ = unused_key(self.document, (domain, "Block", ""))
        dialog = make_dialog(self._edit_and_show, scope, refs, name, domain)
        self.ask(dialog)

    def replace_by_custom(self) -> None:
        """Put one custom node in the place of the chosen nodes."""
        from dld_tui.screens.model.functions import custom_dialog

        if (chosen := self._one_scope()) is not None:
            self.ask(custom_dialog(self._edit_and_show, *chosen))

    def inline(self) -> None:
        """Replace the chosen calls by the nodes of their functions."""
        found = [(node, function_of(node)) for node in self.model.chosen_nodes]
        calls = [node for node, function in found if function is not None]
        size = sum(len(function.nodes) for _, function in found if function is not None)
        if not calls:
            return
        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in calls]
        try:
            self._run_edit("inline_function", size, nodes=pairs)
        except DldError as error:
            self.complain(error)

    def _edit_and_show(self, name: str, /, *, nodes: Sequence[JSON], **arguments: JSON) -> None:
        self._run_edit(name, len(nodes), nodes=list(nodes), **arguments)

    def _run_edit(self, name: str, size: int, /, **arguments: JSON) -> None:
        """Make an edit of so many nodes and show what it did: a large one on a thread."""
        if size <= MANY:
            self._show(self.history.edit(name, **arguments))
            return
        made: list[Transaction] = []

        def step() -> Transaction:
            made.append(self.document.apply(name, **arguments))
            return made[0]

        self.history.change("Working", [step], large=True, done=lambda: self._show(made[0]))

    def _show(self, transaction: Transaction) -> None:
        """Say what an edit did, and go to the first node that it added."""
        from dld_tui.core.document.primitives import Splice

        text = visible(transaction.title)
        self.say(text[:1].upper() + text[1:], 4)
        added = [
            node
            for primitive in transaction.primitives
            if isinstance(primitive, Splice) and primitive.list_name == "node"
            for node in primitive.inserted
            if node not in primitive.removed
        ]
        if added:
            self.panes.explorer.list.set_marks(set())
            self.navigation.go_to(added[0])

    # --- attribute references -------------------------------------------------------------------

    def _attribute_inside(self, cursor: Cursor) -> tuple[Node, str, Scope] | None:
        """Return the attribute under the cursor, and the function that it is inside."""
        from dld_tui.core.document import Node

        row, node = cursor.row, cursor.subject
        if row is None or not row.attribute or not isinstance(node, Node):
            return None
        function = enclosing_function(node.scope)
        return (node, row.attribute, function) if function is not None else None

    def refer(self) -> None:
        """Choose the attribute of the function that the one at the cursor takes its value from."""
        from dld_tui.widgets.dialogs.search import PickDialog

        found = self._attribute_inside(self.cursor)
        if found is None:
            return
        node, name, function = found

        def chosen(reference: object) -> None:
            if reference == _NEW:
                self._declare(node, name, function)
            elif isinstance(reference, str):
                self._refer(node, name, reference)

        items = partial(_reference_items, function)
        title = f"{visible(name)} is which attribute of {visible(function.title)}?"
        present = node.attribute(name)
        value = present.reference if present is not None else None
        self.ask(PickDialog(title, items, value=value, placeholder="name"), chosen)

    def _refer(self, node: Node, name: str, reference: str) -> None:
        from dld_tui.widgets.parameters.model import node_schema

        kind = None
        if node.attribute(name) is None:
            schema = node_schema(node)
            known = schema.attribute(name) if schema is not None else None
            kind = known.kind if known is not None else None
        self.history.try_edit(
            "set_attribute_reference", scope=list(node.scope.path), node=node.ref, attribute=name,
            reference=reference, kind=kind,
        )  # fmt: skip

    def _declare(self, node: Node, name: str, function: Scope) -> None:
        """Declare an attribute of the function, and refer to it."""
        from dld_tui.core.document.local_functions import function_attributes
        from dld_tui.screens.model.functions import parse_declaration
        from dld_tui.widgets.dialogs.fields import FieldsDialog, FieldSpec

        def accept(texts: list[str]) -> None:
            declared, kind, value = parse_declaration(texts[0])
            if declared in {row.name for row in function_attributes(function)}:
                raise EditError("the function has an attribute of this name already")
            self.history.edit(
                "set_function_attribute", scope=list(function.path), attribute=declared, kind=kind,
                value=value,
            )  # fmt: skip
            self._refer(node, name, declared)

        fields = [FieldSpec("attribute", visible(name), "slope, or slope: float = 0.25")]
        message = "A name; with a default as in ONNX text, its kind and value."
        self.ask(FieldsDialog("New attribute", message, fields, accept))


def _reference_items(function: Scope) -> Iterable[PickItem]:
    from dld_tui.core.document.local_functions import function_attributes
    from dld_tui.widgets.dialogs.search import PickItem

    rows: Sequence[PickItem] = [
        PickItem(row.name, [(visible(row.text), "name")], visible(row.text))
        for row in function_attributes(function)
    ]
    yield from rows
    yield PickItem(_NEW, [("declare a new attribute", "dim")], "declare a new attribute")
