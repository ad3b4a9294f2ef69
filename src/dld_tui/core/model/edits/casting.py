"""Casts that give layers their precisions, planned; and casts that round to one, with a switch.

Strongly typed libraries (TensorRT 11, TensorRT-RTX) take the precision of a layer from the types
of its inputs, so a layer that is to run in another one gets ``Cast`` nodes at its borders.
Weights stay as they are: the cast of an initializer is folded when the engine is built. Between
two layers of one precision there is no cast, and a value that others use in its old type keeps
its name.

A model with them gives in one session what :func:`~dld_tui.core.model.edits.casting.plan_rounding`
gives in a copy for each choice of nodes: what a node takes and makes is rounded, or not, as an
input of the model says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.external import element_bits
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.model.document.local_functions import enclosing_function, function_of
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.node import node_proto
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.document.scope import unused_name
from dld_tui.core.model.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.tensors.value_types import dtype_number, dtype_of, type_of_value
from dld_tui.core.types import FLOATS, PRECISION_DTYPES

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.operators.schema import Formal, OperatorSchema

DTYPES = {
    precision: PRECISION_DTYPES[precision]
    for precision in ("fp32", "fp16", "bf16", "int64", "int32", "uint8", "int8")
}
"""The element types that casts can give, by precision."""
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
_SCALED = ("int8", "uint8", "fp8", "int4")
"""Precisions that represent floating point values only with a scale."""


@dataclass(frozen=True)
class Cast:
    """One ``Cast`` node that is to be added."""

    scope: Scope
    source: str
    """The value that goes in. Untrusted text."""
    target: str
    """The value that comes out. Untrusted text, or a new name."""
    before: str
    """Element type that goes in; empty when it is not known."""
    dtype: str
    """Element type that comes out."""
    node: Node
    """The node that it is for."""
    after: bool
    """Whether it comes after the node rather than before it."""
    stored: bool
    """Whether it casts an initializer: done once, when the engine is built."""

    @property
    def moved_bytes(self) -> int | None:
        """Bytes read and written in an inference; None when the shape is not known."""
        if self.stored:
            return 0
        known = self.scope.value_type(self.target if self.after else self.source)
        if known is None or known.dims is None:
            return None
        count = 1
        for dim in known.dims:
            if not isinstance(dim, int) or dim < 0:
                return None
            count *= dim
        return count * (_bits(self.before) + _bits(self.dtype)) // 8


@dataclass(frozen=True)
class Relink:
    """The links that a node is to have."""

    node: Node
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """A node whose precision cannot be given by casts, and why."""

    node: Node
    precision: str
    """Untrusted text."""
    reason: str


@dataclass
class CastPlan:
    """All that is to be done for the precisions of a document."""

    casts: list[Cast] = field(default_factory=list)
    relinks: list[Relink] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Doubts, one sentence each. Untrusted text."""


def precisions_of(document: Document) -> dict[Node, str]:
    """Return the nodes of all scopes that are set to a precision, with that. Untrusted text."""
    return {
        node: precision
        for scope in document.scopes()
        for node in scope.nodes
        if (precision := precision_of(node))
    }


def plan_casts(document: Document, precisions: Mapping[Node, str]) -> CastPlan:
    """Return the casts that nodes need to compute in other precisions.

    Types come from :meth:`Scope.value_type`: let shape inference run before.

    Args:
        document: The document; it is not changed.
        precisions: The nodes that are meant, and what each is to compute in.
    """
    plan = CastPlan()
    names = FreshNames(document)
    for scope in dict.fromkeys(node.scope for node in precisions):
        mine = {node: precisions[node] for node in scope.nodes if node in precisions}
        if enclosing_function(scope) is None:
            _Planner(plan, scope, names).plan(mine)
            continue
        reason = "it is in a local function, whose types depend on the call: inline it"
        plan.refused += [Refusal(node, precision, reason) for node, precision in mine.items()]
    return plan


class FreshNames:
    """Gives names that no value of the whole document has: bodies must not repeat them either."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._taken: set[str] | None = None

    def take(self, wanted: str) -> str:
        """Return `wanted`, or that with a number behind it."""
        if self._taken is None:
            from dld_tui.core.model.edits.subgraphs import defined_names

            self._taken = set()
            for scope in self._document.scopes():
                self._taken.update(defined_names(scope), scope.links.consumers, scope.outputs)
        name = unused_name(wanted, self._taken.__contains__)
        self._taken.add(name)
        return name


class _Planner:
    """Plans the casts of one scope."""

    def __init__(self, plan: CastPlan, scope: Scope, names: FreshNames) -> None:
        self._plan = plan
        self._scope = scope
        self._names = names
        self._known: dict[tuple[str, str], str] = {}
        """What a value is called in another type, by value and type."""
        self._inputs: dict[Node, tuple[str, ...]] = {}
        """What the nodes with a precision are to take."""
        self._casts: list[Cast] = []

    def plan(self, precisions: Mapping[Node, str]) -> None:
        """Plan all nodes; outputs first, so that neighbours match in any order."""
        changes = [
            (node, node_changes)
            for node, precision in precisions.items()
            if (node_changes := self._changes(node, precision)) is not None
        ]
        back: list[Cast] = []
        outputs = {
            node: self._cast_outputs(node, node_changes, back) for node, node_changes in changes
        }
        for node, node_changes in changes:
            self._inputs[node] = self._cast_inputs(node, node_changes)
        for node, taken in self._inputs.items():
            if (taken, outputs[node]) != (node.inputs, node.outputs):
                self._plan.relinks.append(Relink(node, taken, outputs[node]))
        self._plan.casts += self._casts
        recast = {cast.source for cast in self._casts}
        self._plan.casts += [
            cast for cast in back if cast.target in recast or self._is_used(cast.target)
        ]

    def _changes(self, node: Node, precision: str) -> Changes | None:
        changes = changes_of(node, precision)
        if isinstance(changes, Unchangeable):
            self._plan.refused.append(Refusal(node, precision, changes.text))
            return None
        if changes.note and changes.note not in self._plan.notes:
            self._plan.notes.append(changes.note)
        return changes

    def _cast_outputs(self, node: Node, changes: Changes, back: list[Cast]) -> tuple[str, ...]:
        """Give outputs whose type changes new names, with casts back to the old ones."""
        names = list(node.outputs)
        for index, before in changes.outputs:
            old = names[index]
            names[index] = self._known[old, changes.dtype] = self._new_name(old, changes.dtype)
            back.append(
                Cast(self._scope, names[index], old, changes.dtype, before, node, True, False)
            )
        return tuple(names)

    def _cast_inputs(self, node: Node, changes: Changes) -> tuple[str, ...]:
        """Give a node inputs of its type: from a node of the same precision, or by a cast."""
        names = list(node.inputs)
        for index, before in changes.inputs:
            old, key = names[index], (names[index], changes.dtype)
            if key not in self._known:
                self._known[key] = self._new_name(old, changes.dtype)
                self._casts.append(
                    Cast(self._scope, old, self._known[key], before, changes.dtype, node, False,
                         self._is_stored(old))
                )  # fmt: skip
            names[index] = self._known[key]
        return tuple(names)

    def _new_name(self, value: str, dtype: str) -> str:
        return self._names.take(f"{value}_{dtype}")

    def _is_stored(self, name: str) -> bool:
        definition = self._scope.resolve(name)
        if definition is None:
            return False
        constant = definition.node is not None and definition.node.op_type == "Constant"
        return constant or definition.kind == "initializer"

    def _is_used(self, name: str) -> bool:
        """Return whether a node, or an output, still takes a value in its old type."""
        for scope in self._scope.reach(name):
            users = scope.links.consumers.get(name, ())
            # A body below takes an outer value by its old name, if only to cast it itself.
            if name in scope.outputs or (scope is not self._scope and users):
                return True
            if any(name in self._inputs.get(user, user.inputs) for user in users):
                return True
        return False


@dataclass(frozen=True)
class Changes:
    """What a precision changes of a node."""

    dtype: str
    inputs: tuple[tuple[int, str], ...]
    """Index and present element type of the inputs that are to be cast."""
    outputs: tuple[tuple[int, str], ...]
    """The same of the outputs whose type follows."""
    note: str = ""


class CastBar(Enum):
    """What keeps a node from a precision."""

    HOLDS_NODES = "its subgraphs have nodes of their own"
    CONSTANT = "a constant"
    NO_SUCH_INPUT = "no input of the kind"
    OTHER = "other"


@dataclass(frozen=True)
class Unchangeable:
    """Why no precision can be given to a node."""

    bar: CastBar
    text: str


def _unchangeable(text: str) -> Unchangeable:
    return Unchangeable(CastBar.OTHER, text)


_CONTAINER_OPERATORS = frozenset([
    "SequenceConstruct", "SequenceInsert", "SplitToSequence", "Optional", "OptionalGetElement",
])  # fmt: skip
"""Operators with tensors on one side and what holds them on the other: Cast takes tensors only."""


def changes_of(node: Node, precision: str) -> Changes | Unchangeable:
    """Return which inputs and outputs of a node change for a precision, or why none can."""
    schema = schema_of(node)
    if node.children:
        return Unchangeable(
            CastBar.HOLDS_NODES, "it only holds other nodes: set those in its bodies"
        )
    if function_of(node) is not None:
        return _unchangeable("it calls a local function: inline it, or set the nodes in it")
    if schema is None:
        return _unchangeable("its operator is unknown")
    dtype = DTYPES.get(precision)
    group = FLOATS if dtype in FLOATS else _INTEGERS
    bound = _bound(node, schema, group)
    if isinstance(bound, Unchangeable):
        return bound
    if not bound or dtype is None:
        return _why_none(node, precision)
    if not schema.domain and schema.name in _CONTAINER_OPERATORS:
        return _unchangeable("what sequences and optionals hold keeps its type")
    wanted = type_text_of(dtype)
    unable = [name for name, formal in _formals(node, schema)
              if name in bound and wanted not in formal.types]  # fmt: skip
    note = ""
    if unable:
        newest = schema_for(node.op_type, node.domain, None)
        if newest is None or any(
            wanted not in formal.types for name, formal in _formals(node, newest) if name in unable
        ):
            return _unchangeable(f"{schema.name} does not take {dtype}")
        note = (
            f"{schema.name} takes {dtype} from opset {newest.since_version} on only: the copy is"
            " for TensorRT, other programs may refuse it"
        )
    inputs = tuple(
        (index, before) for index, (formal, before) in enumerate(_actual(node, schema))
        if formal is not None and formal.type_name in bound and before != dtype and before
    )  # fmt: skip
    outputs = tuple(
        (index, bound[formal.type_name])
        for index, name in enumerate(node.outputs)
        if name and (formal := schema.output(index)) is not None
        and formal.type_name in bound and bound[formal.type_name] != dtype
    )  # fmt: skip
    return Changes(dtype, inputs, outputs, note)


def type_text_of(dtype: str) -> str:
    """Return a plain tensor's type in ONNX notation, e.g. ``tensor(float)``."""
    from dld_tui.core.model.tensors.value_types import ValueType

    return type_of_value(ValueType(dtype, ())) or ""


def _formals(node: Node, schema: OperatorSchema) -> Iterator[tuple[str, Formal]]:
    """Yield the formals of a node's inputs whose type is a name, with that."""
    for index, name in enumerate(node.inputs):
        formal = schema.input(index)
        if name and formal is not None and formal.type_name not in formal.types:
            yield formal.type_name, formal


def _actual(node: Node, schema: OperatorSchema) -> Iterator[tuple[Formal | None, str]]:
    """Yield the formal and the element type of each input; an empty type is not known."""
    for index, name in enumerate(node.inputs):
        formal = schema.input(index)
        if not name or formal is None or formal.type_name in formal.types:
            yield None, ""
            continue
        text = type_of_value(node.scope.value_type(name))
        yield formal, (dtype_of(text) or text) if text else ""


def _bound(
    node: Node, schema: OperatorSchema, group: tuple[str, ...]
) -> dict[str, str] | Unchangeable:
    """Return the type names of a signature that stand for types of a group, with these."""
    bound: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for (formal, dtype), name in zip(_actual(node, schema), node.inputs, strict=True):
        if formal is None:
            continue
        if dtype in group:
            bound.setdefault(formal.type_name, dtype)
        elif not dtype and any(type_text_of(type_text) in formal.types for type_text in group):
            unknown.setdefault(formal.type_name, name)
    for type_name, value in unknown.items():
        if type_name in bound or not bound:
            return _unchangeable(f"the type of its input {value!r} is not known")
    return bound


def _why_none(node: Node, precision: str) -> Unchangeable:
    if precision in _SCALED:
        scaled = "quantize the model (QuantizeLinear, DequantizeLinear)"
        return _unchangeable(f"{precision} needs a scale: {scaled}")
    if precision not in DTYPES:
        return _unchangeable(f"no cast can make a layer run in {precision}")
    if node.op_type == "Constant":
        text = "a constant has the type that its users need: set those"
        return Unchangeable(CastBar.CONSTANT, text)
    kind = "floating point" if DTYPES[precision] in FLOATS else "integer"
    return Unchangeable(CastBar.NO_SUCH_INPUT, f"it has no {kind} inputs")


def _bits(dtype: str) -> int:
    from dld_tui.core.model.tensors.value_types import dtype_number

    number = dtype_number(dtype)
    return (element_bits(number) or 0) if number else 0


def plan_rounding(document: Document, precisions: Mapping[Node, str]) -> CastPlan:
    """Return casts that round values to other precisions and back: nodes compute as before.

    What nodes of a precision take and make is then what it would be in that precision, whatever
    the library computes in: for programs that would leave out the casts between two nodes.

    Args:
        document: The document; it is not changed. Types have to be known.
        precisions: The nodes that are meant, and the precision of each.
    """
    plan = CastPlan()
    names = FreshNames(document)
    rounded: dict[tuple[Scope, str, str], str] = {}
    changes_by_node: dict[Node, Changes] = {}
    for node, precision in precisions.items():
        changes = changes_of(node, precision)
        if isinstance(changes, Unchangeable):
            plan.refused.append(Refusal(node, precision, changes.text))
            continue
        changes_by_node[node] = changes
        for index, _ in changes.outputs:
            rounded[node.scope, node.outputs[index], changes.dtype] = node.outputs[index]
    for node, changes in changes_by_node.items():
        inputs, outputs = list(node.inputs), list(node.outputs)
        for index, before in changes.inputs:
            key = (node.scope, inputs[index], changes.dtype)
            if key not in rounded:
                rounded[key] = names.take(f"{inputs[index]}_rounded")
                plan.casts += _there_and_back(
                    names, node, inputs[index], rounded[key], before, changes.dtype, after=False
                )
            inputs[index] = rounded[key]
        for index, before in changes.outputs:
            rounded_name, outputs[index] = outputs[index], names.take(f"{outputs[index]}_exact")
            plan.casts += _there_and_back(
                names, node, outputs[index], rounded_name, before, changes.dtype, after=True
            )
        if changes.inputs or changes.outputs:
            plan.relinks.append(Relink(node, tuple(inputs), tuple(outputs)))
    return plan


def _there_and_back(
    names: FreshNames, node: Node, source: str, target: str, before: str, dtype: str, *, after: bool
) -> list[Cast]:
    middle = names.take(f"{target}_{dtype}")
    return [
        Cast(node.scope, source, middle, before, dtype, node, after, False),
        Cast(node.scope, middle, target, dtype, before, node, after, False),
    ]


_SMALL = 1 << 12
"""Elements."""
_SELECTED = ("float32", "float64")
"""Types of which ONNX Runtime's ``Where`` takes values on a CPU."""


@dataclass(frozen=True)
class SwitchedCopy:
    """A model in which inputs turn the rounding of nodes on and off."""

    document: Document
    """The copy that has them. Close it before the document that it was made of."""
    nodes: Sequence[Node]
    """The nodes that the rounding can change, of that document and in its order."""
    names: Sequence[str]
    """The inputs: scalars, true to round."""
    on: Callable[[Collection[Node]], Collection[str]]
    """Returns the inputs that are true when some nodes do not round."""


def add_switches(
    document: Document, precisions: Mapping[Node, str], switches: Mapping[Node, str]
) -> set[Node]:
    """Give nodes rounded inputs and outputs, each by the switch of the node.

    Args:
        document: The document, which is changed. Types have to be known.
        precisions: The nodes that are meant, and the precision of each.
        switches: The name of the switch of each, one for several nodes if need be. They become
            inputs of the model: scalars, true to round. The names must be free.

    Returns:
        The nodes that a precision changes; the others have no switch.
    """
    names = FreshNames(document)
    changes_by_node: dict[Node, Changes] = {}
    for node, precision in precisions.items():
        changes = changes_of(node, precision)
        if not isinstance(changes, Unchangeable) and (changes.inputs or changes.outputs):
            changes_by_node[node] = changes
    transaction = Transaction("add_switches", {})
    for scope in dict.fromkeys(node.scope for node in changes_by_node):
        mine = {node: changes_by_node[node] for node in scope.nodes if node in changes_by_node}
        _SwitchInsertion(scope, names, transaction).add(mine, switches)
    main = document.main
    for switch in dict.fromkeys(switches[node] for node in changes_by_node):
        info = onnx.helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, ())
        transaction.append(main, "input", info)
    return set(changes_by_node)


_CONSTANT_WEIGHTS = "MatMulNBits"
"""ONNX Runtime computes zeros where its scales are not constant: they are left unrounded."""


class _SwitchInsertion:
    """Adds the switches of one scope."""

    def __init__(self, scope: Scope, names: FreshNames, transaction: Transaction) -> None:
        self._scope = scope
        self._names = names
        self._transaction = transaction

    def add(self, changes: Mapping[Node, Changes], switches: Mapping[Node, str]) -> None:
        scope, added = self._scope, 0
        for at, node in enumerate([*scope.nodes]):
            if node not in changes:
                continue
            inputs, before = self._inputs(node, changes[node], switches[node])
            outputs, after = self._outputs(node, changes[node], switches[node])
            self._transaction.do(SetLinks(scope, node, "input", inputs))
            self._transaction.do(SetLinks(scope, node, "output", outputs))
            for index, protos in ((at + added, before), (at + added + 1 + len(before), after)):
                nodes = [scope.new_node(proto) for proto in protos]
                self._transaction.do(Splice(scope, "node", index, [], nodes))
            added += len(before) + len(after)

    def _inputs(
        self, node: Node, changes: Changes, switch: str
    ) -> tuple[tuple[str, ...], list[onnx.NodeProto]]:
        names, protos = list(node.inputs), list[onnx.NodeProto]()
        chosen: dict[str, str] = {}
        for index, before in changes.inputs:
            value = names[index]
            if node.op_type == _CONSTANT_WEIGHTS and self._scope.initializer(value) is not None:
                continue
            if value not in chosen:
                chosen[value] = self._names.take(f"{value}_chosen")
                protos += self._choice(switch, value, chosen[value], value, before, changes.dtype)
            names[index] = chosen[value]
        return tuple(names), protos

    def _outputs(
        self, node: Node, changes: Changes, switch: str
    ) -> tuple[tuple[str, ...], list[onnx.NodeProto]]:
        names, protos = list(node.outputs), list[onnx.NodeProto]()
        for index, before in changes.outputs:
            value = names[index]
            names[index] = exact = self._names.take(f"{value}_exact")
            protos += self._choice(switch, exact, value, value, before, changes.dtype)
        return tuple(names), protos

    def _choice(
        self, switch: str, source: str, target: str, value: str, before: str, dtype: str
    ) -> list[onnx.NodeProto]:
        """Return nodes that round a value or pass it on."""
        middle, rounded = (self._names.take(f"{target}_{suffix}") for suffix in (dtype, "rounded"))
        casts = [_node("Cast", [source], middle, dtype), _node("Cast", [middle], rounded, before)]
        return choice(self._scope, self._names, switch, casts, source, rounded, target, value)


def choice(
    scope: Scope,
    names: FreshNames,
    switch: str,
    nodes: list[onnx.NodeProto],
    source: str,
    alternative: str,
    target: str,
    value: str,
) -> list[onnx.NodeProto]:
    """Return nodes that give what others make of a value, or another value, as a switch says.

    What is not chosen costs nothing, unless the value is small. Then both are computed, as
    ONNX Runtime may be wrong about the shapes of such values, scalars above all, and its
    ``If`` relies on them.

    Args:
        scope: Where they will be.
        names: Gives free names.
        switch: A scalar; true for what `nodes` make.
        nodes: They make `alternative`.
        source: What is passed on when the switch is false.
        alternative: What the nodes make.
        target: What is chosen.
        value: The value of the scope whose type and shape all of them have.
    """
    known = scope.value_type(value)
    dtype = "" if known is None else known.dtype or ""
    if dtype in _SELECTED and _is_small(scope, value):
        return [*nodes, _node("Where", [switch, alternative, source], target)]
    same = names.take(f"{target}_same")
    proto = _node("If", [switch], target)
    for name, body_nodes, result in (
        ("then_branch", nodes, alternative),
        ("else_branch", [_node("Identity", [source], same)], same),
    ):
        body = onnx.GraphProto(name=name, node=body_nodes)
        info = body.output.add()
        set_text(info, "name", result)
        info.type.tensor_type.elem_type = dtype_number(dtype) or 0
        proto.attribute.append(onnx.helper.make_attribute(name, body))
    return [proto]


def _is_small(scope: Scope, value: str) -> bool:
    known = scope.value_type(value)
    if known is None or known.dims is None:
        return False
    sizes = [dim for dim in known.dims if isinstance(dim, int)]
    return len(sizes) == len(known.dims) and math.prod(sizes) <= _SMALL


def _node(op_type: str, sources: list[str], target: str, to: str = "") -> onnx.NodeProto:
    return node_proto(op_type, sources, [target], to=dtype_number(to) if to else None)
