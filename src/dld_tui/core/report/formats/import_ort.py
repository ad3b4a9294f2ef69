"""An ONNX Runtime profile as a report, with its kernels matched to the nodes of the ONNX file.

:func:`add_ort_profile` adds the layers and passes of a profile to a report that an activity writes;
:func:`report_from_ort_profile` opens any profile as a report.

Optimizers keep the names of tensors when they replace nodes: a fused kernel's outputs are the
outputs of the last nodes that it replaces, its inputs those of the first. So it stands for the
nodes between: backwards from its outputs to tensors that other kernels produce.

There are two sources: the tensors of the optimized model, if it was saved (confidence ``tensor``),
and the kernels' names (``name`` if a node has exactly this name and operator, ``rule`` if a
naming rule of the optimizer leads to it). Other kernels have ``none``; nothing is guessed.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.model.operators.categories import REARRANGING
from dld_tui.core.notes import NoteKind
from dld_tui.core.report.formats.ort_profile import (
    Clue,
    Kernel,
    KernelEvent,
    OrtProfile,
    ProfilePass,
    blocked_tensors,
    clues,
    is_blocked,
    split_inlined_branch,
    split_inlined_function,
    without_cast,
)
from dld_tui.core.report.formats.trace_events import depths
from dld_tui.core.report.groups import launches
from dld_tui.core.report.records import (
    NOTHING_KNOWN,
    Confidence,
    Layer,
    NodeLink,
    PassState,
    SharedBy,
)
from dld_tui.core.report.report import Report, temporary_report
from dld_tui.core.report.roofline import kernel_cost, node_kind, with_roof
from dld_tui.core.report.sharing import cost_shares
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope


_MOST_CANDIDATES = 4


class NodeFinder:
    """Indexes the nodes of all scopes of a document once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._by_name: dict[str, list[Node]] = {}
        self._by_output: dict[str, list[Node]] = {}
        self.functions: dict[tuple[str, str], Scope] = {}
        """Local functions by (domain, name)."""
        for function in document.functions:
            domain, _, name = function.step.removeprefix("function ").partition(":")
            self.functions.setdefault((domain, name), function)
        for scope in document.scopes():
            for node in scope.nodes:
                self._by_name.setdefault(node.name, []).append(node)
                for output in node.outputs:
                    if output:
                        self._by_output.setdefault(output, []).append(node)
        self._numbered = [node for node in document.main.nodes if node.op_type != "Constant"]
        self._paths: dict[Scope, tuple[str, ...]] = {}

    def named(self, name: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes of this name in all scopes, or in a scope and those below it."""
        return self._inside(self._by_name.get(name, []), within) if name else []

    def producers(self, tensor: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes of all scopes that make a tensor of this name."""
        return self._inside(self._by_output.get(tensor, []), within)

    def function_of(self, node: Node) -> Scope | None:
        """Return the body of the local function that a node calls, or None."""
        return self.functions.get((node.domain, node.op_type))

    def find(self, clue: Clue, op_type: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes that match a clue, those of the same operator if any.

        Empty if there are too many to be useful.
        """
        if clue.kind == "index":
            nodes = self._at_index(int(clue.text), op_type) if within is None else []
        elif clue.kind == "tensor":
            nodes = self.producers(clue.text, within)
        else:
            nodes = self.named(clue.text, within)
        same = [node for node in nodes if node.op_type == op_type]
        chosen = same or nodes
        return chosen if len(chosen) <= _MOST_CANDIDATES else []

    def branch(self, name: str) -> tuple[Scope | None, str]:
        """Take the inlined branches off the front of a name.

        Returns:
            The innermost branch that is found, None for the main graph, and the rest of the name.
        """
        scope: Scope | None = None
        while (parts := split_inlined_branch(name)) is not None:
            owner, attribute, rest = parts
            owners = self.named(owner, scope)
            if not owners:
                index = owner.rpartition("_")[2]
                owners = self._at_index(int(index), "If") if index.isdecimal() else []
            branches = [s for node in owners for s in node.children.get(attribute, ())]
            if len(branches) != 1:
                break
            scope, name = branches[0], rest
        return scope, name

    def path_of(self, scope: Scope) -> tuple[str, ...]:
        """Return `Scope.path`, which is costly for deep scopes, from memory."""
        if scope not in self._paths:
            self._paths[scope] = scope.path
        return self._paths[scope]

    def _at_index(self, index: int, op_type: str) -> list[Node]:
        if index >= len(self._numbered):
            return []
        node = self._numbered[index]
        return [node] if node.op_type == op_type and not node.name else []

    def _inside(self, nodes: list[Node], within: Scope | None) -> list[Node]:
        if within is None:
            return nodes
        return [node for node in nodes if within in outwards(node.scope)]


def outwards(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those around it."""
    current: Scope | None = scope
    while current is not None:
        yield current
        current = current.parent


Place: TypeAlias = "tuple[Scope, str]"
"""A tensor of the original document: the scope whose node makes it, and its name."""

_LAYOUT_OPERATORS = frozenset({"ReorderInput", "ReorderOutput", "MemcpyToHost", "MemcpyFromHost"})
_FOR_CONSUMER = frozenset({"ReorderInput", "MemcpyFromHost"})
_SHAPE_OPERATORS = REARRANGING | {"Cast"}
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
        """Return the original nodes that an optimized one stands for, in graph order.

        Empty if neither its outputs nor its weights are in the original graph.
        """
        if self.moves_data(node):
            return []
        nodes: dict[Node, None] = {}
        places = self._output_places(node)
        for place in places:
            self._walk(node, place, nodes)
        if not places:
            return self._readers_of_weights(node)
        return list(reversed(nodes)) if len(nodes) <= _MOST_NODES else []

    def _readers_of_weights(self, node: Node) -> list[Node]:
        """Return the original nodes that are the only readers of an optimized node's weights.

        A MatMul and its Add become a Gemm between two Reshapes: all tensors around it are new.
        """
        scope = self._scopes.get(node.scope.path)
        if scope is None:
            return []
        weights = [name for name in node.inputs if name and scope.initializer(name) is not None]
        readers = (scope.consumers(name) for name in weights)
        return list(dict.fromkeys(reader[0] for reader in readers if len(reader) == 1))

    def moves_data(self, node: Node) -> bool:
        """Return True for a node that only changes layout, type or device of a tensor."""
        places = self._output_places(node)
        if not places:
            return node.op_type in _LAYOUT_OPERATORS or node.op_type in _SHAPE_OPERATORS
        sources = {self._place(node.scope, name) for name in node.inputs if name}
        return all(place in sources for place in places)

    def nodes_served(self, node: Node) -> list[Node]:
        """Return the original nodes that a data-moving node serves.

        These need the other layout: the producer of its input if it leaves a layout, else the
        consumers of its output, through other such nodes.
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
        places = (self._place(node.scope, name) for name in node.outputs if name)
        return [place for place in places if place is not None]

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
            candidates = [m for s in around for m in makers if m.scope is s]
            makers = candidates[:1]
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

    def _walk(self, kernel: Node, start: Place, members: dict[Node, None]) -> None:
        stack = [start]
        while stack and len(members) <= _MOST_NODES:
            node = self._producer(stack.pop())
            if node is None or node in members:
                continue
            members[node] = None
            stack.extend(self._open_inputs(kernel, node))

    def _open_inputs(self, kernel: Node, node: Node) -> Iterable[Place]:
        """Yield inputs of a node that no other kernel produces and that are not constant."""
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
    """Return the outputs of a kernel in blocked layout, which is named after its first output.

    A sum and an activation that were fused into it later are in its inputs and attributes.
    """
    scope, name = place
    wanted: list[frozenset[str]] = []
    if len(kernel.inputs) > 3 and kernel.inputs[3]:
        wanted.append(frozenset({"Add", "Sum"}))
    activation = kernel.attribute("activation")
    producer = scope.producer(name)
    if activation is not None and isinstance(activation.value, bytes):
        operator = activation.value.decode("utf-8", "replace")
        if producer is None or producer.op_type != operator:
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
    nodes: set[Node] = set()
    for scope in finder.document.scopes():
        for node in scope.nodes:
            if node.op_type == "Constant":
                nodes.add(node)
            elif node.inputs and not node.children and finder.function_of(node) is None:
                definitions = (scope.resolve(name) for name in node.inputs if name)
                if all(
                    d is not None and (d.kind == "initializer" or d.node in nodes)
                    for d in definitions
                ):
                    nodes.add(node)
    return nodes


_ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "Elu", "Selu", "Softplus"}
)
_SUMS = frozenset({"Add", "Sum"})
_LONGEST_CHAIN = 8


class Attribution:
    """The nodes of one document, ready to be found."""

    def __init__(self, document: Document, optimised: Document | None = None) -> None:
        """Index a document.

        document: The user's model.
            document: The model as the user knows it.
            optimised: The backend's optimized model, if it was saved.
        """
        self._finder = NodeFinder(document)
        self._tracer: FusionTracer | None = None
        self._optimised: NodeFinder | None = None
        self._aligned: dict[Kernel, Node] = {}
        self._are_fused = True
        self.shared_by: SharedBy | None = None
        """How the time of the last kernel was shared; None when it had one node or none."""
        if optimised is not None:
            self._optimised = NodeFinder(optimised)
            self._tracer = FusionTracer(self._finder, optimised)

    def align(self, kernels: Sequence[Kernel]) -> bool:
        """Match the top-level kernels of a whole pass to the optimised main graph by their order.

        That also identifies kernels whose nodes have no name. Returns False, and changes nothing,
        when the orders differ.
        """
        if self._optimised is None:
            return False
        nodes = self._optimised.document.main.nodes
        same = len(nodes) == len(kernels) and all(
            node.op_type == kernel.op_type and node.name in ("", kernel.name)
            for node, kernel in zip(nodes, kernels, strict=True)
        )
        if same:
            self._aligned = dict(zip(kernels, nodes, strict=True))
        return same

    def links(
        self, kernel: Kernel, around: NodeLink | None = None
    ) -> tuple[tuple[NodeLink, ...], Confidence]:
        """Return the nodes that a kernel stands for, with shares of its time, and the confidence.

        :attr:`shared_by` is the rule of the shares. The first node characterises the kernel best:
        it has the kernel's name or operator.

        Args:
            kernel: The kernel.
            around: The node of the main graph that it ran inside; None if that is not known.
        """
        self._are_fused = True
        self.shared_by = None
        nodes, confidence = self._by_tensors(kernel)
        if not nodes:
            nodes, confidence = self._by_name(kernel)
            nodes = self._inside(nodes, around)
        if not nodes:
            return (), "none"
        ordered = sorted(
            nodes, key=lambda n: (n.name != kernel.name or not n.name, n.op_type != kernel.op_type)
        )
        shares = [1 / len(ordered)] * len(ordered)
        if len(ordered) > 1:
            self.shared_by = "equal"
            if self._are_fused:
                operators = [(node, node.op_type) for node in ordered]
                shares, self.shared_by = cost_shares(operators, _elements(kernel))
        links = zip(ordered, shares, strict=True)
        return tuple(self._link(node, confidence, share) for node, share in links), confidence

    def _inside(self, nodes: list[Node], around: NodeLink | None) -> list[Node]:
        """Return which of several nodes are in a subgraph of a node; all if none is."""
        if around is None:
            return nodes
        paths = [(node, self._finder.path_of(node.scope)) for node in nodes]
        inside = [n for n, path in paths if path and path[0].rpartition(":")[0] == around.node]
        return inside or nodes

    def subject(self, kernel: Kernel, links: Sequence[NodeLink]) -> Node | None:
        """Return the node whose attributes a kernel has: the optimised one, else its own."""
        node = self._optimised_node(kernel)
        if node is None and links and links[0].op_type == kernel.op_type:
            nodes = self._finder.named(links[0].name)
            node = nodes[0] if len(nodes) == 1 else None
        return node

    def _by_tensors(self, kernel: Kernel) -> tuple[list[Node], Confidence]:
        node = self._optimised_node(kernel)
        if node is None or self._tracer is None:
            return [], "none"
        if self._tracer.moves_data(node):
            self._are_fused = False  # it works for them, and computes none
            return self._tracer.nodes_served(node), "rule"
        return self._tracer.nodes_of(node), "tensor"

    def _optimised_node(self, kernel: Kernel) -> Node | None:
        if kernel in self._aligned or self._optimised is None:
            return self._aligned.get(kernel)
        named = self._optimised.named(kernel.name)
        nodes = [node for node in named if node.op_type == kernel.op_type]
        return nodes[0] if len(nodes) == 1 else None

    def _by_name(self, kernel: Kernel) -> tuple[list[Node], Confidence]:
        within, name = self._finder.branch(kernel.name)
        for clue in clues(name, kernel.op_type):
            nodes = self._finder.find(clue, kernel.op_type, within)
            if not nodes:
                continue
            if len(nodes) > 1:
                self._are_fused = False  # it is one of them
                return nodes, "rule"
            if nodes[0].op_type == kernel.op_type and clue.exact:
                return nodes, "name"
            return self._with_fused(nodes[0], kernel, clue), "rule"
        return [], "none"

    def _with_fused(self, node: Node, kernel: Kernel, clue: Clue) -> list[Node]:
        if clue.kind == "tensor" and node.op_type != kernel.op_type:
            return _back_to(node, kernel.op_type)
        if kernel.op_type == f"Fused{node.op_type}":
            return _with_activation(node, adds=len(kernel.input_dims) > 3)
        return [node]

    def _link(self, node: Node, confidence: Confidence, share: float) -> NodeLink:
        path = self._finder.path_of(node.scope)
        return NodeLink(path, node.ref, node.name, node.op_type, confidence, share)


def _elements(kernel: Kernel) -> int | None:
    """Return how many elements a kernel made when it ran."""
    dims = kernel.output_dims[0] if kernel.output_dims else None
    numbers = [dim for dim in dims or () if isinstance(dim, int) and dim >= 0]
    return None if dims is None or len(numbers) < len(dims) else math.prod(numbers)


def _back_to(node: Node, op_type: str) -> list[Node]:
    """Return the chain of nodes from one of `op_type` to `node`, else only `node`."""
    chain = [node]
    for _ in range(_LONGEST_CHAIN):
        before = node.scope.producer(node.inputs[0]) if node.inputs else None
        if before is None or len(node.scope.consumers(node.inputs[0])) != 1:
            break
        chain.append(before)
        if before.op_type == op_type:
            return chain[::-1]
        node = before
    return chain[:1]


def _with_activation(node: Node, *, adds: bool) -> list[Node]:
    """Return a node with the activation that reads its result, and the sum before it if `adds`."""
    chain = [node]
    for wanted in (_SUMS, _ACTIVATIONS) if adds else (_ACTIVATIONS,):
        output = next(iter(chain[-1].outputs), "")
        readers = node.scope.consumers(output)
        if len(readers) != 1 or readers[0].op_type not in wanted:
            break
        chain.append(readers[0])
    return chain


_FILE_NAME = re.compile(r"^(.*?)_?(\d{4}-\d{2}-\d{2})_(\d{2})-(\d{2})-(\d{2})(_\d+)?$")
_HOST_PROVIDERS = frozenset({"CPUExecutionProvider", "unknown"})
_ALIGNMENT_ATTEMPTS = 3


def _owners(events: Sequence[KernelEvent]) -> list[int | None]:
    """Return the kernel that each event lies inside, the outermost one; None for most."""
    spans = [(event.thread, event.start_us, event.duration_us) for event in events]
    owners: list[int | None] = []
    outermost: dict[int, int] = {}
    for event, depth in zip(events, depths(spans), strict=True):
        if depth == 0:
            outermost[event.thread] = event.kernel
        owners.append(outermost[event.thread] if depth else None)
    return owners


PassObserver: TypeAlias = "Callable[[ProfilePass, Mapping[int, int]], None]"


@dataclass(frozen=True)
class ImportSummary:
    """The content of a profile."""

    layers: tuple[Layer, ...]
    passes: int
    """Measured ones: without warm-up and incomplete passes."""
    version: str
    """The ONNX Runtime versions that write such a profile, e.g. ``1.12 to 1.15``."""
    providers: dict[str, int]
    """Kernels by execution provider, the most frequent first."""
    kernels: tuple[Kernel, ...] = ()
    """In order of first execution."""


def add_ort_profile(
    writer: ReportWriter,
    json_path: str | os.PathLike[str],
    document: Document | None,
    optimised_document: Document | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    *,
    warm_up: int = 0,
    start_us: float = 0.0,
    on_pass: PassObserver | None = None,
    peaks: Mapping[str, Peaks] | None = None,
) -> ImportSummary:
    """Add the layers, passes and samples of a profile, and its problems as notes.

    Args:
        writer: An open report; it stays open.
        json_path: The result of ``InferenceSession.end_profiling``.
        document: The model that was run, for the links to its nodes; None to leave them out.
        optimised_document: The model at ``SessionOptions.optimized_model_filepath``. With it, fused
            kernels are matched by their tensors.
        progress: Called with (bytes read, bytes in all).
        cancelled: Asked about once per megabyte.
        warm_up: The number of first passes that statistics leave out.
        start_us: When the profile began, on the report's clock.
        on_pass: Called with every added pass, and the number that the report has for
            each kernel of the profile.
        peaks: Of the devices of the execution providers.

    Raises:
        InputError: The file cannot be read, is empty, or is not such a profile.
        CancelledError: `cancelled` returned True; passes read before are in the report.
        SaveError: The report cannot be written.
    """
    profile = OrtProfile(Path(json_path))
    importer = _Importer(
        writer, profile, document, optimised_document, warm_up, start_us, on_pass, peaks or {}
    )
    return importer.run(progress, cancelled)


def report_from_ort_profile(
    path: Path,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a profile as a report without links to a model; its temporary file goes with it.

    Raises:
        InputError: The file cannot be read, is empty, or is not such a profile.
        CancelledError: `cancelled` returned True.
        SaveError: The folder for temporary files is full.
    """
    name = _FILE_NAME.match(path.stem)

    def fill(writer: ReportWriter) -> None:
        summary = add_ort_profile(writer, path, None, None, progress, cancelled)
        writer.set_property("backend", f"ONNX Runtime {summary.version}".rstrip())
        writer.set_property("execution_provider", ", ".join(summary.providers))
        writer.set_property("created", _created(name))

    network = (name.group(1) if name else "") or path.name
    return temporary_report(path, fill, network=network, backend="ONNX Runtime")


def _created(name: re.Match[str] | None) -> str:
    """Return when a profile was begun, in the local time of the machine that wrote it."""
    return f"{name[2]}T{name[3]}:{name[4]}:{name[5]}" if name else ""


class _Importer:
    def __init__(
        self,
        writer: ReportWriter,
        profile: OrtProfile,
        document: Document | None,
        optimised: Document | None,
        warm_up: int,
        start_us: float,
        on_pass: PassObserver | None,
        peaks: Mapping[str, Peaks],
    ) -> None:
        self._peaks = peaks
        self._writer = writer
        self._start_us = start_us
        self._on_pass = on_pass
        self._profile = profile
        self._attribution = Attribution(document, optimised) if document is not None else None
        self._attempts = _ALIGNMENT_ATTEMPTS if optimised is not None else 0
        self._warm_up = warm_up
        self._layers: dict[int, int] = {}
        self._written: list[Layer] = []
        self._main_links: dict[int, NodeLink] = {}
        """The node of the main graph that a kernel stands for, where it is one."""
        self._measured: list[ProfilePass] = []
        self._threads: set[int] = set()

    def run(
        self, progress: ProgressCallback | None, cancelled: CancelCheck | None
    ) -> ImportSummary:
        for pass_ in self._profile.passes(progress, cancelled):
            self._add(pass_)
        self._drop_short_passes()
        for warning in self._profile.warnings:
            self._writer.note(warning, NoteKind.WARNING)
        providers = self._providers()
        for provider in providers:
            if provider not in _HOST_PROVIDERS and not launches(provider):
                self._writer.note(f"Layers of {provider} are timed on the CPU.")
        self._writer.flush()
        version, kernels = self._profile.version, tuple(self._profile.kernels)
        return ImportSummary(tuple(self._written), len(self._measured), version, providers, kernels)

    def _add(self, profile_pass: ProfilePass) -> None:
        if self._attempts and self._attribution is not None:
            aligned = self._attribution.align(self._top_level(profile_pass))
            self._attempts = 0 if aligned else self._attempts - 1
        rows = []
        events = profile_pass.events
        is_new = any(event.kernel not in self._layers for event in events)
        owners = _owners(events) if is_new else ()
        for at, event in enumerate(events):
            layer = self._layers.get(event.kernel)
            if layer is None:
                kernel = self._profile.kernels[event.kernel]
                self._written.append(self._layer(event.kernel, kernel, owners[at]))
                layer = self._writer.add_layer(self._written[-1])
                self._layers[event.kernel] = layer
            self._threads.add(event.thread)
            times = (event.duration_us, event.self_us, event.thread)
            rows.append((layer, self._start_us + event.start_us, *times))
        state = profile_pass.state
        if state is PassState.MEASURED:
            if profile_pass.index < self._warm_up:
                state = PassState.WARM_UP
            else:
                # Without its events: only its existence matters later.
                self._measured.append(
                    ProfilePass(
                        profile_pass.index,
                        profile_pass.start_us,
                        profile_pass.duration_us,
                        state,
                        (),
                        profile_pass.top_level,
                    )
                )
        self._add_pass(profile_pass, state)
        self._writer.add_samples(profile_pass.index, rows)
        if self._on_pass is not None:
            self._on_pass(profile_pass, self._layers)

    def _add_pass(self, profile_pass: ProfilePass, state: PassState) -> None:
        start_us = self._start_us + profile_pass.start_us
        self._writer.add_pass(profile_pass.index, start_us, profile_pass.duration_us, state)

    def _drop_short_passes(self) -> None:
        """Mark runs that failed: they ran fewer nodes of the main graph."""
        # With several threads, the body of an If may run on another one than the If.
        if not self._measured or len(self._threads) > 1:
            return
        whole = max(pass_.top_level for pass_ in self._measured)
        short = [pass_ for pass_ in self._measured if pass_.top_level < whole]
        for pass_ in short:
            self._add_pass(pass_, PassState.INCOMPLETE)
            self._measured.remove(pass_)
        if short:
            self._writer.note(
                f"passes that ran fewer kernels than the others are left out: {len(short)}",
                NoteKind.WARNING,
            )

    def _top_level(self, profile_pass: ProfilePass) -> list[Kernel]:
        spans = [(event.thread, event.start_us, event.duration_us) for event in profile_pass.events]
        return [
            self._profile.kernels[event.kernel]
            for event, depth in zip(profile_pass.events, depths(spans), strict=True)
            if depth == 0
        ]

    def _layer(self, index: int, kernel: Kernel, owner: int | None) -> Layer:
        around = None if owner is None else self._main_links.get(owner)
        nodes, confidence = (
            self._attribution.links(kernel, around)
            if self._attribution is not None
            else ((), "none")
        )
        if owner is None and len(nodes) == 1 and not nodes[0].scope:
            self._main_links[index] = nodes[0]
        node = shared_by = None
        if self._attribution is not None:
            node = self._attribution.subject(kernel, nodes)
            shared_by = self._attribution.shared_by
        cost = kernel_cost(kernel, node)
        peaks = self._peaks.get(kernel.provider or "")
        if peaks is not None:
            kind = node_kind(kernel.op_type, node)
            cost = with_roof(cost, kernel.input_types, peaks, kind)
        return Layer(
            name=kernel.name,
            type=kernel.op_type,
            provider=kernel.provider,
            precision=kernel.precision,
            input_dims=kernel.input_dims,
            output_dims=kernel.output_dims,
            input_types=kernel.input_types,
            output_types=kernel.output_types,
            nodes=nodes,
            confidence=confidence,
            cost=None if cost == NOTHING_KNOWN else cost,
            node_index=kernel.node_index,
            around="" if around is None else around.node,
            shared_by=shared_by,
        )

    def _providers(self) -> dict[str, int]:
        counts = Counter(kernel.provider or "unknown" for kernel in self._profile.kernels)
        return dict(counts.most_common())
