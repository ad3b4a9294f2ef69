"""The state of a workspace: its document, and what its controllers have to know of each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import visible
from dld_tui.widgets.explorer.branches import Branch
from dld_tui.widgets.explorer.state import ExplorerModel, all_nodes
from dld_tui.widgets.parameters.descriptions import DOC_STRING, ParameterRow
from dld_tui.widgets.shell.command_dispatch import holding

if TYPE_CHECKING:
    from dld_tui.core.checks import Finding
    from dld_tui.core.model.document import Document, DocumentChange, Node, Scope, Transaction
    from dld_tui.widgets.parameters.terminals import Terminal


class EditableKind(Enum):
    """What kind of thing a command such as edit or delete acts on."""

    TERMINAL = "an input or output of a graph"
    TENSOR = "a tensor"
    TEXT = "a doc string or a metadata entry"
    ATTRIBUTE = "an attribute"
    NAME = "a name"
    OTHER = "another row of the parameters pane"
    NODE = "a node, outside of the parameters pane"
    LINK = "a link of the graph"


@dataclass(frozen=True)
class Cursor:
    """What the cursor is on."""

    subject: Node | Scope | None = None
    """What the parameters pane shows."""
    node: Node | None = None
    """The node that commands act on."""
    in_parameters: bool = False
    """Whether the parameters pane has the keys."""
    in_findings: bool = False
    in_graph: bool = False
    row: ParameterRow | None = None
    """The row of the parameters pane, while that has the keys."""
    branch: Branch | None = None
    """The branch of the list of nodes, where it is on none of these."""
    finding: Finding | None = None
    """The finding, while their pane has the keys."""
    marks: Set[Hashable] = frozenset()
    link: Terminal | None = None
    """What the link leads to that the cursor of the graph is on."""
    boundary: Terminal | None = None
    """The input or output of the graph that the cursor of the graph is on."""

    @cached_property
    def terminal(self) -> Terminal | None:
        """The input or output under the cursor of the parameters pane, or of a link."""
        from dld_tui.widgets.parameters.terminals import terminal_at

        if self.pointed is not None:
            return self.pointed
        return terminal_at(self.subject, self.row) if self.in_parameters else None

    @property
    def pointed(self) -> Terminal | None:
        """What the cursor of the graph is on, or its link leads to, where that is no node."""
        return self.link or self.boundary

    @property
    def value(self) -> str:
        """The value under the cursor; in the list of nodes what the node makes first.

        Untrusted text.
        """
        if self.pointed is not None:
            return self.pointed.value
        if not self.in_parameters:
            return next(filter(None, self.node.outputs), "") if self.node is not None else ""
        return self.row.copied if self.row is not None and self.row.name_of == "value" else ""

    @property
    def scope(self) -> Scope | None:
        """The scope of :attr:`value`."""
        from dld_tui.core.model.document import Node

        if self.pointed is not None:
            return self.pointed.scope
        subject = self.subject if self.in_parameters else self.node
        return subject.scope if isinstance(subject, Node) else subject

    @property
    def subject_scope(self) -> Scope | None:
        """The scope of what the parameters pane shows."""
        from dld_tui.core.model.document import Node

        return self.subject.scope if isinstance(self.subject, Node) else self.subject

    @property
    def target_scope(self) -> Scope | None:
        """The scope that nodes are pasted into; None for the one that is listed."""
        if self.node is not None:
            return self.node.scope
        return self.branch.scope if self.branch is not None and not self.in_parameters else None

    @property
    def tensor_row(self) -> ParameterRow | None:
        """The row, when it shows a tensor, or a list, which the tensor editor opens, too."""
        from dld_tui.core.model.document import Node
        from dld_tui.core.model.document.node import LIST_DTYPES

        row, node = self.row, self.subject
        if row is None or row.tensor is not None or not isinstance(node, Node):
            return row if row is not None and row.tensor is not None else None
        attribute = node.attribute(row.attribute) if row.attribute else None
        if attribute is None or attribute.reference is not None:
            return None
        return row if attribute.kind in LIST_DTYPES else None

    @cached_property
    def text_key(self) -> str | None:
        """The metadata entry under the cursor, ``doc_string``, or None; ``""`` for a field."""
        row = self.row
        if row is None or not isinstance(row.key, tuple) or len(row.key) < 2:
            return None
        kind, name = row.key[:2]
        if kind == "metadata":
            return str(name)
        if kind == "field":
            return ""
        return DOC_STRING if kind == DOC_STRING or row.key == ("section", DOC_STRING) else None

    @property
    def target(self) -> EditableKind | None:
        """What kind of thing commands act on; None when there is nothing."""
        row, terminal = self.row, self.terminal
        if self.link is not None:
            return EditableKind.LINK
        if self.boundary is not None:
            return EditableKind.TERMINAL
        if not self.in_parameters:
            return EditableKind.NODE
        if row is None:
            return None
        kinds = {
            EditableKind.TERMINAL: terminal is not None and terminal.node is None,
            EditableKind.TENSOR: self.tensor_row is not None,
            EditableKind.TEXT: self.text_key is not None,
            EditableKind.ATTRIBUTE: bool(row.attribute),
            EditableKind.NAME: bool(row.name_of),
        }
        return next((kind for kind, holds in kinds.items() if holds), EditableKind.OTHER)

    def conditions(self) -> set[str]:
        """Return the :data:`~dld_tui.commands.command.CONDITIONS` that hold where it is."""
        from dld_tui.core.model.document import Node
        from dld_tui.widgets.parameters.terminals import takes_more

        terminal, node, row = self.terminal, self.node, self.row
        place, _ = self.place
        is_named = row is not None and bool(row.name_of)
        is_tensor = self.tensor_row is not None
        text = self.text_key is not None
        boundary = terminal is not None and terminal.node is None
        return holding(
            cursor=bool(place),
            finding=place == "finding",
            marks=bool(self.marks),
            node=node is not None,
            nodes=node is not None or bool(self.marks),
            named=node is not None or is_named or self.pointed is not None,
            deletable=(
                node is not None
                or bool(self.marks)
                or boundary
                or (text and isinstance(self.subject, Node))
            ),
            attribute=node is not None or is_named or is_tensor or boundary or text,
            tensor=is_tensor,
            end=terminal is not None or (node is not None and not self.in_parameters),
            value=bool(self.value),
            input=(terminal is not None and terminal.node is not None and terminal.side == "input"),
            wired=terminal is not None and bool(terminal.value),
            variadic=node is not None and takes_more(node),
            boundary=boundary,
            item=terminal is not None and terminal.user is None,
        )

    @cached_property
    def place(self) -> tuple[str, str]:
        """What kind of thing it is on (``""`` for none), and what that is called.

        The kinds are the keys of :data:`~dld_tui.commands.command.PLACES`.
        """
        if self.link is not None:
            taker = self.link.node
            of = f" of {_node_title(taker)}" if taker is not None else ""
            return ("boundary" if taker is None else "input"), f"link to {self.link.label}{of}"
        if self.boundary is not None:
            return "boundary", self.boundary.label
        if self.in_parameters:
            return self._parameters_place()
        if self.in_findings:
            return ("finding", self.finding.rule) if self.finding is not None else ("", "")
        if self.branch is not None and not self.in_graph:
            return "scope", self.branch.label or "(no name)"
        if self.node is None:
            scope = self.subject_scope if self.in_graph else None
            return ("", "") if scope is None else ("scope", visible(scope.title))
        marked = len(self.marks)
        return "node", f"{marked:,} marked nodes" if marked else _node_title(self.node)

    def _parameters_place(self) -> tuple[str, str]:
        from dld_tui.core.model.document import Node

        row, subject, terminal = self.row, self.subject, self.terminal
        if row is None or subject is None:
            return "", ""
        kind = row.key[0] if isinstance(row.key, tuple) and row.key else ""
        if terminal is not None:
            return ("boundary" if terminal.node is None else terminal.side), terminal.label
        if row.attribute or kind == "attribute":
            return "attribute", row.attribute or row.copied
        if kind == "initializer":
            return "initializer", row.copied
        if kind in ("metadata", "doc_string") or isinstance(kind, tuple):
            return "metadata", row.label or "doc string"
        if isinstance(subject, Node):
            return "node", _node_title(subject)
        return "scope", visible(subject.title)


def _node_title(node: Node) -> str:
    name = node.name or next(filter(None, node.outputs), "")
    return f"{visible(node.op_type)} {visible(name)}"


Event = TypeVar("Event")


class Signal(Generic[Event]):
    """An event with a fixed sequence of listeners."""

    def __init__(self) -> None:
        self.listeners: tuple[Callable[[Event], None], ...] = ()

    def send(self, event: Event) -> None:
        """Call the listeners, in their order."""
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
    """One open model. The page owns it, and connects its signals."""

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
        self.is_checking = False
        """Whether the model is being checked, or will be once nobody types."""
        self.version = 0
        """Edits, undos and redos so far."""
        self.has_fresh_types = False
        """Whether the inferred types are those of the current model."""
        self.quantized: tuple[Mapping[Node, float], str] = ({}, "")
        """How many tensors around each node a quantization would quantize, and the source."""
        self.around_changes: Callable[[DocumentChange], AbstractContextManager[None]] = (
            lambda change: nullcontext()
        )
        """In what listeners of edits are called."""
        self.changed: Signal[DocumentChange] = Signal()
        """An edit, undo or redo was made."""
        self.subject_shown: Signal[Node | Scope] = Signal()
        """The parameters pane shows a node or scope."""
        self.redone: Signal[Transaction] = Signal()
        """An edit was made again by redo."""

    def tell_change(self, change: DocumentChange) -> None:
        """Call the listeners of edits; the document calls this."""
        self.version += 1
        with self.around_changes(change):
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
    from dld_tui.core.model.document import Node

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


def by_scope(nodes: list[Node]) -> dict[Scope, list[str]]:
    """Return the refs of nodes by their scope."""
    refs: dict[Scope, list[str]] = {}
    for node in nodes:
        refs.setdefault(node.scope, []).append(node.ref)
    return refs
