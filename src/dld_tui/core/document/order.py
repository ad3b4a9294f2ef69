"""Whether the nodes of a scope are in an order that runs, without looking at all of them each time.

A model that was sorted once and has been edited since is looked at only where it was edited: this
is what keeps connecting two nodes among fifty thousand quick.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dld_tui.core.document.wiretext import text_of

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_SMALL = 2_000
"""Nodes of a scope that is looked at again as a whole."""
_MOST_HOLDERS = 32
"""Nodes with subgraphs in a scope whose order is looked at."""
_FEW = 12
"""Places that are looked up one by one; for more of them a table is made."""


def is_ordered(scope: Scope) -> bool:
    """Return True when every node is known to come after those that it uses.

    False says that there is one that does not, or that it would take long to know: a scope with
    many subgraphs, or a large one that was out of order before.
    """
    if len(scope.holders) > _MOST_HOLDERS:
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
        (source, holder)
        for holder in scope.holders
        for child in holder.subgraphs()
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
    made: set[str] = set()
    for node in scope.nodes:
        for name in node.proto.input:
            if not name or name in made:
                continue
            text = name if name.__class__ is str else text_of(name)
            if text in producers and text not in made:
                return False
        for name in node.proto.output:
            made.add(name if name.__class__ is str else text_of(name))
    return True


def _still_ordered(scope: Scope, entered: Iterable[Node]) -> bool:
    """Look at the links of nodes that were added or linked anew, in both directions."""
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
    found = {}
    for node in wanted:
        try:
            found[node] = scope.index_of(node)
        except ValueError:
            continue
    return found


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
