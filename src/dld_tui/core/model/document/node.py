"""Nodes and their attributes, as views over the protobuf messages that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dld_tui.core.files import protos as onnx
from dld_tui.core.files.columns import (
    MARK,
    AskNodesError,
    NodeBytes,
    item_of_each,
    items_of_each,
    read_all,
)
from dld_tui.core.files.proto_fields import (
    VALUE_FIELDS,
    attribute_type,
    set_text,
    set_texts,
    text_of,
    texts_of,
)
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.files.blobs import Blob
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.tensors.tensor import Tensor

D = TypeVar("D", bound="int | None")
_AttributeType = onnx.AttributeProto


def node_proto(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str = "",
    domain: str = "",
    **attributes: int | str | None,
) -> onnx.NodeProto:
    """Return the message of a new node, with attributes that are whole numbers or text."""
    proto = onnx.NodeProto()
    for field, text in (("op_type", op_type), ("name", name), ("domain", domain)):
        if text:
            set_text(proto, field, text)
    set_texts(proto, "input", inputs)
    set_texts(proto, "output", outputs)
    for key, value in attributes.items():
        if isinstance(value, str):
            proto.attribute.add(name=key, type=_AttributeType.STRING, s=value.encode())
        elif value is not None:
            proto.attribute.add(name=key, type=_AttributeType.INT, i=value)
    return proto


def constant_node(
    output: str, tensor: onnx.TensorProto | onnx.SparseTensorProto, name: str = ""
) -> onnx.NodeProto:
    """Return the message of a Constant that makes the value of an initializer."""
    node = node_proto("Constant", (), [output], name)
    if isinstance(tensor, onnx.SparseTensorProto):
        attribute = node.attribute.add(name="sparse_value", type=_AttributeType.SPARSE_TENSOR)
        attribute.sparse_tensor.CopyFrom(tensor)
    else:
        attribute = node.attribute.add(name="value", type=_AttributeType.TENSOR)
        attribute.t.CopyFrom(tensor)
        attribute.t.ClearField("name")
    return node


def body_count(proto: onnx.AttributeProto) -> int:
    """Return how many scopes an attribute has: its graphs."""
    if attribute_type(proto) not in (_AttributeType.GRAPH, _AttributeType.GRAPHS):
        return 0
    return len(proto.graphs) or int(proto.HasField("g"))


class Attribute:
    """One attribute of a node, read only: edits go through :meth:`.document.Document.apply`."""

    __slots__ = ("node", "proto")

    def __init__(self, node: Node, proto: onnx.AttributeProto) -> None:
        self.node = node
        self.proto = proto

    @property
    def name(self) -> str:
        """The attribute's name. Untrusted text."""
        return text_of(self.proto.name)

    @property
    def kind(self) -> str:
        """``int``, ``floats``, ``tensor``, ``graph`` …: the AttributeType in lower case."""
        number = attribute_type(self.proto)
        return (
            _AttributeType.AttributeType.Name(number).lower()
            if number in VALUE_FIELDS
            else "undefined"
        )

    @property
    def reference(self) -> str | None:
        """The parameter of the enclosing function that it stands for, or None."""
        return text_of(self.proto.ref_attr_name) or None

    @property
    def blob(self) -> Blob | None:
        """The payload of a long string, which stays in its file; None for all other values."""
        return self.node.scope.document.blobs.get(self.proto.s)

    @property
    def value(self) -> Any:
        """The value: int, float, bytes, list of those, :class:`Tensor`, or the protobuf message.

        Subgraphs are in :meth:`Node.subgraphs`.
        """
        field = VALUE_FIELDS.get(attribute_type(self.proto))
        if field is None:
            return None
        value = getattr(self.proto, field)
        if field == "s" and (blob := self.blob) is not None:
            return blob.read()
        if field in ("floats", "ints", "strings"):
            return list(value)
        if field == "t":
            return self._tensor(value)
        if field == "tensors":
            return [self._tensor(item) for item in value]
        return value

    @property
    def tensor(self) -> Tensor | None:
        """The value as a tensor, a list of numbers or strings as one of one dimension.

        None for all other kinds.
        """
        if self.reference is not None:
            return None
        if self.kind == "tensor":
            return self._tensor(self.proto.t)
        if self.kind not in LIST_DTYPES:
            return None
        elements = list(getattr(self.proto, self.kind))
        proto = onnx.TensorProto(dims=[len(elements)])
        dtype, field = LIST_DTYPES[self.kind]
        proto.data_type = onnx.TensorProto.DataType.Value(dtype)
        getattr(proto, field).extend(elements)
        return self._tensor(proto)

    def _tensor(self, proto: onnx.TensorProto) -> Tensor:
        from dld_tui.core.model.tensors.tensor import Tensor

        return Tensor(proto, self.node.scope.document)


LIST_DTYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ints": ("INT64", "int64_data"),
        "floats": ("FLOAT", "float_data"),
        "strings": ("STRING", "string_data"),
    }
)
"""Kind of a list to ONNX's element type, and the field of a tensor that has such elements."""
_NO_CHILDREN: Mapping[str, list[Scope]] = MappingProxyType({})
"""Shared by the nodes without subgraphs, nearly all."""


class Node:
    """An operator call. Identity is stable for the life of the document."""

    __slots__ = ("__weakref__", "children", "place", "proto", "run", "scope")

    run: NodeRun | None
    """The run of nodes that are parsed together when one is first accessed."""

    def __init__(self, proto: onnx.NodeProto, scope: Scope, place: int = 0) -> None:
        self.proto = proto
        self.run = None
        self.scope = scope
        self.children: Mapping[str, list[Scope]] = _NO_CHILDREN
        """Subgraphs by attribute name."""
        self.place = place
        """Where it was in its list when it was looked for last: for :meth:`Scope.index_of`."""

    if not TYPE_CHECKING:  # else every attribute would be one of its own

        def __getattr__(self, name: str) -> Any:
            # Only for what is not there: of a node that nobody has touched.
            if name == "proto":
                self.run.read()
                return self.proto
            if name in _PLACED:
                self.run.place()
                return getattr(self, name)
            raise AttributeError(f"'Node' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Node {self.op_type} {self.name!r}>"

    @property
    def name(self) -> str:
        """The node's name; may be empty, and need not be unique. Untrusted text."""
        return text_of(self.proto.name)

    @property
    def op_type(self) -> str:
        """The operator, e.g. ``Conv``. Untrusted text."""
        return text_of(self.proto.op_type)

    @property
    def domain(self) -> str:
        """The operator set, ``""`` for ai.onnx. Untrusted text."""
        return plain_domain(text_of(self.proto.domain))

    @property
    def overload(self) -> str:
        """Which overload of a local function is called."""
        return text_of(self.proto.overload)

    @property
    def doc_string(self) -> str:
        """Documentation. Untrusted text."""
        return text_of(self.proto.doc_string)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the values that go in; ``""`` where an optional one is left out."""
        return texts_of(self.proto.input)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the values that come out; ``""`` where an optional one is left out."""
        return texts_of(self.proto.output)

    @property
    def metadata(self) -> dict[str, str]:
        """``metadata_props``; the last one wins where a key is repeated."""
        return {text_of(entry.key): text_of(entry.value) for entry in self.metadata_entries}

    @property
    def metadata_entries(self) -> Sequence[onnx.StringStringEntryProto]:
        """The messages of ``metadata_props``."""
        return self.proto.metadata_props if self.scope.annotated else ()

    @property
    def ref(self) -> str:
        """The shortest way to name it in its scope: see :meth:`Scope.ref_of`."""
        return self.scope.ref_of(self)

    def attributes(self) -> list[Attribute]:
        """Return the attributes that are set, in the order of the file."""
        return [Attribute(self, proto) for proto in self.proto.attribute]

    def attribute(self, name: str) -> Attribute | None:
        """Return one attribute by name, or None."""
        for proto in self.proto.attribute:
            if text_of(proto.name) == name:
                return Attribute(self, proto)
        return None

    def integer(self, name: str, default: D) -> int | D:
        """Return the value of one attribute that is an integer; `default` where it is not set."""
        attribute = self.attribute(name)
        value = None if attribute is None else attribute.value
        return value if isinstance(value, int) else default

    def tensor(self, name: str) -> Tensor | None:
        """Return the tensor that one attribute holds; None where there is none."""
        attribute = self.attribute(name)
        if attribute is None or not attribute.proto.HasField("t"):
            return None
        return attribute._tensor(attribute.proto.t)

    def give_bodies(self, attribute: onnx.AttributeProto, scopes: list[Scope]) -> None:
        """Take in the scopes of one of its graph attributes, in the order of the file.

        A broken model may have several attributes of one name: the scopes of all are kept.
        """
        if scopes:
            name = text_of(attribute.name)
            bodies = self.children.get(name, [])
            known = {**self.children, name: bodies}
            names = dict.fromkeys(text_of(one.name) for one in self.proto.attribute)
            self.children = {one: known[one] for one in names if one in known}
            at = self._bodies_before(attribute)
            bodies[at:at] = scopes

    def take_bodies(self, attribute: onnx.AttributeProto) -> list[Scope] | None:
        """Give up the scopes of one of its attributes; None when there are none."""
        name = text_of(attribute.name)
        bodies = self.children.get(name)
        at, count = self._bodies_before(attribute), body_count(attribute)
        if not bodies or not count:
            return None
        scopes = bodies[at : at + count]
        del bodies[at : at + count]
        if not bodies:
            self.children = {other: its for other, its in self.children.items() if other != name}
        return scopes

    def _bodies_before(self, attribute: onnx.AttributeProto) -> int:
        """Return how many scopes belong to attributes of the same name before one of them."""
        before = 0
        for other in self.proto.attribute:
            if other is attribute:
                break
            if other.name == attribute.name:
                before += body_count(other)
        return before

    def subgraphs(self) -> list[Scope]:
        """Return the scopes of its graph attributes."""
        return [scope for scopes in self.children.values() for scope in scopes]


_PLACED = frozenset(("scope", "place", "children"))


class NodeRun:
    """Nodes that follow one another in a file. What they are is known when one is touched.

    Args:
        own: Their bytes in the file.
        scope: Where they are.
        first: The place of the first one there.
    """

    __slots__ = ("_first", "_scope", "nodes", "unread")

    def __init__(self, own: NodeBytes, scope: Scope, first: int) -> None:
        self.unread: NodeBytes | None = own
        """Their bytes in the file; None when they have messages, which an edit may change."""
        self._scope: Scope | None = scope
        self._first = first
        # A third of the time of a call of `Node` for each, and of what `place` does.
        self.nodes = list(map(Node.__new__, repeat(Node, own.count)))
        for node in self.nodes:
            node.run = self

    def place(self) -> None:
        """Tell the nodes where they are."""
        with _ONE_READS:
            if self._scope is not None:
                for place, node in enumerate(self.nodes, self._first):
                    node.place, node.children, node.scope = place, _NO_CHILDREN, self._scope
                self._scope = None

    def read(self) -> None:
        """Make the messages of the nodes."""
        with _ONE_READS, collector_paused():
            if self.unread is not None:
                for node, message in zip(self.nodes, self.unread.messages(), strict=True):
                    node.proto = message
                self.unread = None


_ONE_READS = Lock()
"""Else two threads would make two messages of one node."""


def unread_nodes(parts: Iterable[NodeBytes], scope: Scope) -> list[Node]:
    """Return the nodes of a scope, in the order of the file."""
    nodes: list[Node] = []
    for own in parts:
        nodes += NodeRun(own, scope, len(nodes)).nodes
    return nodes


def grouped_for_reading(
    nodes: Sequence[Node],
) -> Iterator[tuple[NodeBytes | None, Sequence[Node]]]:
    """Yield all nodes in their order, in groups.

    A group has its bytes in the file where none of its nodes has a message yet, so that no edit can
    have changed them. These nodes have no subgraphs.
    """
    at = asked = 0
    while at < len(nodes):
        run = nodes[at].run
        own = run.unread if run is not None else None
        # Edits may have moved nodes that nobody has touched.
        if run is None or own is None or nodes[at : at + own.count] != run.nodes:
            at += 1
            continue
        if asked < at:
            yield None, nodes[asked:at]
        asked = at + own.count
        yield own, nodes[at:asked]
        at = asked
    if asked < at:
        yield None, nodes[asked:at]


def permutation(node: Node) -> list[int] | None:
    """Return which axis of its input each axis of a Transpose is; None when that is not known."""
    attribute = node.attribute("perm")
    if attribute is None:
        known = node.scope.value_type(node.inputs[0]) if node.inputs else None
        dims = known.dims if known is not None else None
        return None if dims is None else list(range(len(dims)))[::-1]
    axes = attribute.value
    if not isinstance(axes, list) or sorted(axes) != list(range(len(axes))):
        return None
    return axes


class SomeLinks(NamedTuple):
    """What some nodes are linked to. All untrusted text."""

    nodes: Sequence[Node]
    outputs: list[str]
    """Names of the values that come out, :data:`MARK` after those of each node."""
    inputs: list[str]
    """Names of the values that go in, likewise."""


class ListsOfLinks(NamedTuple):
    """The same as a list for each node."""

    nodes: Sequence[Node]
    outputs: list[Sequence[str]]
    inputs: list[Sequence[str]]


def links_of(nodes: Sequence[Node]) -> Iterator[SomeLinks | ListsOfLinks]:
    """Yield the links of nodes, in the groups in which they are read best."""
    for own, some in grouped_for_reading(nodes):
        if own is not None:
            with suppress(AskNodesError):
                outputs, inputs = own.read("output", "input")
                yield SomeLinks(some, outputs, inputs)
                continue
        yield ListsOfLinks(some, *_ask([node.proto for node in some]))


def _ask(protos: list[onnx.NodeProto]) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """Return outputs and inputs of each node."""
    # Slices: protobuf hands over a list faster than one name after the other.
    return (
        _lists_of_texts([proto.output[:] for proto in protos]),
        _lists_of_texts([proto.input[:] for proto in protos]),
    )


def texts_of_nodes(nodes: Sequence[Node], field: str) -> list[str]:
    """Return one text of each node, ``name`` or ``op_type``, without making messages."""
    texts: list[str] = []
    for own, group in grouped_for_reading(nodes):
        if own is not None:
            with suppress(AskNodesError):
                texts += item_of_each(*own.read(field))
                continue
        texts += [getattr(node, field) for node in group]
    return texts


class NodeColumns(NamedTuple):
    """What some nodes are, as lists. All untrusted text."""

    nodes: Sequence[Node]
    names: Sequence[str]
    kinds: Sequence[tuple[str, str]]
    """Operator set, ``""`` for ai.onnx, and operator; the same object for equal ones."""
    inputs: Sequence[Sequence[str]]
    outputs: Sequence[Sequence[str]]
    attributes: Sequence[Sequence[bytes]]
    """The serialised attributes of each node."""


def columns_of(nodes: Sequence[Node]) -> Iterator[NodeColumns]:
    """Yield what nodes are, some at a time, without making messages."""
    kinds = _Kinds()
    for own, group in grouped_for_reading(nodes):
        for at in range(0, len(group), len(group) if own is not None else _AT_ONCE):
            some = group if own is not None else group[at : at + _AT_ONCE]
            yield _columns(some, own, kinds)


_AT_ONCE = 64


def _columns(nodes: Sequence[Node], own: NodeBytes | None, kinds: _Kinds) -> NodeColumns:
    kinds.found.clear()
    try:
        pieces = [n.proto.SerializeToString() for n in nodes] if own is None else own.pieces()
        texts, all_attributes = read_all(pieces)
        inputs, outputs, names, op_types, domains = texts
        kinds.add(item_of_each(domains), item_of_each(op_types))
        return NodeColumns(
            nodes,
            item_of_each(names),
            kinds.found[:],
            items_of_each(inputs),
            items_of_each(outputs),
            items_of_each(all_attributes, MARK.encode()),
        )
    except AskNodesError:
        return NodeColumns(
            nodes,
            [node.name for node in nodes],
            [(node.domain, node.op_type) for node in nodes],
            [node.inputs for node in nodes],
            [node.outputs for node in nodes],
            [[a.SerializeToString() for a in node.proto.attribute] for node in nodes],
        )


class NodeTexts:
    """What nodes were called and linked to when it was made; edits do not change it.

    All untrusted text. To be kept: each name of a value is one object.

    Args:
        nodes: The nodes.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        self.names: list[str] = []
        self.outputs: list[Sequence[str]] = []
        """The names of the values that come out of each node."""
        self.inputs: list[Sequence[str]] = []
        """The names of the values that go into each node."""
        self._same_kinds = _Kinds()
        self.kinds = self._same_kinds.found
        """Operator set, ``""`` for ai.onnx, and operator; the same object for equal ones."""
        self._same: dict[str, str] = {}
        with collector_paused():
            for own, some in grouped_for_reading(self.nodes):
                if own is not None:
                    with suppress(AskNodesError):
                        self._read(own)
                        continue
                self._ask([node.proto for node in some])
        del self._same, self._same_kinds

    def __len__(self) -> int:
        return len(self.nodes)

    def _read(self, own: NodeBytes) -> None:
        names, op_types, domains, outputs, inputs = own.read(
            "name", "op_type", "domain", "output", "input"
        )
        self._same.update(zip(outputs, outputs, strict=True))
        self.outputs += items_of_each(outputs)
        self.inputs += items_of_each([*map(self._same.setdefault, inputs, inputs)])
        self.names += item_of_each(names)
        self._same_kinds.add(item_of_each(domains), item_of_each(op_types))

    def _ask(self, protos: list[onnx.NodeProto]) -> None:
        first = len(self.outputs)
        outputs, inputs = _ask(protos)
        self.outputs += outputs
        self.inputs += inputs
        self._share_names(first)
        self.names += _texts([proto.name for proto in protos])
        self._same_kinds.add(
            _texts([proto.domain for proto in protos]), _texts([proto.op_type for proto in protos])
        )

    def _share_names(self, first: int) -> None:
        """Keep one object of each name, and no list for a single one: a third of their memory."""
        same = self._same
        same.update((name, name) for names in self.outputs[first:] for name in names)
        for lists in (self.outputs, self.inputs):
            for at, names in enumerate(lists[first:], first):
                if len(names) == 1:
                    [name] = names
                    lists[at] = (same.setdefault(name, name),)
                else:
                    lists[at] = [same.setdefault(name, name) for name in names]


class _Kinds:
    """Operator sets and operators, the same object for equal ones."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._plain: dict[tuple[str, str], tuple[str, str]] = {}
        self._same: dict[tuple[str, str], tuple[str, str]] = {}

    def add(self, domains: list[str], op_types: list[str]) -> None:
        pairs = list(zip(domains, op_types, strict=True))
        for pair in set(pairs) - self._plain.keys():
            kind = plain_domain(pair[0]), pair[1]
            self._plain[pair] = self._same.setdefault(kind, kind)
        self.found += map(self._plain.__getitem__, pairs)


_ONLY_STR = frozenset((str,))


def _texts(values: Sequence[str | bytes]) -> list[str]:
    """Return names as str, see :func:`text_of`."""
    if _ONLY_STR.issuperset(map(type, values)):
        return values  # type: ignore[return-value]
    return [text_of(value) for value in values]


def _lists_of_texts(lists: list[list[str]] | list[list[bytes]]) -> list[Sequence[str]]:
    """Return lists of names as str."""
    values: Iterable[str | bytes] = chain.from_iterable(lists)
    if _ONLY_STR.issuperset(map(type, values)):
        return lists  # type: ignore[return-value]
    return [texts_of(names) for names in lists]
