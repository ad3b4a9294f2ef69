"""Bodies of nodes and local functions in the workspace: made, changed, inlined, listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.model.document.local_functions import enclosing_function, function_of
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor, by_scope
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Edit, Node, Scope, Transaction
    from dld_tui.widgets.dialogs.search import PickItem


_MOST = 9
_LOOKED_AT = 64
"""Marked nodes that are looked at for calls to tell which commands fit."""
_NEW = ""
"""The key of the row that declares an attribute; no attribute has this name."""


@dataclass(frozen=True)
class Slot:
    """Where a node can take a body."""

    attribute: str
    many: bool
    """Whether the attribute is a list of bodies."""
    replaces: bool = False
    """Whether it takes the place of the body that is there."""

    @property
    def label(self) -> str:
        """Return what is asked: visible text."""
        tail = ", replacing the present one" if self.replaces else ""
        return visible(self.attribute) + tail


def body_slots(node: Node) -> list[Slot]:
    """Return the attributes that can take a body, those without one first."""
    from dld_tui.core.model.document.operator_matching import schema_of

    schema = schema_of(node)
    wanted = (
        [item for item in schema.attributes if item.kind in ("graph", "graphs")] if schema else []
    )
    slots = {item.name: Slot(item.name, item.kind == "graphs") for item in wanted}
    for attribute in node.attributes():
        if attribute.kind == "graphs":
            slots[attribute.name] = Slot(attribute.name, many=True)
        elif attribute.kind == "graph":
            slots[attribute.name] = Slot(attribute.name, many=False, replaces=True)
        else:
            slots.pop(attribute.name, None)
    return sorted(slots.values(), key=lambda slot: slot.replaces)


def _place(node: Node, slot: Slot) -> dict[str, Any]:
    scope = node.scope.path
    place = {"scope": scope, "node": node.ref, "attribute": slot.attribute}
    return place | {"many": slot.many, "replace": slot.replaces}


def _place_of(body: Scope) -> dict[str, Any]:
    assert body.owner is not None
    scope = body.owner.scope.path
    return {"scope": scope, "node": body.owner.ref, "attribute": body.attribute}


def _body_items(bodies: Sequence[Scope]) -> Iterable[PickItem]:
    from dld_tui.widgets.dialogs.search import PickItem

    for at, body in enumerate(bodies):
        place, size = place_text(body), fmt.plural(len(body.nodes), "node")
        captured = len(body.captured())
        note = f"{size}, {captured} captured" if captured else size
        yield PickItem(at, [(place, "name"), (f"  {note}", "dim")], place)


_OTHER = Slot("", many=False)
"""An attribute whose name is asked for."""


@dataclass(eq=False)
class Functions(Controller):
    """Makes, inlines and lists local functions; adds, copies, moves and deletes subgraphs."""

    COMMAND_TABLE = table(
        "workspace",
        ("edit.operator", "functions.set_operator", "", "nodes", "change operator",
         "Let the marked nodes, or the node at the cursor, call another operator."),
        ("edit.add_attribute", "functions.add_attribute", "", "node", "add attribute",
         "Add an attribute of any name and kind to the node, or change the kind of one."),
        ("function.list", "functions.show_list", "F", "", "functions",
         "List the local functions: signatures, attributes, calls.", "local functions"),
        ("function.make", "functions.make", "O", "nodes", "make function",
         "Turn the marked nodes, or the node at the cursor, into a function."),
        ("function.inline", "functions.inline", "U", "call", "inline function",
         "Replace the function call at the cursor, or the marked calls, with its nodes."),
        ("function.plugin", "functions.replace_by_custom", "", "nodes", "replace by custom",
         "Replace the marked nodes with one custom node, such as a plugin's.",
         "plugin, tensorrt plugin, custom operator, efficientnms"),
        ("function.reference", "functions.refer", "A", "inside_function", "refer to attribute",
         "Bind the attribute at the cursor to an attribute of the function."),
        ("body.menu", "functions.show_menu", "L", "node", "subgraphs",
         "Add, copy, move or delete a subgraph of the node.", "bodies, body"),
        common="document",
        menus={
            "edit.operator": "node",
            "edit.add_attribute": "node attribute",
            "function.list": "scope",
            "function.inline": "node",
            "function.reference": "attribute",
        },
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory

    def conditions(self, cursor: Cursor) -> set[str]:
        """Return whether there are calls of functions, and whether it is inside a function."""
        chosen = self.model.chosen(cursor)[:_LOOKED_AT]
        return holding(
            call=any(function_of(node) is not None for node in chosen),
            inside_function=self._attribute_inside(cursor) is not None,
        )

    @task()
    async def show_list(self) -> None:
        """Show the list of local functions."""
        from dld_tui.core.model.document import Node, Scope
        from dld_tui.screens.model.functions import (
            FunctionsScreen,  # lazy: few models have functions
        )

        subject, scope = self.cursor.subject, self.cursor.subject_scope
        start = function_of(subject) if isinstance(subject, Node) else None
        if start is None and scope is not None:
            start = enclosing_function(scope)
        page = FunctionsScreen(self.history, start)

        await self.ask(page)
        if isinstance(page.chosen, Scope):
            self.navigation.open_scope(page.chosen)
        elif page.chosen is not None:
            self.navigation.go_to(page.chosen)

    def _one_scope(self) -> tuple[Scope, list[str]] | None:
        """Return the scope and refs of the chosen nodes; warns if they are in several scopes."""
        from dld_tui.screens.workspace.editing import outer_nodes

        nodes_by_scope = by_scope(outer_nodes(self.model.chosen_nodes))
        if len(nodes_by_scope) > 1:
            self.say("The marked nodes are in several graphs: choose those of one", 4)
            return None
        for scope, refs in nodes_by_scope.items():
            return scope, [str(ref) for ref in refs]
        return None

    def make(self) -> None:
        """Make a function of the chosen nodes, and call it in their place."""
        from dld_tui.core.model.edits.functions import NEW_DOMAIN, unused_key
        from dld_tui.screens.model.functions import make_dialog

        if (chosen := self._one_scope()) is None:
            return
        scope, refs = chosen
        inside = enclosing_function(scope)
        domain = inside.step.removeprefix("function ").partition(":")[0] if inside else NEW_DOMAIN
        _, name, _ = unused_key(self.document, (domain, "Block", ""))
        dialog = make_dialog(self._edit_and_show, scope, refs, name, domain)
        self.push(dialog)

    def replace_by_custom(self) -> None:
        """Put one custom node in the place of the chosen nodes."""
        from dld_tui.core.model.document.parts.extraction import nodes_at
        from dld_tui.core.model.edits.nodes import boundary, file_order
        from dld_tui.screens.model.functions import custom_dialog

        if (chosen := self._one_scope()) is not None:
            scope, refs = chosen
            ends = boundary(scope, file_order(scope, nodes_at(scope, refs)))
            self.push(custom_dialog(self._edit_and_show, scope, refs, *ends))

    def set_operator(self) -> None:
        """Let the chosen nodes call another operator."""
        from dld_tui.screens.model.functions import operator_dialog

        node = self.cursor.node
        if (chosen := self._one_scope()) is not None and node is not None:
            present = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            self.push(operator_dialog(self._edit_and_show, *chosen, visible(present)))

    def add_attribute(self) -> None:
        """Add an attribute to the node at the cursor."""
        from dld_tui.screens.model.functions import attribute_dialog

        if (node := self.cursor.node) is not None:
            self.push(attribute_dialog(self.history.edit, node))

    def inline(self) -> None:
        """Replace the chosen calls by the nodes of their functions."""
        from dld_tui.core.model.edits import functions

        node_functions = [(node, function_of(node)) for node in self.model.chosen_nodes]
        calls = [node for node, function in node_functions if function is not None]
        size = sum(len(function.nodes) for _, function in node_functions if function is not None)
        if not calls:
            return
        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in calls]
        try:
            self._run_edit(functions.inline_function(nodes=pairs), size)
        except DldError as error:
            self.complain(error)

    def _edit_and_show(self, edit: Edit) -> None:
        nodes = edit.arguments["nodes"]
        self._run_edit(edit, len(nodes) if isinstance(nodes, list) else 1)

    def _run_edit(self, edit: Edit, size: int) -> None:
        """Make an edit of so many nodes and show what it did: a large one on a thread."""
        if size <= MANY:
            self._show(self.history.edit(edit))
            return
        transactions: list[Transaction] = []

        def step() -> Transaction:
            transactions.append(self.document.apply(edit))
            return transactions[0]

        self.history.change("Working", [step], large=True, done=lambda: self._show(transactions[0]))

    def _show(self, transaction: Transaction) -> None:
        """Show what an edit did, and go to the first node that it added."""
        from dld_tui.core.model.document.transactions import Splice

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

    def _attribute_inside(self, cursor: Cursor) -> tuple[Node, str, Scope] | None:
        """Return the attribute under the cursor, and the function that it is inside."""
        from dld_tui.core.model.document import Node

        row, node = cursor.row, cursor.subject
        if row is None or not row.attribute or not isinstance(node, Node):
            return None
        function = enclosing_function(node.scope)
        return (node, row.attribute, function) if function is not None else None

    @task()
    async def refer(self) -> None:
        """Choose the attribute of the function that the one at the cursor takes its value from."""
        from dld_tui.widgets.dialogs.search import PickDialog

        attribute = self._attribute_inside(self.cursor)
        if attribute is None:
            return
        node, name, function = attribute

        items = partial(_reference_items, function, _kind_of(node, name))
        title = f"{visible(name)} is which attribute of {visible(function.title)}?"
        present = node.attribute(name)
        value = present.reference if present is not None else None
        reference = await self.ask(PickDialog(title, items, value=value, placeholder="name"))
        if reference == _NEW:
            self._declare(node, name, function)
        elif isinstance(reference, str):
            self._refer(node, name, reference)

    def _refer(self, node: Node, name: str, reference: str) -> None:
        from dld_tui.core.model.edits import functions

        kind = _kind_of(node, name) if node.attribute(name) is None else None
        self.history.try_edit(
            functions.set_attribute_reference(
                scope=node.scope.path,
                node=node.ref,
                attribute=name,
                reference=reference,
                kind=kind,
            )
        )

    def _declare(self, node: Node, name: str, function: Scope) -> None:
        """Declare an attribute of the function, and refer to it."""
        from dld_tui.core.model.document.local_functions import function_attributes
        from dld_tui.core.model.edits import functions
        from dld_tui.screens.model.functions import parse_declaration
        from dld_tui.widgets.dialogs.dialogs import FieldsDialog, FieldSpec

        def accept(texts: list[str]) -> None:
            declared, kind, value = parse_declaration(texts[0])
            if declared in {row.name for row in function_attributes(function)}:
                raise EditError("the function has an attribute of this name already")
            self.history.edit(
                functions.set_function_attribute(
                    scope=function.path,
                    attribute=declared,
                    kind=kind,
                    value=value,
                )
            )
            self._refer(node, name, declared)

        fields = [FieldSpec("attribute", visible(name), "slope, or slope: float = 0.25")]
        message = "A name; with a default as in ONNX text, its kind and value."
        self.push(FieldsDialog("New attribute", message, fields, accept))

    @task()
    async def show_menu(self) -> None:
        """Ask what is to be done with the bodies of the node."""
        from dld_tui.core.model.edits import subgraphs

        node = self.cursor.node
        if node is None:
            return
        bodies = node.subgraphs()
        options = [("a", "add a new subgraph", "add"), ("c", "copy another subgraph", "copy")]
        if bodies:
            options.append(("d", "delete a subgraph", "delete"))
        movable = [body for body in bodies if body.position is not None]
        if len(movable) > 1:
            options.append(("m", "move a subgraph to the front of its list", "move"))
        name = clip(visible(node.name or node.op_type), 40, keep="middle")
        count = "one subgraph" if len(bodies) == 1 else f"{len(bodies) or 'no'} subgraphs"
        answer = await self.pick("Subgraphs", f"{name} has {count}.", options)
        if answer in ("add", "copy"):
            await self._add_body(node, is_copy=answer == "copy")
        elif answer == "delete":
            body = await self._pick_body("Delete", bodies)
            if body is not None:
                edit = subgraphs.delete_subgraph(index=body.position, **_place_of(body))
                self.history.try_edit(edit)
        elif answer == "move":
            body = await self._pick_body("Move to the front", movable)
            if body is not None and body.position is not None:  # one of a list of bodies
                edit = subgraphs.move_subgraph(index=body.position, to=0, **_place_of(body))
                self.history.try_edit(edit)

    async def _add_body(self, node: Node, *, is_copy: bool) -> None:
        """Add an empty body, or a copy of another one, and show its nodes."""
        from dld_tui.core.model.edits import subgraphs
        from dld_tui.widgets.dialogs.search import PickDialog

        slot = await self._pick_slot(node)
        if slot is None:
            return
        edit = subgraphs.add_subgraph(**_place(node, slot))
        if is_copy:
            bodies = [scope for scope in self.document.scopes() if scope.owner is not None]
            if not bodies:
                self.say("The model has no subgraphs to copy")
                return
            items = partial(_body_items, bodies)
            at = await self.ask(PickDialog("Copy which subgraph?", items, placeholder="place"))
            if not isinstance(at, int):
                return
            edit = subgraphs.copy_subgraph(source=bodies[at].path, **_place(node, slot))
        if self.history.try_edit(edit):
            self.navigation.open_scope(node.children[slot.attribute][-1])

    async def _pick_slot(self, node: Node) -> Slot | None:
        """Ask for the attribute that a new body goes into, unless there is only one."""
        from dld_tui.core.model.document.operator_matching import schema_of
        from dld_tui.widgets.dialogs.dialogs import PromptDialog

        slots = body_slots(node)
        if len(slots) == 1 and not slots[0].replaces:
            return slots[0]
        slot: Slot | None = _OTHER
        if slots:
            options = [(str(at), slot.label, slot) for at, slot in enumerate(slots[:_MOST], 1)]
            if schema_of(node) is None:
                options.append(("o", "another attribute", _OTHER))
            slot = await self.pick("Subgraph", "Which attribute should hold it?", options)
        if slot is not _OTHER:
            return slot
        message = "The attribute that holds the subgraph; append [] for a list of them."
        text = await self.ask(PromptDialog("Subgraph", message, placeholder="body"))
        name = (text or "").strip()
        return Slot(name.removesuffix("[]"), name.endswith("[]")) if name else None

    async def _pick_body(self, title: str, bodies: Sequence[Scope]) -> Scope | None:
        """Ask for one of several bodies."""
        from dld_tui.widgets.dialogs.search import PickDialog

        if len(bodies) == 1:
            return bodies[0]
        items = partial(_body_items, bodies)
        at = await self.ask(PickDialog(f"{title} which subgraph?", items, placeholder="name"))
        return bodies[at] if isinstance(at, int) else None


def _kind_of(node: Node, name: str) -> str | None:
    """Return the kind of a node's attribute, set or not; None where it is not known."""
    from dld_tui.core.model.document.operator_matching import schema_of

    present, schema = node.attribute(name), schema_of(node)
    known = schema.attribute(name) if schema is not None else None
    if known is not None:
        return known.kind
    return present.kind if present is not None else None


def _reference_items(function: Scope, kind: str | None) -> Iterable[PickItem]:
    """Yield the attributes of a function; those of another kind are grey, and come last."""
    from dld_tui.core.model.document.local_functions import function_attributes
    from dld_tui.widgets.dialogs.search import PickItem

    rows = [
        (bool(row.kind and kind and row.kind != kind), row) for row in function_attributes(function)
    ]
    for is_other, row in sorted(rows, key=lambda item: item[0]):
        style = "faint" if is_other else "name"
        yield PickItem(row.name, [(visible(row.text), style)], visible(row.text))
    yield PickItem(_NEW, [("declare a new attribute", "dim")], "declare a new attribute")
