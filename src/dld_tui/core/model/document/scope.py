"""Scopes: main graph, subgraphs and local functions, and the values that their nodes may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dld_tui.core.errors import InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.columns import NodeBytes, NodeParts
from dld_tui.core.files.proto_fields import MOST_PARTS, attribute_type, text_of, texts_of
from dld_tui.core.model.document.index import Definition as Definition
from dld_tui.core.model.document.index import LinkIndex, NameIndex, NodeIndex, place_of, record_name
from dld_tui.core.model.document.index import Use as Use
from dld_tui.core.model.document.node import Node, NodeTexts, unread_nodes
from dld_tui.core.model.tensors.payloads import PayloadOwner
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import ValueType, value_type_of
from dld_tui.core.text import quoted, visible

GRAPH_LISTS = (
    "node",
    "initializer",
    "input",
    "output",
    "value_info",
    "quantization_annotation",
    "sparse_initializer",
)
FUNCTION_LISTS = ("node", "value_info")
INITIALIZERS_WITHOUT_INPUTS = 4
"""The IR version from which on an initializer need not be an input, and is the default of one."""
_FEW_CONTROL_FLOW = 16
_FEW_USERS = 16
_TYPED_LISTS = ("value_info", "output", "input")
_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS


class ScopeOwner(PayloadOwner, Protocol):
    """What scopes, and edits of them, need of the document that they belong to."""

    model: onnx.ModelProto
    path: Path | None
    main: Scope
    shown_types: ShownTypes
    call_types: CallTypes

    @property
    def functions(self) -> list[Scope]:
        """Local functions."""

    @property
    def opset_imports(self) -> dict[str, int]:
        """Operator set versions by domain, ``""`` being ai.onnx. Untrusted text."""

    def scopes(self) -> Iterator[Scope]:
        """Yield every scope."""

    def scope_at(self, path: Sequence[str]) -> Scope:
        """Return a scope by its path; raises EditError when there is none."""


class Scope:
    """A list of nodes with its own names: a graph or a function.

    The repeated fields of the graph live in Python lists (`records`), not in the protobuf message:
    records keep their identity through edits and undo, and inserting does not copy.

    Args:
        parts: What its nodes may have.
        nodes: Its nodes, where the message comes without them.
    """

    def __init__(
        self,
        proto: onnx.GraphProto | onnx.FunctionProto,
        document: ScopeOwner,
        *,
        owner: Node | None = None,
        attribute: str = "",
        position: int | None = None,
        parts: NodeParts = NodeParts(),  # noqa: B008 - immutable
        nodes: Sequence[NodeBytes] = (),
    ) -> None:
        self.proto = proto
        self.document = document
        self.owner = owner
        self.attribute = attribute
        """The graph attribute of `owner` that holds it."""
        self.position = position
        """Its place in an attribute of type ``graphs``, else None."""
        self.inferred: dict[str, ValueType] = {}
        """What shape inference found, by value name; may be older than the last edit. In a
        function: where its calls agree; :class:`CallTypes` has what each of them has."""
        self.stale: set[str] = set()
        """Values whose types an edit may have made wrong; see :mod:`..shapes.staleness`."""
        self.touched: set[str] = set()
        """Values that were stale once: the file's ``value_info`` of them is not reliable."""
        self.is_function = isinstance(proto, onnx.FunctionProto)
        self.annotated = parts.metadata
        """Whether a node may have ``metadata_props``."""
        self.records: dict[str, list[Any]] = {}
        for field in FUNCTION_LISTS if self.is_function else GRAPH_LISTS:
            container = getattr(proto, field)
            self.records[field] = container[:]  # faster than to ask for one after the other
            del container[:]
        self.control_flow: dict[Node, None] = {}
        """Nodes that have subgraphs (a dict for its order)."""
        self.nodes: list[Node] = (
            unread_nodes(nodes, self)
            if nodes
            else [Node(node, self, place) for place, node in enumerate(self.records["node"])]
        )
        self.records["node"] = self.nodes
        if parts.bodies:
            for node in self.nodes:
                self._adopt_all(node)
            self.control_flow.update((node, None) for node in self.nodes if node.children)
        self._links: LinkIndex | None = None
        self._named: dict[str, NameIndex] = {}
        self._by_name: NodeIndex | None = None
        self._by_type: NodeIndex | None = None
        self._drift = 0
        """By how much the node that was looked for last had moved."""
        self.ordered = False
        """Whether each node came after those it uses, when :mod:`.traversal` looked last."""
        self.entered: dict[Node, None] | None = None
        """Nodes added or relinked since the last check; None before the first check."""

    def __repr__(self) -> str:
        return f"<Scope {self.path!r} of {len(self.nodes)} nodes>"

    @property
    def kind(self) -> str:
        """``graph`` (the main one), ``subgraph`` or ``function``."""
        if self.is_function:
            return "function"
        return "subgraph" if self.owner is not None else "graph"

    @property
    def parent(self) -> Scope | None:
        """The scope whose values it can use; None for the main graph and for functions."""
        return self.owner.scope if self.owner is not None else None

    @property
    def path(self) -> tuple[str, ...]:
        """The steps from the main graph, whose path is ``()``. Untrusted text."""
        parent = self.parent
        if parent is not None:
            return (*parent.path, self.step)
        return (self.step,) if self.is_function else ()

    @property
    def step(self) -> str:
        """Its name in its parent: ``NODE:ATTRIBUTE``, ``NODE:ATTRIBUTE[2]``, ``function D:N``."""
        if self.owner is not None:
            place = "" if self.position is None else f"[{self.position}]"
            return f"{self.owner.ref}:{self.attribute}{place}"
        if isinstance(self.proto, onnx.FunctionProto):
            overload = text_of(self.proto.overload)
            tail = f":{overload}" if overload else ""
            return f"function {text_of(self.proto.domain)}:{text_of(self.proto.name)}{tail}"
        return "main"

    @property
    def title(self) -> str:
        """A short name for breadcrumbs: ``main``, ``then_branch``, a function's. Untrusted text."""
        if self.owner is not None:
            return self.attribute if self.position is None else f"{self.attribute}[{self.position}]"
        return text_of(self.proto.name) if self.is_function else "main"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the values that go in."""
        if isinstance(self.proto, onnx.FunctionProto):
            return texts_of(self.proto.input)
        return tuple(record_name("input", record) for record in self.records["input"])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the values that come out."""
        if isinstance(self.proto, onnx.FunctionProto):
            return texts_of(self.proto.output)
        return tuple(record_name("output", record) for record in self.records["output"])

    @property
    def initializers(self) -> list[Tensor]:
        """The dense initializers, in the order of the file."""
        return [Tensor(p, self.document) for p in self.records.get("initializer", ())]

    @property
    def quantization_parameters(self) -> Counter[str]:
        """How often annotations of its values name each scale and zero point. Untrusted text."""
        return Counter(
            text_of(entry.value)
            for record in self.records.get("quantization_annotation", ())
            for entry in record.quant_parameter_tensor_names
        )

    def initializer(self, name: str) -> Tensor | None:
        """Return a dense initializer of this very scope by name, or None."""
        proto = self.named("initializer").first(name)
        return Tensor(proto, self.document) if proto is not None else None

    def is_default(self, name: str) -> bool:
        """Return whether an initializer is an input, too: a caller may give another value.

        Before IR version 4 all initializers of the main graph are inputs, and constants all the
        same.
        """
        is_main = (
            self.kind == "graph" and self.document.model.ir_version >= INITIALIZERS_WITHOUT_INPUTS
        )
        return is_main and name in self.named("initializer") and name in self.named("input")

    def children(self) -> list[Scope]:
        """Return the subgraphs of its nodes, in the order of the nodes."""
        if len(self.control_flow) < 2:
            ordered = list(self.control_flow)
        elif len(self.control_flow) <= _FEW_CONTROL_FLOW:
            ordered = sorted(self.control_flow, key=self.index_of)
        else:
            ordered = [node for node in self.nodes if node.children]
        return [scope for node in ordered for scope in node.subgraphs()]

    def walk(self) -> Iterator[Scope]:
        """Yield this scope and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()

    @property
    def links(self) -> LinkIndex:
        """Producers and consumers by value name."""
        if self._links is None:
            self._links = LinkIndex(self.nodes)
        return self._links

    def texts(self) -> NodeTexts:
        """Return the present names and links of its nodes."""
        return NodeTexts(self.nodes)

    def index(self, texts: NodeTexts) -> None:
        """Build now the indexes that are otherwise built on first use."""
        self._links = LinkIndex(texts.nodes, texts)
        self._by_name = NodeIndex("name", texts.nodes, texts.names)
        for list_name in GRAPH_LISTS[1:]:
            self.named(list_name)

    def named(self, list_name: str) -> NameIndex:
        """Return the index of one of its record lists."""
        index = self._named.get(list_name)
        if index is None:
            index = self._named[list_name] = NameIndex(list_name, self.records.get(list_name, ()))
        return index

    @property
    def _names(self) -> NodeIndex:
        if self._by_name is None:
            self._by_name = NodeIndex("name", self.nodes)
        return self._by_name

    def nodes_of_type(self, op_type: str) -> Sequence[Node]:
        """Return the nodes of this very scope that name an operator, of any domain."""
        if self._by_type is None:
            self._by_type = NodeIndex("op_type", self.nodes)
        return self._by_type.get(op_type)

    def enter(self, list_name: str, record: Any) -> None:
        """Enter a record into the indexes. For the edit primitives."""
        if list_name != "node":
            if list_name in self._named:
                self._named[list_name].add(record)
            return
        self.annotated = True
        if self.entered is not None:
            self.entered[record] = None
        for index in (self._links, self._by_name, self._by_type):
            if index is not None:
                index.add(record)
        if record.children:
            self.control_flow[record] = None

    def leave(self, list_name: str, record: Any) -> None:
        """Take a record out of the indexes. For the edit primitives."""
        if list_name != "node":
            if list_name in self._named:
                self._named[list_name].remove(record)
            return
        for index in (self._links, self._by_name, self._by_type):
            if index is not None:
                index.remove(record)
        self.control_flow.pop(record, None)

    def new_node(self, proto: onnx.NodeProto) -> Node:
        """Wrap a node message, with scopes for its subgraphs; it is not in the scope's list yet."""
        node = Node(proto, self)
        self._adopt_all(node)
        return node

    def _adopt_all(self, node: Node) -> None:
        for attr in node.proto.attribute[:]:  # a slice: half the time of asking one by one
            kind = attr.type or attribute_type(attr)
            if kind in (_GRAPH, _GRAPHS):
                self.adopt(node, attr)

    def adopt(self, node: Node, attr: onnx.AttributeProto) -> None:
        """Make the scopes of a graph attribute that has just become part of `node`.

        Raises:
            InputError: It has more graphs than programs go through.
        """
        graphs: list[tuple[onnx.GraphProto, int | None]] = []
        if len(attr.graphs) > MOST_PARTS:
            raise InputError(
                f"has {len(attr.graphs):,} graphs in an attribute, more than programs go through",
                where=f"{visible(node.op_type)} {visible(node.name)}",
            )
        if attr.type == _GRAPHS or len(attr.graphs):
            graphs += ((graph, index) for index, graph in enumerate(attr.graphs))
        elif attr.HasField("g"):
            graphs.append((attr.g, None))
        name = text_of(attr.name)
        node.give_bodies(
            attr,
            [
                Scope(graph, self.document, owner=node, attribute=name, position=position)
                for graph, position in graphs
            ],
        )

    def ref_of(self, node: Node) -> str:
        """Return the name of a node, or ``>OUTPUT`` or ``#INDEX`` where the name does not tell.

        Names may be missing and need not be unique. The first output is unique in a valid model.
        A node that is no longer in the scope, which a screen may still show, is ``#?``.
        """
        name = node.name
        if name and name[0] not in ">#" and len(self._names.get(name)) == 1:
            return name
        for output in node.outputs:
            if output and len(self.links.producers.get(output, ())) == 1:
                return f">{output}"
        try:
            return f"#{self.index_of(node)}"
        except ValueError:
            return "#?"

    def find(self, ref: str) -> Node | None:
        """Return the node that :meth:`ref_of` names so, or None.

        Where no node has the name, it is that of a tensor, and means the node that makes it.
        """
        if ref.startswith(">"):
            return self.producer(ref[1:])
        if ref.startswith("#") and ref[1:].isdecimal() and int(ref[1:]) < len(self.nodes):
            return self.nodes[int(ref[1:])]
        named = self._names.get(ref)
        if not named:
            return self.producer(ref) if ref else None
        return named[0] if len(named) == 1 else None

    def why_missing(self, ref: str) -> tuple[str, str]:
        """Return why :meth:`find` finds no node, and what to do."""
        named = self.nodes_named(ref)
        if not named:
            return (
                f"there is no node {quoted(ref)}, and no node makes a tensor of this name",
                "`dld inspect --nodes` lists them",
            )
        listed = ", ".join(quoted(node.ref) for node in named[:3])
        return f"{len(named)} nodes are called {quoted(ref)}", f"Name one by an output: {listed}"

    def index_of(self, node: Node) -> int:
        """Return the node's place in the order of the file.

        Raises:
            ValueError: The node is not in this scope.
        """
        guess = node.place
        place = place_of(self.nodes, node, self._drift)
        if place != guess:
            self._drift = place - guess
        return place

    def place_of(self, list_name: str, record: Any) -> int:
        """Return where a record, or a node, is in its list."""
        if list_name == "node":
            return self.index_of(record)
        # Messages compare by content: look for this very one.
        return next(at for at, other in enumerate(self.records[list_name]) if other is record)

    def nodes_named(self, name: str) -> list[Node]:
        """Return the nodes with exactly this name."""
        return list(self._names.get(name))

    def shared_names(self) -> list[str]:
        """Return the names that several nodes have, or had at some time. Untrusted text."""
        return self._names.shared()

    def producer(self, name: str) -> Node | None:
        """Return the node of this scope that makes a value, or None."""
        nodes = self.links.producers.get(name)
        return nodes[0] if nodes else None

    def consumers(self, name: str) -> list[Node]:
        """Return the nodes of this very scope that use a value, once for each input."""
        return list(self.links.consumers.get(name, ()))

    def definition(self, name: str) -> Definition | None:
        """Return where this very scope defines a value, or None."""
        node = self.producer(name)
        if node is not None:
            return Definition(self, "node", node)
        if self.is_weight(name):
            return Definition(self, "initializer")
        is_input = name in self.inputs if self.is_function else name in self.named("input")
        return Definition(self, "input") if is_input else None

    def is_weight(self, name: str) -> bool:
        """Return whether an initializer of this scope, sparse or not, has a name."""
        return name in self.named("initializer") or name in self.named("sparse_initializer")

    def resolve(self, name: str) -> Definition | None:
        """Return the definition that a use in this scope means: the innermost one outwards."""
        scope: Scope | None = self
        while scope is not None:
            definition = scope.definition(name)
            if definition is not None:
                return definition
            scope = scope.parent
        return None

    def reach(self, name: str) -> Iterator[Scope]:
        """Yield this scope and those below it in which `name` means what it means here."""
        yield self
        for node in self.control_flow:
            for child in node.subgraphs():
                if child.definition(name) is None:
                    yield from child.reach(name)

    def users(self, name: str) -> list[Use]:
        """Return every use of a value as a node input, in subgraphs that capture it too.

        They are in the order of the file, whatever edits have done to the index.
        """
        uses = []
        for scope in self.reach(name):
            for node in scope._in_order(dict.fromkeys(scope.links.consumers.get(name, ()))):
                uses += [Use(node, i) for i, used in enumerate(node.inputs) if used == name]
        return uses

    def is_output(self, name: str) -> bool:
        """Return whether a value is an output here, or of a scope below that captures it."""
        return any(name in scope.outputs for scope in self.reach(name))

    def is_used(self, name: str) -> bool:
        """Return whether anything refers to a value, as :meth:`references` counts it."""
        return any(
            scope.links.consumers.get(name)
            or name in scope.outputs
            or name in scope.quantization_parameters
            for scope in self.reach(name)
        )

    def _in_order(self, nodes: dict[Node, None]) -> Iterable[Node]:
        if len(nodes) < 2:
            return nodes
        if len(nodes) > _FEW_USERS:
            return [node for node in self.nodes if node in nodes]
        return sorted(nodes, key=lambda node: place_of(self.nodes, node))

    def references(self) -> Counter[str]:
        """Count by name what refers to values of this scope, here and in scopes below it.

        Inputs of nodes do, outputs, and annotations of quantization, which name scales and zero
        points. Names that a scope below defines itself are left out with it.
        """
        counts = Counter({name: len(nodes) for name, nodes in self.links.consumers.items()})
        counts.update(self.outputs)
        counts.update(self.quantization_parameters)
        for child in self.children():
            below = child.references()
            counts.update({name: below[name] for name in below if child.definition(name) is None})
        return counts

    def captured(self) -> dict[str, Definition | None]:
        """Return the outer values that this scope and nested ones use, with their definitions."""
        parent = self.parent
        if parent is None:
            return {}
        return {
            name: parent.resolve(name)
            for name in self.references()
            if self.definition(name) is None
        }

    def value_type(self, name: str) -> ValueType | None:
        """Return the known type of a value: declared, from its tensor, or inferred."""
        scope: Scope | None = self
        while scope is not None:
            known = scope._own_value_type(name)
            if known is not None:
                return known
            scope = scope.parent if scope.definition(name) is None else None
        return None

    def is_stale(self, name: str) -> bool:
        """Return whether the type of a value may be wrong since an edit, until inference says."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.stale:
                return True
            if name in scope.touched and name not in scope.inferred:
                return name in scope.named("value_info")
            outer = scope.parent
            scope = outer if outer is not None and scope.definition(name) is None else None
        return False

    def _own_value_type(self, name: str) -> ValueType | None:
        if name in self.touched and name in self.inferred and name not in self.named("output"):
            return self.inferred[name]
        for list_name in _TYPED_LISTS:
            record = self.named(list_name).first(name) if list_name in self.records else None
            if record is not None and record.HasField("type"):
                declared = value_type_of(record.type)
                if declared is not None:
                    return declared
        tensor = self.initializer(name) if "initializer" in self.records else None
        if tensor is not None:
            return ValueType(tensor.dtype, tensor.shape)
        return self.inferred.get(name)


def visible_values(scope: Scope) -> Iterator[tuple[str, Definition]]:
    """Yield each value that nodes of a scope can use, and where it is defined.

    The scope's own ones come first: inputs, what nodes make in the order of the file, initializers;
    then those of the scopes around it, without the ones whose names mean something else inside.
    """
    seen: set[str] = set()
    home: Scope | None = scope
    while home is not None:
        for name, definition in _own_values(home):
            if name not in seen:
                seen.add(name)
                yield name, definition
        home = home.parent


def _own_values(scope: Scope) -> Iterator[tuple[str, Definition]]:
    input_definition = Definition(scope, "input")
    stored = Definition(scope, "initializer")
    for name in scope.inputs:
        # Old models list their initializers among the inputs too.
        is_stored = not scope.is_function and name in scope.named("initializer")
        if name and not is_stored:
            yield name, input_definition
    for node in scope.nodes:
        for name in node.outputs:
            if name:
                yield name, Definition(scope, "node", node)
    if not scope.is_function:
        for list_name in ("initializer", "sparse_initializer"):
            for name in scope.named(list_name):
                if name:
                    yield name, stored


class ShownTypes:
    """The types of values, read on first access and kept until the next edit.

    While a thread is making edits (``is_locked``) nothing is read: indexes of the scopes are made
    when somebody looks, and two threads must not make them at once.
    """

    def __init__(self) -> None:
        self.is_locked = False
        self._known: dict[tuple[Scope, str], tuple[ValueType | None, bool]] = {}
        self._aliases: dict[Scope, Mapping[str, str]] = {}

    def of(self, scope: Scope, name: str) -> tuple[ValueType | None, bool]:
        """Return the type of a value, and whether it may be wrong since an edit.

        Args:
            scope: Where the value is seen.
            name: The value.
        """
        known = self._known.get((scope, name))
        if known is None:
            if self.is_locked:
                return None, False
            known = self._known[scope, name] = scope.value_type(name), scope.is_stale(name)
        return known

    def aliases(self, scope: Scope) -> Mapping[str, str]:
        """Return the short names of a scope's long dimensions. Untrusted text."""
        from dld_tui.core.model.tensors.value_types import aliases_in

        if scope not in self._aliases and not self.is_locked:
            self._aliases[scope] = aliases_in(scope)
        return self._aliases.get(scope, {})

    def clear(self) -> None:
        """Discard all: the model was edited, or inference found more types."""
        self._known.clear()
        self._aliases.clear()


class CallTypes:
    """Types inside of functions whose calls differ, as shape inference found them.

    Calls with the same types and attributes are one variant of a function. What all of them agree
    on is in :attr:`Scope.inferred`.
    """

    def __init__(self) -> None:
        self._types: dict[tuple[Scope, int], dict[str, ValueType]] = {}
        self._called: dict[tuple[Scope, int | None], dict[str, int]] = {}

    def of(self, scope: Scope, variant: int | None) -> dict[str, ValueType]:
        """Return the types of values of a scope in a variant of the function that it is in.

        Args:
            scope: A function, or a graph inside one.
            variant: None for what all calls agree on.
        """
        if variant is None:
            return scope.inferred
        return self._types.setdefault((scope, variant), {})

    def called(self, node: Node, variant: int | None) -> int | None:
        """Return the variant of the function that a node calls; None where all calls are alike.

        Args:
            node: The call.
            variant: Of the function that the call is in.
        """
        types = self._called.get((node.scope, variant))
        if types is None:
            return None
        return next((types[name] for name in node.outputs if name in types), None)

    def note(
        self,
        scope: Scope,
        variant: int | None,
        types: Mapping[str, ValueType],
        called: Mapping[str, int],
    ) -> None:
        """Take in what inference found of a scope.

        Args:
            scope: Whose values they are.
            variant: Of the function that it is in; None for all calls.
            types: By value name.
            called: The variants of functions that nodes call, by their first outputs.
        """
        self.of(scope, variant).update(types)
        if called:
            self._called.setdefault((scope, variant), {}).update(called)


def unused_name(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name that is not taken: `wanted`, or with a number behind it."""
    if not is_taken(wanted):
        return wanted
    # 1, 2, 4 … until one is free, then by halves: of thousands of copies each would have to try all
    # names that those before it took.
    taken, free = 0, 1
    while is_taken(f"{wanted}_{free}"):
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        if is_taken(f"{wanted}_{middle}"):
            taken = middle
        else:
            free = middle
    return f"{wanted}_{free}"
