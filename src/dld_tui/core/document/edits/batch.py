"""One change of many nodes as one transaction: attributes, deletion, and casts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.casting import Cast, CastPlan, plan_casts
from dld_tui.core.document.edits.attributes import find_attribute, remove_attribute, set_attribute
from dld_tui.core.document.edits.deletion import delete_from
from dld_tui.core.document.edits.nodes import new_cast
from dld_tui.core.document.edits.registry import edit, node_at, subject
from dld_tui.core.document.metadata import PRECISIONS
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.document.types.value_types import dtype_number
from dld_tui.core.errors import EditError
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


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


@edit
def set_attributes(
    document: Document, transaction: Transaction, *, changes: Sequence[Mapping[str, JSON]]
) -> str:
    """Give the same attributes to many nodes, others to others.

    Args:
        changes: ``[{"nodes": [[SCOPE, NODE], …], "attributes": {NAME: {"kind", "value"}}}, …]``,
            nodes as in ``delete_many``, values as in ``set_attribute``; null removes an attribute
            where it is set.
    """
    names: dict[str, None] = {}
    touched: dict[Node, None] = {}
    for change in changes if isinstance(changes, (list, tuple)) else ():
        if not isinstance(change, dict) or not isinstance(change.get("attributes"), dict):
            raise EditError("a change needs nodes and attributes")
        attributes = change["attributes"]
        for node in nodes_at(document, change.get("nodes")):
            for name, about in attributes.items():
                _set_one(document, transaction, node, name, about)
            touched[node] = None
        names.update(dict.fromkeys(attributes))
    if not names:
        raise EditError("there are no attributes to set")
    subject_text = subject([*names], "attribute")
    return f"set {subject_text} of {fmt.plural(len(touched), 'node')}"


def _set_one(
    document: Document, transaction: Transaction, node: Node, name: str, about: JSON
) -> None:
    path, ref = list(node.scope.path), node.ref
    if about is None:
        if find_attribute(node, name)[1] is not None:
            remove_attribute(document, transaction, scope=path, node=ref, attribute=name)
        return
    if not isinstance(about, dict) or "kind" not in about:
        raise EditError(f"attribute {quoted(name)} must have a kind and a value")
    kind, value = str(about["kind"]), about.get("value")
    set_attribute(
        document, transaction, scope=path, node=ref, attribute=name, kind=kind, value=value
    )


def nodes_at(document: Document, pairs: object) -> list[Node]:
    """Return the nodes that pairs of a scope's path and a ref name."""
    nodes = []
    for pair in pairs if isinstance(pairs, (list, tuple)) else ():
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise EditError("nodes must be a list of [scope, node]")
        path, ref = pair
        if not isinstance(path, (list, tuple)) or not isinstance(ref, str):
            raise EditError("nodes must be a list of [scope, node]")
        nodes.append(node_at(document, [str(step) for step in path], ref))
    if not nodes:
        raise EditError("there are no nodes")
    return nodes


def _is_inside(node: Node | None, chosen: Mapping[Node, None]) -> bool:
    """Return whether a node, or one that it is nested in, is among the chosen."""
    while node is not None:
        if node in chosen:
            return True
        node = node.scope.owner
    return False


@edit
def cast_nodes(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[Sequence[JSON]],
    precision: str,
) -> str:
    """Add casts so that nodes compute in another type; other nodes see the same types.

    Weights keep their type: they are cast, too. Types have to be known where the casts are to be.
    Precisions that need a scale, such as int8 for floating point values, are refused.

    Args:
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and the ref of a node in it.
        precision: One of :data:`~dld_tui.core.document.metadata.PRECISIONS`.
    """
    if precision not in PRECISIONS:
        raise EditError(
            f"there is no precision {precision!r:.40}", hint=f"Known: {', '.join(PRECISIONS)}"
        )
    targets = nodes_at(document, nodes)
    plan = plan_casts(document, dict.fromkeys(targets, precision))
    if plan.refused:
        first, more = plan.refused[0], len(plan.refused) - 1
        also = f" (and {fmt.plural(more, 'more node')})" if more else ""
        reason = f"{quoted(first.node.ref)} cannot run in {precision}{also}: {first.reason}"
        raise EditError(reason)
    carry_out(plan, transaction)
    subject_text = quoted(targets[0].ref) if len(targets) == 1 else fmt.plural(len(targets), "node")
    return f"cast {subject_text} to {precision}"


def carry_out(plan: CastPlan, transaction: Transaction) -> None:
    """Make the changes of a plan for the present state of its document."""
    before: dict[Node, list[Cast]] = {}
    after: dict[Node, list[Cast]] = {}
    for cast in plan.casts:
        (after if cast.after else before).setdefault(cast.node, []).append(cast)
    for relink in plan.relinks:
        home, node = relink.node.scope, relink.node
        for side, new in (("input", relink.inputs), ("output", relink.outputs)):
            if new != (node.inputs if side == "input" else node.outputs):
                transaction.do(SetLinks(home, node, side, new))
    for node in dict.fromkeys((*before, *after)):
        home, place = node.scope, node.scope.index_of(node)
        for casts, index in ((after.get(node, []), place + 1), (before.get(node, []), place)):
            for at, cast in enumerate(casts, index):  # one by one: each takes a free name
                transaction.do(Splice(home, "node", at, [], [_node(cast)]))


def _node(cast: Cast) -> Node:
    number = dtype_number(cast.dtype)
    assert number is not None
    return new_cast(cast.scope, cast.source, cast.target, number)
