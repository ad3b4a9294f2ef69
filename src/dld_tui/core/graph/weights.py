"""How many bytes of weights the vertices of a graph use, read from the tensors' headers alone."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeAlias

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.graph.build import ScopeGraph
from dld_tui.core.graph.lanes import Rails

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
        found: Sizes = {}
        names = list(node.inputs)
        if node.children:
            for body in node.subgraphs():
                names += body.captured()
                for inner in body.walk():
                    found.update(_own_weights(inner))
        for name in names:
            if name:
                found.update(self._of_value(name))
        return found

    def _of_value(self, name: str) -> Sizes:
        """Return the weights that a value is, or is computed from by nodes that are not drawn."""
        known = self._known.get(name)
        if known is not None:
            return known
        found: Sizes = {}
        seen = {name}
        waiting = [name]
        while waiting:
            inner = waiting.pop()
            source = self._hidden_source(inner)
            if source is None:
                found.update(self._initializer(inner))
            elif source.op_type == "Constant":
                found.update(_constant(source))
            else:
                more = [other for other in source.inputs if other and other not in seen]
                seen.update(more)
                waiting += more
        self._known[name] = found
        return found

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
    found: Sizes = {}
    if "initializer" in scope.records:
        for tensor in scope.initializers:
            found[scope, tensor.name] = tensor.nbytes or 0
    for node in scope.nodes:
        if node.op_type == "Constant":
            found.update(_constant(node))
    return found


def _constant(node: Node) -> Sizes:
    """Return the bytes of the tensor that a Constant node holds."""
    attribute = node.attribute("value")
    if attribute is None or attribute.kind != "tensor" or not node.outputs:
        return {}
    value = attribute.value
    size = value.nbytes if isinstance(value, Tensor) else None
    return {(node.scope, node.outputs[0]): size or 0}
