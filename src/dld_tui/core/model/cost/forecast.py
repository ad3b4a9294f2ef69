"""What a run of a model takes, before it is loaded: a bound, and about, from shapes alone.

A model of 100 bytes can stand for tensors of terabytes, or for years of work, in a run or already
while a runtime computes its constants. What follows of its shapes
(:mod:`dld_tui.core.model.shapes`) is counted: tensors that are certainly made, and the work of
operators that certainly run. What depends on values that only a run knows counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.cost.operators import operator, work
from dld_tui.core.model.document.traversal import sources
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS, SIZE_OPERATORS
from dld_tui.core.model.shapes.evaluation import Evaluation, Frame
from dld_tui.core.model.shapes.following import dims_of_type
from dld_tui.core.model.shapes.size import number_of, product
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.reach import reached
from dld_tui.core.text import visible
from dld_tui.core.types import ELEMENT_BITS

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.inputs.shape_texts import Shape
    from dld_tui.core.process.child import Limits

_LEAST_BITS = 1
"""Of an element whose type is not known."""
_FLOAT = 4
"""Bytes of a usual element."""


class Rates(NamedTuple):
    """How much is done in a second."""

    macs: float
    elements: float
    """Elements of results."""
    nodes: float


FASTEST = Rates(1e14, 1e13, 1e7)
"""More than any machine does: what takes too long with it takes too long."""
TYPICAL = Rates(2e10, 5e8, 3e5)
"""About what a few threads do: what takes too long with it is worth a trial that can be ended."""


class Need(NamedTuple):
    """What a node takes, in all iterations of the loops that it is in."""

    node: Node
    owner: Node
    """The outermost of these loops; the node itself where it is in none."""
    bytes: int
    """Of its largest result, at least."""
    macs: int
    elements: int
    """Of its results, in all runs of it."""
    runs: int
    is_constant: bool
    """It follows from constants alone: a runtime computes it while it loads the model."""

    def seconds(self, rates: Rates) -> float:
        """Return how long it takes."""
        amounts = (self.macs, self.elements, self.runs)
        return sum(count / rate for count, rate in zip(amounts, rates, strict=True))


@dataclass(frozen=True)
class Excess:
    """What goes beyond a limit."""

    node: Node | None
    """None for an input of the model."""
    what: str
    """``time`` or ``memory``."""
    text: str
    """In a phrase. Untrusted text."""


class Forecast(Evaluation):
    """What the nodes of a model take, in the order in which they run.

    Args:
        document: The model.
        shapes: Of inputs; the sizes of others are those that the model has in numbers.
    """

    def __init__(self, document: Document, shapes: Mapping[str, Shape] | None = None) -> None:
        self.needs: list[Need] = []
        self._times = 1
        """How often the present scope runs; 0 where that is not certain."""
        self._owner: Node | None = None
        self._marks: dict[Node, int] = {}
        """How many needs there were before a node with subgraphs."""
        self._needed: dict[Scope, set[Node]] = {}
        self._constant: set[tuple[Scope, str]] = set()
        """Results that follow from constants alone."""
        given, main = shapes or {}, document.main
        inputs = {
            name: Value(given.get(name) or dims_of_type(main.value_type(name)))
            for name in main.inputs
        }
        self._inputs = {name: self._bytes(main, name, value) for name, value in inputs.items()}
        super().__init__(document, inputs)

    def beyond(
        self, limits: Limits, rates: Rates = FASTEST, *, loading: bool = False
    ) -> Excess | None:
        """Return what goes beyond limits first; None where nothing is known to.

        Args:
            limits: The limits.
            rates: How fast the machine is.
            loading: Look at what is computed without a run only.
        """
        for name, size in self._inputs.items():
            if size > limits.memory and not loading:
                return Excess(None, "memory", f"input {visible(name)} takes {fmt.size(size)}")
        seconds = 0.0
        for need in self.needs:
            if loading and not need.is_constant:
                continue
            if need.bytes > limits.memory:
                return Excess(need.node, "memory", f"it takes over {fmt.size(limits.memory)}")
            seconds += need.seconds(rates)
            if seconds > limits.seconds:
                return Excess(need.owner, "time", f"it takes over {fmt.duration(limits.seconds)}")
        return None

    def largest(self, least: int) -> Node | None:
        """Return the node that makes most; None if that has fewer bytes than `least` in float32."""
        need = max(self.needs, key=lambda need: need.elements, default=None)
        return need.node if need is not None and _FLOAT * need.elements >= least else None

    def _result(self, frame: Frame, node: Node, inputs: list[Value], depth: int) -> Sequence[Value]:
        if node.children:
            self._marks[node] = len(self.needs)
        results = super()._result(frame, node, inputs, depth)
        if not node.children and node.op_type not in RANDOM_OPERATORS:
            scope = frame.scope
            if all(
                (scope, name) in self._constant or scope.initializer(name) is not None
                for name in node.inputs
                if name
            ):
                self._constant.update((scope, name) for name in node.outputs)
        if self._times and node in self._needed_in(frame.scope):
            self._note(frame, node, inputs, results)
        return results

    def _body(
        self, frame: Frame, body: Scope, depth: int, inputs: Sequence[Value] = ()
    ) -> list[Value]:
        node, before = body.owner, (self._times, self._owner)
        if node is not None:
            del self.needs[self._marks[node] :]  # it is visited until the sizes stay as they are
            runs = number_of(self.trips[node]) if node in self.trips else None
            if runs is None:  # certain of a branch only
                runs = 1 if self.branches.get(node) == body.attribute else 0
            self._times *= max(int(runs), 0)
            if runs > 1 and self._owner is None:
                self._owner = node
        values = super()._body(frame, body, depth, inputs)
        self._times, self._owner = before
        return values

    def _note(
        self, frame: Frame, node: Node, inputs: list[Value], results: Sequence[Value]
    ) -> None:
        pairs = [*zip(node.outputs, results, strict=False)]
        sizes = [self._bytes(frame.scope, name, value) for name, value in pairs if name]
        counted = operator(node.domain, node.op_type)
        macs = 0
        if counted.rule is not None and not node.children:
            call = self._call(frame, node, inputs)
            call.results = results
            macs = _whole(work(counted.rule, call)[0])
        made = 0 if counted.is_view else sum(_count(value) for _, value in pairs)
        self.needs.append(
            Need(
                node,
                self._owner or node,
                max(sizes, default=0),
                macs * self._times,
                made * self._times,
                self._times,
                (frame.scope, node.outputs[0]) in self._constant if node.outputs else False,
            )
        )

    def _bytes(self, scope: Scope, name: str, value: Value) -> int:
        known = scope.value_type(name)
        bits = ELEMENT_BITS.get(known.dtype or "" if known is not None else "", _LEAST_BITS)
        return _count(value) * bits // 8

    def _needed_in(self, scope: Scope) -> set[Node]:
        """Return the nodes that a runtime cannot leave out: something needs the elements."""
        if scope not in self._needed:
            producers = scope.links.producers
            self._needed[scope] = reached(
                [node for name in scope.outputs for node in producers.get(name, ())],
                lambda node: (
                    sources(scope, node)
                    if node.domain or node.op_type not in SIZE_OPERATORS
                    else ()
                ),
            )
        return self._needed[scope]


def _count(value: Value) -> int:
    """Return how many elements a tensor has, 0 where that is not known."""
    if value.dims is None or value.is_sequence:
        return 0
    return _whole(product(value.dims))


def _whole(count: object) -> int:
    number = number_of(count)
    return max(int(number), 0) if number is not None else 0
