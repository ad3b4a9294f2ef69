"""The graph of a scope: the main graph, a subgraph or a local function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dld_tui.core.document.calls import key_of
from dld_tui.core.document.index import record_name
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import text_of, texts_of
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.operators.categories import category_of


@dataclass
class ScopeGraph:
    """A graph, and what its vertices stand for."""

    scope: Scope
    graph: Graph
    subjects: list[Node | str]
    """The node of each vertex; the name of the value for inputs, outputs and outer values."""

    def vertex(self, subject: Node | str) -> int | None:
        """Return the vertex of a node, or of an input, output or outer value; None if not drawn."""
        if self._numbers is None:
            self._numbers = {
                subject: at for at, subject in reversed(list(enumerate(self.subjects)))
            }
        return self._numbers.get(subject)

    _numbers: dict[Node | str, int] | None = None


def graph_of(scope: Scope, *, constants: bool = False, types: bool = False) -> ScopeGraph:
    """Return the graph of a scope.

    Initializers are not drawn: they are parameters of the nodes that use them. The same holds for
    ``Constant`` nodes and for what is computed from constants alone.

    Args:
        scope: What to draw.
        constants: Draw constants and what is computed from them alone, too.
        types: Label the links with types and shapes.
    """
    builder = _Builder(scope, constants, types)
    return ScopeGraph(scope, builder.graph, builder.subjects)


class _Builder:
    """Turns nodes and values into vertices and nets."""

    def __init__(self, scope: Scope, constants: bool, types: bool) -> None:
        self.scope = scope
        self.graph = Graph()
        self.subjects: list[Node | str] = []
        self._uses: dict[str, list[int]] = {}
        self._makers: dict[str, int] = {}
        self._classes: dict[tuple[str | bytes, str], tuple[str, str]] = {}
        """Category and kind by domain and operator."""
        self._constants = constants
        self._needed = frozenset(scope.outputs)
        self._functions = frozenset(key_of(function)[:2] for function in scope.document.functions)
        self._fixed = _weights(scope)
        """Values that do not depend on any input, as far as the file has come."""
        for name in scope.inputs:
            if name not in self._fixed and name not in self._makers:
                self._makers[name] = self._add(name, name, Kind.INPUT, name)
        self._add_nodes(scope.nodes)
        for name in dict.fromkeys(scope.outputs):
            self._uses.setdefault(name, []).append(self._add(name, name, Kind.OUTPUT, name))
        self._add_outer_values()
        for name, source in self._makers.items():
            label = _type_label(scope, name) if types else ""
            self.graph.link(name, source, self._uses.get(name, ()), label)

    def _add(self, label: str, name: str, kind: str, subject: Node | str, of: str = "") -> int:
        self.subjects.append(subject)
        return self.graph.add(label, name, kind, of)

    def _is_fixed(
        self, node: Node, op_type: str, names: Sequence[str], outputs: Sequence[str]
    ) -> bool:
        """Take note of, and return, whether a node computes the same in every run."""
        if op_type != "Constant":
            # Without inputs it may be a random generator: that is worth drawing.
            if not names or node.children:
                return False
            fixed = self._fixed
            for name in names:
                if name and name not in fixed:
                    return False
        if not self._needed.isdisjoint(outputs):
            return False
        self._fixed.update(outputs)
        return True

    def _add_nodes(self, nodes: Iterable[Node]) -> None:
        # Each text is read once, and in slices, which protobuf reads twice as fast as one by one:
        # with 50,000 nodes the properties of Node and calls take half of the time.
        uses, makers = self._uses, self._makers
        for node in nodes:
            proto = node.proto
            op_type = text_of(proto.op_type)
            names: Sequence[str] = texts_of(proto.input[:])
            outputs = texts_of(proto.output[:])
            if not self._constants and self._is_fixed(node, op_type, names, outputs):
                continue
            key = (proto.domain, op_type)
            known = self._classes.get(key)
            if known is None:
                known = self._classes[key] = self._class(node)
            category, kind = known
            if node.children:
                kind = Kind.HOLDER
                captured = (name for body in node.subgraphs() for name in body.captured())
                names = tuple(dict.fromkeys((*names, *captured)))
            vertex = self._add(op_type, text_of(proto.name), kind, node, category)
            for name in names:
                if name in uses:
                    uses[name].append(vertex)
                elif name:
                    uses[name] = [vertex]
            for name in outputs:
                if name and name not in makers:
                    makers[name] = vertex

    def _class(self, node: Node) -> tuple[str, str]:
        """Return the category and kind of a node without bodies."""
        op_type, domain = node.op_type, node.domain
        kind = Kind.CALL if (domain, op_type) in self._functions else Kind.NODE
        return category_of(op_type, domain), kind

    def _add_outer_values(self) -> None:
        if self.scope.parent is None:
            return
        for name, definition in self.scope.captured().items():
            weight = definition is not None and definition.kind == "initializer"
            if name in self._uses and name not in self._makers and not weight:
                self._makers[name] = self._add(name, name, Kind.OUTER, name)


def _weights(scope: Scope) -> set[str]:
    """Return the names of initializers, which old models list among the inputs, too."""
    if scope.is_function:
        return set()
    return {
        record_name(field, record)
        for field in ("initializer", "sparse_initializer")
        for record in scope.records[field]
    }


def _type_label(scope: Scope, name: str) -> str:
    known = scope.value_type(name)
    return known.short if known is not None else ""
