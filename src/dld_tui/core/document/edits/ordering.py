"""Keeping the nodes of a scope in an order that runs while they are linked."""

from __future__ import annotations

from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.traversal import outer_node, places, sources


def move_behind(transaction: Transaction, user: Node, value: str) -> None:
    """Move a node, and those that depend on it, behind the node that makes a value.

    Nothing moves when it is there already, and only nodes between the two places ever do. The value
    must not depend on the node.
    """
    definition = user.scope.resolve(value)
    if definition is None or definition.node is None:
        return
    home, made_by = definition.scope, definition.node
    first = outer_node(home, user)
    place = places(home, [made_by, first])
    start, stop = place[first], place[made_by]
    if stop < start:
        return
    between = home.nodes[start : stop + 1]
    moved = {first}
    for node in between:
        if any(source in moved for source in sources(home, node)):
            moved.add(node)
    order = [node for node in between if node not in moved]
    order += [node for node in between if node in moved]
    transaction.do(Splice(home, "node", start, between, order))
