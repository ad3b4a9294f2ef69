"""The cost of each node of a model, from the shapes of its values.

Types are those that the file declares and that inference found; dynamic dimensions stay symbolic. A
node with subgraphs costs what these do: the costlier branch of an If, the body of a Loop or Scan
times its trips, the body of a local function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.cost.call_shapes import Shape, elements
from dld_tui.core.model.cost.operators import Operator, grown_cache, operator, parts_read, work
from dld_tui.core.model.document.local_functions import call_of, declared_attributes, key_of
from dld_tui.core.model.document.node import NodeTexts
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.following import Following, dims_of_type
from dld_tui.core.model.shapes.size import (
    UNKNOWN as UNKNOWN_SIZE,
)
from dld_tui.core.model.shapes.size import (
    Count,
    Polynomial,
    Size,
    add_up,
    byte_count,
    count_text,
    number_of,
    size_at,
    size_text,
    symbol,
)
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value, contradict
from dld_tui.core.model.tensors.value_types import ValueType, dtype_name, value_type_of
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.tables.table import COUNT, RATIO, Column, Table, Unit
from dld_tui.core.text import visible
from dld_tui.core.types import ELEMENT_BITS, JSON, SCAN_SINCE, PlainValues

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.document.summary import ModelSummary


_DEEPEST = 64
_MOST_KINDS = 32
"""Calls of a function with other types or attributes that are counted each; others are unknown."""
_MOST_NODES = 500_000
"""Nodes in bodies and functions that are counted, each as often as its function is; about 3 s."""
_ENDLESS = 1 << 31
"""The trip count of a loop that only its condition ends."""
_TYPICAL = 64
"""The size of a symbolic dimension when two branches are compared."""
_GROUPED = ("com.microsoft", "GroupQueryAttention")


class Cost(NamedTuple):
    """The cost of a node; None is unknown."""

    macs: Count | None = 0
    """Multiply-accumulates."""
    flops: Count | None = 0
    """Operations; a multiply-accumulate is two."""
    read: Count | None = 0
    """Bytes of the inputs, each once."""
    written: Count | None = 0
    """Bytes of the outputs."""
    parameters: int = 0
    """Elements of the initializers and constants that it reads."""

    @property
    def moved(self) -> Count | None:
        """Bytes read and written."""
        return None if self.read is None or self.written is None else self.read + self.written

    def times(self, trips: Count | None) -> Cost:
        """Return the cost of several runs; the parameters stay the same."""
        counts = [None if count is None or trips is None else count * trips for count in self[:4]]
        return Cost._make((*counts, self.parameters))


UNKNOWN = Cost(None, None, None, None)
_FREE = Cost()


def total(costs: Sequence[Cost], *, known: bool = False) -> Cost:
    """Return the total cost of nodes.

    Args:
        costs: Of the nodes.
        known: Leave unknown costs out; otherwise, the sum is unknown as well.
    """
    columns: list[Sequence[Any]] = list(zip(*costs, strict=True)) or [()] * len(Cost._fields)
    if known:
        columns = [[count for count in column if count is not None] for column in columns]
    return Cost._make(None if None in column else add_up(column) for column in columns)


class _Tensor(NamedTuple):
    """What the cost of a node needs of one of its values."""

    value: Value = NOTHING
    """Its sizes; not its elements."""
    bits: int | None = None
    """Of an element."""
    elements: Count | None = None
    """None where not all of its sizes are known."""
    bytes: Count | None = None
    stored: int = 0
    """Its elements, where it is an initializer or a constant."""

    @property
    def shape(self) -> Shape | None:
        """Its sizes where all are known."""
        return None if self.elements is None else self.value.dims


_LEFT_OUT = _Tensor(bytes=0)
_NO_TYPE = _Tensor()


class _Frame:
    """A scope as one kind of the calls of the function around it has it."""

    __slots__ = ("attributes", "following", "opsets", "outer", "scope", "typed", "values",
                 "variant")  # fmt: skip

    def __init__(
        self,
        scope: Scope,
        outer: _Frame | None = None,
        variant: int | None = None,
        attributes: Mapping[str, onnx.AttributeProto] | None = None,
    ) -> None:
        self.scope = scope
        self.outer = outer
        """That of the scope whose values it can use."""
        self.variant = variant
        """As in :class:`~dld_tui.core.model.document.scope.CallTypes`."""
        self.attributes = attributes or {}
        """The values of the function's attributes."""
        self.opsets: dict[str, int] = imports_of(scope) if outer is None else outer.opsets
        self.values: dict[str, _Tensor] = {}
        self.typed: dict[str, _Tensor] = {}
        """What types say of values whose sizes they do not tell."""
        self.following: Following | None = None


class _Sum(NamedTuple):
    """The cost of a body."""

    whole: Cost
    """Unknown where it is unknown of a node."""
    least: Cost
    """Without unknown parts."""


_UNKNOWN_SUM = _Sum(UNKNOWN, _FREE)


class ModelCosts:
    """What the nodes of a model cost.

    Args:
        document: The model; it is read when it is made, not later.
        sizes: Numbers of symbolic dimensions by their names.
        branches: The branch that is taken of each If of which this is known.
    """

    def __init__(
        self,
        document: Document,
        sizes: Mapping[str, int] | None = None,
        branches: Mapping[Node, str] | None = None,
    ) -> None:
        self.document = document
        self.nodes: dict[Node, Cost] = {}
        """Of all scopes: of one run of a body. What differs between calls of a function is not
        known of the nodes in it; the calls have it."""
        self.unknown: list[Node] = []
        """The nodes of unknown cost."""
        self.unsized: list[Node] = []
        """The nodes whose bytes are not counted: a size that they read or write is not known."""
        self._sizes = sizes or {}
        self._branches = branches or {}
        self._kinds: dict[tuple[ValueType, bool], _Tensor] = {}
        self._protos: dict[bytes, _Tensor | None] = {}
        self._tensors: dict[tuple[Dims, int | None], _Tensor] = {}
        self._demands = Demands()
        self._operators: dict[tuple[str, str], Operator] = {}
        self._same: dict[tuple[Any, ...], Cost] = {}
        """By operator and the values that it reads and writes, which live as long as this."""
        self._frames: dict[Scope, _Frame] = {}
        """The first of each scope."""
        self._functions = {key_of(function): function for function in document.functions}
        self._called = {(domain, name) for domain, name, _ in self._functions}
        self._bodies: dict[Scope, dict[tuple[Any, ...], _Sum]] = {}
        """Of functions, by variant and attributes."""
        self._left = _MOST_NODES
        self._later: list[_Frame] = []
        """Branches that do not run."""
        with collector_paused():
            self.total, self.known = self._body(_Frame(document.main), 0)
            """Of one run of the model: unknown where it is unknown of a node, and without that."""
            counted = [*self.unknown], [*self.unsized]
            while self._later:
                self._body(self._later.pop(), 1)
            for function in document.functions:
                if function not in self._frames:  # nothing calls it
                    self._left = max(self._left, len(function.nodes))
                    self._body(_Frame(function), 0)
            self.unknown, self.unsized = (list(dict.fromkeys(nodes)) for nodes in counted)

    def of(self, node: Node) -> Cost:
        """Return the cost of a node; unknown for those nested too deeply."""
        return self.nodes.get(node, UNKNOWN)

    def bytes_of(self, scope: Scope, name: str) -> Count | None:
        """Return the size of a value; None where its type or shape is not known."""
        frame = self._frames.get(scope)
        return self._value(_Frame(scope) if frame is None else frame, name).bytes

    def elements_of(self, scope: Scope, name: str) -> Count | None:
        """Return how many elements a tensor has; None where its shape is not known."""
        frame = self._frames.get(scope)
        return self._value(_Frame(scope) if frame is None else frame, name).elements

    def bodies(self, node: Node) -> list[Scope]:
        """Return the graphs inside a node that may run."""
        taken = self._branches.get(node)
        return node.subgraphs() if taken is None else [*node.children[taken]]

    def _body(self, frame: _Frame, depth: int) -> _Sum:
        scope = frame.scope
        self._frames.setdefault(scope, frame)
        texts = scope.texts()
        if depth:
            self._left -= len(texts.nodes)
        self._note_values(frame, texts)
        values, known = frame.values, self.nodes
        costs, least = [], []
        is_first = self._frames[scope] is frame
        for node, kind, ins, outs in zip(
            texts.nodes, texts.kinds, texts.inputs, texts.outputs, strict=True
        ):
            if node.children or (kind in self._called and call_of(node) in self._functions):
                cost, known_part = self._inside(frame, node, depth)
            else:
                cost = self._own(frame, node, kind, ins, outs, values)
                known_part = cost
                if None in cost:
                    self._note_unknown(node, cost)
            known[node] = cost if is_first else _common(known.get(node, cost), cost)
            costs.append(cost)
            least.append(known_part)
        whole = total(costs)
        if None not in whole:
            return _Sum(whole, whole)
        return _Sum(whole, total(least, known=True))

    def _note_unknown(self, node: Node, cost: Cost) -> None:
        if cost.flops is None:
            self.unknown.append(node)
        if cost.read is None or cost.written is None:
            self.unsized.append(node)

    def _note_values(self, frame: _Frame, texts: NodeTexts) -> None:
        """Record the types of the values of a scope by name, as `Scope.value_type` returns them.

        All together, as there may be many; those of outer scopes are added on demand.
        """
        scope, values = frame.scope, frame.values
        values[""] = _LEFT_OUT
        inferred, touched = self.document.call_types.of(scope, frame.variant), scope.touched
        by_object = {id(kind): self._of_type(kind) for kind in inferred.values()}
        values.update((name, by_object[id(kind)]) for name, kind in inferred.items())
        for proto in scope.records.get("initializer", ()):
            values[text_of(proto.name)] = self._of_type(
                ValueType(dtype_name(proto.data_type), tuple(proto.dims)), stored=True
            )
        caches = {
            name
            for kind, outs in zip(texts.kinds, texts.outputs, strict=True) if kind == _GROUPED
            for name in outs[1:3] if name
        }  # fmt: skip
        for name in caches:
            # ONNX Runtime infers that the cache does not grow; bits alone are right.
            values[name] = _Tensor(bits=values.get(name, _NO_TYPE).bits)
        for list_name in ("input", "output", "value_info"):
            for record in scope.records.get(list_name, ()):
                name = text_of(record.name)
                if name in touched and name in inferred and list_name != "output":
                    continue
                known = self._declared(record.type)
                if known is None:
                    continue
                if name in inferred and name not in caches and _says_more(values[name], known):
                    continue
                values[name] = known
        frame.typed = {
            name: tensor
            for name, tensor in values.items()
            if tensor.elements is None and name and name not in caches
        }
        for name in frame.typed:
            del values[name]
        for kind, outs in zip(texts.kinds, texts.outputs, strict=True):
            if kind == ("", "Constant"):
                for name in outs:
                    tensor = self._value(frame, name)
                    count = tensor.elements
                    values[name] = tensor._replace(stored=count if isinstance(count, int) else 0)

    def _declared(self, proto: onnx.TypeProto) -> _Tensor | None:
        key = proto.SerializeToString()
        if key not in self._protos:
            kind = value_type_of(proto)
            self._protos[key] = None if kind is None else self._of_type(kind)
        return self._protos[key]

    def _value(self, frame: _Frame, name: str) -> _Tensor:
        tensor = frame.values.get(name)
        if tensor is None:
            if frame.outer is not None and frame.scope.definition(name) is None:
                tensor = self._value(frame.outer, name)
            else:
                tensor = self._followed(frame, name)
            frame.values[name] = tensor
        return tensor

    def _typed(self, frame: _Frame, name: str) -> _Tensor:
        """Return what the type of a value says, as far as there is one."""
        tensor = frame.values.get(name) or frame.typed.get(name)
        if tensor is None:
            is_noted = "" in frame.values or frame.variant is not None
            kind = None if is_noted else frame.scope.value_type(name)
            tensor = frame.typed[name] = _NO_TYPE if kind is None else self._of_type(kind)
        return tensor

    def _followed(self, frame: _Frame, name: str) -> _Tensor:
        """Return a value with the sizes that follow from what makes it, where its type has none."""
        typed = self._typed(frame, name)
        if typed.elements is not None or not name:
            return typed
        frame.values[name] = typed  # until it is known: graphs may have cycles
        followed = self._known(frame, name)
        dims = followed.dims
        if dims is None or followed.is_sequence:  # which has as many items as in a run
            return typed
        bits = typed.bits
        node = frame.scope.producer(name) if typed is _NO_TYPE else None
        if node is not None and node.inputs and node.outputs[0] == name:
            counted = self._operator((node.domain, node.op_type))
            if counted.rule is not None or node.domain:  # their types are as a rule those of inputs
                bits = self._value(frame, node.inputs[0]).bits
        key = dims, bits
        if key not in self._tensors:
            self._tensors[key] = _tensor_of(Value(dims), bits)
        return self._tensors[key]

    def _known(self, frame: _Frame, name: str) -> Value:
        """Return what follows from what makes a value, its elements, too."""
        if frame.following is None:
            frame.following = Following(
                lambda scope, name: self._dims_in(frame, scope, name),
                attributes=frame.attributes,
            )
        return frame.following.value(frame.scope, name)

    def _dims_in(self, frame: _Frame, scope: Scope, name: str) -> Dims | None:
        home: _Frame | None = frame
        while home is not None and home.scope is not scope:
            home = home.outer
        return None if home is None else self._typed(home, name).value.dims

    def _element(self, frame: _Frame, name: str) -> Size:
        """Return the only element of a value."""
        listed = self._known(frame, name).values()
        return UNKNOWN_SIZE if listed is None or len(listed) != 1 else listed[0]

    def _of_type(self, kind: ValueType, *, stored: bool = False) -> _Tensor:
        known = self._kinds.get((kind, stored))
        if known is None:
            bits = ELEMENT_BITS.get(kind.dtype or "")
            value = Value(dims_of_type(kind, self._sizes))
            known = self._kinds[kind, stored] = _tensor_of(value, bits, stored=stored)
        return known

    def _operator(self, kind: tuple[str, str]) -> Operator:
        counted = self._operators.get(kind)
        if counted is None:
            counted = self._operators[kind] = operator(*kind)
        return counted

    def _own(
        self,
        frame: _Frame,
        node: Node,
        kind: tuple[str, str],
        ins: Sequence[str],
        outs: Sequence[str],
        values: dict[str, _Tensor],
    ) -> Cost:
        counted = self._operator(kind)
        if counted.is_view:
            return _FREE
        # Without a rule, the types suffice; a model has few different ones.
        key = None
        if counted.rule is None and not kind[0]:
            known_values = [*map(values.get, ins), *map(values.get, outs)]
            if None not in known_values:
                key = (kind, len(ins), len(set(ins)), *map(id, known_values))
                known = self._same.get(key)
                if known is not None:
                    return known
        # By name: a value that is passed twice is read once.
        read = {name: values.get(name) or self._value(frame, name) for name in ins}
        results = [values.get(name) or self._value(frame, name) for name in outs]
        cost = self._count(frame, node, kind, counted, ins, outs, read, results)
        if key is not None:
            self._same[key] = cost
        return cost

    def _count(
        self,
        frame: _Frame,
        node: Node,
        kind: tuple[str, str],
        counted: Operator,
        ins: Sequence[str],
        outs: Sequence[str],
        read: Mapping[str, _Tensor],
        values: list[_Tensor],
    ) -> Cost:
        macs: Count | None = 0
        operations: Count | None = 0
        call = None
        if counted.rule is not None or kind[0]:
            call = Call(
                node.proto,
                [self._known(frame, name) if counted.by_elements and name else read[name].value
                 for name in ins],
                self._demands, frame.opsets.get(kind[0], 0), frame.attributes, self.document,
                [tensor.value for tensor in values],
            )  # fmt: skip
            if kind == _GROUPED:
                for at, shape in grown_cache(call).items():
                    bits = values[at].bits or read[ins[at + 2]].bits
                    values[at] = _tensor_of(Value(shape), bits)
                    frame.values[outs[at]] = values[at]
                call.results = [tensor.value for tensor in values]
            if counted.rule is not None:
                macs, operations = work(counted.rule, call)
        if not counted.is_known:
            macs = operations = None
        elif counted.per_input:
            operations = _times(read[ins[0]].elements if ins else None, counted.per_input)
        elif counted.per_output:
            operations = _times(values[0].elements if values else None, counted.per_output)
        if macs is None and not counted.has_macs:
            macs = 0
        flops = None if macs is None or operations is None else 2 * macs + operations
        written = _sum([value.bytes for value in values])
        taken = list(read.values())
        parameters = sum([value.stored for value in taken])
        if counted.selects and taken:
            taken[0] = _Tensor(bytes=_at_most(written, taken[0].bytes))
        if call is not None:
            for at, (rows, whole) in parts_read(call).items():
                value = read[ins[at]]
                taken[[*read].index(ins[at])] = value._replace(bytes=_part(value, rows, whole))
        return Cost(macs, flops, _sum([value.bytes for value in taken]), written, parameters)

    def _inside(self, frame: _Frame, node: Node, depth: int) -> _Sum:
        """Return the cost of a node that calls a function or has subgraphs."""
        function = self._functions.get(call_of(node))
        bodies: list[_Sum] = []
        if depth <= _DEEPEST and self._left > 0:
            if function is not None:
                return self._call(frame, node, function, depth)
            taken = self._branches.get(node)
            if taken is None and node.op_type == "If":
                taken = self._taken_branch(frame, node)
            for name, scopes in node.children.items():
                for scope in scopes:
                    inner = _Frame(scope, frame, frame.variant, frame.attributes)
                    if taken is None or name == taken:
                        bodies.append(self._body(inner, depth + 1))
                    else:
                        self._later.append(inner)
        if not bodies:
            self._note_unknown(node, UNKNOWN)
            return _UNKNOWN_SUM
        if node.op_type == "FlexAttention":  # its subgraphs change the scores and probabilities
            kind = node.domain, node.op_type
            own = self._own(frame, node, kind, node.inputs, node.outputs, frame.values)
            return _Sum(
                total([own, *(body.whole for body in bodies)]),
                total([own, *(body.least for body in bodies)], known=True),
            )
        if node.op_type == "If":
            dearest = max(bodies, key=_weight)
            # Which one is dearest is not known, either, where something of one is not.
            lacks = [any(body.whole[at] is None for body in bodies) for at in range(4)]
            return _Sum(_without(dearest.whole, lacks), dearest.least)
        trips = self._trips(frame, node)
        if trips is None:
            self._note_unknown(node, UNKNOWN)
            return _UNKNOWN_SUM
        return _Sum(*(part.times(trips) for part in bodies[0]))

    def _call(self, frame: _Frame, node: Node, function: Scope, depth: int) -> _Sum:
        """Return the cost of a call of a function, with its types and attributes."""
        given = declared_attributes(function)
        for proto in node.proto.attribute:
            referred = text_of(proto.ref_attr_name)
            given[text_of(proto.name)] = frame.attributes.get(referred) if referred else proto
        attributes = {name: proto for name, proto in given.items() if proto is not None}
        variant = self.document.call_types.called(node, frame.variant)
        values = ((name, proto.SerializeToString()) for name, proto in sorted(attributes.items()))
        key = variant, *values
        known = self._bodies.setdefault(function, {})
        body = known.get(key)
        if body is None:
            if len(known) >= _MOST_KINDS:
                self._note_unknown(node, UNKNOWN)
                return _UNKNOWN_SUM
            known[key] = _UNKNOWN_SUM  # while it is counted: of a function that calls itself
            body = self._body(_Frame(function, None, variant, attributes), depth + 1)
            known[key] = body
        stored = sum(self._value(frame, name).stored for name in node.inputs)
        return _Sum(*(part._replace(parameters=part.parameters + stored) for part in body))

    def _trips(self, frame: _Frame, node: Node) -> Count | None:
        """Return how often a body runs; a symbol where that shows only in a run."""
        ins = node.inputs
        if node.op_type == "Loop":
            if len(ins) > 1 and ins[1] and number_of(self._element(frame, ins[1])) == 0:
                return 0
            most = self._element(frame, ins[0]) if ins and ins[0] else None
            # A condition that is computed may end it before.
            if isinstance(most, int) and most < _ENDLESS:
                return max(most, 0)
            if isinstance(most, Polynomial) and most.is_whole:
                return most
            return symbol(f"trips of {_place(node)}")
        if node.op_type == "SequenceMap":
            return symbol(f"trips of {_place(node)}")
        if node.op_type == "Scan":
            call = Call(node.proto, [], self._demands, outer=frame.attributes)
            try:  # a malformed node says nothing
                first = ins[len(ins) - call.number("num_scan_inputs", 0)]
                shape = self._value(frame, first).value.dims or ()
                if frame.opsets.get("", 0) < SCAN_SINCE:
                    trips: Size = shape[0] * shape[1]
                else:
                    trips = shape[(call.numbers("scan_input_axes") or [0])[0]]
            except (IndexError, TypeError):
                return None
            return None if trips is UNKNOWN_SIZE else trips
        return None

    def _taken_branch(self, frame: _Frame, node: Node) -> str | None:
        """Return the branch of an If that its condition takes; None where either may run."""
        taken = number_of(self._element(frame, node.inputs[0])) if node.inputs else None
        return None if taken is None else "then_branch" if taken else "else_branch"


def _says_more(inferred: _Tensor, declared: _Tensor) -> bool:
    """Return whether inference knows sizes that the file does not declare.

    Exporters name the sizes of outputs that follow from those of the inputs. Where the two
    contradict each other inference is right: runtimes go by what operators make.
    """
    if contradict(inferred.value.dims, declared.value.dims):
        return True
    if inferred.shape is None or declared.shape is None:
        return inferred.shape is not None
    if len(inferred.shape) != len(declared.shape):
        return False
    return isinstance(inferred.elements, int) and not isinstance(declared.elements, int)


def _common(cost: Cost, other: Cost) -> Cost:
    """Return what two calls of a function have in common."""
    return (
        cost
        if cost == other
        else _without(cost, [a != b for a, b in zip(cost, other, strict=True)])
    )


def _weight(body: _Sum) -> tuple[int, int]:
    """Return what tells which of two branches is dearer: operations, then bytes."""
    flops, moved = body.least.flops, body.least.moved
    return size_at(flops, _TYPICAL) or 0, size_at(moved, _TYPICAL) or 0


def _without(cost: Cost, left_out: Sequence[bool]) -> Cost:
    """Return a cost with some of its counts not known; the parameters stay."""
    counts = [None if out else count for count, out in zip(cost[:4], left_out, strict=False)]
    return Cost._make((*counts, cost.parameters))


def _times(count: Count | None, factor: int) -> Count | None:
    return None if count is None else count * factor


def _part(value: _Tensor, rows: Count, whole: int) -> Count | None:
    """Return the bytes of some rows of a value, at most of all that it has."""
    if value.bytes is None or not isinstance(value.bytes, int):
        return value.bytes
    if isinstance(rows, int):
        return min(rows, whole) * value.bytes // whole
    return rows * (value.bytes // whole)


def _at_most(size: Count | None, bound: Count | None) -> Count | None:
    """Return the smaller of two sizes, the first where that is not known."""
    return min(size, bound) if isinstance(size, int) and isinstance(bound, int) else size


def _sum(counts: list[Count | None]) -> Count | None:
    return None if None in counts else add_up(counts)


def _tensor_of(value: Value, bits: int | None, *, stored: bool = False) -> _Tensor:
    count = elements(value.dims) if value.dims is not None and value.is_known else None
    size = None if count is None or bits is None else byte_count(count, bits)
    return _Tensor(value, bits, count, size, count if stored and isinstance(count, int) else 0)


_COUNTS = Unit("count", count_text, "int64")
_SIZES = Unit("B", size_text, "int64")
_SORTED_AT = 64


class CostRow(NamedTuple):
    """A node and its cost."""

    node: Node
    cost: Cost


def plain(count: Count | None) -> int | str | None:
    """Return a count for a file: a number, or the formula of a symbolic one as text."""
    return count if count is None or isinstance(count, int) else str(count)


def intensity(cost: Cost) -> float | None:
    """Return operations per byte moved; None if one of them is symbolic or unknown."""
    moved = cost.moved
    if not isinstance(cost.flops, int) or not isinstance(moved, int):
        return None
    return cost.flops / moved if moved else None


def _counted(key: str, title: str, unit: Unit, help: str) -> Column[CostRow]:
    def count(row: CostRow) -> Count | None:
        figure: Count | None = getattr(row.cost, key)
        return figure

    def order(row: CostRow) -> int | None:
        figure = count(row)
        return None if figure is None else size_at(figure, _SORTED_AT)

    return Column(
        key, title, lambda row: plain(count(row)), unit, 10, order=order, help=help,
        text=lambda row: unit.shown(count(row)),
    )  # fmt: skip


COLUMNS: tuple[Column[CostRow], ...] = (
    Column("node", "node", lambda row: _place(row.node), least=20, keep="end"),
    Column("operator", "operator", lambda row: _operator(row.node), width=18),
    _counted("macs", "MACs", _COUNTS, "Multiply-accumulates."),
    _counted("flops", "FLOPs", _COUNTS, "Operations; a multiply-accumulate is two."),
    _counted("read", "read", _SIZES, "Bytes of the inputs, each once."),
    _counted("written", "written", _SIZES, "Bytes of the outputs."),
    Column("parameters", "params", lambda row: row.cost.parameters, COUNT, 10,
           help="Elements of initializers and constants that the node reads."),
    Column("intensity", "FLOPs/B", lambda row: intensity(row.cost), RATIO, 8,
           help="Operations per byte read or written."),
)  # fmt: skip


def _place(node: Node) -> str:
    return "".join(f"{step} › " for step in node.scope.path) + node.ref


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def cost_table(costs: ModelCosts) -> Table[CostRow]:
    """Return a row for each node of all scopes, in the order of the file."""
    scopes = costs.document.scopes()
    rows = [CostRow(node, costs.of(node)) for scope in scopes for node in scope.nodes]
    return Table(COLUMNS, rows, name="cost", title="Cost", row_key=lambda row: id(row.node))


def cost_lines(costs: ModelCosts) -> list[str]:
    """Return what one run of a model costs, in lines for people."""
    known, whole = costs.known, costs.total
    figures = (
        ("MACs", count_text, known.macs, whole.macs),
        ("FLOPs", count_text, known.flops, whole.flops),
        ("moved", size_text, known.moved, whole.moved),
    )
    lines = []
    for title, text_of_figure, least, whole_figure in figures:
        figure = text_of_figure(least or 0)
        if whole_figure is None:
            figure = f"at least {figure}" if least else "not known"
        lines.append(f"{title:<11}{visible(figure)}")
    if costs.unknown:
        operators = sorted({_operator(node) for node in costs.unknown})
        text = f"FLOPs of {fmt.plural(len(costs.unknown), 'node')}: {', '.join(operators)}"
        lines.append(f"{'unknown':<11}{visible(text)}")
    if costs.unsized:
        operators = sorted({_operator(node) for node in costs.unsized})
        many = fmt.plural(len(costs.unsized), "node")
        text = f"bytes of {many} with tensors of unknown size: {', '.join(operators)}"
        lines.append(f"{'unsized':<11}{visible(text)}")
    if not all(isinstance(figure, int) for figure in whole[:4]):
        lines += _shape_hint(costs.document)
    return lines


def _shape_hint(document: Document) -> list[str]:
    """Return how to set the dynamic dimensions of the inputs, in at most one line."""
    for name in document.main.inputs:
        kind = document.main.value_type(name)
        dims = () if kind is None else kind.dims or ()
        if dims and not all(isinstance(dim, int) and dim >= 0 for dim in dims):
            sizes = "x".join(str(dim) if isinstance(dim, int) and dim >= 0 else "N" for dim in dims)
            return [f"{'dynamic':<11}for numbers, give sizes: --shape {visible(name)}:{sizes}"]
    return []


def cost_json(costs: ModelCosts, summary: ModelSummary) -> PlainValues:
    """Return the cost of a model and of each node: the entry ``cost`` of ``dld inspect --cost``.

    Sums cover the main graph without unknown costs, and say which figures and how many nodes these
    are.
    """
    known = costs.known
    names = ("macs", "flops", "read_bytes", "written_bytes")
    lacking: list[JSON] = [
        name for name, count in zip(names, costs.total, strict=False) if count is None
    ]
    if "written_bytes" in lacking:
        lacking.append("activation_bytes")
    if summary.unsized:
        lacking.append("weight_bytes")
    scopes = costs.document.scopes()
    return {
        "macs": plain(known.macs),
        "flops": plain(known.flops),
        "read_bytes": plain(known.read),
        "written_bytes": plain(known.written),
        "parameters": summary.weight_parameters,
        "weight_bytes": summary.weight_bytes,
        "activation_bytes": plain(known.written),
        "at_least": lacking,
        "unknown_nodes": len(costs.unknown),
        "unsized_nodes": len(costs.unsized),
        "nodes": [_node_json(node, costs.of(node)) for scope in scopes for node in scope.nodes],
    }


def _node_json(node: Node, cost: Cost) -> JSON:
    return {
        "scope": [*node.scope.path],
        "node": node.ref,
        "op_type": node.op_type,
        "domain": node.domain,
        "macs": plain(cost.macs),
        "flops": plain(cost.flops),
        "read_bytes": plain(cost.read),
        "written_bytes": plain(cost.written),
        "parameters": cost.parameters,
        "intensity": intensity(cost),
    }
