"""Shapes through a graph for many sizes of its inputs at once: which sizes it cannot be run with.

Every dimension is a number, or an array with one number a candidate. One pass over the nodes so
tells, for all candidates, where a Concat, a Reshape, a MatMul or a broadcast does not work out, and
by the way what values the inputs must have: ids within a table, scalars that are compared with
constants. Small integer and float tensors are followed by value, since shapes are computed from
shapes. What is not known (an operator without a rule, a loop) is None and demands nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx

from dld_tui.core.document.local_functions import call_of, key_of
from dld_tui.core.document.traversal import topological_order
from dld_tui.core.inputs.known import UNKNOWN, Attributes, Dims, Known, Number, Rule, lacks, only
from dld_tui.core.inputs.shape_rules import LAYER_RULES, LAYOUT_RULES, NUMBER_RULES

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

MOST_NODES = 60_000
"""Nodes that one pass looks at; what comes after them is unknown."""
_DEEPEST = 12
"""Bodies and calls within each other that are followed."""
_RULES: dict[str, Rule] = {**NUMBER_RULES, **LAYOUT_RULES, **LAYER_RULES}


@dataclass(slots=True)
class _Frame:
    """The values of a scope that is being looked at."""

    scope: Scope
    values: dict[str, Known]
    outer: _Frame | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    """Those of the call, where the scope is a local function."""

    def get(self, name: str) -> Known:
        frame: _Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            tensor = frame.scope.initializer(name) if not frame.scope.is_function else None
            if tensor is not None:
                known = Known(tensor.shape, tensor=tensor)
                frame.values[name] = known
                return known
            frame = frame.outer
        return UNKNOWN


class Propagation:
    """One pass over a model. What it found is in the attributes afterwards.

    Args:
        document: The model.
        inputs: What is known of each input.
        count: The number of candidates, the length of every array.
        orders: What another pass over the same model found of the order of its nodes.
    """

    def __init__(
        self,
        document: Document,
        inputs: Mapping[str, Known],
        count: int,
        orders: dict[Scope, list[Node]] | None = None,
    ) -> None:
        self.count = count
        self.broken: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes cannot do with each candidate."""
        self.shrunk: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        """How many nodes stretch a single element over a fixed size: allowed, but rarely meant."""
        self.refusals: list[tuple[npt.NDArray[np.bool_], Node]] = []
        """The candidates that a node cannot do with."""
        self.bounds: dict[str, list[tuple[Number, Node]]] = {}
        """How many rows the tables have into which an input's elements point."""
        self.compared: dict[str, list[Number]] = {}
        """Constants that an input is compared with, in the order of the nodes."""
        self.uses: dict[str, list[tuple[str, int, Node]]] = {}
        """Operators that take an input, as it is or cast or reshaped, and its position there."""
        self._frames: dict[Scope, list[_Frame]] = {}
        self._left = MOST_NODES
        self._orders = {} if orders is None else orders
        self._functions = {key_of(one): one for one in document.functions}
        self._node: Node | None = None
        with np.errstate(all="ignore"):
            self._run(_Frame(document.main, dict(inputs)), 0)

    def cost_with(self, shrunk: int | None) -> npt.NDArray[np.int64]:
        """Return how bad each candidate is: what it breaks, then what it shrinks.

        Args:
            shrunk: How many nodes may stretch a single element; each one more is as bad as two
                that break. None for any number.
        """
        cost = self.broken * (1 << 20) + self.shrunk
        if shrunk is not None:
            cost = cost + np.maximum(self.shrunk - shrunk, 0) * (1 << 21)
        return cost

    def sizes(self) -> Iterator[tuple[Scope, str, tuple[int, ...]]]:
        """Yield the shapes that are known in full, with one candidate.

        Of local functions: where all calls agree.
        """
        for scope, frames in self._frames.items():
            for name, known in frames[0].values.items():
                dims = _numbers(known.dims)
                others = (frame.values.get(name, UNKNOWN).dims for frame in frames[1:])
                if dims is not None and all(_numbers(other) == dims for other in others):
                    yield scope, name, dims

    def culprit(self, candidate: int) -> Node | None:
        """Return the first node that cannot do with a candidate."""
        return next((node for mask, node in self.refusals if mask[candidate]), None)

    # --- walking ---------------------------------------------------------------------------------

    def _run(self, frame: _Frame, depth: int) -> None:
        self._frames.setdefault(frame.scope, []).append(frame)
        if frame.scope not in self._orders:
            self._orders[frame.scope] = _ordered(frame.scope)
        for node in self._orders[frame.scope]:
            self._left -= 1
            if self._left < 0:
                return
            self._node = node
            inputs = [frame.get(name) if name else UNKNOWN for name in node.inputs]
            self._note_uses(node, inputs)
            try:
                found = self._result(frame, node, inputs, depth)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                found = []  # a malformed node says nothing
            for at, name in enumerate(node.outputs):
                known = found[at] if at < len(found) else UNKNOWN
                if known.dims is None and name and not frame.scope.is_function:
                    known = Known(_declared(frame.scope, name), known.numbers, known.source)
                frame.values[name] = known

    def _result(
        self, frame: _Frame, node: Node, inputs: list[Known], depth: int
    ) -> Sequence[Known]:
        function = self._functions.get(call_of(node)) if self._functions else None
        if function is not None:
            return self._call(frame, node, function, inputs, depth)
        if node.op_type == "If":
            return self._branch(frame, node, inputs, depth)
        rule = _RULES.get(node.op_type)
        if rule is None:
            return []
        return rule(self, inputs, Attributes(node, frame.attributes))

    def _call(
        self, frame: _Frame, node: Node, function: Scope, inputs: list[Known], depth: int
    ) -> Sequence[Known]:
        if depth >= _DEEPEST:
            return []
        given = Attributes(node, frame.attributes).protos()
        inner = _Frame(function, dict(zip(function.inputs, inputs, strict=False)), None, given)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in function.outputs]

    def _branch(
        self, frame: _Frame, node: Node, inputs: list[Known], depth: int
    ) -> Sequence[Known]:
        """Look at the branch that is taken, where that is known."""
        chosen = only(inputs[0].values())
        if chosen is None or depth >= _DEEPEST:
            return []
        body = node.children["then_branch" if chosen else "else_branch"][0]
        inner = _Frame(body, {}, frame, frame.attributes)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in body.outputs]

    def _note_uses(self, node: Node, inputs: Sequence[Known]) -> None:
        for at, known in enumerate(inputs):
            if known.source is not None:
                self.uses.setdefault(known.source[0], []).append((node.op_type, at, node))

    # --- what is demanded ------------------------------------------------------------------------

    def require(self, holds: Any) -> None:
        """Note which candidates the present node cannot do with; the same for all says nothing."""
        if isinstance(holds, np.ndarray):
            refused = ~holds
            if refused.any() and self._node is not None:
                self.broken += refused
                self.refusals.append((refused, self._node))

    def equal(self, one: Number, other: Number) -> Number:
        """Demand that two sizes are equal, and return the size."""
        if one is None or other is None:
            return other if one is None else one
        self.require(one == other)
        return one if isinstance(one, int) else other if isinstance(other, int) else one

    def broadcast(self, *shapes: Dims | None) -> Dims | None:
        """Demand that shapes can be broadcast, and return the common one."""
        if any(dims is None for dims in shapes):
            return None
        known = [dims for dims in shapes if dims is not None]
        rank = max(map(len, known), default=0)
        found = []
        for axis in range(rank):
            size: Number = 1
            for dims in known:
                at = axis - rank + len(dims)
                size = self.joined(size, dims[at]) if at >= 0 else size
            found.append(size)
        return tuple(found)

    def joined(self, one: Number, other: Number) -> Number:
        """Demand that two sizes can be broadcast, and return the common one."""
        if isinstance(one, int) and one == 1:
            return other
        if isinstance(other, int) and other == 1:
            return one
        if one is None or other is None:
            return one if other is None else other
        if isinstance(one, int) and isinstance(other, int):
            return one
        self.require((one == other) | (one == 1) | (other == 1))
        for size, fixed in ((one, other), (other, one)):
            if isinstance(fixed, int) and isinstance(size, np.ndarray):
                self.shrunk += size == 1
        return np.where(one == 1, other, one)

    def bound(self, index: Known, rows: Number) -> None:
        """Note that the elements of a value point into a table."""
        if rows is None:
            return
        if index.source is not None and self._node is not None:
            name, added = index.source
            self.bounds.setdefault(name, []).append((rows - added, self._node))
        if index.most is not None:
            self.require(index.most < rows)


def _numbers(dims: Dims | None) -> tuple[int, ...] | None:
    sizes: list[Number] = [None] if dims is None else [only((dim,)) for dim in dims]
    return None if lacks(sizes) else tuple(map(int, sizes))


def _ordered(scope: Scope) -> list[Node]:
    """Return the nodes so that each comes after those whose values it takes; none of a cycle."""
    made: set[str] = set()
    producers = scope.links.producers
    for node in scope.nodes:
        if any(name and name not in made and name in producers for name in node.inputs):
            return topological_order(scope) or []
        made.update(node.outputs)
    return scope.nodes


def _declared(scope: Scope, name: str) -> Dims | None:
    """Return the sizes that the file tells of a value."""
    known = scope.value_type(name)
    if known is None or known.dims is None or known.container:
        return None
    return tuple(dim if isinstance(dim, int) and dim >= 0 else None for dim in known.dims)
