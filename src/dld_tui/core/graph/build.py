"""The graph of a scope: the main graph, a subgraph or a local function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dld_tui.core.document.index import record_name
from dld_tui.core.document.local_functions import key_of
from dld_tui.core.document.node import Node, NodeTexts
from dld_tui.core.document.scope import Scope
from dld_tui.core.graph.graph import Graph, Kind, Net
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
            places = range(len(self.subjects) - 1, -1, -1)  # the first of equal ones holds
            self._numbers = dict(zip(reversed(self.subjects), places, strict=True))
        return self._numbers.get(subject)

    _numbers: dict[Node | str, int] | None = None


def graph_of(
    scope: Scope,
    *,
    constants: bool = False,
    exceptions: frozenset[Node] = frozenset(),
    types: bool = False,
    texts: NodeTexts | None = None,
) -> ScopeGraph:
    """Return the graph of a scope.

    Initializers are not drawn: they are parameters of the nodes that use them. The same holds for
    ``Constant`` nodes and for what is computed from constants alone.

    Args:
        scope: What to draw.
        constants: Draw constants and what is computed from them alone, too.
        exceptions: Those of them that are drawn where the others are not, or the other way round.
        types: Label the links with types and shapes.
        texts: The texts of its nodes, where somebody has read them already.
    """
    texts = texts if texts is not None else scope.texts()
    left_out: frozenset[int] = frozenset()
    fixed = _weights(scope)
    if not constants or exceptions:
        left_out = _constant_places(scope, texts, set(fixed))
        excepted = {place for place in left_out if texts.nodes[place] in exceptions}
        left_out = frozenset(excepted) if constants else left_out - excepted
    builder = _Builder(scope, fixed, left_out, types, texts)
    return ScopeGraph(scope, builder.graph, builder.subjects)


def constants_of(node: Node) -> list[Node]:
    """Return the nodes of the scope that a node gets constants from, in the order of the file.

    They are ``Constant`` nodes and what is computed from constants alone: what :func:`graph_of`
    leaves out. A node that is one of them itself is among those returned.
    """
    scope = node.scope
    texts = scope.texts()
    places = sorted(_constant_places(scope, texts, _weights(scope)))
    makers = {name: place for place in places for name in texts.outputs[place] if name}
    needed = {place for place in places if texts.nodes[place] is node}
    names = [*node.inputs, *(name for body in node.subgraphs() for name in body.captured())]
    while names:
        place = makers.get(names.pop())
        if place is not None and place not in needed:
            needed.add(place)
            names += texts.inputs[place]
    return [texts.nodes[place] for place in sorted(needed)]


class _Builder:
    """Turns nodes and values into vertices and nets."""

    def __init__(
        self,
        scope: Scope,
        fixed: set[str],
        left_out: frozenset[int],
        types: bool,
        texts: NodeTexts,
    ) -> None:
        self.scope = scope
        self.graph = Graph()
        self.subjects: list[Node | str] = []
        self._uses: dict[str, list[int]] = {}
        """By value that is made here, or comes from outside: the vertices that use it."""
        self._makers: dict[str, int] = {}
        self._functions = frozenset(key_of(function)[:2] for function in scope.document.functions)
        for name in scope.inputs:
            if name not in fixed and name not in self._makers:
                self._makers[name] = self._add(name, name, Kind.INPUT, name)
        self._add_nodes(texts, left_out)
        for name in dict.fromkeys(scope.outputs):
            self._uses.setdefault(name, []).append(self._add(name, name, Kind.OUTPUT, name))
        self._add_outer_values()
        self._link(_type_label if types else None)

    def _add(self, label: str, name: str, kind: str, subject: Node | str, of: str = "") -> int:
        self.subjects.append(subject)
        return self.graph.add(label, name, kind, of)

    def _add_nodes(self, texts: NodeTexts, left_out: frozenset[int]) -> None:
        """Add the nodes, but for those at some places."""
        places: Sequence[int] = range(len(texts))
        nodes, names, kinds = texts.nodes, texts.names, texts.kinds
        inputs, outputs = texts.inputs, texts.outputs
        if left_out:
            places = [place for place in places if place not in left_out]
            nodes = [nodes[place] for place in places]
            names = [names[place] for place in places]
            kinds = [kinds[place] for place in places]
            inputs = [inputs[place] for place in places]
            outputs = [outputs[place] for place in places]
        graph, first = self.graph, len(self.graph)
        graph.labels += [op_type for _, op_type in kinds]
        graph.names += names
        classes = {kind: category_of(kind[1], kind[0]) for kind in set(kinds)}
        graph.classes += [classes[kind] for kind in kinds]
        calls = {kind: Kind.CALL if kind in self._functions else Kind.NODE for kind in classes}
        graph.kinds += [calls[kind] for kind in kinds]
        self.subjects += nodes
        if self.scope.holders:
            inputs = self._note_holders(nodes, inputs)
        uses, makers = self._uses, self._makers
        vertices = list(range(first, len(graph)))  # one object for each number, not two
        for vertex, used in zip(vertices, inputs, strict=True):
            for name in used:
                if name in uses:
                    uses[name].append(vertex)
                elif name:
                    uses[name] = [vertex]
        for vertex, made in zip(vertices, outputs, strict=True):
            for name in made:
                if name and name not in makers:
                    makers[name] = vertex

    def _note_holders(
        self, nodes: Sequence[Node], inputs: Sequence[Sequence[str]]
    ) -> list[Sequence[str]]:
        """Mark the nodes with bodies, the last ones added; returns what all nodes use.

        A holder also uses what its bodies do.
        """
        found = list(inputs)
        first = len(self.graph) - len(nodes)
        for at, node in enumerate(nodes):
            if node.children:
                self.graph.kinds[first + at] = Kind.HOLDER
                captured = (name for body in node.subgraphs() for name in body.captured())
                found[at] = tuple(dict.fromkeys((*inputs[at], *captured)))
        return found

    def _add_outer_values(self) -> None:
        if self.scope.parent is None:
            return
        for name, definition in self.scope.captured().items():
            weight = definition is not None and definition.kind == "initializer"
            if name in self._uses and name not in self._makers and not weight:
                self._makers[name] = self._add(name, name, Kind.OUTER, name)

    def _link(self, label_of: Callable[[Scope, str], str] | None) -> None:
        """Add the nets, in the order in which their values come into being."""
        uses, nets = self._uses, self.graph.nets
        for name, source in self._makers.items():
            targets = uses.get(name)
            if targets is None:
                continue
            if len(targets) > 1:
                targets = list(dict.fromkeys(targets))
            label = label_of(self.scope, name) if label_of is not None else ""
            nets.append(Net(name, source, tuple(targets), label))


def _constant_places(scope: Scope, texts: NodeTexts, fixed: set[str]) -> frozenset[int]:
    """Return the places of nodes that compute the same in every run.

    Args:
        scope: Where they are.
        fixed: Values that do not depend on any input; what such nodes make is added.
    """
    needed = frozenset(scope.outputs)
    found: list[int] = []
    for place, (names, kind) in enumerate(zip(texts.inputs, texts.kinds, strict=True)):
        if kind[1] != "Constant":
            for name in names:
                if name and name not in fixed:
                    break
            else:
                # Without inputs it may be a random generator: that is worth drawing.
                if names and not texts.nodes[place].children:
                    found.append(place)
        else:
            found.append(place)
        if found and found[-1] == place:
            made = texts.outputs[place]
            if needed.isdisjoint(made):
                fixed.update(made)
            else:
                found.pop()
    return frozenset(found)


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
