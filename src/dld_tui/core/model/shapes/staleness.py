"""Types that an edit invalidates: those downstream of the change, found in bounded steps.

An edit can invalidate the types of everything computed from the changed values. In a model of
50,000 nodes that may be nearly all of it, so the marks spread in steps: :meth:`Staleness.changed`
marks what an edit touches itself, and each :meth:`Staleness.advance` goes on for a bounded number
of nodes. What is marked is not walked again, so many edits at one place cost no more than one.
The marks are in :attr:`Scope.stale`; inference takes them away again (:meth:`Staleness.clear`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import (
    DocumentChange,
    Primitive,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
)

STEP = 1000
"""Nodes of one :meth:`Staleness.advance`: some milliseconds."""

MANY = 2000
"""An edit of more records makes everything stale: to mark all is faster than to look at each."""

_TYPING_FIELDS = frozenset({"op_type", "domain", "overload"})
_WITHOUT_TYPES = frozenset({"name", "doc_string", "metadata_props", "quantization_annotation"})


class Staleness:
    """Spreads the marks of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._waiting: deque[tuple[Scope, str]] = deque()
        """Marked values whose users are not marked yet."""
        self._functions: deque[Scope] = deque()
        """Local functions whose calls are not marked yet."""
        self._needs: dict[Scope, frozenset[str]] = {}
        self._work: Iterator[None] | None = None
        self._is_original = False
        """Whether all edits are undone: the declared types of the file are valid again."""
        self._was_cut_short = False
        """Whether a model was exchanged for another while not all of its marks were made."""

    def changed(self, change: DocumentChange) -> None:
        """Mark what an edit, undo or redo has touched itself."""
        self._needs.clear()
        if change.transaction is None:
            self._is_original = False
            self.everything()
            return
        self._is_original = not self._document.history.done
        if change.transaction.is_whole:
            self._document_replaced()
            return
        if self._is_original:
            for scope in self._document.scopes():
                scope.touched = set()
        if _size(change.transaction.primitives) > MANY:
            self.everything()
            return
        for primitive in change.transaction.primitives:
            self._seed(primitive)

    def advance(self, most: int = STEP) -> bool:
        """Mark the users of marked values, at most `most` nodes; True when finished."""
        if self._work is None:
            self._work = self._spread()
        for _ in range(most):
            if next(self._work, self) is self:
                self._work = None
                return True
        return False

    def everything(self) -> None:
        """Mark every value that a node makes, at once."""
        for scope in self._document.scopes():
            scope.stale = set(scope.links.producers)
            if not self._is_original:
                scope.touched |= scope.stale
        self._forget_work()

    def clear(self) -> bool:
        """Clear all marks: inference has found the types of the present document.

        Returns:
            Whether there was a mark.
        """
        was_stale = False
        for scope in self._document.scopes():
            was_stale |= bool(scope.stale)
            scope.stale = set()
        self._forget_work()
        return was_stale

    def _document_replaced(self) -> None:
        """The document holds another model, with the marks that its scopes had when it left."""
        self._was_cut_short |= bool(self._waiting or self._functions or self._work)
        self._forget_work()
        if self._was_cut_short:
            self.everything()

    def _seed(self, primitive: Primitive) -> None:
        scope, node = primitive.scope, primitive.node
        if isinstance(primitive, SetLinks):
            if node is None:
                self._functions.append(scope)
            elif primitive.side == "input":
                self._mark_node(node)
            else:
                _carry(scope, primitive.old, primitive.new)
                for name in (*primitive.old, *primitive.new):
                    self._mark(scope, name)
        elif isinstance(primitive, SetAttribute):
            self._mark_node(primitive.node)
        elif isinstance(primitive, Splice):
            self._seed_splice(primitive)
        elif isinstance(primitive, (SetText, SetList)):
            self._seed_field(primitive)
        elif node is not None:
            self._mark_node(node)
        else:
            self.everything()

    def _seed_splice(self, primitive: Splice) -> None:
        scope, records = primitive.scope, (*primitive.removed, *primitive.inserted)
        if primitive.list_name == "function":
            self._functions += records
        elif primitive.list_name == "node":
            for node in records:
                self._mark_node(node)
        elif primitive.list_name != "quantization_annotation":
            for record in records:
                self._redeclared(
                    scope, primitive.list_name, record_name(primitive.list_name, record)
                )

    def _seed_field(self, primitive: SetText | SetList) -> None:
        scope, field = primitive.scope, primitive.field_name
        if primitive.node is not None:
            if field in _TYPING_FIELDS:
                self._mark_node(primitive.node)
        elif field == "opset_import":
            if scope.is_function and primitive.list_name != "model":
                self._functions.append(scope)
            else:
                self.everything()
        elif primitive.list_name in scope.records and primitive.record is not None:
            name = record_name(primitive.list_name, primitive.record)
            names = {name}
            if isinstance(primitive, SetText) and field == "name":
                names |= {str(primitive.old or ""), str(primitive.new or "")}
            if field not in _WITHOUT_TYPES or len(names) > 1:
                for changed_name in names:
                    self._redeclared(scope, primitive.list_name, changed_name)

    def _redeclared(self, scope: Scope, list_name: str, name: str) -> None:
        """The declared type of a value has changed: types of dependent values may change, too."""
        scope.touched.discard(name)
        self._waiting.append((scope, name))
        if list_name == "output":
            self._mark(scope, name)

    def _mark(self, scope: Scope, name: str) -> None:
        if name and name not in scope.stale:
            scope.stale.add(name)
            if not self._is_original:
                scope.touched.add(name)
            self._waiting.append((scope, name))

    def _mark_node(self, node: Node) -> None:
        for name in node.outputs:
            self._mark(node.scope, name)
        for child in node.subgraphs():
            for name in child.inputs:
                self._mark(child, name)

    def _spread(self) -> Iterator[None]:
        while self._waiting or self._functions:
            if not self._waiting:
                yield from self._mark_calls(self._functions.popleft())
                continue
            scope, name = self._waiting.popleft()
            for node in list(scope.links.consumers.get(name, ())):
                self._mark_node(node)
                yield
            for node in list(scope.control_flow):
                for child in node.subgraphs():
                    if name in self._needed(child):
                        self._waiting.append((child, name))
                    yield
            if scope.owner is not None and name in scope.named("output"):
                self._mark_node(scope.owner)
            elif scope.is_function and name in scope.outputs:
                self._functions.append(scope)
            yield

    def _mark_calls(self, function: Scope) -> Iterator[None]:
        wanted = (function.proto.domain, function.proto.name)  # type: ignore[union-attr]
        for scope in list(self._document.scopes()):
            for node in list(scope.nodes):
                if (node.proto.domain, node.proto.op_type) == wanted:
                    self._mark_node(node)
                yield

    def _needed(self, scope: Scope) -> frozenset[str]:
        """Return the outer values that a subgraph and those below it use."""
        needs = self._needs.get(scope)
        if needs is None:
            links = scope.links
            names = links.consumers.keys() | set(scope.outputs)
            for child in scope.children():
                names |= self._needed(child)
            names -= links.producers.keys()
            own = {*scope.inputs, *scope.named("initializer"), *scope.named("sparse_initializer")}
            needs = self._needs[scope] = frozenset(names - own)
        return needs

    def _forget_work(self) -> None:
        self._waiting.clear()
        self._functions.clear()
        self._needs.clear()
        self._work = None


def _size(primitives: Iterable[Primitive]) -> int:
    return sum(
        len(primitive.removed) + len(primitive.inserted) if isinstance(primitive, Splice) else 1
        for primitive in primitives
    )


def _carry(scope: Scope, old: tuple[str, ...], new: tuple[str, ...]) -> None:
    """Let a renamed value keep its inferred type until inference is done again."""
    inferred = scope.inferred
    for old_dim, new_dim in zip(old, new, strict=False):
        if old_dim != new_dim:
            for known, unknown in ((old_dim, new_dim), (new_dim, old_dim)):
                if known in inferred and unknown and unknown not in inferred:
                    inferred[unknown] = inferred[known]
