"""What memory a run of a model needs: weights, and activations by their lifetimes.

Nodes run in the order of ONNX Runtime. A tensor lives from its node to the last node that reads it,
views share the memory of what they look at, and what depends on constants alone is computed before
a run and counts as a weight. What a runtime saves by reuse, what its kernels ask for while they
run, and what its allocator keeps is not predicted: :class:`MeasuredMemory` has it of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import accumulate
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.cost.operators import MOVES_NOTHING
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.model.shapes.size import size_at
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.table import BYTES, Column, Table
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.cost.nodes import ModelCosts
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.types import JSON

_WORTH_SAVING = 0.02
"""The share of the peak from which a setting that lowers it is shown."""
_STRING_BYTES = 32
"""Of ``std::string``; characters beyond the first 15 are elsewhere."""


@dataclass(frozen=True)
class Alive:
    """A tensor that is in memory at the peak."""

    name: str
    """Untrusted text, as the nodes."""
    bytes: int
    producer: str
    last_consumer: str
    """Empty for an output of the model, and for what nobody reads: both stay to the end."""
    is_output: bool = False


@dataclass(frozen=True)
class MemoryStep:
    """The memory while a node runs."""

    node: str
    """Its reference: untrusted text."""
    bytes: int
    """Of activations."""


@dataclass(frozen=True)
class MeasuredMemory:
    """What the arena of ONNX Runtime's CPU provider handed out in one run."""

    peak: int
    """The most bytes of activations that were asked for after a node."""
    at: str
    """That node of the optimised graph: untrusted text."""
    in_use: int
    """The most bytes in use at any time, without weights: with what kernels ask for while they run,
    and rounded up by the arena. It may be that of making the session, where this needs more."""
    held: int
    """Bytes that the arena has of the system, with what is unused and the weights in it. Those that
    kernels pack when the session is made are elsewhere."""
    without_reuse: int | None = None
    """:attr:`in_use` of a session with ``enable_mem_reuse`` off, which gives free buffers back
    instead of keeping them for later tensors."""

    @property
    def saved_without_reuse(self) -> int:
        """Bytes that the peak falls by without reuse of buffers; 0 where it does not."""
        return max(self.in_use - (self.without_reuse or self.in_use), 0)


@dataclass(frozen=True)
class MemoryPlan:
    """What a run needs."""

    weights: int
    """Bytes of initializers, and of what is computed of constants alone."""
    inputs: int
    """Bytes of the inputs, which belong to whoever runs the model."""
    peak: int
    """Bytes of activations at the peak."""
    at: str
    """The node that runs then: untrusted text."""
    alive: tuple[Alive, ...]
    """The tensors of the main graph then, the largest first; their bytes and `inside` add up."""
    inside: int
    """Bytes that a body of that node needs beside them."""
    steps: tuple[MemoryStep, ...]
    unknown: tuple[str, ...] = ()
    """Nodes of which an output has no known size: it counts as nothing, a dimension as 1."""
    graph: str = ""
    """Whose graph it is; empty for that of the file."""
    shapes: tuple[str, ...] = ()
    """Of the inputs, as ``x:1x3x224x224``, where they were chosen. Untrusted text."""
    measured: MeasuredMemory | None = None
    not_measured: str = ""
    """Why there is no measurement, in a line. Untrusted text."""

    @property
    def total(self) -> int:
        """Weights and the peak of the activations."""
        return self.weights + self.peak


@dataclass
class _Lifetime:
    """Memory of a tensor, and of the views of it."""

    name: str
    bytes: int
    producer: str
    begins: int
    """The step of the node that makes it."""
    ends: int
    """The last step of a node that reads it or a view of it."""
    last_consumer: str = ""
    is_output: bool = False

    def alive(self) -> Alive:
        last = "" if self.is_output else self.last_consumer
        return Alive(self.name, self.bytes, self.producer, last, self.is_output)


@dataclass
class _ScopePlan:
    """The activations of one scope, step by step."""

    scope: Scope
    size: Callable[[Scope, str], int | None]
    bodies: Callable[[Node], Sequence[Scope]]
    """Returns the graphs inside a node that may run."""
    keeps_constants: bool
    """Whether what depends on constants alone is computed in each run."""
    steps: list[MemoryStep] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    folded: int = 0
    """Bytes of what is computed of constants before a run."""
    peak: int = 0
    at: str = ""
    alive: list[_Lifetime] = field(default_factory=list)
    inside: int = 0

    def run(self) -> _ScopePlan:
        """Follow the nodes in their order."""
        constants = set() if self.keeps_constants else self._constants()
        order = execution_order([node for node in self.scope.nodes if node not in constants])
        lifetimes = self._lifetimes(order)
        change = [0] * (len(order) + 2)
        for lifetime in lifetimes:
            change[lifetime.begins] += lifetime.bytes
            change[lifetime.ends + 1] -= lifetime.bytes
        peak_step = 0
        for step, (node, outside) in enumerate(zip(order, accumulate(change), strict=False)):
            inside = self._inside(node)
            self.steps.append(MemoryStep(node.ref, outside + inside))
            if outside + inside > self.peak:
                self.peak, self.at, self.inside = outside + inside, node.ref, inside
                peak_step = step
        self.alive = [each for each in lifetimes if each.begins <= peak_step <= each.ends]
        return self

    def _lifetimes(self, order: Sequence[Node]) -> list[_Lifetime]:
        """Return what has memory of its own, with the steps of its readers."""
        of: dict[str, _Lifetime] = {}
        lifetimes: list[_Lifetime] = []
        for step, node in enumerate(order):
            for name in used_values(node):
                if name in of:
                    of[name].ends, of[name].last_consumer = step, node.ref
            for name in filter(None, node.outputs):
                size = self.size(self.scope, name)
                if size is None:
                    self.unknown.append(node.ref)
                    continue
                if _is_view(node) and size == self.size(self.scope, node.inputs[0]):
                    if node.inputs[0] in of:  # else of an input or a weight
                        of[name] = of[node.inputs[0]]
                    continue
                # What nobody reads is given back after the run.
                of[name] = _Lifetime(name, size, node.ref, step, len(order))
                lifetimes.append(of[name])
        for name in self.scope.outputs:
            if name in of:
                of[name].ends, of[name].is_output = len(order), True
        return lifetimes

    def _constants(self) -> set[Node]:
        """Return the nodes that are computed before a run; what they make counts as weights."""
        known: set[str] = {tensor.name for tensor in self.scope.initializers}
        nodes = set()
        for node in execution_order(self.scope.nodes):
            if node.children or node.op_type in RANDOM_OPERATORS:
                continue
            if all(name in known for name in node.inputs if name):
                nodes.add(node)
                known.update(node.outputs)
        kept = [node for node in self.scope.nodes if node not in nodes]
        needed = {name for node in kept for name in used_values(node)} | set(self.scope.outputs)
        for node in nodes:
            for name in node.outputs:
                if name in needed:
                    self.folded += self.size(self.scope, name) or 0
        return nodes

    def _inside(self, node: Node) -> int:
        """Return what the bodies of a node need while they run, of several the largest.

        A branch of an If makes the outputs of the node itself. A Loop or Scan has what a trip hands
        on to the next one beside its outputs.
        """
        most = 0
        for body in self.bodies(node):
            inner = _ScopePlan(body, self.size, self.bodies, self.keeps_constants).run()
            self.folded += inner.folded
            self.unknown += inner.unknown
            output_bytes = sum(self.size(body, name) or 0 for name in body.outputs)
            most = max(most, inner.peak - output_bytes if node.op_type == "If" else inner.peak)
        return max(most, 0)


def _is_view(node: Node) -> bool:
    return not node.domain and node.op_type in MOVES_NOTHING and bool(node.inputs)


def used_values(node: Node) -> Iterable[str]:
    """Return the values that a node reads, those of its bodies too."""
    yield from filter(None, node.inputs)
    for body in node.subgraphs():
        for inner in body.nodes:
            yield from used_values(inner)
        yield from body.outputs


def execution_order(nodes: Sequence[Node]) -> list[Node]:
    """Return nodes as ONNX Runtime executes them: depth first from the last ones, backwards.

    As ``Graph::ReverseDFSFrom`` with ``NodeCompare`` does it: sources with a higher number first.
    """
    number = {node: at for at, node in enumerate(nodes)}
    producers = {name: node for node in nodes for name in node.outputs if name}
    sources = {
        node: sorted(
            {producers[n] for n in used_values(node) if n in producers}, key=number.__getitem__
        )
        for node in nodes
    }
    read = {source for of_node in sources.values() for source in of_node}
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in nodes if node not in read]
    while stack:
        node, leaves = stack.pop()
        if leaves:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in sources[node] if source not in seen]
    return order


def memory_plan(
    costs: ModelCosts, *, outputs: bool = True, keeps_constants: bool = False
) -> MemoryPlan:
    """Return what a run of a model needs.

    Args:
        costs: Of the model, with the sizes of its dimensions.
        outputs: Whether the outputs of the model count as activations.
        keeps_constants: Whether what depends on constants alone is computed in each run, as in a
            graph that ONNX Runtime has optimised.
    """
    main = costs.document.main
    given_back = set() if outputs else {*main.outputs}
    open_sizes: dict[str, None] = {}

    def bytes_of(scope: Scope, name: str) -> int | None:
        size = costs.bytes_of(scope, name)
        producer = scope.producer(name)
        if size is None and producer is not None and producer.op_type == "SequenceConstruct":
            copies = [bytes_of(scope, source) for source in producer.inputs]
            return None if None in copies else sum(copy for copy in copies if copy)
        known = scope.value_type(name) if size is None else None
        if known is not None and known.dtype == "string" and not known.container:
            elements = costs.elements_of(scope, name)
            size = None if elements is None else elements * _STRING_BYTES
        if size is None or isinstance(size, int):
            return size
        if producer is not None:
            open_sizes[producer.ref] = None
        return size_at(size, 1)

    def size(scope: Scope, name: str) -> int | None:
        return 0 if scope is main and name in given_back else bytes_of(scope, name)

    activations = _ScopePlan(main, size, costs.bodies, keeps_constants).run()
    stored = sum(
        size(scope, tensor.name) or 0
        for scope in costs.document.scopes()
        if not scope.is_function
        for tensor in scope.initializers
    )
    alive = sorted((lifetime.alive() for lifetime in activations.alive), key=_largest_first)
    return MemoryPlan(
        stored + activations.folded,
        sum(size(main, name) or 0 for name in main.inputs),
        activations.peak,
        activations.at,
        tuple(alive),
        activations.inside,
        tuple(activations.steps),
        tuple({**dict.fromkeys(activations.unknown), **open_sizes}),
    )


def _largest_first(alive: Alive) -> int:
    return -alive.bytes


def _last_consumer(alive: Alive) -> str:
    return alive.last_consumer or ("an output" if alive.is_output else "nobody, kept to the end")


COLUMNS: tuple[Column[Alive], ...] = (
    Column("tensor", "tensor", lambda alive: alive.name, least=20, keep="end"),
    Column("bytes", "size", lambda alive: alive.bytes, BYTES, 10),
    Column("producer", "made by", lambda alive: alive.producer, least=16, keep="end"),
    Column("last_consumer", "last read by", _last_consumer, least=16, keep="end"),
)


def memory_table(plan: MemoryPlan) -> Table[Alive]:
    """Return what is alive at the peak."""
    return Table(COLUMNS, plan.alive, name="memory", title="Alive at the peak")


def memory_lines(plan: MemoryPlan) -> list[str]:
    """Return the sums, and what would lower the peak, in lines for people."""
    lines = (
        [f"{'graph':<13}{plan.graph}, {fmt.plural(len(plan.steps), 'node')}"] if plan.graph else []
    )
    when = f" at the peak, while {visible(plan.at)} runs" if plan.at else ""
    least = "at least " if plan.unknown else ""
    shapes = [f"{shape}scalar" if shape.endswith(":") else shape for shape in plan.shapes]
    lines += [f"{'shapes':<13}{visible(', '.join(shapes))}"] if shapes else []
    lines += [
        f"{'weights':<13}{fmt.size(plan.weights)}",
        f"{'activations':<13}{least}{fmt.size(plan.peak)}{when}",
        f"{'total':<13}{least}{fmt.size(plan.total)}",
        *_measured_lines(plan),
        f"{'inputs':<13}{fmt.size(plan.inputs)}, allocated by the caller",
    ]
    if plan.inside:
        lines.append(f"{'subgraphs':<13}{fmt.size(plan.inside)} of the peak, in that node")
    if plan.alive and plan.peak:
        first = plan.alive[0]
        share = fmt.whole_percent(share_percent(first.bytes, plan.peak) or 0.0)
        lines.append(f"{'largest':<13}{visible(first.name)}, {share} % of the peak")
        below = max((step.bytes for step in plan.steps if step.bytes < plan.peak), default=0)
        highest = sum(step.bytes == plan.peak for step in plan.steps)
        if below:
            several = f"; {highest:,} nodes reach the peak" if highest > 1 else ""
            lines.append(f"{'next':<13}{fmt.size(below)} at the next-highest node{several}")
    if plan.unknown:
        text = f"{fmt.plural(len(plan.unknown), 'node')} with outputs of unknown size"
        lines.append(f"{'unknown':<13}{text}")
    return lines


def _measured_lines(plan: MemoryPlan) -> list[str]:
    """Return what a run had in use, and the setting that lowers it, in lines."""
    measured = plan.measured
    if measured is None:
        why = plan.not_measured
        return [f"{'measured':<13}not: {visible(why)}"] if why else []
    after = f" after {visible(measured.at)}" if measured.at else ""
    lines = [
        f"{'measured':<13}{fmt.size(measured.peak)} of activations{after};"
        f" {fmt.size(measured.in_use)} with kernels and rounding",
        f"{'allocator':<13}holds {fmt.size(measured.held)}, with weights that no kernel packed",
    ]
    if measured.saved_without_reuse > _WORTH_SAVING * measured.in_use:
        saved = f"saves {fmt.size(measured.saved_without_reuse)}"
        text = f"enable_mem_reuse = False {saved}: no buffer is kept for later tensors"
        lines.append(f"{'lower':<13}{text}")
    return lines


def plan_json(plan: MemoryPlan) -> dict[str, JSON]:
    """Return it as JSON data."""
    alive: list[JSON] = [
        {"tensor": a.name, "bytes": a.bytes, "producer": a.producer,
         "last_consumer": a.last_consumer or None}
        for a in plan.alive
    ]  # fmt: skip
    steps: list[JSON] = [{"node": step.node, "bytes": step.bytes} for step in plan.steps]
    measured = plan.measured
    return {
        "weights": plan.weights, "inputs": plan.inputs, "peak": plan.peak, "at": plan.at,
        "inside": plan.inside, "alive": alive, "steps": steps, "unknown": [*plan.unknown],
        "graph": plan.graph or None, "shapes": [*plan.shapes],
        "measured": None if measured is None else {
            "peak": measured.peak, "at": measured.at or None,
            "in_use": measured.in_use, "held": measured.held,
            "without_reuse": measured.without_reuse,
        },
        "not_measured": plan.not_measured or None,
    }  # fmt: skip
