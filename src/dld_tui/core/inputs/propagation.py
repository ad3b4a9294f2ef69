"""Shapes through a graph for many sizes of its inputs at once: which sizes it cannot be run with.

One pass over the nodes applies the rules of operators (:mod:`.operator_shapes`) to all candidates,
and also collects what values the inputs must have: ids within a table, scalars that are compared
with constants. The body of a Loop is looked at once, and again without the sizes that an iteration
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx

from dld_tui.core.document.local_functions import call_of, key_of
from dld_tui.core.document.traversal import topological_order
from dld_tui.core.document.types.value_types import ValueType
from dld_tui.core.inputs.operator_shapes import (
    RULES,
    UNKNOWN,
    Attributes,
    Constraints,
    Dims,
    Number,
    Value,
    lacks,
    only,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope


MOST_NODES = 60_000
"""Nodes that one pass looks at; what comes after them is unknown."""
_DEEPEST = 12
"""Bodies and calls within each other that are followed."""


@dataclass(slots=True)
class _Frame:
    """The values of a scope that is being looked at."""

    scope: Scope
    values: dict[str, Value]
    outer: _Frame | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    """Those of the call, where the scope is a local function."""
    variant: int | None = None
    """Of the function around it, as in :class:`~dld_tui.core.document.scope.CallTypes`."""

    def get(self, name: str) -> Value:
        frame: _Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            tensor = frame.scope.initializer(name) if not frame.scope.is_function else None
            if tensor is not None:
                known = Value(tensor.shape, tensor=tensor)
                frame.values[name] = known
                return known
            frame = frame.outer
        return UNKNOWN


class Propagation(Constraints):
    """One pass over a model. What it found is in the attributes afterwards.

    Args:
        inputs: What is known of each input.
        count: The number of candidates, the length of every array.
        orders: What another pass over the same model found of the order of its nodes.
    """

    def __init__(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        count: int,
        orders: dict[Scope, list[Node]] | None = None,
    ) -> None:
        super().__init__(count)
        self.uses: dict[str, list[tuple[str, int, Node]]] = {}
        """Operators that take an input, perhaps cast or reshaped, and its position there."""
        self.branches: dict[Node, str | None] = {}
        """The branch that an If takes; None where that is not known, or differs between visits."""
        self._frames: dict[Scope, list[_Frame]] = {}
        self._left = MOST_NODES
        self._orders = {} if orders is None else orders
        self._document = document
        self._functions = {key_of(function): function for function in document.functions}
        with np.errstate(all="ignore"):
            self._run(_Frame(document.main, dict(inputs)), 0)

    def sizes(self) -> Iterator[tuple[Scope, int | None, str, tuple[int, ...]]]:
        """Yield the shapes that are known in full, with one candidate.

        Of local functions: where all calls agree, and those of a variant.
        """
        for scope, frames in self._frames.items():
            variants = {frame.variant: None for frame in frames if frame.variant is not None}
            for variant in (None, *variants):
                alike = [frame for frame in frames if variant in (None, frame.variant)]
                for name, known in alike[0].values.items():
                    dims = _numbers(known.dims)
                    others = (frame.values.get(name, UNKNOWN).dims for frame in alike[1:])
                    if dims is not None and all(_numbers(other) == dims for other in others):
                        yield scope, variant, name, dims

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
                results = self._result(frame, node, inputs, depth)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                results = []  # a malformed node says nothing
            for at, name in enumerate(node.outputs):
                known = results[at] if at < len(results) else UNKNOWN
                if known.dims is None and name and not frame.scope.is_function:
                    known = Value(_declared(frame.scope, name), known.numbers, known.source)
                frame.values[name] = known

    def _result(
        self, frame: _Frame, node: Node, inputs: list[Value], depth: int
    ) -> Sequence[Value]:
        function = self._functions.get(call_of(node)) if self._functions else None
        if function is not None:
            return self._call(frame, node, function, inputs, depth)
        if node.op_type == "If":
            return self._branch(frame, node, inputs, depth)
        if node.op_type == "Loop":
            return self._loop(frame, node, inputs, depth)
        rule = RULES.get(node.op_type)
        if rule is None:
            return []
        return rule(self, inputs, Attributes(node, frame.attributes))

    def _call(
        self, frame: _Frame, node: Node, function: Scope, inputs: list[Value], depth: int
    ) -> Sequence[Value]:
        if depth >= _DEEPEST:
            return []
        attributes = Attributes(node, frame.attributes).protos()
        variant = self._document.call_types.called(node, frame.variant)
        values = dict(zip(function.inputs, inputs, strict=False))
        inner = _Frame(function, values, None, attributes, variant)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in function.outputs]

    def _branch(
        self, frame: _Frame, node: Node, inputs: list[Value], depth: int
    ) -> Sequence[Value]:
        """Look at the branch that is taken; where that is not known, at what both have."""
        chosen = only(inputs[0].values())
        branch = None if chosen is None else "then_branch" if chosen else "else_branch"
        self.branches[node] = branch if self.branches.get(node, branch) == branch else None
        if depth >= _DEEPEST:
            return []
        if branch is not None:
            return self._body(frame, node.children[branch][0], depth)
        demands = self.broken.copy(), self.shrunk.copy(), len(self.refusals)
        results = [
            self._body(frame, node.children[name][0], depth)
            for name in ("then_branch", "else_branch")
        ]
        # What one of them refuses may be in the branch that is not taken.
        self.broken, self.shrunk = demands[:2]
        del self.refusals[demands[2] :]
        return [
            Value(first.dims if _alike(first.dims, second.dims) else None)
            for first, second in zip(*results, strict=False)
        ]

    def _body(self, frame: _Frame, body: Scope, depth: int) -> list[Value]:
        inner = _Frame(body, {}, frame, frame.attributes, frame.variant)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in body.outputs]

    def _loop(self, frame: _Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        """Follow an iteration; carried values have their first shape where it stays the same."""
        if depth >= _DEEPEST:
            return []
        body = node.children["body"][0]
        most = only(inputs[0].values())
        begins = not node.inputs[1] or only(inputs[1].values())
        trips = most if begins and _runs_on(body) else None
        carried = [known.dims for known in inputs[2:]]
        while True:
            values = dict(
                zip(body.inputs, [Value(()), Value(()), *map(Value, carried)], strict=True)
            )
            inner = _Frame(body, values, frame, frame.attributes)
            self._run(inner, depth + 1)
            results = [inner.get(name).dims for name in body.outputs[1:]]
            steady = [_alike(*pair) for pair in zip(carried, results, strict=False)]
            if all(same or value is None for same, value in zip(steady, carried, strict=True)):
                break
            carried = [value if same else None for same, value in zip(steady, carried, strict=True)]
        listed = results[len(carried) :]
        lists = [None if dims is None or trips is None else (trips, *dims) for dims in listed]
        return [*map(Value, carried), *map(Value, lists)]

    def _note_uses(self, node: Node, inputs: Sequence[Value]) -> None:
        for at, known in enumerate(inputs):
            if known.source is not None:
                self.uses.setdefault(known.source[0], []).append((node.op_type, at, node))


def _runs_on(body: Scope) -> bool:
    """Return whether the body of a Loop hands on the condition that it gets, or a true one."""
    name = body.outputs[0]
    producer = body.producer(name)
    while producer is not None and producer.op_type == "Identity":
        name = producer.inputs[0]
        producer = body.producer(name)
    if producer is not None and producer.op_type == "Constant":
        return bool(only(Attributes(producer, {}).constant().values()))
    stored = body.initializer(name)
    return name == body.inputs[1] or (
        stored is not None and bool(only(Value(stored.shape, tensor=stored).values()))
    )


def _alike(first: Dims | None, second: Dims | None) -> bool:
    """Return whether two shapes are known, and the same for all candidates."""
    if first is None or second is None or len(first) != len(second):
        return False
    return all(a is not None and np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _numbers(dims: Dims | None) -> tuple[int, ...] | None:
    sizes: list[Number] = [None] if dims is None else [only((dim,)) for dim in dims]
    return None if lacks(sizes) else tuple(map(int, sizes))


def _ordered(scope: Scope) -> list[Node]:
    """Return the nodes so that each comes after those whose values it takes; none of a cycle."""
    produced: set[str] = set()
    producers = scope.links.producers
    for node in scope.nodes:
        if any(name and name not in produced and name in producers for name in node.inputs):
            return topological_order(scope) or []
        produced.update(node.outputs)
    return scope.nodes


def _declared(scope: Scope, name: str) -> Dims | None:
    """Return the sizes that the file declares for a value."""
    known = scope.value_type(name)
    if known is None or known.dims is None or known.container:
        return None
    return tuple(dim if isinstance(dim, int) and dim >= 0 else None for dim in known.dims)


# --- the shapes of all values of a document for shapes of its inputs ------------------------------

Shape: TypeAlias = "tuple[int, ...]"


def sizes_of(dims: Sequence[int | str | None] | None, shape: Shape) -> dict[str, int]:
    """Return the numbers that symbolic dimensions have in a shape."""
    pairs = zip(dims or (), shape, strict=False)
    return {dim: size for dim, size in pairs if isinstance(dim, str)}


def declare_inputs(document: Document, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Declare the shapes of inputs, in a document that is not saved.

    Returns:
        The numbers that symbolic dimensions of these inputs have by that.

    Raises:
        EditError: A shape does not fit.
    """
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        before = document.main.value_type(name)
        if before is None:
            continue
        sizes.update(sizes_of(before.dims, shape))
        document.apply("set_value_type", scope=[], value=name, dtype=before.dtype, dims=list(shape))
    return sizes


def follow_shapes(
    document: Document,
    shapes: Mapping[str, Shape],
    branches: dict[Node, str] | None = None,
) -> dict[str, int]:
    """Note the shapes that follow from those of the inputs where inference has no numbers.

    It knows what onnx does not: values of small tensors, from which Reshape and its like get sizes.

    Args:
        document: The model; nobody may save it.
        shapes: Of its inputs.
        branches: Is given the branch of each If that is always taken with these shapes.

    Returns:
        The numbers that symbolic dimensions have by that.
    """
    propagation = Propagation(document, {name: Value(shape) for name, shape in shapes.items()}, 1)
    sizes: dict[str, int] = {}
    for scope, variant, name, dims in propagation.sizes():
        types = document.call_types.of(scope, variant)
        kind = scope.value_type(name) if variant is None else types.get(name)
        if kind is not None and kind.dims != dims and not kind.container:
            sizes.update(sizes_of(kind.dims, dims))
            types[name] = ValueType(kind.dtype, dims)
            if variant is None:
                scope.touched.add(name)
    if branches is not None:
        known = propagation.branches.items()
        branches.update({node: taken for node, taken in known if taken is not None})
    return sizes
