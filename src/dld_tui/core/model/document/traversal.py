"""Walks over the nodes of a scope: reachability and order, broken graphs included.

A model that was sorted once and has been edited since is looked at only where it was edited: this
is what keeps connecting two nodes among fifty thousand quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from dld_tui.core.errors import UsageError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.reach import reached

_SMALL = 2_000
"""Nodes of a scope that is looked at again as a whole."""
_MOST_CONTROL_FLOW = 32
"""Nodes with subgraphs in a scope whose order is looked at."""
_FEW = 12
"""Places that are looked up one by one; for more of them a table is made."""


def nodes_called(scopes: Sequence[Scope], name: str) -> list[Node]:
    """Return the nodes that a name, a ref or a pattern of names with ``*`` means.

    A name that no node has means the nodes that make a tensor of this name.
    """
    if "*" in name:
        return [node for scope in scopes for node in scope.nodes if fnmatchcase(node.name, name)]
    named = [node for scope in scopes for node in scope.nodes_named(name)]
    return named or [node for scope in scopes if (node := scope.find(name)) is not None]


def is_ordered(scope: Scope) -> bool:
    """Return True when every node is known to come after those that it uses.

    False says that there is one that does not, or that it would take long to know: a scope with
    many subgraphs, or a large one that was out of order before.
    """
    if len(scope.control_flow) > _MOST_CONTROL_FLOW:
        return False
    entered = scope.entered
    if entered is None or (not scope.ordered and _worth_looking(scope, entered)):
        scope.ordered = _all_ordered(scope)
    elif scope.ordered and entered:
        scope.ordered = _still_ordered(scope, entered)
    scope.entered = {}
    return scope.ordered and _captures_ordered(scope)


def _captures_ordered(scope: Scope) -> bool:
    """Return whether nodes with subgraphs come after what these use of the scope.

    It is looked up each time: an edit inside a subgraph does not touch the node that holds it.
    """
    producers = scope.links.producers
    before = [
        (source, node)
        for node in scope.control_flow
        for child in node.subgraphs()
        for name in child.captured()
        for source in producers.get(name, ())
    ]
    place = places(scope, [node for pair in before for node in pair])
    return all(place[first] < place[second] for first, second in before)


def _worth_looking(scope: Scope, entered: dict[Node, None]) -> bool:
    """Return whether a scope that was out of order may be in order now."""
    return len(entered) > (0 if len(scope.nodes) <= _SMALL else len(scope.nodes) // 2)


def _all_ordered(scope: Scope) -> bool:
    producers = scope.links.producers
    produced: set[str] = set()
    for node in scope.nodes:
        for name in node.proto.input:
            if not name or name in produced:
                continue
            text = name if name.__class__ is str else text_of(name)
            if text in producers and text not in produced:
                return False
        for name in node.proto.output:
            produced.add(name if name.__class__ is str else text_of(name))
    return True


def _still_ordered(scope: Scope, entered: Iterable[Node]) -> bool:
    """Check the links of nodes that were added or relinked, in both directions."""
    links = scope.links
    before: list[tuple[Node, Node]] = []
    for node in entered:
        for name in node.inputs:
            before += [(source, node) for source in links.producers.get(name, ())]
        for name in node.outputs:
            before += [(node, user) for user in links.consumers.get(name, ())]
    place = places(scope, [node for pair in before for node in pair])
    # A node that was entered and taken out since has no place and no links that count.
    return all(
        place[first] < place[second]
        for first, second in before
        if first in place and second in place
    )


def places(scope: Scope, nodes: list[Node]) -> dict[Node, int]:
    """Return where nodes are in the order of the file; those that are not there are left out."""
    wanted = dict.fromkeys(nodes)
    if len(wanted) > _FEW:
        return {node: place for place, node in enumerate(scope.nodes) if node in wanted}
    by_node = {}
    for node in wanted:
        try:
            by_node[node] = scope.index_of(node)
        except ValueError:
            continue
    return by_node


class Places:
    """Where nodes of a scope are, looked up one by one until a table is worth making."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._table: dict[Node, int] = {}
        self._asked = 0

    def __call__(self, node: Node) -> int:
        """Return the place of a node of the scope."""
        self._asked += 1
        if self._asked <= _FEW:
            return self._scope.index_of(node)
        if not self._table:
            self._table = {other: place for place, other in enumerate(self._scope.nodes)}
        return self._table[node]


def live_nodes(scope: Scope) -> set[Node]:
    """Return the nodes that an output of the scope depends on."""
    producers = scope.links.producers
    ends = [node for name in scope.outputs for node in producers.get(name, ())]
    return reached(ends, partial(sources, scope))


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
    return reached(scope.links.producers.get(value, ()), partial(sources, scope))


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
    """Yield the nodes of a scope that use outputs of a node, also in their subgraphs."""
    for name in node.outputs:
        if not name:
            continue
        if scope.control_flow:
            yield from (outer_node(scope, use.node) for use in scope.users(name))
        else:
            yield from scope.links.consumers.get(name, ())


def captures(scope: Scope) -> dict[str, list[Node]]:
    """Return the nodes of a scope whose subgraphs use a value from outside, by value name."""
    by_value: dict[str, list[Node]] = {}
    for node in scope.control_flow:
        names = dict.fromkeys(name for child in node.subgraphs() for name in child.captured())
        for name in names:
            by_value.setdefault(name, []).append(node)
    return by_value


def names_taken(node: Node) -> list[str]:
    """Return the values that a node uses, through its subgraphs too, each once."""
    names = dict.fromkeys(name for name in node.inputs if name)
    for child in node.subgraphs():
        names.update(dict.fromkeys(name for name in child.captured() if name))
    return list(names)


def inputs_and_outputs(scope: Scope, nodes: Iterable[Node]) -> tuple[list[str], list[str]]:
    """Return the inputs and outputs of a group of nodes of a scope.

    Outputs are values that other nodes or outputs of the scope use, and values without users.
    """
    inside = dict.fromkeys(nodes)
    produced = dict.fromkeys(name for node in inside for name in node.outputs if name)
    inputs = dict.fromkeys(
        name for node in inside for name in names_taken(node) if name not in produced
    )
    scope_outputs = set(scope.outputs)
    capturers = captures(scope)
    outputs = []
    for name in produced:
        users = [*scope.links.consumers.get(name, ()), *capturers.get(name, ())]
        if not users or name in scope_outputs or any(user not in inside for user in users):
            outputs.append(name)
    return list(inputs), outputs


def upstream_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that some nodes are computed from, in their own scopes, and themselves."""
    return reached(nodes, lambda node: sources(node.scope, node))


def downstream_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that are computed from some nodes, in their own scopes, and themselves."""
    descendants: set[Node] = set()
    by_scope: dict[Scope, list[Node]] = {}
    for node in nodes:
        by_scope.setdefault(node.scope, []).append(node)
    for scope, waiting in by_scope.items():
        capturers, consumers = captures(scope), scope.links.consumers
        while waiting:
            node = waiting.pop()
            if node in descendants:
                continue
            descendants.add(node)
            for name in node.outputs:
                if name:
                    waiting += consumers.get(name, ())
                    waiting += capturers.get(name, ())
    return descendants


def between(nodes: Sequence[Node]) -> set[Node]:
    """Return the nodes on all paths from one of some nodes to another, and themselves."""
    return downstream_of(nodes) & upstream_of(nodes) | set(nodes)


def feeding(scope: Scope, outputs: Iterable[str], inputs: Iterable[str]) -> list[Node]:
    """Return the nodes that `outputs` are computed from when `inputs` are given, in file order."""
    boundary = set(inputs)
    seen: set[str] = set()
    feeders: set[Node] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in boundary or name in seen:
            continue
        seen.add(name)
        for node in scope.links.producers.get(name, ()):
            if node not in feeders:
                feeders.add(node)
                waiting += names_taken(node)
    return [node for node in scope.nodes if node in feeders]


def scope_of(nodes: Sequence[Node], purpose: str, hint: str) -> Scope:
    """Return the scope that nodes are in.

    Args:
        nodes: At least one.
        purpose: What they are wanted for, after "nodes to".
        hint: What to do where they are of several scopes.

    Raises:
        UsageError: There are none, or they are of several scopes.
    """
    if not nodes:
        raise UsageError(f"there are no nodes to {purpose}")
    scope = nodes[0].scope
    if any(node.scope is not scope for node in nodes):
        raise UsageError("the nodes are in several graphs", hint=hint)
    return scope
