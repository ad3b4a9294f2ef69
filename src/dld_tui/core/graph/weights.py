"""How many bytes of weights the vertices of a graph use, read from the tensors' headers alone."""

from __future__ import annotations

from itertools import accumulate

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.graph.build import ScopeGraph
from dld_tui.core.graph.rails import Rails


class Weights:
    """Bytes of the initializers that rows use; those in bodies of a node count as its own."""

    def __init__(self, drawn: ScopeGraph, rails: Rails) -> None:
        reader = _Reader(drawn.scope)
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
    """Finds the initializers that nodes of a scope use."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[str, tuple[Scope, int] | None] = {}

    def sizes(self, node: Node) -> dict[tuple[Scope, str], int]:
        """Return the bytes of each initializer that a node or its bodies use."""
        found: dict[tuple[Scope, str], int] = {}
        names = list(node.inputs)
        if node.children:
            for body in node.subgraphs():
                names += body.captured()
                for inner in body.walk():
                    for tensor in inner.initializers:
                        found[inner, tensor.name] = tensor.nbytes or 0
        for name in names:
            known = self._size(name)
            if known is not None:
                found[known[0], name] = known[1]
        return found

    def _size(self, name: str) -> tuple[Scope, int] | None:
        if name in self._known:
            return self._known[name]
        scope: Scope | None = self.scope
        found = None
        while scope is not None and found is None:
            tensor = scope.initializer(name) if "initializer" in scope.records else None
            if tensor is not None:
                found = (scope, tensor.nbytes or 0)
            elif scope.producer(name) is not None:
                break
            else:
                scope = scope.parent
        self._known[name] = found
        return found
