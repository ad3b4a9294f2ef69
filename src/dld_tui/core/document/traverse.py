"""Walks over the nodes of one scope: what depends on what. Broken graphs included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dld_tui.core.document.node import Node
from dld_tui.core.document.order import is_ordered, places
from dld_tui.core.document.scope import Scope


def live_nodes(scope: Scope) -> set[Node]:
    """Return the nodes that an output of the scope depends on."""
    producers = scope.links.producers
    return _closure(scope, [node for name in scope.outputs for node in producers.get(name, ())])


def _closure(scope: Scope, waiting: list[Node]) -> set[Node]:
    found: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += sources(scope, node)
    return found


def sources(scope: Scope, node: Node) -> list[Node]:
    """Return the nodes of a scope that a node uses values of, through its subgraphs too."""
    if not node.children:
        return [source for name in node.inputs for source in scope.links.producers.get(name, ())]
    names = dict.fromkeys(node.inputs)
    for child in node.subgraphs():
        names.update(dict.fromkeys(child.captured()))
    producers = scope.links.producers
    return [source for name in names for source in producers.get(name, ())]


def topological_order(scope: Scope) -> list[Node] | None:
    """Return the nodes in an order that runs, near the present one; None for a cycle."""
    order: list[Node] = []
    done: set[Node] = set()
    entered: set[Node] = set()
    for start in scope.nodes:
        stack = [start]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            waiting = [source for source in sources(scope, node) if source not in done]
            if not waiting:
                stack.pop()
                done.add(node)
                order.append(node)
            elif node in entered:
                return None
            else:
                entered.add(node)
                stack += reversed(waiting)
    return order


def upstream(scope: Scope, value: str) -> set[Node]:
    """Return the nodes of a scope that a value is computed from, directly or not."""
    return _closure(scope, list(scope.links.producers.get(value, ())))


def outer_node(scope: Scope, node: Node) -> Node:
    """Return the node of `scope` that holds a node of one of its subgraphs, or the node itself."""
    while node.scope is not scope and node.scope.owner is not None:
        node = node.scope.owner
    return node


def depends_on(node: Node, value: str) -> bool:
    """Return whether a value, seen from a node, is computed from that node."""
    definition = node.scope.resolve(value)
    if definition is None or definition.node is None:
        return False
    home, made_by = definition.scope, definition.node
    user = outer_node(home, node)
    if user is made_by:
        return True
    if is_ordered(home):
        place = places(home, [made_by, user])
        if place[made_by] < place[user]:
            return False  # nothing that comes earlier can depend on it
    return _is_below(home, user, list(home.links.producers.get(value, ())))


def _is_below(scope: Scope, start: Node, targets: list[Node]) -> bool:
    """Return whether one of `targets` is computed from `start`.

    Looks upwards from the targets and downwards from the start in turn: the smaller of the two
    sides decides.
    """
    upwards, downwards = set(targets), {start}
    above, below = targets, [start]
    while above and below:
        if start in upwards or not downwards.isdisjoint(targets):
            return True
        above = _next(upwards, (s for node in above for s in sources(scope, node)))
        below = _next(downwards, (u for node in below for u in _destinations(scope, node)))
        if not upwards.isdisjoint(below):
            return True
    return False


def _next(seen: set[Node], nodes: Iterable[Node]) -> list[Node]:
    fresh = [node for node in dict.fromkeys(nodes) if node not in seen]
    seen.update(fresh)
    return fresh


def _destinations(scope: Scope, node: Node) -> Iterator[Node]:
    """Yield the nodes of a scope that use what a node makes, through their subgraphs too."""
    for name in node.outputs:
        if not name:
            continue
        if scope.holders:
            yield from (outer_node(scope, use.node) for use in scope.users(name))
        else:
            yield from scope.links.consumers.get(name, ())
