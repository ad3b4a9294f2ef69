"""Edit primitives, the transactions made of them, and the undo history.

Every change to a document is made of primitives, each of which knows its inverse:

* :class:`SetText` — a name or another text field,
* :class:`SetLinks` — the inputs or the outputs of a node or function,
* :class:`SetAttribute` — one attribute added, replaced or removed,
* :class:`Splice` — items of a graph's list removed and inserted,
* :class:`SetList` — a small list as a whole, such as metadata.

Applying one changes the message and the indexes; undoing it restores the very same bytes. Records
are moved, never copied, so that whoever holds one still holds it after an undo.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import field
from typing import Any

from google.protobuf.message import Message

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.node import Node, body_count
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Edit:
    """An edit that can be made, as journals and scripts write it."""

    name: str
    arguments: dict[str, JSON]

    @property
    def edit(self) -> str:
        """The name, as scripts and ``dld check --json`` call it."""
        return self.name


def plain(value: Any) -> JSON:
    """Return an argument of an edit as JSON data: tuples are lists."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    found: JSON = value
    return found


class Primitive(ABC):
    """One reversible change."""

    scope: Scope
    node: Node | None
    """The node that it changes, if it is one."""
    is_whole = False
    """Whether it exchanges the whole document, see :mod:`..edits.model_swap`."""

    def do(self) -> None:
        """Make the change."""
        self._change(forwards=True)

    def undo(self) -> None:
        """Take it back; only valid while it is the last change that was made."""
        self._change(forwards=False)

    @abstractmethod
    def _change(self, *, forwards: bool) -> None: ...


@dataclass
class SetText(Primitive):
    """Set a text or number field of a record of a scope, of the scope's message, or the model's."""

    scope: Scope
    list_name: str
    """The list that the record is in; empty for the graph or function, ``model`` for the model."""
    record: Any
    """A :class:`Node` or a protobuf message; None for the graph, function or model itself."""
    message: Any
    """The message with the field: the record's own, or one inside it."""
    field_name: str
    old: str | int | None
    new: str | int | None
    """None leaves the field out."""

    def __post_init__(self) -> None:
        self.node = self.record if isinstance(self.record, Node) else None
        self._of_scope = self.message is self.scope.proto

    def _change(self, *, forwards: bool) -> None:
        indexed = self.list_name in self.scope.records
        if indexed:
            self.scope.leave(self.list_name, self.record)
        # A subgraph that was taken out and put back has another message.
        message = self.scope.proto if self._of_scope else self.message
        set_text(message, self.field_name, self.new if forwards else self.old)
        if indexed:
            self.scope.enter(self.list_name, self.record)


@dataclass
class SetLinks(Primitive):
    """Replace the inputs or outputs of a node, or of a function (`node` is None)."""

    scope: Scope
    node: Node | None
    side: str
    """``input`` or ``output``."""
    new: tuple[str, ...]
    old: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.old = texts_of(getattr(self._message, self.side))

    @property
    def _message(self) -> Any:
        return self.scope.proto if self.node is None else self.node.proto

    def _change(self, *, forwards: bool) -> None:
        names = self.new if forwards else self.old
        if self.node is None:
            set_texts(self._message, self.side, names)
            return
        self.scope.leave("node", self.node)
        set_texts(self._message, self.side, names)
        self.scope.enter("node", self.node)


@dataclass
class SetAttribute(Primitive):
    """Put an attribute at a place in a node's list, replace the one there, or remove it."""

    node: Node
    position: int
    old: onnx.AttributeProto | None
    """What is at `position` now; None inserts."""
    new: onnx.AttributeProto | None
    """None removes."""
    bodies: list[Scope] | None = None
    """The scopes of the graphs in `new` where there are some, which then are only headers."""
    _scopes: dict[bool, list[Scope]] = field(default_factory=dict)
    """The scopes of `old` (False) and `new` (True), while they are not in the node."""

    def __post_init__(self) -> None:
        self.scope = self.node.scope
        if self.bodies is not None:
            self._scopes[True] = self.bodies

    def _change(self, *, forwards: bool) -> None:
        present, wanted = (self.old, self.new) if forwards else (self.new, self.old)
        attributes = self.node.proto.attribute
        if present is not None:
            self._take_scopes(attributes[self.position], of_new=not forwards)
            del attributes[self.position]
        if wanted is not None:
            attributes.insert(self.position, wanted)
            self._give_scopes(attributes[self.position], of_new=forwards)

    def _take_scopes(self, attr: onnx.AttributeProto, *, of_new: bool) -> None:
        scopes = self.node.take_bodies(attr)
        if scopes is not None:
            self._scopes[of_new] = scopes
            if of_new:
                # The scopes have what was in its graphs; put back whole, it would be there twice.
                self.new = onnx.AttributeProto.FromString(attr.SerializeToString())
            if not self.node.children:
                self.scope.control_flow.pop(self.node, None)

    def _give_scopes(self, attr: onnx.AttributeProto, *, of_new: bool) -> None:
        if not body_count(attr):
            return
        scopes = self._scopes.pop(of_new, None)
        if scopes is None:
            self.scope.adopt(self.node, attr)
            self.scope.control_flow[self.node] = None
            return
        # Inserting copied the message: the scopes keep their records and take the new header.
        listed = len(attr.graphs) > 0
        graphs = list(attr.graphs) or [attr.g]
        for position, (scope, graph) in enumerate(zip(scopes, graphs, strict=True)):
            scope.proto = graph
            scope.position = position if listed else None
        self.node.give_bodies(attr, scopes)
        self.scope.control_flow[self.node] = None


@dataclass
class Splice(Primitive):
    """Remove items of a list of a scope and insert others in their place."""

    node = None

    scope: Scope
    list_name: str
    index: int
    removed: list[Any]
    inserted: list[Any]

    def _change(self, *, forwards: bool) -> None:
        present, wanted = (
            (self.removed, self.inserted) if forwards else (self.inserted, self.removed)
        )
        records = self.scope.records[self.list_name]
        for record in present:
            self.scope.leave(self.list_name, record)
        records[self.index : self.index + len(present)] = wanted
        for record in wanted:
            self.scope.enter(self.list_name, record)


@dataclass
class SetList(Primitive):
    """Replace a small repeated field, e.g. ``metadata_props`` or ``opset_import``, as a whole."""

    scope: Scope
    record: Any
    """What `message` belongs to: a :class:`Node`, a record of `list_name`, or None."""
    list_name: str
    """The list of the record; empty for the graph or function itself, ``model`` for the model."""
    message: Any
    field_name: str
    new: list[Any]
    """Messages or strings."""
    old: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.node = self.record if isinstance(self.record, Node) else None
        self.old = copies(getattr(self.message, self.field_name))
        self._of_scope = self.message is self.scope.proto

    def _change(self, *, forwards: bool) -> None:
        message = self.scope.proto if self._of_scope else self.message
        items = self.new if forwards else self.old
        self.scope.annotated |= self.node is not None
        if items and isinstance(items[0], str):
            set_texts(message, self.field_name, items)
            return
        container = getattr(message, self.field_name)
        del container[:]
        container.extend(items)


def copies(items: Any) -> list[Any]:
    """Return independent copies of the items of a repeated field."""
    return [deepcopy(item) if isinstance(item, Message) else text_of(item) for item in items]


@dataclass
class Transaction:
    """One user command: the primitives that it made, as a whole done or undone."""

    edit: str
    """The name of the edit, e.g. ``rename_node``."""
    arguments: dict[str, JSON]
    """Its arguments, as a script has them."""
    title: str = ""
    """What it did, for people, e.g. ``rename conv1 to conv2``. Holds untrusted text."""
    primitives: list[Primitive] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, edit: Edit) -> Transaction:
        """Return the transaction of an edit that is still to be made."""
        return cls(edit.name, edit.arguments)

    def do(self, primitive: Primitive) -> None:
        """Make a change as part of this transaction."""
        primitive.do()
        self.primitives.append(primitive)

    def append(self, scope: Scope, list_name: str, *records: Any) -> None:
        """Put records, or nodes, at the end of a list of a scope."""
        self.do(Splice(scope, list_name, len(scope.records[list_name]), [], [*records]))

    def replace(self, scope: Scope, list_name: str, record: Any, *others: Any) -> None:
        """Replace a record, or node, of a scope by others; without others, remove it."""
        place = scope.place_of(list_name, record)
        self.do(Splice(scope, list_name, place, [record], [*others]))

    def drop(self, scope: Scope, list_name: str, name: str) -> None:
        """Remove all records of a name from a list of a scope."""
        for record in list(scope.named(list_name).all(name)):
            self.replace(scope, list_name, record)

    def roll_back(self) -> None:
        """Take all changes back, the last one first."""
        for primitive in reversed(self.primitives):
            primitive.undo()

    def repeat(self) -> None:
        """Make all changes again, after a roll back."""
        for primitive in self.primitives:
            primitive.do()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that it changes, each once, in the order in which it changed them."""
        return tuple(dict.fromkeys(p.node for p in self.primitives if p.node is not None))

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that it changes something in, each once, in that order."""
        return tuple(dict.fromkeys(p.scope for p in self.primitives))

    @property
    def is_whole(self) -> bool:
        """Whether it replaces the whole document."""
        return any(p.is_whole for p in self.primitives)


@dataclass(frozen=True)
class DocumentChange:
    """The event that listeners of a document get after each edit, undo and redo."""

    kind: str
    """``edit``, ``undo`` or ``redo``; ``reset`` when everything may have changed."""
    transaction: Transaction | None

    @property
    def is_everything(self) -> bool:
        """Whether nothing may be as it was: no node, no scope but the main one, no name."""
        return self.transaction is None or self.transaction.is_whole


class UndoHistory:
    """The transactions of a document: those done, and those that can be done again."""

    def __init__(self) -> None:
        self.done: list[Transaction] = []
        self.undone: list[Transaction] = []
        self._saved_at: Transaction | None = None
        self._saved_is_reachable = True

    @property
    def dirty(self) -> bool:
        """True when the document differs from the file it was saved to."""
        last = self.done[-1] if self.done else None
        return not self._saved_is_reachable or last is not self._saved_at

    @property
    def saved_at(self) -> Transaction | None:
        """The last transaction that is saved in the file; None when none is."""
        return self._saved_at

    def mark_saved(self) -> None:
        """Remember that the file now has this state."""
        self._saved_at = self.done[-1] if self.done else None
        self._saved_is_reachable = True

    def add(self, transaction: Transaction) -> None:
        """Add a transaction that has just been done; undone ones are discarded."""
        if any(transaction is self._saved_at for transaction in self.undone):
            self._saved_is_reachable = False
        self.undone.clear()
        self.done.append(transaction)

    def undo(self) -> Transaction | None:
        """Take back the last transaction and return it, or None when there is none."""
        if not self.done:
            return None
        transaction = self.done.pop()
        transaction.roll_back()
        self.undone.append(transaction)
        return transaction

    def redo(self) -> Transaction | None:
        """Repeat the last undone transaction and return it, or None when there is none."""
        if not self.undone:
            return None
        transaction = self.undone.pop()
        transaction.repeat()
        self.done.append(transaction)
        return transaction
