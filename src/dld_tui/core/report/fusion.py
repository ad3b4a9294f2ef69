"""What a kernel of the optimised graph computes of the original one, followed along its tensors.

Optimisers keep the names of tensors where they replace nodes: a fused kernel's outputs are the
outputs of the last nodes that it replaces, its inputs those of the first. So it stands for what
lies between: backwards from its outputs to the tensors that other kernels make.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.report.node_finder import NodeFinder, outwards
from dld_tui.core.report.ort_names import (
    blocked_tensors,
    is_blocked,
    split_inlined_function,
    without_cast,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

Place: TypeAlias = "tuple[Scope, str]"
"""A tensor of the original document: the scope whose node makes it, and its name."""

_LAYOUT_OPERATORS = frozenset({"ReorderInput", "ReorderOutput", "MemcpyToHost", "MemcpyFromHost"})
_FOR_CONSUMER = frozenset({"ReorderInput", "MemcpyFromHost"})
_SHAPE_OPERATORS = frozenset({"Reshape", "Transpose", "Cast", "Squeeze", "Unsqueeze", "Identity"})
"""What optimisers insert between kernels, besides the layout operators."""
_MOST_NODES = 256
_LONGEST_DETOUR = 8


class FusionTracer:
    """Joins the nodes of an optimised document to those of the original by their tensors."""

    def __init__(self, finder: NodeFinder, optimised: Document) -> None:
        self._finder = finder
        self._optimised = optimised
        self._places: dict[tuple[Scope, str], Place | None] = {}
        self._constants = _constant_nodes(finder)
        self._function_names = {name for _, name in finder.functions}
        self._scopes = {scope.path: scope for scope in finder.document.scopes()}
        self._twins = self._find_twins()
        self._owners = {twin: node for node, twin in self._twins.items()}
        self._made: set[Place] = set()
        for scope in optimised.scopes():
            for node in scope.nodes:
                self._made.update(self._output_places(node))

    def nodes_of(self, node: Node) -> list[Node]:
        """Return the original nodes that an optimised one stands for, in the order of the graph.

        Empty when its tensors are not of the original graph.
        """
        if self.moves_data(node):
            return []
        found: dict[Node, None] = {}
        for place in self._output_places(node):
            self._walk(node, place, found)
        return list(reversed(found)) if len(found) <= _MOST_NODES else []

    def moves_data(self, node: Node) -> bool:
        """Return True for a node that only changes layout, type or device of a tensor."""
        places = self._output_places(node)
        if not places:
            return node.op_type in _LAYOUT_OPERATORS or node.op_type in _SHAPE_OPERATORS
        sources = {self._place(node.scope, name) for name in node.inputs if name}
        return all(place in sources for place in places)

    def nodes_served(self, node: Node) -> list[Node]:
        """Return the original nodes for which a data-moving node works.

        Those that want the other layout: what makes its input when it goes out of a layout, else
        what reads its output, through other such nodes.
        """
        name = next(iter(node.inputs), "")
        place = self._place(node.scope, name) if name else None
        maker = self._producer(place) if place is not None else None
        if maker is not None and node.op_type not in _FOR_CONSUMER:
            return [maker]
        served: dict[Node, None] = {}
        movers = [node]
        for _ in range(_LONGEST_DETOUR):
            readers = [r for m in movers for o in m.outputs for r in m.scope.consumers(o)]
            for reader in readers:
                served.update(dict.fromkeys(self.nodes_of(reader)))
            movers = [reader for reader in readers if self.moves_data(reader)]
            if served or not movers:
                break
        return list(served)

    def _find_twins(self) -> dict[Node, Node]:
        """Return the original nodes that optimised ones still have the name and operator of."""
        twins: dict[Node, Node] = {}
        for scope in self._optimised.scopes():
            for node in scope.nodes:
                same = [n for n in self._finder.named(node.name) if n.op_type == node.op_type]
                if len(same) == 1 and len(same[0].outputs) == len(node.outputs):
                    twins[node] = same[0]
        return twins

    def _output_places(self, node: Node) -> list[Place]:
        found = (self._place(node.scope, name) for name in node.outputs if name)
        return [place for place in found if place is not None]

    def _place(self, scope: Scope, name: str) -> Place | None:
        """Return where the original graph makes a tensor of the optimised one."""
        key = (scope, name)
        if key not in self._places:
            self._places[key] = None  # should a chain of copies be a circle, it ends here
            self._places[key] = self._find_place(scope, name)
        return self._places[key]

    def _find_place(self, scope: Scope, name: str) -> Place | None:
        direct = self._choose(scope, name)
        if direct is not None:
            return direct
        definition = scope.resolve(name)
        maker = definition.node if definition is not None else None
        if maker is None:
            return self._choose(scope, without_cast(name))
        twin = self._twins.get(maker)
        if twin is not None:
            return twin.scope, twin.outputs[maker.outputs.index(name)]
        if is_blocked(maker.name) and maker.outputs[:1] == (name,):
            for tensor in blocked_tensors(maker.name):
                place = self._choose(scope, tensor)
                if place is not None:
                    return _after_fusion(maker, place)
        if maker.op_type in _LAYOUT_OPERATORS and maker.inputs:
            return self._place(maker.scope, maker.inputs[0])
        return self._choose(scope, without_cast(name))

    def _choose(self, scope: Scope, name: str) -> Place | None:
        """Return the place of a tensor name; of several, the one that `scope` can see."""
        branch, plain = self._finder.branch(name)
        makers = self._finder.producers(plain, branch)
        if not makers:
            for function, inner in split_inlined_function(name, self._function_names):
                bodies = [s for (_, f), s in self._finder.functions.items() if f == function]
                makers = [m for s in bodies for m in self._finder.producers(inner, s)]
                if makers:
                    plain = inner
                    break
        if len(makers) > 1:
            around = [self._scopes.get(s.path) for s in outwards(scope)]
            seen = [m for s in around for m in makers if m.scope is s]
            makers = seen[:1]
        return self._inner(makers[0], plain) if makers else None

    def _inner(self, node: Node, name: str) -> Place:
        """Return where a tensor is really made: within the body of a function that is called."""
        for _ in range(64):
            body = self._finder.function_of(node)
            if body is None:
                break
            position = node.outputs.index(name)
            if position >= len(body.outputs):
                break
            inner = body.producer(body.outputs[position])
            if inner is None:
                break
            node, name = inner, body.outputs[position]
        return node.scope, name

    def _producer(self, place: Place) -> Node | None:
        scope, name = place
        return scope.producer(name)

    def _walk(self, kernel: Node, start: Place, found: dict[Node, None]) -> None:
        stack = [start]
        while stack and len(found) <= _MOST_NODES:
            node = self._producer(stack.pop())
            if node is None or node in found:
                continue
            found[node] = None
            stack.extend(self._open_inputs(kernel, node))

    def _open_inputs(self, kernel: Node, node: Node) -> Iterable[Place]:
        """Yield what a node reads that no other kernel makes and that is not constant."""
        for name in node.inputs:
            definition = node.scope.resolve(name) if name else None
            if definition is None or definition.node is None:
                continue
            place = self._inner(definition.node, name)
            maker = self._producer(place)
            if maker is None or place in self._made or maker in self._constants:
                continue
            if self._owners.get(maker, kernel) is kernel:
                yield place


def _after_fusion(kernel: Node, place: Place) -> Place:
    """Return what a kernel in blocked layout makes, which is named for what it made at first.

    A sum and an activation that were fused into it later are in its inputs and attributes.
    """
    scope, name = place
    wanted: list[frozenset[str]] = []
    if len(kernel.inputs) > 3 and kernel.inputs[3]:
        wanted.append(frozenset({"Add", "Sum"}))
    activation = kernel.attribute("activation")
    made = scope.producer(name)
    if activation is not None and isinstance(activation.value, bytes):
        operator = activation.value.decode("utf-8", "replace")
        if made is None or made.op_type != operator:
            wanted.append(frozenset({operator}))
    for operators in wanted:
        readers = [node for node in scope.consumers(name) if node.op_type in operators]
        if len(readers) != 1 or not readers[0].outputs:
            break
        name = readers[0].outputs[0]
    return scope, name


def _constant_nodes(finder: NodeFinder) -> set[Node]:
    """Return the nodes whose results are known before the model runs.

    Optimisers compute them once, so they are no part of a kernel.
    """
    found: set[Node] = set()
    for scope in finder.document.scopes():
        for node in scope.nodes:
            if node.op_type == "Constant":
                found.add(node)
            elif node.inputs and not node.children and finder.function_of(node) is None:
                definitions = (scope.resolve(name) for name in node.inputs if name)
                if all(
                    d is not None and (d.kind == "initializer" or d.node in found)
                    for d in definitions
                ):
                    found.add(node)
    return found
