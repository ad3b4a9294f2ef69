"""Deleting nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core.document.edits.registry import edit, node_at, nodes_at, strings, subject
from dld_tui.core.document.edits.renaming import free_name, rename_everywhere
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.errors import EditError
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def delete_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: list[str],
    reconnect: bool = False,
) -> str:
    """Delete nodes of one scope.

    Args:
        scope: The path of the scope.
        nodes: Refs of the nodes.
        reconnect: Give the users of a deleted node's first output its first data input instead;
            without it their inputs are left without a source.
    """
    chosen = [node_at(document, scope, ref) for ref in strings(nodes, "nodes")]
    targets = list(dict.fromkeys(chosen))
    if not targets:
        return "delete nothing"
    home = targets[0].scope
    delete_from(transaction, home, targets, reconnect=reconnect)
    return f"delete {subject(nodes, 'node')}" + (" and reconnect" if reconnect else "")


def delete_from(
    transaction: Transaction, scope: Scope, nodes: Sequence[Node], *, reconnect: bool
) -> None:
    """Delete nodes of a scope; see :func:`delete_nodes`."""
    if reconnect:
        for node in nodes:
            reconnect_users(transaction, scope, node)
    if len(nodes) == 1:
        remove_node(transaction, scope, nodes[0])
        return
    names = dict.fromkeys(name for node in nodes for name in node.outputs if name)
    remove_records(transaction, scope, "node", nodes)
    kept = set(scope.outputs)
    index = scope.named("value_info")
    untold = [
        record
        for name in names
        if name in index and name not in kept and scope.definition(name) is None
        for record in index.all(name)
    ]
    remove_records(transaction, scope, "value_info", untold)


def bypass_source(node: Node) -> str | None:
    """Return the input that can replace the node's only used output, or None."""
    scope = node.scope
    if any(scope.users(output) or output in scope.outputs for output in node.outputs[1:] if output):
        return None
    names = [name for name in node.inputs if name]
    for name in names:
        definition = scope.resolve(name)
        if definition is not None and (definition.kind != "initializer" or len(names) == 1):
            return name
    return None


def reconnect_users(
    transaction: Transaction, scope: Scope, node: Node, *, keep: bool = False
) -> None:
    """Give the users of a node's output its first data input instead.

    Args:
        scope: The node's scope.
        node: The node; with `keep` it gets another output name where it made a graph output.
        keep: True when the node is to stay.

    Raises:
        EditError: No input can replace the output.
    """
    output = node.outputs[0] if node.outputs else ""
    uses = scope.users(output) if output else []
    is_output = bool(output) and output in scope.outputs
    if not uses and not is_output:
        return
    source = bypass_source(node)
    if source is None:
        raise EditError(
            f"{quoted(node.ref)} cannot be bypassed: no data input can replace its one used output",
            hint="Delete it without reconnecting.",
        )
    for user in dict.fromkeys(use.node for use in uses):
        inputs = tuple(source if name == output else name for name in user.inputs)
        transaction.do(SetLinks(user.scope, user, "input", inputs))
    if not is_output:
        return
    definition = scope.definition(source)
    if definition is None or definition.kind != "node" or source in scope.outputs:
        raise EditError(
            f"{quoted(node.ref)} produces the graph output {quoted(output)}, which its input "
            f"{quoted(source)} cannot take over",
            hint="Delete it without reconnecting.",
        )
    # The output keeps its name and type: the value that now feeds it takes the name over.
    spare = free_name(scope, f"{output}_bypassed") if keep else ""
    transaction.do(SetLinks(scope, node, "output", (spare, *node.outputs[1:])))
    transaction.drop(scope, "value_info", source)
    rename_everywhere(transaction, scope, source, output)


def remove_node(
    transaction: Transaction, scope: Scope, node: Node, *, keep_types: bool = False
) -> None:
    """Take a node out of its scope; the types of its values go too, unless they are kept."""
    outputs = [name for name in node.outputs if name]
    transaction.replace(scope, "node", node)
    for name in () if keep_types else outputs:
        if scope.definition(name) is not None or name in scope.outputs:
            continue
        transaction.drop(scope, "value_info", name)


def remove_records(
    transaction: Transaction, scope: Scope, list_name: str, records: Sequence[Any]
) -> None:
    """Remove many records from their list, one step for each run of adjacent ones."""
    wanted = {id(record) for record in records}
    if not wanted:
        return
    present = scope.records[list_name]
    places = [place for place, record in enumerate(present) if id(record) in wanted]
    while places:
        first = last = places.pop()
        while places and places[-1] == first - 1:
            first = places.pop()
        run = present[first : last + 1]
        transaction.do(Splice(scope, list_name, first, run, []))


@edit
def delete_many(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[Sequence[JSON]],
    reconnect: bool = False,
) -> str:
    """Delete nodes of any scopes.

    Args:
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and a ref of a node of it.
        reconnect: As in ``delete_nodes``.
    """
    targets = dict.fromkeys(nodes_at(document, nodes))
    by_scope: dict[Scope, list[Node]] = {}
    for node in targets:
        if not _is_inside(node.scope.owner, targets):  # else it goes with the node it is in
            by_scope.setdefault(node.scope, []).append(node)
    for scope, members in by_scope.items():
        delete_from(transaction, scope, members, reconnect=reconnect)
    count = sum(map(len, by_scope.values()))
    subject_text = quoted(str(nodes[0][1])) if count == 1 else f"{count} nodes"
    return f"delete {subject_text}" + (" and reconnect" if reconnect else "")


def _is_inside(node: Node | None, chosen: Mapping[Node, None]) -> bool:
    """Return whether a node, or one that it is nested in, is among the chosen."""
    while node is not None:
        if node in chosen:
            return True
        node = node.scope.owner
    return False
