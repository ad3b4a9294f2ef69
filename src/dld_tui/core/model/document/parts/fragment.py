"""Copied nodes: independent of the document that they come from, to be pasted anywhere.

A fragment is a small model: the nodes with their subgraphs, the initializers, constants, types,
operator sets and functions that belong to them, and as its inputs what they take from outside.
Payloads stay in their files, which it keeps open. As an argument of an edit it is JSON::

    {"model": MESSAGE, "constants": 1, "shared": ["weight"]}

MESSAGE is the model as :func:`~dld_tui.core.model.tensors.payloads.encode_message` writes it; its
first nodes are the constants. Of shared initializers it has the shape only: the target has them
already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.external import (
    dense_tensors,
    has_external,
    is_external,
    is_pending,
    make_plain,
    set_inline,
    set_pending,
)
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.index import NAME_FIELD, record_name
from dld_tui.core.model.document.locations import bodies_of, nested_nodes
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.parts.extraction import parts_of, small_model, typed_record
from dld_tui.core.model.document.scope import Scope, ScopeOwner
from dld_tui.core.model.document.traversal import scope_of
from dld_tui.core.model.tensors.payloads import decode_message, encode_message
from dld_tui.core.model.tensors.tensor import DATA_FIELDS, Tensor
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.files.source import Source
    from dld_tui.core.model.document.document import Document

_VALUE_LISTS = ("input", "initializer", "sparse_initializer")
_TYPE_LISTS = ("value_info", "output", "quantization_annotation")


def defined_in(graph: onnx.GraphProto) -> set[str]:
    """Return the values that a graph message defines itself."""
    names = {name for node in graph.node for name in texts_of(node.output)}
    for list_name in _VALUE_LISTS:
        names.update(record_name(list_name, record) for record in getattr(graph, list_name))
    return names - {""}


def inner_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the values that the subgraphs of nodes define, at any depth."""
    inner = (graph for node in nested_nodes(nodes) for graph in bodies_of(node))
    return {name for graph in inner for name in defined_in(graph)}


def rename_links(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename the inputs and outputs of a node message, captured uses in its subgraphs included."""
    for side in ("input", "output"):
        links = texts_of(getattr(node, side))
        if any(name in names for name in links):
            set_texts(node, side, (names.get(name, name) for name in links))
    for configuration in getattr(node, "device_configurations", ()):
        for spec in configuration.sharding_spec:
            _rename_field(spec, "tensor_name", names)
    for graph in bodies_of(node):
        own = defined_in(graph)
        outer = {old: new for old, new in names.items() if old not in own}
        if outer:
            rename_in(graph, outer)


def rename_inside(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Rename values where the subgraphs of node messages define them."""
    for node in list(nested_nodes(nodes)):
        for graph in bodies_of(node):
            own = defined_in(graph)
            inner = {old: new for old, new in names.items() if old in own}
            if inner:
                rename_in(graph, inner)


def rename_in(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename values of a graph message wherever it defines, uses or declares them."""
    for node in graph.node:
        rename_links(node, names)
    for list_name in (*_VALUE_LISTS, *_TYPE_LISTS):
        for record in getattr(graph, list_name):
            tensor = record.values if list_name == "sparse_initializer" else record
            _rename_field(tensor, NAME_FIELD.get(list_name, "name"), names)
    for annotation in graph.quantization_annotation:
        for entry in annotation.quant_parameter_tensor_names:
            _rename_field(entry, "value", names)


def _rename_field(message: Any, field: str, names: Mapping[str, str]) -> None:
    old = text_of(getattr(message, field))
    if old in names:
        set_text(message, field, names[old])


_CHUNK = 4 << 20


@dataclass
class Fragment:
    """Nodes as they were when they were copied."""

    model: onnx.ModelProto
    constants: int
    """How many of its first nodes are constants that the others use."""
    blobs: BlobTable = field(default_factory=BlobTable)

    @property
    def count(self) -> int:
        """How many nodes were copied."""
        return len(self.model.graph.node) - self.constants

    @property
    def size(self) -> int:
        """Bytes of all payloads and of the rest."""
        payloads = [self.blobs.get(sentinel) for sentinel in _sentinels(self.model, self.blobs)]
        return self.model.ByteSize() + sum(blob.length for blob in payloads if blob is not None)

    def to_json(self, document: Document, scope: Scope | None = None) -> JSON:
        """Return the argument for ``paste_nodes``. Large payloads are written to files.

        Args:
            document: The document to paste into.
            scope: Where; initializers that it can see already are left out.

        Raises:
            SaveError: A payload cannot be written.
        """
        model = moved(self.model, self.blobs, document.blobs)
        shared: list[JSON] = []
        for tensor in model.graph.initializer if scope is not None else ():
            name = text_of(tensor.name)
            if scope is not None and _has_same(scope, name, Tensor(tensor, document)):
                for data_field in DATA_FIELDS:
                    tensor.ClearField(data_field)
                shared.append(name)
        return {
            "model": encode_message(document, model),
            "constants": self.constants,
            "shared": shared,
        }


def fragment_of(nodes: Sequence[Node]) -> Fragment:
    """Return a copy of nodes of one scope.

    Raises:
        UsageError: There are no nodes, or they are of several scopes.
    """
    scope = scope_of(nodes, "copy", "Copy those of one graph")
    document = scope.document
    parts = parts_of(scope, nodes)
    model = small_model(document, parts)
    model.graph.input.extend(typed_record(scope, name) for name in parts.inputs)
    _declare_outputs(model, scope, parts.nodes)
    blobs = BlobTable()
    model = moved(model, document.blobs, blobs, own=True)
    if has_external(model.SerializeToString()):
        take_in(document, model, blobs)
    return Fragment(model, len(parts.constants), blobs)


def read_fragment(document: Document, data: JSON) -> tuple[onnx.ModelProto, int, set[str]]:
    """Return the model, the number of constants and the shared names from JSON.

    The payloads are the document's.

    Raises:
        EditError: It is no fragment, or a payload is gone.
    """
    if not isinstance(data, dict):
        raise EditError("a fragment has a model")
    model = decode_message(document, data.get("model"), onnx.ModelProto)
    constants, shared = data.get("constants", 0), data.get("shared", [])
    if not isinstance(constants, int) or not 0 <= constants <= len(model.graph.node):
        raise EditError("the number of constants of a fragment is wrong")
    if not isinstance(shared, list):
        raise EditError("the shared initializers of a fragment are a list")
    return model, constants, {str(name) for name in shared}


def _declare_outputs(model: onnx.ModelProto, scope: Scope, nodes: Sequence[Node]) -> None:
    """Keep the types of values that are outputs of the scope: their records say them alone."""
    outputs = set(scope.outputs)
    for node in nodes:
        for name in node.outputs:
            if name in outputs:
                info = typed_record(scope, name)
                if info.HasField("type"):
                    model.graph.value_info.append(info)


def _sentinels(model: onnx.ModelProto, blobs: BlobTable) -> list[bytes]:
    """Return the sentinels in a message, each once."""
    data = model.SerializeToString()
    sentinels: dict[bytes, None] = {}
    position = data.find(blobs.nonce)
    while position >= 0:
        sentinels[data[position : position + SENTINEL_LENGTH]] = None
        position = data.find(blobs.nonce, position + SENTINEL_LENGTH)
    return list(sentinels)


def moved(
    model: onnx.ModelProto, source: BlobTable, target: BlobTable, *, own: bool = False
) -> onnx.ModelProto:
    """Return a message with its payloads in another table; `own` opens their files once more."""
    sentinels = _sentinels(model, source)
    copied = onnx.ModelProto()
    if not sentinels:
        copied.CopyFrom(model)
        return copied
    data = model.SerializeToString()
    files: dict[Source, Source] = {}
    new: dict[bytes, bytes] = {}
    for sentinel in sentinels:
        blob = source.get(sentinel)
        if blob is not None:
            new[sentinel] = target.add(_own(blob, files) if own else blob)
    position = data.find(source.nonce)
    pieces: list[bytes] = []
    copied_to = 0
    while position >= 0:
        end = position + SENTINEL_LENGTH
        pieces += (data[copied_to:position], new.get(data[position:end], data[position:end]))
        copied_to = end
        position = data.find(source.nonce, end)
    copied.ParseFromString(b"".join((*pieces, data[copied_to:])))
    return copied


def _own(blob: Blob, files: dict[Source, Source]) -> Blob:
    file = files.get(blob.source)
    if file is None:
        file = files[blob.source] = blob.source.reopened()
    return replace(blob, source=file)


def take_in(
    document: ScopeOwner, model: onnx.ModelProto, blobs: BlobTable, *, pending: bool = False
) -> None:
    """Make external data inline: its entries mean nothing in the folder of another model.

    Args:
        document: The document that the model is of.
        model: The model, which is changed.
        blobs: Takes in the payloads.
        pending: Whether the data go to a data file when the model is saved.
    """
    files: dict[Source, Source] = {}
    for tensor in dense_tensors(model):
        if not is_external(tensor):
            continue
        if is_pending(tensor):
            make_plain(tensor)
            continue
        view = Tensor(tensor, document)
        try:
            blob = document.external.blob(view.external_entries, expected=view.nbytes)
        except DldError:
            continue  # it cannot be read: a check says so wherever it is pasted
        payload = blobs.add(_own(blob, files))
        if pending:
            set_pending(tensor, "", payload)
        else:
            set_inline(tensor, payload)


def _has_same(scope: Scope, name: str, wanted: Tensor) -> bool:
    """Return whether a scope sees an initializer of a name with the same values."""
    definition = scope.resolve(name)
    if definition is None or definition.kind != "initializer":
        return False
    present = definition.scope.initializer(name)
    return present is not None and same_values(present, wanted)


def same_values(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors have the same type, shape and values; unreadable ones differ."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    try:
        if first.fields == second.fields and first.dtype == "string":
            return list(first.read()) == list(second.read())
        return _same_bytes(_payload(first), _payload(second))
    except DldError:
        return False


def _payload(tensor: Tensor) -> Blob | bytes:
    try:
        return tensor.payload()
    except DldError:
        data: Any = tensor.read()  # varints: as they are read
        return bytes(data.tobytes())


def _same_bytes(first: Blob | bytes, second: Blob | bytes) -> bool:
    lengths = [len(data) if isinstance(data, bytes) else data.length for data in (first, second)]
    if lengths[0] != lengths[1]:
        return False
    if isinstance(first, Blob) and isinstance(second, Blob):
        here, there = first.source, second.source
        if here.identity == there.identity and first.offset == second.offset:
            return True
    return all(
        _part(first, start) == _part(second, start) for start in range(0, lengths[0], _CHUNK)
    )


def _part(data: Blob | bytes, start: int) -> bytes:
    if isinstance(data, bytes):
        return data[start : start + _CHUNK]
    return data.read(start, _CHUNK)
