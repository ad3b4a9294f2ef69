"""Builds the graph of a scope, with labels of its nodes and the weights that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.index import enter_links, record_name
from dld_tui.core.model.document.local_functions import key_of
from dld_tui.core.model.document.node import Node, NodeTexts
from dld_tui.core.model.document.scope import Definition, Scope
from dld_tui.core.model.graph.graph import Graph, Kind, Net
from dld_tui.core.model.graph.rails import Rails
from dld_tui.core.model.operators.categories import category_of
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import ValueType, dtype_name


@dataclass
class ScopeGraph:
    """A graph, and the nodes and values that its vertices represent."""

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
    texts: NodeTexts | None = None,
) -> ScopeGraph:
    """Return the graph of a scope.

    Initializers are not drawn: they are parameters of the nodes that use them. The same holds for
    ``Constant`` nodes and for what is computed from constants alone.

    Args:
        scope: What to draw.
        constants: Also draw constants and values computed from constants alone.
        exceptions: Those of them that are drawn where the others are not, or the other way round.
        texts: The texts of its nodes, if they have been read already.
    """
    texts = texts if texts is not None else scope.texts()
    left_out: frozenset[int] = frozenset()
    fixed = _weights(scope)
    if not constants or exceptions:
        left_out = _constant_places(scope, texts, set(fixed))
        excepted = {place for place in left_out if texts.nodes[place] in exceptions}
        left_out = frozenset(excepted) if constants else left_out - excepted
    builder = _Builder(scope, fixed, left_out, texts)
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
        texts: NodeTexts,
    ) -> None:
        self.scope = scope
        self.graph = Graph()
        self.subjects: list[Node | str] = []
        self._uses: dict[str, Sequence[int]] = {}
        """By value that is made here, or comes from outside: the vertices that use it."""
        self._makers: dict[str, int] = {}
        self._functions = frozenset(key_of(function)[:2] for function in scope.document.functions)
        for name in scope.inputs:
            if name not in fixed and name not in self._makers:
                self._makers[name] = self._add(name, name, Kind.INPUT, name)
        self._add_nodes(texts, left_out)
        for name in dict.fromkeys(scope.outputs):
            vertex = self._add(name, name, Kind.OUTPUT, name)
            self._uses[name] = (*self._uses.get(name, ()), vertex)
        self._add_outer_values()
        self._link()

    def _add(self, label: str, name: str, kind: str, subject: Node | str) -> int:
        self.subjects.append(subject)
        return self.graph.add(label, name, kind)

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
        if self.scope.control_flow:
            inputs = self._note_holders(nodes, inputs)
        makers = self._makers
        vertices = list(range(first, len(graph)))  # one object for each number, not two
        enter_links(self._uses, list(zip(vertices, strict=True)), inputs)
        for vertex, node_outputs in zip(vertices, outputs, strict=True):
            for name in node_outputs:
                if name and name not in makers:
                    makers[name] = vertex

    def _note_holders(
        self, nodes: Sequence[Node], inputs: Sequence[Sequence[str]]
    ) -> list[Sequence[str]]:
        """Mark the nodes with bodies, the last ones added; returns what all nodes use.

        A node with bodies also uses the values that they capture.
        """
        outer_values = list(inputs)
        first = len(self.graph) - len(nodes)
        for at, node in enumerate(nodes):
            if node.children:
                self.graph.kinds[first + at] = Kind.CONTROL_FLOW
                captured = (name for body in node.subgraphs() for name in body.captured())
                outer_values[at] = tuple(dict.fromkeys((*inputs[at], *captured)))
        return outer_values

    def _add_outer_values(self) -> None:
        if self.scope.parent is None:
            return
        for name, definition in self.scope.captured().items():
            weight = definition is not None and definition.kind == "initializer"
            if name in self._uses and name not in self._makers and not weight:
                self._makers[name] = self._add(name, name, Kind.OUTER, name)

    def _link(self) -> None:
        """Add the nets, in the order in which their values come into being."""
        uses, nets = self._uses, self.graph.nets
        for name, source in self._makers.items():
            targets = uses.get(name)
            if targets is None:
                continue
            distinct = tuple(dict.fromkeys(targets) if len(targets) > 1 else targets)
            nets.append(Net(name, source, distinct))


def _constant_places(scope: Scope, texts: NodeTexts, fixed: set[str]) -> frozenset[int]:
    """Return the places of nodes that compute the same in every run.

    Args:
        scope: Where they are.
        fixed: Values that do not depend on any input; what such nodes make is added.
    """
    needed = frozenset(scope.outputs)
    places: list[int] = []
    for place, (names, kind) in enumerate(zip(texts.inputs, texts.kinds, strict=True)):
        if kind[1] != "Constant":
            for name in names:
                if name and name not in fixed:
                    break
            else:
                # Without inputs it may be a random generator: that is worth drawing.
                if names and not texts.nodes[place].children:
                    places.append(place)
        else:
            places.append(place)
        if places and places[-1] == place:
            output = texts.outputs[place]
            if needed.isdisjoint(output):
                fixed.update(output)
            else:
                places.pop()
    return frozenset(places)


def _weights(scope: Scope) -> set[str]:
    """Return the names of initializers, which old models list among the inputs, too."""
    if scope.is_function:
        return set()
    return {
        record_name(field, record)
        for field in ("initializer", "sparse_initializer")
        for record in scope.records[field]
    }


_MOST_CHARS = 24
_MOST_SOURCES = 32
"""Nodes of a chain that are looked at for the tensor that is stored."""


def work_text(node: Node) -> str:
    """Return the window of a node, as ``7x7/2``, else its axis or permutation; mostly nothing.

    ``/2`` is the stride, ``d2`` the dilation, ``g32`` the number of groups.
    """
    known: dict[str, Any] = {
        attribute.name: attribute.value
        for attribute in node.attributes()
        if attribute.kind in ("int", "ints")
    }
    text = ""
    kernel = known.get("kernel_shape") or _kernel_of_weight(node)
    if kernel:
        text = _sizes(kernel)
        for name, sign in (("strides", "/"), ("dilations", " d")):
            steps = known.get(name, ())
            if any(step != 1 for step in steps):
                text += sign + (str(steps[0]) if len(set(steps)) == 1 else _sizes(steps))
        if known.get("group", 1) != 1:
            text += f" g{known['group']}"
    elif node.op_type == "Cast" and "to" in known:
        text = f"to {ValueType(dtype_name(known['to']), ()).short}"
    elif "axis" in known:
        text = f"axis {known['axis']}"
    elif known.get("perm") or known.get("axes"):
        text = ",".join(map(str, known.get("perm") or known["axes"]))
    return text if len(text) <= _MOST_CHARS else ""


def _sizes(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _kernel_of_weight(node: Node) -> Sequence[int]:
    """Return the window of a convolution that does not say it; nothing for other nodes."""
    if not node.op_type.startswith("Conv") or len(node.inputs) < 2:
        return ()
    known = node.scope.value_type(node.inputs[1])
    dims = known.dims[2:] if known is not None and known.dims is not None else ()
    return [dim for dim in dims if isinstance(dim, int)]


def weight_text(node: Node, is_drawn: Callable[[Node], bool]) -> str:
    """Return the type of the first matrix, or larger, that a node always takes; empty without one.

    A weight computed from a stored one shows both types: ``i8 → f32[384,384]``.

    Args:
        is_drawn: Returns whether a node is drawn: then its outputs are shown anyway.
    """
    for name in node.inputs:
        definition = node.scope.resolve(name) if name else None
        if (
            definition is None
            or definition.kind == "input"
            or (definition.node and is_drawn(definition.node))
        ):
            continue
        known = definition.scope.value_type(name)
        if definition.node is None or definition.node.op_type == "Constant":
            if known is not None and known.dims is not None and len(known.dims) > 1:
                return known.short
            continue
        stored = _stored(definition.node)
        if stored is not None:
            dtype = ValueType(stored.dtype, ()).short
            text = known.short if known is not None else definition.node.op_type
            return f"{dtype} → {text}"
    return ""


def _stored(node: Node) -> ValueType | None:
    """Return the type of the largest matrix, or larger, that a constant chain begins with."""
    seen = {node}
    waiting = [node]
    best: tuple[int, ValueType] | None = None
    while waiting and len(seen) < _MOST_SOURCES:
        for name in waiting.pop().inputs:
            definition: Definition | None = node.scope.resolve(name) if name else None
            if (
                definition is not None
                and definition.node is not None
                and definition.node not in seen
            ):
                seen.add(definition.node)
                waiting.append(definition.node)
            known = (
                definition.scope.value_type(name)
                if definition is not None and not definition.node
                else None
            )
            if known is None or known.dims is None or len(known.dims) < 2:
                continue
            size = 1
            for dim in known.dims:
                size *= dim if isinstance(dim, int) else 1
            if best is None or size > best[0]:
                best = size, known
    return best[1] if best is not None else None


Sizes: TypeAlias = "dict[tuple[Scope, str], int]"
"""Bytes by the scope and the name of a weight."""


class Weights:
    """Bytes of the initializers that rows use; those in bodies of a node count as its own."""

    def __init__(self, drawn: ScopeGraph, rails: Rails) -> None:
        reader = _Reader(drawn)
        counted: set[tuple[Scope, str]] = set()
        first: list[int] = []
        self.used: list[int] = []
        """By row: the bytes that its vertex uses, whoever else uses them."""
        for vertex in rails.order:
            subject = drawn.subjects[vertex]
            sizes = reader.sizes(subject) if isinstance(subject, Node) else {}
            self.used.append(sum(sizes.values()))
            first.append(sum(size for key, size in sizes.items() if key not in counted))
            counted.update(sizes)
        self._before = list(accumulate(first, initial=0))

    @property
    def total(self) -> int:
        """Bytes of all that is used, each initializer once."""
        return self._before[-1]

    def between(self, start: int, end: int) -> int:
        """Return the bytes of some rows; an initializer counts at the first row that uses it."""
        return self._before[end] - self._before[start]


class _Reader:
    """Finds the weights that nodes of a scope use, through nodes that are not drawn."""

    def __init__(self, drawn: ScopeGraph) -> None:
        self.scope = drawn.scope
        self._drawn = drawn
        self._known: dict[str, Sizes] = {}

    def sizes(self, node: Node) -> Sizes:
        """Return the bytes of each weight that a node or its bodies use."""
        sizes: Sizes = {}
        names = list(node.inputs)
        if node.children:
            for body in node.subgraphs():
                names += body.captured()
                for inner in body.walk():
                    sizes.update(_own_weights(inner))
        for name in names:
            if name:
                sizes.update(self._of_value(name))
        return sizes

    def _of_value(self, name: str) -> Sizes:
        """Return the weights that a value is, or is computed from by nodes that are not drawn."""
        known = self._known.get(name)
        if known is not None:
            return known
        sizes: Sizes = {}
        seen = {name}
        waiting = [name]
        while waiting:
            inner = waiting.pop()
            source = self._hidden_source(inner)
            if source is None:
                sizes.update(self._initializer(inner))
            elif source.op_type == "Constant":
                sizes.update(_constant(source))
            else:
                more = [other for other in source.inputs if other and other not in seen]
                seen.update(more)
                waiting += more
        self._known[name] = sizes
        return sizes

    def _hidden_source(self, name: str) -> Node | None:
        source = self.scope.producer(name)
        return source if source is not None and self._drawn.vertex(source) is None else None

    def _initializer(self, name: str) -> Sizes:
        scope: Scope | None = self.scope
        while scope is not None and scope.producer(name) is None:
            tensor = scope.initializer(name) if "initializer" in scope.records else None
            if tensor is not None:
                return {(scope, name): tensor.nbytes or 0}
            scope = scope.parent
        return {}


def _own_weights(scope: Scope) -> Sizes:
    """Return the initializers and constants of a scope."""
    sizes: Sizes = {}
    if "initializer" in scope.records:
        for tensor in scope.initializers:
            sizes[scope, tensor.name] = tensor.nbytes or 0
    for node in scope.nodes:
        if node.op_type == "Constant":
            sizes.update(_constant(node))
    return sizes


def _constant(node: Node) -> Sizes:
    """Return the bytes of the tensor that a Constant node holds."""
    attribute = node.attribute("value")
    if attribute is None or attribute.kind != "tensor" or not node.outputs:
        return {}
    value = attribute.value
    size = value.nbytes if isinstance(value, Tensor) else None
    return {(node.scope, node.outputs[0]): size or 0}
