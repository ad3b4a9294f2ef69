"""Shapes and small values through a model, for given sizes of its inputs.

One pass over the nodes applies the rules of operators (:mod:`.rules`), enters local functions and
subgraphs, and records what the nodes demand. Sizes may be numbers, polynomials, or one number a
candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.document.local_functions import call_of, key_of
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.document.traversal import topological_order
from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import UNKNOWN, Size, number_of, size_of
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value, alike, in_common, scalar, sequence

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope


MOST_NODES = 60_000
"""Nodes that one pass looks at; what comes after them is unknown."""
_DEEPEST = 12
"""Subgraphs and calls within each other that are followed."""
_MOST_ITERATIONS = 64
"""Iterations of a loop that are followed one by one."""
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a rule may raise where a node is malformed."""


@dataclass(slots=True)
class Frame:
    """The values of a scope that is being looked at."""

    scope: Scope
    values: dict[str, Value]
    outer: Frame | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    """Those of the call, where the scope is a local function."""
    variant: int | None = None
    """Of the function around it, as in :class:`~dld_tui.core.model.document.scope.CallTypes`."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Of operator sets, by domain."""

    def get(self, name: str) -> Value:
        """Return what is known of a value that is seen here."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            tensor = frame.scope.initializer(name) if not frame.scope.is_function else None
            if tensor is not None:
                known = Value(tensor.shape, tensor=tensor)
                frame.values[name] = known
                return known
            frame = frame.outer
        return NOTHING


class Evaluation:
    """One pass over a model. What it found is in the attributes afterwards.

    Args:
        document: The model.
        inputs: What is known of each input of the main graph.
        demands: Where to note what the nodes demand.
        orders: What another pass over the same model found of the order of its nodes.
        named: Whether names of declared dimensions stand for sizes, as they do in `inputs`.
    """

    def __init__(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        demands: Demands | None = None,
        orders: dict[Scope, list[Node]] | None = None,
        *,
        named: bool = False,
    ) -> None:
        self.demands = Demands() if demands is None else demands
        self.branches: dict[Node, str | None] = {}
        """The branch that an If takes; None where that is not known, or differs between visits."""
        self.frames: dict[Scope, list[Frame]] = {}
        """What is known in each scope; of a function one frame a call."""
        self.trips: dict[Node, Size] = {}
        """How often the body of a Loop or Scan runs, at the last visit, if nothing ends it."""
        self._left = MOST_NODES
        self._versions: dict[Scope, dict[str, int]] = {}
        self._named = named
        self._orders = {} if orders is None else orders
        self._document = document
        self._functions = {key_of(function): function for function in document.functions}
        frame = Frame(document.main, dict(inputs), versions=imports_of(document.main))
        with np.errstate(all="ignore"):
            self._run(frame, 0)

    def value(self, scope: Scope, name: str) -> Value:
        """Return what all visits of a scope know of a value in common."""
        frames = self.frames.get(scope, ())
        if len(frames) == 1:
            return frames[0].get(name)
        return in_common([frame.get(name) for frame in frames]) if frames else NOTHING

    def sizes(self) -> Iterator[tuple[Scope, int | None, str, tuple[int, ...]]]:
        """Yield the shapes that are known in numbers.

        Of local functions: where all calls agree, and those of a variant.
        """
        for scope, frames in self.frames.items():
            variants = {frame.variant: None for frame in frames if frame.variant is not None}
            for variant in (None, *variants):
                same = [frame for frame in frames if variant in (None, frame.variant)]
                for name, known in same[0].values.items():
                    dims = _numbers(known.dims)
                    others = (frame.values.get(name, NOTHING).dims for frame in same[1:])
                    if dims is not None and all(_numbers(other) == dims for other in others):
                        yield scope, variant, name, dims

    def _seen(self, node: Node, inputs: Sequence[Value]) -> None:
        """Look at a node before its rule does; for those who collect more."""

    def _run(self, frame: Frame, depth: int) -> None:
        self.frames.setdefault(frame.scope, []).append(frame)
        if frame.scope not in self._orders:
            self._orders[frame.scope] = _ordered(frame.scope)
        is_function = frame.scope.is_function
        for node in self._orders[frame.scope]:
            self._left -= 1
            if self._left < 0:
                return
            self.demands.node = node
            inputs = [frame.get(name) if name else NOTHING for name in node.inputs]
            self._seen(node, inputs)
            try:
                results = self._result(frame, node, inputs, depth)
            except MALFORMED:
                results = ()  # a malformed node says nothing
            for at, name in enumerate(node.outputs):
                known = without_negative(results[at]) if at < len(results) else NOTHING
                if known.dims is None and name and not is_function and not known.is_sequence:
                    known = Value(self._declared(frame.scope, name), known.elements, known.source)
                frame.values[name] = known

    def _declared(self, scope: Scope, name: str) -> Dims | None:
        """Return the sizes that the file declares for a value."""
        known = scope.value_type(name)
        if known is None or known.dims is None or known.container:
            return None
        sizes = map(size_of, known.dims)
        return tuple(size if self._named or isinstance(size, int) else UNKNOWN for size in sizes)

    def _result(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        function = self._functions.get(call_of(node)) if self._functions else None
        if function is not None:
            return self._called(frame, node, function, inputs, depth)
        domain, operator = node.domain, node.op_type
        if not domain and operator in _WITH_SUBGRAPHS:
            if depth >= _DEEPEST:
                return ()
            return _WITH_SUBGRAPHS[operator](self, frame, node, inputs, depth)
        rule = rule_of(domain, operator)
        if rule is None:
            return ()
        return rule(self._call(frame, node, inputs))

    def _call(self, frame: Frame, node: Node, inputs: list[Value]) -> Call:
        return Call(
            node.proto, inputs, self.demands, frame.versions.get(node.domain, 0),
            frame.attributes, node.scope.document,
        )  # fmt: skip

    def _called(
        self, frame: Frame, node: Node, function: Scope, inputs: list[Value], depth: int
    ) -> Sequence[Value]:
        if depth >= _DEEPEST:
            return ()
        attributes = self._call(frame, node, inputs).attributes()
        variant = self._document.call_types.called(node, frame.variant)
        values = dict(zip(function.inputs, inputs, strict=False))
        versions = self._versions.get(function)
        if versions is None:
            versions = self._versions[function] = imports_of(function)
        inner = Frame(function, values, None, attributes, variant, versions)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in function.outputs]

    def _body(
        self, frame: Frame, body: Scope, depth: int, inputs: Sequence[Value] = ()
    ) -> list[Value]:
        values = dict(zip(body.inputs, inputs, strict=False))
        inner = Frame(body, values, frame, frame.attributes, frame.variant, frame.versions)
        self._run(inner, depth + 1)
        return [inner.get(name) for name in body.outputs]

    def _branch(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        """Look at the branch that is taken; where that is not known, at what both have."""
        values = inputs[0].values()
        taken = number_of(values[0]) if values else None
        branch = None if taken is None else "then_branch" if taken else "else_branch"
        self.branches[node] = branch if self.branches.get(node, branch) == branch else None
        if branch is not None:
            return self._body(frame, node.children[branch][0], depth)
        # What one of them refuses may be in the branch that is not taken.
        state = self.demands.state()
        results = [
            self._body(frame, node.children[name][0], depth)
            for name in ("then_branch", "else_branch")
        ]
        self.demands.reset(state)
        return [in_common(pair) for pair in zip(*results, strict=False)]

    def _loop(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        """Follow an iteration; carried values have their first shape where it stays the same."""
        body = node.children["body"][0]
        begins = _truth(inputs[1]) if node.inputs[1] else True
        most = _only(inputs[0]) if node.inputs[0] else None
        trips = 0 if begins is False else most if begins and _runs_on(body) else None
        self.trips[node] = UNKNOWN if trips is None else trips
        state = self.demands.state()
        carried = [Value(value.dims, is_sequence=value.is_sequence) for value in inputs[2:]]
        is_steady = not any(value.is_sequence for value in carried)
        while True:
            results = self._body(frame, body, depth, [Value(()), Value(()), *carried])[1:]
            joined = [in_common(pair) for pair in zip(carried, results, strict=False)]
            if all(_same_knowledge(*pair) for pair in zip(carried, joined, strict=True)):
                break
            carried, is_steady = joined, False
        if begins is False:
            is_steady = True
            carried = list(inputs[2:])
        if trips is None or not is_steady:
            self.demands.reset(state)
            if most is not None or not node.inputs[0]:
                followed = self._iterated(frame, body, inputs, most, depth)
                if followed is not None:
                    return followed
                self.demands.reset(state)  # it may end before any of these iterations
        listed = results[len(carried) :]
        length: Size = UNKNOWN if trips is None else max(int(trips), 0)
        return [*carried, *(_stacked(length, value) for value in listed)]

    def _iterated(
        self, frame: Frame, body: Scope, inputs: list[Value], most: float | None, depth: int
    ) -> list[Value] | None:
        """Follow a loop iteration by iteration; None where its end is not known, or far."""
        goes_on = _truth(inputs[1]) if inputs[1] is not NOTHING else True
        carried = list(inputs[2:])
        lists: list[list[Value]] = []
        for trip in range(_MOST_ITERATIONS + 1):
            if goes_on is None or self._left < len(body.nodes):
                return None
            if not goes_on or (most is not None and trip >= most):
                break
            results = self._body(frame, body, depth, [scalar(trip), scalar(True), *carried])
            goes_on, carried = _truth(results[0]), results[1 : 1 + len(carried)]
            for at, value in enumerate(results[1 + len(carried) :]):
                if not trip:
                    lists.append([])
                lists[at].append(value)
        else:
            return None
        if not lists and len(body.outputs) > 1 + len(carried):
            return None
        return [*carried, *(_stacked(len(rows), in_common(rows)) for rows in lists)]

    def _scan(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        """Follow an iteration over slices of some inputs; states keep their first shape."""
        body, call = node.children["body"][0], self._call(frame, node, inputs)
        is_old = 0 < call.version < 9  # it has batches of its own, and lengths in front
        given = inputs[1:] if is_old else inputs
        count = call.number("num_scan_inputs", 1)
        states, through = given[: len(given) - count], given[len(given) - count :]
        axes = call.numbers("scan_input_axes") or [0] * count
        outer = 1 if is_old else 0
        batch: Dims = (through[0].dims or (UNKNOWN,))[:outer]
        length: Size = UNKNOWN
        slices = []
        for value, axis in zip(through, axes, strict=True):
            dims = None if value.dims is None else value.dims[outer:]
            if dims:
                at = axis % len(dims)
                length = dims[at] if length is UNKNOWN else length
                self.demands.equal(length, dims[at], "all inputs of a scan are equally long")
                dims = (*dims[:at], *dims[at + 1 :])
            slices.append(Value(dims))
        self.trips[node] = length
        carried = [Value(None if v.dims is None else v.dims[outer:]) for v in states]
        while True:
            results = self._body(frame, body, depth, [*carried, *slices])
            joined = [in_common(pair) for pair in zip(carried, results, strict=False)]
            if all(_same_knowledge(*pair) for pair in zip(carried, joined, strict=True)):
                break
            carried = joined
        ends = results[len(carried) :]
        places = call.numbers("scan_output_axes") or [0] * len(ends)
        final = [*carried, *(_stacked(length, *pair) for pair in zip(ends, places, strict=True))]
        return [Value(None if v.dims is None else (*batch, *v.dims)) for v in final]

    def _mapped(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        """SequenceMap: the body for each item of the first input, and of others like it."""
        body = node.children["body"][0]
        items = inputs[0].items
        if items is None or len(items) > _MOST_ITERATIONS or any(
            value.is_sequence and (value.items is None or len(value.items) != len(items))
            for value in inputs
        ):  # fmt: skip
            once = self._body(frame, body, depth, [Value(value.dims) for value in inputs])
            return [Value(value.dims, is_sequence=True) for value in once]
        rows = [
            self._body(frame, body, depth, [v.items[at] if v.items is not None else v
                                            for v in inputs])
            for at in range(len(items))
        ]  # fmt: skip
        return [sequence(column) for column in zip(*rows, strict=True)]


_WITH_SUBGRAPHS = {
    "If": Evaluation._branch,
    "Loop": Evaluation._loop,
    "Scan": Evaluation._scan,
    "SequenceMap": Evaluation._mapped,
}


def without_negative(value: Value) -> Value:
    """Return what is known of a value for which a rule found a size that none can have."""
    for size in value.dims or ():
        if size.__class__ is int and size < 0:
            return Value(tuple(map(_not_negative, value.dims or ())), source=value.source)
    return value


def _not_negative(size: Size) -> Size:
    return UNKNOWN if isinstance(size, int) and size < 0 else size


def _only(value: Value) -> float | None:
    values = value.values()
    number: float | None = number_of(values[0]) if values is not None and len(values) == 1 else None
    return number


def _truth(value: Value) -> bool | None:
    number = _only(value)
    return None if number is None else bool(number)


def _same_knowledge(before: Value, after: Value) -> bool:
    """Return whether nothing was lost between two iterations."""
    if before.dims is None or after.dims is None:
        return before.dims is None and after.dims is None
    if len(before.dims) != len(after.dims):
        return False
    return all(
        (old is UNKNOWN and new is UNKNOWN) or alike((old,), (new,))
        for old, new in zip(before.dims, after.dims, strict=True)
    )


def _stacked(length: Size, value: Value, axis: int = 0) -> Value:
    """Return values of one shape along a new axis."""
    if value.dims is None:
        return NOTHING
    at = axis % (len(value.dims) + 1)
    return Value((*value.dims[:at], length, *value.dims[at:]))


def _runs_on(body: Scope) -> bool:
    """Return whether the body of a Loop hands on the condition that it gets, or a true one."""
    name = body.outputs[0]
    producer = body.producer(name)
    while producer is not None and producer.op_type == "Identity":
        name = producer.inputs[0]
        producer = body.producer(name)
    if producer is not None and producer.op_type == "Constant":
        return bool(_truth(Call(producer.proto, [], owner=body.document).constant()))
    stored = body.initializer(name)
    return name == body.inputs[1] or (
        stored is not None and bool(_truth(Value(stored.shape, tensor=stored)))
    )


def _numbers(dims: Dims | None) -> tuple[int, ...] | None:
    if dims is None:
        return None
    sizes = [number_of(size) for size in dims]
    return None if None in sizes else tuple(map(int, sizes))


def _ordered(scope: Scope) -> list[Node]:
    """Return the nodes so that each comes after those whose values it takes; none of a cycle."""
    produced: set[str] = set()
    producers = scope.links.producers
    for node in scope.nodes:
        if any(name and name not in produced and name in producers for name in node.inputs):
            return topological_order(scope) or []
        produced.update(node.outputs)
    return scope.nodes
