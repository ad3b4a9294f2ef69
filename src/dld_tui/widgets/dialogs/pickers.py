"""Choosing a value, a node, or an input or output of a node, by search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import islice

from dld_tui.core import fmt
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Definition, Scope, visible_values
from dld_tui.core.document.types.value_types import ValueType
from dld_tui.core.operators.matching import mismatch
from dld_tui.core.text import cell_width, fit, visible
from dld_tui.core.text.fuzzy import FuzzyIndex
from dld_tui.widgets.dialogs.search import SearchDialog
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.styled import operator_style
from dld_tui.widgets.parameters.descriptions import Terminal, terminals_of
from dld_tui.widgets.shell import glyphs

Wanted = Callable[["ValueType | None"], "str | None"]
"""Returns why a value of a type does not fit, or None when it does."""

_AT_ONCE = 1000
"""Values that are there when the dialog opens."""
_SORTED_BY_FIT = 100
"""Rows at the top among which those that fit stand first."""
_LEAVE_EMPTY: tuple[str, Definition | None] = ("", None)


class ValuePicker(SearchDialog[str]):
    """Gives the name of the chosen value, ``""`` for the row `empty_label`, or None.

    Values are collected in slices between key presses, so that a model with 50,000 of them opens
    the dialog at once.

    Args:
        scope: Where the value is to be used; the values of the scopes around it are offered too.
        title: What is asked: foreign text.
        wanted: Returns why a type does not fit, None when it does. Such values are greyed and come
            last, but can be chosen.
        exclude: Names that are not offered.
        first: Names that stand first until something is typed, such as those near the cursor.
        empty_label: A first row that gives ``""``, e.g. ``leave empty``.
    """

    KEYS = "Enter choose  Esc close"
    PLACEHOLDER = "name, type or producer"
    EMPTY = "no value fits"
    WIDTH = 120

    def __init__(
        self,
        scope: Scope,
        *,
        title: str,
        wanted: Wanted | None = None,
        exclude: Collection[str] = (),
        first: Sequence[str] = (),
        empty_label: str = "",
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.scope = scope
        self.wanted = wanted
        self.empty_label = empty_label
        self.complete = False
        """Whether all values have been collected."""
        self._exclude = exclude
        self._values: list[tuple[str, Definition | None]] = []
        self._index = FuzzyIndex()
        self._waiting = self._offered(first)
        if empty_label:
            self._add([_LEAVE_EMPTY])
        self.collect(_AT_ONCE)

    # --- collecting -----------------------------------------------------------------------------

    def _offered(self, first: Sequence[str]) -> Iterator[tuple[str, Definition | None]]:
        leading = {name: self.scope.resolve(name) for name in first if name not in self._exclude}
        yield from ((name, found) for name, found in leading.items() if found is not None)
        for name, definition in visible_values(self.scope):
            if name not in self._exclude and leading.get(name) is None:
                yield name, definition

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        values = list(islice(self._waiting, most))
        self.complete = len(values) < most
        self._add(values)

    def _add(self, values: Sequence[tuple[str, Definition | None]]) -> None:
        self._values += values
        self._index.extend(self._searched(name, about) for name, about in values)

    def _searched(self, name: str, definition: Definition | None) -> str:
        if definition is None:
            return self.empty_label
        known = definition.scope.value_type(name)
        dtype = known.dtype if known is not None and known.dtype else ""
        return f"{name} {_maker(definition)} {dtype}"

    # --- listing --------------------------------------------------------------------------------

    def found(self, text: str) -> ValueRows:
        """Return the values that fit a text, the best first."""
        order = self._index.search(text)
        if self.wanted is not None:
            top = list(order[:_SORTED_BY_FIT])
            top.sort(key=lambda at: self.why_not(at) is not None)
            order = [*top, *order[_SORTED_BY_FIT:]]
        return ValueRows(self, order)

    def value(self, at: int) -> tuple[str, Definition | None]:
        """Return the name and the definition of a value, by its place among those collected."""
        return self._values[at]

    def why_not(self, at: int) -> str | None:
        """Return why a value does not fit, or None."""
        name, definition = self._values[at]
        if definition is None or self.wanted is None:
            return None
        return self.wanted(definition.scope.value_type(name))

    def choose(self, index: int) -> None:
        """Give the name of the value."""
        self.dismiss(self.value(self.rows.order[index])[0])

    @property
    def rows(self) -> ValueRows:
        """What is listed."""
        lines = self.view.lines
        assert isinstance(lines, ValueRows)
        return lines


class ValueRows:
    """The rows of a picker, made when they are seen."""

    def __init__(self, picker: ValuePicker, order: Sequence[int]) -> None:
        self.picker = picker
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def key(self, index: int) -> Hashable:
        return self.picker.value(self.order[index])[0]

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        at = self.order[index]
        name, definition = self.picker.value(at)
        if definition is None:
            return [(self.picker.empty_label, "accent")]
        known = definition.scope.value_type(name)
        kind = visible(known.short) if known is not None else fmt.UNKNOWN
        why_not = self.picker.why_not(at)
        kind_cells = min(28, max(14, width // 4))
        tail_cells = min(34, max(14, width // 4))
        room = max(8, width - kind_cells - tail_cells - 2)
        place = fit(visible(name), room, keep="middle")
        shape = f" {fit(kind, kind_cells)} "
        if why_not:
            mark = glyphs.current().error
            return [(place + shape, "faint"), (fit(f"{mark} {why_not}", tail_cells), "faint")]
        tail = fit(visible(_maker(definition)), tail_cells)
        return [(place, ""), (shape, "type"), (tail, _style(definition))]


def _maker(definition: Definition) -> str:
    return definition.node.op_type if definition.node is not None else definition.kind


def _style(definition: Definition) -> str:
    node = definition.node
    if node is not None:
        return operator_style(node.op_type, node.domain)
    return "io" if definition.kind == "input" else "op-data"


_TERMINALS_AT_ONCE = 1000
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


class NodePicker(SearchDialog[Node]):
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
        self.collect(_TERMINALS_AT_ONCE)

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        nodes = list(islice(self._waiting, most))
        self.complete = len(nodes) < most
        self.nodes += nodes
        self._index.extend(f"{node.name or next(iter(node.outputs), '')} {node.op_type}"
                           for node in nodes)  # fmt: skip

    def found(self, text: str) -> NodeRows:
        """Return the nodes that fit a text, the best first."""
        return NodeRows(
            self.scope, [self.nodes[at] for at in self._index.search(text)[:_TERMINALS_AT_ONCE]]
        )

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
        return self.nodes[index]

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        node = self.nodes[index]
        kind = fit(visible(node.op_type), min(18, width // 3))
        place = "" if node.scope is self.scope else f" in {visible(node.scope.title)}"
        label = visible(node.name or next(filter(None, node.outputs), ""))
        room = max(4, width - cell_width(kind) - 1 - cell_width(place))
        style = operator_style(node.op_type, node.domain)
        return [(kind, style), (" " + fit(label, room, keep="middle"), ""), (place, "faint")]
