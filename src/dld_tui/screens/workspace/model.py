"""The state of a workspace: its document, and what its controllers have to know of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dld_tui.core.types import JSON
from dld_tui.screens.workspace.cursor import Cursor
from dld_tui.widgets.explorer.model import ExplorerModel, all_nodes

if TYPE_CHECKING:
    from dld_tui.core.document import Change, Document, Node, Scope, Transaction


Event = TypeVar("Event")


class Signal(Generic[Event]):
    """Something that happens: it is told to a fixed sequence of listeners, one after the other."""

    def __init__(self) -> None:
        self.listeners: tuple[Callable[[Event], None], ...] = ()

    def send(self, event: Event) -> None:
        """Tell the listeners, in their order."""
        for listener in self.listeners:
            listener(event)


class View(Protocol):
    """What the panes of a workspace show."""

    @property
    def cursor(self) -> Cursor:
        """What the cursor is on."""

    @property
    def listing(self) -> ExplorerModel:
        """The scope that is listed, its order and its filters."""


class WorkspaceModel:
    """One open model. The page owns it, and says who listens to its signals."""

    document: Document
    """Only there once ``is_open``."""
    view: View
    """Only there once ``is_open``."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_closed = False
        """Whether the tab is gone: what ends on a thread after that has nothing to show."""
        self.is_arranging = False
        """Whether a large graph is made on a thread: other work had best wait."""
        self.version = 0
        """Edits, undos and redos so far."""
        self.has_fresh_types = False
        """Whether inference has told the types of the model as it is."""
        self.quantized: tuple[Mapping[Node, float], str] = ({}, "")
        """How many tensors around each node a quantization would quantize, and what says so."""
        self.changed: Signal[Change] = Signal()
        """An edit, undo or redo was made."""
        self.subject_shown: Signal[Node | Scope] = Signal()
        """The parameters pane shows a node or scope."""
        self.redone: Signal[Transaction] = Signal()
        """An edit was made again by redo."""

    def tell_change(self, change: Change) -> None:
        """Tell the listeners of an edit; the document calls it."""
        self.version += 1
        self.changed.send(change)

    @property
    def cursor(self) -> Cursor:
        """What the cursor is on."""
        return self.view.cursor if self.is_open else Cursor()

    @property
    def listing(self) -> ExplorerModel:
        """The scope that is listed, its order and its filters."""
        return self.view.listing

    def marked(self, cursor: Cursor) -> list[Node]:
        """Return the marked nodes, in the order of the file within each scope."""
        marks = cursor.marks
        return [node for node in all_nodes(self.listing) if node in marks] if marks else []

    def chosen(self, cursor: Cursor) -> list[Node]:
        """Return the marked nodes, or the one at the cursor; in the parameters pane always that."""
        marked = self.marked(cursor) if not cursor.in_parameters else []
        return marked or ([cursor.node] if cursor.node is not None else [])

    @property
    def chosen_nodes(self) -> list[Node]:
        """The marked nodes, or the one at the cursor."""
        return self.chosen(self.cursor)


def is_alive(thing: Node | Scope) -> bool:
    """Return whether a node or scope is in the document now, and has not been deleted."""
    from dld_tui.core.document import Node

    while True:
        if isinstance(thing, Node):
            if thing not in thing.scope.nodes:
                return False
            thing = thing.scope
        document, owner = thing.document, thing.owner
        if owner is None:
            return thing is document.main or thing in document.functions
        if thing not in owner.subgraphs():
            return False
        thing = owner


def by_scope(nodes: list[Node]) -> dict[Scope, list[JSON]]:
    """Return the refs of nodes by their scope."""
    found: dict[Scope, list[JSON]] = {}
    for node in nodes:
        found.setdefault(node.scope, []).append(node.ref)
    return found
