"""Choosing a node, and one of the inputs or outputs of a node, by search."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.values import ValueType
from dld_tui.core.fuzzy import FuzzyIndex
from dld_tui.core.operators.matching import mismatch
from dld_tui.core.text import cell_width, fit, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.search_dialog import CollectingDialog, SearchDialog
from dld_tui.widgets.terminals import Terminal, terminals_of

_AT_ONCE = 1000
"""Nodes that are there when the dialog opens."""
_LABEL_CELLS = 20


class TerminalPicker(SearchDialog[Terminal]):
    """Gives one of the terminals of a node, or None.

    Args:
        node: The node.
        title: What is asked: foreign text.
        side: ``input`` or ``output`` for one side only.
        value_type: Inputs that do not take a value of this type are greyed; they can be chosen.
    """

    PLACEHOLDER = "name of an input or output"
    EMPTY = "no such input or output"
    WIDTH = 96

    def __init__(
        self,
        node: Node,
        *,
        title: str,
        side: str = "",
        value_type: ValueType | None = None,
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.terminals = [t for t in terminals_of(node) if side in ("", t.side)]
        self._value_type = value_type
        self._shown: Sequence[Terminal] = self.terminals

    def found(self, text: str) -> ListSource:
        """Return the terminals whose name or value holds every word."""
        words = text.lower().split()
        self._shown = [
            terminal
            for terminal in self.terminals
            if all(word in f"{terminal.label} {visible(terminal.value)}".lower() for word in words)
        ]
        if self._value_type is not None:
            self._shown = sorted(self._shown, key=lambda item: self.why_not(item) is not None)
        width = self.text_width - 2
        return ListSource([self._row(terminal, width) for terminal in self._shown])

    def why_not(self, terminal: Terminal) -> str | None:
        """Return why the value does not fit a terminal, or None."""
        if terminal.node is None or terminal.side != "input":
            return None
        return mismatch(terminal.node, terminal.index, self._value_type)

    def _row(self, terminal: Terminal, width: int) -> list[Piece]:
        shown = glyphs.current()
        mark = shown.left if terminal.side == "input" else shown.right
        label = fit(terminal.label, _LABEL_CELLS)
        why_not = self.why_not(terminal)
        room = width - cell_width(label) - 3
        known = terminal.scope.value_type(terminal.value) if terminal.value else None
        kind = visible(known.short) if known is not None else ""
        if why_not:
            return [(f"{label} {mark} ", "faint"), (fit(f"{shown.error} {why_not}", room), "faint")]
        value = visible(terminal.value) or f"{shown.missing} nothing connected"
        style = "" if terminal.value else "faint"
        cells = max(0, room - cell_width(kind) - 1)
        return [
            (f"{label} ", "key"),
            (f"{mark} ", "dim"),
            (fit(value, cells, keep="middle"), style),
            (f" {kind}", "type"),
        ]

    def choose(self, index: int) -> None:
        """Give the terminal."""
        self.dismiss(self._shown[index])


class NodePicker(CollectingDialog[Node]):
    """Gives a node of a scope, or of a subgraph in it, or None.

    Nodes are collected in slices between key presses, so that a model with 50,000 of them opens the
    dialog at once.

    Args:
        scope: Where to look.
        title: What is asked: foreign text.
        first: Nodes that stand first until something is typed.
        exclude: A node that is not offered.
    """

    PLACEHOLDER = "name or operator of a node"
    EMPTY = "no such node"
    WIDTH = 96

    def __init__(
        self,
        scope: Scope,
        *,
        title: str,
        first: Sequence[Node] = (),
        exclude: Node | None = None,
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.scope = scope
        self.nodes: list[Node] = []
        self.complete = False
        """Whether all nodes have been collected."""
        self._index = FuzzyIndex()
        self._waiting = _offered(scope, first, exclude)
        self.collect(_AT_ONCE)

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        found = list(islice(self._waiting, most))
        self.complete = len(found) < most
        self.nodes += found
        self._index.extend(f"{node.name or next(iter(node.outputs), '')} {node.op_type}"
                           for node in found)  # fmt: skip

    def found(self, text: str) -> NodeRows:
        """Return the nodes that fit a text, the best first."""
        return NodeRows(self.scope, [self.nodes[at] for at in self._index.search(text)[:_AT_ONCE]])

    def choose(self, index: int) -> None:
        """Give the node."""
        lines = self.view.lines
        assert isinstance(lines, NodeRows)
        self.dismiss(lines.nodes[index])


def _offered(scope: Scope, first: Sequence[Node], exclude: Node | None) -> Iterator[Node]:
    leading = dict.fromkeys(node for node in first if node is not exclude)
    yield from leading
    for home in scope.walk():
        for node in home.nodes:
            if node not in leading and node is not exclude:
                yield node


class NodeRows:
    """Rows of nodes, made when they are seen."""

    def __init__(self, scope: Scope, nodes: Sequence[Node]) -> None:
        self.scope = scope
        self.nodes = nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def key(self, index: int) -> Hashable:
        """Return the node."""
        return self.nodes[index]

    def text(self, index: int) -> str:
        """Return the row's text."""
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        """Return operator, name and, in a subgraph, where it is."""
        node = self.nodes[index]
        kind = fit(visible(node.op_type), min(18, width // 3))
        place = "" if node.scope is self.scope else f" in {visible(node.scope.title)}"
        label = visible(node.name or next(filter(None, node.outputs), ""))
        room = max(4, width - cell_width(kind) - 1 - cell_width(place))
        style = operator_style(node.op_type, node.domain)
        return [(kind, style), (" " + fit(label, room, keep="middle"), ""), (place, "faint")]
