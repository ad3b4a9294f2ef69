"""Repairs that keep the meaning of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document.edits.attributes import attribute_proto, find_attribute
from dld_tui.core.document.edits.deletion import delete_from, splice_out_all
from dld_tui.core.document.edits.initializers import INITIALIZERS_APART
from dld_tui.core.document.edits.nodes import free_node_name
from dld_tui.core.document.edits.registry import edit, node_at, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.index import record_name
from dld_tui.core.document.primitives import SetAttribute, SetLinks, SetText, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.transposes import permutation
from dld_tui.core.document.traverse import live_nodes, topological_order
from dld_tui.core.document.wiretext import get_text
from dld_tui.core.errors import EditError

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def sort_nodes(document: Document, transaction: Transaction, *, scope: Sequence[str]) -> str:
    """Put the nodes of a scope into an order in which each comes after its inputs.

    Nodes that are in a good place stay where they are, relative to each other.
    """
    home = document.scope_at(scope)
    order = topological_order(home)
    if order is None:
        raise EditError("the graph has a cycle: no order is right", hint="Break the cycle first")
    if order != home.nodes:
        transaction.do(Splice(home, "node", 0, list(home.nodes), order))
    return "sort nodes"


@edit
def remove_unused(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: bool = True,
    initializers: bool = True,
    names: Sequence[str] | None = None,
) -> str:
    """Remove nodes that no output depends on, and initializers that nothing uses.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the scope.
        nodes: Remove nodes.
        initializers: Remove initializers. One that is an input stays, as it is the value that the
            input has by default; before IR version 4, where all are inputs, the input goes, too.
        names: Only initializers with these names; None for all that are unused.
    """
    home = document.scope_at(scope)
    removed = 0
    if nodes:
        live = live_nodes(home)
        dead = [node for node in home.nodes if node not in live]
        delete_from(transaction, home, dead, reconnect=False)
        removed = len(dead)
    if initializers and "initializer" in home.records:
        wanted = None if names is None else set(strings(names, "names"))
        used = _names_meant(home)
        inputs = set(home.inputs)
        version = document.model.ir_version
        apart = home.parent is not None or not 0 < version < INITIALIZERS_APART
        for list_name in ("initializer", "sparse_initializer"):
            index = home.named(list_name)
            unwanted = [
                record
                for name in index
                if name not in used and (wanted is None or name in wanted)
                for record in index.all(name)
            ]
            given = [record for record in unwanted if record_name(list_name, record) in inputs]
            if apart and given:  # without its value the input would have to be fed
                unwanted = [record for record in unwanted if record not in given]
                given = []
            splice_out_all(transaction, home, list_name, unwanted)
            for record in given:
                name = record_name(list_name, record)
                splice_out_all(transaction, home, "input", home.named("input").all(name))
            removed += len(unwanted)
    return f"remove {removed} unused"


def _names_meant(scope: Scope) -> set[str]:
    """Return the names by which a scope and those below it refer to values of the scope."""
    names = {*scope.links.consumers, *scope.outputs}
    for child in scope.children():
        names.update(child.captured())
    return names


@edit
def rename_duplicate_nodes(
    document: Document, transaction: Transaction, *, scope: Sequence[str]
) -> str:
    """Give every node that shares its name, but the first, a name of its own."""
    home = document.scope_at(scope)
    seen: set[str] = set()
    for node in list(home.nodes):
        name = node.name
        if name and name in seen:
            new = free_node_name(home, name)
            old = get_text(node.proto, "name")
            transaction.do(SetText(home, "node", node, node.proto, "name", old, new))
        seen.add(name)
    return "rename nodes that share a name"


@edit
def merge_transposes(
    document: Document, transaction: Transaction, *, scope: Sequence[str], node: str
) -> str:
    """Let a Transpose do what the one before it does, too; that stays for its other users.

    Both need the attribute ``perm``, or a known rank.
    """
    target = node_at(document, scope, node)
    before = target.scope.producer(target.inputs[0]) if target.inputs else None
    if before is None or {before.op_type, target.op_type} != {"Transpose"} or not before.inputs:
        raise EditError(f"{quoted(node)} is no Transpose behind another one")
    inner, outer = permutation(before), permutation(target)
    if inner is None or outer is None or len(inner) != len(outer):
        raise EditError("the axes of the two are not known, or not as many")
    position, old = find_attribute(target, "perm")
    new = attribute_proto("perm", "ints", [inner[axis] for axis in outer])
    transaction.do(SetAttribute(target, position, old, new))
    transaction.do(SetLinks(target.scope, target, "input", before.inputs[:1]))
    return f"merge {quoted(before.ref)} into {quoted(node)}"
