"""Transactions, undo and redo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import Primitive, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.types import JSON


@dataclass
class Transaction:
    """One user command: the primitives that it made, as a whole done or undone."""

    edit: str
    """The name of the edit, e.g. ``rename_node``."""
    arguments: dict[str, JSON]
    """Its arguments, as a script has them."""
    title: str = ""
    """What it did, for people, e.g. ``rename conv1 to conv2``. Holds foreign text."""
    primitives: list[Primitive] = field(default_factory=list)

    def do(self, primitive: Primitive) -> None:
        """Make a change as part of this transaction."""
        primitive.do()
        self.primitives.append(primitive)

    def append(self, scope: Scope, list_name: str, *records: Any) -> None:
        """Put records, or nodes, at the end of a list of a scope."""
        self.do(Splice(scope, list_name, len(scope.records[list_name]), [], [*records]))

    def replace(self, scope: Scope, list_name: str, record: Any, *others: Any) -> None:
        """Put others in the place of a record, or node, of a scope; without others, take it out."""
        place = scope.place_of(list_name, record)
        self.do(Splice(scope, list_name, place, [record], [*others]))

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
        """Whether it puts another model in the place of the whole document."""
        return any(p.is_whole for p in self.primitives)


@dataclass(frozen=True)
class Change:
    """What listeners of a document hear after each edit, undo and redo."""

    kind: str
    """``edit``, ``undo`` or ``redo``; ``reset`` when everything may have changed."""
    transaction: Transaction | None

    @property
    def is_everything(self) -> bool:
        """Whether nothing may be as it was: no node, no scope but the main one, no name."""
        return self.transaction is None or self.transaction.is_whole


class History:
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
        """The last transaction that the file has; None when it has none of this history."""
        return self._saved_at

    def mark_saved(self) -> None:
        """Remember that the file now has this state."""
        self._saved_at = self.done[-1] if self.done else None
        self._saved_is_reachable = True

    def add(self, transaction: Transaction) -> None:
        """Enter a transaction that has just been done; what was undone is forgotten."""
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
        """Do again what was undone last and return it, or None when there is nothing."""
        if not self.undone:
            return None
        transaction = self.undone.pop()
        transaction.repeat()
        self.done.append(transaction)
        return transaction
