"""The hits of a pattern, kept while the model is edited.

An edit can only change hits around what it touches: those are looked for again from the nodes that
it changed, along their links, and all others stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.document.history import Change, Transaction
from dld_tui.core.document.index import record_name
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetAttribute, SetLinks, SetList, SetText, Splice
from dld_tui.core.document.rewrite.matcher import Ends, Hit, Matcher
from dld_tui.core.document.rewrite.pattern import Pattern
from dld_tui.core.document.scope import Scope, ScopeOwner
from dld_tui.core.files import protos as onnx
from dld_tui.core.machine.collector import collector_paused

_OF_VALUES = frozenset(
    ("initializer", "input", "output", "quantization_annotation", "sparse_initializer",
     "value_info")
)  # fmt: skip
"""Lists of a graph whose records are about values."""
_BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
_MOST_TOUCHED = 2_000
"""Nodes around an edit, above which all is searched again."""


class LiveHits:
    """Hits of a pattern in a document.

    There are none before :meth:`refresh` or :meth:`search`.

    Args:
        document: Its edits are told by :meth:`update`.
        pattern: Types in its conditions are those that are known at the time.
    """

    def __init__(self, document: ScopeOwner, pattern: Pattern) -> None:
        self.document = document
        self.pattern = pattern
        self._readers: dict[str, set[Node]] = {}
        self._variants = [Matcher(variant, readers=self._readers) for variant in pattern.variants()]
        self._hits: dict[frozenset[Node], Hit] = {}
        self._of_node: dict[Node, set[frozenset[Node]]] = {}

    def __len__(self) -> int:
        return len(self._hits)

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is part of a hit."""
        return node in self._of_node

    def __iter__(self) -> Iterator[Hit]:
        """Yield the hits, in no order."""
        return iter(self._hits.values())

    def refresh(self) -> None:
        """Search everything anew."""
        with collector_paused():
            for _ in self.search():
                pass

    def search(self) -> Iterator[None]:
        """Search everything anew; yields between steps. Until it ends there are no hits."""
        self._hits.clear()
        self._of_node.clear()
        self._readers.clear()
        hits: list[Hit] = []
        matcher = Matcher(self.pattern, readers=self._readers)
        for scope in self.document.scopes():
            yield from matcher.gradually(scope, hits)
        for hit in hits:
            self._enter(hit)

    def update(self, change: Change) -> set[Node]:
        """Follow an edit, an undo or a redo; return nodes that may be or have been in hits."""
        transaction = change.transaction
        touched = None
        if transaction is not None and not change.is_everything:
            touched = self._touched(transaction)
        if touched is None or len(touched) > _MOST_TOUCHED:
            before = set(self._of_node)
            self.refresh()
            return before ^ set(self._of_node)
        waiting = list(touched)
        while waiting:  # what was covered by a hit that goes may be one itself
            for key in list(self._of_node.get(waiting.pop(), ())):
                self._leave(key)
                waiting += (node for node in key if node not in touched)
                touched |= key
        by_scope: dict[Scope, list[Node]] = {}
        for node in touched:
            if _is_there(node):
                by_scope.setdefault(node.scope, []).append(node)
        for scope, nodes in by_scope.items():
            ends = Ends(scope)
            for matcher in self._variants:
                for hit in matcher.hits_through(nodes, ends):
                    self._enter(hit)
                    touched |= set(hit.nodes)
        return touched

    def _touched(self, transaction: Transaction) -> set[Node] | None:
        """Return the nodes that hits may have changed around; None where it may be all."""
        found = _touched(transaction)
        if found is None:
            return None
        nodes, names = found
        for name in names:
            nodes |= self._readers.get(name, set())
        return nodes

    def _enter(self, hit: Hit) -> None:
        key = frozenset(hit.nodes)
        near = {other for node in key for other in self._of_node.get(node, ())}
        if any(key < other for other in near):
            return
        for other in near:
            if other < key:
                self._leave(other)
        self._hits[key] = hit
        for node in key:
            self._of_node.setdefault(node, set()).add(key)

    def _leave(self, key: frozenset[Node]) -> None:
        if self._hits.pop(key, None) is None:
            return
        for node in key:
            keys = self._of_node[node]
            keys.discard(key)
            if not keys:
                del self._of_node[node]


def _is_there(node: Node) -> bool:
    producers = node.scope.links.producers
    return any(node in producers.get(name, ()) for name in node.outputs if name)


def _touched(transaction: Transaction) -> tuple[set[Node], set[str]] | None:
    """Return nodes around which hits may have changed, and values; None where it may be all."""
    nodes: dict[Node, None] = {}
    given: set[tuple[Scope, str]] = set()
    taken: set[tuple[Scope, str]] = set()
    for primitive in transaction.primitives:
        if isinstance(primitive, SetAttribute) and any(
            attribute is not None and attribute.type in _BODIES
            for attribute in (primitive.old, primitive.new)
        ):
            return None
        if isinstance(primitive, Splice) and primitive.list_name == "node":
            nodes.update(dict.fromkeys((*primitive.removed, *primitive.inserted)))
        elif isinstance(primitive, Splice) and primitive.list_name in _OF_VALUES:
            records = (*primitive.removed, *primitive.inserted)
            given.update(
                (primitive.scope, record_name(primitive.list_name, record)) for record in records
            )
        elif isinstance(primitive, SetLinks) and primitive.node is not None:
            nodes[primitive.node] = None
            (given if primitive.side == "output" else taken).update(
                (primitive.scope, name) for name in (*primitive.old, *primitive.new)
            )
        elif isinstance(primitive, (SetAttribute, SetText, SetList)) and primitive.node is not None:
            nodes[primitive.node] = None
        elif isinstance(primitive, SetText) and primitive.list_name in _OF_VALUES:
            names = (
                record_name(primitive.list_name, primitive.record),
                primitive.old,
                primitive.new,
            )
            given.update((primitive.scope, name) for name in names if isinstance(name, str))
        elif isinstance(primitive, SetList) and primitive.field_name == "metadata_props":
            continue
        else:
            return None
    if any(node.children for node in nodes):
        return None
    for node in nodes:
        given.update((node.scope, name) for name in node.outputs)
        taken.update((node.scope, name) for name in node.inputs)
    found = set(nodes)
    for scope, name in given | taken:
        definition = scope.resolve(name) if name else None
        if definition is not None and definition.node is not None:
            found.add(definition.node)
        if (scope, name) in given and name:
            home = definition.scope if definition is not None else scope
            found.update(use.node for use in home.users(name))
            if len(found) > _MOST_TOUCHED:
                return None
    return found, {name for _, name in given | taken if name}
