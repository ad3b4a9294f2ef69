"""Copies of a model in which layers have other precisions: by casts, or for trials by switches.

TensorRT 11 and TensorRT-RTX are strongly typed: they run a layer in the type of its inputs and
know no precision of layers. The original document is never changed; the copy shares its payloads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import infer, working_copy
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError, InputError, UsageError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import (
    FunctionKey,
    called_by,
    enclosing_function,
    function_of,
    key_of,
)
from dld_tui.core.model.document.metadata import PRECISIONS, precision_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.traversal import nodes_called
from dld_tui.core.model.edits.casting import (
    Cast,
    CastPlan,
    FreshNames,
    SwitchedCopy,
    add_switches,
    plan_casts,
    plan_rounding,
    precisions_of,
)
from dld_tui.core.model.tensors.elements import plan_conversion
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import shortened, visible
from dld_tui.core.types import JSON

Spec: TypeAlias = "tuple[str, str]"
"""The name of a node, or a pattern, and a precision."""
_ROUNDS = 100
"""Local functions that call each other, one inside the other."""


@dataclass(frozen=True)
class CastLoss:
    """The effect of a cast on the values of a weight."""

    name: str
    """Untrusted text."""
    dtype: str
    overflow: int
    """Elements out of range."""
    underflow: int
    rounded: int
    max_error: float


@dataclass(frozen=True)
class RefusedPrecision:
    """A layer that cannot run in its precision. All texts are foreign."""

    node: str
    scope: list[str]
    precision: str
    reason: str


@dataclass(frozen=True)
class CastFigures:
    """What the precisions of layers cost."""

    layers: int
    """In another precision."""
    casts: int
    weight_casts: int
    """Of weights, when the engine is built."""
    moved_bytes: int
    """That casts read and write at each inference."""
    casts_of_unknown_size: int
    inlined_calls: int
    refused: list[RefusedPrecision]
    notes: list[str]
    """Untrusted text."""


@dataclass
class RetypedModel:
    """A copy of a model, and its changes."""

    document: Document
    """Has no path. Close it before the document that it was copied from."""
    plan: CastPlan
    inlined: int = 0
    """Calls of local functions that were replaced, as they hold layers with a precision."""
    remarks: list[str] = field(default_factory=list)
    """What type inference says. Fit for a terminal."""
    twins: dict[Node, Node] = field(default_factory=dict)
    """The node of the document for each node that was copied, where all may be changed."""

    @property
    def casts(self) -> int:
        """How many casts an inference does."""
        return sum(not cast.stored for cast in self.plan.casts)

    @property
    def stored_casts(self) -> int:
        """How many casts are of weights: done once, when the engine is built."""
        return sum(cast.stored for cast in self.plan.casts)

    @property
    def moved_bytes(self) -> int:
        """Bytes that the casts read and write in an inference, as far as shapes are known."""
        return sum(cast.moved_bytes or 0 for cast in self.plan.casts)

    @property
    def unknown_sizes(self) -> int:
        """How many casts are not in :attr:`moved_bytes`, as a shape is not known."""
        return sum(cast.moved_bytes is None for cast in self.plan.casts)

    def lines(self) -> list[str]:
        """Return the preview for people. Fit for a terminal."""
        changed = fmt.plural(len(self.plan.relinks), "layer")
        unknown = f" (and {self.unknown_sizes:,} of unknown size)" if self.unknown_sizes else ""
        lines = [
            f"{changed} in another precision, {fmt.plural(self.casts, 'cast')} added",
            f"Casts read and write {fmt.size(self.moved_bytes)} an inference{unknown}",
        ]
        if self.stored_casts:
            lines.append(f"{fmt.plural(self.stored_casts, 'weight')} cast when the engine is built")
        if self.inlined:
            lines.append(f"{fmt.plural(self.inlined, 'function call')} inlined in the copy")
        for refused in self.plan.refused:
            name = shortened(refused.node.ref)
            lines.append(
                f"{name} cannot run in {visible(refused.precision)}: {visible(refused.reason)}"
            )
        return lines + [visible(note) for note in self.plan.notes]

    def figures(self) -> CastFigures:
        """Return what the precisions cost."""
        return CastFigures(
            layers=len(self.plan.relinks),
            casts=self.casts,
            weight_casts=self.stored_casts,
            moved_bytes=self.moved_bytes,
            casts_of_unknown_size=self.unknown_sizes,
            inlined_calls=self.inlined,
            refused=[
                RefusedPrecision(r.node.ref, list(r.node.scope.path), r.precision, r.reason)
                for r in self.plan.refused
            ],
            notes=list(self.plan.notes),
        )


def retyped(document: Document, specs: Sequence[str] = ()) -> RetypedModel:
    """Return a copy of a model with the casts that its layers' precisions need.

    Runs onnx's shape inference: call it in a child process.

    Args:
        document: Its nodes may have precisions (:mod:`dld_tui.core.model.document.metadata`).
        specs: Further precisions as trtexec writes them, ``NAME:fp16``. With ``*`` for any
            characters, they apply to the nodes without a precision that support it.

    Raises:
        UsageError: A spec names no node or no precision.
    """
    with working_copy(document) as copy:
        exact, patterns = parse_specs(specs)
        _assign(copy, exact)
        inlined = inline_marked(copy, everything=bool(patterns))
        lenient = _assign_patterns(copy, patterns)
        remarks = infer(copy, document.path)
        called = {key for _, key in _calls(copy)}
        precisions = {
            node: precision
            for node, precision in precisions_of(copy).items()
            if (function := enclosing_function(node.scope)) is None or key_of(function) in called
        }
        plan = plan_casts(copy, precisions)
        plan.refused = [refusal for refusal in plan.refused if refusal.node not in lenient]
        if plan.relinks:
            carry_out_casts(copy, plan)
    return RetypedModel(copy, plan, inlined, remarks)


def in_lower_precision(
    document: Document, precision: str, kept: Collection[Node] = (), *, rounded: bool = False
) -> RetypedModel:
    """Return a copy of a model in which all layers that support a precision use it.

    Layers with another precision keep that. Runs onnx's shape inference: call it in a child
    process.

    Args:
        document: The model; it is not changed.
        precision: For example ``fp16``.
        kept: Nodes of the document that stay in fp32.
        rounded: Keep the types and round values instead. ONNX Runtime computes float16 models on a
            CPU in float32, and leaves out the casts between two nodes: nothing would overflow.

    Raises:
        EditError: The precision is unknown.
    """
    with working_copy(document) as copy:
        stay, change, twins = [], [], {}
        for node, twin in paired_nodes(document, copy):
            twins[twin] = node
            if node in kept:
                stay.append(twin)
            elif not precision_of(node) and function_of(twin) is None:
                change.append(twin)
        assign(copy, stay, "fp32")
        assign(copy, change, precision)
        inlined = inline_marked(copy, everything=False)
        remarks = infer(copy, document.path)
        precisions = precisions_of(copy)
        plan = plan_rounding(copy, precisions) if rounded else plan_casts(copy, precisions)
        plan.refused = [refusal for refusal in plan.refused if refusal.precision != precision]
        if plan.relinks:
            carry_out_casts(copy, plan)
    return RetypedModel(copy, plan, inlined, remarks, twins)


def paired_nodes(document: Document, copy: Document) -> Iterator[tuple[Node, Node]]:
    """Yield each node of a document with that of its copy."""
    for mine, theirs in zip(document.scopes(), copy.scopes(), strict=True):
        yield from zip(mine.nodes, theirs.nodes, strict=True)


def parse_specs(specs: Sequence[str]) -> tuple[list[Spec], list[Spec]]:
    """Return the specs that name one node, and those with ``*``.

    Raises:
        UsageError: One has another form, or names no precision.
    """
    exact: list[Spec] = []
    patterns: list[Spec] = []
    for text in specs:
        for part in text.split(","):
            name, colon, precision = part.strip().rpartition(":")
            precision = precision.strip().lower()
            if not colon or not name or precision not in PRECISIONS:
                raise UsageError(
                    f"layer precision {visible(part)!r} must be NAME:PRECISION",
                    hint=f"Precisions: {', '.join(PRECISIONS)}",
                )
            (patterns if "*" in name else exact).append((name, precision))
    return exact, patterns


def _assign(document: Document, specs: Sequence[Spec]) -> None:
    """Set the precisions of nodes that are named; a later spec wins."""
    for name, precision in specs:
        fitting = nodes_called(list(document.scopes()), name)
        if not fitting:
            raise UsageError(f"no node is named {visible(name)!r}", hint="See dld inspect --nodes")
        assign(document, fitting, precision)


def _assign_patterns(document: Document, specs: Sequence[Spec]) -> set[Node]:
    """Set the precisions of nodes that have none and fit a pattern; return them."""
    assigned: dict[Node, str] = {}
    scopes = list(document.main.walk())
    for name, precision in specs:
        fitting = [node for node in nodes_called(scopes, name) if not precision_of(node)]
        if not fitting:
            raise UsageError(f"no node matches {visible(name)!r}", hint="See dld inspect --nodes")
        assigned.update(dict.fromkeys(fitting, precision))
    for precision in dict.fromkeys(assigned.values()):
        assign(
            document, [node for node, given in assigned.items() if given == precision], precision
        )
    return set(assigned)


def losses(retyping: RetypedModel) -> Iterator[CastLoss]:
    """Yield the losses of casts of weights; reads all of them."""
    for cast in retyping.plan.casts:
        tensor = _weight(cast) if cast.stored else None
        if tensor is None:
            continue
        try:
            report = plan_conversion(tensor, cast.dtype)
        except (EditError, InputError):
            continue  # values that cannot be read are the build's to tell
        if not report.lossless:
            yield CastLoss(
                cast.source, cast.dtype, report.overflow, report.underflow, report.rounded,
                report.max_error,
            )  # fmt: skip


def _weight(cast: Cast) -> Tensor | None:
    definition = cast.scope.resolve(cast.source)
    if definition is None:
        return None
    if definition.node is None:
        return definition.scope.initializer(cast.source)
    values = [a.value for a in definition.node.attributes() if a.name == "value"]
    return values[0] if values and isinstance(values[0], Tensor) else None


def inline_marked(copy: Document, *, everything: bool) -> int:
    """Replace calls of functions that hold layers with a precision, or have one themselves."""
    marked = {key_of(f) for f in copy.functions} if everything else _marked_functions(copy)
    count = 0
    for _ in range(_ROUNDS):
        calls = [node for node, key in _calls(copy) if precision_of(node) or key in marked]
        if not calls:
            break
        for call in calls:
            _inline_call(copy, call)
        count += len(calls)
    return count


def _calls(copy: Document) -> Iterator[tuple[Node, FunctionKey]]:
    """Yield the nodes outside of functions that call one."""
    for scope in copy.main.walk():
        for node in scope.nodes:
            function = function_of(node)
            if function is not None:
                yield node, key_of(function)


def _marked_functions(copy: Document) -> set[FunctionKey]:
    """Return the functions that have a node with a precision, or call one that has."""
    inside = (enclosing_function(node.scope) for node in precisions_of(copy))
    marked = {key_of(function) for function in inside if function is not None}
    while True:
        more = {key_of(f) for f in copy.functions if called_by(f) & marked} - marked
        if not more:
            return marked
        marked |= more


def _inline_call(copy: Document, call: Node) -> None:
    """Replace one call; the nodes take over its precision where they have none."""
    from dld_tui.core.model.edits import functions

    home, precision = call.scope, precision_of(call)
    before = set(home.nodes)
    copy.apply(functions.inline_function(nodes=[[list(home.path), call.ref]]))
    if precision:
        new = [node for node in home.nodes if node not in before and not precision_of(node)]
        assign(copy, new, precision)


def assign(copy: Document, nodes: Sequence[Node], precision: str) -> None:
    """Set the precision of nodes."""
    from dld_tui.core.model.edits import metadata

    if nodes:
        places: list[JSON] = [[list(node.scope.path), node.ref] for node in nodes]
        copy.apply(metadata.set_precision(nodes=places, precision=precision))


def carry_out_casts(copy: Document, plan: CastPlan) -> None:
    """Make the changes of a plan."""
    from dld_tui.core.model.document.transactions import Transaction
    from dld_tui.core.model.edits.nodes import carry_out

    carry_out(plan, Transaction("cast_to_precisions", {}))


_SWITCH = "dld.switch"
"""The entry of ``metadata_props`` that names a node's switch."""


def switchable(document: Document, precision: str) -> SwitchedCopy:
    """Return a copy of a model whose nodes round values to a precision if extra inputs say so.

    As :func:`in_lower_precision` with `rounded`, for any choice of nodes.

    Args:
        document: The model; it is not changed.
        precision: For example ``fp16``.

    """
    with working_copy(document) as copy:
        names = FreshNames(copy)
        owners: dict[str, Node] = {}
        change = []
        for node, twin in paired_nodes(document, copy):
            if precision_of(node) or function_of(twin) is not None:
                continue
            change.append(twin)
            name = names.take(f"round_{len(owners)}")
            twin.proto.metadata_props.add(key=_SWITCH, value=name)  # outlives being inlined
            owners[name] = node
        assign(copy, change, precision)
        inline_marked(copy, everything=False)
        infer(copy, document.path)
        precisions = {
            node: own for node, own in precisions_of(copy).items()
            if enclosing_function(node.scope) is None
        }  # fmt: skip
        switch_names = {node: name for node in precisions if (name := _switch_of(node))}
        fixed = {node: own for node, own in precisions.items() if node not in switch_names}
        plan = plan_rounding(copy, fixed)
        if plan.relinks:
            carry_out_casts(copy, plan)
        lowered = {node: precisions[node] for node in switch_names}
        switched = add_switches(copy, lowered, switch_names)
    switch_of = {owners[name]: name for node, name in switch_names.items() if node in switched}
    inputs = [*dict.fromkeys(switch_of.values())]
    return SwitchedCopy(
        copy,
        [*switch_of],
        inputs,
        lambda kept: {name for node, name in switch_of.items() if node not in kept},
    )


def _switch_of(node: Node) -> str:
    return next(
        (text_of(entry.value) for entry in node.proto.metadata_props if entry.key == _SWITCH), ""
    )


def assigned(
    document: Document, precision: str, lower: Collection[Node], kept: Collection[Node]
) -> Document:
    """Return a copy of a model whose nodes have precisions, for TensorRT to follow.

    Args:
        document: The model; it is not changed, and its own precisions take precedence.
        precision: Of the lowered nodes, for example ``fp16``.
        lower: The nodes that can be lowered.
        kept: Those that stay in fp32.

    Returns:
        The copy, to be closed before the document.
    """
    with working_copy(document) as copy:
        change = [(node, twin) for node, twin in paired_nodes(document, copy) if node in lower]
        assign(copy, [twin for node, twin in change if node in kept], "fp32")
        assign(copy, [twin for node, twin in change if node not in kept], precision)
    return copy
