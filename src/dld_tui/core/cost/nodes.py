"""What each node of a model costs by the shapes of its values.

The types are those that the file declares and that inference found; dimensions without a number
stay as they are named. A node with graphs inside costs what these do: of an If the costlier branch,
of a Loop or Scan the body times its trips, of a local function its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.cost.counts import (
    Count,
    add_up,
    byte_count,
    count_text,
    size_at,
    size_text,
    symbol,
)
from dld_tui.core.cost.operators import (
    Call,
    Operator,
    Shape,
    elements,
    missing_output,
    operator,
    work,
)
from dld_tui.core.document.local_functions import call_of, key_of
from dld_tui.core.document.node import NodeTexts
from dld_tui.core.document.types.value_types import (
    PLACEHOLDERS,
    ValueType,
    dtype_name,
    value_type_of,
)
from dld_tui.core.errors import DldError
from dld_tui.core.files.proto_text import text_of
from dld_tui.core.machine.collector import collector_paused
from dld_tui.core.report.groups import ELEMENT_BITS
from dld_tui.core.tables.table import COUNT, RATIO, Column, Table, Unit
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, Facts

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.summary import ModelSummary


_DEEPEST = 64
_ENDLESS = 1 << 31
"""What a loop has as its most trips when its condition ends it."""
_TYPICAL = 64
"""The size of a symbolic dimension when two branches are compared."""
_KEEP_SHAPE = frozenset(
    {"DequantizeLinear", "QuantizeLinear", "Cast", "Identity", "DynamicQuantizeLinear"}
)

_TYPED_BY_NODE = _KEEP_SHAPE | {"Constant"}


class Cost(NamedTuple):
    """What a node costs; None is not known."""

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
        """Return it for so many runs; the parameters stay the same ones."""
        counts = [None if one is None or trips is None else one * trips for one in self[:4]]
        return Cost._make((*counts, self.parameters))


UNKNOWN = Cost(None, None, None, None)
_FREE = Cost()


def total(costs: Sequence[Cost], *, known: bool = False) -> Cost:
    """Return what nodes cost together.

    Args:
        costs: Theirs.
        known: Leave out what is not known; else the sum is not known, either.
    """
    columns: list[Sequence[Any]] = list(zip(*costs, strict=True)) or [()] * len(Cost._fields)
    if known:
        columns = [[one for one in column if one is not None] for column in columns]
    return Cost._make(None if None in column else add_up(column) for column in columns)


class _Value(NamedTuple):
    """What the cost of a node needs of one of its values."""

    shape: Shape | None = None
    bits: int | None = None
    """Of an element."""
    elements: Count | None = None
    bytes: Count | None = None
    stored: int = 0
    """Its elements, where it is an initializer or a constant."""


_LEFT_OUT = _Value(bytes=0)
_NO_TYPE = _Value()


def _value_of(shape: Shape | None, bits: int | None, *, stored: bool = False) -> _Value:
    count = None if shape is None else elements(shape)
    size = None if count is None or bits is None else byte_count(count, bits)
    return _Value(shape, bits, count, size, count if stored and isinstance(count, int) else 0)


class ModelCosts:
    """What the nodes of a model cost.

    Args:
        document: The model; it is read when it is made, not later.
        sizes: Numbers of symbolic dimensions by their names.
    """

    def __init__(self, document: Document, sizes: Mapping[str, int] | None = None) -> None:
        self.document = document
        self.nodes: dict[Node, Cost] = {}
        """Of all scopes: of one run of a body."""
        self._sizes = sizes or {}
        self._kinds: dict[tuple[ValueType, bool], _Value] = {}
        self._protos: dict[bytes, _Value | None] = {}
        self._operators: dict[tuple[str, str], Operator] = {}
        self._same: dict[tuple[Any, ...], Cost] = {}
        """By an operator and the values that it reads and makes, which live as long as this."""
        self._values: dict[Scope, dict[str, _Value]] = {}
        self._functions = {key_of(function): function for function in document.functions}
        self._called = {(domain, name) for domain, name, _ in self._functions}
        self._bodies: dict[Scope, Cost] = {}
        with collector_paused():
            for scope in (document.main, *document.functions):
                self._body(scope, 0)
        self.total = self._bodies[document.main]
        """Of one run of the model; unknown where it is unknown of a node."""
        self.known = total([self.nodes[node] for node in document.main.nodes], known=True)
        """The same, without what is not known."""

    @property
    def unknown(self) -> list[Node]:
        """The nodes of which it is not known what they compute."""
        return [node for node, cost in self.nodes.items() if cost.flops is None]

    def bytes_of(self, scope: Scope, name: str) -> Count | None:
        """Return the size of a value; None where its type or shape is not known."""
        return self._value(scope, name).bytes

    def _body(self, scope: Scope, depth: int) -> Cost:
        known = self._bodies.get(scope)
        if known is not None:
            return known
        self._bodies[scope] = UNKNOWN  # while it is counted: of a function that calls itself
        texts = scope.texts()
        values = self._values_of(scope, texts)
        costs = []
        for node, kind, ins, outs in zip(
            texts.nodes, texts.kinds, texts.inputs, texts.outputs, strict=True
        ):
            if node.children or (kind in self._called and call_of(node) in self._functions):
                cost = self._inside(node, values, depth)
            else:
                cost = self._own(node, kind, ins, outs, values)
            self.nodes[node] = cost
            costs.append(cost)
        found = self._bodies[scope] = total(costs)
        return found

    # --- values ----------------------------------------------------------------------------------

    def _values_of(self, scope: Scope, texts: NodeTexts) -> dict[str, _Value]:
        """Return what is known of the values of a scope by name, as `Scope.value_type` says it.

        In one go, as there may be many; outer ones are added as they are needed.
        """
        values = self._values[scope] = {"": _LEFT_OUT}
        inferred, touched = scope.inferred, scope.touched
        by_object = {id(kind): self._of_type(kind) for kind in inferred.values()}
        values.update((name, by_object[id(kind)]) for name, kind in inferred.items())
        for proto in scope.records.get("initializer", ()):
            values[text_of(proto.name)] = self._of_type(
                ValueType(dtype_name(proto.data_type), tuple(proto.dims)), stored=True
            )
        for list_name in ("input", "output", "value_info"):
            for record in scope.records.get(list_name, ()):
                name = text_of(record.name)
                if name in touched and name in inferred and list_name != "output":
                    continue
                known = self._declared(record.type)
                if known is None:
                    continue
                # Exporters name the sizes of outputs that follow from those of the inputs.
                if list_name == "output" and _has_more_numbers(inferred.get(name), known.shape):
                    continue
                values[name] = known
        for kind, outs in zip(texts.kinds, texts.outputs, strict=True):
            if kind[1] not in _TYPED_BY_NODE:
                for name in outs:  # else all that is known is above
                    values.setdefault(name, _NO_TYPE)
            if kind == ("", "Constant"):
                for name in outs:
                    value = self._value(scope, name)
                    count = value.elements
                    values[name] = value._replace(stored=count if isinstance(count, int) else 0)
        return values

    def _declared(self, proto: onnx.TypeProto) -> _Value | None:
        key = proto.SerializeToString()
        if key not in self._protos:
            kind = value_type_of(proto)
            self._protos[key] = None if kind is None else self._of_type(kind)
        return self._protos[key]

    def _value(self, scope: Scope, name: str) -> _Value:
        values = self._values.get(scope)
        if values is None:
            return self._typed(scope, name)
        value = values.get(name)
        if value is None:
            outer = scope.parent
            if outer is not None and scope.definition(name) is None:
                value = self._value(outer, name)
            else:
                value = self._typed(scope, name)
            values[name] = value
        return value

    def _typed(self, scope: Scope, name: str) -> _Value:
        kind = scope.value_type(name)
        if kind is not None:
            return self._of_type(kind)
        producer = scope.producer(name)
        if producer is None or not producer.inputs or producer.op_type not in _KEEP_SHAPE:
            return _Value()
        # Quantized models declare what is between Q and DQ rarely.
        return _value_of(self._value(scope, producer.inputs[0]).shape, None)

    def _of_type(self, kind: ValueType, *, stored: bool = False) -> _Value:
        found = self._kinds.get((kind, stored))
        if found is None:
            bits = ELEMENT_BITS.get(kind.dtype or "")
            found = self._kinds[kind, stored] = _value_of(self._shape(kind), bits, stored=stored)
        return found

    def _shape(self, kind: ValueType) -> Shape | None:
        if kind.dims is None or kind.container:
            return None
        shape: list[Count] = []
        for dim in kind.dims:
            if isinstance(dim, str) and dim in self._sizes:
                shape.append(self._sizes[dim])
            elif dim is None or dim in PLACEHOLDERS or (isinstance(dim, int) and dim < 0):
                return None
            else:
                shape.append(dim if isinstance(dim, int) else symbol(dim))
        return tuple(shape)

    # --- nodes -----------------------------------------------------------------------------------

    def _own(
        self,
        node: Node,
        kind: tuple[str, str],
        ins: Sequence[str],
        outs: Sequence[str],
        values: dict[str, _Value],
    ) -> Cost:
        counted = self._operators.get(kind)
        if counted is None:
            counted = self._operators[kind] = operator(*kind)
        if counted.is_view:
            return _FREE
        # Without a rule the types tell all; a model has few different ones.
        key = None
        if counted.rule is None and not kind[0]:
            known_values = [*map(values.get, ins), *map(values.get, outs)]
            if None not in known_values:
                key = (kind, len(ins), len(set(ins)), *map(id, known_values))
                known = self._same.get(key)
                if known is not None:
                    return known
        scope = node.scope
        # By name: what is given twice is read once.
        read = {name: values.get(name) or self._value(scope, name) for name in ins}
        made = [values.get(name) or self._value(scope, name) for name in outs]
        cost = self._count(node, kind, counted, ins, outs, read, made)
        if key is not None:
            self._same[key] = cost
        return cost

    def _count(
        self,
        node: Node,
        kind: tuple[str, str],
        counted: Operator,
        ins: Sequence[str],
        outs: Sequence[str],
        read: Mapping[str, _Value],
        values: list[_Value],
    ) -> Cost:
        macs: Count | None = 0
        operations: Count | None = 0
        if counted.rule is not None or kind[0]:
            call = Call(
                *kind, [read[name].shape for name in ins], [one.shape for one in values],
                partial(_attribute, node),
            )  # fmt: skip
            if kind[0] and values and values[0].shape is None and outs[0]:
                values[0] = _value_of(missing_output(call), read[ins[0]].bits)
                self._values[node.scope][outs[0]] = values[0]
                call.outputs = [one.shape for one in values]
            if counted.rule is not None:
                macs, operations = work(counted.rule, call)
        if not counted.is_known:
            macs = operations = None
        elif counted.per_input:
            operations = _times(read[ins[0]].elements if ins else None, counted.per_input)
        elif counted.per_output:
            operations = _times(values[0].elements if values else None, counted.per_output)
        flops = None if macs is None or operations is None else 2 * macs + operations
        written = _sum([one.bytes for one in values])
        taken = list(read.values())
        parameters = sum([one.stored for one in taken])
        if counted.selects and taken:
            taken[0] = _Value(bytes=written)
        return Cost(macs, flops, _sum([one.bytes for one in taken]), written, parameters)

    def _inside(self, node: Node, values: dict[str, _Value], depth: int) -> Cost:
        if depth > _DEEPEST:
            return UNKNOWN
        function = self._functions.get(call_of(node))
        if function is not None:
            body = self._body(function, depth + 1)
            given = sum(self._value(node.scope, name).stored for name in node.inputs)
            return body._replace(parameters=body.parameters + given)
        bodies = [self._body(body, depth + 1) for body in node.subgraphs()]
        if not bodies:
            return UNKNOWN
        if node.op_type == "If":
            taken = _whole_constant(node.scope, node.inputs[0]) if node.inputs else None
            if taken is not None:
                name = "then_branch" if taken else "else_branch"
                return total([self._body(one, depth + 1) for one in node.children.get(name, ())])
            return max(bodies, key=lambda cost: size_at(cost.flops, _TYPICAL) or 0)
        return bodies[0].times(self._trips(node, values))

    def _trips(self, node: Node, values: dict[str, _Value]) -> Count | None:
        """Return how often a body runs; a symbol where that shows only in a run."""
        ins = node.inputs
        if node.op_type == "Loop":
            most = _whole_constant(node.scope, ins[0]) if ins and ins[0] else None
            # A condition that is computed may end it before.
            if most is None or most >= _ENDLESS:
                return symbol(f"trips of {node.ref}")
            return max(most, 0)
        if node.op_type == "Scan":
            count = _attribute(node, "num_scan_inputs") or 0
            axes = _attribute(node, "scan_input_axes")
            shape = self._value(node.scope, ins[len(ins) - count]).shape if count > 0 else None
            return None if shape is None or not shape else shape[axes[0] if axes else 0]
        return None


def _has_more_numbers(inferred: ValueType | None, declared: Shape | None) -> bool:
    """Return whether inference has numbers for all sizes, and the model has not."""
    dims = None if inferred is None else inferred.dims
    if dims is None or (declared is not None and len(declared) != len(dims)):
        return False
    is_open = declared is None or not all(isinstance(dim, int) for dim in declared)
    return is_open and all(isinstance(dim, int) for dim in dims)


def _times(count: Count | None, factor: int) -> Count | None:
    return None if count is None else count * factor


def _sum(counts: list[Count | None]) -> Count | None:
    return None if None in counts else add_up(counts)  # type: ignore[arg-type]


def _attribute(node: Node, name: str) -> Any:
    found = node.attribute(name)
    return None if found is None else found.value


def _whole_constant(scope: Scope, name: str) -> int | None:
    """Return a constant that is one integer; None where it is none, or not known before a run."""
    definition = scope.resolve(name)
    if definition is None or definition.scope.is_default(name):
        return None
    tensor = definition.scope.initializer(name) if definition.kind == "initializer" else None
    if definition.node is not None and definition.node.op_type == "Constant":
        tensor = _attribute(definition.node, "value")
    if tensor is None or tensor.element_count != 1:
        return None
    try:
        return int(tensor.read().reshape(-1)[0])
    except (DldError, ValueError, TypeError):
        return None


_COUNTS = Unit("count", count_text, "int64")
_SIZES = Unit("B", size_text, "int64")
_SORTED_AT = 64


class CostRow(NamedTuple):
    """A node and what it costs."""

    node: Node
    cost: Cost


def plain(count: Count | None) -> int | str | None:
    """Return a count for a file: a number, or the formula of a symbolic one as text."""
    return count if count is None or isinstance(count, int) else str(count)


def intensity(cost: Cost) -> float | None:
    """Return operations a byte moved; None where one of them is symbolic or unknown."""
    moved = cost.moved
    if not isinstance(cost.flops, int) or not isinstance(moved, int):
        return None
    return cost.flops / moved if moved else None


def _counted(key: str, title: str, unit: Unit, help: str) -> Column[CostRow]:
    def count(row: CostRow) -> Count | None:
        found: Count | None = getattr(row.cost, key)
        return found

    def order(row: CostRow) -> int | None:
        found = count(row)
        return None if found is None else size_at(found, _SORTED_AT)

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
           help="Elements of the initializers and constants that it reads."),
    Column("intensity", "FLOPs/B", lambda row: intensity(row.cost), RATIO, 8,
           help="Operations a byte read or written."),
)  # fmt: skip


def _place(node: Node) -> str:
    return "".join(f"{step} › " for step in node.scope.path) + node.ref


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def cost_table(costs: ModelCosts) -> Table[CostRow]:
    """Return a row for each node of all scopes, in the order of the file."""
    scopes = costs.document.scopes()
    rows = [CostRow(node, costs.nodes[node]) for scope in scopes for node in scope.nodes]
    return Table(COLUMNS, rows, name="cost", title="Cost", row_key=lambda row: id(row.node))


def cost_lines(costs: ModelCosts) -> list[str]:
    """Return what one run of a model costs, in lines for people."""
    known, whole = costs.known, costs.total
    figures = (
        ("MACs", count_text, known.macs, whole.macs),
        ("FLOPs", count_text, known.flops, whole.flops),
        ("moved", size_text, known.moved, whole.moved),
    )
    found = []
    for title, text_of_figure, least, whole_figure in figures:
        said = text_of_figure(least or 0)
        if whole_figure is None:
            said = f"at least {said}" if least else "not known"
        found.append(f"{title:<11}{visible(said)}")
    if costs.unknown:
        operators = sorted({_operator(node) for node in costs.unknown})
        text = f"{fmt.plural(len(costs.unknown), 'node')}, not counted: {', '.join(operators)}"
        found.append(f"{'unknown':<11}{visible(text)}")
    return found


def cost_json(costs: ModelCosts, summary: ModelSummary) -> Facts:
    """Return what a model costs, and each node: the entry ``cost`` of ``dld inspect --cost``.

    Sums are over the main graph, without what is not known, and say how many nodes that is.
    """
    known = costs.known
    scopes = costs.document.scopes()
    return {
        "macs": plain(known.macs),
        "flops": plain(known.flops),
        "read_bytes": plain(known.read),
        "written_bytes": plain(known.written),
        "parameters": summary.parameters,
        "weight_bytes": summary.initializer_bytes,
        "activation_bytes": plain(known.written),
        "unknown_nodes": len(costs.unknown),
        "nodes": [_node_json(node, costs.nodes[node]) for scope in scopes for node in scope.nodes],
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
