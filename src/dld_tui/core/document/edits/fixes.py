"""Repairs that keep the meaning of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document.edits.deletion import remove_node, splice_out
from dld_tui.core.document.edits.nodes import free_node_name
from dld_tui.core.document.edits.registry import edit
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import SetText, Splice
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
) -> str:
    """Remove nodes that no output depends on, and initializers that nothing uses."""
    home = document.scope_at(scope)
    removed = 0
    if nodes:
        live = live_nodes(home)
        for node in [node for node in home.nodes if node not in live]:
            remove_node(transaction, home, node)
            removed += 1
    if initializers and "initializer" in home.records:
        used = home.names_used()
        for list_name in ("initializer", "sparse_initializer"):
            index = home.named(list_name)
            for name in [name for name in index if name not in used]:
                for record in list(index.all(name)):
                    splice_out(transaction, home, list_name, record)
                    removed += 1
    return f"remove {removed} unused"


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
