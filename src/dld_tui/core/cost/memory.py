"""What memory a run of a model needs: weights, and activations by their lifetimes.

Nodes run in the order of ONNX Runtime, and buffers are shared as its planner for one stream does
it: views and kernels that may write into an input that nobody else reads take that buffer, other
outputs one of the same shape that is free, which nobody gives back in between. What depends on
constants alone is computed before a run and counts as a weight. A Loop holds what it carries twice
over, collects what each trip adds to a list and copies all of that to its outputs at the end.
The scratch memory of kernels counts apart; what an arena keeps beside what is asked for does not.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.cost.counts import size_at
from dld_tui.core.cost.scratch import (
    ALIGNED,
    KernelCall,
    Processor,
    aligned,
    block_sums,
    scratch_bytes,
)
from dld_tui.core.document.types.value_types import PLACEHOLDERS, ValueType
from dld_tui.core.report.groups import ELEMENT_BITS
from dld_tui.core.tables.table import BYTES, Column, Table
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.cost.nodes import ModelCosts
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.types import JSON

_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"})
"""Their outputs are their first input, in another shape."""
IN_PLACE: Mapping[tuple[str, str], int] = {
    **{("", name): 0 for name in (
        "Cast", "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Relu",
        "ScatterElements", "Selu", "Shrink", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh",
        "ThresholdedRelu", "Trilu",
    )},
    ("com.microsoft", "FusedConv"): 3,
    ("com.microsoft.nchwc", "Conv"): 3,
}  # fmt: skip
"""The input that kernels of the CPU may write into, by operator; the tests ask ONNX Runtime."""


_PACKING = frozenset({
    ("", "MatMul"), ("", "Gemm"), ("com.microsoft", "FusedMatMul"), ("com.microsoft", "FusedGemm"),
})  # fmt: skip
"""Operators of ONNX Runtime that pack their second input, a matrix of constants."""
_WORTH_SAVING = 0.02
"""The share of the peak from which a setting that lowers it is shown."""
_STRING_BYTES = 32
"""Of ``std::string``; characters beyond the first 15 are elsewhere."""
_STATE_TURNS = 2
"""Buffers beside the output that a Scan gives each state in turns, as far as it has trips."""
_LOOP_SCALARS = 2 * ALIGNED
"""A Loop holds the number of its trip and its condition."""


@dataclass(frozen=True)
class Alive:
    """A tensor that is in memory at the peak."""

    name: str
    """Untrusted text, as the nodes."""
    bytes: int
    producer: str
    last_consumer: str
    """Empty for an output of the model, and for what nobody reads: both stay to the end."""
    kept_for: str = ""
    """The tensor that gets its memory later, where nobody reads it any more. Untrusted text."""
    is_output: bool = False


@dataclass(frozen=True)
class Step:
    """The memory while a node runs."""

    node: str
    """Its reference: untrusted text."""
    bytes: int
    """Of activations."""


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
    steps: tuple[Step, ...]
    unknown: tuple[str, ...] = ()
    """Nodes of which an output has no known size: it counts as nothing, a dimension as 1."""
    graph: str = ""
    """Whose graph it is; empty for that of the file."""
    shapes: tuple[str, ...] = ()
    """Of the inputs, as ``x:1x3x224x224``, where they were chosen. Untrusted text."""
    scratch: int | None = None
    """Bytes by which the scratch memory of a kernel raises the peak, which may be at another node
    then. None where it was not planned."""
    scratch_at: str = ""
    """The node that runs at the peak with scratch memory: untrusted text."""
    scratch_unknown: tuple[str, ...] = ()
    """Nodes whose scratch memory is not known, and counts as nothing. Untrusted text."""
    threads: int = 0
    """That an operator may use, on which scratch memory depends."""
    without_reuse: int | None = None
    """Bytes of activations with scratch memory if the session has ``enable_mem_reuse`` off. Free
    buffers then are given back, and are not kept for later values. None where it was not planned.
    """

    @property
    def total(self) -> int:
        """Weights and the peak of the activations, with scratch memory where it was planned."""
        return self.weights + self.peak + (self.scratch or 0)

    @property
    def saved_without_reuse(self) -> int:
        """Bytes that the peak falls by without reuse of buffers; 0 where it does not."""
        if self.without_reuse is None:
            return 0
        return max(self.peak + (self.scratch or 0) - self.without_reuse, 0)


Kinds: TypeAlias = "Callable[[Scope, str], ValueType | None]"


@dataclass(eq=False)
class _Buffer:
    """Memory of a value, and of others that are views of it or come after it."""

    bytes: int
    begins: int
    ends: int
    """The last step of a node that reads one of its values."""
    kind: tuple[int, tuple[int | str, ...]] | None
    """Bits of an element and the shape, as far as they are known when buffers are planned."""
    uses: int = 0
    """How often its values are still to be named; 0 for a buffer that others may take."""
    values: list[tuple[int, str, str]] = field(default_factory=list)
    """Step, name and node of each value."""
    readers: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Step and node of the last one that reads a value."""

    def alive(self, step: int, outputs: Collection[str]) -> Alive:
        """Return what it holds while the node of a step runs."""
        written = [value for value in self.values if value[0] <= step]
        read = [
            value for value in written
            if value[1] in outputs or self.readers.get(value[1], (step, ""))[0] >= step
        ]  # fmt: skip
        _, name, producer = (read or written)[-1]
        later = (
            "" if read else next((later_name for at, later_name, _ in self.values if at > step), "")
        )
        last = "" if name in outputs else self.readers.get(name, (0, ""))[1]
        return Alive(name, self.bytes, producer, last, later, name in outputs)


@dataclass
class _Graph:
    """One scope."""

    scope: Scope
    size: Callable[[Scope, str], int | None]
    kind: Kinds
    in_order: Callable[[Scope], bool] | None
    """Tells whether the nodes of a graph that ONNX Runtime saved are in the order in which it runs
    them. None for a graph that it has not optimised."""
    bodies: Callable[[Node], Sequence[Scope]]
    """Returns the graphs inside a node that may run."""
    scratch: Callable[[Node], int]
    """Returns the bytes that the kernel of a node asks for while it runs."""
    trips: Callable[[Node], int | None]
    """Returns how often the body of a Loop runs at most; None where that is not known."""
    reuses: bool = True
    """Whether outputs take the buffers of values that nobody reads any more."""
    highest: tuple[int, str] = (0, "")
    """The peak with scratch memory, and its node."""
    unknown: list[str] = field(default_factory=list)
    folded: int = 0
    steps: list[Step] = field(default_factory=list)

    def run(self) -> tuple[int, str, list[_Buffer], int]:
        """Return the peak, the node, what is alive then, and what a body needs beside."""
        constants = self._constants()
        nodes = [node for node in self.scope.nodes if node not in constants]
        in_order = self.in_order is not None and self.in_order(self.scope)
        order = nodes if in_order else execution_order(nodes)
        buffers = self._plan(order)
        ending: dict[int, list[_Buffer]] = {}
        starting: dict[int, list[_Buffer]] = {}
        for buffer in buffers:
            starting.setdefault(buffer.begins, []).append(buffer)
            ending.setdefault(buffer.ends, []).append(buffer)
        alive: dict[int, _Buffer] = {}
        now = most = 0
        best: tuple[int, str, list[_Buffer], int] = (0, "", [], 0)
        for at, node in enumerate(order):
            inside = after = 0
            scratch = self.scratch(node)
            if node.children:
                new = {buffer.values[0][1] for buffer in starting.get(at, ())}
                inside, after, scratch = self._inside(node, new)
            # A Loop makes its outputs when its trips are over, and asks for no more then.
            height, held = now + inside, [*alive.values()]
            raised = height + scratch
            for buffer in starting.get(at, ()):
                alive[id(buffer)] = buffer
                now += buffer.bytes
            if node.op_type != "Loop" or now + after >= height:
                inside = after if node.op_type == "Loop" else inside
                height, held = now + inside, [*alive.values()]
            if node.op_type != "Loop":
                raised = height + scratch
            self.steps.append(Step(node.ref, height))
            highest = max(height, raised), node.ref
            self.highest = max(self.highest, highest, key=itemgetter(0))
            if height > most:
                most = height
                best = most, node.ref, held, inside
            for buffer in ending.get(at, ()):
                if alive.pop(id(buffer), None) is not None:
                    now -= buffer.bytes
        return best

    def _plan(self, order: Sequence[Node]) -> list[_Buffer]:
        """Give each value a buffer, as ``PlannerImpl::ComputeSingleStreamReusePlan`` does it."""
        uses = Counter(name for node in order for name in _named(node))
        uses.update(self.scope.outputs)
        outputs = {*self.scope.outputs}
        of: dict[str, _Buffer] = {}
        buffers: list[_Buffer] = []
        free: deque[_Buffer] = deque()
        for at, node in enumerate(order):
            taken = [*used_values(node)]
            for name in filter(None, node.outputs):
                buffer = None
                if name not in outputs:
                    buffer = self._shared(node, name, of, free if uses[name] > 1 else deque())
                if buffer is None:
                    if name not in outputs and node.inputs and _is_view(node):
                        continue  # of what is not ours: an input, or a weight
                    size = self.size(self.scope, name)
                    if size is None:
                        self.unknown.append(node.ref)
                        continue
                    kind = self._planned(name)
                    # What nobody reads is given back after the run only.
                    buffer = _Buffer(aligned(size), at, len(order), kind)
                    buffers.append(buffer)
                buffer.uses += uses[name]
                buffer.values.append((at, name, node.ref))
                of[name] = buffer
            for name in taken:
                if name in of:
                    of[name].ends = at
                    of[name].readers[name] = at, node.ref
            for name in _named(node):
                if name in of:
                    of[name].uses -= 1
                    if not of[name].uses:
                        free.appendleft(of[name])
        for name in self.scope.outputs:
            if name in of:
                of[name].ends = len(order)
        return buffers

    def _shared(
        self, node: Node, name: str, of: Mapping[str, _Buffer], free: deque[_Buffer]
    ) -> _Buffer | None:
        """Return the buffer of others that an output gets; None where it gets one of its own.

        Args:
            node: Makes the output.
            name: Of the output.
            of: The buffers of the values before it.
            free: Buffers that it may take: none for an output that nobody reads, which is computed
                in place at most.
        """
        ins = node.inputs
        if ins and _is_view(node):
            return of.get(ins[0])
        kind = self._planned(name)
        if kind is None:
            return None
        over = IN_PLACE.get((node.domain, node.op_type))
        if over is not None and over < len(ins):
            buffer = of.get(ins[over])
            if buffer is not None and buffer.uses == 1 and self._planned(ins[over]) == kind:
                return buffer
        if kind[1] and self.reuses:
            for buffer in free:
                if buffer.kind == kind:
                    free.remove(buffer)
                    return buffer
        return None

    def _planned(self, name: str) -> tuple[int, tuple[int | str, ...]] | None:
        """Return the bits of an element and the shape; None where they are not known."""
        kind = self.kind(self.scope, name)
        bits = ELEMENT_BITS.get(kind.dtype or "") if kind is not None else None
        if kind is None or bits is None or kind.dims is None or kind.container:
            return None
        dims = [dim for dim in kind.dims if dim is not None and dim not in PLACEHOLDERS]
        return (bits, tuple(dims)) if len(dims) == len(kind.dims) else None

    def _constants(self) -> set[Node]:
        """Return the nodes that are computed before a run; what they make counts as weights."""
        if (
            self.in_order is not None
        ):  # ONNX Runtime has done it: what is left is computed in each run
            return set()
        known: set[str] = {tensor.name for tensor in self.scope.initializers}
        nodes = set()
        for node in execution_order(self.scope.nodes):
            if node.children or node.op_type.startswith("Random"):
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

    def _inside(self, node: Node, new: Collection[str]) -> tuple[int, int, int]:
        """Return what the bodies of a node need while they run, of several the largest.

        And beside the outputs of a Loop when its last trip is over, and by how much scratch memory
        in the bodies raises what they need.

        Args:
            node: Has subgraphs.
            new: Its outputs that get a buffer of their own.
        """
        peaks, highest = [0], 0
        # Outputs of an If whose sizes depend on its inputs come only when the branch makes them.
        # An output of the branch around it may have a buffer already: its size is 0 here.
        late = {
            name for name in new
            if node.op_type == "If" and not self._is_fixed(name) and self.size(self.scope, name)
        }  # fmt: skip
        for body in self.bodies(node):
            # Of an If a branch makes the outputs, and of a Scan each trip its part of them.
            pairs = zip(node.outputs, body.outputs, strict=False)
            theirs = {*(body.outputs if node.op_type != "Loop" else _passed_on(body))}
            theirs -= {inner for outer, inner in pairs if outer in late}

            def size(
                scope: Scope, name: str, body: Scope = body, theirs: set[str] = theirs
            ) -> int | None:
                return 0 if scope is body and name in theirs else self.size(scope, name)

            inner = _Graph(
                body,
                size,
                self.kind,
                self.in_order,
                self.bodies,
                self.scratch,
                self.trips,
                self.reuses,
            )
            peaks.append(inner.run()[0])
            highest = max(highest, inner.highest[0])
            self.folded += inner.folded
            self.unknown += inner.unknown
        most = max(peaks)
        raised = max(highest - most, 0)
        if node.op_type == "Scan":
            return most + self._scanning(node), 0, raised
        if node.op_type != "Loop":
            return max(most - sum(self._room(self.scope, name) for name in late), 0), 0, raised
        (body,) = node.subgraphs()
        count, passed_on = len(body.inputs) - 2, _passed_on(body)
        carried = sum(
            self._room(body, name) for name in body.outputs[1 : count + 1] if name not in passed_on
        )
        listed = before = 0
        for whole, part in zip(node.outputs[count:], body.outputs[count + 1 :], strict=False):
            part_bytes = self.size(body, part) or 0
            if whole and part_bytes:
                trips = (self.size(self.scope, whole) or 0) // part_bytes
                kept = trips, trips - 1
                if part in passed_on:  # the list keeps a state of each trip, unless these share one
                    states = dict(zip(body.inputs[2:], body.outputs[1:], strict=False))
                    state = states.get(passed_on[part])
                    kept = (0, 0) if state is None or state in passed_on else (trips - 2, trips - 2)
                listed += max(kept[0], 0) * aligned(part_bytes)
                before += max(kept[1], 0) * aligned(part_bytes)
        trips_of_loop = self.trips(node)
        runs = 2 if trips_of_loop is None else min(trips_of_loop, 2)
        if not runs:  # what is carried is copied to the outputs
            return 0, _LOOP_SCALARS, 0
        # What the trip before handed on is there until the next one is over.
        inside = most + (runs - 1) * carried + before
        return inside + _LOOP_SCALARS, runs * carried + listed + _LOOP_SCALARS, raised

    def _scanning(self, node: Node) -> int:
        """Return what a Scan holds beside its outputs: states in turns, and what it transposes."""
        (body,) = node.subgraphs()
        count = node.attribute("num_scan_inputs")
        lists = len(body.inputs) if count is None else int(count.value)
        states = len(body.inputs) - lists
        trips = self.trips(node)
        turns = _STATE_TURNS if trips is None else min(max(trips - 1, 0), _STATE_TURNS)
        room = turns * sum(self._room(body, name) for name in body.outputs[:states])
        sides = (
            ("scan_input_axes", node.inputs[states:]), ("scan_output_axes", node.outputs[states:]),
        )  # fmt: skip
        for attribute, names in sides:
            axes = node.attribute(attribute)
            for axis, name in zip(() if axes is None else axes.value, names, strict=False):
                room += self._room(self.scope, name) if axis else 0
        return room

    def _is_fixed(self, name: str) -> bool:
        """Return whether the shape of a value is known when buffers are planned, in numbers."""
        planned = self._planned(name)
        return planned is not None and all(isinstance(size, int) for size in planned[1])

    def _room(self, scope: Scope, name: str) -> int:
        return aligned(self.size(scope, name) or 0)


def _passed_on(body: Scope) -> dict[str, str]:
    """Return the outputs of a Loop's body that are no copies, and the values from outside there."""
    made = {name for node in body.nodes for name in node.outputs}
    kept = made | {tensor.name for tensor in body.initializers} | {*body.inputs[:1]}
    return {
        node.outputs[0]: node.inputs[0]
        for node in body.nodes
        if node.op_type == "Identity" and node.outputs[0] in body.outputs
        and node.inputs[0] not in kept
    }  # fmt: skip


def _is_view(node: Node) -> bool:
    return not node.domain and node.op_type in _VIEWS


def _named(node: Node) -> Iterable[str]:
    """Return the values that a node reads and makes, each as often as it names them."""
    yield from used_values(node)
    yield from filter(None, node.outputs)


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
    costs: ModelCosts,
    *,
    outputs: bool = True,
    in_order: Callable[[Scope], bool] | None = None,
    kinds: Kinds | None = None,
    processor: Processor | None = None,
    reuses: bool = True,
) -> MemoryPlan:
    """Return what a run of a model needs.

    Args:
        costs: Of the model, with the sizes of its dimensions.
        outputs: Whether the outputs of the model count as activations.
        in_order: For a graph that ONNX Runtime saved: tells whether the nodes of a scope are in
            the order in which they run.
        kinds: The types that are known when buffers are planned: before there are inputs.
            By default those of the model.
        processor: What runs the kernels of ONNX Runtime's CPU provider. Without it, their
            scratch memory is not planned.
        reuses: Outputs take the buffers of values that nobody reads any more, unless
            ``enable_mem_reuse`` of the session is off.
    """
    main = costs.document.main
    given_back = set() if outputs else {*main.outputs}

    open_sizes: dict[str, None] = {}

    def bytes_of(scope: Scope, name: str) -> int | None:
        size = costs.bytes_of(scope, name)
        producer = scope.producer(name)
        if size is None and producer is not None and producer.op_type == "SequenceConstruct":
            copies = [bytes_of(scope, source) for source in producer.inputs]
            return None if None in copies else sum(aligned(copy) for copy in copies if copy)
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

    kind = kinds or (lambda scope, name: scope.value_type(name))
    no_scratch: dict[str, None] = {}

    def asked(node: Node) -> int:
        if processor is None:
            return 0
        types = (node.scope.value_type(name) if name else None for name in node.inputs)
        dtypes = [(known.dtype or "") if known is not None else "" for known in types]
        kernel = KernelCall(costs.call(node), dtypes, node.outputs, processor)
        bytes_asked = scratch_bytes(kernel)
        if bytes_asked is None:
            no_scratch[node.ref] = None
        return bytes_asked or 0

    graph = _Graph(main, size, kind, in_order, costs.bodies, asked, costs.trips, reuses)
    peak, at, held, inside = graph.run()
    step = next((n for n, each_step in enumerate(graph.steps) if each_step.node == at), 0)
    stored = sum(
        size(scope, tensor.name) or 0
        for scope in costs.document.scopes()
        if not scope.is_function
        for tensor in scope.initializers
    )
    if processor is not None:
        stored += sum(
            _packed_beside(costs, scope)
            for scope in costs.document.scopes()
            if not scope.is_function
        )
    given = sum(size(main, name) or 0 for name in main.inputs)
    alive = [buffer.alive(step, main.outputs) for buffer in held]
    alive.sort(key=lambda value: -value.bytes)
    return MemoryPlan(
        stored + graph.folded, given, peak, at, tuple(alive), inside, tuple(graph.steps),
        tuple({**dict.fromkeys(graph.unknown), **open_sizes}),
        scratch=None if processor is None else graph.highest[0] - peak,
        scratch_at=graph.highest[1] if processor is not None else "",
        scratch_unknown=tuple(no_scratch),
        threads=0 if processor is None else processor.threads,
    )  # fmt: skip


def _packed_beside(costs: ModelCosts, scope: Scope) -> int:
    """Return the bytes of weights that kernels pack, and others read as they are in the file.

    A packed matrix takes the place of the initializer if nobody else needs that. Packed blocks of
    MatMulNBits have scales and sums with them, and the scales are there as well.
    """
    total = 0
    for tensor in scope.initializers:
        if len(tensor.shape) != 2 or tensor.dtype != "float32" or tensor.name in scope.inputs:
            continue
        uses = scope.users(tensor.name)
        packed = [
            use for use in uses
            if use.index == 1 and (use.node.domain, use.node.op_type) in _PACKING
        ]  # fmt: skip
        if packed and (len(packed) < len(uses) or tensor.name in scope.outputs):
            total += tensor.nbytes or 0
    return total + sum(
        block_sums(costs.call(node)) for node in scope.nodes if node.op_type == "MatMulNBits"
    )


def _last_consumer(alive: Alive) -> str:
    last = alive.last_consumer or ("an output" if alive.is_output else "nobody, kept to the end")
    return f"{last}, kept for {alive.kept_for}" if alive.kept_for else last


COLUMNS: tuple[Column[Alive], ...] = (
    Column("tensor", "tensor", lambda alive: alive.name, least=20, keep="end"),
    Column("bytes", "size", lambda alive: alive.bytes, BYTES, 10),
    Column("producer", "made by", lambda alive: alive.producer, least=16, keep="end"),
    Column(
        "last_consumer", "last read by", _last_consumer, least=16, keep="end",
        help="No node reads it any more; its memory is reserved for that tensor.",
    ),
)  # fmt: skip


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
    left_out = "scratch memory and " if plan.scratch is None else ""
    shapes = [f"{shape}scalar" if shape.endswith(":") else shape for shape in plan.shapes]
    lines += [f"{'shapes':<13}{visible(', '.join(shapes))}"] if shapes else []
    lines += [
        f"{'weights':<13}{fmt.size(plan.weights)}",
        f"{'activations':<13}{least}{fmt.size(plan.peak)}{when}",
        *_scratch_lines(plan),
        f"{'total':<13}{least}{fmt.size(plan.total)}, without {left_out}unused allocator memory",
        f"{'inputs':<13}{fmt.size(plan.inputs)}, allocated by the caller",
    ]
    if plan.inside:
        lines.append(f"{'subgraphs':<13}{fmt.size(plan.inside)} of the peak, in that node")
    if plan.alive and plan.peak:
        first = plan.alive[0]
        share = 100 * first.bytes / plan.peak
        lines.append(f"{'largest':<13}{visible(first.name)}, {share:.0f} % of the peak")
        below = max((step.bytes for step in plan.steps if step.bytes < plan.peak), default=0)
        highest = sum(step.bytes == plan.peak for step in plan.steps)
        if below:
            several = f"; {highest:,} nodes reach the peak" if highest > 1 else ""
            lines.append(f"{'next':<13}{fmt.size(below)} at the next-highest node{several}")
    if plan.saved_without_reuse > _WORTH_SAVING * plan.peak:
        saved = f"saves {fmt.size(plan.saved_without_reuse)}: no buffer is kept for later tensors"
        lines.append(f"{'lower':<13}enable_mem_reuse = False {saved}")
    if plan.unknown:
        text = f"{fmt.plural(len(plan.unknown), 'node')} with outputs of unknown size"
        lines.append(f"{'unknown':<13}{text}")
    return lines


def _scratch_lines(plan: MemoryPlan) -> list[str]:
    """Return what kernels ask for while they run, in a line; none where it was not planned."""
    if plan.scratch is None:
        return []
    least = "at least " if plan.scratch_unknown else ""
    where = f", while {visible(plan.scratch_at)} runs" if plan.scratch else ""
    text = f"{least}{fmt.size(plan.scratch)} in kernels{where}"
    text += f" ({fmt.plural(plan.threads, 'thread')})"
    if plan.scratch_unknown:
        text += f"; unknown for {fmt.plural(len(plan.scratch_unknown), 'node')}"
    return [f"{'scratch':<13}{text}"]


def plan_json(plan: MemoryPlan) -> dict[str, JSON]:
    """Return it as JSON data."""
    alive: list[JSON] = [
        {"tensor": a.name, "bytes": a.bytes, "producer": a.producer,
         "last_consumer": a.last_consumer or None, "kept_for": a.kept_for or None}
        for a in plan.alive
    ]  # fmt: skip
    steps: list[JSON] = [{"node": step.node, "bytes": step.bytes} for step in plan.steps]
    return {
        "weights": plan.weights, "inputs": plan.inputs, "peak": plan.peak, "at": plan.at,
        "inside": plan.inside, "alive": alive, "steps": steps, "unknown": [*plan.unknown],
        "graph": plan.graph or None, "shapes": [*plan.shapes],
        "scratch": plan.scratch, "scratch_at": plan.scratch_at or None,
        "scratch_unknown": [*plan.scratch_unknown], "threads": plan.threads or None,
        "without_reuse": plan.without_reuse,
    }  # fmt: skip
