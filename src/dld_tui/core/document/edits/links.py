"""Connecting and disconnecting: the inputs and outputs of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document.calls import function_of
from dld_tui.core.document.edits.deletion import take_over
from dld_tui.core.document.edits.naming import require_free, require_visible
from dld_tui.core.document.edits.opsets import imports_of
from dld_tui.core.document.edits.ordering import move_behind
from dld_tui.core.document.edits.registry import edit, node_at, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetLinks
from dld_tui.core.document.traverse import depends_on, outer_node, upstream
from dld_tui.core.errors import EditError
from dld_tui.core.operators.registry import schema_for

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

MOST_LINKS = 1 << 16
"""More inputs or outputs than any operator without a limit takes; a larger index is a mistake."""
_FEW_USES = 16
"""Uses that are looked at one by one; for more of them all that `by` depends on is found first."""


@edit
def set_input(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    value: str,
    sort: bool = False,
) -> str:
    """Connect an input of a node to a value, or disconnect it.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        index: Which input, from 0; inputs before it that are not there are left out (``""``).
        value: The value; ``""`` disconnects. It must be visible in the node's scope.
        sort: Move the node, and those that depend on it, behind the node that makes the value where
            they come before it.
    """
    target = node_at(document, scope, node)
    require_index(target, "input", index)
    if value:
        require_visible(target.scope, value)
        if depends_on(target, value):
            raise EditError(
                f"connecting {quoted(value)} to {quoted(node)} would make a cycle",
                hint="Choose a value that does not come from this node",
            )
    inputs = with_item(target.inputs, index, value)
    if inputs == target.inputs:
        return "connect nothing"
    transaction.do(SetLinks(target.scope, target, "input", inputs))
    if sort and value:
        move_behind(transaction, target, value)
    verb = f"connect {quoted(value)} to" if value else "disconnect"
    return f"{verb} input {index} of {quoted(node)}"


@edit
def set_output(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    value: str,
) -> str:
    """Give an output of a node a name of its own, or take it away with ``""``.

    Unlike ``rename_value``, users of the old name keep it, and so lose their source.
    """
    target = node_at(document, scope, node)
    require_index(target, "output", index)
    if value:
        require_free(target.scope, value)
    outputs = with_item(target.outputs, index, value)
    if outputs == target.outputs:
        return "set nothing"
    transaction.do(SetLinks(target.scope, target, "output", outputs))
    return f"set output {index} of {quoted(node)} to {quoted(value)}"


@edit
def replace_uses(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    value: str,
    by: str,
) -> str:
    """Give every node that uses a value another one instead, in subgraphs that capture it too.

    Nodes that `by` is computed from keep the old value, because the other way would be a cycle.
    """
    home = document.scope_at(scope)
    require_visible(home, by)
    uses = home.users(value)
    if len(uses) <= _FEW_USES:
        uses = [use for use in uses if not depends_on(outer_node(home, use.node), by)]
    else:
        ancestors = upstream(home, by)
        uses = [use for use in uses if outer_node(home, use.node) not in ancestors]
    for user in dict.fromkeys(use.node for use in uses):
        if user.scope is not home and user.scope.resolve(by) != home.resolve(by):
            raise EditError(f"{quoted(by)} means another value inside {quoted(user.scope.title)}")
        inputs = tuple(by if name == value else name for name in user.inputs)
        transaction.do(SetLinks(user.scope, user, "input", inputs))
    return f"use {quoted(by)} instead of {quoted(value)} in {len(uses)} places"


@edit
def bypass_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
) -> str:
    """Give the users of each node's output the node's first data input instead; the node stays."""
    for ref in strings(nodes, "nodes"):
        node = node_at(document, scope, ref)
        take_over(transaction, node.scope, node, keep=True)
    return f"bypass {quoted(nodes[0]) if len(nodes) == 1 else f'{len(nodes)} nodes'}"


def with_item(names: tuple[str, ...], index: int, name: str) -> tuple[str, ...]:
    """Return links with one set; names left out at the end are cut off."""
    links = [*names, *[""] * (index + 1 - len(names))]
    links[index] = name
    while links and not links[-1] and len(links) > len(names):
        links.pop()
    if index == len(links) - 1:
        while links and not links[-1]:
            links.pop()
    return tuple(links)


def require_index(node: Node, side: str, index: int) -> None:
    """Refuse an input or output that a node cannot have by the signature of its operator.

    Raises:
        EditError: There is none of that index.
    """
    present = len(node.inputs if side == "input" else node.outputs)
    if not 0 <= index < max(present, _most_links(node, side)):
        raise EditError(f"{quoted(node.op_type)} takes no {side} {index}")


def _most_links(node: Node, side: str) -> int:
    function = function_of(node)
    if function is not None:
        return len(function.inputs if side == "input" else function.outputs)
    schema = schema_for(node.op_type, node.domain, imports_of(node.scope).get(node.domain))
    if schema is None:
        return MOST_LINKS
    most = schema.max_inputs if side == "input" else schema.max_outputs
    return MOST_LINKS if most is None else most
